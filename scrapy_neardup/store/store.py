"""Find, hold, commit and forget documents and visits in a store (`Store`), on top of a back end.

A document is *pending* from `add` until it is committed or withdrawn. Lookups find pending and committed documents. A
committed document is a row that never changes. Its key begins with the code of the run that added it. So two processes
never choose the same key, and writing a row twice changes nothing. What a URL returned last is its *visit*: a row with
the hash of the URL as its key, in place of the visit before.

To *claim* a document is to look for its original and, if there is none, to hold the document as pending. On a server,
two processes may claim two copies of one text at the same time. Then one process finds the document of the other:

1. A lookup asks for the rows with the document's fingerprints. If there are none, the server holds the document in the
   same round trip.
2. If there are rows, but the document is a copy of none, the client asks the server to hold it. The server refuses if a
   document with one of the fingerprints was added after the lookup. Then the client repeats the lookup.
3. Documents with a near SimHash do not prevent the server from holding the document. The client compares the document
   with them afterwards, and releases it if it is a copy of one.

A local back end holds a document for its own process only. Other processes find the document once it is committed. The
crawls of one process, which run in one thread, find each other's pending documents in memory (`Backend.meet`).
"""

from __future__ import annotations

import time
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import chain
from operator import attrgetter
from typing import Any, cast
from weakref import WeakSet, WeakValueDictionary

from ..detectors import Detector
from ..facts import Counters
from ..fingerprints.hashes import hash_bytes
from ..hosts import Hosts, Trial
from ..row_index import Question, sharing
from ..signature import Signature, Visit
from ..text.urls import canonical_url, host, site
from ..verdict import Match
from . import records
from .backend import Backend, Entry, Forgotten, Found, Lookup, Row, Selection, StoreError
from .records import DOCUMENT, HOST, RUN, VISIT, HostNews, Run
from .runs import Session, end, forget
from .visits import MANY, Visits

BATCH, BATCH_SECONDS = 1000, 0.5  # the rows in the buffer, or its age in seconds, after which it is flushed
SHARED_SECONDS = 0.04  # the age if other runs are open, since they need the rows soon; it costs 5 % of a crawl
SAMPLES = 128  # samples of a host to read; after each 128 samples, a run takes only half as many documents as samples
HOSTS = 10_000  # hosts whose samples are counted
RECENT = 256  # decoded documents to cache, since pages of one template find the same candidates again and again


