"""Find, hold, commit and forget documents and links in a store (`Store`), on top of a back end.

A document is pending from `add` or `enter` until it is committed or withdrawn. Lookups find pending and committed
documents. A committed record is a row with the key `document/RUN/NUMBER` or `link/RUN/NUMBER`. Each process creates
rows under its own run, so two processes never choose the same key, and writing a row twice changes nothing. The row of
a document includes the first visit of its own URL. Every other visit is recorded as a link, which takes precedence over
the visit in the document's row.
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
from ..signature import Link, Signature, Visit
from ..text.shapes import site
from ..text.urls import host
from . import erasure
from .claims import Claims
from .dead_runs import Dead
from .documents import Documents
from .interface import DOCUMENT, HOST, LINK, RUN, Backend, Entry, Forgotten, HostNews, Row, Selection, StoreError
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
        self._links = self.documents.links
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
        if not self.is_remote:  # a server always finds the rows of all processes
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
        """Delete a pending or committed document, and all links to it."""
        self.documents.withdraw(signature)
        self._flush_in_time()

    # URLs

    def record(self, link: Link) -> None:
        """Record a link as the state of its URL, in place of the previous state."""
        if link.signature and self.documents.is_gone(link.signature):
            return  # the document was forgotten meanwhile
        self.documents.note_link(link.signature)
        self._links.record(link)
        if link.url:
            self._meet(link.url, link.seen)
        self._flush_in_time()

    def _meet(self, url: str, seen: float) -> None:
        if self.hosts.meet(url, seen):
            self._news.met[site(url)] = seen

    def resolve(self, url: str) -> Link | None:
        """Return the state of a URL, in any spelling, as a link. Return None if the URL is unknown."""
        return self._links.resolve(url)

    def unlink(self, url: str) -> None:
        """Forget the state of a URL."""
        self._links.unlink(url)
        self._flush_in_time()

    def links(self, signature: Signature) -> list[Link]:
        """Return the links to a document, oldest first."""
        return [] if self.documents.is_gone(signature) else self._links.of(signature)

    def all_links(self) -> Iterator[Link]:
        """Yield the state of each known URL, as a link."""
        return self._links.all()

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
            self._links.refresh()
        if self.is_remote:  # a server sends no news of links
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
        if kind not in (HOST, LINK, DOCUMENT):
            self.session.update_runs([row])
        elif kind == HOST:
            self._apply_hosts([row])
        elif kind == LINK and (link := self.session.load(row)):
            self.documents.recount(getattr(link, "target", None) or "")
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
