"""Format two texts side by side for a terminal, with their differences marked. No I/O."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher
from itertools import accumulate, groupby, zip_longest
from typing import TypeAlias

from .options import columns
from .streams import shown

CONTEXT = 2  # equal lines to show before and after a difference
_END = re.compile(r"(?<=[.!?])\s+|(?<=[。！？])")  # the end of a sentence
_WORD = re.compile(r"[\u3040-\u30ff\u3400-\u9fff]|\w+|\W")
_COLOURS = ("\x1b[31m", "\x1b[32m")
_PLAIN = "\x1b[0m"

Marked: TypeAlias = Sequence[tuple[str, bool]]
"""The characters of a line, each with a flag: whether it is in a word that the other line lacks."""


def side_by_side(left: str, right: str, width: int, *, coloured: bool = False) -> Iterator[str]:
    """Yield the lines of a comparison of two texts, sentence by sentence, `width` terminal columns wide.

    `|` marks two sentences that differ, `<` a sentence of the left text only, `>` a sentence of the right text only. In
    a long run of equal sentences, the middle is left out.
    """
    a, b = _sentences(left), _sentences(right)
    column = max(2, (width - 3) // 2)
    for change, start, end, first, last in SequenceMatcher(None, a, b).get_opcodes():
        if change == "equal":
            yield from _folded([row for line in a[start:end] for row in _rows(line, line, column, " ", coloured)])
        else:
            for ours, theirs in zip_longest(a[start:end], b[first:last], fillvalue=""):
                sign = "|" if ours and theirs else "<" if ours else ">"
                yield from _rows(ours, theirs, column, sign, coloured)


def _sentences(text: str) -> list[str]:
    lines = (shown(" ".join(line.split())) for line in text.splitlines())
    return [sentence for line in lines for sentence in _END.split(line) if sentence]


def _folded(rows: list[str]) -> list[str]:
    left_out = len(rows) - 2 * CONTEXT
    told = f"… {left_out} equal lines …"
    return [*rows[:CONTEXT], told, *rows[-CONTEXT:]] if left_out > 1 else rows


def _rows(left: str, right: str, column: int, sign: str, coloured: bool) -> Iterator[str]:
    """Yield the lines of two sentences side by side."""
    sides = [list(_wrapped(line, column)) for line in _marked(left, right)]
    for ours, theirs in zip_longest(*sides, fillvalue=()):
        pad = " " * (column - sum(columns(character) for character, _ in ours))
        a, b = _painted(ours, _COLOURS[0] * coloured), _painted(theirs, _COLOURS[1] * coloured)
        yield f"{a}{pad} {sign} {b}".rstrip()


def _marked(left: str, right: str) -> tuple[Marked, Marked]:
    a, b = _WORD.findall(left), _WORD.findall(right)
    changes = SequenceMatcher(None, a, b).get_opcodes()
    ours = [(sign, change != "equal") for change, start, end, _, _ in changes for sign in "".join(a[start:end])]
    theirs = [(sign, change != "equal") for change, _, _, start, end in changes for sign in "".join(b[start:end])]
    return ours, theirs


def _wrapped(line: Marked, width: int) -> Iterator[Marked]:
    """Yield a line in parts of at most `width` columns, broken at blanks if possible."""
    while line:
        begin = line[: 2 * width]
        fit = bisect_right(list(accumulate(columns(sign) for sign, _ in begin)), width)
        blanks = [at for at, (sign, _) in enumerate(line[: fit + 1]) if sign == " " and at]
        end = blanks[-1] if blanks and fit < len(line) else fit
        yield line[:end]
        line = line[end + 1 :] if line[end : end + 1] and line[end][0] == " " else line[end:]


def _painted(line: Marked, colour: str) -> str:
    """Return a line as text, with the flagged words in `colour`. If `colour` is "", leave them uncoloured."""
    if not colour:
        return "".join(sign for sign, _ in line)
    runs = (("".join(sign for sign, _ in run), differs) for differs, run in groupby(line, lambda part: part[1]))
    return "".join(f"{colour}{run}{_PLAIN}" if differs else run for run, differs in runs)
