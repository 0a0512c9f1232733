"""Which documents and segments of a store's parts count no more. No I/O but the mapped memory."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt

from ..index.packed import Array
from .part import Part
from .runs import Run

_ALONE, _WITH_RUN, _HIDDEN = 1, 2, 4  # why a document is not found; the last: RAM still has it


class Lost:
    """What is forgotten of some parts, one by one or with its run, and what is hidden while RAM still has it."""

    def __init__(self) -> None:
        self.numbers: set[int] = set()
        """Of documents forgotten one by one since the parts were made."""
        self._parts: Sequence[Part] = ()
        self._why: list[bytearray | None] = []  # by part: a byte for each document, 0 where it is held
        self._segments: list[npt.NDArray[np.bool_] | None] = []  # by part: which are forgotten
        self._count = 0

    def show(self, parts: Sequence[Part], runs: Mapping[str, Run]) -> None:
        """Go by these parts from now on; nothing is hidden."""
        self._parts, self._why, self._count = parts, [None] * len(parts), 0
        stored = self._stored()
        self.numbers.difference_update(stored.tolist() if self.numbers else ())
        numbers = np.concatenate([stored, np.fromiter(self.numbers, np.uint32, len(self.numbers))])
        for at, part in enumerate(parts):
            mine = numbers[(numbers >= part.first) & (numbers < part.last)]
            if len(mine):
                self._writable(at)[mine - part.first] |= _ALONE
        self.forget_runs(runs)

    def _stored(self) -> Array:
        none: Array = np.zeros(0, np.uint32)
        return np.concatenate([none, *(part.columns["gone"] for part in self._parts)])

    def all_numbers(self) -> set[int]:
        """Return the numbers of all documents that were forgotten one by one."""
        return self.numbers | set(self._stored().tolist())

    def forget_runs(self, runs: Mapping[str, Run]) -> None:
        """Forget what was written in segments that runs have forgotten."""
        self._segments = [_segments_forgotten(part, runs) for part in self._parts]
        for at, (part, segments) in enumerate(zip(self._parts, self._segments, strict=True)):
            if segments is not None:
                self._writable(at)[segments[part.columns["documents"]["segment"]]] |= _WITH_RUN
        self._count = sum(len(why) - why.count(0) for why in self._why if why)

    def forget(self, number: int) -> None:
        """Forget the document of a number."""
        self.numbers.add(number)
        self._mark(number, _ALONE)

    def hide(self, part: Part, first: int, last: int) -> None:
        """Have the documents at some places of a part not be found until they are uncovered."""
        why = self._writable(self._parts.index(part))[first:last]
        self._count += len(why) - int(np.count_nonzero(why))
        why |= _HIDDEN

    def uncover(self, number: int) -> None:
        self._mark(number, 0, _HIDDEN)

    def _mark(self, number: int, reason: int, no_more: int = 0) -> None:
        at = place_among(self._parts, number)
        if at is not None:
            why, place = self._writable(at), number - self._parts[at].first
            before = int(why[place])
            why[place] = after = (before | reason) & ~no_more
            self._count += (after > 0) - (before > 0)

    def _writable(self, at: int) -> npt.NDArray[np.uint8]:
        why = self._why[at]
        if why is None:
            why = self._why[at] = bytearray(len(self._parts[at]))
        return np.frombuffer(why, np.uint8)

    def is_gone(self, number: int) -> bool:
        """Say whether a document is not found, for whatever reason."""
        return self._reason(number) > 0

    def is_forgotten(self, number: int) -> bool:
        """Say whether a document is forgotten, be it hidden or not."""
        return self._reason(number) & ~_HIDDEN > 0

    def _reason(self, number: int) -> int:
        at = place_among(self._parts, number)
        why = self._why[at] if at is not None else None
        return why[number - self._parts[at].first] if why and at is not None else 0

    def places(self, at: int) -> bytearray | None:
        """Return by place what is not 0 for the documents of a part that are not found; None where all are."""
        return self._why[at]

    def documents(self, at: int) -> npt.NDArray[np.bool_]:
        """Return which documents of a part are not found."""
        return np.frombuffer(self._why[at] or bytes(len(self._parts[at])), np.uint8).astype(bool)

    def has_segment(self, at: int, segment: int) -> bool:
        """Say whether a segment of a part, given by its place, is forgotten."""
        segments = self._segments[at]
        return segments is not None and bool(segments[segment])

    def links(self, at: int) -> npt.NDArray[np.bool_]:
        """Return which links of a part are forgotten with their segments."""
        rows, segments = self._parts[at].columns["link_rows"]["segment"], self._segments[at]
        return np.zeros(len(rows), bool) if segments is None else segments[rows]

    def __len__(self) -> int:
        """How many documents are not found."""
        return self._count


def place_among(parts: Sequence[Part], number: int) -> int | None:
    """Return which of the parts, in the order of their documents' numbers, has a document."""
    at = bisect_right(parts, number, key=lambda part: part.first) - 1
    return at if at >= 0 and number < parts[at].last else None


def _segments_forgotten(part: Part, runs: Mapping[str, Run]) -> npt.NDArray[np.bool_] | None:
    rows = part.columns["segments"]
    ranges = [(at, *ends) for at, name in enumerate(part.runs) if name in runs for ends in runs[name].forgotten]
    lost = np.zeros(len(rows), bool)
    for at, start, end in ranges:
        lost |= (rows["run"] == at) & (rows["number"] >= start) & (rows["number"] < end)
    return lost if lost.any() else None
