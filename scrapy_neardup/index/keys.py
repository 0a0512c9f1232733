"""The index for fingerprints that must be equal: a dictionary."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Generic, TypeVar

from .base import distinct

T = TypeVar("T")


class KeyIndex(Generic[T]):
    """Documents by equal fingerprints: those that share at least one."""

    def __init__(self) -> None:
        # Few fingerprints are shared: a list for each would take half of the memory.
        self._first: dict[int, T] = {}
        self._others: dict[int, list[T]] = {}

    def add(self, fingerprints: Sequence[int], document: T) -> None:
        for key in fingerprints:
            if self._first.setdefault(key, document) is not document:
                self._others.setdefault(key, []).append(document)

    def remove(self, fingerprints: Sequence[int], document: T) -> None:
        for key in fingerprints:
            rest = [d for d in self._under(key) if d is not document]
            self._first.pop(key, None)
            self._others.pop(key, None)
            for other in rest:
                self.add((key,), other)

    def find(self, fingerprints: Sequence[int]) -> Iterator[T]:
        return distinct(document for key in fingerprints for document in self._under(key))

    def _under(self, key: int) -> Iterator[T]:
        if key in self._first:
            yield self._first[key]
            yield from self._others.get(key, ())
