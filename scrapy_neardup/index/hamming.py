"""The index for fingerprints that may differ in some bits: Hamming distance at most k."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache
from itertools import combinations
from struct import Struct
from typing import Generic, TypeVar

import numpy as np

from .. import native
from ..fingerprints.hashing import Hashes
from .base import distinct
from .flat import FlatIndex

T = TypeVar("T")

FEW = 4096  # to put so many into buckets takes 20 ms
BLOCKS, BLOCK_BITS = 4, 16
_MASK = (1 << BLOCK_BITS) - 1
_ENTRY = Struct("<QQ")
_ENTRIES = np.dtype([("value", "<u8"), ("number", "<u8")])


class HammingIndex(Generic[T]):
    """Documents by near fingerprints, found by the four 16-bit blocks of each, in the order of coming.

    Of two fingerprints at distance k one block differs in at most k/4 bits. Up to k = 3 some block is equal, so four
    look-ups find all (Manku et al. 2007, section 3); beyond, the blocks that are near are looked up too (Norouzi et
    al. 2012, multi-index hashing), in each as far as `most_flips` says: 52 look-ups up to k = 6, 68 up to k = 7.

    A bucket is a run of bytes, 16 for each entry: a fingerprint and the number of its document. So all buckets that a
    fingerprint leads to are joined and compared at once, and one more entry never makes the others be moved.
    """

    def __init__(self, distance: int) -> None:
        self.distance = distance
        self._few: FlatIndex[T] | None = FlatIndex(distance)
        """All that it holds, while these are few: then the quicker way."""
        self._probes = _probes(distance)
        self._buckets: dict[int, bytearray] = {}
        self._documents: list[T | None] = []  # by number; None where removed

    def add(self, fingerprints: Sequence[int], document: T) -> None:
        if self._few is not None and len(self._few) < FEW:
            self._few.add(fingerprints, document)
            return
        if self._few is not None:
            few, self._few = self._few, None
            for value, earlier in few.entries():
                self.add((value,), earlier)
        for value in fingerprints:
            entry = _ENTRY.pack(value, len(self._documents))
            self._documents.append(document)
            for block in _blocks(value):
                self._buckets.setdefault(block, bytearray()).extend(entry)

    def remove(self, fingerprints: Sequence[int], document: T) -> None:
        if self._few is not None:
            self._few.remove(fingerprints, document)
            return
        for value in fingerprints:
            gone = [
                number for number in _found(self._buckets, value, _probes(0), 0) if self._documents[number] is document
            ]
            for number in gone:
                self._documents[number] = None
            for block in _blocks(value) if gone else ():
                self._drop(block, gone)

    def find(self, fingerprints: Sequence[int]) -> Iterator[T]:
        if self._few is not None:
            return self._few.find(fingerprints)
        numbers = (number for value in fingerprints for number in self._near(value))
        return distinct(found for number in numbers if (found := self._documents[number]) is not None)

    def _near(self, value: int) -> list[int]:
        """Return the numbers of the fingerprints that are near, ascending."""
        # Near in several blocks is once enough.
        return sorted(set(_found(self._buckets, value, self._probes, self.distance)))

    def _drop(self, block: int, numbers: list[int]) -> None:
        entries = np.frombuffer(self._buckets.pop(block), _ENTRIES)
        rest = entries[~np.isin(entries["number"], numbers)]
        if len(rest):
            self._buckets[block] = bytearray(rest.tobytes())


def _blocks(value: int) -> Iterator[int]:
    """Yield each block of a fingerprint, with its place above it so that blocks of all places share one dictionary."""
    for place in range(BLOCKS):
        yield place << BLOCK_BITS | (value >> place * BLOCK_BITS) & _MASK


def _found(buckets: dict[int, bytearray], value: int, probes: Hashes, distance: int) -> list[int]:
    """Return the numbers of the fingerprints within a distance, in each bucket that the probes lead to."""
    if native.compiled:
        return native.compiled.near(buckets, value.to_bytes(8, "little"), probes, distance)
    blocks = list(_blocks(value))
    joined = b"".join(buckets.get(blocks[probe >> BLOCK_BITS] ^ probe & _MASK, b"") for probe in probes.tolist())
    entries = np.frombuffer(joined, _ENTRIES)
    found: list[int] = entries["number"][np.bitwise_count(entries["value"] ^ np.uint64(value)) <= distance].tolist()
    return found


@cache
def _probes(distance: int) -> Hashes:
    """Return which blocks to look up: the place of each, and below it the bits to flip."""
    pairs = [(place, flip) for place, most in enumerate(most_flips(distance)) for flip in flips(most)]
    return np.array([place << BLOCK_BITS | flip for place, flip in pairs], np.uint64)


def most_flips(distance: int) -> list[int]:
    """Return how many bits to flip at most in each block; below 0 the block need not be looked up.

    If each block differed in more bits than its bound, by one at least, and the bounds add up to the distance less
    `BLOCKS` - 1, the distance would be larger: so of distance 6, one block may go unflipped (52 look-ups, not 68).

    Qin et al. 2018 (GPH), the general pigeonhole principle with integer reduction.
    """
    least, more = divmod(distance - BLOCKS + 1, BLOCKS)
    return [least + (block < more) for block in range(BLOCKS)]


def flips(bits: int) -> Iterator[int]:
    """Yield all ways to flip up to so many bits of a block."""
    for count in range(bits + 1):
        for places in combinations(range(BLOCK_BITS), count):
            yield sum(1 << place for place in places)
