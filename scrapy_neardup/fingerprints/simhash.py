"""Compute SimHash of words, or of the tags of a page: 64 bits, of which few differ if two documents differ little."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from .hashes import Hashes, counted, hash_tokens


def simhash(features: Hashes) -> int:
    """Return the 64-bit SimHash of hashed features; 0 for no features.

    A feature with n occurrences has the weight 1 + ⌊log2 n⌋. Bit i is set if features with more than half of the total
    weight have bit i set. The logarithm keeps a few frequent words from deciding all bits.

    Charikar 2002, section 3; Manku, Jain, Das Sarma 2007, section 2.
    """
    return simhash_counted(*counted(features.repeat(2).reshape(-1, 2)))


def simhash_counted(rows: Hashes, counts: npt.NDArray[np.int64]) -> int:
    """Return the SimHash of distinct features, given their hashes in the first column of `rows`, and their counts."""
    weights = np.frexp(counts)[1]  # the exponent: 1 + floor(log2 n)
    each = rows[:, 0].repeat(weights).astype("<u8").view(np.uint8).reshape(-1, 8)
    ones = np.unpackbits(each, axis=1, bitorder="little").sum(axis=0)
    majority = np.packbits(ones > len(each) // 2, bitorder="little")
    return int.from_bytes(majority.tobytes(), "little")


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
