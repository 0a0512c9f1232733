"""The record of a run. No I/O."""

from __future__ import annotations

import re
import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from uuid import uuid4

_ID = re.compile(r"[\w.-]{1,200}")  # part of a file name, so a hostile id must not lead out of the folder


@dataclass(frozen=True)
class Run:
    """The stored record of a run, which is one opening of a store for writing. Rows are numbered from 1."""

    id: str
    started: float
    """The time of the first opening, in seconds since the epoch."""
    closed: float | None = None
    """The time of the end, in seconds since the epoch. None for an open or dead run."""
    sealed: int = 0
    """The highest row number when the run was last closed. Rows up to it are kept if the resumed run dies."""
    paused: float = 0.0
    """The time of the last clean end, in seconds since the epoch; 0 if there was none."""
    forgotten: tuple[tuple[int, int], ...] = ()
    """Ranges of forgotten rows, as first and last number."""
    documents: int = 0
    """The change in the number of held documents by this run. Negative if it forgot documents of other runs."""
    urls: int = 0
    """The change in the number of known URLs by this run."""
    stats: Mapping[str, int] = field(default_factory=dict)
    """Scrapy's stats of the run, without their prefix. For a resumed run, the sums over all openings."""
    writer: str = ""
    """The spider or command that last opened the run; "" for another program."""

    def has_forgotten(self, number: int) -> bool:
        """Return whether the row with this number was forgotten."""
        return any(first <= number <= last for first, last in self.forgotten)

    def ended(self, last: int, *, forget: bool = False) -> Run:
        """Return the record of the ended run with rows up to `last`. `forget` marks unsealed rows as forgotten."""
        now = max(self.started, time.time())
        lost = ((self.sealed + 1, last),) if forget and last > self.sealed else ()
        paused = self.paused if forget else now
        return replace(self, closed=now, sealed=max(self.sealed, last), paused=paused, forgotten=self.forgotten + lost)

    def without(self, last: int) -> Run:
        """Return the record with all rows up to `last` marked as forgotten."""
        return replace(self, sealed=max(self.sealed, last), forgotten=((1, last),) if last else ())

    def with_stats(self, stats: Mapping[str, int]) -> Run:
        """Return the record with the stats of the current opening added."""
        sums = {name: self.stats.get(name, 0) + int(count) for name, count in stats.items()}  # bool is not a count
        return replace(self, stats={**self.stats, **sums})


def is_id(name: str) -> bool:
    """Return whether a name is a valid id of a run."""
    return _ID.fullmatch(name) is not None


def new_id() -> str:
    """Return a new id that contains the time. Another process may have the same id, so take its lock before use."""
    return f"{time.strftime('%y%m%d-%H%M%S')}-{uuid4().hex[:4]}"
