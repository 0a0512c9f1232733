"""Compute I-Match digests of the set of a text's lexicon terms, also for randomized lexicons."""

from __future__ import annotations

import numpy as np

from .hashes import MULTIPLIER, Hashes, distinct, mix

_LEAST = np.uint64(5 << 60)  # a randomized lexicon lacks a random 5 of 16 terms
_FIRST = 15  # bits of a hash that choose its bucket


class Terms:
    """The terms of a lexicon as hashes."""

    def __init__(self, hashes: Hashes) -> None:
        self.hashes = distinct(hashes)
        """The hashes, ascending."""
        buckets = np.arange((1 << _FIRST) + 1, dtype=np.uint64)
        starts = self.hashes.searchsorted(buckets[:-1] << np.uint64(64 - _FIRST))
        self.starts = np.append(starts, len(self.hashes)).astype(np.uint32)
        """For each value of the first 15 bits of a hash, the place of the first such term; then their number."""

    def among(self, rows: Hashes) -> Hashes:
        """Return those rows of shape (n, 2) that have the hash of a term in their first column."""
        if not len(self.hashes):
            return rows[:0]
        nearest = self.hashes.take(self.hashes.searchsorted(rows[:, 0]), mode="clip")
        found: Hashes = rows[nearest == rows[:, 0]]
        return found


NO_TERMS = Terms(np.zeros(0, np.uint64))


def imatch(terms: Hashes, lexicons: int) -> tuple[int, ...]:
    """Return 1 + `lexicons` digests of 64 bits, given 128-bit hashes of shape (n, 2) of the distinct lexicon terms.

    The first digest is the sum of the mixed hashes of all terms, which depends on no order. Each other digest is
    computed in the same way over a randomized lexicon, which lacks a random 5/16 of the terms. The second 64 bits of a
    term select the lexicons that lack it, so a lexicon needs no memory and is equal on every machine. No terms give ().

    Chowdhury et al. 2002, section 3 (the digest); Kołcz et al. 2004, section 4 (randomized lexicons).
    """
    if not len(terms):
        return ()
    salts = np.arange(lexicons + 1, dtype=np.uint64)[:, None] * MULTIPLIER
    kept = (mix(terms[:, 1] ^ salts) >= _LEAST) | (salts == 0)  # the first lexicon has all terms
    return tuple(np.where(kept, mix(terms[:, 0] * MULTIPLIER), np.uint64(0)).sum(axis=1, dtype=np.uint64).tolist())
