"""Export a store as lines, and import lines into a store of any kind.

An import writes in chunks. If it is killed, the chunks written so far stay in the store. Importing the same lines
again changes nothing. Rows that the store has or has forgotten are skipped. If both stores have a visit of a URL, the
later one is kept. A running crawl sees imported rows as it sees rows of another process.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import chain, islice

from ..signature import Signature, Visit
from . import open_backend
from .interchange import Line, end_line, head_line, line_of, read_head, read_lines
from .interface import Entry
from .records import DOCUMENT, HOST, RUN, VISIT, Record, Run, id_of, place_of, postings
from .store import Store

CHUNK = 200  # rows in a chunk; each run among them needs an open lock file
LOCK, PAUSE = "~import", 0.1  # the lock of imports, a name that no run can have; seconds between two attempts


@dataclass
class Imported:
    """The numbers of imported and skipped rows."""

    documents: int = 0
    urls: int = 0
    """The number of URLs whose visit was imported."""
    known: int = 0
    """The number of documents that the store had before, or has forgotten."""


@contextmanager
def export_rows(address: str, namespace: str) -> Iterator[Iterator[Line]]:
    """Open a store for a `with` block, and yield an iterator of its lines. The first line has the counts.

    Raise StoreError if the store can't be read.
    """
    with _opened(address, namespace, writes=False) as store:
        yield _exported(store)


@contextmanager
def _opened(address: str, namespace: str, *, writes: bool) -> Iterator[Store]:
    """Open a store for a `with` block, without detectors and without a run. Unflushed rows are lost at its end."""
    store = Store(open_backend(address, namespace, writes=writes), (), run=None)
    try:
        yield store
    finally:
        store.backend.abandon()


def _exported(store: Store) -> Iterator[Line]:
    runs = {run.id: run for run in store.runs()}
    yield head_line(store.session.made["schemes"], store.session.documents, store.session.urls)
    yield from (line_of(f"{RUN}/{run.id}", run) for run in runs.values())
    for kind in (DOCUMENT, VISIT, HOST):
        for row in store.backend.scan(kind):
            record = None if row.is_pending else store.session.load(row)
            # A run that began after the export has no line, so its rows are left out.
            if record and place_of(_place(row.key, record))[0] in runs:
                yield line_of(row.key, record)
    yield end_line()


def import_rows(address: str, namespace: str, lines: Iterable[Line], *, chunk: int = CHUNK) -> Imported:
    """Import lines into a store, which is created if it does not exist.

    Raise ValueError for an invalid line and for truncated input. Raise StoreError if the schemes of the store differ
    from those of the lines, or the store can't be written.
    """
    lines = iter(lines)
    schemes, rows = read_head(next(lines, {})), read_lines(lines)
    chunks = iter(lambda: list(islice(rows, chunk)), [])
    first = next(chunks, [])  # read first, so that invalid input creates no store
    with _opened(address, namespace, writes=True) as store:
        store.session.agree(schemes, writes=True)
        with _alone(store):
            importing = _Import(store)
            for some in chain([first], chunks):
                importing.add(some)
    return importing.counts


@contextmanager
def _alone(store: Store) -> Iterator[None]:
    """Hold the lock of imports for a `with` block. Wait if another import holds it.

    Two imports must not run at once, since they add to the same counts.
    """
    while not store.backend.hold_run(LOCK):
        time.sleep(PAUSE)
    try:
        yield
    finally:
        store.backend.release_run(LOCK)


def merged(run: Run, known: Run | None) -> Run:
    """Merge the imported record of a run with `known`, the record that the importing store already has, if any.

    No living process may have the run open in that store.
    """
    if known is None:
        return run
    # The run continued in the other store. If it is resumed here, it must not use the same row numbers again.
    if run.sealed > known.sealed:
        return replace(run, forgotten=tuple(dict.fromkeys(known.forgotten + run.forgotten)))
    # If the imported run is open, it stays open here, so that its rows are forgotten with it.
    return replace(known, closed=None if run.closed is None else known.closed)


class _Import:
    """Imports chunks of rows into a store, and counts them."""

    def __init__(self, store: Store) -> None:
        self.counts = Imported()
        self._store = store
        self._backend = store.backend
        self._session = store.session

    def add(self, rows: list[tuple[str, Record]]) -> None:
        """Import a chunk of rows, and return once the rows are durable."""
        while self._store.refresh():
            pass
        self._session.update_runs([])  # reads the counts of other imports
        self._add_runs([record for _, record in rows if isinstance(record, Run)])
        self._add_rows(list(self._wanted(rows)))
        self._flush()

    def _flush(self) -> None:
        self._session.save_counts()
        self._backend.flush(wait=True)

    def _add_runs(self, runs: list[Run]) -> None:
        """Write records of runs that are new or changed, except for runs that are alive in this store."""
        known = self._session.runs
        news = [run for run in runs if merged(run, known.get(run.id)) != known.get(run.id)]
        held = [run for run in news if self._backend.hold_run(run.id)]
        try:
            self._session.update_runs(self._backend.get(f"{RUN}/{run.id}" for run in held))
            for run in held:
                before, after = known.get(run.id, Run(run.id, 0.0)), merged(run, known.get(run.id))
                self._session.count(documents=before.documents - after.documents, urls=before.urls - after.urls)
                self._session.save(after)
            self._flush()
        finally:
            for run in held:
                self._backend.release_run(run.id)

    def _wanted(self, rows: list[tuple[str, Record]]) -> Iterator[tuple[str, Record]]:
        """Yield the rows to import. Skip records of runs, forgotten rows, and rows of runs alive in this store.

        Raise ValueError if the store has no record of the run of a row.
        """
        runs = self._session.runs
        alive = {run.id for run in runs.values() if run.closed is None and self._backend.is_held(run.id)}
        for key, record in rows:
            if isinstance(record, Run):
                continue
            run, number = place_of(_place(key, record))
            if run not in runs:
                raise ValueError(f"row {key!r} is of a run that has no row before it")
            if runs[run].has_forgotten(number):
                self.counts.known += isinstance(record, Signature)
            elif run not in alive:
                yield key, record

    def _add_rows(self, rows: list[tuple[str, Record]]) -> None:
        """Write documents and host news that are new to the store, and visits that are new or newer."""
        visits = self._store.urls
        visits.prefetch([key for key, record in rows if isinstance(record, Visit)])
        known = {row.key for row in self._backend.get(key for key, _ in rows) if not row.is_pending}
        for key, record in rows:
            if isinstance(record, Visit):
                self.counts.urls += visits.adopt(key, record) and not record.name
            elif key in known:
                self.counts.known += isinstance(record, Signature)
            else:
                self.counts.documents += isinstance(record, Signature)
                self._session.count(documents=int(isinstance(record, Signature)))
                self._session.write([Entry(key, record, postings(record))])


def _place(key: str, record: Record) -> str:
    """Return the run and the number of a row, as `RUN/NUMBER`."""
    return record.at if isinstance(record, Visit) else id_of(key)
