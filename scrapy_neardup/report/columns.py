"""Turn the rows of a report into columns of numbers and tables of strings. No I/O.

As JSON, columns are shorter than a list of objects, and faster to read. A missing number is -1.
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
    """The number of copies, including copies without a URL."""
    listed: int
    """The number of its copies in the table of members, which has the copies of each cluster in turn."""
    age: int
    """Seconds between its first visit and the report."""
    snippet: str
    """The beginning of its text; "" if no feed has the text."""


class MemberRow(NamedTuple):
    """The URL of a copy."""

    origin: int
    path: str | int
    """The path of the URL; 0 if the original has the same path, as with most copies on mirrors."""
    age: int
    """Seconds between its last visit and the report."""
    size: int
    """Bytes of the response; 0 if unknown."""
    snippet: str
    """The beginning of its text; "" if no feed has the text."""


class EvidenceRow(NamedTuple):
    """The evidence on a copy, in further columns of the table of members."""

    kind: int = UNKNOWN
    detector: int = UNKNOWN
    hamming: int = UNKNOWN
    resemblance: int = UNKNOWN
    containment: int = UNKNOWN
    ratio: int = UNKNOWN


class EdgeRow(NamedTuple):
    """A pair of hosts: the first one has copies of pages of the second one."""

    mirror: int
    original: int
    urls: int
    state: int
    confidence: int
    agreeing: int
    disagreeing: int
    paths: str
    """The prefixes and endings in which the paths of the two hosts differ, such as `/m/… → /…`; "" for equal paths."""


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
    """Gives each string a number, so that the string is written only once."""

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
    """Return a share or a ratio as a whole number of ten-thousandths; UNKNOWN if it is not finite."""
    return round(value * RATE) if math.isfinite(value) else UNKNOWN
