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
"""The number of letters in place of one Han character, which carries 9.65 bits (by frequency alone). Three English
letters carry about 11 bits (Shannon 1951, table I: 4.14, 3.56, 3.3)."""
CODE_POINTS, CODE_POINT_BITS = 3, 21  # code points in an integer of 64 bits

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
    """Return the codes at the first full stop of a normalized text, or at `places` stops spread over it, without
    repetition.

    A code is the `length` characters before and after a stop; around a stop of a script with spaces, LETTERS times as
    many. Letters, digits and Han characters count; punctuation, spaces and other stops are skipped. A stop with too few
    characters on a side is ignored. The stop of an abbreviation counts, as copies have it too. () without a stop.

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

    One bit for each character of `a` is 0 where the subsequence grows. Hyyrö 2004, figure 3 (bit-parallel). Codes are
    compared by it in Zhang et al. 2002 and Peng et al., section 2.2.
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
    """Pack a code into `integers` integers, three code points of 21 bits in each, padded with zeros; "" gives zeros
    only.

    The result sorts as the codes do. Raise ValueError for a code that is too long.
    """
    if len(code) > integers * CODE_POINTS:
        raise ValueError(f"{code!r} does not fit into {integers} integers")
    points = [*map(ord, code), *[0] * (integers * CODE_POINTS - len(code))]
    triples = zip(*[iter(points)] * CODE_POINTS, strict=True)
    return tuple(a << 2 * CODE_POINT_BITS | b << CODE_POINT_BITS | c for a, b, c in triples)


def unpack(values: Sequence[int]) -> str:
    """Return the code packed into integers; "" for none."""
    shifts = range((CODE_POINTS - 1) * CODE_POINT_BITS, -1, -CODE_POINT_BITS)
    points = (value >> shift & _MASK for value in values for shift in shifts)
    return "".join(chr(point) for point in points if point)
