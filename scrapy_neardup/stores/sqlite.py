"""The store on disk: the store in RAM, with every commit in a log that it is rebuilt from.

Rows of the log, by key:
- `meta/NAMESPACE`: JSON, the version of the format and what the fingerprints depend on,
- `run/NAMESPACE/RUN`: JSON, a `Run`,
- `segment/NAMESPACE/RUN/NUMBER`: a batch of documents and links (see `segments`).
"""

from __future__ import annotations

import os
import sqlite3
import time
from collections.abc import Iterable, Sequence
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from urllib.parse import quote

from ..detectors.base import Detector
from ..fingerprints import sketch
from ..index.relations import Row
from ..signature import Key, Link, Signature
from ..text import tokens
from . import segments
from .base import StoreError
from .log import Log
from .memory import MemoryStore
from .meta import merge_meta
from .runs import Run, RunLock, new_id
from .segments import Batch

BATCH, BATCH_SECONDS = 1000, 0.5  # what a segment holds at most, and how long it is held back
Rows = list[tuple[str, bytes]]


class SqliteStore(MemoryStore):
    """A store in one file, for several processes of one machine; each sees what the others committed at `refresh`.

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
        super().__init__(detectors)
        self._namespace = quote(namespace, safe="")
        self._forgets = unclean_run == "forget"
        self._runs: dict[str, Run] = {}
        self._keys: dict[Key, Signature] = {}
        self._segments: dict[str, set[int]] = {}
        self._batch = Batch([], [], [])
        self._flushed = time.monotonic()
        self._news: Future[Rows] | None = None
        # One name for the file and its locks, by whatever link it was reached.
        self._log = Log(os.path.realpath(path))
        self._lock: RunLock | None = None
        try:
            self._begin(detectors, run)
        except sqlite3.Error as error:
            self._abandon()
            raise self._refusal("can't be read", error) from error
        except BaseException:
            self._abandon()
            raise

    # What is asked of every store

    def commit(self, signature: Signature) -> None:
        self._batch.signatures.append(signature)
        self._flush_in_time()

    def record(self, link: Link) -> None:
        super().record(link)
        if self.resolve(link.url) is link:
            self._batch.links.append(link)
            self._flush_in_time()

    def learn(self, trials: Iterable[Row]) -> None:
        self._batch.trials.extend(trials)
        self._flush_in_time()

    def _flush_in_time(self) -> None:
        """Set out to write a batch that is large or old, for those who do not flush; what fails is tried again."""
        if sum(len(part) for part in self._batch) >= BATCH or time.monotonic() - self._flushed > BATCH_SECONDS:
            with suppress(StoreError):
                self.flush(wait=False)

    def withdraw(self, signature: Signature) -> None:
        super().withdraw(signature)
        if signature.key:
            self._keys.pop(signature.key, None)

    def flush(self, *, wait: bool = True) -> None:
        self._flushed = time.monotonic()
        batch, self._batch = self._batch, Batch([], [], [])
        if any(batch):
            segment = segments.encode(self.run, self._number, batch)
            self._keys.update((s.key, s) for s in batch.signatures if s.key)
            self._log.append(self._segment_key(self.run, self._number), segment)
            self._segments.setdefault(self.run, set()).add(self._number)
            self._number += 1
        self._log.sync(wait=wait)

    def refresh(self) -> None:
        if self._news and self._news.done():
            news, self._news = self._news, None
            rows = self._received(news)
            self._read_runs(rows)
            self._take_in(rows)
        if self._news is None:
            self._news = self._asked_for()

    def _asked_for(self) -> Future[Rows]:
        return self._log.news(*(f"{kind}/{self._namespace}/" for kind in ("run", "segment")))

    def _received(self, news: Future[Rows]) -> Rows:
        try:
            return news.result()
        except sqlite3.Error as error:
            raise self._refusal("can't be read", error) from error

    def close(self, *, clean: bool = True) -> None:
        try:
            self.flush()
            if self.run and clean:
                self._save(self._runs[self.run].ended(self._number).with_stats(self.stats))
                self._log.sync(wait=True)
        finally:
            self._abandon()

    def runs(self) -> list[Run]:
        return sorted(self._runs.values(), key=lambda run: run.started)

    def describe(self) -> dict[str, object]:
        path = Path(self._log.path)
        return {
            "store": str(path),
            "bytes": sum(file.stat().st_size for file in (path, Path(f"{path}-wal")) if file.exists()),
            "runs": len(self._runs),
        }

    # The life of a run

    def _begin(self, detectors: Sequence[Detector], run: str | None) -> None:
        rows = self._received(self._asked_for())
        self._read_runs(rows)
        if run is not None:
            self.run = self._claim_run(run)
        self._check_schemes(self._log.get(f"meta/{self._namespace}"), detectors)
        for record in list(self._runs.values()) if self.run else ():
            if record.closed is None:
                self._end_unclean(record, rows)
        self._take_in(rows)
        if self.run:
            mine = self._runs.get(self.run) or Run(self.run, time.time())
            self._number = mine.sealed
            self._save(replace(mine, closed=None))
            self._log.sync(wait=True)

    def _claim_run(self, wanted: str) -> str:
        """Take the lock of the run wanted, or of a new one."""
        name = wanted or new_id()
        for run in (name, *(f"{name}-{n}" for n in range(1, 1000))):
            lock = RunLock(self._log.path, run)
            if (run == wanted or run not in self._runs) and lock.acquire():
                self._lock = lock
                return run
        raise StoreError(f"store {self._log.path!r}: no free name for a run")

    def _end_unclean(self, run: Run, rows: Rows) -> None:
        """End a run that died: its unsealed segments are forgotten, or sealed if they are to be kept."""
        if run.id == self.run:
            self._seal_or_forget(run, rows)
            return
        lock = RunLock(self._log.path, run.id)
        if not lock.acquire():
            return  # alive in another process
        now = self._log.get(f"run/{self._namespace}/{run.id}")
        if now and Run.load(now).closed is not None:
            self._runs[run.id] = Run.load(now)  # it closed while we were reading
        else:
            self._seal_or_forget(run, rows)
        lock.release()

    def _seal_or_forget(self, run: Run, rows: Rows) -> None:
        numbers = [number for name, number in map(self._segment_of, dict(rows)) if name == run.id]
        ended = run.ended(max(numbers, default=-1) + 1, forget=self._forgets)
        self._save(ended)
        for number in filter(ended.has_forgotten, numbers):
            self._append(self._segment_key(run.id, number), None)

    def _abandon(self) -> None:
        self._log.close()
        if self._lock:
            self._lock.release()

    # Rows of the log

    def _check_schemes(self, stored: bytes | None, detectors: Sequence[Detector]) -> None:
        try:
            meta = merge_meta(
                stored, {"sketch": sketch.SCHEME, "tokens": tokens.SCHEME, **{d.name: d.scheme for d in detectors}}
            )
        except ValueError as error:
            raise self._refusal("does not fit", error) from error
        if meta != stored:
            self._append(f"meta/{self._namespace}", meta)

    def _refusal(self, what: str, why: object) -> StoreError:
        return StoreError(f"store {self._log.path!r} {what}: {why}; it was left as it is")

    def _save(self, run: Run) -> None:
        self._runs[run.id] = run
        self._append(f"run/{self._namespace}/{run.id}", run.dump())

    def _append(self, key: str, value: bytes | None) -> None:
        if self.run:  # else the store is only looked into
            self._log.append(key, value)

    def _segment_key(self, run: str, number: int | str) -> str:
        return f"segment/{self._namespace}/{run}/{number}"

    def _segment_of(self, key: str) -> tuple[str, int]:
        """Return the run and the number in a row's key; ("", 0) where it is no segment of this namespace."""
        run, _, number = key.removeprefix(f"segment/{self._namespace}/").partition("/")
        return (run, int(number)) if key == self._segment_key(run, number) and number.isdecimal() else ("", 0)

    def _read_runs(self, rows: Rows) -> None:
        prefix = f"run/{self._namespace}/"
        for key, value in rows:
            if key.startswith(prefix):
                try:
                    run = Run.load(value)
                except ValueError as error:
                    raise self._refusal("can't be read", error) from error
                self._runs[run.id] = run
                self._drop_forgotten(run)

    def _drop_forgotten(self, run: Run) -> None:
        """Let go of what another process said is forgotten."""
        if any(map(run.has_forgotten, self._segments.get(run.id, ()))):
            self._segments[run.id] = {n for n in self._segments[run.id] if not run.has_forgotten(n)}
            for key in [k for k in self._keys if k[0] == run.id and run.has_forgotten(k[1])]:
                self.withdraw(self._keys[key])

    def _take_in(self, rows: Rows) -> None:
        """Enter the documents and links of segments that are not known yet."""
        for key, value in rows:
            name, number = self._segment_of(key)
            known = self._segments.setdefault(name, set())
            run = self._runs.get(name)
            if name and number not in known and not (run and run.has_forgotten(number)):
                known.add(number)
                self._enter(name, number, value)

    def _enter(self, run: str, number: int, segment: bytes) -> None:
        try:
            batch = segments.decode(run, number, segment, self._keys.get)
        except ValueError as error:
            raise self._refusal("can't be read", error) from error
        for signature in batch.signatures:
            self.add(signature)
        self._keys.update((s.key, s) for s in batch.signatures if s.key)
        for link in batch.links:
            super().record(link)
        self.hosts.load(batch.trials)
