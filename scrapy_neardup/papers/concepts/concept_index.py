"""Find texts with similar key concepts at similar places, by an inverted index of concepts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

import numpy as np
import numpy.typing as npt

from ...index.kinds import distinct
from .positions import Vector, cosine, span, spread, unpack

T = TypeVar("T")


@dataclass(frozen=True, eq=False)
class _Entry(Generic[T]):
    document: T
    fingerprints: npt.NDArray[np.uint64]
    square: int
    """The squared length of the vector of the concepts' counts."""


class ConceptIndex(Generic[T]):
    """Finds documents with similar key concepts at similar places, in the order of arrival.

    Concepts are similar if the cosine of their counts is above `least_cosine`. Places are similar if the spread of
    their shifts, divided by the number of words that the texts span, is below `most_spread`. In the paper, S_thr is a
    number of words. Here it is a share of the words, since in a long text one more occurrence of a concept shifts the
    later occurrences farther.

    曹玉娟 et al. 2011, section 3.5.
    """

    def __init__(self, least_cosine: float, most_spread: float) -> None:
        self._least_cosine = least_cosine
        self._most_spread = most_spread
        self._entries: dict[int, _Entry[T]] = {}
        self._postings: dict[int, dict[int, int]] = {}  # by concept and document number: the count of the concept
        self._next = 0

    def add(self, fingerprints: Sequence[int], document: T) -> None:
        counts = _counts(fingerprints)
        if counts:
            self._entries[self._next] = _Entry(document, np.array(fingerprints, np.uint64), _square(counts))
            for concept, count in counts.items():
                self._postings.setdefault(concept, {})[self._next] = count
            self._next += 1

    def remove(self, fingerprints: Sequence[int], document: T) -> None:
        counts = _counts(fingerprints)
        rarest = min((self._postings.get(concept, {}) for concept in counts), key=len, default={})
        for number in [number for number in rarest if self._entries[number].document is document]:
            for concept in _counts(self._entries.pop(number).fingerprints.tolist()):
                del self._postings[concept][number]
                if not self._postings[concept]:
                    del self._postings[concept]

    def find(self, fingerprints: Sequence[int]) -> Iterator[T]:
        wanted, counts = unpack(fingerprints), _counts(fingerprints)
        near = (self._entries[number] for number in sorted(self._candidates(counts)) if self._alike(counts, number))
        return distinct(entry.document for entry in near if self._in_place(wanted, entry))

    def _candidates(self, counts: Mapping[int, int]) -> set[int]:
        """Return the numbers of all documents that may be similar. Each of them has one of the rarest concepts.

        In the paper, section 3.5, step 3, the first n dimensions by rank are looked up. Here concepts are looked up,
        the rarest first. If a document has none of them, its cosine is at most the length of the rest of the vector,
        divided by the length of the whole vector. When this bound falls to the least cosine, no more lookups are
        needed.
        """
        rest = _square(counts)
        enough = self._least_cosine**2 * rest * (1 - 1e-9)
        found: set[int] = set()
        for concept in sorted(counts, key=lambda concept: (len(self._postings.get(concept, ())), concept)):
            if rest <= enough:
                break
            found.update(self._postings.get(concept, ()))
            rest -= counts[concept] ** 2
        return found

    def _alike(self, counts: Mapping[int, int], number: int) -> bool:
        """Return whether the cosine (formula 9) is above Sim_thr: steps 6 and 7."""
        dot = sum(count * self._postings.get(concept, {}).get(number, 0) for concept, count in counts.items())
        return cosine(dot, _square(counts), self._entries[number].square) > self._least_cosine

    def _in_place(self, wanted: Vector, entry: _Entry[T]) -> bool:
        """Return whether S (formula 13), as a share of the words, is below S_thr: steps 8 and 9."""
        held = unpack(entry.fingerprints.tolist())
        return spread(wanted, held) / span(wanted, held) < self._most_spread


def _counts(fingerprints: Sequence[int]) -> dict[int, int]:
    return {concept: len(positions) for concept, positions in unpack(fingerprints).items()}


def _square(counts: Mapping[int, int]) -> int:
    return sum(count * count for count in counts.values())
