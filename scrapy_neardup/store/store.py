"""Find, hold, commit and forget documents and visits in a store (`Store`), on top of a back end.

A document is pending from `add` or `enter` until it is committed or withdrawn. Lookups find pending and committed
documents. A committed document is a row with the key `document/RUN/NUMBER`, which never changes. Each process creates
such rows under its own run, so two processes never choose the same key, and writing a row twice changes nothing. What a
URL returned last is a row with the key `visit/HASH`, which is written in place.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from typing import Any

from ..detectors.detector import Detector
from ..hosts.counters import Counters
from ..hosts.relations import Row as Trial
from ..hosts.rules import Hosts
from ..signature import Signature, Visit
from ..text.shapes import site
from ..text.urls import host
from . import erasure
from .claims import Claims
from .dead_runs import Dead
from .documents import Documents
from .interface import DOCUMENT, HOST, RUN, VISIT, Backend, Entry, Forgotten, HostNews, Row, Selection, StoreError
from .lookup import Lookup
from .runs import Run
from .session import Session

BATCH, BATCH_SECONDS = 1000, 0.5  # the rows in the buffer, or its age in seconds, after which it is flushed
SHARED_SECONDS = 0.04  # the age if other runs are open, since they need the rows soon; it costs 5 % of a crawl


class Store:
    """Documents, which are found by their fingerprints, and the state of each URL.

    Committed records are durable after the next `flush`. Pending documents are lost with the process.
    """

    def __init__(
        self,
        backend: Backend,
        detectors: Sequence[Detector],
        *,
        unclean_run: str = "forget",
        run: str | None = "",
        writer: str = "",
    ) -> None:
        """Open the store. `run` is the id of a run to resume, "" to begin a new run, or None to open read-only."""
        self.hosts = Hosts()
        """The evidence on mirrors from all runs."""
        self.counters = Counters()
        """The facts of each host that are counters, from all runs."""
        self.stats: dict[str, int] = {}
        """Scrapy's stats of this run so far, without their prefix. They are stored when the run is closed."""
        self.backend = backend
        self.session = Session(backend, lookup := Lookup(detectors))
        self.documents = Documents(backend, self.session, lookup)
        self.claims = Claims(self.documents, backend)
        self._visits = self.documents.visits
        self.lost = 0.0, 0.0
        """The start and end of the period from which this run lost rows when it died, in seconds since the epoch."""
        self._dead = Dead(self, keeps=unclean_run == "keep")
        self._news = HostNews()
        self._rows = 0
        self._flushed = time.monotonic()
        try:
            self._begin(run, writer)
        except BaseException:
            backend.abandon()
            raise

    def _begin(self, run: str | None, writer: str) -> None:
        died = self.session.begin(run, writer)
        self._apply_hosts(self.backend.scan(HOST))
        if self.documents.lookup.own:
            for row in self.backend.scan(DOCUMENT):
                self._apply(row)
        if run is not None:
            self._dead.end(died)
        for each in died if not self._dead.keeps else ():
            if each.id == self.run:
                self.lost = each.paused, time.time()
        while self.refresh():
            pass

    @property
    def run(self) -> str:
        """The id of the run of this process; "" if the store is open read-only."""
        return self.session.run

    @property
    def erasures(self) -> int:
        """How often it became known that documents of a run were forgotten while the store is open."""
        return self.session.erasures

    @property
    def is_remote(self) -> bool:
        """True if the back end is a server."""
        return self.backend.is_remote

    # Documents

    def find(self, signature: Signature) -> Iterator[tuple[str, Signature]]:
        """Yield each candidate as a pair of detector name and document, in the order of the detectors."""
        if not (self.is_remote or self.claims.is_foreseen(signature)):  # a server finds the rows of all processes
            self.refresh()
        with_pending, found = self.claims.found(signature)
        return self.documents.found(signature, found, with_pending=with_pending)

    def leave(self, signature: Signature) -> None:
        """Cancel the claim on a document that turned out to be a copy."""
        self.claims.leave()
        if signature in self.documents.pending:
            self.withdraw(signature)

    def add(self, signature: Signature) -> None:
        """Hold a new document as pending, without looking for copies."""
        self.documents.add(signature)

    def commit(self, signature: Signature, visit: Visit | None = None) -> None:
        """Commit a pending document. `visit` is the visit of its own URL; None if that URL gave other documents too."""
        if self.documents.commit(signature, visit):
            if visit and signature.url:
                self._meet(signature.url, visit.seen)
            self._flush_in_time()

    def withdraw(self, signature: Signature) -> None:
        """Delete a pending or committed document, and all its visits."""
        self.documents.withdraw(signature)
        self._flush_in_time()

    # URLs

    def record(self, visit: Visit) -> None:
        """Record a visit in place of the previous one of its URL or name."""
        if visit.signature and self.documents.is_gone(visit.signature):
            return  # the document was forgotten meanwhile
        self.documents.note_visit(visit.signature)
        self._visits.record(visit)
        if visit.url:
            self._meet(visit.url, visit.seen)
        self._flush_in_time()

    def _meet(self, url: str, seen: float) -> None:
        if self.hosts.meet(url, seen):
            self._news.met[site(url)] = seen

    def resolve(self, place: str) -> Visit | None:
        """Return the last visit of a URL, in any spelling, or with a name. Return None if it is unknown."""
        return self._visits.resolve(place)

    def unlink(self, url: str) -> None:
        """Forget the visit of a URL."""
        self._visits.unlink(url)
        self._flush_in_time()

    def visits(self, signature: Signature) -> list[Visit]:
        """Return the visits of URLs and items that returned a document, oldest first."""
        return [] if self.documents.is_gone(signature) else self._visits.of(signature)

    def all_visits(self) -> Iterator[Visit]:
        """Yield the last visit of each URL."""
        return (visit for visit in self._visits.all() if visit.url)

    def learn(self, trials: Iterable[Trial]) -> None:
        """Store evidence on mirrors that `hosts` already includes."""
        self._news.trials.extend(trials)
        self._flush_in_time()

    def note_visit(self, new: Signature, held: Signature, *, has_text: bool) -> list[int]:
        """Learn from two visits to the record `held`, whose text is the same. Return the names of new counters."""
        found = list(self.counters.visit(held.url or "", new.facts, held.facts, has_text=has_text))
        self._news.counters.extend((host(held.url or ""), name, True) for name in found)
        return found

    def forget_counters(self, counters: Iterable[tuple[str, int]]) -> None:
        """Forget that facts of hosts are counters."""
        for name, fact in counters:
            self.counters.know(name, fact, is_counter=False)
            self._news.counters.append((name, fact, False))

    # The store as a whole

    def forget(self, what: Selection) -> Forgotten:
        """Forget a selection. Return the numbers of forgotten documents and URLs.

        The change is durable after the next flush. A repeated call returns zeros.
        """
        return erasure.forget(self, what)

    def selected(self, what: Selection) -> Forgotten:
        """Return the numbers that `forget` would return, and forget nothing."""
        return erasure.selected(self, what)

    def signatures(self) -> Iterator[Signature]:
        """Yield all held documents, except those that are pending in other processes."""
        return self.documents.all()

    def document(self, id: str) -> Signature | None:
        """Return the held document with this id, or None."""
        return next(map(self.documents.held, self.backend.get([f"{DOCUMENT}/{id}"])), None)

    def pages(self, name: str) -> list[Signature]:
        """Return a sample of the held documents of a host, at most 128, mostly late ones, oldest first."""
        return self.documents.of_host(name)

    def runs(self) -> list[Run]:
        """Return the records of all runs, oldest first."""
        return sorted(self.session.runs.values(), key=lambda run: run.started)

    def is_alive(self, run: str) -> bool:
        """Return whether a living process has this run open. If not, read the run's latest record into `runs`."""
        if run == self.run or self.backend.is_held(run):
            return True
        self.session.update_runs(self.backend.get([f"{RUN}/{run}"]))  # the run may have been closed meanwhile
        return False

    def run_of(self, signature: Signature) -> str:
        """Return the id of the run that added a document."""
        return signature.id.rpartition("/")[0] or self.run

    def describe(self) -> dict[str, object]:
        """Return the name, the sizes and the counts of the store."""
        counts = {"urls": self.session.urls, "runs": len(self.session.runs)}
        return {"store": self.backend.name, **self.backend.describe(), **counts}

    def __len__(self) -> int:
        """Return the number of held documents."""
        return self.session.documents + len(self.documents.pending)

    # Writing, and other processes

    def _flush_in_time(self) -> None:
        """Flush the buffer if it is large or old. Ignore errors, since the next flush retries."""
        self._rows += 1
        if self.run and (self._rows >= BATCH or self._is_due(time.monotonic() - self._flushed)):
            with suppress(StoreError):
                self.flush(wait=False)
                self.refresh()

    def _is_due(self, seconds: float) -> bool:
        """Return whether a buffer must be flushed that was last flushed this many seconds ago."""
        return seconds > SHARED_SECONDS and (seconds > BATCH_SECONDS or bool(self.session.others_open()))

    def flush(self, *, wait: bool = True) -> None:
        """Make committed rows durable. With `wait=False`, only start to write. Raise StoreError if a write failed."""
        self._flushed, self._rows = time.monotonic(), 0
        if self.run:
            if self._news != HostNews():
                news, self._news = self._news, HostNews()
                self.backend.write([Entry(f"{HOST}/{self.session.next_id()}", news)])
            self.session.save_counts()
        self.backend.flush(wait=wait)

    def refresh(self) -> bool:
        """Read a batch of new rows of other processes. Return whether more remain.

        Raise StoreError if a row is damaged.
        """
        rows, more = self.backend.news()
        if rows or self.is_remote:
            self._visits.refresh()
        if self.is_remote:  # a server sends no news of visits
            self.documents.recount_all()
        errors = [error for row in rows if (error := self._try_to_apply(row))]
        if self.is_remote and self.run:
            self._dead.look()
        if errors:
            raise errors[0]
        return more

    def _try_to_apply(self, row: Row) -> StoreError | None:
        """Apply a new row. Return its error instead of raising it, so that rows after a damaged row are applied."""
        try:
            self._apply(row)
        except StoreError as error:
            return error
        return None

    def _apply(self, row: Row) -> None:
        kind = row.key.partition("/")[0]
        if kind not in (HOST, VISIT, DOCUMENT):
            self.session.update_runs([row])
        elif kind == HOST:
            self._apply_hosts([row])
        elif kind == VISIT and (visit := self.session.load(row)):
            self.documents.recount(getattr(visit, "target", None) or "")
        elif kind == DOCUMENT and self.documents.lookup.own and not row.is_pending:
            self.documents.lookup.enter(self.documents.held(row))

    def _apply_hosts(self, rows: Iterable[Row]) -> None:
        news: list[Any] = [self.session.load(row) for row in rows]
        self.hosts.load(trial for each in news for trial in each.trials)
        for each in news:
            for name, when in each.met.items():
                self.hosts.meet_site(name, when)
            for name, fact, is_counter in each.counters:
                self.counters.know(name, fact, is_counter=is_counter)

    def close(self, *, clean: bool = True) -> None:
        """Withdraw pending documents, flush, and close the run. With `clean=False`, the run counts as dead."""
        try:
            self.backend.reach()
            for signature in list(self.documents.pending):
                self.withdraw(signature)
            self.flush()
            if self.run and clean:
                self.session.close(self.stats)
                self.backend.flush(wait=True)
            self.backend.release_run(self.run)
        finally:
            self.backend.abandon()
