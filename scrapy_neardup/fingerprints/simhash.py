"""Compute SimHash of words, or of the tags of a page: 64 bits, of which few differ if two documents differ little."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache, lru_cache

import numpy as np
import numpy.typing as npt

from .hashes import Hashes, counted, hash_tokens

BITS = 64


def simhash(features: Hashes) -> int:
    """Return the 64-bit SimHash of hashed features; 0 for no features.

    A feature with n occurrences has the weight 1 + ⌊log2 n⌋. Bit i is set if features with more than half of the total
    weight have bit i set. The logarithm keeps a few frequent words from deciding all bits.

    Charikar 2002, section 3; Manku, Jain, Das Sarma 2007, section 2.
    """
    return simhash_counted(*counted(features.repeat(2).reshape(-1, 2)))


def simhash_counted(rows: Hashes, counts: npt.NDArray[np.int64]) -> int:
    """Return the SimHash of distinct features, given their hashes in the first column of `rows`, and their counts."""
    weights = np.frexp(counts)[1].astype(np.uint64)  # the exponent: 1 + floor(log2 n)
    total = int(weights.sum())
    lane = 16 if total < 1 << 16 else 32
    shifts, mask = _lanes(lane)
    # Each sum counts several bits at once, in lanes. Integers, since BLAS would start threads for floats.
    bits = rows[:, 0] >> shifts
    bits &= mask
    ones = (bits @ weights).astype("<u8", copy=False).view(f"<u{lane // 8}").reshape(lane, -1).T
    majority = np.packbits(ones > total // 2, bitorder="little")
    return int.from_bytes(majority.tobytes(), "little")


@cache
def _lanes(width: int) -> tuple[Hashes, np.uint64]:
    """Return the shifts that bring each bit of a hash to the bottom of a lane, and the mask of those bits."""
    return np.arange(width, dtype=np.uint64)[:, None], np.uint64(sum(1 << lane for lane in range(0, BITS, width)))


def hamming(a: int, b: int) -> int:
    """Return the Hamming distance of two SimHashes: the number of bits that differ (Manku et al. 2007, section 3)."""
    return (a ^ b).bit_count()


SAME = 12  # bits: copies on one template differ by up to 9, pages of two sites by 17 or more in 99 of 100 cases


def layout(elements: Iterable[str]) -> int:
    """Return the 64-bit SimHash of the distinct element names of a page; 0 (unknown) for no names.

    A name is a tag, such as `table`, or a class, such as `.story`. Counts are left out: an article with more paragraphs
    has the same layout.

    Charikar 2002, section 3 (SimHash).
    """
    return _layout(frozenset(elements))


@lru_cache(maxsize=64)  # many pages of a site have equal elements
def _layout(names: frozenset[str]) -> int:
    return simhash(hash_tokens(sorted(names))[:, 0])


def same_layout(a: int, b: int) -> bool:
    """Return whether two layouts are the same, given their SimHashes: they differ in at most `SAME` bits."""
    return hamming(a, b) <= SAME
