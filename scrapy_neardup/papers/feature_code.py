"""Feature codes (特征码), which are the characters on either side of a full stop, and a detector of similar codes.

Navigation and adverts rarely contain a full stop. A full stop marks running text, and the few characters around it
identify that text. Zhang et al. 2002; Peng et al., section 2.2.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Iterator, Sequence
from itertools import combinations, pairwise
from typing import Any, TypeVar

from ..document import Document
from ..text.tokens import normalize
from . import InvertedIndex

LENGTH = 5
TOLERANCE = 2
LETTERS = 3
"""The number of letters that count as one Han character. A Han character carries 9.65 bits (by frequency alone). Three
English letters carry about 11 bits (Shannon 1951, table I: 4.14, 3.56 and 3.3 bits)."""

_HAN = "\u3041-\u30ff\u3400-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"  # and kana, which has no spaces either
_CLOSING = "\"'”’»)\\]}」』》】"
# `normalize` has turned the full-width stop of Chinese and Japanese into the ASCII one. An ASCII stop ends a sentence
# only between Han characters or before a space, since figures and addresses contain stops too. Three stops in a row end
# no sentence, since they cut headlines. Question and exclamation marks are left out, since headlines have them too.
# With these marks, precision and recall are lower.
_STOP = re.compile(
    f"(?P<han>。|(?<=[{_HAN}])\\.(?=[{_CLOSING}]*(?:[{_HAN}]|\\s|$)))|[।॥۔።]|(?<!\\.)\\.(?=[{_CLOSING}]*(?:\\s|$))"
)
_NO_CHARACTER = re.compile(r"[\W_]+")

T = TypeVar("T")


def feature_code(text: str, length: int = LENGTH) -> str:
    """Return the code at the first full stop of a normalized text; "" if there is no stop.

    A code consists of the `length` characters before a stop and the `length` characters after it. In a script with
    spaces, it has LETTERS times as many. Only letters, digits and Han characters count; punctuation, spaces and other
    stops are skipped. A stop with too few characters on a side is ignored. The stop of an abbreviation counts too,
    since copies also have it.
    """
    kept = _NO_CHARACTER.sub("", text)
    end = place = 0
    for stop in _STOP.finditer(text):
        place += len(_NO_CHARACTER.sub("", text[end : stop.start()]))
        end = stop.start()
        side = length if stop["han"] else length * LETTERS
        if side <= place <= len(kept) - side:
            return kept[place - side : place + side]
    return ""


def common_subsequence(a: str, b: str) -> int:
    """Return the length of the longest common subsequence of two strings.

    The algorithm is bit-parallel (Hyyrö 2004, figure 3): each character of `a` has a bit. Each character of `b` that
    makes the longest common subsequence longer turns one more bit to 0. The zeros are counted at the end.
    """
    masks: dict[str, int] = {}
    for place, character in enumerate(a):
        masks[character] = masks.get(character, 0) | 1 << place
    row = everything = (1 << len(a)) - 1
    for character in b:
        equal = row & masks.get(character, 0)
        row = (row + equal) | (row - equal)
    return len(a) - (row & everything).bit_count()


def pack(code: str) -> tuple[int, ...]:
    """Return a code packed into integers, two code points in each."""
    return struct.unpack(f">{len(code) // 2}Q", code.encode("utf-32-be"))


def unpack(values: Sequence[int]) -> str:
    """Return the code that `pack` packed into these integers; "" for no integers."""
    return struct.pack(f">{len(values)}Q", *values).decode("utf-32-be", "replace")


class CodeIndex(InvertedIndex[str, T]):
    """Finds documents by similar codes.

    Two codes of equal length n are similar if they have a common subsequence of at least n - `tolerance` characters.
    The papers allow one or two characters less than n, and use a balanced search tree.

    A code is cut into `tolerance` + 1 pieces. A similar code contains one of the pieces completely, in order, with at
    most `tolerance` other characters before or within it. So for each piece, the index looks up all strings that the
    characters at and around its place can spell. It compares the codes that have such a piece there.
    """

    def __init__(self, tolerance: int) -> None:
        super().__init__()
        self.tolerance = tolerance

    def read(self, fingerprints: Sequence[int]) -> str:
        return unpack(fingerprints)

    def features(self, decoded: str) -> Iterator[tuple[int, int, str]]:
        return ((len(decoded), start, decoded[start:end]) for start, end in self._pieces(decoded))

    def sought(self, decoded: str) -> Iterator[tuple[int, int, str]]:
        for start, end in self._pieces(decoded):
            around = decoded[max(0, start - self.tolerance) : end + self.tolerance]
            yield from ((len(decoded), start, "".join(piece)) for piece in combinations(around, end - start))

    def is_near(self, decoded: str, held: str) -> bool:
        is_shared = common_subsequence(decoded, held) >= len(decoded) - self.tolerance
        return len(decoded) == len(held) and is_shared

    def _pieces(self, code: str) -> Iterator[tuple[int, int]]:
        """Yield the start and the end of each piece of a code."""
        number = self.tolerance + 1
        return pairwise(len(code) * cut // number for cut in range(number + 1))


class FeatureCode:
    """Proposes documents with a similar feature code (Zhang et al. 2002; Peng et al.).

    `length`: the number of characters on either side of the stop. `tolerance`: the number of characters of a code that
    the other code may lack.

    The detector abstains from a text that has no stop with enough characters on both sides. Texts with similar codes
    may continue differently; NEARDUP_LENGTH_RATIO keeps these apart. Peng et al. found a ratio of 1.10 best.
    """

    name = "feature_code"

    def __init__(self, length: int = LENGTH, tolerance: int = TOLERANCE) -> None:
        if length < 1 or tolerance < 0:
            raise ValueError("`length` must be 1 or more, and `tolerance` 0 or more")
        self.scheme = f"feature_code/3 {length}x{LETTERS}"
        self.length = length
        self.tolerance = tolerance

    def fingerprints(self, document: Document) -> tuple[int, ...]:
        return pack(feature_code(normalize(document.text), self.length))

    def index(self) -> CodeIndex[Any]:
        return CodeIndex(self.tolerance)
