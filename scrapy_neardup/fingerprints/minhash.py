"""Compute one-permutation MinHash, which represents a set by the smallest hash in each bin.

The probability that two sets have equal minima in a bin is about their resemblance, so the minima can be compared in
place of the sets.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

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
