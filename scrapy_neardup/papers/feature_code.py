"""Feature codes (特征码), the characters on either side of a full stop, and a detector of similar ones.

Navigation and adverts rarely contain a full stop. A full stop marks running text, and the few characters around it
identify that text. Zhang et al. 2002; Peng et al., section 2.2.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Iterator, Sequence
from itertools import combinations, islice, pairwise
from typing import Any, TypeVar

from ..document import Document
from ..index.kinds import Inverted
from ..text.tokens import normalize

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
# With them, precision and recall are lower.
_STOP = re.compile(
    f"(?P<han>。|(?<=[{_HAN}])\\.(?=[{_CLOSING}]*(?:[{_HAN}]|\\s|$)))|[।॥۔።]|(?<!\\.)\\.(?=[{_CLOSING}]*(?:\\s|$))"
)
_NO_CHARACTER = re.compile(r"[\W_]+")

T = TypeVar("T")


def feature_codes(text: str, length: int = LENGTH, places: int = 1) -> tuple[str, ...]:
    """Return the code at the first full stop of a normalized text. Return () if there is no stop.

    If `places` is more than 1, return the distinct codes at that many stops, which are spread over the text.

    A code consists of the `length` characters before a stop and the `length` characters after it. In a script with
    spaces, it has LETTERS times as many. Only letters, digits and Han characters count; punctuation, spaces and other
    stops are skipped. A stop with too few characters on a side is ignored. The stop of an abbreviation counts too,
    since copies also have it.
    """
    codes = _codes(text, length)
    if places == 1:
        return tuple(islice(codes, 1))
    found = list(codes)
    return tuple(dict.fromkeys(found[place * len(found) // places] for place in range(places) if found))


def _codes(text: str, length: int) -> Iterator[str]:
    """Yield the code at each stop."""
    kept = _NO_CHARACTER.sub("", text)
    end = place = 0
    for stop in _STOP.finditer(text):
        place += len(_NO_CHARACTER.sub("", text[end : stop.start()]))
        end = stop.start()
        side = length if stop["han"] else length * LETTERS
        if side <= place <= len(kept) - side:
            yield kept[place - side : place + side]


def common_subsequence(a: str, b: str) -> int:
    """Return the length of the longest common subsequence of two strings.

    The algorithm is bit-parallel (Hyyrö 2004, figure 3): each character of `a` has a bit, which is 0 where the
    subsequence grows.
    """
    masks: dict[str, int] = {}
    for place, character in enumerate(a):
        masks[character] = masks.get(character, 0) | 1 << place
    row = everything = (1 << len(a)) - 1
    for character in b:
        equal = row & masks.get(character, 0)
        row = (row + equal) | (row - equal)
    return len(a) - (row & everything).bit_count()


def pack(code: str, integers: int) -> tuple[int, ...]:
    """Return a code packed into `integers` integers, two code points in each, padded with zeros."""
    return struct.unpack(f">{integers}Q", code.ljust(2 * integers, "\0").encode("utf-32-be"))


def unpack(values: Sequence[int]) -> str:
    """Return the code that is packed into these integers; "" for no integers."""
    return struct.pack(f">{len(values)}Q", *values).decode("utf-32-be", "replace").rstrip("\0")


class CodeIndex(Inverted[list[str], T]):
    """Finds documents by similar codes, each packed into `width` integers.

    Two codes of equal length n are similar if they have a common subsequence of at least n - `tolerance` characters.
    The papers allow one or two characters less than n, and use a balanced search tree.

    A code is cut into `tolerance` + 1 pieces. A similar code contains one of the pieces completely, in order, with at
    most `tolerance` other characters before or within it. So all pieces are looked up that the characters around the
    place of a piece can spell, and the codes that have one of them are compared.
    """

    def __init__(self, width: int, tolerance: int) -> None:
        super().__init__()
        self.width = width
        self.tolerance = tolerance

    def read(self, fingerprints: Sequence[int]) -> list[str]:
        starts = range(0, len(fingerprints), self.width)
        return [unpack(fingerprints[start : start + self.width]) for start in starts]

    def features(self, decoded: list[str]) -> Iterator[tuple[int, int, str]]:
        return ((len(code), start, code[start:end]) for code in decoded for start, end in self._pieces(code))

    def sought(self, decoded: list[str]) -> Iterator[tuple[int, int, str]]:
        for code in decoded:
            for start, end in self._pieces(code):
                around = code[max(0, start - self.tolerance) : end + self.tolerance]
                yield from ((len(code), start, "".join(piece)) for piece in combinations(around, end - start))

    def is_near(self, decoded: list[str], held: list[str]) -> bool:
        pairs = ((a, b) for a in decoded for b in held if len(a) == len(b))
        return any(common_subsequence(a, b) >= len(a) - self.tolerance for a, b in pairs)

    def _pieces(self, code: str) -> Iterator[tuple[int, int]]:
        """Return the start and the end of each piece of a code."""
        number = self.tolerance + 1
        return pairwise(len(code) * cut // number for cut in range(number + 1))


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
        self.scheme = f"feature_code/2 {length}x{LETTERS} {places}"
        self.length = length
        self.places = places
        self.tolerance = tolerance
        self._width = length * LETTERS  # integers for the longest code

    def fingerprints(self, document: Document) -> tuple[int, ...]:
        codes = feature_codes(normalize(document.text), self.length, self.places)
        return tuple(value for code in codes for value in pack(code, self._width))

    def index(self) -> CodeIndex[Any]:
        return CodeIndex(self._width, self.tolerance)
