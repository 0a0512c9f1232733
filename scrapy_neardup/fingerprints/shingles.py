"""Represent the set of a text's shingles by one-permutation MinHash: sketches, and super-shingles for the index.

The smallest hash in each bin of the range of hashes represents the set. The probability that two sets have equal minima
in a bin is about their resemblance, so the minima can be compared in place of the sets.
"""

from __future__ import annotations

from bisect import bisect_right
from struct import unpack
from typing import NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from .. import native
from .hashes import MULTIPLIER, Hashes, chain, mix

_HALF = np.uint64(32)


def minima(hashes: Hashes, bins: int) -> Hashes:
    """Return the smallest hash in each bin, of shape (bins,), given ascending hashes; 0 for an empty bin.

    Bins are equal parts of the range of hashes, so the hashes of a bin are one run of the sorted array.

    Li, Owen, Zhang 2012, section 2 (one permutation hashing).
    """
    smallest = np.zeros(bins, dtype=np.uint64)
    # Assigned from the end, so that the first hash of a bin remains.
    smallest[places(hashes, bins)[::-1]] = hashes[::-1]
    return smallest


def places(hashes: Hashes, bins: int) -> npt.NDArray[np.intp]:
    """Return the bin number of each hash."""
    return (((hashes >> _HALF) * np.uint64(bins)) >> _HALF).astype(np.intp)


def super_shingles(hashes: Hashes, bands: int, rows: int) -> tuple[int, ...]:
    """Return `bands` keys, each a hash of `rows` minima, given the ascending hashes of shingles; () for no hashes.

    At resemblance r, two documents have a given key in common with probability r^rows, and at least one key with
    probability 1 - (1 - r^rows)^bands. An empty bin borrows the minimum of the next full bin, changed by the distance
    between the two bins.

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


Codes: TypeAlias = npt.NDArray[np.uint8]

SCHEME = "sketch/2"
WIDTH = 3  # tokens in a shingle
BINS = 512
FIGURES = 16
CODES = 255
_CHANCE = 1 / CODES  # the probability that two different minima have equal codes


class Sketch(NamedTuple):
    """Counts and samples of the tokens of a document, about 570 bytes."""

    tokens: int
    shingles: int
    """The number of distinct shingles."""
    figures: int
    """The number of distinct figures."""
    codes: bytes
    """One byte for each of 512 bins, computed from the smallest shingle hash in the bin; 0 for an empty bin."""
    figure_sample: bytes
    """The 16 smallest hashes of figures, ascending, 16 bits for each hash."""


class Overlap(NamedTuple):
    """The result of comparing the codes of two sketches, as numbers of bins."""

    any: int
    """The number of bins that have a code in at least one sketch."""
    both: int
    """The number of bins that have a code in both sketches."""
    equal: int
    """The number of bins that have equal codes in both sketches."""

    @property
    def shared(self) -> float:
        """The estimated number of bins with equal minima: bins with equal codes, less those equal by chance."""
        return max(0.0, self.equal - (self.both - self.equal) * _CHANCE / (1 - _CHANCE))


def overlap(a: bytes, b: bytes) -> Overlap:
    """Compare two sketches by their `codes`."""
    if native.compiled:
        return Overlap(*native.compiled.overlap(a, b))
    x, y = np.frombuffer(a, np.uint8), np.frombuffer(b, np.uint8)
    both = (x > 0) & (y > 0)
    return Overlap(*(int(np.count_nonzero(each)) for each in (x | y, both, both & (x == y))))


def resemblance(a: Sketch, b: Sketch) -> float:
    """Estimate the resemblance of two documents; 1.0 if both have no shingles.

    With 512 bins the standard error is about .02 at a resemblance of .5.

    Li, Owen, Zhang 2012, section 3; Li, König 2010 (b-bit minwise hashing), section 2.
    """
    found = overlap(a.codes, b.codes)
    return found.shared / found.any if found.any else 1.0


def containment(a: Sketch, b: Sketch, shared: float) -> float:
    """Return the containment of the smaller document in the other. `shared` is their resemblance.

    Broder et al. 1997, section 2: |A ∩ B| = r (|A| + |B|) / (1 + r).
    """
    smaller = min(a.shingles, b.shingles)
    return min(1.0, shared * (a.shingles + b.shingles) / (1 + shared) / smaller) if smaller else 1.0


def missing_figures(a: Sketch, b: Sketch) -> float:
    """Estimate how many figures the document with fewer figures has that the other document lacks.

    The samples are compared up to the largest value that both cover. If a document has no figures, return 0.0.
    """
    sample_a, sample_b = _sample(a), _sample(b)
    if not sample_a or not sample_b:
        return 0.0
    covered = min(s[-1] if len(s) < f else 0xFFFF for s, f in ((sample_a, a.figures), (sample_b, b.figures)))
    compared = min(bisect_right(sample_a, covered), bisect_right(sample_b, covered))
    shared = len(set(sample_a).intersection(sample_b))  # values in both samples are covered
    return (compared - shared) / compared * min(a.figures, b.figures) if compared else 0.0


def _sample(sketch: Sketch) -> tuple[int, ...]:
    return unpack(f">{len(sketch.figure_sample) // 2}H", sketch.figure_sample)
