"""Turn the rows of a report into columns of numbers and tables of strings. No I/O.

Columns are shorter than objects, and faster to read. A missing number is -1.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

UNKNOWN = -1
NO_RULE, NOT_IN_FORCE, IN_FORCE, NAMED = range(4)
RATE = 10_000


class ClusterRow(NamedTuple):
    """An original with copies."""

    origin: int
    path: str
    degree: int
    """Copies, including those without a URL."""
    listed: int
    """The number of its rows among the members. Members are in the order of their clusters."""
    age: int
    """Seconds between its first visit and the report."""
    snippet: str
    """The beginning of its text; "" where no feed has it."""


class MemberRow(NamedTuple):
    """The URL of a copy."""

    origin: int
    path: str | int
    """The path of the URL; 0 if it is that of the original, as with most copies on mirrors."""
    age: int
    """Seconds between its last visit and the report."""
    size: int
    """Bytes of the response; 0 if unknown."""
    snippet: str
    """The beginning of its text; "" where no feed has it."""


class EvidenceRow(NamedTuple):
    """The evidence on a copy: further columns of the members."""

    kind: int = UNKNOWN
    detector: int = UNKNOWN
    hamming: int = UNKNOWN
    resemblance: int = UNKNOWN
    containment: int = UNKNOWN
    ratio: int = UNKNOWN


class EdgeRow(NamedTuple):
    """Two hosts, the first with copies of the second's pages."""

    mirror: int
    original: int
    urls: int
    state: int
    confidence: int
    agreeing: int
    disagreeing: int
    paths: str
    """Prefixes and endings in which the paths differ, such as `/m/… → /…`; "" for equal paths."""


class RunRow(NamedTuple):
    """The outcome of a run."""

    id: str
    writer: str
    started: int
    closed: int
    changes: str
    """The changes of the site as a phrase; "" if they were not counted."""
    documents: int
    duplicates: int
    skipped: int
    rescued: int
    bytes: int


class Strings:
    """Strings by number, so that each is written once."""

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}

    def number(self, string: str) -> int:
        """Return the number of a string. A new string gets the next number."""
        return self._numbers.setdefault(string, len(self._numbers))

    def all(self) -> list[str]:
        """Return all strings in the order of their numbers."""
        return list(self._numbers)


def columns(row: type[NamedTuple], rows: Sequence[tuple[Any, ...]]) -> dict[str, list[Any]]:
    """Return the columns of rows by name."""
    return {name: [cells[place] for cells in rows] for place, name in enumerate(row._fields)}


def rate(value: float) -> int:
    """Return a share or a ratio as a whole number of ten-thousandths."""
    return round(value * RATE) if math.isfinite(value) else UNKNOWN
