"""Feature codes (特征码), the characters on either side of a full stop, and a detector of similar ones.

Navigation and adverts rarely contain a full stop. A full stop marks running text, and the few characters around it
identify that text. Zhang et al. 2002; Peng et al., section 2.2.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from heapq import merge
from itertools import combinations, islice, pairwise
from operator import itemgetter
from typing import Any, Generic, TypeVar

from ..document import Document
from ..index.kinds import distinct
from ..text.tokens import normalize

LENGTH = 5
TOLERANCE = 2
LETTERS = 3
"""The number of letters that count as one Han character. A Han character carries 9.65 bits (by frequency alone). Three
English letters carry about 11 bits (Shannon 1951, table I: 4.14, 3.56 and 3.3 bits)."""
CODE_POINTS, CODE_POINT_BITS = 3, 21  # the code points in an integer of 64 bits, and the bits of each

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
_MASK = (1 << CODE_POINT_BITS) - 1

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
    """Return a code packed into `integers` integers, three code points of 21 bits in each, padded with zeros.

    The results sort in the order of the codes. "" gives only zeros. Raise ValueError if the code is too long.
    """
    if len(code) > integers * CODE_POINTS:
        raise ValueError(f"{code!r} does not fit into {integers} integers")
    points = [*map(ord, code), *[0] * (integers * CODE_POINTS - len(code))]
    triples = zip(*[iter(points)] * CODE_POINTS, strict=True)
    return tuple(a << 2 * CODE_POINT_BITS | b << CODE_POINT_BITS | c for a, b, c in triples)


def unpack(values: Sequence[int]) -> str:
    """Return the code that is packed into these integers; "" for no integers."""
    shifts = range((CODE_POINTS - 1) * CODE_POINT_BITS, -1, -CODE_POINT_BITS)
    points = (value >> shift & _MASK for value in values for shift in shifts)
    return "".join(chr(point) for point in points if point)


class CodeIndex(Generic[T]):
    """Finds documents by similar codes, in the order of arrival. Each code is packed into `width` integers.

    Two codes of equal length n are similar if they have a common subsequence of at least n - `tolerance` characters.
    The papers allow one or two characters less than n, and use a balanced search tree.

    A code is cut into `tolerance` + 1 pieces. A similar code contains one of the pieces completely, in order, with at
    most `tolerance` other characters before or within it. So all pieces are looked up that the characters around the
    place of a piece can spell, and the codes that have one of them are compared.
    """

    def __init__(self, width: int, tolerance: int) -> None:
        self.width = width
        self.tolerance = tolerance
        self._documents: dict[str, list[tuple[int, T]]] = {}  # by code, numbered in the order of arrival
        self._with: dict[str, list[str]] = {}  # codes by `_key`
        self._next = 0

    def add(self, fingerprints: Sequence[int], document: T) -> None:
        self._next += 1
        for code in self._codes(fingerprints):
            if code not in self._documents:
                for start, end in self._pieces(code):
                    self._with.setdefault(_key(code, start, code[start:end]), []).append(code)
            self._documents.setdefault(code, []).append((self._next, document))

    def remove(self, fingerprints: Sequence[int], document: T) -> None:
        for code in self._codes(fingerprints):
            entries = self._documents.pop(code, [])
            rest = [entry for entry in entries if entry[1] is not document]
            if rest:
                self._documents[code] = rest
            elif entries:
                for start, end in self._pieces(code):
                    self._with[_key(code, start, code[start:end])].remove(code)

    def find(self, fingerprints: Sequence[int]) -> Iterator[T]:
        near = {code for wanted in self._codes(fingerprints) for code in self._near(wanted)}
        entries = merge(*map(self._documents.__getitem__, near), key=itemgetter(0))
        return distinct(document for _, document in entries)

    def _codes(self, fingerprints: Sequence[int]) -> list[str]:
        starts = range(0, len(fingerprints), self.width)
        return list(dict.fromkeys(unpack(fingerprints[start : start + self.width]) for start in starts))

    def _pieces(self, code: str) -> list[tuple[int, int]]:
        """Return the start and the end of each piece of a code."""
        number = self.tolerance + 1
        return list(pairwise(len(code) * cut // number for cut in range(number + 1)))

    def _near(self, code: str) -> Iterator[str]:
        candidates: set[str] = set()
        for start, end in self._pieces(code):
            around = code[max(0, start - self.tolerance) : end + self.tolerance]
            for piece in combinations(around, end - start):
                candidates.update(self._with.get(_key(code, start, "".join(piece)), ()))
        least = len(code) - self.tolerance
        return (found for found in candidates if common_subsequence(code, found) >= least)


def _key(code: str, start: int, piece: str) -> str:
    return f"{len(code)} {start} {piece}"


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

    def index(self) -> CodeIndex[Any]:
        return CodeIndex(self._width, self.tolerance)
