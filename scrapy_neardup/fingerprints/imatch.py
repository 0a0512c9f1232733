"""I-Match: one digest of the document's set of lexicon terms, and more for lexicons less a random share."""

from __future__ import annotations

import hashlib
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from .hashing import MULTIPLIER, Hashes, mix

SHARE = 5  # of 16: the random share of terms that a further lexicon lacks


def imatch(terms: Hashes, lexicons: int) -> tuple[int, ...]:
    """Return 1 + `lexicons` digests of 64 bits, given 128-bit hashes of shape (n, 2) of the distinct lexicon terms.

    The first is the start of SHA-1 over the sorted set of terms, each written as its 64-bit hash; the others are the
    same over a lexicon that lacks a random 5/16 of its terms. Which terms it lacks is read from the terms' second
    64 bits, so a lexicon needs no memory of its own and is the same on every machine. () for no terms.

    Chowdhury et al. 2002, section 3 (the digest); Kołcz et al. 2004, section 4 (randomized lexicons).
    """
    if not len(terms):
        return ()
    terms = terms[np.argsort(terms[:, 0])]
    names = terms[:, 0].astype(">u8")
    kept = _membership(terms[:, 1], lexicons)
    rest = names[kept.nonzero()[1]].tobytes()  # the terms of the first further lexicon, of the second …
    ends = (kept.sum(axis=1).cumsum() * names.itemsize).tolist()
    return (_digest(names.tobytes()), *(_digest(rest[start:end]) for start, end in pairwise([0, *ends])))


def _membership(bits: Hashes, lexicons: int) -> npt.NDArray[np.bool_]:
    """Say for each lexicon (row) and term (column) whether it is kept, from the term's second 64 hash bits."""
    salts = np.arange(1, lexicons + 1, dtype=np.uint64)[:, None] * MULTIPLIER
    return (mix(bits[None, :] ^ salts) >> np.uint64(60)) >= SHARE


def _digest(names: bytes) -> int:
    return int.from_bytes(hashlib.sha1(names, usedforsecurity=False).digest()[:8], "big")
