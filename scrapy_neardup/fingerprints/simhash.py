"""SimHash: 64 bits that differ little where the features of two documents differ little."""

from __future__ import annotations

import numpy as np

from .hashing import Hashes

BITS = 64


def simhash(features: Hashes) -> int:
    """Return the 64-bit SimHash of hashed features; one that stands n times weighs n; 0 for none.

    Bit i is set where more than half of the features (by weight) have it set.

    Charikar 2002, section 3; Manku, Jain, Das Sarma 2007, section 2.
    """
    if not len(features):
        return 0
    octets = np.ascontiguousarray(features, dtype="<u8").view(np.uint8).reshape(-1, 8)
    ones = np.unpackbits(octets, axis=1, bitorder="little").sum(axis=0, dtype=np.int64)
    bits = np.packbits(ones * 2 > len(features), bitorder="little")
    return int.from_bytes(bits.tobytes(), "little")


def hamming(a: int, b: int) -> int:
    """Return the Hamming distance of two SimHashes: how many of their 64 bits differ."""
    return (a ^ b).bit_count()
