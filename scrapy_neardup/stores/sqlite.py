"""The store on disk: every commit goes into a log, and from there, with many others, into parts.

Rows of the log, by key:
- `meta/NAMESPACE`: JSON, the version of the format and what the fingerprints depend on,
- `run/NAMESPACE/RUN`: JSON, a `Run`,
- `segment/NAMESPACE/RUN/NUMBER`: a batch of documents and links (see `segments`) that is in no part yet,
- `parts/NAMESPACE`: JSON, the names of the files that are the parts (see `manifest`).
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from urllib.parse import quote

from ..detectors.base import Detector
from ..fingerprints import sketch
from ..index.relations import Row
from ..signature import Link, Signature
from ..text import tokens
from . import manifest, segments
from .base import Forgotten, Selection, StoreError
from .layered import LayeredStore
from .log import Log
from .meta import merge_meta, own_fingerprints
from .part import Part
from .runs import Run, RunLock, new_id
from .segments import Batch
from .tidying import Tidying

BATCH, BATCH_SECONDS = 1000, 0.5  # what a segment holds at most, and how long it is held back
Rows = list[tuple[str, bytes]]


class SqliteStore(LayeredStore):
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
        super().__init__(detectors)
        self._namespace = quote(namespace, safe="")
        self._forgets = unclean_run == "forget"
        self._runs: dict[str, Run] = {}
        self._batch = Batch()
        self._flushed = time.monotonic()
        self._news: Future[Rows] | None = None
        # One name for the file and its locks, by whatever link it was reached.
        self._log = Log(os.path.realpath(path), writes=run is not None)
        self._lock: RunLock | None = None
        self._tidying = Tidying(self._log.path, self._namespace)
        try:
            self._begin(detectors, run)
        except BaseException:
            self._abandon()
            raise

    # What is asked of every store

    def commit(self, signature: Signature) -> None:
        self._batch.signatures.append(signature)
        self._flush_in_time()

    def record(self, link: Link) -> None:
        super().record(link)
        if self.newest.get(link.digest) is link:
            self._batch.links.append(link)
            self._flush_in_time()

    def learn(self, trials: Iterable[Row]) -> None:
        self._batch.trials.extend(trials)
        self._flush_in_time()

    def _flush_in_time(self) -> None:
        """Set out to write a batch that is large or old, for those who do not flush; what fails is tried again."""
        if len(self._batch) >= BATCH or time.monotonic() - self._flushed > BATCH_SECONDS:
            with suppress(StoreError):
                self.flush(wait=False)

    def forget(self, what: Selection) -> Forgotten:
        if what.run is not None:
            return self._forget_run(what.run)
        return super().forget(what)

    def withdraw(self, signature: Signature) -> None:
        key = self.parts.key(signature)
        if key and self.holds(signature):
            self._batch.forgotten.append(key)
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
            self._tidying.begin_if_due(len(self.fresh) - len(self._leaving), len(self.newest), len(self.batches))

    def refresh(self) -> None:
        super().refresh()
        if self._news and self._news.done():
            news, self._news = self._news, None
            self._receive(news.result())
        if self._news is None:
            self._news = self._asked_for()

    def _asked_for(self) -> Future[Rows]:
        return self._log.news(*(f"{kind}/{self._namespace}/" for kind in ("run", "segment")), self._manifest)

    @property
    def _manifest(self) -> str:
        return f"parts/{self._namespace}"

    def _receive(self, rows: Rows) -> None:
        self._read_runs(rows)
        self._map_parts(rows)
        self._take_in(rows)

    def close(self, *, clean: bool = True) -> None:
        try:
            self.flush()
            if self.run and clean:
                self._save(self._runs[self.run].ended(self._number).with_stats(self.stats))
                self._log.sync(wait=True)
                self._tidying.wait()
        finally:
            self._abandon()

    def runs(self) -> list[Run]:
        return sorted(self._runs.values(), key=lambda run: run.started)

    def describe(self) -> dict[str, object]:
        path = Path(self._log.path)
        return {
            "store": str(path),
            "bytes": sum(file.stat().st_size for file in (path, Path(f"{path}-wal")) if file.exists())
            + sum(part.file.stat().st_size for part in self.parts.all if part.file),
            "parts": len(self.parts.all),
            "runs": len(self._runs),
        }

    @property
    def known_runs(self) -> Mapping[str, Run]:
        """The runs by id."""
        return self._runs

    @property
    def own_fingerprints(self) -> frozenset[str]:
        """The names of detectors with indexes of their own, as all who opened the store said."""
        return own_fingerprints(self._log.get(f"meta/{self._namespace}"))

    # The life of a run

    def _begin(self, detectors: Sequence[Detector], run: str | None) -> None:
        rows = self._asked_for().result()
        self._read_runs(rows)
        if run is not None:
            self.run = self._claim_run(run)
        self._check_schemes(self._log.get(f"meta/{self._namespace}"), detectors)
        self._map_parts(rows)
        for record in list(self._runs.values()) if self.run else ():
            if record.closed is None:
                self._end_unclean(record, rows)
        self._map_parts(rows)
        self._load_notes()
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
        ended = run.ended(max(max(numbers, default=-1) + 1, self.parts.segments_of(run.id)), forget=self._forgets)
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
                stored,
                {"sketch": sketch.SCHEME, "tokens": tokens.SCHEME, **{d.name: d.scheme for d in detectors}},
                self.parts.own,
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
        """Let go of what a run, maybe another process's, has forgotten."""
        if run.forgotten:
            for segment in [s for s in self.batches if s[0] == run.id and run.has_forgotten(s[1])]:
                self.let_go(self.batches.pop(segment))
            self.parts.forget_runs(self._runs)

    def _forget_run(self, name: str) -> Forgotten:
        """Forget all that a run committed; raise StoreError for one that is not known, or alive."""
        if name not in self._runs:
            raise StoreError(f"store {self._log.path!r} has no run {name!r}; `scrapy neardup runs` lists those it has")
        lock = RunLock(self._log.path, name)
        if name == self.run or not lock.acquire():
            raise StoreError(f"run {name!r} of store {self._log.path!r} is alive; end it first")
        documents, links = len(self), self.count_links()
        numbers = [number for run, number in self.batches if run == name]
        run = self._runs[name]
        trials = self._trials_of(name)
        highest = max(run.sealed, self.parts.segments_of(name), *numbers, 0) + 1
        self._save(run.without(highest))
        self._drop_forgotten(self._runs[name])
        self.learn(self.hosts.retract(trials))
        lock.release()
        return Forgotten(documents - len(self), links - self.count_links())

    def _trials_of(self, run: str) -> list[Row]:
        written = [row for (name, _), batch in self.batches.items() if name == run for row in batch.trials]
        return [*(row for part in self.parts.all for name, row in part.trials() if name == run), *written]

    def _map_parts(self, rows: Rows) -> None:
        """Go by the parts that the newest manifest among the rows names."""
        if listed := dict(rows).get(self._manifest):
            self.show(self._read_parts(listed), self._runs)

    def _read_parts(self, listed: bytes) -> list[Part]:
        try:
            return manifest.read_parts(self._log.path, listed, self.parts.all)
        except (ValueError, OSError) as error:
            now = self._log.get(self._manifest)
            if now is None or now == listed:
                raise self._refusal("can't be read", error) from error
        return self._read_parts(now)  # another process has just put them into others

    def check(self) -> None:
        if listed := self._log.get(self._manifest):
            try:
                manifest.read_parts(self._log.path, listed, (), check=True)
            except (ValueError, OSError) as error:
                raise self._refusal("is damaged", error) from error

    def _load_notes(self) -> None:
        for part in self.parts.all:
            self.hosts.load(row for run, row in part.trials())
            for name, when in part.met():
                self.hosts.meet_site(name, when)

    def _take_in(self, rows: Rows) -> None:
        """Enter the documents and links of segments that are not known yet."""
        for key, value in rows:
            segment = self._segment_of(key)
            run = self._runs.get(segment[0])
            if not segment[0] or segment in self.batches or self.parts.has_segment(*segment):
                continue
            if not (run and run.has_forgotten(segment[1])):
                self._enter(*segment, value)

    def _enter(self, run: str, number: int, segment: bytes) -> None:
        try:
            batch = segments.decode(run, number, segment, self.keyed)
        except ValueError as error:
            raise self._refusal("can't be read", error) from error
        self.batches[run, number] = batch
        for signature in batch.signatures:
            self.add(signature)
        for link in batch.links:
            super().record(link)
        for signature in filter(None, map(self.keyed, batch.forgotten)):
            super().withdraw(signature)
        self.hosts.load(batch.trials)
