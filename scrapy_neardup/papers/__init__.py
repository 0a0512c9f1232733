"""Algorithms that come from one paper each, with all the code that only they need.

Two of them use `Inverted`, an index in RAM, and two use `Unions`, which joins pairs to clusters.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Hashable, Iterable, Iterator, Sequence
from typing import Any, Generic, TypeVar

T = TypeVar("T")


def distinct(documents: Iterable[T]) -> Iterator[T]:
    """Yield each document once, in order. Documents are compared by identity."""
    seen: set[int] = set()
    for document in documents:
        if id(document) not in seen:
            seen.add(id(document))
            yield document


V = TypeVar("V", bound="Iterable[Any]")


class Inverted(ABC, Generic[V, T]):
    """An index in RAM by features, in the order of arrival."""

    def __init__(self) -> None:
        self._next = 0
        self._entries: dict[int, tuple[tuple[int, ...], T]] = {}  # fingerprints and document, by number
        self._holders: dict[Hashable, dict[int, None]] = {}  # numbers by feature

    @abstractmethod
    def read(self, fingerprints: Sequence[int]) -> V:
        """Decode fingerprints to features, or to what `features` takes them from."""

    def features(self, decoded: V) -> Iterable[Hashable]:
        """Return the features under which a document is held."""
        return decoded

    @abstractmethod
    def sought(self, decoded: V) -> Iterable[Hashable]:
        """Return features of which each near document has at least one."""

    @abstractmethod
    def is_near(self, decoded: V, held: V) -> bool:
        """Return whether the fingerprints of two documents are similar."""

    def holders(self, feature: Hashable) -> Collection[int]:
        """Return the numbers of the documents that have a feature."""
        return self._holders.get(feature, ())

    def add(self, fingerprints: Sequence[int], document: T) -> None:
        self._next += 1
        for feature in self.features(self.read(fingerprints)):
            self._holders.setdefault(feature, {})[self._next] = None
            self._entries[self._next] = tuple(fingerprints), document

    def remove(self, fingerprints: Sequence[int], document: T) -> None:
        features = {*self.features(self.read(fingerprints))}
        rarest = [(n, *self._entries[n]) for n in min(map(self.holders, features), key=len, default=())]
        for number in [n for n, values, each in rarest if each is document and values == tuple(fingerprints)]:
            del self._entries[number]
            for feature in features:
                del self._holders[feature][number]
        for feature in [each for each in features if not self.holders(each)]:
            self._holders.pop(feature, None)

    def find(self, fingerprints: Sequence[int]) -> Iterator[T]:
        wanted = self.read(fingerprints)
        numbers = {number for feature in self.sought(wanted) for number in self.holders(feature)}
        entries = (self._entries[number] for number in sorted(numbers))
        return distinct(document for held, document in entries if self.is_near(wanted, self.read(held)))


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
