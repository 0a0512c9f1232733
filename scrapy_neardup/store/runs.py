"""Open and close the runs of a store, end dead ones, and forget a run or another selection.

A run is *open* until its record says that it is closed. It is *alive* as long as a process holds its lock. A run that
is open, but not alive, is *dead*.
"""

from __future__ import annotations

import logging
import re
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from itertools import chain
from typing import TYPE_CHECKING, Any, cast
from uuid import uuid4

from ..fingerprints.record import SKETCH
from ..hosts import Trial
from ..signature import Signature, Visit
from ..text import tokens
from ..text.urls import canonical_url, host, named_site, site
from . import records
from .backend import Backend, Entry, Forgotten, Row, Selection, StoreError
from .records import DOCUMENT, HOST, MADE, RUN, HostNews, Record, Run

if TYPE_CHECKING:
    from .store import Store

LOOK = 10.0  # seconds between two checks for dead runs
LOOKS = 4  # an open run is dead after this many consecutive checks that find no living process of it
_WITH_PORT = re.compile(r"(?:\[[^]]*\]|[^:]*):\d+")
logger = logging.getLogger(__name__)


class Session:
    """The runs of a store, including the run of this process if it writes."""

    def __init__(self, backend: Backend, schemes: Mapping[str, str]) -> None:
        self.run = ""  # the id of the run of this process; "" if the store is open read-only
        self.runs: dict[int, Run] = {}  # the records of all known runs by code
        self._open: dict[str, None] = {}  # the ids of the open runs, listed since each commit asks for them
        self.made: dict[str, Any] = {}  # the record of the store: its format, and all schemes so far
        self.erasures = 0  # how often this process learned that rows of a run were forgotten
        self.sealed = 0  # the highest row number of the run when this process opened it
        self._backend = backend
        self._schemes = schemes
        self._code, self._last = records.code(""), 0
        self._look_at = time.monotonic() + LOOK
        self._missed: Counter[str] = Counter()

    def begin(self, run: str | None, writer: str) -> list[Run]:
        """Open the run `run`, a new run for "", or none for None. Lock all dead runs, and return them.

        If the run `run` was dead, it is among them.
        """
        writers = self._backend.writers()  # first, since a run that begins now has a record before it has documents
        self.update_runs(self._backend.scan(RUN))
        for lost in sorted(writers.difference(self.runs)):
            why = f"the record of a run is missing, whose documents have the code {lost:08x}; restore a backup"
            raise self.refusal("can't be read", why)
        self.agree({}, writes=run is not None)
        if run is None:
            return []
        self.run = self._claimed(run)
        self._code = records.code(self.run)
        dead = self.hold_dead(self.others_open())
        # Read again, since its former process may have written until now.
        known = next(map(self.load, self._backend.get([f"{RUN}/{self.run}"])), None)
        mine = cast(Run, known) or Run(self.run, time.time(), 0.0)
        self.sealed = self._last = mine.sealed
        self.save(replace(mine, closed=None, writer=writer))
        return dead if mine.closed is not None else [*dead, mine]

    def run_at(self, id: int) -> str:
        """Return the id of the run that wrote the row with the given id; if the run has no record, its code."""
        code = records.code_of(id)
        if code == self._code:
            return self.run
        if code not in self.runs:  # it has just begun
            self.update_runs(self._backend.scan(RUN))
        return self.runs[code].id if code in self.runs else f"{code:08x}"

    def is_own(self, id: int) -> bool:
        return records.code_of(id) == self._code

    def is_of_writer(self, id: int) -> bool:
        """Return whether the spider or command of this process's run also wrote the row with this id."""
        known, mine = self.runs.get(records.code_of(id)), self.runs.get(self._code)
        return known is mine or (known is not None and mine is not None and known.writer == mine.writer)

    def others_open(self) -> list[str]:
        """Return the ids of all open runs except the run of this process. Some of them may be dead."""
        return [name for name in self._open if name != self.run]

    def overdue(self) -> list[Run]:
        """If the next check is due, lock the dead runs, and return their records; else return [].

        A run counts as dead after `LOOKS` checks in a row that find it not alive. So a process has time to reconnect.
        """
        if time.monotonic() < self._look_at:
            return []
        self._look_at, before, self._missed = time.monotonic() + LOOK, self._missed, Counter()
        self._missed.update({name: before[name] + 1 for name in self.others_open() if not self._backend.is_held(name)})
        return self.hold_dead(name for name, times in self._missed.items() if times >= LOOKS)

    def hold_dead(self, names: Iterable[str]) -> list[Run]:
        """Lock those of the named runs that are dead, and return their records."""
        held, dead = [name for name in names if self._backend.hold_run(name)], list[Run]()
        try:
            self.update_runs(self._backend.get(f"{RUN}/{name}" for name in held))  # some may have been closed meanwhile
            dead = [run for name in held if (run := self.runs[records.code(name)]).closed is None]
        finally:
            for name in {*held}.difference(run.id for run in dead):
                self._backend.release_run(name)
        return dead

    def _claimed(self, wanted: str) -> str:
        """Lock the run `wanted`; for "", a new run. If the id is taken, append a number. Return the id."""
        name = wanted or f"{time.strftime('%y%m%d-%H%M%S')}-{uuid4().hex[:4]}"
        for run in (name, *(f"{name}-{n}" for n in range(1, 1000))):
            known = self.runs.get(records.code(run))
            if (known is None or known.id == run == wanted) and self._backend.hold_run(run):
                return run
        raise StoreError(f"store {self._backend.name!r}: no free name for a run")

    def agree(self, schemes: Mapping[str, str], *, writes: bool) -> None:
        """If `writes`, add schemes to the record of the store. Raise StoreError if a stored one differs."""
        before: Any = next(map(self.load, self._backend.get([MADE])), None)
        if before is None and self.runs:
            raise self.refusal("can't be read", "the record of its schemes is missing; restore a backup")
        made = {"sketch": SKETCH, "tokens": tokens.SCHEME, **self._schemes}
        try:
            self.made = records.merged(records.merged(before, made), schemes)
        except ValueError as error:
            raise self.refusal("does not fit", error) from error
        if writes and self.made != before:
            self._backend.write([Entry(MADE, self.made)])

    def refusal(self, what: str, why: object) -> StoreError:
        return StoreError(f"store {self._backend.name!r} {what}: {why}; it was left as it is")

    def load(self, row: Row) -> Record:
        """Return the record of a row. Raise StoreError for a damaged row."""
        if not isinstance(row.value, bytes):
            return row.value
        try:
            record: Record = records.load(row.key, row.value)
            if isinstance(record, Run):
                records.check(row.key, record)
        except ValueError as error:
            raise self.refusal("can't be read", error) from error
        return record

    def update_runs(self, rows: Iterable[Row]) -> None:
        """Update `runs` from rows, except for the run of this process."""
        for row in rows:
            run = self.load(row)
            if isinstance(run, Run) and run.id != self.run:
                self._set(run)

    def save(self, run: Run) -> None:
        self._set(run)
        self._backend.write([Entry(f"{RUN}/{run.id}", run)])

    def close(self, stats: Mapping[str, int], fields: Iterable[str]) -> None:
        """Write the record of this process's run as closed, with these stats and names of fields."""
        self.save(self.runs[self._code].ended(self._last).with_stats(stats, fields))

    def _set(self, run: Run) -> None:
        known = self.runs.get(code := records.code(run.id))
        self.erasures += known is not None and known.forgotten != run.forgotten
        self.runs[code] = run
        self._open.pop(run.id, None)
        if run.closed is None:
            self._open[run.id] = None

    def has_forgotten(self, id: int) -> bool:
        """Return whether the row with this id was forgotten together with other rows of its run."""
        run = self.runs.get(records.code_of(id))
        if run is None or not run.forgotten:
            return False
        number = records.number_of(id)
        return any(first <= number <= last for first, last in run.forgotten)

    def next_id(self) -> int:
        """Return the id of the next new row in the run of this process."""
        self._last += 1
        return records.id_of(self._code, self._last)

    def end(self, ended: Run, last: int) -> None:
        """Write `ended`, the record of a dead run with rows up to `last`. If this process resumed it, it stays open."""
        if ended.id == self.run:
            ended, self._last = replace(ended, closed=None), max(self._last, last)
            self.sealed = self._last
        self.save(ended)


