"""Claim new documents atomically. If two processes claim copies at the same time, one finds the other's document.

A server holds a document (stores it as pending) in these steps:

1. The client looks up the document's fingerprints. If none is known, the server holds the document in the same round
   trip. Otherwise the server returns the rows that have these fingerprints.
2. The client compares the document with these rows. If it is a copy of none of them, the client asks the server to hold
   the document.
3. The server refuses if a document with one of the fingerprints was added after the lookup. Then the client repeats the
   lookup. The client also repeats a prefetched lookup that did not hold its document, since documents of the same batch
   may have been added meanwhile.
4. Documents with a near SimHash do not prevent the server from holding the document. The client compares them
   afterwards, and releases the document if it is a copy of one of them.

A local back end holds a document for its own process only. Other processes find the document once it is committed. The
crawls of one process find each other's pending documents in memory (`Backend.meet`). Nothing comes between their
lookups and claims, since all of them run in one thread.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ..signature import Signature
from .interface import Backend, Entry, Found
from .keys import place_of, visit_key

if TYPE_CHECKING:
    from .documents import Documents


class Claims:
    """Looks up documents, holds new ones in the back end, and caches prefetched lookups."""

    def __init__(self, documents: Documents, backend: Backend) -> None:
        self._documents = documents
        self._backend = backend
        self._intended: Signature | None = None
        self._entry: Entry | None = None
        self._seen = b""
        self._is_stale = False
        self._foreseen: dict[Signature, tuple[Entry, Found]] = {}

    def foresee(self, signatures: Sequence[Signature]) -> None:
        """Prefetch the lookups of documents from a server in one round trip. Discard earlier prefetched lookups."""
        for entry, found in self._foreseen.values():
            if found.is_held:
                self._backend.release(entry)
        self._foreseen.clear()
        if self._backend.is_remote and signatures:
            entries = [self._documents.entry(each) for each in signatures]
            self._foreseen = dict(
                zip(signatures, zip(entries, self._ask(signatures, entries), strict=True), strict=True)
            )

    def intend(self, signature: Signature) -> None:
        """Set the intended document. A server holds it during its lookup if none of its fingerprints is known."""
        if self._backend.is_remote:
            self._intended = signature
            self._entry = None

    def found(self, signature: Signature) -> tuple[bool, Found]:
        """Look up a document. Return whether pending documents of others are candidates, and the rows found.

        If it is the intended document, and no row has one of its fingerprints, a server holds the document. On a
        server, pending documents of other processes are candidates only for the intended document.
        """
        intended = self._intended
        if intended is not signature:
            question = self._documents.lookup.question(signature)
            return not self._backend.is_remote, self._backend.find([question])[0]
        if foreseen := self._foreseen.pop(intended, None):
            self._entry, found = foreseen
            self._is_stale = not found.is_held
        else:
            self._entry = self._entry or self._documents.entry(intended)
            [found] = self._ask([intended], [self._entry])
            self._is_stale = False
        self._seen = found.seen
        if found.is_held:
            self._documents.keep_pending(intended, self._entry)
        return True, found

    def _ask(self, signatures: Sequence[Signature], entries: Sequence[Entry]) -> list[Found]:
        """Look up the fingerprints of documents. Cache the visits of their URLs, read in the same round trip."""
        visits = [visit_key(each.url) for each in signatures if each.url]
        found = self._backend.find([self._documents.lookup.question(each) for each in signatures], entries, visits)
        self._documents.visits.take(visits, found[0].ahead)
        return found

    def enter(self, signature: Signature) -> bool:
        """Hold a document. Return False if newer candidates may exist, so that the lookup must be repeated first."""
        if self._intended is not signature:
            self._documents.add(signature)
            return True
        if signature not in self._documents.pending:
            entry = self._entry or self._documents.entry(signature)
            if self._is_stale or not self._backend.hold(entry, self._seen):
                return False
            self._documents.keep_pending(signature, entry)
        self._intended = None
        return True

    def leave(self) -> None:
        """Cancel the claim on the intended document."""
        self._intended = None

    def is_pending(self, signature: Signature) -> bool:
        """Return whether a lookup found this document pending in another process or crawl.

        If that process is dead, release the document.
        """
        if signature not in self._documents.elsewhere:
            return False
        self._documents.elsewhere.discard(signature)
        if not self._backend.is_held(place_of(signature.id)[0]):
            self._backend.release(self._documents.entry(signature))
        return True
