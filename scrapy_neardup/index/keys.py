"""The index for fingerprints that must be equal: dictionaries."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain
from typing import Generic, TypeVar

from .base import distinct

T = TypeVar("T")

PARTS = 256


class KeyIndex(Generic[T]):
    """Documents by equal fingerprints: those that share at least one; of each fingerprint in the order of coming.

    `newest`: how many are found by one fingerprint at most, those that came last; None for all. One that very many
    share tells little of any of them.

    In many dictionaries, since one that outgrows its room is copied as a whole, which takes seconds for ten million
    keys; the crawl would stand still as long.
    """

    def __init__(self, newest: int | None = None) -> None:
        self.newest = newest
        self._parts: list[_Part[T]] = [_Part() for _ in range(PARTS)]

    def add(self, fingerprints: Sequence[int], document: T) -> None:
        for key in fingerprints:
            self._parts[key % PARTS].add(key, document)

    def remove(self, fingerprints: Sequence[int], document: T) -> None:
        for key in fingerprints:
            self._parts[key % PARTS].remove(key, document)

    def find(self, fingerprints: Sequence[int]) -> Iterator[T]:
        return distinct(chain.from_iterable(self._parts[key % PARTS].under(key, self.newest) for key in fingerprints))


class _Part(Generic[T]):
    def __init__(self) -> None:
        # Few fingerprints are shared: a list for each would take half of the memory.
        self._first: dict[int, T] = {}
        self._others: dict[int, list[T]] = {}

    def add(self, key: int, document: T) -> None:
        if self._first.setdefault(key, document) is not document:
            self._others.setdefault(key, []).append(document)

    def remove(self, key: int, document: T) -> None:
        rest = [other for other in self.under(key) if other is not document]
        self._first.pop(key, None)
        self._others.pop(key, None)
        if rest:
            self._first[key] = rest.pop(0)
        if rest:
            self._others[key] = rest

    def under(self, key: int, newest: int | None = None) -> Sequence[T]:
        if key not in self._first:
            return ()
        others = self._others.get(key, ())
        if newest is not None and len(others) >= newest:
            return others[-newest:]
        return (self._first[key], *others)
