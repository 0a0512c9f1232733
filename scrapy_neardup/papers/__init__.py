"""Detectors and a clustering method, each from one paper, and an inverted index that the detectors share."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Hashable, Iterable, Iterator, Sequence
from typing import Any, Generic, TypeVar

T = TypeVar("T")
V = TypeVar("V", bound="Iterable[Any]")


class InvertedIndex(ABC, Generic[V, T]):
    """Finds documents by features, which subclasses make from fingerprints: the base of the indexes in this package."""

    def __init__(self) -> None:
        self._entries: dict[int, tuple[tuple[int, ...], T]] = {}  # fingerprints and document, by `id` of the document
        self._holders: dict[Hashable, set[int]] = {}  # the `id` of each document with a feature

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
        """Return the `id` of each document that has a feature."""
        return self._holders.get(feature, ())

    def add(self, fingerprints: Sequence[int], document: T) -> None:
        for feature in self.features(self.read(fingerprints)):  # a document without features is not held
            self._holders.setdefault(feature, set()).add(id(document))
            self._entries[id(document)] = tuple(fingerprints), document

    def remove(self, fingerprints: Sequence[int], document: T) -> None:
        if self._entries.pop(id(document), None):
            for feature in {*self.features(self.read(fingerprints))}:
                self._holders[feature].remove(id(document))
                if not self._holders[feature]:
                    del self._holders[feature]

    def find(self, fingerprints: Sequence[int]) -> Iterator[T]:
        wanted = self.read(fingerprints)
        entries = map(self._entries.__getitem__, set[int]().union(*map(self.holders, self.sought(wanted))))
        return (document for held, document in entries if self.is_near(wanted, self.read(held)))
