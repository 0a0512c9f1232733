"""Find document numbers by key, in a read-only table with five bytes for each entry.

The table may be memory-mapped from a file.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

Array: TypeAlias = npt.NDArray[Any]
Entries: TypeAlias = npt.NDArray[np.uint64]
"""Entries of a table. Each is one integer, made of a hash and a number, so that sorting is fast."""

HASH_BITS, NUMBER_BITS = 36, 24
MOST = 1 << NUMBER_BITS  # the maximum number of documents in one table
SLICES = 64  # a large table is built in this many slices, so that building it takes little more memory than the table
_KEY_SHIFT = 64 - HASH_BITS
_FILL_BITS = 3  # a bucket holds 8 to 16 entries


class PackedTable:
    """Sorted hashes of keys, each with a number.

    The hash of a key is its first 36 bits. The first bits of a hash choose its bucket, and the others are stored as a
    tag. Among 10^8 entries, one lookup in 600 finds a wrong entry, which verification rejects. The numbers of a key
    ascend, so the newest numbers are found without reading the others.
    """

    def __init__(self, columns: Mapping[str, Array]) -> None:
        self.columns = columns
        """`starts`: the first entry of each bucket.

        For each entry: its tag in `tags`, and its number as `low` 16 and `high` 8 bits.
        """
        # memoryviews, since reading a single item of an array takes twenty times as long.
        self._starts, self._tags, self._low, self._high = (
            np.ascontiguousarray(columns[name]).data for name in ("starts", "tags", "low", "high")
        )
        self._tag_bits = HASH_BITS - (len(self._starts) - 1).bit_length() + 1
        self._mask = (1 << self._tag_bits) - 1

    def __len__(self) -> int:
        return len(self._tags)

    @classmethod
    def made(cls, keys: npt.NDArray[np.uint64], numbers: npt.NDArray[np.uint64]) -> PackedTable:
        """Build a table from keys, which are 64-bit integers with well-mixed bits, and the number of each key."""
        packed = (keys >> np.uint64(_KEY_SHIFT)) << np.uint64(NUMBER_BITS) | numbers
        packed.sort()
        return cls._of_slices(len(packed), [packed])

    @classmethod
    def merged(cls, tables: Sequence[tuple[PackedTable, int]]) -> PackedTable:
        """Merge tables into one. Each table comes with an integer to add to all numbers in the table."""
        parts = [table._slices(SLICES, shift) for table, shift in tables]
        size = sum(len(table) for table, _ in tables)
        return cls._of_slices(size, (_sorted(group) for group in zip(*parts, strict=True)))

    @classmethod
    def _of_slices(cls, sizes: int, slices: Iterable[Entries]) -> PackedTable:
        """Build a table of `sizes` entries from slices. The slices are in ascending order, and each is sorted."""
        buckets = max(0, sizes.bit_length() - 1 - _FILL_BITS)
        tag_bits = HASH_BITS - buckets
        starts = np.zeros((1 << buckets) + 1, np.uint32)
        tags = np.empty(sizes, np.uint16 if tag_bits <= 16 else np.uint64 if tag_bits > 32 else np.uint32)
        low, high = np.empty(sizes, np.uint16), np.empty(sizes, np.uint8)
        at = 0
        for part in slices:
            place = slice(at, at + len(part))
            hashes = part >> np.uint64(NUMBER_BITS)
            tags[place] = hashes & np.uint64((1 << tag_bits) - 1)
            low[place] = part & np.uint64(0xFFFF)
            high[place] = (part >> np.uint64(16)) & np.uint64(0xFF)
            full, counts = np.unique(hashes >> np.uint64(tag_bits), return_counts=True)
            starts[full.astype(np.intp) + 1] += counts.astype(np.uint32)
            at += len(part)
        np.cumsum(starts, out=starts)
        return cls({"starts": starts, "tags": tags, "low": low, "high": high})

    def find(self, keys: Iterable[int], newest: int) -> Iterator[tuple[int, list[int]]]:
        """Yield each key that is found, with its `newest` highest numbers in ascending order."""
        starts, tags, low, high = self._starts, self._tags, self._low, self._high
        tag_bits, mask = self._tag_bits, self._mask
        for key in keys:  # most keys are not found, which one bisection shows
            hashed = key >> _KEY_SHIFT
            bucket, tag = hashed >> tag_bits, hashed & mask
            end = starts[bucket + 1]
            first = bisect_left(tags, tag, starts[bucket], end)
            if first < end and tags[first] == tag:
                last = bisect_right(tags, tag, first, end)
                yield key, [low[at] | high[at] << 16 for at in range(max(first, last - newest), last)]

    def count(self, key: int) -> int:
        """Return the number of entries that the table has for a key."""
        hashed = key >> _KEY_SHIFT
        bucket, tag = hashed >> self._tag_bits, hashed & self._mask
        end = self._starts[bucket + 1]
        first = bisect_left(self._tags, tag, self._starts[bucket], end)
        return bisect_right(self._tags, tag, first, end) - first

    def _slices(self, count: int, shift: int) -> Iterator[Entries]:
        """Yield the entries of the table in `count` slices by hash. Add `shift` to their numbers."""
        buckets = len(self._starts) - 1
        if count > buckets:  # a small table: cut by hash, without size limits
            yield from _cut(self._entries(0, buckets, shift), count)
        else:
            step = buckets // count
            yield from (self._entries(start, start + step, shift) for start in range(0, buckets, step))

    def _entries(self, first: int, last: int, shift: int) -> Entries:
        starts = np.asarray(self.columns["starts"])[first : last + 1].astype(np.int64)
        place = slice(int(starts[0]), int(starts[-1]))
        hashes = np.repeat(np.arange(first, last, dtype=np.uint64), np.diff(starts)) << np.uint64(self._tag_bits)
        hashes |= np.asarray(self.columns["tags"])[place].astype(np.uint64)
        numbers = np.asarray(self.columns["high"])[place].astype(np.uint64) << np.uint64(16)
        numbers |= np.asarray(self.columns["low"])[place].astype(np.uint64)
        return hashes << np.uint64(NUMBER_BITS) | numbers + np.uint64(shift)


def _cut(whole: Entries, count: int) -> Iterator[Entries]:
    """Cut ascending entries into `count` slices by hash, and yield the slices."""
    limits = np.arange(1, count, dtype=np.uint64) << np.uint64(HASH_BITS + NUMBER_BITS - count.bit_length() + 1)
    yield from np.split(whole, np.searchsorted(whole, limits))


def _sorted(group: Sequence[Entries]) -> Entries:
    joined = np.concatenate(group)
    joined.sort()
    return joined
