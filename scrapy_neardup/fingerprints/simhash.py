"""Compute SimHash: 64 bits, few of them different if the features of two documents differ little."""

from __future__ import annotations

from functools import cache

import numpy as np
import numpy.typing as npt

from .hashes import Hashes, counted

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
