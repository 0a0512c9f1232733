"""Define the kinds of lookups for a detector: by equal fingerprints, near SimHashes, or an index of its own.

`Unions` joins the pairs that lookups find to clusters.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

T = TypeVar("T")

NEWEST = 16  # the maximum number of documents for one fingerprint; if more have it, they share only a set phrase


@dataclass(frozen=True)
class Equal:
    """A lookup that finds documents in the store by equal fingerprints."""

    newest: int = NEWEST
    """The maximum number of documents for one fingerprint. If more documents have it, the newest are returned.

    A fingerprint that very many documents share proves little.
    """


@dataclass(frozen=True)
class Near:
    """A lookup that finds documents in the store by Hamming distance. Only the detector `simhash` may use it."""

    distance: int
    """The maximum number of differing bits."""


class Index(Protocol[T]):
    """A detector's own index in RAM. When a store is opened, it adds its documents to the index.

    An index maps 64-bit fingerprints to documents. A document may have several fingerprints. Documents are compared by
    identity.
    """

    def add(self, fingerprints: Sequence[int], document: T) -> None:
        """Add a document under its fingerprints. A document without fingerprints is never found."""

    def remove(self, fingerprints: Sequence[int], document: T) -> None:
        """Remove a document, given its fingerprints."""

    def find(self, fingerprints: Sequence[int]) -> Iterable[T]:
        """Return each document that has any of the fingerprints, once."""


def distinct(documents: Iterable[T]) -> Iterator[T]:
    """Yield each document once, in order. Documents are compared by identity."""
    seen: set[int] = set()
    for document in documents:
        if id(document) not in seen:
            seen.add(id(document))
            yield document


M = TypeVar("M", bound=Hashable)


class Unions(Generic[M]):
    """Sets of members that were joined, directly or through other members.

    Tarjan 1975, Efficiency of a good but not linear set union algorithm. Paths are halved.
    """

    def __init__(self) -> None:
        self._above: dict[M, M] = {}

    def top(self, member: M) -> M:
        """Return the representative of a member's set. A new member is a set of its own."""
        above = self._above
        above.setdefault(member, member)
        while above[member] != member:
            above[member] = above[above[member]]
            member = above[member]
        return member

    def join(self, *members: M) -> None:
        """Join the sets of these members to one set."""
        first, *others = map(self.top, members)
        for other in others:
            self._above[self.top(other)] = self.top(first)

    def clusters(self) -> list[list[M]]:
        """Return the sets of two or more members. Sets and members are in the order in which members were added."""
        sets: dict[M, list[M]] = {}
        for member in self._above:
            sets.setdefault(self.top(member), []).append(member)
        return [cluster for cluster in sets.values() if len(cluster) > 1]
