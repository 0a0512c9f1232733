"""Open, record and close the runs of a store, and check the schemes of its fingerprints."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from ..fingerprints import sketch
from ..text import tokens
from . import meta, records
from .checks import check
from .interface import RUN, Backend, Entry, Record, Row, StoreError
from .runs import Run, new_id

if TYPE_CHECKING:
    from .lookup import Lookup


class Session:
    """The runs of a store, including the run of this process if it writes."""

    def __init__(self, backend: Backend, lookup: Lookup) -> None:
        self.run = ""
        """The id of the run of this process; "" if the store is open read-only."""
        self.runs: dict[str, Run] = {}
        """The records of all known runs by id."""
        self.erasures = 0
        """How often it became known that rows of a run were forgotten while the store is open."""
        self._backend = backend
        self._lookup = lookup
        self._last = 0
        self._has_begun = False
        self._has_told = True
        self._documents = self._urls = 0
        self._beyond: Mapping[str, int] = {}

    def begin(self, run: str | None, writer: str) -> list[Run]:
        """Open the run with the id `run`, or a new run if it is "". Return all dead runs, after taking their locks.

        A resumed run that had died is among the dead runs. With `run=None`, open the store read-only, and return no
        runs. Raise StoreError if the store can't be read, or has other schemes of fingerprints than the detectors.
        """
        self.update_runs(self._backend.scan(RUN))
        self.agree({}, writes=run is not None)
        if run is None:
            return []
        self.run = self._claimed(run)
        dead = self.hold_dead(self.others_open())
        self.update_runs(self._backend.get([f"{RUN}/{self.run}"]))  # its former process may have written until now
        dead += [each for each in self.runs.values() if each.closed is None and each.id == self.run]
        mine = self.runs.get(self.run) or Run(self.run, time.time())
        self._last, self._documents, self._urls = mine.sealed, mine.documents, mine.urls
        self._has_begun = True
        self.save(replace(mine, closed=None, writer=writer))
        return dead

    def others_open(self) -> list[str]:
        """Return the ids of all open runs except the run of this process. Some of them may be dead."""
        return [each.id for each in self.runs.values() if each.closed is None and each.id != self.run]

    def hold_dead(self, names: Iterable[str]) -> list[Run]:
        """Check which of the named runs are dead. Take the locks of the dead runs, and return their records."""
        held = [name for name in names if self._backend.hold_run(name)]
        self.update_runs(self._backend.get(f"{RUN}/{name}" for name in held))  # they may have been closed meanwhile
        dead = [self.runs[name] for name in held if self.runs[name].closed is None]
        for name in set(held).difference(each.id for each in dead):  # not dead, but closed
            self._backend.release_run(name)
        return dead

    def _claimed(self, wanted: str) -> str:
        """Take the lock of the run `wanted`, or of a new run if it is "". Return the id of the run."""
        name = wanted or new_id()
        for run in (name, *(f"{name}-{n}" for n in range(1, 1000))):
            if (run == wanted or run not in self.runs) and self._backend.hold_run(run):
                return run
        raise StoreError(f"store {self._backend.name!r}: no free name for a run")

    def agree(self, schemes: Mapping[str, str], *, writes: bool) -> None:
        """Compare `schemes` and those of the detectors with the stored schemes. Raise StoreError if one differs.

        With `writes`, store new schemes.
        """
        [*stored] = (self.load(row) for row in self._backend.get([meta.KEY]))
        if not stored and self.runs:
            raise self.refusal("can't be read", "the record of its schemes is missing; restore a backup")
        before: Any = stored[0] if stored else None
        made = {"sketch": sketch.SCHEME, "tokens": tokens.SCHEME, **self._lookup.schemes}
        try:
            self.made = meta.merged(meta.merged(before, made), schemes)
        except ValueError as error:
            raise self.refusal("does not fit", error) from error
        if writes and self.made != before:
            self._backend.write([Entry(meta.KEY, self.made)])

    def refusal(self, what: str, why: object) -> StoreError:
        return StoreError(f"store {self._backend.name!r} {what}: {why}; it was left as it is")

    def load(self, row: Row) -> Record:
        """Return the record of a row. Raise StoreError for a damaged row."""
        if not isinstance(row.value, bytes):
            return row.value
        try:
            record: Record = records.load(row.key, row.value)
            if isinstance(record, Run):
                check(record)
        except ValueError as error:
            raise self.refusal("can't be read", error) from error
        return record

    def update_runs(self, rows: Iterable[Row]) -> None:
        """Update `runs` from rows, except for the run of this process. Read the counts of imports again."""
        for row in rows:
            run = self.load(row)
            if isinstance(run, Run) and not (self._has_begun and run.id == self.run):
                self._set(run)
        if rows := self._backend.get([meta.COUNTS]):
            self._beyond = dict(self.load(next(iter(rows))))  # type: ignore[arg-type]

    def save(self, run: Run) -> None:
        """Write the record of a run."""
        self._set(run)
        self.write([Entry(f"{RUN}/{run.id}", run)])

    def _set(self, run: Run) -> None:
        known = self.runs.get(run.id)
        self.erasures += known is not None and known.forgotten != run.forgotten
        self.runs[run.id] = run

    # Writing

    def next_id(self) -> str:
        """Return the id of the next new row, `RUN/NUMBER`, in the run of this process."""
        self._last += 1
        return f"{self.run}/{self._last:06x}"

    def end(self, run: Run, last: int, *, forget: bool) -> None:
        """Write the record of a dead run as ended. `last` is its highest row number.

        With `forget`, mark the rows written after it was last closed as forgotten. The run of this process stays open.
        """
        ended = run.ended(last, forget=forget)
        if run.id == self.run:
            ended, self._last = replace(ended, closed=None), max(self._last, last)
        self.save(ended)

    def write(self, entries: Sequence[Entry], deleted: Sequence[Entry] = ()) -> None:
        """Write `entries` and delete `deleted`. On a server, write changed counts in the same batch.

        The counts are included since the process may die right after a server receives the batch. Other processes get
        news of the counts at the next flush.
        """
        counts = self._counts() if self._backend.is_remote else ()
        self._has_told = self._has_told and not (counts and self.run)
        self._backend.write([*entries, *(each._replace(keeps_place=True) for each in counts)], deleted)

    def count(self, *, documents: int = 0, urls: int = 0) -> None:
        """Add to the numbers of held documents and known URLs. Negative numbers subtract."""
        self._documents += documents
        self._urls += urls

    def save_counts(self) -> None:
        """Write the numbers of documents and URLs if they changed, or if other processes have no news of them yet."""
        counts = self._counts()
        if not (counts or self._has_told):
            counts = [Entry(f"{RUN}/{self.run}", self.runs[self.run])]
        self._has_told = True
        if counts:
            self._backend.write(counts)

    def _counts(self) -> list[Entry]:
        """Return the entry to write if the counts changed: the record of the run or, without a run, of imports."""
        if mine := self.runs.get(self.run):
            if (mine.documents, mine.urls) == (self._documents, self._urls):
                return []
            self.runs[self.run] = mine = replace(mine, documents=self._documents, urls=self._urls)
            return [Entry(f"{RUN}/{mine.id}", mine)]
        if not (self._documents or self._urls):
            return []
        more = {"documents": self._documents, "urls": self._urls}
        self._beyond = {name: int(self._beyond.get(name, 0)) + count for name, count in more.items()}
        self._documents = self._urls = 0
        return [Entry(meta.COUNTS, self._beyond)]

    def close(self, stats: Mapping[str, int]) -> None:
        """Write the record of this process's run as closed, with these stats."""
        mine = replace(self.runs[self.run], documents=self._documents, urls=self._urls)
        self.save(mine.ended(self._last).with_stats(stats))

    @property
    def documents(self) -> int:
        """The number of committed documents."""
        return self._documents + self._sum("documents")

    @property
    def urls(self) -> int:
        """The number of known URLs."""
        return self._urls + self._sum("urls")

    def _sum(self, name: str) -> int:
        others = [int(getattr(run, name)) for run in self.runs.values() if run.id != self.run]
        return sum(others) + int(self._beyond.get(name, 0))
