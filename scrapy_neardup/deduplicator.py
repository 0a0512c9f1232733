"""Claim documents one after another, and store them. This is the Python interface, without Scrapy."""

from __future__ import annotations

import logging
import time
from bisect import bisect
from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack, suppress
from functools import lru_cache, partial
from os import PathLike
from types import TracebackType
from typing import TYPE_CHECKING

from .detectors import Detector, Signer, build_detectors
from .document import Document
from .facts import Names, agree, names_in, strong
from .fingerprints.hashes import hash_bytes
from .hosts import MAX_KNOWN, Relation
from .matching.matcher import Matcher
from .matching.reviews import Reviews
from .mirrors import Deliveries
from .settings import Config, Keywords
from .signature import TITLE, Evidence, Signature, Visit
from .store import Selection, Store, StoreError, open_store
from .text.urls import canonical_url
from .verdict import UNIQUE, Match, Verdict, named

if TYPE_CHECKING:
    from typing_extensions import Unpack

logger = logging.getLogger(__name__)

PAGES, ITEMS = 1000, 10_000  # at most: pages with several items whose earlier items are cached, and items of one page
PATIENCE = 12.0  # seconds that `claim` waits for another process, which may wait for this one; a crawl waits longer
PAUSES = (0.001, 0.05)  # seconds between two checks on another process, at first and at most


class Claim:
    """The decision on a document on its way into the store: pending at first, then committed or withdrawn for good."""

    def __init__(self, dedup: Deduplicator, document: Document, signature: Signature, match: Match | None) -> None:
        """Create a pending claim. `match` is the match with the original; None if the document is unique."""
        self._dedup = dedup
        self.document = document
        self.signature = signature
        self.match = match
        self.verdict = dedup.verdict(document, signature, match)
        self.is_successor = False
        """True for a copy that takes the place of an original whose URL no longer returns the document."""
        self.apart = None if match else dedup.matcher.apart
        """If the document differs in one fact from an earlier one of its text: that one and the fact; else None."""
        self.is_copy = self.verdict.status == "duplicate" and not self.verdict.changed
        self.state = "pending"
        """`pending`, `committed` or `withdrawn`."""
        self.rival = dedup.pending.get(match.signature) if match else None
        """The claim of the original if it is pending in this process, else None. `commit` shares its outcome."""
        self.is_early = bool(self.rival or (match and dedup.store.is_pending(match.signature)))
        """True if the original was pending at the time of the claim, in this process or another."""
        self._observers: list[Callable[[], object]] = []

    def when_settled(self, callback: Callable[[], object]) -> None:
        """Call `callback` once, when the claim is committed or withdrawn; at once if this has already happened."""
        if self.state == "pending":
            self._observers.append(callback)
        else:
            callback()

    def commit(self) -> None:
        """Hold the document for good or, if it is a copy, record its URL as a copy of the original.

        If the claim of the original is pending in this process, this claim is settled later, together with that one.
        """
        if self.rival and self.rival.state == "pending":
            self.rival.when_settled(self.commit)
        else:
            self._settle(self.rival.state if self.rival else "committed")

    def withdraw(self) -> None:
        """Withdraw the claim of an item that was not stored, so that the URLs of the document are fetched again."""
        self._settle("withdrawn")

    def _settle(self, state: str) -> None:
        if self.state != "pending":
            return
        self.state = state
        with ExitStack() as stack:  # calls all of them, even if the store or one of them raises
            for callback in reversed(self._observers):
                stack.callback(callback)
            self._dedup.settle(self)


