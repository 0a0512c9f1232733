"""The detector for texts with the same characters around a full stop."""

from __future__ import annotations

from typing import Any

from ...document import Document
from ...text.tokens import normalize
from .code_index import OrderedIndex
from .codes import CODE_POINTS, LENGTH, LETTERS, feature_codes, pack

TOLERANCE = 2


class FeatureCode:
    """Proposes documents with a similar feature code (Zhang et al. 2002; Peng et al.).

    `length`: characters on either side of a stop. `places`: the number of stops, spread over the text, one of which
    must match. `tolerance`: characters of a code that may be missing in the other. It abstains from texts without a
    stop with enough characters on both sides. NEARDUP_LENGTH_RATIO separates texts that continue differently; Peng et
    al. found 1.10 best.
    """

    name = "feature_code"

    def __init__(self, length: int = LENGTH, places: int = 1, tolerance: int = TOLERANCE) -> None:
        if min(length, places) < 1 or tolerance < 0:
            raise ValueError("allowed are a length and places from 1, and a tolerance from 0")
        self.scheme = f"feature_code/1 {length}x{LETTERS} {places}"
        self.length = length
        self.places = places
        self.tolerance = tolerance
        self._width = -(-2 * length * LETTERS // CODE_POINTS)  # integers for the longest code

    def fingerprints(self, document: Document) -> tuple[int, ...]:
        codes = feature_codes(normalize(document.text), self.length, self.places)
        return tuple(value for code in codes for value in pack(code, self._width))

    def index(self) -> OrderedIndex[Any]:
        return OrderedIndex(self._width, self.tolerance)
