"""Stores to rows and back, whatever kind of store is at an address: all that one holds, and all of that into another.

An import writes a chunk at a time, and a kill leaves the chunks that are in. To import the same rows again is harmless:
what the store has, or what a run brought that it has forgotten, is not taken in again; of two links of one URL the one
that was seen later counts. Crawls under way see what comes as they see what others write.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from itertools import chain, islice
from typing import NamedTuple

from ..signature import Link, Signature
from ..text.urls import canonical_url
from . import meta, open_backend
from .base import DOCUMENT, HOST, LINK, RUN, Entry, HostNews
from .interchange import END, Content, Head, Line, end_line, head_line, line_of, read_head, read_line
from .links import Links, tells_same
from .records import id_of, place_of
from .runs import Run
from .store import Store

CHUNK = 5000  # rows that are on their way at a time
RUNS = 100  # runs that are held at a time: each is an open file
LOCK, PAUSE = "~import", 0.1  # what keeps imports apart, no run can have that name; seconds between two tries


class Imported(NamedTuple):
    """How much was taken in."""

    documents: int
    links: int
    """URLs of which it told what they led to."""
    known: int
    """Documents that the store had, or that it has forgotten with their run."""


@contextmanager
def export_rows(address: str, namespace: str) -> Iterator[Iterator[Line]]:
    """Give the rows of a store (see `interchange`), the first one with how many follow. Raise StoreError."""
    with _opened(address, namespace, writes=False) as store:
        yield _exported(store)


@contextmanager
def _opened(address: str, namespace: str, *, writes: bool) -> Iterator[Store]:
    """Open a store without detectors and without a run. What was not flushed is lost."""
    store = Store(open_backend(address, namespace, writes=writes), (), run=None)
    try:
        yield store
    finally:
        store.backend.abandon()


def _exported(store: Store) -> Iterator[Line]:
    runs = {run.id for run in store.runs()}
    yield head_line(Head(store.session.made["schemes"], store.session.documents, store.session.urls))
    yield from (line_of(f"{RUN}/{run.id}", run) for run in store.runs())
    for kind in (DOCUMENT, LINK, HOST):
        for row in store.backend.scan(kind):
            if not row.is_pending and run_of(row.key) in runs:  # later ones have no line
                yield line_of(row.key, store.session.load(row))
    yield end_line()


def run_of(key: str) -> str:
    """Return the run that wrote a row."""
    return place_of(id_of(key))[0]


def import_rows(address: str, namespace: str, rows: Iterable[Line], *, chunk: int = CHUNK) -> Imported:
    """Take such rows into a store, which need not exist.

    Raise ValueError for the first that is none, or where they were cut off; StoreError where the store does not fit.
    """
    lines = iter(rows)
    head = read_head(next(lines, {}))
    chunks = iter(lambda: [read_line(line) for line in islice(lines, chunk)], [])
    first = next(chunks, [])  # before there is a store: where these are none, there is to be none
    with _opened(address, namespace, writes=True) as store:
        _agree(store, head)
        with _alone(store):
            taking = _Taking(store)
            some: list[Content] = []
            for some in chain([first], chunks):
                taking.take(some)
    if not some or some[-1].key != END:
        raise ValueError("it is cut off: there is no row of type 'end'; what came before was taken in")
    return Imported(taking.documents, taking.links, taking.known)


def _agree(store: Store, head: Head) -> None:
    """Have the store say what its fingerprints depend on, with the first rows that it gets."""
    before = [store.session.load(row) for row in store.backend.get([meta.KEY])]
    try:
        made = meta.merged(store.session.made, head.schemes)
    except ValueError as error:
        raise store.session.refusal("does not fit the export", error) from error
    if before != [made]:
        store.backend.write([Entry(meta.KEY, made)])


@contextmanager
def _alone(store: Store) -> Iterator[None]:
    """Wait until no other process imports: each counts what it takes in beyond what the runs say."""
    while not store.backend.hold_run(LOCK):
        time.sleep(PAUSE)
    try:
        while store.refresh():
            pass
        store.session.take_in([])
        yield
    finally:
        store.backend.release_run(LOCK)


def merged(run: Run, known: Run | None) -> Run | None:
    """Return what is to take the place of the record of a dead run that is known; None where that is to stay."""
    if known is None:
        return run
    if run.sealed > known.sealed:  # it went on elsewhere; who goes on with it here is to begin after those rows
        forgotten = dict.fromkeys((*known.forgotten, *run.forgotten))
        return replace(run, forgotten=tuple(forgotten))
    if run.closed is None and known.closed is not None:  # what comes now is to be forgotten as what came before
        return replace(known, closed=None)
    return None


class _Taking:
    """Puts rows into a store."""

    def __init__(self, store: Store) -> None:
        self.documents = self.links = self.known = 0
        self._store = store
        self._backend = store.backend
        self._session = store.session
        self._links = Links(store.backend, store.session, store.documents.held, lambda id: None)

    def take(self, chunk: list[Content]) -> None:
        """Take in some rows: those that others depend on first. They are durable then."""
        runs = [record for _, record in chunk if isinstance(record, Run)]
        for at in range(0, len(runs), RUNS):
            self._take_runs(runs[at : at + RUNS])
        taken = self._of_runs(chunk)
        self._take_documents([record for _, record in taken if isinstance(record, Signature)])
        self._take_links([record for _, record in taken if isinstance(record, Link)])
        self._take_hosts([(key, record) for key, record in taken if isinstance(record, HostNews)])
        self._flush()

    def _flush(self) -> None:
        self._session.save_counts()
        self._backend.flush(wait=True)
        while self._store.refresh():
            pass

    # Runs

    def _take_runs(self, runs: list[Run]) -> None:
        """Write the records of runs that are not alive here: of which nobody else writes meanwhile."""
        held = [run for run in runs if self._merged(run) and self._backend.hold_run(run.id)]
        try:
            self._session.take_in(self._backend.get(f"{RUN}/{run.id}" for run in held))
            for run in held:
                if said := self._merged(run):
                    before = self._session.runs.get(run.id, Run("", 0.0))
                    self._session.count(documents=before.documents - said.documents, urls=before.urls - said.urls)
                    self._session.save(said)
            self._flush()
        finally:
            for run in held:
                self._backend.release_run(run.id)

    def _merged(self, run: Run) -> Run | None:
        return merged(run, self._session.runs.get(run.id))

    def _of_runs(self, chunk: list[Content]) -> list[Content]:
        """Return the rows to take in. Raise ValueError where there is no record of the run that wrote one."""
        runs, found = self._session.runs, list[Content]()
        alive = {run.id for run in runs.values() if run.closed is None and self._backend.is_held(run.id)}
        for content in chunk:
            if content.key == END or isinstance(content.record, Run):
                continue
            run, number = place_of(id_of(content.key))
            if run not in runs:
                raise ValueError(f"row {content.key!r} is of a run of which there is no row before")
            is_forgotten = runs[run].has_forgotten(number)
            self.known += is_forgotten and isinstance(content.record, Signature)
            if not is_forgotten and run not in alive:  # a living run may write rows of these numbers yet
                found.append(content)
        return found

    # Rows

    def _has(self, kind: str, ids: Iterable[str]) -> set[str]:
        """Return those ids of which the store has rows."""
        rows = self._backend.get(sorted({f"{kind}/{id}" for id in ids}))
        return {id_of(row.key) for row in rows if not row.is_pending}

    def _take_documents(self, documents: list[Signature]) -> None:
        known = self._has(DOCUMENT, (each.id for each in documents))
        new = {each.id: each for each in documents if each.id not in known}
        self.known += len(documents) - len(new)
        self._links.foresee(each.url for each in new.values() if each.own and each.url)
        for document in new.values():
            entry = self._links.adopt(document)
            self._session.count(documents=1)
            self._session.write([entry])
            self.links += bool(document.own)
        self.documents += len(new)

    def _take_links(self, links: list[Link]) -> None:
        held = self._has(DOCUMENT, (link.target for link in links if link.target))
        rows = self._backend.get(sorted({link.key for link in links}))
        known = {row.key: self._session.load(row) for row in rows}
        self._links.foresee(link.url for link in links)
        for link in links:
            if (link.target is None or link.target in held) and _may_replace(link, known.get(link.key)):
                known[link.key] = link
                self.links += self._links.adopt_link(link)

    def _take_hosts(self, hosts: list[tuple[str, HostNews]]) -> None:
        known = self._has(HOST, (id_of(key) for key, _ in hosts))
        self._backend.write([Entry(key, news) for key, news in hosts if id_of(key) not in known])


def _may_replace(link: Link, known: object) -> bool:
    """Return whether the row that has its key, if any, is the same link, of which another visit may tell more."""
    if not isinstance(known, Link):
        return known is None
    return bool(link.url) and canonical_url(known.url) == canonical_url(link.url) and tells_same(known, link)