class Deduplicator:
    """Claims documents one after another. Each document is compared with earlier originals.

    Create it with `open`, and use it in one thread. As a context manager, it closes its store at the end of the block.
    If an exception other than SystemExit leaves the block, the run counts as dead, and NEARDUP_UNCLEAN_RUN decides
    whether to keep its documents.
    """

    def __init__(
        self, store: Store, detectors: Iterable[Detector], config: Config, reviews: Reviews | None = None
    ) -> None:
        self.store = store
        own = next((run for run in store.runs() if run.id == store.run), None)
        self.deliveries = Deliveries(store, own.started if own else time.time())
        # The starts of the runs of this spider, ascending.
        self._starts = [0.0, *(run.started for run in store.runs() if own and run.writer == own.writer)]
        self.detectors = list(detectors)
        self.signer = Signer(self.detectors)
        self.matcher = Matcher(store, config, reviews or Reviews(config), self.deliveries.is_delivered)
        self.changes: list[Relation] = []  # relations whose rule began or ended since `take_changes`
        self._learns_hosts = config.learn_hosts
        self.pending: dict[Signature, Claim] = {}  # of the documents that are pending in this process
        self._signed: dict[Document, Signature] = {}  # signatures of prefetched documents
        self._states = lru_cache(PAGES)(self._earlier_states)  # by the URL of the page
        self._closed = False

    @classmethod
    def open(
        cls, store: str | PathLike[str] | None = None, *, run: str = "", **settings: Unpack[Keywords]
    ) -> Deduplicator:
        """Open the store at a path or on a server; for None, a store in memory.

        Settings are keywords in lower case, without the prefix NEARDUP_. `run` is the id of a run to resume, "" for a
        new run. Raise ConfigError for a bad setting, StoreError if the store can't be read.
        """
        return cls.from_config(Config.from_keywords({**settings, "store": store}), run=run)

    @classmethod
    def from_config(cls, config: Config, *, run: str | None = "", writer: str = "") -> Deduplicator:
        """Open the store of a configuration.

        `run` is the id of a run to resume, "" for a new run, or None to open the store only for reading. `writer` names
        the spider or command. Unless only reading, forget documents that no URL has returned within NEARDUP_TTL.
        """
        # First, so that a bad setting opens no store.
        detectors, reviews = build_detectors(config), Reviews(config)
        store = open_store(
            config.store, detectors, namespace=config.namespace, unclean_run=config.unclean_run, run=run, writer=writer
        )
        dedup = cls(store, detectors, config, reviews)
        if config.ttl is not None and run is not None:
            forgotten = store.forget(Selection(before=time.time() - config.ttl))
            if forgotten.documents:
                logger.info("%d documents forgotten: no URL returned them within NEARDUP_TTL", forgotten.documents)
        return dedup

    def claim(self, document: Document) -> Claim:
        """Decide on a document. If it is unique, hold it as pending, and compare later documents with it.

        If it repeats a document that is pending in another process, wait up to `PATIENCE` seconds until that document
        is committed or withdrawn. If that document is still pending then, the new one is unique, but is not held.
        """
        end, moment = time.monotonic() + PATIENCE, PAUSES[0]
        while (claim := self.try_claim(document)).is_early and claim.rival is None:
            if time.monotonic() > end:
                return Claim(self, document, claim.signature, None)
            time.sleep(moment)
            moment = min(2 * moment, PAUSES[1])
        return claim

    def try_claim(self, document: Document) -> Claim:
        """Decide on a document as `claim` does, without waiting for other processes; see `Claim.is_early`."""
        signature = self._signed.pop(document, None)
        if signature is None:
            if self._signed:
                self.foresee(())  # discard prefetched lookups, which do not know of this document
            signature = self.sign(document)
        look = partial(self.matcher.best, document, signature)
        match = self.store.claim(signature, look) if signature.can_be_repeated else look()
        self.matcher.learn(document, signature, match)
        claim = Claim(self, document, signature, match)
        if signature in self.store.pending:
            self.pending[signature] = claim
        return claim

    def decide(self, documents: Sequence[Document], records: Sequence[bytes] = ()) -> list[Claim]:
        """Claim documents, and commit each before the next one is claimed.

        This is faster than single calls of `claim`, since lookups are made together. `records` are the records of the
        documents if `signer` has made them before. If a claim raises, the documents before it stay committed.
        """
        self.foresee(documents, records)
        claims: list[Claim] = []
        for document in documents:
            claims.append(self.claim(document))
            claims[-1].commit()
        return claims

    def foresee(self, documents: Sequence[Document], records: Sequence[bytes] = ()) -> None:
        """Prefetch the lookups of the documents to be claimed next, in this order: one round trip to a server."""
        self._signed.clear()
        with suppress(Exception):  # the claim raises the error of a detector again
            for document, record in zip(documents, records or self.signer.records(documents), strict=True):
                self._signed[document] = self.sign(document, record)
        with suppress(StoreError):  # the claim raises a lasting error again
            self.store.foresee([each for each in self._signed.values() if each.can_be_repeated])

    def sign(self, document: Document, record: bytes | None = None) -> Signature:
        """Return the signature of a document. Raise ValueError for an invalid fingerprint."""
        record = record or self.signer.records([document])[0]
        return Signature(document.url, record, time.time(), document.title[:TITLE], document.label)

    def verdict(self, document: Document, signature: Signature, match: Match | None) -> Verdict:
        """Return the verdict on a document, given its match; `UNIQUE` for None."""
        if match is None:
            return UNIQUE
        return Verdict(
            "revisit" if self.matcher.is_own(document.url, match.signature) else "duplicate",
            match.signature.url,
            match.signature.label,
            *match.evidence,
            copies=match.signature.copy_count,
            changed=self._has_changed(document, signature, match.signature),
        )

    def _has_changed(self, document: Document, new: Signature, signature: Signature) -> bool:
        """Return whether a document that repeats `signature` is a change at its URL, as from A to B and back to A.

        Its own URL last returned a held document that is neither like `signature` nor like `new`, its own signature. Or
        it is one of several items of a page, and the page has given another state of this item since `signature`. With
        NEARDUP_REVISIT = "keep", such an item never counts as changed, since changes do not matter then.
        """
        is_own = self.matcher.is_own(document.url, signature)
        link = self.store.resolve(document.url) if document.has_own_url and document.url else None
        if document.is_one_of_several or (link and not link.signature):
            return is_own and not self.matcher.keeps_revisits and self._was_replaced(document.url or "", signature)
        last = link.signature if link and not link.evidence else None  # with evidence, no item was new
        if not link or not last or link.loose != (document.url in document.loose):
            return False
        if last.is_twin_of(new) or last.is_twin_of(signature):
            return False
        if is_own and link.loose and self._shares_url(signature, link):
            return False
        # The fields and the title of another spider may differ though the page is the same.
        is_by_text = names_in(last.facts) == names_in(signature.facts) and not last.says_the_same(signature)
        states = [state for state in (link, link.before) if state and self.store.session.is_of_writer(state.at)]
        return is_by_text or any(state.target not in (None, signature.id) for state in states)

    def _was_replaced(self, url: str, signature: Signature) -> bool:
        """Return whether a run after the last one that got `signature` got this item of a page in another state.

        Documents that the same run got are several items, not several states of one.
        """
        states, counters = self._states(url).get(_shared(signature), ()), self.store.counters.of(url, signature.facts)
        first, last = self._run_at(signature.first_seen), self._run_at(self._last_seen(signature))
        later = (each for began, ended, each in states if last < ended and began not in (first, last))
        return not all(_say_the_same(each, signature, counters) for each in later)

    def _earlier_states(self, url: str) -> dict[object, list[tuple[float, float, Signature]]]:
        """Return the documents that earlier runs got from a page, grouped by what all states of an item share.

        Before each are the starts of the first and the last run that got it.
        """
        found: dict[object, list[tuple[float, float, Signature]]] = {}
        for each in self.store.of_page(url, ITEMS):
            if not self.deliveries.is_of_run(last := self._last_seen(each)):
                state = self._run_at(each.first_seen), self._run_at(last), each
                found.setdefault(_shared(each), []).append(state)
        return found

    def _run_at(self, seen: float) -> float:
        """Return the start of the run of this spider to which the time `seen` belongs."""
        return self._starts[bisect(self._starts, seen) - 1]

    def _last_seen(self, signature: Signature) -> float:
        return max(signature.first_seen, self.deliveries.last(signature))

    def _shares_url(self, signature: Signature, link: Visit) -> bool:
        """Return whether a document was among the items of its URL when that URL was last visited before this run."""
        known = link.before if self.deliveries.is_of_run(link.seen) else link
        if known is None:
            return self.deliveries.is_delivered(signature)
        began = max((run.started for run in self.store.runs() if run.started <= known.seen), default=0.0)
        return known.target == signature.id or self._last_seen(signature) >= began

    def settle(self, claim: Claim) -> None:
        """Record the outcome of a claim. The claim calls this once."""
        document, signature, match = claim.document, claim.signature, claim.match
        is_new = self.pending.pop(signature, None) is not None
        if claim.state == "withdrawn":
            if is_new:
                self.store.withdraw(signature)
            self.keep_fetching(document)
            return
        given_by, own = _urls(document), None
        with suppress(StoreError):  # the next write raises the error again
            if not self.store.is_remote and self.store.session.others_open():
                self.store.refresh()  # another process may have written these URLs since the claim
            self.deliveries.remember(given_by, match.signature if match else signature)
        if is_new:
            if document.url and document.has_own_url and document.url not in document.loose:
                own = Visit(document.url, signature, False, time.time(), document.size)
            self.store.commit(signature, own)  # first, since the next steps may fail
            if document.url in self.matcher.preference:
                self._take_place(document, signature)
        if self._learns_hosts:
            self._learn(claim, given_by)
        if not document.has_own_url:  # the page may have given other documents too
            if document.page or document.url not in document.loose:  # not for a POST, whose URL may give another by GET
                self._unlink(given_by, document.size)
            if match and claim.is_copy:
                self._link_item(document, signature, match)
        elif is_new:
            self._link(given_by[1:] if own else given_by, document, signature, None, is_copy=False)
        elif match:
            given_by = given_by if document.url else ["", *given_by]
            evidence = match.evidence if claim.is_copy else None  # a successor has evidence, but is recorded as no copy
            is_copy = claim.is_copy and not claim.is_successor
            self._link(given_by, document, match.signature, evidence, is_copy=is_copy)
        else:
            self.keep_fetching(document)

    def keep_fetching(self, document: Document) -> None:
        """For those URLs of a document that are known as copies, record that they return content that is not held."""
        known = ((url, self.store.resolve(url)) for url in _urls(document))
        self._unlink([url for url, visit in known if visit and visit.is_copy], document.size)

    def _unlink(self, urls: Iterable[str], size: int) -> None:
        """Record that URLs returned several documents, or content that is not held."""
        for url in urls:
            self.store.record(Visit(url, None, False, time.time(), size))

    def _link_item(self, document: Document, signature: Signature, match: Match) -> None:
        """Record that one of several items of a page is a copy, unless the original has the URL of this page."""
        if canonical_url(document.url or "") != canonical_url(match.signature.url or ""):
            identity = hash_bytes(signature.sketch.codes + signature.facts)
            name = f"item {identity:016x}: {named(document.url, document.label)}"
            visit = Visit("", match.signature, True, time.time(), evidence=match.evidence, loose=True, name=name)
            self.store.record(visit)

    def _link(
        self, urls: Iterable[str], document: Document, signature: Signature, evidence: Evidence | None, *, is_copy: bool
    ) -> None:
        """Record that URLs returned a document; "" stands for a copy without a URL."""
        for url in urls:
            loose = url in document.loose
            known = self.store.resolve(url) if url else None
            own = known if known and known.signature and not known.is_copy else None
            # A URL with a document of its own does not become a copy, even if it, or a list page, gives a copy.
            if own and ((evidence and not own.evidence) or (loose and not own.loose)):
                continue
            # A successor stays one until the original's own URL returns the document again.
            said = own.evidence if own and own.signature is signature and not evidence else evidence
            is_over = said is not evidence and self.deliveries.is_back(signature)
            self.store.record(Visit(url, signature, is_copy or is_over, time.time(), document.size, said, loose))

    def _take_place(self, document: Document, signature: Signature) -> None:
        """Make a document of a preferred host the original of the documents that it repeats.

        The URLs of the repeated documents become copies, except URLs on preferred hosts. Repeated documents of this run
        are withdrawn. Older ones stay held, since this run may die.
        """
        for match in list(self.matcher.outranked(document, signature)):
            if rival := self.pending.get(match.signature):
                rival.when_settled(partial(self._take_place, document, signature))
                continue
            for link in self.store.visits(match.signature):
                if link.url and link.url not in self.matcher.preference:
                    copy = Visit(link.url, signature, True, link.seen, link.size, match.evidence, link.loose)
                    self.store.record(copy)
            if self.store.is_new(match.signature):
                self.matcher.forget(match.signature)
                self.store.withdraw(match.signature)

    def _learn(self, claim: Claim, given_by: list[str]) -> None:
        """Learn from a document about the mirrors of its host."""
        document, signature = claim.document, claim.signature
        held = claim.match.signature if claim.match else None
        known = [held.url] if held and held.url else []
        if held and held.copy_count:
            known = [visit.url for visit in self.store.visits(held, MAX_KNOWN)]
        look = partial(self.matcher.trial, signature)
        for url in given_by:
            if url not in document.loose:
                trials, changes = self.store.hosts.learn(
                    url, known, look, signature.first_seen, claimed=document.claimed
                )
                if trials:
                    self.changes += changes
                    self.store.learn(trials)

    def take_changes(self) -> list[Relation]:
        """Return `changes`, and empty it."""
        changes, self.changes = self.changes, []
        return changes

    def flush(self) -> None:
        """Make all committed documents durable, and read the rows of other processes.

        Raise StoreError if the store is closed, or can't be written or read.
        """
        if self._closed:
            raise StoreError("the store is closed")
        self.store.flush()
        self.store.catch_up()  # also releases rows that are on disk by now

    def close(self, *, clean: bool = True) -> None:
        """Withdraw pending documents, flush, and close the run: as dead unless `clean`. Further calls do nothing."""
        if self._closed:
            return
        self._closed = True
        try:
            for claim in list(self.pending.values()):
                claim.withdraw()
        finally:
            self.store.close(clean=clean)

    def __len__(self) -> int:
        """Return the number of held documents."""
        return len(self.store)

    def __bool__(self) -> bool:
        """Return True, even if no document is held."""
        return True

    def __enter__(self) -> Deduplicator:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close(clean=kind is None or (isinstance(error, SystemExit) and not error.code))


def _urls(document: Document) -> list[str]:
    """Return the URLs of a document, with its own URL first."""
    return [url for url in (document.url, *document.aliases) if url]


def _shared(signature: Signature) -> object:
    """Return what all states of an item share: its strong facts; without any, its title; without a title, its text."""
    return strong(signature.facts) or signature.title or signature.sketch


def _say_the_same(a: Signature, b: Signature, counters: Names) -> bool:
    return (a.sketch, a.title) == (b.sketch, b.title) and agree(a.facts, b.facts, counters, needs_all=True)
