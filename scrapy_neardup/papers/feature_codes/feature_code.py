"""The detector for texts with similar characters around a full stop."""

from __future__ import annotations

from typing import Any

from ...document import Document
from ...text.tokens import normalize
from .code_index import OrderedIndex
from .codes import CODE_POINTS, LENGTH, LETTERS, feature_codes, pack

TOLERANCE = 2


class FeatureCode:
    """Proposes documents with a similar feature code (Zhang et al. 2002; Peng et al.).

    `length`: the number of characters on either side of a stop. `places`: the number of stops, spread over the text.
    One of them must match. `tolerance`: the number of characters of a code that the other code may lack.

    The detector abstains from a text that has no stop with enough characters on both sides. If texts with similar codes
    continue differently, NEARDUP_LENGTH_RATIO separates them. Peng et al. found a ratio of 1.10 best.
    """

    name = "feature_code"

    def __init__(self, length: int = LENGTH, places: int = 1, tolerance: int = TOLERANCE) -> None:
        if min(length, places) < 1 or tolerance < 0:
            raise ValueError("`length` and `places` must be 1 or more, and `tolerance` 0 or more")
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