class Store:
    """Documents, which are found by their fingerprints, and the visits of URLs."""

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
        self.hosts = Hosts()  # the evidence on mirrors from all runs
        self.counters = Counters()  # the facts of each host that are counters, from all runs
        self.stats: dict[str, int] = {}  # Scrapy's stats of this run so far, without prefix; stored at its end
        self.fields: set[str] = set()  # the names of fields with facts in this run so far; stored with the stats
        self.run = ""  # the id of the run of this process; "" if the store is open read-only
        self.pending: set[Signature] = set()  # documents of this process; the back end has an entry of each
        self.lookup = Lookup(detectors)
        self.backend, self.is_remote = backend, backend.is_remote
        self.session = Session(backend, self.lookup.schemes)
        self.urls = Visits(backend, self.session, self.held)
        self.resolve = self.urls.resolve
        self._keeps = unclean_run == "keep"
        self._news = HostNews()
        self._unwritten = 0
        self._flushed = time.monotonic()
        self._held: WeakValueDictionary[int, Signature] = WeakValueDictionary()
        self._recent: deque[Signature] = deque(maxlen=RECENT)
        self._gone: WeakSet[Signature] = WeakSet()  # withdrawn or forgotten by this process; see `_is_gone`
        self._elsewhere: WeakSet[Signature] = WeakSet()  # pending in another process or crawl when last found
        self._samples: Counter[str] = Counter()  # the number of samples by host that this process made
        self._claimed: Signature | None = None  # the document that `claim` has under way
        self._seen = b""  # `Found.seen` of its last lookup
        self._foreseen: dict[Signature, Found] = {}  # see `foresee`
        try:
            self._begin(run, writer)
        except BaseException:
            backend.close()
            raise

    def _begin(self, run: str | None, writer: str) -> None:
        died = self.session.begin(run, writer)
        self.run = self.session.run
        self._apply_hosts(self.backend.scan(HOST))
        if self.lookup.in_ram:
            for row in self.backend.scan(DOCUMENT):
                self._apply(row)
        if run is not None:
            end(self, died, keeps=self._keeps)
        self.catch_up()

    # Claims

    def foresee(self, signatures: Sequence[Signature]) -> None:
        """Prefetch the lookups of documents to be claimed next, in one round trip. Discard earlier unused lookups."""
        for signature, found in self._foreseen.items():
            if found.is_held:
                self.backend.release(self.entry(signature))
        self._foreseen.clear()
        if questions := self._apart(signatures):
            entries = [self.entry(each) for each in questions] if self.is_remote else ()
            self._foreseen = dict(zip(questions, self._ask(questions, entries), strict=True))

    def _apart(self, signatures: Sequence[Signature]) -> dict[Signature, Question]:
        """Return the questions of those documents that share no key or near SimHash with another one of `signatures`.

        These documents can't be candidates of each other. So each answer is still complete when it is used.
        """
        asked = [self.lookup.question(each) for each in signatures]
        together = sharing(asked)
        return {signatures[at]: each for at, each in enumerate(asked) if at not in together}

    def claim(self, signature: Signature, look: Callable[[], Match | None]) -> Match | None:
        """Return the match of a document with its original. If there is none, hold the document as pending.

        `look` calls `find`, and returns the match, if any. It is called again if it may have missed new candidates. A
        server holds the document at its lookup if no row has one of its keys.
        """
        found, is_held = None, False
        self._claimed, self._seen = signature, b""
        try:
            while not is_held and (found := look()) is None:
                is_held = self.add(signature, self._seen)
        finally:
            self._claimed = None
            if not is_held and signature in self.pending:
                self.withdraw(signature)
        return found

    def find(self, signature: Signature) -> list[tuple[str, Signature]]:
        """Return each candidate as a pair of detector name and document, in the order of the detectors."""
        found, is_claimed = self._foreseen.pop(signature, None), signature is self._claimed
        if found is None:
            entry = self.entry(signature) if is_claimed and self.is_remote else None
            [found] = self._ask({signature: self.lookup.question(signature)}, [entry])
        if is_claimed:
            self._seen = found.seen
            if found.is_held:
                self._keep_pending(signature)
        if not (found.rows or found.near or self.lookup.in_ram):  # as for most documents
            return []
        return self._candidates(signature, found)

    def _ask(self, questions: Mapping[Signature, Question], entries: Sequence[Entry | None]) -> list[Found]:
        """Look up the fingerprints of documents. Cache the visits of their URLs, read in the same round trip."""
        if not self.is_remote:  # a server finds the rows of all processes
            self.catch_up()
        visits = [records.visit_key(each.url) for each in questions if each.url]
        found, rows = self.backend.find([*questions.values()], entries, visits)
        self.urls.take(visits, rows)
        return found

    def _candidates(self, signature: Signature, found: Found) -> list[tuple[str, Signature]]:
        """Return the candidates in `found`. On a server, pending ones count only for a document to claim."""
        is_look = self.is_remote and signature is not self._claimed
        rows = {row.key: row for row in chain(found.near, *found.rows.values())}
        # A damaged index may lead to any row.
        some = (row for row in rows.values() if records.is_id(row.key) and not (is_look and row.is_pending))
        documents, candidates = self._sorted(map(self.held, some)), list[tuple[str, Signature]]()
        for name in self.lookup.names:
            if index := self.lookup.in_ram.get(name):
                by_id = {each.id: each for each in index.find(signature.own.get(name, ()))}
                proposed = self._sorted(by_id[cast(int, row.key)] for row in self.backend.get(by_id))  # if held
            else:
                keys = self.lookup.proposed(name, signature, found)
                proposed = [each for each in documents if each.id in keys]
            candidates += [(name, each) for each in proposed]
        return candidates

    def _sorted(self, documents: Iterable[Signature]) -> list[Signature]:
        """Sort documents, oldest first. Leave out forgotten ones."""
        return sorted((each for each in documents if not self._is_gone(each)), key=attrgetter("first_seen", "id"))

    def add(self, signature: Signature, seen: bytes = b"") -> bool:
        """Hold a document as pending. Return False if the lookup that gave `seen` may have missed new candidates."""
        if signature not in self.pending:
            if not self.backend.hold(self.entry(signature), seen):
                return False
            self._keep_pending(signature)
        self.lookup.enter(signature)  # after its lookups, so that it does not find itself
        return True

    def _keep_pending(self, signature: Signature) -> None:
        """Add a document to `pending`. The back end must already hold its entry."""
        self.pending.add(signature)
        signature.count = self.urls.count
        if self.run:  # else its row keeps it in memory
            self._held[signature.id] = signature

    def is_pending(self, signature: Signature) -> bool:
        """Return whether the last lookup found a document pending elsewhere. Only the first call returns True."""
        is_elsewhere = signature in self._elsewhere
        self._elsewhere.discard(signature)
        return is_elsewhere

    # Changes

    def entry(self, signature: Signature) -> Entry:
        """Return the entry that stores a document in the back end. If the document has no id, set a new one."""
        signature.id = signature.id or self.session.next_id()
        return Entry(signature.id, signature, *records.postings(signature))

    def commit(self, signature: Signature, visit: Visit | None = None) -> None:
        """Commit a pending document, together with the visit of its own URL, if any."""
        if signature in self.pending:
            self.pending.remove(signature)
            self._sample(signature)
            self.urls.record(visit, self.entry(signature))
            vars(signature).clear()  # the decoded values, which take more memory than the record
            self._note(visit)

    def _sample(self, signature: Signature) -> None:
        """Make a new document a sample of its host if the hash of its record is in the share to take."""
        share = 1 << self._samples[signature.home] // SAMPLES
        if signature.home and not hash_bytes(signature.record) & share - 1:
            if len(self._samples) >= HOSTS:
                self._samples.clear()
            self._samples[signature.home] += 1
            signature.sample = True

    def withdraw(self, signature: Signature) -> None:
        """Delete a pending or committed document, and all its visits."""
        if signature in self._gone or not signature.id:
            return
        if signature in self.pending:
            self.pending.remove(signature)
            self.backend.release(self.entry(signature))
        else:
            self.urls.drop(signature)
            if signature.sample:
                del self._samples[signature.home]
        self._gone.add(signature)
        self.lookup.remove(signature)
        self._flush_in_time()

    # URLs

    def record(self, visit: Visit) -> None:
        """Record a visit in place of the last one of its URL or name. Do nothing if its document was forgotten."""
        if visit.signature not in self._gone:
            self.urls.record(visit)
            self._note(visit)

    def _note(self, visit: Visit | None) -> None:
        if visit and visit.url and self.hosts.meet(name := site(visit.url), visit.seen):
            self._news.met[name] = visit.seen
        self._flush_in_time()

    def visits(self, signature: Signature, most: int = MANY) -> list[Visit]:
        """Return the visits that returned a document; see `Visits.of`."""
        return [] if signature in self._gone else self.urls.of(signature, most)

    # Held documents

    def _is_gone(self, signature: Signature) -> bool:
        """Return whether a document was forgotten, though its row may still be there for a moment."""
        return signature in self._gone or self.session.has_forgotten(signature.id)

    def held(self, row: Row) -> Signature:
        """Return the document in a row: one object as long as it is in use. Raise StoreError for a damaged row."""
        if isinstance(row.value, Signature):  # the row is not written yet
            row.value.count = self.urls.count
            return row.value
        signature = self._held.get(key := cast(int, row.key))
        if signature is None:
            signature = self._held[key] = cast(Signature, self.session.load(row))
            self._recent.append(signature)  # since `_held` has weak references
            signature.count = self.urls.count
        self.urls.note(signature)
        if row.is_pending:
            self._elsewhere.add(signature)
        else:  # it may have been pending elsewhere before
            self._elsewhere.discard(signature)
        return signature

    def signatures(self) -> Iterator[Signature]:
        """Yield all held documents, except those that are pending in other processes."""
        return map(self.held, self.backend.scan(DOCUMENT))

    def document(self, id: int) -> Signature | None:
        return next(map(self.held, self.backend.get([id] if records.is_id(id) else [])), None)

    def of_page(self, url: str, most: int = MANY) -> list[Signature]:
        """Return the newest documents of a page that gave several items, oldest first; [] for any other page."""
        rows = self._rows(records.index_key("page", canonical_url(url)), most)
        items = (each for each in map(self.held, rows) if each.label)
        return self._sorted(each for each in items if canonical_url(each.url or "") == canonical_url(url))

    def pages(self, name: str) -> list[Signature]:
        """Return the newest samples of a host, oldest first. Leave out those that can't be read."""
        documents: list[Signature] = []
        with suppress(StoreError):  # nothing fails for lack of a sample
            for row in self._rows(records.index_key("host", name), SAMPLES):
                with suppress(StoreError):
                    documents.append(self.held(row))
        return self._sorted(each for each in documents if each.home == name)

    def _rows(self, key: int, most: int) -> list[Row]:
        """Return the newest rows of committed documents that the index has for a key."""
        return [row for row in self.backend.rows_of(key, most=most) if records.is_id(row.key) and not row.is_pending]

    def repeated(self) -> list[Signature]:
        """Return the documents that have copies, sorted by descending number of copies, then by URL."""
        found = [signature for signature in self.signatures() if signature.copy_count]
        return sorted(found, key=lambda signature: (-signature.copy_count, signature.url or ""))

    # What is known of hosts

    def learn(self, trials: Iterable[Trial]) -> None:
        """Store evidence on mirrors. `hosts` must have it already."""
        self._news.trials.extend(trials)
        self._flush_in_time()

    def note_visit(self, new: Signature, held: Signature, *, has_text: bool) -> list[int]:
        """Learn counters from `new`, a further visit to `held` with the same text. Return their hashed names."""
        found = self.counters.visit(held.url or "", new.facts, held.facts, has_text=has_text)
        self._news.counters.extend((host(held.url or ""), name, True) for name in found)
        return found

    def forget_counter(self, name: str, fact: int) -> None:
        self.counters.know(name, fact, is_counter=False)
        self._news.counters.append((name, fact, False))

    # Runs, and what is forgotten

    def forget(self, what: Selection, *, only_counts: bool = False) -> Forgotten:
        """Forget a selection for good with the next flush; with `only_counts`, only count it. Return its size."""
        return forget(self, what, only_counts=only_counts)

    def runs(self) -> list[Run]:
        return sorted(self.session.runs.values(), key=lambda run: run.started)

    def is_alive(self, run: str) -> bool:
        """Return whether a living process has this run open. If not, update its record in `session.runs`."""
        if run == self.run or self.backend.is_held(run):
            return True
        self.session.update_runs(self.backend.get([f"{RUN}/{run}"]))  # the run may have been closed meanwhile
        return False

    def is_new(self, signature: Signature) -> bool:
        """Return whether this run added a document since this process opened the run."""
        return self.session.is_own(signature.id) and records.number_of(signature.id) > self.session.sealed

    def run_of(self, signature: Signature) -> str:
        """Return the id of the run that added a document."""
        return self.session.run_at(signature.id) if signature.id else self.run

    # The store as a whole

    def describe(self) -> dict[str, object]:
        counts = {"urls": self.backend.size(VISIT), "runs": len(self.session.runs)}
        return {"store": self.backend.name, **self.backend.describe(), **counts}

    def __len__(self) -> int:
        """Return the number of held documents, including those that are pending in this process."""
        return self.backend.size(DOCUMENT) + len(self.pending)

    # Writing, and other processes

    def _flush_in_time(self) -> None:
        """Flush the buffer if it is large or old. Ignore errors, since the next flush retries.

        Within a batch on a server, flush less often, since a flush discards the visits prefetched for the batch.
        """
        self._unwritten += 1
        soon = BATCH_SECONDS if self.is_remote and self._foreseen else SHARED_SECONDS
        if (seconds := time.monotonic() - self._flushed) <= soon and self._unwritten < BATCH:
            return
        if self.run and (self._unwritten >= BATCH or seconds > BATCH_SECONDS or self.session.others_open()):
            with suppress(StoreError):
                self.flush(wait=False)
                self.refresh()

    def flush(self, *, wait: bool = True) -> None:
        """Make committed rows durable. With `wait=False`, only start to write. Raise StoreError if a write failed."""
        self._flushed, self._unwritten = time.monotonic(), 0
        if self.run and self._news != HostNews():
            news, self._news = self._news, HostNews()
            self.backend.write([Entry(f"{HOST}/{self.session.next_id():016x}", news)])
        self.backend.flush(wait=wait)

    def refresh(self) -> bool:
        """Read a batch of new rows of other processes. Return whether more remain. Raise an error only at the end."""
        before = self.backend.version
        rows, more = self.backend.news(documents=bool(self.lookup.in_ram))
        if rows or more or self.is_remote or self.backend.version != before:
            self.urls.clear()  # `news` tells of no deletion or repeated visit
        if rows or self.is_remote:  # a server sends no news of visits
            self.urls.copies.clear()
        errors: list[StoreError] = []
        for row in rows:
            try:
                self._apply(row)
            except StoreError as error:
                errors.append(error)
        if self.is_remote and self.run and (dead := self.session.overdue()):
            end(self, dead, keeps=self._keeps)
        if errors:
            raise errors[0]
        return more

    def catch_up(self) -> None:
        """Read all new rows of other processes."""
        while self.refresh():
            pass

    def _apply(self, row: Row) -> None:
        kind = records.kind_of(row.key)
        if kind not in (HOST, VISIT, DOCUMENT):
            self.session.update_runs([row])
        elif kind == HOST:
            self._apply_hosts([row])
        elif kind == DOCUMENT and self.lookup.in_ram:
            self.lookup.enter(self.held(row))

    def _apply_hosts(self, rows: Iterable[Row]) -> None:
        news: list[Any] = [self.session.load(row) for row in rows]
        self.hosts.load(trial for each in news for trial in each.trials)
        for each in news:
            for name, when in each.met.items():
                self.hosts.meet(name, when)
            for name, fact, is_counter in each.counters:
                self.counters.know(name, fact, is_counter=is_counter)

    def close(self, *, clean: bool = True) -> None:
        """Withdraw pending documents, flush, and close the run. With `clean=False`, the run counts as dead."""
        try:
            self.backend.reach()
            for signature in list(self.pending):
                self.withdraw(signature)
            self.flush()
            if self.run and clean:
                self.session.close(self.stats, self.fields)
                self.backend.flush(wait=True)
            self.backend.release_run(self.run)
        finally:
            self.backend.close()
