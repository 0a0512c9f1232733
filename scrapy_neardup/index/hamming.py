"""The index for fingerprints that may differ in some bits: Hamming distance at most k."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations
from typing import Generic, TypeVar

from .base import distinct

T = TypeVar("T")

BLOCKS, BLOCK_BITS = 4, 16
_MASK = (1 << BLOCK_BITS) - 1


class HammingIndex(Generic[T]):
    """Documents by near fingerprints, found by the four 16-bit blocks of each.

    Of two fingerprints at distance k one block differs in at most k/4 bits. Up to k = 3 some block is equal, so four
    look-ups find all (Manku et al. 2007, section 3); beyond, the blocks that are near are looked up too (Norouzi et
    al. 2012, multi-index hashing): 68 look-ups up to k = 7, 548 up to k = 11.
    """

    def __init__(self, distance: int) -> None:
        self.distance = distance
        self._flips = list(_flips(distance // BLOCKS))
        self._buckets: dict[int, list[tuple[int, T]]] = {}

    def add(self, fingerprints: Sequence[int], document: T) -> None:
        for value in fingerprints:
            for block in _blocks(value):
                self._buckets.setdefault(block, []).append((value, document))

    def remove(self, fingerprints: Sequence[int], document: T) -> None:
        for value in fingerprints:
            for block in _blocks(value):
                rest = [entry for entry in self._buckets.pop(block, ()) if entry[1] is not document]
                if rest:
                    self._buckets[block] = rest

    def find(self, fingerprints: Sequence[int]) -> Iterator[T]:
        return distinct(document for value in fingerprints for document in self._near(value))

    def _near(self, value: int) -> Iterator[T]:
        for block in _blocks(value):
            for flip in self._flips:
                for other, document in self._buckets.get(block ^ flip, ()):
                    if (other ^ value).bit_count() <= self.distance:
                        yield document


def _blocks(value: int) -> Iterator[int]:
    """Yield each block of a fingerprint, with its place above it so that blocks of all places share one dictionary."""
    for place in range(BLOCKS):
        yield place << BLOCK_BITS | (value >> place * BLOCK_BITS) & _MASK


def _flips(bits: int) -> Iterator[int]:
    """Yield all ways to flip up to so many bits of a block."""
    for count in range(bits + 1):
        for places in combinations(range(BLOCK_BITS), count):
            yield sum(1 << place for place in places)
