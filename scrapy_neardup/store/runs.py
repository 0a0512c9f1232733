"""The record of a run: one opening of a store for writing. No I/O."""

from __future__ import annotations

import re
import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from uuid import uuid4

_ID = re.compile(r"[\w.-]{1,200}")  # becomes part of a file name, so a hostile id must not leave the folder


@dataclass(frozen=True)
class Run:
    """The stored record of one run. Its rows are numbered from 1."""

    id: str
    started: float
    """Seconds since the epoch."""
    closed: float | None = None
    """None while the run is open, and for a dead run."""
    sealed: int = 0
    """Rows up to this number are kept if the run dies. A resumed run continues with higher numbers."""
    paused: float = 0.0
    """The time of the last pause, in seconds since the epoch; 0 for none."""
    forgotten: tuple[tuple[int, int], ...] = ()
    """Ranges of forgotten rows, each from its first to its last number."""
    documents: int = 0
    """The change in the number of held documents by this run; negative if it forgot documents of other runs."""
    urls: int = 0
    """The change in the number of known URLs by this run."""
    stats: Mapping[str, int] = field(default_factory=dict)
    """Scrapy's stats of the run, without their prefix; for a resumed run the sums."""
    writer: str = ""
    """The spider or command that opened the run last; "" for another program."""

    def has_forgotten(self, number: int) -> bool:
        """Return whether a row was forgotten."""
        return any(first <= number <= last for first, last in self.forgotten)

    def ended(self, last: int, *, forget: bool = False) -> Run:
        """Return the record at the end of the run. `last` is its highest row number; `forget` drops unsealed rows."""
        now = max(self.started, time.time())
        lost = ((self.sealed + 1, last),) if forget and last > self.sealed else ()
        paused = self.paused if forget else now
        return replace(self, closed=now, sealed=max(self.sealed, last), paused=paused, forgotten=self.forgotten + lost)

    def without(self, last: int) -> Run:
        """Return the record after its rows up to `last` were forgotten."""
        return replace(self, sealed=max(self.sealed, last), forgotten=((1, last),) if last else ())

    def with_stats(self, stats: Mapping[str, int]) -> Run:
        """Return the record with the counts of the present opening added."""
        counted = Counter({name: int(count) for name, count in stats.items()})  # bool is not a count
        return replace(self, stats=dict(Counter(self.stats) + counted))


def is_id(name: str) -> bool:
    """Return whether a name is a valid id of a run."""
    return _ID.fullmatch(name) is not None


def new_id() -> str:
    """Return an id that contains the time. It may exist in another store, so it must be held before use."""
    return f"{time.strftime('%y%m%d-%H%M%S')}-{uuid4().hex[:4]}"
