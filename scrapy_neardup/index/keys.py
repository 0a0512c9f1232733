"""The index for fingerprints that must be equal: dictionaries."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
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
        # Few fingerprints are shared: a list for each would take half of the memory. Numbers, not documents: what holds
        # nothing else the garbage collector need not look through.
        self._first: list[dict[int, int]] = [{} for _ in range(PARTS)]
        self._others: list[dict[int, list[int]]] = [{} for _ in range(PARTS)]
        self._documents: list[T | None] = []  # by number; None where removed

    def add(self, fingerprints: Sequence[int], document: T) -> None:
        number = len(self._documents)
        if fingerprints:
            self._documents.append(document)
        for key in fingerprints:
            first = self._first[key % PARTS].setdefault(key, number)
            if first != number and self._documents[first] is not document:
                self._others[key % PARTS].setdefault(key, []).append(number)

    def remove(self, fingerprints: Sequence[int], document: T) -> None:
        gone: set[int] = set()
        for key in fingerprints:
            first, others = self._first[key % PARTS], self._others[key % PARTS]
            known = [first.pop(key), *others.pop(key, ())] if key in first else []
            rest = [number for number in known if self._documents[number] is not document]
            gone.update(known)
            gone.difference_update(rest)
            if rest:
                first[key] = rest.pop(0)
            if rest:
                others[key] = rest
        for number in gone:
            self._documents[number] = None

    def find(self, fingerprints: Sequence[int]) -> Iterable[T]:
        first = self._first
        known = [key for key in fingerprints if key in first[key % PARTS]]  # most lead nowhere
        if not known:
            return ()
        found = map(self._documents.__getitem__, chain.from_iterable(map(self._under, known)))
        return distinct(document for document in found if document is not None)

    def _under(self, key: int) -> Sequence[int]:
        others = self._others[key % PARTS].get(key, ())
        if self.newest is not None and len(others) >= self.newest:
            return others[-self.newest :]
        return (self._first[key % PARTS][key], *others)
