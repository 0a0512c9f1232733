"""The index for fingerprints that must be equal: a dictionary."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Generic, TypeVar

T = TypeVar("T")


class KeyIndex(Generic[T]):
    """Documents by equal fingerprints: those that share at least one."""

    def __init__(self) -> None:
        self._documents: dict[int, list[T]] = {}

    def add(self, fingerprints: Sequence[int], document: T) -> None:
        for key in fingerprints:
            self._documents.setdefault(key, []).append(document)

    def remove(self, fingerprints: Sequence[int], document: T) -> None:
        for key in fingerprints:
            rest = [d for d in self._documents.pop(key, ()) if d is not document]
            if rest:
                self._documents[key] = rest

    def find(self, fingerprints: Sequence[int]) -> Iterable[T]:
        hits = (d for key in fingerprints for d in self._documents.get(key, ()))
        return {id(d): d for d in hits}.values()
