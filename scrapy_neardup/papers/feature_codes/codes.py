"""Feature codes (特征码), the characters on either side of a full stop, and their similarity.

Navigation and adverts rarely contain a full stop. A full stop marks running text, and the few characters around it
identify that text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import islice

LENGTH = 5
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


def feature_codes(text: str, length: int = LENGTH, places: int = 1) -> tuple[str, ...]:
    """Return the code at the first full stop of a normalized text. Return () if there is no stop.

    If `places` is more than 1, return the distinct codes at that many stops, which are spread over the text.

    A code consists of the `length` characters before a stop and the `length` characters after it. In a script with
    spaces, it has LETTERS times as many. Only letters, digits and Han characters count; punctuation, spaces and other
    stops are skipped. A stop with too few characters on a side is ignored. The stop of an abbreviation counts too,
    since copies also have it.

    Zhang et al. 2002; Peng et al., section 2.2.
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
    subsequence grows. Zhang et al. 2002 and Peng et al., section 2.2, compare codes by this length.
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
