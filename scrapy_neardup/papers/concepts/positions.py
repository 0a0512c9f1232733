"""Pack key concepts and their positions into fingerprints, and measure the similarity of two texts by these."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby
from typing import TypeAlias

from ...fingerprints.hashes import hash_text

POSITION_BITS = 24
OCCURRENCES = 16  # the maximum number of occurrences of a concept, the first ones; each becomes a fingerprint
_LAST = (1 << POSITION_BITS) - 1

Vector: TypeAlias = Mapping[int, Sequence[int]]
"""The ascending positions of each concept: the rows of formula 8."""


def pack(positions: Mapping[str, Sequence[int]]) -> tuple[int, ...]:
    """Return a fingerprint for each occurrence of a concept: 40 bits of the concept's hash, then 24 of the position.

    `positions` has the ascending positions of each concept. The first `OCCURRENCES` positions of each concept are used,
    in the order of the concepts. A position of more than 24 bits becomes the largest one of 24 bits. Return () if there
    are no concepts.

    曹玉娟 et al. 2011, formula 8.
    """
    return tuple(
        hash_text(concept) & ~_LAST | min(position, _LAST)
        for concept, places in positions.items()
        for position in places[:OCCURRENCES]
    )


def unpack(fingerprints: Iterable[int]) -> dict[int, list[int]]:
    """Return the positions of each concept, by 40 bits of the concept's hash. This is the inverse of `pack`."""
    groups = groupby(sorted(fingerprints), key=lambda value: value >> POSITION_BITS)
    return {concept: [value & _LAST for value in values] for concept, values in groups}


def cosine(dot: int, square_a: int, square_b: int) -> float:
    """Return the cosine of two vectors, given their dot product and squared lengths; 0.0 if a vector is empty.

    The weight of a concept is its number of occurrences.

    曹玉娟 et al. 2011, formula 9. The left half of that formula lacks the square root.
    """
    return dot / math.sqrt(square_a * square_b) if square_a and square_b else 0.0


def spread(a: Vector, b: Vector) -> float:
    """Return the mean spread of the shifts of common concepts, in words; 0.0 if no concept is common.

    The shifts of a concept are the distances between its n-th occurrences in the two texts. If all are equal, their
    spread is 0.

    曹玉娟 et al. 2011, formula 13.
    """
    shared = a.keys() & b.keys()
    return math.fsum(_spread(a[concept], b[concept]) for concept in shared) / len(shared) if shared else 0.0


def span(a: Vector, b: Vector) -> int:
    """Return the number of words that two vectors span: the highest position plus one; 0 if both are empty."""
    return max((positions[-1] + 1 for vector in (a, b) for positions in vector.values()), default=0)


def _spread(a: Sequence[int], b: Sequence[int]) -> float:
    """Return the spread of the shifts of one concept, a standard deviation, by formulas 10 to 12.

    The paper uses absolute distances for the mean (formula 11) and signed distances for the deviation (formula 12). If
    one text has an additional passage at its beginning, the result then depends on the order of the texts. Here both
    formulas use signed distances.
    """
    distances = [one - other for one, other in zip(a, b, strict=False)]  # formula 10: δP
    mean = math.fsum(distances) / len(distances)  # formula 11: AVG
    return math.sqrt(math.fsum((distance - mean) ** 2 for distance in distances) / len(distances))  # formula 12: S
