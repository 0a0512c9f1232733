"""The store on disk: every commit goes into a log, and from there, with many others, into parts."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from ..detectors.base import Detector
from ..fingerprints import sketch
from ..index.relations import Row
from ..signature import Link, Signature
from ..text import tokens
from . import segments
from .base import Forgotten, Selection, StoreError
from .describing import count_urls, described
from .layered import AT_ADD
from .log import Log, Rows
from .logged import LoggedStore, News
from .meta import merge_meta
from .runs import Run, RunLock, new_id
from .segments import Batch
from .tidying import Tidying

BATCH, BATCH_SECONDS = 1000, 0.5  # what a segment holds at most, and how long it is held back


class SqliteStore(LoggedStore):
    """A store in a file, for several processes of one machine; each sees what the others committed at `refresh`.

    `run` is the id of a run to go on with, "" for a new one, None to look into the store without writing.
    """

    def __init__(
        self,
        path: str,
        detectors: Sequence[Detector],
        *,
        namespace: str = "",
        unclean_run: str = "forget",
        run: str | None = "",
    ) -> None:
        # One name for the file and its locks, by whatever link it was reached.
        super().__init__(detectors, Log(os.path.realpath(path), writes=run is not None), namespace)
        self._forgets = unclean_run == "forget"
        self._batch = Batch()
        self._flushed = time.monotonic()
        self._lock: RunLock | None = None
        self._dead: list[RunLock] = []
        """The locks of runs that died, while they are ended."""
        self._tidying = Tidying(self._log.path, self._namespace)
        try:
            self._begin(detectors, run)
        except BaseException:
            self._abandon()
            raise

    # What is asked of every store

    def commit(self, signature: Signature) -> None:
        if self.holds(signature):  # else it was forgotten while it was pending
            self._batch.signatures.append(signature)
            self._flush_in_time()

    def record(self, link: Link) -> None:
        super().record(link)
        if self.newest.get(link.digest) is link:
            self._batch.links.append(link)
            self._go_on(AT_ADD)
            self._flush_in_time()

    def learn(self, trials: Iterable[Row]) -> None:
        self._batch.trials.extend(trials)
        self._flush_in_time()

    def _flush_in_time(self) -> None:
        """Set out to write a batch that is large or old, for those who do not flush; what fails is tried again."""
        if len(self._batch) >= BATCH or time.monotonic() - self._flushed > BATCH_SECONDS:
            with suppress(StoreError):
                self.flush(wait=False)
                self.read_on()

    def forget(self, what: Selection) -> Forgotten:
        if what.run is not None:
            return self._forget_run(what.run)
        return super().forget(what)

    def withdraw(self, signature: Signature) -> None:
        key = self.parts.key(signature)
        if key and self.holds(signature):
            self._batch.forgotten.append(key)
            self._flush_in_time()
        if signature in self._batch.signatures:
            self._batch.signatures.remove(signature)
        super().withdraw(signature)

    def flush(self, *, wait: bool = True) -> None:
        self._flushed = time.monotonic()
        batch, self._batch = self._batch, Batch()
        if batch:
            segment = segments.encode(self.run, self._number, batch, self.parts.key)
            self.batches[self.run, self._number] = batch
            self._log.append(self._segment_key(self.run, self._number), segment)
            self._number += 1
        self._log.sync(wait=wait)
        if self.run:
            self._tidying.begin_if_due(len(self.fresh), len(self.newest), len(self.batches))

    def close(self, *, clean: bool = True) -> None:
        try:
            self.flush()
            if self.run and clean:
                self._save(self._runs[self.run].ended(self._number).with_stats(self.stats))
                self._log.sync(wait=True)
                self._tidying.wait()
        finally:
            self._abandon()

    def is_alive(self, run: str) -> bool:
        if run == self.run or RunLock(self._log.path, run).is_held():
            return True
        key = f"run/{self._namespace}/{run}"
        if stored := self._log.get(key):  # it may have closed while we looked
            self._read_runs([(key, stored)])
        return False

    def describe(self) -> dict[str, object]:
        return {"store": self._log.path, **described(self, Path(self._log.path)), "runs": len(self._runs)}

    # The life of a run

    def _begin(self, detectors: Sequence[Detector], run: str | None) -> None:
        news = self._asked_for().result()
        rows = news.rows
        self._read_runs(rows)
        if run is not None:
            self.run = self._claim_run(run)
            self._dead = self._lock_dead()
            more = self._asked_for().result()  # what these wrote until we had their locks
            self._read_runs(more.rows)
            rows += more.rows
            news = News(rows, more.parts or news.parts)
        self._check_schemes(self._log.get(f"meta/{self._namespace}"), detectors)
        self._map_parts(news)
        for name in [self.run, *(lock.run for lock in self._dead)] if self.run else ():
            if (record := self._runs.get(name)) and record.closed is None:
                self._seal_or_forget(record, rows)
        self._map_parts(news._replace(parts=self.parts.all))
        self._work += map(self._learning, self.parts.all)
        self._take_in(rows)
        self.finish()
        self._raise_damage()
        if self.run:
            mine = self._runs.get(self.run) or Run(self.run, time.time())
            self._number = max(mine.sealed, self.parts.segments_of(self.run))
            self._save(replace(mine, closed=None))
            self._log.sync(wait=True)
        self._release_dead()  # only now: until it is on disk, another could take them for open

    def _claim_run(self, wanted: str) -> str:
        """Take the lock of the run wanted, or of a new one."""
        name = wanted or new_id()
        for run in (name, *(f"{name}-{n}" for n in range(1, 1000))):
            lock = RunLock(self._log.path, run)
            if (run == wanted or run not in self._runs) and lock.acquire():
                self._lock = lock
                return run
        raise StoreError(f"store {self._log.path!r}: no free name for a run")

    def _lock_dead(self) -> list[RunLock]:
        """Take the locks of the runs that are not closed and that no living process has."""
        locks = [RunLock(self._log.path, r.id) for r in self._runs.values() if r.closed is None and r.id != self.run]
        return [lock for lock in locks if lock.acquire()]

    def _seal_or_forget(self, run: Run, rows: Rows) -> None:
        numbers = [number for name, number in map(self._segment_of, dict(rows)) if name == run.id]
        ended = run.ended(max(max(numbers, default=-1) + 1, self.parts.segments_of(run.id)), forget=self._forgets)
        self._save(ended)
        for number in filter(ended.has_forgotten, numbers):
            self._append(self._segment_key(run.id, number), None)

    def _release_dead(self) -> None:
        while self._dead:
            self._dead.pop().release()

    def _abandon(self) -> None:
        self._log.close()
        self._release_dead()
        if self._lock:
            self._lock.release()

    def _check_schemes(self, stored: bytes | None, detectors: Sequence[Detector]) -> None:
        if stored is None and self._runs:
            raise self._refusal("can't be read", "the record of what it was made with is missing; bring back a copy")
        try:
            meta = merge_meta(
                stored,
                {"sketch": sketch.SCHEME, "tokens": tokens.SCHEME, **{d.name: d.scheme for d in detectors}},
                self.parts.own,
            )
        except ValueError as error:
            raise self._refusal("does not fit", error) from error
        if meta != stored:
            self._append(f"meta/{self._namespace}", meta)

    # Forgetting a run

    def _forget_run(self, name: str) -> Forgotten:
        """Forget all that a run committed; raise StoreError for one that is not known, or alive."""
        if name not in self._runs:
            raise StoreError(f"store {self._log.path!r} has no run {name!r}; `scrapy neardup runs` lists those it has")
        lock = RunLock(self._log.path, name)
        if name == self.run or not lock.acquire():
            raise StoreError(f"run {name!r} of store {self._log.path!r} is alive; end it first")
        try:
            self._catch_up()  # since this store was opened the run may have gone on, and ended
            return self._forget_held(name)
        finally:
            lock.release()

    def _forget_held(self, name: str) -> Forgotten:
        """Forget all that a run committed of which this process has the lock."""
        documents, links = len(self), count_urls(self)
        numbers = [number for run, number in self.batches if run == name]
        run = self._runs[name]
        trials = self._trials_of(name)
        highest = max(run.sealed, self.parts.segments_of(name), *numbers, 0) + 1
        self._save(run.without(highest))
        self._drop_forgotten(self._runs[name])
        for number in numbers:
            self._append(self._segment_key(name, number), None)
        self.learn(self.hosts.retract(trials))
        self._log.sync(wait=True)
        return Forgotten(documents - len(self), links - count_urls(self))

    def _trials_of(self, run: str) -> list[Row]:
        return [row for name, row in self.all_trials() if name == run]