def end(store: Store, runs: list[Run], *, keeps: bool) -> None:
    """End dead runs that are locked, and release all but this process's run. Unless `keeps`, forget their documents."""
    try:
        for run in runs:
            last, outcome = _last(store, run), "are kept"
            ended = run.ended(last, forget=not keeps)
            if not keeps:
                store.session.save(replace(run, forgotten=ended.forgotten))
                store.flush()  # first, so that no row is taken for held if erasing is cut off
                outcome = f"are forgotten: {erase(store, run.id, after=run.sealed)}"
            store.session.end(ended, last)
            logger.warning("Run %s died. Its documents %s (NEARDUP_UNCLEAN_RUN)", run.id, outcome)
        store.flush()
    finally:
        for run in runs:
            if run.id != store.run:
                store.backend.release_run(run.id)


def forget(store: Store, what: Selection, *, only_counts: bool) -> Forgotten:
    """Forget a selection; with `only_counts`, only count it. Return the numbers of its documents and URLs.

    Also forget all visits of these documents, and the evidence on mirrors that names the selected URL or host.
    """
    if what.run is not None:
        return _forget_run(store, what.run, only_counts=only_counts)
    documents, visits, trials = _selection(store, what)
    of_documents = (visit for document in documents for visit in store.visits(document))
    urls = {records.visit_key(visit.url) for visit in chain(visits, of_documents) if visit.url}
    count = Forgotten(len(documents), len(urls))
    if only_counts:
        return count
    for document in documents:
        store.withdraw(document)
    for visit in visits:
        store.urls.unlink(visit.url)
    store.learn(store.hosts.retract(trials))
    for name, fact in list(store.counters.known()) if what.host else ():
        if is_of(what.host or "", f"http://{name}/"):
            store.forget_counter(name, fact)
    return count


