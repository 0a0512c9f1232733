"""Rows of an export into a store on disk: straight into its parts, a chunk at a time.

A kill leaves the chunks that are in. To import the same rows again is harmless: what the store has, or has forgotten,
it does not take again, and of two links of one URL the one that was seen later holds.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from itertools import chain, islice
from math import inf
from typing import NamedTuple
from urllib.parse import quote

from ..signature import Key, Signature
from . import manifest
from .absorbing import Incoming, absorb, alone
from .base import StoreError
from .interchange import Content, End, Found, Head, Led, Met, Record, Stored, read_head, read_row
from .layered import LayeredStore, digest
from .log import Log
from .meta import merge_meta
from .runs import Run, RunLock
from .segments import Batch
from .sqlite import SqliteStore

CHUNK = 50_000  # documents or links on their way: some 100 MB


class Imported(NamedTuple):
    """How much was taken in."""

    documents: int
    links: int
    known: int
    """Documents that the store had, or has forgotten."""


def load(path: str, namespace: str, rows: Iterable[Record], *, chunk: int = CHUNK) -> Imported:
    """Take the rows of an export into the store at a path, which need not exist.

    Raise ValueError for rows that are none, or were cut off; StoreError where the store does not fit.
    """
    path, rows = os.path.realpath(path), iter(rows)
    head = read_head(next(rows, {}))
    runs, content = split_runs(map(read_row, rows))
    _begin(path, namespace, head, runs)
    taken = Imported(0, 0, 0)
    some: list[Content] = []
    for some in iter(lambda: list(islice(content, chunk)), []):
        with alone(path):
            more = _take(path, namespace, some)
        taken = Imported(*(a + b for a, b in zip(taken, more, strict=True)))
    if not some or not isinstance(some[-1], End):
        raise ValueError("it is cut off: there is no row of type 'end'; what came before was taken in")
    return taken


def split_runs(content: Iterator[Content]) -> tuple[list[Run], Iterator[Content]]:
    """Return the runs, which come first, and the rest."""
    runs: list[Run] = []
    for each in content:
        if not isinstance(each, Run):
            return runs, chain([each], content)
        runs.append(each)
    return runs, content


def _begin(path: str, namespace: str, head: Head, runs: Iterable[Run]) -> None:
    """Have the store say what it is made with, and which runs it has."""
    prefix = quote(namespace, safe="")
    log = Log(path)
    try:
        meta = merge_meta(log.get(f"meta/{prefix}"), head.schemes, head.own)
        with alone(path):  # once it is known that this is a store, which fits: the lock is a file beside it
            rows = _new_runs(log, prefix, runs)
            if log.get(f"parts/{prefix}") is None:
                rows.append((f"parts/{prefix}", manifest.dump(())))  # what a kill leaves then never counted
            log.append_all([(f"meta/{prefix}", meta), *rows])
            log.sync(wait=True)
    except ValueError as error:
        raise StoreError(f"store {path!r} does not fit the export: {error}; it was left as it is") from error
    finally:
        log.close()


def _new_runs(log: Log, prefix: str, runs: Iterable[Run]) -> list[tuple[str, bytes]]:
    """Return the records of runs that a store is to have, by key."""

    def held(run: str) -> bool:
        return RunLock(log.path, run).is_held()

    known = {key: Run.load(value) for key, value in log.news(f"run/{prefix}/").result()}
    new = {f"run/{prefix}/{run.id}": run for run in runs}
    return [(key, said.dump()) for key, run in new.items() if (said := merged(run, known.get(key), held))]


def merged(run: Run, known: Run | None, is_alive: Callable[[str], bool]) -> Run | None:
    """Return what is to take the place of the record of a run that is known; None where that is to stay."""
    if known is None:
        return run
    if run.closed is None and known.closed is not None:  # what comes now is to be forgotten as what came before
        return replace(known, closed=None)
    is_dead = run.closed is not None and known.closed is None and not is_alive(run.id)
    return run if is_dead else None


def _take(path: str, namespace: str, chunk: Iterable[Content]) -> Imported:
    """Take in one chunk."""
    store = SqliteStore(path, (), namespace=namespace, run=None)
    try:
        taking = _Taking(store)
        for each in chunk:
            taking.take(each)
        for batch in store.batches.values():
            batch.signatures.sort(key=_place)  # as parts have them
        if taking.has_news:
            absorb(store, path, quote(namespace, safe=""), taking.incoming)
        return Imported(taking.documents, taking.links, taking.known)
    finally:
        store.close()


def _place(signature: Signature) -> int:
    return signature.key[2] if signature.key else 0


class _Taking:
    """Puts rows where a store has what its log brought."""

    def __init__(self, store: SqliteStore) -> None:
        self.documents = self.links = self.known = 0
        self.incoming = Incoming()
        self._store = store
        self._in_ram = {s.key: s for batch in store.batches.values() for s in batch.signatures}
        self._trials, self._met = set(store.all_trials()), dict(store.hosts.met())

    @property
    def has_news(self) -> bool:
        """Whether anything came that the store did not have."""
        return bool(self.documents or self.links or self.incoming.trials or self.incoming.met)

    def take(self, content: Content) -> None:
        match content:
            case Stored():
                self._document(content)
            case Led():
                self._link(content)
            case Found() if content not in self._trials:
                self.incoming.trials.append(content)
            case Met(name, when) if when < self._met.get(name, inf):
                self.incoming.met[name] = when

    def _document(self, stored: Stored) -> None:
        key = stored.signature.key
        assert key
        if self._is_known(key):
            self.known += 1
            return
        self.documents += 1
        self._in_ram[key] = stored.signature
        self.incoming.keys[stored.signature] = stored.keys
        self._batch(key[:2]).signatures.append(stored.signature)
        self._store.fresh.add(stored.signature)

    def _is_known(self, key: Key) -> bool:
        """Say whether the store has, or had, what was written as `key`."""
        run = self._store.known_runs.get(key[0])
        is_forgotten = run is not None and run.has_forgotten(key[1])
        return is_forgotten or key in self._in_ram or self._store.parts.number_of(key) is not None

    def _held(self, key: Key) -> Signature | None:
        number = self._store.parts.number_of(key)
        found = self._in_ram.get(key) if number is None else self._store.parts.numbered(number)
        return found if found and self._store.holds(found) else None

    def _link(self, led: Led) -> None:
        link, key, segment = led
        link.digest = digest(link.url)
        link.signature = self._held(key) if key else None
        known = self._store.newest.get(link.digest)
        seen = known.seen if known else self._store.parts.last_seen(link.digest)
        if (key and not link.signature) or seen >= link.seen:
            return
        self.links += 1
        LayeredStore.record(self._store, link)  # into RAM only
        self._batch(segment).links.append(link)

    def _batch(self, segment: tuple[str, int]) -> Batch:
        return self._store.batches.setdefault(segment, Batch())
