"""Rows of a report as columns of numbers that refer to string tables. No I/O.

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
    """A document that is held and has mirrors."""

    origin: int
    path: str
    degree: int
    """Mirrors; those that have no URL count too."""
    listed: int
    """How many of the rows of members are its own; they come in the order of the clusters."""
    age: int
    """Seconds from when it was first seen to when the report was made."""


class MemberRow(NamedTuple):
    """A mirror's URL."""

    origin: int
    path: str | int
    """0: the canonical's, as it is with most mirrors."""
    age: int
    """Seconds from when it was last seen to when the report was made."""
    size: int


class EvidenceRow(NamedTuple):
    """Why a URL was called a mirror: more columns of the members."""

    kind: int = UNKNOWN
    detector: int = UNKNOWN
    hamming: int = UNKNOWN
    resemblance: int = UNKNOWN
    containment: int = UNKNOWN
    ratio: int = UNKNOWN


class EdgeRow(NamedTuple):
    """Two hosts, of which one has mirrors of the other's pages."""

    mirror: int
    canonical: int
    urls: int
    state: int
    confidence: int
    agreeing: int
    disagreeing: int


class RunRow(NamedTuple):
    """What a run came to."""

    id: str
    started: int
    closed: int
    documents: int
    duplicates: int
    skipped: int
    rescued: int
    bytes: int


class Strings:
    """Strings by number: each is written once."""

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}

    def number(self, string: str) -> int:
        """Return the number of a string, a new one the first time."""
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
