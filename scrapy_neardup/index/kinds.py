"""Define the kinds of lookups for a detector: by equal fingerprints, near SimHashes, or an index of its own."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeVar

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
