"""Find SimHashes by Hamming distance in a read-only table, which may be memory-mapped from a file."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import combinations

import numpy as np
import numpy.typing as npt

from .key_table import Array

BLOCKS, BLOCK_BITS = 4, 16

SHORT = 64  # entries of a bucket to check one by one
FEW = 30_000  # in a table up to this size, checking all SimHashes is faster than looking up blocks
CROWD = 1024  # the newest entries of a bucket to check; a bucket with more entries means a common template
_ALL = (1 << 64) - 1
_BUCKETS = 1 << BLOCK_BITS


class NearTable:
    """SimHashes, stored under each of their four 16-bit blocks.

    Two SimHashes within a distance of 3 have at least one equal block, so four lookups find all SimHashes within this
    distance (Manku et al. 2007, section 3). For larger distances, near blocks are looked up too, within the bounds of
    `most_flips` (Norouzi et al. 2012, multi-index hashing). A distance of 6 takes 52 lookups, a distance of 7 takes 68.

    There is one table for each block. It has all SimHashes, sorted by this block, each with the 32 bits after the
    block. These bits reject most entries without reading the whole SimHash.
    """

    def __init__(self, values: npt.NDArray[np.uint64], columns: Mapping[str, Array] | None = None) -> None:
        self.values = values
        """The SimHashes by document number."""
        self.columns = columns or _built(values)
        """`starts`: the first entry of each bucket.

        For each entry: the `next` 32 bits after its block, and its number in `numbers`. The tables of the four blocks
        follow one another.
        """
        self._starts, self._next, self._numbers = (self.columns[name] for name in ("starts", "next", "numbers"))
        # memoryviews, since reading a single item of an array takes twenty times as long.
        arrays = self._starts, self._next, self._numbers, values
        self._views = tuple(np.ascontiguousarray(each).data for each in arrays)
        self._flips: dict[int, tuple[npt.NDArray[np.int64], ...]] = {}

    def find(self, value: int, distance: int, most: int) -> dict[int, int]:
        """Find the `most` nearest SimHashes within `distance` of `value`. Return their distances by document number."""
        values, numbers = self.values, None
        if len(values) > FEW:
            if distance < BLOCKS and (found := self._found_in_short_buckets(value, distance)) is not None:
                return dict(sorted(sorted(found.items(), key=_by_distance)[:most]))
            numbers = self._candidates(value, distance)
            values = values.take(numbers)
        far = np.bitwise_count(values ^ np.uint64(value))
        near = (far <= distance).nonzero()[0]
        far, numbers = far[near], near if numbers is None else numbers[near]
        if len(near) > BLOCKS * most:  # each block may have found the same SimHash
            first = np.lexsort((numbers, far))[: BLOCKS * most]
            far, numbers = far[first], numbers[first]
        nearest = dict(sorted(zip(numbers.tolist(), far.tolist(), strict=True), key=_by_distance))
        return dict(sorted(list(nearest.items())[:most]))

    def _found_in_short_buckets(self, value: int, distance: int) -> dict[int, int] | None:
        """Return the distances of near SimHashes with an equal block, by document number.

        Return None if a bucket is long, since NumPy is faster then.
        """
        starts, following, numbers, values = self._views
        found: dict[int, int] = {}
        for block in range(BLOCKS):
            turned = _turned(value, block)
            at = block * (_BUCKETS + 1) + (turned >> 64 - BLOCK_BITS)
            if starts[at + 1] - starts[at] > SHORT:
                return None
            wanted = turned >> 16 & 0xFFFFFFFF
            for place in range(starts[at], starts[at + 1]):
                if (following[place] ^ wanted).bit_count() <= distance:
                    far = (values[numbers[place]] ^ value).bit_count()
                    if far <= distance:
                        found[numbers[place]] = far
        return found

    def _candidates(self, value: int, distance: int) -> npt.NDArray[np.int64]:
        """Return the numbers of SimHashes with a near block, if the two blocks after this block are near too."""
        blocks, probes = self._probes(distance)
        turned = [_turned(value, block) for block in range(BLOCKS)]
        buckets = np.array([bits >> 64 - BLOCK_BITS for bits in turned]).take(blocks) ^ probes
        buckets += blocks * (_BUCKETS + 1)
        last = self._starts.take(buckets + 1)
        sizes = np.minimum(last - self._starts.take(buckets), max(CROWD, 4 * len(self.values) // _BUCKETS))
        ends = sizes.cumsum()
        places = np.arange(ends[-1]) + np.repeat(last - ends, sizes)
        wanted = np.array([bits >> 16 & 0xFFFFFFFF for bits in turned], np.uint32).take(blocks)
        far = np.bitwise_count(self._next.take(places) ^ np.repeat(wanted, sizes))
        close = (far <= distance).nonzero()[0]
        if len(close) > 4 * CROWD:  # a limit, since the whole value of each is read
            close = close[np.argsort(far[close], kind="stable")[: 4 * CROWD]]
        numbers: npt.NDArray[np.int64] = self._numbers.take(places[close]).astype(np.int64)
        return numbers

    def _probes(self, distance: int) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        """Return the lookups for a distance: for each, the number of a block, and the bits to flip in the block."""
        if distance not in self._flips:
            pairs = [(block, flip) for block, most in enumerate(most_flips(distance)) for flip in flips(most)]
            self._flips[distance] = tuple(np.array(column, np.int64) for column in zip(*pairs, strict=True))
        blocks, probes = self._flips[distance]
        return blocks, probes


def _turned(value: int, block: int) -> int:
    shift = BLOCK_BITS * block
    return (value << shift | value >> 64 - shift) & _ALL


def _built(values: npt.NDArray[np.uint64]) -> dict[str, Array]:
    size = len(values) if len(values) > FEW else 0
    starts = np.zeros((BLOCKS, _BUCKETS + 1 if size else 0), np.int64)
    following, numbers = np.empty((BLOCKS, size), np.uint32), np.empty((BLOCKS, size), np.uint32)
    for block in range(BLOCKS if size else 0):
        shift = np.uint64(BLOCK_BITS * block)
        turned = values << shift | values >> np.uint64(64) - shift if block else values
        blocks = (turned >> np.uint64(64 - BLOCK_BITS)).astype(np.uint16)
        numbers[block] = np.argsort(blocks, kind="stable")  # NumPy sorts 16-bit integers by counting, in one pass
        following[block] = (turned >> np.uint64(16)).astype(np.uint32)[numbers[block]]
        starts[block, 1:] = np.cumsum(np.bincount(blocks, minlength=_BUCKETS))
        starts[block] += block * size
    return {"starts": starts.ravel(), "next": following.ravel(), "numbers": numbers.ravel()}


def _by_distance(pair: tuple[int, int]) -> tuple[int, int]:
    """Return the sort key of a number and its distance. At equal distances, the oldest number comes first."""
    return pair[1], pair[0]


def most_flips(distance: int) -> list[int]:
    """Return, for each block, the maximum number of bits to flip in lookups. A negative maximum means no lookup.

    The maxima add up to `distance` less `BLOCKS` - 1. If each block of two SimHashes differed in more bits than its
    maximum, the SimHashes would differ in more than `distance` bits. So a near SimHash is found by at least one block.
    At distance 6, one block needs no flips, so 52 lookups suffice instead of 68.

    Qin et al. 2018 (GPH), the general pigeonhole principle with integer reduction.
    """
    least, more = divmod(distance - BLOCKS + 1, BLOCKS)
    return [least + (block < more) for block in range(BLOCKS)]


def flips(bits: int) -> Iterator[int]:
    """Yield all ways to flip up to `bits` bits of a block. Each is an integer with the bits to flip."""
    for count in range(bits + 1):
        for places in combinations(range(BLOCK_BITS), count):
            yield sum(1 << place for place in places)
