"""Compute I-Match digests of the set of a text's lexicon terms, also for randomized lexicons."""

from __future__ import annotations

import hashlib
from functools import cache
from itertools import pairwise
from struct import Struct

import numpy as np
import numpy.typing as npt

from .. import native
from .hashes import MULTIPLIER, Hashes, mix

SHARE = 5  # sixteenths: the random share of terms that a randomized lexicon lacks
_LEAST = np.uint64(SHARE << 60)
_SHA1, _FIRST = hashlib.sha1(usedforsecurity=False), Struct(">Q12x")


def imatch(terms: Hashes, lexicons: int) -> tuple[int, ...]:
    """Return 1 + `lexicons` digests of 64 bits, given 128-bit hashes of shape (n, 2) of the distinct lexicon terms.

    The first digest is the beginning of SHA-1 over the sorted set of terms, each as its 64-bit hash. Each other digest
    is computed in the same way over a randomized lexicon, which lacks a random 5/16 of the terms. The second 64 bits of
    a term select the lexicons that lack it, so a lexicon needs no memory and is equal on every machine. No terms give
    ().

    Chowdhury et al. 2002, section 3 (the digest); Kołcz et al. 2004, section 4 (randomized lexicons).
    """
    return tuple(map(_digest, _names(np.ascontiguousarray(terms), lexicons))) if len(terms) else ()


def _names(terms: Hashes, lexicons: int) -> tuple[bytes, ...]:
    """Return the input of each digest: all sorted terms, then the sorted terms in each randomized lexicon."""
    if native.compiled:
        return native.compiled.imatch_names(terms, lexicons)
    terms = terms[np.argsort(terms[:, 0])]
    names = terms[:, 0].astype(">u8")
    kept = _membership(terms[:, 1], lexicons).ravel().nonzero()[0]  # of one randomized lexicon after another
    ends = kept.searchsorted(np.arange(lexicons + 1) * len(names)) * names.itemsize
    rest = names.take(kept % len(names)).tobytes()
    return (names.tobytes(), *(rest[start:end] for start, end in pairwise(ends.tolist())))


def _membership(bits: Hashes, lexicons: int) -> npt.NDArray[np.bool_]:
    """Return whether each lexicon (row) keeps each term (column). `bits`: the second 64 hash bits of the terms."""
    return mix(bits ^ _salts(lexicons)) >= _LEAST


@cache
def _salts(lexicons: int) -> Hashes:
    return np.arange(1, lexicons + 1, dtype=np.uint64)[:, None] * MULTIPLIER


def _digest(names: bytes) -> int:
    sha1 = _SHA1.copy()  # creating a new one takes longer than using it
    sha1.update(names)
    first: int = _FIRST.unpack(sha1.digest())[0]
    return first
