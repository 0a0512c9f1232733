"""Find, add, commit and withdraw the held documents of a store."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from contextlib import suppress
from typing import TYPE_CHECKING
from weakref import WeakSet, WeakValueDictionary

from ..fingerprints.hashes import hash_text
from ..signature import Signature, Visit
from ..text.urls import canonical_url, host
from .interface import DOCUMENT, Backend, Entry, Found, Postings, Question, Row, StoreError
from .postings import host_key, page_key, postings
from .visits import Visits

if TYPE_CHECKING:
    from .lookup import Lookup
    from .session import Session

PAGES = 128  # samples of a host to read; every further 128 samples halve the share of its documents that become samples
HOSTS = 10_000  # hosts whose number of samples is cached
MOST_OF_PAGE = 10_000  # documents of one page to read
RECENT = 256  # decoded documents to cache, since pages of one template find the same candidates again and again


class Documents:
    """The held documents of a store. Reading a document twice returns the same object."""

    def __init__(self, backend: Backend, session: Session, lookup: Lookup) -> None:
        self.pending: dict[Signature, Entry] = {}
        """The pending documents of this process, each with its entry in the back end."""
        self.elsewhere: WeakSet[Signature] = WeakSet()
        """Documents that were pending in another process or crawl when they were last found."""
        self.lookup = lookup
        self.visits = Visits(backend, session, self.held, self.recount)
        self._backend = backend
        self._session = session
        self._held: WeakValueDictionary[str, Signature] = WeakValueDictionary()
        self._recent: deque[Signature] = deque(maxlen=RECENT)
        self._gone: WeakSet[Signature] = WeakSet()
        self._samples: dict[str, int] = {}  # the number of samples by host
        self._linked: WeakSet[Signature] = WeakSet()  # pending documents with recorded visits

    # Lookups

    def found(self, signature: Signature, found: Found, *, with_pending: bool) -> Iterator[tuple[str, Signature]]:
        """Yield each candidate as a pair: the name of the detector that proposes it, and the document.

        `found` is the answer to the lookup of `signature`. With `with_pending`, documents that are pending in other
        processes are candidates too.
        """
        if not (found.rows or found.near or self.lookup.own):  # most documents
            return
        proposed: dict[str, dict[str, Row]] = {}
        for name, rows in self.lookup.proposed(signature, found):
            proposed.setdefault(name, {}).update(
                (row.key, row) for row in rows if row.key.startswith(DOCUMENT) and (with_pending or not row.is_pending)
            )
        for name in self.lookup.names:
            if index := self.lookup.own.get(name):
                documents = self._still_held(index.find(signature.fingerprints.get(name, ())))
            else:
                documents = [self.held(row) for row in proposed.get(name, {}).values()]
            documents.sort(key=_moment)
            yield from ((name, each) for each in documents if each not in self._gone)

    def _still_held(self, documents: Iterable[Signature]) -> list[Signature]:
        by_key = {f"{DOCUMENT}/{each.id}": each for each in documents}
        return list({row.key: by_key[row.key] for row in self._backend.get(by_key)}.values()) if by_key else []

    def held(self, row: Row) -> Signature:
        """Return the document in a row, as the same object at each call. Raise StoreError if the row is damaged."""
        signature = self._held.get(row.key)
        if signature is None:
            record = self._session.load(row)
            assert isinstance(record, Signature)
            signature = self._held[row.key] = record
            self._recent.append(record)
            signature.count = self.visits.count
        if row.is_pending:
            self.elsewhere.add(signature)
        return signature

    def all(self) -> Iterator[Signature]:
        """Yield all held documents, except those that are pending in other processes."""
        return (self.held(row) for row in self._backend.scan(DOCUMENT) if not row.is_pending)

    def of_page(self, url: str) -> list[Signature]:
        """Return the documents of a page that gave several items, oldest first; [] for any other page."""
        rows = self._rows(page_key(url), MOST_OF_PAGE)
        documents = [each for each in map(self.held, rows) if each.label and each not in self._gone]
        of_page = [each for each in documents if canonical_url(each.url or "") == canonical_url(url)]
        return sorted(of_page, key=_moment)

    def of_host(self, name: str) -> list[Signature]:
        """Return the newest samples of a host, oldest first. Leave out those that can't be read."""
        documents: list[Signature] = []
        with suppress(StoreError):  # nothing fails for lack of a sample
            for row in self._samples_of(name):
                with suppress(StoreError):
                    documents.append(self.held(row))
        return sorted((each for each in documents if host(each.url or "") == name), key=_moment)

    def _samples_of(self, name: str) -> list[Row]:
        """Return the rows of the newest samples of a host. Cache the number of its samples."""
        key = host_key(name)
        rows = self._rows(key, PAGES)
        if len(self._samples) >= HOSTS:
            self._samples.clear()
        # The count may include deleted documents, which must not keep a host without samples.
        self._samples[name] = self._backend.count(key) if len(rows) == PAGES else len(rows)
        return rows

    def _rows(self, key: int, most: int) -> list[Row]:
        """Return the newest rows of committed documents that the index has for a key."""
        [found] = self._backend.find([Question({key: most})])
        return [row for row in found.rows.get(key, ()) if row.key.startswith(DOCUMENT) and not row.is_pending]

    def repeated(self) -> list[Signature]:
        """Return the documents that have copies, sorted by descending number of copies, then by URL."""
        found = [signature for signature in self.all() if signature.repeats]
        return sorted(found, key=lambda signature: (-signature.repeats, signature.url or ""))

    def is_gone(self, signature: Signature) -> bool:
        """Return whether this process withdrew or forgot a document."""
        return signature in self._gone

    def recount(self, id: str) -> None:
        """Clear the cached number of copies of a document."""
        if signature := self._held.get(f"{DOCUMENT}/{id}"):
            signature.known_repeats = None

    def recount_all(self) -> None:
        """Clear the cached number of copies of each document. Set it to 0 for pending documents of this process."""
        for signature in list(self._held.values()):
            signature.known_repeats = None if signature not in self.pending else 0

    # Changes

    def entry(self, signature: Signature) -> Entry:
        """Return the entry that stores a document in the back end. If the document has no id, set a new one."""
        signature.id = signature.id or self._session.next_id()
        return Entry(f"{DOCUMENT}/{signature.id}", signature, postings(signature))

    def add(self, signature: Signature) -> None:
        """Hold a new document as pending, without looking for copies."""
        entry = self.entry(signature)
        self.lookup.enter(signature)
        self._backend.hold(entry, b"")
        self.keep_pending(signature, entry)

    def keep_pending(self, signature: Signature, entry: Entry) -> None:
        """Add a document to `pending`. The back end must already hold it."""
        self.pending[signature] = entry
        self._held[entry.key] = signature
        signature.count, signature.known_repeats = self.visits.count, 0

    def note_visit(self, signature: Signature | None) -> None:
        """If a document is pending, remember that it has visits, so that `withdraw` deletes them too."""
        if signature in self.pending:
            self._linked.add(signature)

    def commit(self, signature: Signature, visit: Visit | None) -> bool:
        """Commit a document with the visit of its own URL, if any. Return False if the document is not pending."""
        if entry := self.pending.pop(signature, None):
            self._session.count(documents=1)
            self.visits.begin(self._sampled(signature, entry), signature, visit)
            signature.shrink()
        return entry is not None

    def _sampled(self, signature: Signature, entry: Entry) -> Entry:
        """Make a new document a sample of its host, or leave it out by chance. Return the entry to write."""
        name = host(signature.url or "")
        with suppress(StoreError):
            if name and name not in self._samples:
                self._samples_of(name)
        if not name or name not in self._samples or hash_text(signature.id) % (1 << self._samples[name] // PAGES):
            return entry
        self._samples[name] += 1
        signature.sample = True
        keys, simhash = entry.postings
        return entry._replace(postings=Postings([*keys, host_key(name)], simhash))

    def withdraw(self, signature: Signature) -> None:
        """Delete a pending or committed document, and all its visits."""
        if signature in self._gone or not signature.id:
            return
        if entry := self.pending.pop(signature, None):
            self._backend.release(entry)
        else:
            self._session.count(documents=-1)
        if not entry or signature in self._linked:
            self.visits.drop(signature)
        self.lookup.remove(signature)
        self._gone.add(signature)


def _moment(signature: Signature) -> tuple[float, str]:
    return signature.first_seen, signature.id
