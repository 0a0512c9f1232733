"""The sketch: what is kept of a text so that it can be compared with another without having it.

Two parts: minima of its shingles, for resemblance and containment, and a sample of its figures (tokens that begin
with a digit), since texts of one form, such as two weekly market reports, differ in little else.
"""

from __future__ import annotations

from bisect import bisect_right
from math import sqrt
from struct import unpack
from typing import NamedTuple

import numpy as np

from .. import native
from .hashing import Hashes, distinct
from .minhash import minima

SCHEME = "sketch/1"
WIDTH = 3  # tokens a shingle
BINS, CODE_BITS = 512, 2
FIGURES = 16
_CODES = 2**CODE_BITS - 1
_PLANE = (1 << BINS) - 1
_BITS = np.left_shift(1, np.arange(CODE_BITS, dtype=np.uint8), dtype=np.uint8)[:, None]
_CHANCE = 1 / _CODES  # that two different minima have the same code


class Sketch(NamedTuple):
    """A document's counts and samples; about 190 bytes."""

    tokens: int
    shingles: int
    """Distinct ones."""
    figures: int
    """Distinct ones."""
    codes: bytes
    """For each of 512 bins a code of 2 bits made of its minimum, 0 for an empty bin; in two planes of one bit each."""
    figure_sample: bytes
    """The 16 smallest hashes of figures, 16 bits each, ascending."""


def make_sketch(tokens: int, shingles: Hashes, figures: bytes = b"") -> Sketch:
    """Make a sketch, given how many tokens there are, the ascending, distinct hashes of shingles, and the figures."""
    return Sketch(tokens, len(shingles), len(figures) // 2, _codes(shingles), figures[: 2 * FIGURES])


def figures_of(rows: Hashes, lines: bytes) -> bytes:
    """Return the distinct hashes of figures, ascending, of each the first 16 bits.

    Given the tokens, a line each, and their hashes of shape (n, 2).
    """
    if native.compiled:
        return native.compiled.figures_of(rows, lines)
    letters = np.frombuffer(b"\n" + lines, np.uint8)
    first = letters.take((letters == ord("\n")).nonzero()[0][: len(rows)] + 1, mode="clip")
    return packed_figures(rows[:, 0][(first >= ord("0")) & (first <= ord("9"))])


def packed_figures(hashes: Hashes) -> bytes:
    """Return the hashes of figures as `make_sketch` takes them."""
    return distinct(hashes >> np.uint64(48)).astype(">u2").tobytes()


def _codes(shingles: Hashes) -> bytes:
    if native.compiled:
        return native.compiled.codes(shingles, BINS)
    smallest = minima(shingles, BINS)
    codes = (smallest % np.uint64(_CODES)).astype(np.uint8) + np.uint8(1)
    codes *= smallest > 0
    return np.packbits(codes & _BITS, axis=1).tobytes()


def resemblance(a: Sketch, b: Sketch) -> float:
    """Estimate the share of the shingles of either that both have; 1.0 where neither has any.

    Of the bins that are full in both, those with equal codes count as shared, less what chance makes equal. With 512
    bins of 2 bits the standard error is about .03 at a resemblance of .5.

    Li, Owen, Zhang 2012, section 3; Li, König 2010 (b-bit minwise hashing), section 2.
    """
    planes_a, planes_b = (int.from_bytes(sketch.codes, "big") for sketch in (a, b))
    full_a, full_b = _either(planes_a), _either(planes_b)
    used = (full_a | full_b).bit_count()
    both = full_a & full_b
    different = (_either(planes_a ^ planes_b) & both).bit_count()
    equal = both.bit_count() - different
    return max(0.0, (equal - different * _CHANCE / (1 - _CHANCE)) / used) if used else 1.0


def containment_by_chance(a: Sketch, b: Sketch) -> float:
    """Return the standard error of the containment that is estimated where two texts share nothing; 0.0 for no text.

    The shorter one is beside the other, the larger it is: of the bins that both fill a third has equal codes, give or
    take, and what that is in shingles is much for the shorter one.
    """
    full_a, full_b = (_either(int.from_bytes(sketch.codes, "big")) for sketch in (a, b))
    used, both = (full_a | full_b).bit_count(), (full_a & full_b).bit_count()
    error = sqrt(both * _CHANCE / (1 - _CHANCE)) / used if used else 0.0
    return containment(a, b, error)


def _either(planes: int) -> int:
    """Return one plane: the bits that are set in either of two."""
    # Integers of Python: quicker than arrays of numpy for so few bytes.
    return (planes | planes >> BINS) & _PLANE


def containment(a: Sketch, b: Sketch, shared: float) -> float:
    """Return the share of the smaller document's shingles that the other has too, given their resemblance.

    Broder et al. 1997, section 2: |A ∩ B| = r (|A| + |B|) / (1 + r).
    """
    smaller = min(a.shingles, b.shingles)
    return min(1.0, shared * (a.shingles + b.shingles) / (1 + shared) / smaller) if smaller else 1.0


def missing_figures(a: Sketch, b: Sketch) -> float:
    """Estimate how many figures of the document with fewer of them the other one lacks; 0.0 where either has none.

    The samples are compared below the largest value that both of them cover.
    """
    sample_a, sample_b = _sample(a), _sample(b)
    if not sample_a or not sample_b:
        return 0.0
    covered = min(s[-1] if len(s) < f else 0xFFFF for s, f in ((sample_a, a.figures), (sample_b, b.figures)))
    compared = min(bisect_right(sample_a, covered), bisect_right(sample_b, covered))
    shared = len(set(sample_a).intersection(sample_b))  # what both hold is covered
    return (compared - shared) / compared * min(a.figures, b.figures) if compared else 0.0


def _sample(sketch: Sketch) -> tuple[int, ...]:
    return unpack(f">{len(sketch.figure_sample) // 2}H", sketch.figure_sample)
