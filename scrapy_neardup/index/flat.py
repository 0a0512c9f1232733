"""The index for few fingerprints that may differ in some bits: all are tried."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Generic, TypeVar

import numpy as np

from .. import native
from ..fingerprints.hashing import Hashes
from .base import distinct

T = TypeVar("T")


class FlatIndex(Generic[T]):
    """Documents by near fingerprints, in the order of coming; as `HammingIndex`, for some thousand of them.

    One pass over 4,000 fingerprints takes a tenth of the look-ups in buckets, at a distance of 6.
    """

    def __init__(self, distance: int) -> None:
        self.distance = distance
        self._values = np.zeros(64, np.uint64)
        self._documents: list[T | None] = []  # by place; None where removed
        self._places: dict[int, list[int]] = {}  # by the document's identity
        self._removed = 0

    def add(self, fingerprints: Sequence[int], document: T) -> None:
        for value in fingerprints:
            place = len(self._documents)
            if place == len(self._values):
                self._values = np.concatenate([self._values, np.zeros_like(self._values)])
            self._values[place] = value
            self._documents.append(document)
            self._places.setdefault(id(document), []).append(place)

    def remove(self, fingerprints: Sequence[int], document: T) -> None:
        places = self._places.pop(id(document), [])
        gone = [place for place in places if int(self._values[place]) in fingerprints]
        for place in gone:
            self._documents[place] = None
        self._removed += len(gone)
        if rest := [place for place in places if place not in gone]:
            self._places[id(document)] = rest
        if self._removed > 64 + len(self._documents) // 2:
            self._close_up()

    def find(self, fingerprints: Sequence[int]) -> Iterator[T]:
        values = self._values[: len(self._documents)]
        places = (place for value in fingerprints for place in _within(values, value, self.distance))
        return distinct(found for place in places if (found := self._documents[place]) is not None)

    def entries(self) -> list[tuple[int, T]]:
        """Return each fingerprint with its document, in the order of coming."""
        pairs = zip(self._values.tolist(), self._documents, strict=False)
        return [(value, document) for value, document in pairs if document is not None]

    def __len__(self) -> int:
        """How many fingerprints there is room for: those that were removed are counted until the room is given up."""
        return len(self._documents)

    def _close_up(self) -> None:
        """Give up the room of what was removed."""
        kept = self.entries()
        self._values, self._documents, self._places, self._removed = np.zeros(64, np.uint64), [], {}, 0
        for value, document in kept:
            self.add((value,), document)


def _within(values: Hashes, value: int, distance: int) -> list[int]:
    """Return the places of the fingerprints within a distance, ascending."""
    if native.compiled:
        return native.compiled.within(values, value.to_bytes(8, "little"), distance)
    places: list[int] = (np.bitwise_count(values ^ np.uint64(value)) <= distance).nonzero()[0].tolist()
    return places
