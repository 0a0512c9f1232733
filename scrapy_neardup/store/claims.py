"""Claim documents atomically. If two processes claim copies at the same time, one finds the document of the other.

A server holds a document (stores it as pending) in these steps:

1. The lookup holds the document in the same round trip if none of its fingerprints is known. Otherwise it returns rows.
2. The document is compared with these rows. If it repeats none of them, the server is asked to hold it.
3. The server refuses if a newer document shares a fingerprint. Then the lookup is repeated. A prefetched lookup that
   did not hold its document is also repeated, since documents of the same batch may have been added meanwhile.
4. Candidates by SimHash distance are compared after the document is held. If it repeats one of them, it is released.

A local back end holds a document for its own process only. Other processes find the document once it is committed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from ..signature import Signature
from .interface import Backend, Entry, Found
from .keys import place_of

if TYPE_CHECKING:
    from .documents import Documents


class Claims:
    """The document to hold next, and prefetched lookups for later documents."""

    def __init__(self, documents: Documents, backend: Backend) -> None:
        self._documents = documents
        self._backend = backend
        self._intended: Signature | None = None
        self._entry: Entry | None = None
        self._seen = b""
        self._is_stale = False
        self._foreseen: dict[Signature, tuple[Entry, Found]] = {}

    def foresee(self, signatures: Sequence[Signature]) -> None:
        """Look up several documents in one round trip and cache the answers. Discard unused earlier answers."""
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
        """Choose the document to hold at its next lookup."""
        if self._backend.is_remote:
            self._intended = signature
            self._entry = None

    def found(self, fingerprints: Mapping[str, Sequence[int]]) -> tuple[bool, Found]:
        """Look up fingerprints. Return whether they belong to the intended document, and the rows found.

        If nothing is found, the intended document is held. Pending documents of other processes are candidates for the
        intended document only.
        """
        question, intended = self._documents.lookup.question(fingerprints), self._intended
        if intended is None or fingerprints is not intended.fingerprints:
            return False, self._backend.find([question])[0]
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
        """Look up documents and, in the same round trip, their URLs, which are needed next."""
        told_of = [self._documents.links.question(each.url) for each in signatures if each.url]
        asked = [self._documents.lookup.question(each.fingerprints) for each in signatures]
        found = self._backend.find([*asked, *told_of], [*entries, *[None] * len(told_of)])
        for question, rows in zip(told_of, found[len(asked) :], strict=True):
            self._documents.links.take(question, rows)
        return found[: len(asked)]

    def enter(self, signature: Signature) -> bool:
        """Hold a document. Return False if the lookup must be repeated, since newer documents may be candidates."""
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
        """Return whether a document was pending in another process when found. Release it if that process died."""
        if signature not in self._documents.elsewhere:
            return False
        self._documents.elsewhere.discard(signature)
        if not self._backend.is_held(place_of(signature.id)[0]):
            self._backend.release(self._documents.entry(signature))
        return True
