"""The documents of a store: found by their fingerprints, one object each; pending, then committed."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING
from weakref import WeakSet, WeakValueDictionary

from ..signature import Signature, Visit
from .interface import DOCUMENT, Backend, Entry, Found, Row
from .links import Links
from .postings import postings

if TYPE_CHECKING:
    from .lookup import Lookup
    from .session import Session

RECENT = 256  # documents that stay decoded: those of one template find the same ones again and again


class Documents:
    """What is held, of this process and of all others."""

    def __init__(self, backend: Backend, session: Session, lookup: Lookup) -> None:
        self.pending: dict[Signature, Entry] = {}
        """Those that this process holds, and has not committed."""
        self.elsewhere: WeakSet[Signature] = WeakSet()
        """Those that were pending in other processes when they were last found."""
        self.lookup = lookup
        self.links = Links(backend, session, self.held, self.recount)
        self._backend = backend
        self._session = session
        self._held: WeakValueDictionary[str, Signature] = WeakValueDictionary()
        self._recent: deque[Signature] = deque(maxlen=RECENT)
        self._gone: WeakSet[Signature] = WeakSet()
        self._linked: WeakSet[Signature] = WeakSet()  # pending ones to which links were recorded

    # What is found

    def found(
        self, fingerprints: Mapping[str, Sequence[int]], found: Found, *, with_pending: bool
    ) -> Iterator[tuple[str, Signature]]:
        """Yield each detector's name with each document that it proposes, given what the back end found.

        `with_pending`: those too that are pending in other processes.
        """
        proposed: dict[str, dict[str, Row]] = {name: {} for name in self.lookup.names}
        for name, rows in self.lookup.proposed(fingerprints, found):
            proposed[name] |= {
                row.key: row for row in rows if row.key.startswith(DOCUMENT) and (with_pending or not row.is_pending)
            }
        for name, rows_by_key in proposed.items():
            if index := self.lookup.own.get(name):
                documents = self._still_held(index.find(fingerprints.get(name, ())))
            else:
                documents = [self.held(row) for row in rows_by_key.values()]
            documents.sort(key=_moment)
            yield from ((name, each) for each in documents if each not in self._gone)

    def _still_held(self, documents: Iterable[Signature]) -> list[Signature]:
        by_key = {f"{DOCUMENT}/{each.id}": each for each in documents}
        return list({row.key: by_key[row.key] for row in self._backend.get(by_key)}.values()) if by_key else []

    def held(self, row: Row) -> Signature:
        """Return the document of a row, the same object each time. Raise StoreError for damage."""
        signature = self._held.get(row.key)
        if signature is None:
            record = self._session.load(row)
            assert isinstance(record, Signature)
            signature = self._held[row.key] = record
            self._recent.append(record)
            signature.count = self.links.count
        if row.is_pending:
            self.elsewhere.add(signature)
        return signature

    def all(self) -> Iterator[Signature]:
        """Yield all, this process's pending ones included."""
        return (self.held(row) for row in self._backend.scan(DOCUMENT) if not row.is_pending)

    def repeated(self) -> list[Signature]:
        """Return the documents that are repeated, those with most mirrors first, then by URL."""
        found = [signature for signature in self.all() if signature.repeats]
        return sorted(found, key=lambda signature: (-signature.repeats, signature.url or ""))

    def is_gone(self, signature: Signature) -> bool:
        """Return whether this process gave a document up."""
        return signature in self._gone

    def recount(self, id: str) -> None:
        """Count a document's mirrors anew when they are next asked for."""
        if signature := self._held.get(f"{DOCUMENT}/{id}"):
            signature.known_repeats = None

    def recount_all(self) -> None:
        """Count the mirrors of all documents anew."""
        for signature in list(self._held.values()):
            signature.known_repeats = None if signature not in self.pending else 0

    # What is added

    def entry(self, signature: Signature) -> Entry:
        """Return what to hold of a new document, which gets its id."""
        signature.id = signature.id or self._session.next_id()
        return Entry(f"{DOCUMENT}/{signature.id}", signature, postings(signature))

    def add(self, signature: Signature) -> None:
        """Hold a new document, pending, whatever it repeats."""
        entry = self.entry(signature)
        self.lookup.enter(signature)
        self._backend.hold(entry, b"")
        self.keep_pending(signature, entry)

    def keep_pending(self, signature: Signature, entry: Entry) -> None:
        """Count a document that the back end holds as pending."""
        self.pending[signature] = entry
        self._held[entry.key] = signature
        signature.count, signature.known_repeats = self.links.count, 0

    def note_link(self, signature: Signature | None) -> None:
        """Note that a link to a document is recorded: if it is pending and withdrawn, that has to go too."""
        if signature in self.pending:
            self._linked.add(signature)

    def commit(self, signature: Signature, visit: Visit | None) -> bool:
        """Keep a pending document for good; return whether it was pending."""
        if entry := self.pending.pop(signature, None):
            self._session.count(documents=1)
            self.links.begin(signature, visit, entry)
        return entry is not None

    def withdraw(self, signature: Signature) -> None:
        """Give up a document, pending or committed, as if it had never been added, with all that led to it."""
        if signature in self._gone or not signature.id:
            return
        if entry := self.pending.pop(signature, None):
            self._backend.release(entry)
        else:
            self._session.count(documents=-1)
        if not entry or signature in self._linked:
            self.links.drop(signature)
        self.lookup.remove(signature)
        self._gone.add(signature)


def _moment(signature: Signature) -> tuple[float, str]:
    return signature.first_seen, signature.id