def _selection(store: Store, what: Selection) -> tuple[list[Signature], list[Visit], list[Trial]]:
    if what.url is not None:
        visit = store.resolve(what.url)
        own = [visit.signature] if visit and visit.signature and not visit.is_copy else []
        own += [each for each in store.of_page(what.url) if each not in own]
        before = store.document(visit.before.target or 0) if visit and visit.before else None
        if before and before not in own and canonical_url(before.url or "") == canonical_url(what.url):
            own.append(before)  # else a page that returns this document again would be dropped
        return own, [visit] if visit else [], store.hosts.known(canonical_url(what.url))
    if name := what.host:
        documents = [each for each in store.signatures() if is_of(name, each.url)]
        visits = [each for each in store.urls.all() if is_of(name, each.url)]
        trials = [row for row in store.hosts.dump() if any(is_of(name, f"http://{site}/") for site in row.sites)]
        return documents, visits, trials
    when = what.before or 0.0
    alive = {visit.target for visit in store.urls.all() if visit.seen >= when}
    return [each for each in store.signatures() if each.first_seen < when and each.id not in alive], [], []


def is_of(name: str, url: str | None) -> bool:
    """Return whether a URL is on the host `name`. If `name` includes a port, the port must be the same too."""
    if not url:
        return False
    if _WITH_PORT.fullmatch(name):
        return site(canonical_url(url)) in (name.lower(), named_site(name))
    # An IPv6 address without brackets is invalid in a URL, but users may give one.
    return (host(url) or None) in (name.lower(), host(f"http://{name}"))


def _forget_run(store: Store, name: str, *, only_counts: bool) -> Forgotten:
    """Forget all rows of a run, unless `only_counts`. Raise StoreError if the run is unknown or alive."""
    run = store.session.runs.get(records.code(name))
    if run is None or run.id != name:
        where = f"store {store.backend.name!r}"
        raise StoreError(f"{where} has no run {name!r}; `scrapy neardup stats --runs` lists those it has")
    if only_counts:
        return _counted(store, name)
    if name == store.run or not store.backend.hold_run(name):
        raise StoreError(f"run {name!r} of store {store.backend.name!r} is alive; end it first")
    try:
        store.session.update_runs(store.backend.get([f"{RUN}/{name}"]))  # it may have written more
        run, count = store.session.runs[records.code(name)], _counted(store, name)
        last = _last(store, run)
        store.session.save(replace(run, sealed=max(run.sealed, last), forgotten=((1, last),) if last else ()))
        store.flush()  # before rows are erased, as in `end`
        erase(store, name)
        store.flush()
        return count
    finally:
        store.backend.release_run(name)


def _counted(store: Store, name: str) -> Forgotten:
    documents, urls = set(), set()
    for row in _rows(store, DOCUMENT, name, 0):
        documents.add(row.key)
        urls |= {records.visit_key(visit.url) for visit in store.visits(store.held(row)) if visit.url}
    for key, visit in store.urls.of_run(name):
        before = store.urls.restored(visit)
        (urls.add if not visit.name and (before is None or before.target in documents) else urls.discard)(key)
    return Forgotten(len(documents), len(urls))


def erase(store: Store, run: str, *, after: int = 0) -> int:
    """Undo what a run wrote in rows with numbers above `after`. Return the number of erased documents."""
    for key, visit in store.urls.of_run(run, after):
        store.urls.undo(key, visit)
    count = 0
    for row in _rows(store, DOCUMENT, run, after):
        store.withdraw(store.held(row))
        count += 1
    for row in _rows(store, HOST, run, after):
        news = cast(HostNews, store.session.load(row))
        store.learn(store.hosts.retract(news.trials))
        store.backend.write([], [Entry(row.key, news)])
    return count


def _rows(store: Store, kind: str, run: str, after: int) -> Iterator[Row]:
    return (row for row in store.backend.scan(kind, run) if records.number_of(records.id_in(row.key)) > after)


def _last(store: Store, run: Run) -> int:
    rows = (records.id_in(row.key) for kind in (DOCUMENT, HOST) for row in store.backend.scan(kind, run.id))
    visits = (visit.at for _, visit in store.urls.of_run(run.id))
    numbers = map(records.number_of, chain(rows, visits))
    return max(chain(numbers, (last for _, last in run.forgotten)), default=run.sealed)
