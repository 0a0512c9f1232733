"""Where in a part the documents lie that RAM still has. No I/O but the mapped memory."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from .part import Part


class Range(NamedTuple):
    """Documents of a segment, by their places in the part: from the first to before the last."""

    part: Part
    segment: tuple[str, int]
    first: int
    last: int


def arrived(part: Part, segments: Iterable[tuple[str, int]]) -> list[Range]:
    """Return which of the segments came with a part, each piece of one apart, and which documents lie there.

    For all at once: one by one, some thousand segments would take a tenth of a second.
    """
    runs = {run: at for at, run in enumerate(part.runs)}
    wanted = {runs[run] << 32 | number: (run, number) for run, number in segments if run in runs}
    rows = part.columns["segments"][part.columns["by_run"]]
    codes = rows["run"].astype(np.uint64) << np.uint64(32) | rows["number"]
    asked = np.array(sorted(wanted), np.uint64)
    firsts, lasts = (np.searchsorted(codes, asked, side).tolist() for side in ("left", "right"))
    found = [
        (int(part.columns["by_run"][at]), wanted[code])
        for code, first, last in zip(asked.tolist(), firsts, lasts, strict=True)
        for at in range(first, last)
    ]
    return _ranges(part, sorted(found))


def _ranges(part: Part, found: list[tuple[int, tuple[str, int]]]) -> list[Range]:
    """Return the ranges of segments, given their places in the part's list, ascending."""
    if not found:
        return []
    documents = part.columns["documents"]["segment"]
    start = bisect_left(documents, found[0][0])
    places = np.array([place for place, _ in found])
    firsts, lasts = (np.searchsorted(documents[start:], places, side) + start for side in ("left", "right"))
    rows = zip(found, firsts.tolist(), lasts.tolist(), strict=True)
    return [Range(part, segment, first, last) for (_, segment), first, last in rows]
