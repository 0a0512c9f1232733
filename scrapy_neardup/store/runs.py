"""The record of a run: one opening of a store for writing. No I/O."""

from __future__ import annotations

import re
import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from uuid import uuid4

_ID = re.compile(r"[\w.-]{1,200}")  # it becomes part of a file's name: one from a stranger is to lead nowhere else


@dataclass(frozen=True)
class Run:
    """The stored record of one run. Its rows are numbered from 1."""

    id: str
    started: float
    """Seconds since the epoch."""
    closed: float | None = None
    """None while it is open: it is alive, or it died."""
    sealed: int = 0
    """Rows up to this number are kept if the run dies; it goes on with higher ones."""
    paused: float = 0.0
    """When it was last closed, in seconds since the epoch; 0 where it never was."""
    forgotten: tuple[tuple[int, int], ...] = ()
    """Rows that were forgotten: ranges, from the first number to the last."""
    documents: int = 0
    """How many more documents are held through this run's writes; below 0 where it forgot those of others."""
    urls: int = 0
    """The same of URLs that are known."""
    stats: Mapping[str, int] = field(default_factory=dict)
    """Scrapy's stats of the run, without their prefix; of a run that was resumed the sums."""
    writer: str = ""
    """The spider or the command that opened it last; "" for a program of the user's."""

    def has_forgotten(self, number: int) -> bool:
        """Return whether a row was forgotten."""
        return any(first <= number <= last for first, last in self.forgotten)

    def ended(self, last: int, *, forget: bool = False) -> Run:
        """Return the record of this run at its end, with rows up to a number; `forget` those that are not sealed."""
        now = max(self.started, time.time())
        lost = ((self.sealed + 1, last),) if forget and last > self.sealed else ()
        paused = self.paused if forget else now
        return replace(self, closed=now, sealed=max(self.sealed, last), paused=paused, forgotten=self.forgotten + lost)

    def without(self, last: int) -> Run:
        """Return the record of this run once its rows up to a number are forgotten."""
        return replace(self, sealed=max(self.sealed, last), forgotten=((1, last),) if last else ())

    def with_stats(self, stats: Mapping[str, int]) -> Run:
        """Return the record with what was counted since it was last opened."""
        counted = Counter({name: int(count) for name, count in stats.items()})  # True is no count
        return replace(self, stats=dict(Counter(self.stats) + counted))


def is_id(name: str) -> bool:
    """Return whether a run may have that name."""
    return _ID.fullmatch(name) is not None


def new_id() -> str:
    """Return an id that says when the run began; another store may have it by chance, so try to hold it."""
    return f"{time.strftime('%y%m%d-%H%M%S')}-{uuid4().hex[:4]}"
