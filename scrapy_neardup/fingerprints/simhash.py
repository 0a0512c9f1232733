"""SimHash: 64 bits that differ little where the features of two documents differ little."""

from __future__ import annotations

import numpy as np

from .hashing import Hashes

BITS = 64


def simhash(features: Hashes) -> int:
    """Return the 64-bit SimHash of hashed features; one that stands n times weighs 1 + ⌊log2 n⌋. 0 for none.

    Bit i is set where more than half of the features, by weight, have it set. The logarithm keeps a few frequent words
    from deciding all bits.

    Charikar 2002, section 3; Manku, Jain, Das Sarma 2007, section 2.
    """
    distinct, counts = np.unique(features, return_counts=True)
    weights = np.frexp(counts)[1]  # the exponent: 1 + floor(log2 n)
    bits = np.unpackbits(distinct.astype("<u8").view(np.uint8).reshape(-1, 8), axis=1, bitorder="little")
    ones = weights @ bits.astype(weights.dtype)  # integers: of floats BLAS would make threads
    majority = np.packbits(ones * 2 > weights.sum(), bitorder="little")
    return int.from_bytes(majority.tobytes(), "little")


def hamming(a: int, b: int) -> int:
    """Return the Hamming distance of two SimHashes: how many of their 64 bits differ. Manku et al. 2007, section 3."""
    return (a ^ b).bit_count()
