"""Hash tokens to integers, and make fingerprints of the hashes: SimHash, I-Match digests, super-shingles. Pure.

MurmurHash3 gives equal values in every process and on every machine; `hash()` does not.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import TypeAlias

import mmh3
import numpy as np
import numpy.typing as npt

Hashes: TypeAlias = npt.NDArray[np.uint64]

# Odd, so that multiplication is invertible; the first is 2^64 over the golden ratio, the second from the mixer rrmxmx.
MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)
_MIXER = np.uint64(0xD6E8FEB86659FD93)
_HALF = np.uint64(32)
_LEAST = np.uint64(5 << 60)  # a randomized lexicon lacks a random 5 of 16 terms
_FIRST = 15  # bits of a hash that choose its bucket


def hash_tokens(tokens: Sequence[str | bytes]) -> Hashes:
    """Hash each of n tokens to 128 bits: two independent 64-bit columns of an array of shape (n, 2)."""
    hashes = np.frombuffer(b"".join(map(mmh3.hash_bytes, tokens)), "<u8")
    return hashes.astype(np.uint64, copy=False).reshape(-1, 2)


def hash_text(text: str) -> int:
    """Hash a text to an unsigned 64-bit integer."""
    # As bytes, since mmh3 aborts the process for a str with lone surrogates.
    return hash_bytes(text.encode(errors="surrogatepass"))


def hash_bytes(data: bytes) -> int:
    return int(mmh3.hash64(data, signed=False)[0])


def distinct(hashes: Hashes) -> Hashes:
    """Return the distinct hashes, ascending."""
    # np.unique of numpy 2.3 and later takes 7 times as long for a short text, and 30 times for 1 MB.
    hashes = hashes.copy()
    hashes.sort()
    is_new = np.ones(len(hashes), dtype=bool)
    np.not_equal(hashes[1:], hashes[:-1], out=is_new[1:])
    return hashes[is_new]


def counted(rows: Hashes) -> tuple[Hashes, npt.NDArray[np.int64]]:
    """Return the distinct rows of an array of hashes, sorted by their first column, and the count of each row.

    Rows are 128-bit hashes, so rows with equal first columns are equal.
    """
    _, places, counts = np.unique(rows[:, 0], return_index=True, return_counts=True)
    return rows[places], counts


def mix(values: Hashes) -> Hashes:
    """Mix the bits of each value, so that each bit of the input affects all bits of the output."""
    values = (values ^ (values >> _HALF)) * _MIXER
    return values ^ (values >> _HALF)


def chain(columns: Sequence[Hashes]) -> Hashes:
    """Hash each row of several columns of equal length to one value."""
    value = columns[0]
    for column in columns[1:]:
        value = mix(value) * MULTIPLIER + column
    return mix(value)


# SimHash: 64 bits, of which few differ if two documents differ little


def simhash(rows: Hashes) -> int:
    """Return the 64-bit SimHash of features, given their hashes in the first column of `rows`; 0 for no features.

    A feature with n occurrences has the weight 1 + ⌊log2 n⌋. Bit i is set if features with more than half of the total
    weight have bit i set. The logarithm keeps a few frequent words from deciding all bits.

    Charikar 2002, section 3; Manku, Jain, Das Sarma 2007, section 2.
    """
    features, counts = counted(rows)
    weights = np.frexp(counts)[1]  # the exponent: 1 + floor(log2 n)
    each = features[:, 0].repeat(weights).astype("<u8").view(np.uint8).reshape(-1, 8)
    ones = np.unpackbits(each, axis=1, bitorder="little").sum(axis=0)
    majority = np.packbits(ones > len(each) // 2, bitorder="little")
    return int.from_bytes(majority.tobytes(), "little")


def hamming(a: int, b: int) -> int:
    """Return the Hamming distance of two SimHashes: the number of bits that differ (Manku et al. 2007, section 3)."""
    return (a ^ b).bit_count()


SAME_LAYOUT = 12  # bits: copies on one template differ by up to 9, pages of two sites by 17 or more in 99 of 100 cases


@lru_cache(maxsize=64)  # many pages of a site have equal elements
def layout(elements: frozenset[str]) -> int:
    """Return the 64-bit SimHash of the element names of a page; 0 (unknown) for no names.

    A name is a tag, such as `table`, or a class, such as `.story`. Counts are left out: an article with more paragraphs
    has the same layout.

    Charikar 2002, section 3 (SimHash).
    """
    return simhash(hash_tokens(sorted(elements)))


def same_layout(a: int, b: int) -> bool:
    """Return whether two layouts are the same, given their SimHashes: they differ in at most `SAME_LAYOUT` bits."""
    return hamming(a, b) <= SAME_LAYOUT


# I-Match: the digest of the set of a text's lexicon terms


class Terms:
    """The terms of a lexicon as hashes."""

    def __init__(self, hashes: Hashes) -> None:
        self.hashes = distinct(hashes)  # ascending
        buckets = np.arange((1 << _FIRST) + 1, dtype=np.uint64)
        starts = self.hashes.searchsorted(buckets[:-1] << np.uint64(64 - _FIRST))
        self.starts = np.append(starts, len(self.hashes)).astype(np.uint32)
        """For each value of the first 15 bits, the number of hashes that begin with a lower value; then that of all."""

    def among(self, rows: Hashes) -> Hashes:
        """Return those of n rows, of shape (n, 2), that have the hash of a term in their first column."""
        if not len(self.hashes):
            return rows[:0]
        nearest = self.hashes.take(self.hashes.searchsorted(rows[:, 0]), mode="clip")
        found: Hashes = rows[nearest == rows[:, 0]]
        return found


NO_TERMS = Terms(np.zeros(0, np.uint64))


def imatch(terms: Hashes, lexicons: int) -> tuple[int, ...]:
    """Return 1 + `lexicons` digests of 64 bits of a text, given the hashes of its distinct terms, of shape (n, 2).

    The first digest is the sum of the mixed hashes of all terms, so their order does not matter. Each other digest is
    computed in the same way over a randomized lexicon, which lacks a random 5/16 of the terms. The second 64 bits of a
    term's hash select the lexicons without the term. So a lexicon needs no memory, and is equal on every machine.
    Without terms, return ().

    Chowdhury, Frieder, Grossman, McCabe 2002, Collection statistics for fast duplicate document detection, section 3
    (the digest); Kołcz, Chowdhury, Alspector 2004, Improved robustness of signature-based near-replica detection via
    lexicon randomization, section 4 (randomized lexicons).
    """
    if not len(terms):
        return ()
    salts = np.arange(lexicons + 1, dtype=np.uint64)[:, None] * MULTIPLIER
    kept = (mix(terms[:, 1] ^ salts) >= _LEAST) | (salts == 0)  # the first lexicon has all terms
    return tuple(np.where(kept, mix(terms[:, 0] * MULTIPLIER), np.uint64(0)).sum(axis=1, dtype=np.uint64).tolist())


# Shingles, and one-permutation MinHash: the smallest hash in each bin of the range of hashes represents a set


def shingle_hashes(hashes: Hashes, width: int) -> Hashes:
    """Hash each run of `width` tokens, given the 64-bit hashes of n tokens. The result has n - width + 1 hashes.

    Fewer than `width` tokens are one shingle. No tokens give no shingle.

    Broder et al. 1997, section 2.
    """
    width = min(width, len(hashes))
    runs = len(hashes) - width + 1
    return chain([hashes[start : start + runs] for start in range(width)]) if width else hashes


def shingles(rows: Hashes, width: int) -> Hashes:
    """Return the distinct hashes of the shingles of `width` tokens, ascending, given token hashes of shape (n, 2)."""
    return distinct(shingle_hashes(rows[:, 0], width))


def minima(hashes: Hashes, bins: int) -> Hashes:
    """Return the smallest hash in each bin, of shape (bins,), given ascending hashes; 0 for an empty bin.

    Bins are equal parts of the range of hashes, so the hashes of a bin lie side by side in the sorted array.

    Li, Owen, Zhang 2012, section 2 (one permutation hashing).
    """
    smallest = np.zeros(bins, dtype=np.uint64)
    # Assigned from the end, so that the first hash of a bin remains.
    smallest[places(hashes, bins)[::-1]] = hashes[::-1]
    return smallest


def places(hashes: Hashes, bins: int) -> npt.NDArray[np.intp]:
    """Return the number of the bin of each hash, from 0."""
    return (((hashes >> _HALF) * np.uint64(bins)) >> _HALF).astype(np.intp)


def super_shingles(hashes: Hashes, bands: int, rows: int) -> tuple[int, ...]:
    """Return `bands` keys, each a hash of `rows` minima, given the ascending hashes of shingles; () for no hashes.

    Two documents of resemblance r share a given key with probability r^rows, and at least one key with probability
    1 - (1 - r^rows)^bands. An empty bin borrows the minimum of the next full bin, changed by the distance between the
    two bins.

    Broder et al. 1997, section 4 (super-shingles); Shrivastava, Li 2014, section 3 (borrowing: densification).
    """
    if not len(hashes):
        return ()
    columns = _densified(minima(hashes, bands * rows)).reshape(bands, rows)
    keys = chain([np.arange(bands, dtype=np.uint64), *columns.T])
    return tuple(keys.tolist())


def _densified(smallest: Hashes) -> Hashes:
    full = smallest.nonzero()[0]
    if len(full) in (0, len(smallest)):
        return smallest
    places = np.arange(len(smallest))
    lenders = full[np.searchsorted(full, places) % len(full)]
    way = ((lenders - places) % len(smallest)).astype(np.uint64)
    return np.where(way > 0, mix(smallest[lenders] + way * MULTIPLIER), smallest)
