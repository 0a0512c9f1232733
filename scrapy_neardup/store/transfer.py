"""Export a store as lines, and import lines into a store of any kind.

An import writes in chunks; a kill leaves the chunks written so far. Importing the same lines again changes nothing:
known rows and rows of forgotten runs are skipped, and of two links of one URL the later one holds. Running crawls see
imported rows like rows of another process.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import chain, islice

from ..signature import Link, Signature
from . import open_backend
from .interchange import Line, end_line, head_line, line_of, read_head, read_lines
from .interface import DOCUMENT, HOST, LINK, RUN, Entry, Record
from .keys import id_of, place_of
from .links import Links
from .runs import Run
from .store import Store

CHUNK = 200  # rows in a chunk, and runs held at a time: each run is an open file
LOCK, PAUSE = "~import", 0.1  # a lock between imports, whose name no run can have; seconds between two tries


@dataclass
class Imported:
    """The counts of an import."""

    documents: int = 0
    links: int = 0
    """URLs whose state was imported."""
    known: int = 0
    """Documents that the store had before, or that were forgotten with their run."""


@contextmanager
def export_rows(address: str, namespace: str) -> Iterator[Iterator[Line]]:
    """Give the lines of a store; the first one has the counts. Raise StoreError."""
    with _opened(address, namespace, writes=False) as store:
        yield _exported(store)


@contextmanager
def _opened(address: str, namespace: str, *, writes: bool) -> Iterator[Store]:
    """Open a store without detectors and without a run. Rows that were not flushed are lost."""
    store = Store(open_backend(address, namespace, writes=writes), (), run=None)
    try:
        yield store
    finally:
        store.backend.abandon()


def _exported(store: Store) -> Iterator[Line]:
    runs = {run.id: run for run in store.runs()}
    yield head_line(store.session.made["schemes"], store.session.documents, store.session.urls)
    yield from (line_of(f"{RUN}/{run.id}", run) for run in runs.values())
    for kind in (DOCUMENT, LINK, HOST):
        for row in store.backend.scan(kind):
            if (
                not row.is_pending and place_of(id_of(row.key))[0] in runs
            ):  # rows of later runs have no line for their run
                yield line_of(row.key, store.session.load(row))
    yield end_line()


def import_rows(address: str, namespace: str, lines: Iterable[Line], *, chunk: int = CHUNK) -> Imported:
    """Import lines into a store, which is created if it does not exist.

    Raise ValueError for an invalid line and for truncated input, StoreError if the store does not fit.
    """
    lines = iter(lines)
    schemes, rows = read_head(next(lines, {})), read_lines(lines)
    chunks = iter(lambda: list(islice(rows, chunk)), [])
    first = next(chunks, [])  # read before the store is created, so that invalid input creates none
    with _opened(address, namespace, writes=True) as store:
        store.session.agree(schemes, writes=True)
        with _alone(store):
            taking = _Taking(store)
            for some in chain([first], chunks):
                taking.take(some)
    return taking.taken


@contextmanager
def _alone(store: Store) -> Iterator[None]:
    """Wait until no other process imports, since each import adds to the same counts."""
    while not store.backend.hold_run(LOCK):
        time.sleep(PAUSE)
    try:
        yield
    finally:
        store.backend.release_run(LOCK)


def merged(run: Run, known: Run | None) -> Run:
    """Return the record that replaces the known record of a dead run."""
    if known is None:
        return run
    if run.sealed > known.sealed:  # it continued elsewhere; a resumed run must begin after those rows
        return replace(run, forgotten=tuple(dict.fromkeys(known.forgotten + run.forgotten)))
    # Rows of an open run are forgotten with it, so imported rows of it are too.
    return replace(known, closed=None if run.closed is None else known.closed)


class _Taking:
    """An import into a store."""

    def __init__(self, store: Store) -> None:
        self.taken = Imported()
        self._store = store
        self._backend = store.backend
        self._session = store.session

    def take(self, rows: list[tuple[str, Record]]) -> None:
        """Import some rows, durably."""
        while self._store.refresh():
            pass
        self._session.take_in([])  # the counts of other imports
        self._take_runs([record for _, record in rows if isinstance(record, Run)])
        self._take_rows(list(self._wanted(rows)))
        self._flush()

    def _flush(self) -> None:
        self._session.save_counts()
        self._backend.flush(wait=True)

    def _take_runs(self, runs: list[Run]) -> None:
        """Write the records of runs that are not alive in this store, so that nobody else writes them."""
        known = self._session.runs
        news = [run for run in runs if merged(run, known.get(run.id)) != known.get(run.id)]
        held = [run for run in news if self._backend.hold_run(run.id)]
        try:
            self._session.take_in(self._backend.get(f"{RUN}/{run.id}" for run in held))
            for run in held:
                before, after = known.get(run.id, Run(run.id, 0.0)), merged(run, known.get(run.id))
                self._session.count(documents=before.documents - after.documents, urls=before.urls - after.urls)
                self._session.save(after)
            self._flush()
        finally:
            for run in held:
                self._backend.release_run(run.id)

    def _wanted(self, rows: list[tuple[str, Record]]) -> Iterator[tuple[str, Record]]:
        """Yield the rows that are not runs, not forgotten, and not of a living run, which may still write them.

        Raise ValueError for a row whose run has no record.
        """
        runs = self._session.runs
        alive = {run.id for run in runs.values() if run.closed is None and self._backend.is_held(run.id)}
        for key, record in rows:
            if isinstance(record, Run):
                continue
            run, number = place_of(id_of(key))
            if run not in runs:
                raise ValueError(f"row {key!r} is of a run of which there is no row before")
            if runs[run].has_forgotten(number):
                self.taken.known += isinstance(record, Signature)
            elif run not in alive:
                yield key, record

    def _take_rows(self, rows: list[tuple[str, Record]]) -> None:
        """Write new rows of documents, links and hosts, and newer states of links."""
        links = Links(self._backend, self._session, self._store.documents.held, lambda id: None)
        targets = {f"{DOCUMENT}/{link.target}" for _, link in rows if isinstance(link, Link) and link.target}
        found = self._backend.get(sorted(targets.union(key for key, _ in rows)))
        known = {row.key for row in found if not row.is_pending}
        told = (each for key, each in rows if isinstance(each, Link) or key not in known)
        links.foresee(each.url for each in told if isinstance(each, Link) or (isinstance(each, Signature) and each.own))
        for key, record in rows:
            if isinstance(record, Link):
                if record.target is None or f"{DOCUMENT}/{record.target}" in known:
                    self.taken.links += links.adopt_link(record, is_key_known=key in known)
            elif key in known:
                self.taken.known += isinstance(record, Signature)
            elif isinstance(record, Signature):
                self.taken.documents += 1
                self.taken.links += links.adopt(record)
            else:
                self._session.write([Entry(key, record)])
            known.add(key)
