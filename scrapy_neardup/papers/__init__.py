"""Detectors and a clustering method, each from one paper, and an inverted index that the detectors share."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Hashable, Iterable, Iterator, Sequence
from typing import Any, Generic, TypeVar

T = TypeVar("T")
V = TypeVar("V", bound="Iterable[Any]")


class InvertedIndex(ABC, Generic[V, T]):
    """Finds documents by features. The indexes in this package are based on this class."""

    def __init__(self) -> None:
        self._next = 0
        self._entries: dict[int, tuple[tuple[int, ...], T]] = {}  # fingerprints and document, by number
        self._holders: dict[Hashable, dict[int, None]] = {}  # numbers by feature

    @abstractmethod
    def read(self, fingerprints: Sequence[int]) -> V:
        """Decode fingerprints: to features, or to a value from which `features` makes them."""

    def features(self, decoded: V) -> Iterable[Hashable]:
        """Return the features under which a document is held."""
        return decoded

    @abstractmethod
    def sought(self, decoded: V) -> Iterable[Hashable]:
        """Return features such that each similar document has at least one of them."""

    @abstractmethod
    def is_near(self, decoded: V, held: V) -> bool:
        """Return whether two documents are similar, given their decoded fingerprints."""

    def holders(self, feature: Hashable) -> Collection[int]:
        """Return the numbers, in this index, of the documents that have a feature."""
        return self._holders.get(feature, ())

    def add(self, fingerprints: Sequence[int], document: T) -> None:
        self._next += 1
        for feature in self.features(self.read(fingerprints)):  # a document without features is not held
            self._holders.setdefault(feature, {})[self._next] = None
            self._entries[self._next] = tuple(fingerprints), document

    def remove(self, fingerprints: Sequence[int], document: T) -> None:
        features = {*self.features(self.read(fingerprints))}
        fewest = min(map(self.holders, features), key=len, default=())  # the documents with the rarest feature
        held = [(number, *self._entries[number]) for number in fewest]
        for number in [n for n, values, each in held if each is document and values == tuple(fingerprints)]:
            del self._entries[number]
            for feature in features:
                del self._holders[feature][number]
        for feature in [each for each in features if not self.holders(each)]:
            self._holders.pop(feature, None)

    def find(self, fingerprints: Sequence[int]) -> Iterator[T]:
        wanted = self.read(fingerprints)
        numbers = {number for feature in self.sought(wanted) for number in self.holders(feature)}
        entries = (self._entries[number] for number in sorted(numbers))
        near = {id(document): document for held, document in entries if self.is_near(wanted, self.read(held))}
        return iter(near.values())
