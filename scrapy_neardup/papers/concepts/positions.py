"""Key concepts and their positions as fingerprints, and the similarity of two such lists."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby
from typing import TypeAlias

from ...fingerprints.hashes import hash_text

POSITION_BITS = 24
OCCURRENCES = 16  # of a concept, the first ones: each is a fingerprint
_LAST = (1 << POSITION_BITS) - 1

Vector: TypeAlias = Mapping[int, Sequence[int]]
"""The positions of each concept, ascending: the rows of formula 8."""


def pack(positions: Mapping[str, Sequence[int]]) -> tuple[int, ...]:
    """Return a fingerprint for each occurrence of a concept: 40 bits of its hash above 24 of its position.

    Given the ascending positions of each concept; () for none. In the order of the concepts, of each the first
    `OCCURRENCES`; a position that 24 bits can't hold becomes the last that they can.

    曹玉娟 et al. 2011, formula 8.
    """
    return tuple(
        hash_text(concept) & ~_LAST | min(position, _LAST)
        for concept, places in positions.items()
        for position in places[:OCCURRENCES]
    )


def unpack(fingerprints: Iterable[int]) -> dict[int, list[int]]:
    """Return the positions of each concept, by 40 bits of its hash, from what `pack` made."""
    groups = groupby(sorted(fingerprints), key=lambda value: value >> POSITION_BITS)
    return {concept: [value & _LAST for value in values] for concept, values in groups}


def cosine(dot: int, square_a: int, square_b: int) -> float:
    """Return the cosine of two vectors, given their product and each one's square; 0.0 where either is empty.

    曹玉娟 et al. 2011, formula 9, whose left half has the root of the squares missing. The weight of a concept is how
    often it stands in the text.
    """
    return dot / math.sqrt(square_a * square_b) if square_a and square_b else 0.0


def spread(a: Vector, b: Vector) -> float:
    """Return how unevenly the concepts of both vectors moved, in words: 0.0 where all moved alike, or none is in both.

    曹玉娟 et al. 2011, formula 13.
    """
    shared = a.keys() & b.keys()
    return math.fsum(_spread(a[concept], b[concept]) for concept in shared) / len(shared) if shared else 0.0


def span(a: Vector, b: Vector) -> int:
    """Return how many words both vectors reach over: the last position of either, and one; 0 for empty ones."""
    return max((positions[-1] + 1 for vector in (a, b) for positions in vector.values()), default=0)


def _spread(a: Sequence[int], b: Sequence[int]) -> float:
    """Return the standard deviation of the distances between the n-th occurrences in either text: formulas 10 to 12.

    The paper takes the mean of the distances without their sign (formula 11) and the deviation of those with it
    (formula 12): then a text with something put before it moved evenly or not depending on which of the two comes
    first. Here both have their sign.
    """
    distances = [one - other for one, other in zip(a, b, strict=False)]  # formula 10: δP
    mean = math.fsum(distances) / len(distances)  # formula 11: AVG
    return math.sqrt(math.fsum((distance - mean) ** 2 for distance in distances) / len(distances))  # formula 12: S
