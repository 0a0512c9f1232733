"""The store: documents and links over a back end.

A document is pending from `add` or `enter` on, and committed or withdrawn later. Both kinds are found. What is
committed becomes rows, `document/RUN/NUMBER` and `link/RUN/NUMBER`: each process writes under its own run, so none is
in another's way, and to write a row twice changes nothing. The row of a document tells the first visit of its own URL;
a link tells of every other visit, and counts before it.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any

from ..detectors.detector import Detector
from ..mirrors.hosts import Hosts
from ..mirrors.relations import Row as Trial
from ..signature import Link, Signature, Visit
from ..text.shapes import site
from . import erasure
from .claims import Claims
from .dead_runs import Dead
from .documents import Documents
from .interface import DOCUMENT, HOST, LINK, RUN, Backend, Entry, Forgotten, HostNews, Row, Selection, StoreError
from .lookup import Lookup
from .runs import Run
from .session import Session

BATCH, BATCH_SECONDS = 1000, 0.5  # rows that are held back at most, and for how long
SHARED_SECONDS = 0.04  # the same where another run may wait for them: to write so often costs 5 % of a crawl


class Store:
    """Signatures of documents, found by their fingerprints, and what each URL led to.

    Only what is committed outlives the process, durably after the next `flush`.
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
        """`run` is the id of a run to go on with, "" for a new one, None to look into the store without writing."""
        self.hosts = Hosts()
        """What was learned of host mirrors, in this run and all others."""
        self.stats: dict[str, int] = {}
        """Scrapy's stats of this run so far, without their prefix: kept with it when it ends."""
        self.backend = backend
        self.session = Session(backend, lookup := Lookup(detectors))
        self.documents = Documents(backend, self.session, lookup)
        self.claims = Claims(self.documents, backend)
        self._links = self.documents.links
        self.lost = 0.0, 0.0
        """The time span, in seconds since the epoch, whose rows were forgotten because this run died."""
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
        self._take_in_hosts(self.backend.scan(HOST))
        if self.documents.lookup.own:
            for row in self.backend.scan(DOCUMENT):
                self._take_in(row)
        if run is not None:
            self._dead.end(died)
        for each in died if not self._dead.keeps else ():
            if each.id == self.run:
                self.lost = each.paused, time.time()
        while self.refresh():
            pass

    @property
    def run(self) -> str:
        """The id of the run that this store was opened for; "" where there is none."""
        return self.session.run

    @property
    def is_remote(self) -> bool:
        """Whether its answers come over a network."""
        return self.backend.is_remote

    # Documents that are found

    def find(self, fingerprints: Mapping[str, Sequence[int]]) -> Iterator[tuple[str, Signature]]:
        """Yield each detector's name with each document that it proposes, in the detectors' order."""
        if not self.is_remote:  # else what others wrote is there to be found
            self.refresh()
        is_claim, found = self.claims.found(fingerprints)
        return self.documents.found(fingerprints, found, with_pending=is_claim)

    def leave(self, signature: Signature) -> None:
        """Do not hold a document that was to be claimed, for it repeats another."""
        self.claims.leave()
        if signature in self.documents.pending:
            self.withdraw(signature)

    def add(self, signature: Signature) -> None:
        """Hold a new document, pending, whatever it repeats."""
        self.documents.add(signature)

    def commit(self, signature: Signature, visit: Visit | None = None) -> None:
        """Keep a pending document for good; `visit`: of its own URL, which gave it and nothing else."""
        if self.documents.commit(signature, visit):
            if visit and signature.url:
                self._meet(signature.url, visit.seen)
            self._flush_in_time()

    def withdraw(self, signature: Signature) -> None:
        """Give up a document, pending or committed, as if it had never been added, with all that led to it."""
        self.documents.withdraw(signature)
        self._flush_in_time()

    # URLs

    def record(self, link: Link) -> None:
        """Keep what a URL led to, in place of what was known of it."""
        if link.signature and self.documents.is_gone(link.signature):
            return  # forgotten since
        self.documents.note_link(link.signature)
        self._links.record(link)
        if link.url:
            self._meet(link.url, link.seen)
        self._flush_in_time()

    def _meet(self, url: str, seen: float) -> None:
        if self.hosts.meet(url, seen):
            self._news.met[site(url)] = seen

    def resolve(self, url: str) -> Link | None:
        """Return what is known of a URL, in whatever spelling."""
        return self._links.resolve(url)

    def unlink(self, url: str) -> None:
        """Forget what a URL led to."""
        self._links.unlink(url)
        self._flush_in_time()

    def links(self, signature: Signature) -> list[Link]:
        """Return the URLs that led to a document, oldest first."""
        return [] if self.documents.is_gone(signature) else self._links.of(signature)

    def all_links(self) -> Iterator[Link]:
        """Yield what is known of all URLs."""
        return self._links.all()

    def learn(self, trials: Iterable[Trial]) -> None:
        """Keep evidence that `hosts` has taken in."""
        self._news.trials.extend(trials)
        self._flush_in_time()

    # All of it

    def forget(self, what: Selection) -> Forgotten:
        """Forget documents, URLs and rules; for good once flushed. Nothing is forgotten twice: then it counts 0."""
        return erasure.forget(self, what)

    def selected(self, what: Selection) -> Forgotten:
        """Return how much `forget` would forget."""
        return erasure.selected(self, what)

    def signatures(self) -> Iterator[Signature]:
        """Yield all documents that are held, this process's pending ones included."""
        return self.documents.all()

    def runs(self) -> list[Run]:
        """Return what is known of all runs, oldest first."""
        return sorted(self.session.runs.values(), key=lambda run: run.started)

    def is_alive(self, run: str) -> bool:
        """Return whether a living process has a run open. Of one that none has, `runs` tells what holds by now."""
        if run == self.run or self.backend.is_held(run):
            return True
        self.session.take_in(self.backend.get([f"{RUN}/{run}"]))  # it may have closed while we looked
        return False

    def run_of(self, signature: Signature) -> str:
        """Return the id of the run in which a document came."""
        return signature.id.rpartition("/")[0] or self.run

    def describe(self) -> dict[str, object]:
        """Return what there is to say of the store itself."""
        counts = {"urls": self.session.urls, "runs": len(self.session.runs)}
        return {"store": self.backend.name, **self.backend.describe(), **counts}

    def __len__(self) -> int:
        """How many documents are held."""
        return self.session.documents + len(self.documents.pending)

    # Writing, and other processes

    def _flush_in_time(self) -> None:
        """Flush a batch that is large or old, for those who do not flush; what fails is tried again."""
        self._rows += 1
        if self.run and (self._rows >= BATCH or self._is_due(time.monotonic() - self._flushed)):
            with suppress(StoreError):
                self.flush(wait=False)
                self.refresh()

    def _is_due(self, seconds: float) -> bool:
        """Return whether rows are to be flushed that were held back for so long."""
        return seconds > SHARED_SECONDS and (seconds > BATCH_SECONDS or bool(self.session.others_open()))

    def flush(self, *, wait: bool = True) -> None:
        """Make what was committed durable; without `wait` only set out to. Raise StoreError for what failed."""
        self._flushed, self._rows = time.monotonic(), 0
        if self.run:
            if self._news.trials or self._news.met:
                news, self._news = self._news, HostNews()
                self.backend.write([Entry(f"{HOST}/{self.session.next_id()}", news)])
            self.session.save_counts()
        self.backend.flush(wait=wait)

    def refresh(self) -> bool:
        """Read some rows that other processes committed; return whether there are more. Raise the first StoreError."""
        rows, more = self.backend.news()
        if rows or self.is_remote:
            self._links.refresh()
        if self.is_remote:  # a server tells of no links
            self.documents.recount_all()
        errors = [error for row in rows if (error := self._try_to_take_in(row))]
        if self.is_remote and self.run:
            self._dead.look()
        if errors:
            raise errors[0]
        return more

    def _try_to_take_in(self, row: Row) -> StoreError | None:
        """Take a row of news; return its error, so that one damaged row does not hide the others."""
        try:
            self._take_in(row)
        except StoreError as error:
            return error
        return None

    def _take_in(self, row: Row) -> None:
        kind = row.key.partition("/")[0]
        if kind not in (HOST, LINK, DOCUMENT):
            self.session.take_in([row])
        elif kind == HOST:
            self._take_in_hosts([row])
        elif kind == LINK and (link := self.session.load(row)):
            self.documents.recount(getattr(link, "target", None) or "")
        elif kind == DOCUMENT and self.documents.lookup.own and not row.is_pending:
            self.documents.lookup.enter(self.documents.held(row))

    def _take_in_hosts(self, rows: Iterable[Row]) -> None:
        news: list[Any] = [self.session.load(row) for row in rows]
        self.hosts.load(trial for each in news for trial in each.trials)
        for each in news:
            for name, when in each.met.items():
                self.hosts.meet_site(name, when)

    def close(self, *, clean: bool = True) -> None:
        """Flush, and end the run; not `clean`: leave it to the next one to say what becomes of it."""
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
