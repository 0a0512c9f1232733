"""Key concepts and their positions as fingerprints, and the similarity of two such lists."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby
from typing import TypeAlias

from ...fingerprints.hashes import hash_text

POSITION_BITS = 24
OCCURRENCES = 16  # of a concept, the first ones; each becomes a fingerprint
_LAST = (1 << POSITION_BITS) - 1

Vector: TypeAlias = Mapping[int, Sequence[int]]
"""The ascending positions of each concept: the rows of formula 8."""


def pack(positions: Mapping[str, Sequence[int]]) -> tuple[int, ...]:
    """Return a fingerprint for each occurrence of a concept: 40 bits of its hash above 24 bits of its position.

    Takes the ascending positions of each concept; () for none. The first `OCCURRENCES` positions of each concept are
    used, in the order of the concepts. Positions above 24 bits become the largest one.

    曹玉娟 et al. 2011, formula 8.
    """
    return tuple(
        hash_text(concept) & ~_LAST | min(position, _LAST)
        for concept, places in positions.items()
        for position in places[:OCCURRENCES]
    )


def unpack(fingerprints: Iterable[int]) -> dict[int, list[int]]:
    """Return the positions of each concept by 40 bits of its hash: the inverse of `pack`."""
    groups = groupby(sorted(fingerprints), key=lambda value: value >> POSITION_BITS)
    return {concept: [value & _LAST for value in values] for concept, values in groups}


def cosine(dot: int, square_a: int, square_b: int) -> float:
    """Return the cosine of two vectors, given their dot product and squares; 0.0 if one is empty.

    曹玉娟 et al. 2011, formula 9; the paper omits the root of the squares in the left half. The weight of a concept is
    its number of occurrences.
    """
    return dot / math.sqrt(square_a * square_b) if square_a and square_b else 0.0


def spread(a: Vector, b: Vector) -> float:
    """Return the spread of the shifts of common concepts, in words; 0.0 if all moved alike, or none is common.

    曹玉娟 et al. 2011, formula 13.
    """
    shared = a.keys() & b.keys()
    return math.fsum(_spread(a[concept], b[concept]) for concept in shared) / len(shared) if shared else 0.0


def span(a: Vector, b: Vector) -> int:
    """Return the number of words that both vectors span: the highest position plus one; 0 for empty ones."""
    return max((positions[-1] + 1 for vector in (a, b) for positions in vector.values()), default=0)


def _spread(a: Sequence[int], b: Sequence[int]) -> float:
    """Return the standard deviation of the distances between the n-th occurrences in the two texts: formulas 10 to 12.

    The paper uses absolute distances for the mean (formula 11) and signed ones for the deviation (formula 12), so if
    one text has an additional passage at its beginning, the result depends on the order of the texts. Here both are
    signed.
    """
    distances = [one - other for one, other in zip(a, b, strict=False)]  # formula 10: δP
    mean = math.fsum(distances) / len(distances)  # formula 11: AVG
    return math.sqrt(math.fsum((distance - mean) ** 2 for distance in distances) / len(distances))  # formula 12: S
