"""Claim new documents atomically. If two processes claim copies at the same time, one finds the other's document.

A server holds a document (stores it as pending) in these steps:

1. The client looks up the document's fingerprints. If none is known, the server holds the document in the same round
   trip. Otherwise the server returns the rows that have these fingerprints.
2. The client compares the document with these rows. If it is a copy of none of them, the client asks the server to hold
   the document.
3. The server refuses if a document with one of the fingerprints was added after the lookup. Then the client repeats the
   lookup.
4. Documents with a near SimHash do not prevent the server from holding the document. The client compares them
   afterwards, and releases the document if it is a copy of one of them.

The lookups of several documents are made together for those of them that can't be candidates of one another.

A local back end holds a document for its own process only. Other processes find the document once it is committed. The
crawls of one process find each other's pending documents in memory (`Backend.meet`). Nothing comes between their
lookups and claims, since all of them run in one thread.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from ..index.row_index import sharing
from ..signature import Signature
from .interface import Backend, Entry, Found, Question
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
        self._foreseen: dict[Signature, tuple[Entry | None, Found]] = {}

    def foresee(self, signatures: Sequence[Signature]) -> None:
        """Prefetch the lookups of documents that are claimed next. Discard earlier prefetched lookups.

        Only documents that can't be candidates of one another are looked up, so an answer is complete when its turn
        comes. On a server, this takes one round trip.
        """
        for entry, found in self._foreseen.values():
            if entry and found.is_held:
                self._backend.release(entry)
        self._foreseen.clear()
        questions = self._apart(signatures)
        if questions:
            is_remote = self._backend.is_remote
            entries = [self._documents.entry(each) if is_remote else None for each in questions]
            answers = zip(entries, self._ask(questions, entries), strict=True)
            self._foreseen = dict(zip(questions, answers, strict=True))

    def _apart(self, signatures: Sequence[Signature]) -> dict[Signature, Question]:
        """Return the questions of those documents that share no key, URL or near SimHash with another one."""
        asked = [self._documents.lookup.question(each) for each in signatures]
        with_urls = [
            each._replace(keys={**each.keys, int(visit_key(signature.url)[-16:], 16): 1}) if signature.url else each
            for signature, each in zip(signatures, asked, strict=True)
        ]
        together = sharing(with_urls)
        return {each: asked[place] for place, each in enumerate(signatures) if place not in together}

    def is_foreseen(self, signature: Signature) -> bool:
        """Return whether the lookup of a document was prefetched. Otherwise discard all prefetched lookups."""
        return signature in self._foreseen

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
            if foreseen := self._foreseen.pop(signature, None):
                return True, foreseen[1]
            question = self._documents.lookup.question(signature)
            return not self._backend.is_remote, self._backend.find([question])[0]
        if foreseen := self._foreseen.pop(intended, None):
            self._entry, found = foreseen
        else:
            self._entry = self._entry or self._documents.entry(intended)
            [found] = self._ask({intended: self._documents.lookup.question(intended)}, [self._entry])
        self._seen = found.seen
        if found.is_held and self._entry:
            self._documents.keep_pending(intended, self._entry)
        return True, found

    def _ask(self, questions: Mapping[Signature, Question], entries: Sequence[Entry | None]) -> list[Found]:
        """Look up the fingerprints of documents. Cache the visits of their URLs, read in the same round trip."""
        visits = [visit_key(each.url) for each in questions if each.url]
        found = self._backend.find([*questions.values()], entries, visits)
        self._documents.visits.take(visits, found[0].ahead)
        return found

    def enter(self, signature: Signature) -> bool:
        """Hold a document. Return False if newer candidates may exist, so that the lookup must be repeated first."""
        if self._intended is not signature:
            self._documents.add(signature)
            return True
        if signature not in self._documents.pending:
            entry = self._entry or self._documents.entry(signature)
            if not self._backend.hold(entry, self._seen):
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
