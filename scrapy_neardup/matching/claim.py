"""The claim of a document: its place in the store while its item is on its way."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from typing import TYPE_CHECKING

from ..document import Document
from ..signature import Signature
from ..verdict import Match

if TYPE_CHECKING:
    from ..deduplicator import Deduplicator


class Claim:
    """A document's place in the store: pending until it is committed or withdrawn, once."""

    def __init__(self, dedup: Deduplicator, document: Document, signature: Signature, match: Match | None) -> None:
        self.document = document
        self.signature = signature
        self.match = match
        self.verdict = dedup.verdict(document, match)
        self.is_successor = False
        """True for a copy whose URL takes the place of the original's, which gives the document no more."""
        self.is_one_of_many = False
        """True if its page gave other documents too, so that the URL is that of none of them."""
        self.is_copy = self.verdict.status == "duplicate" and not self.verdict.changed
        self.state = "pending"
        """`pending`, `committed` or `withdrawn`."""
        self.rival = dedup.pending(match.signature) if match else None
        """The claim on the document that this one repeats, if that was pending then: its outcome decides for both."""
        self.is_early = self.rival is not None or (match is not None and dedup.store.claims.is_pending(match.signature))
        """Whether the document that this one repeats was pending then, in this process or another."""
        self._dedup = dedup
        self._observers: list[Callable[[], object]] = []

    def when_settled(self, callback: Callable[[], object]) -> None:
        """Call back once, when the claim is committed or withdrawn; at once if it is."""
        if self.state == "pending":
            self._observers.append(callback)
        else:
            callback()

    def commit(self) -> None:
        """Keep what the claim found: the document, or its URL as one more of the document held.

        Where that is pending, so is this until it is settled; if it comes to nothing, so does this.
        """
        if self.rival and self.rival.state == "pending":
            self.rival.when_settled(self.commit)
        else:
            self._settle(self.rival.state if self.rival else "committed")

    def withdraw(self) -> None:
        """Give the claim up, since the item was not stored; its URLs will be fetched again."""
        self._settle("withdrawn")

    def _settle(self, state: str) -> None:
        if self.state != "pending":
            return
        self.state = state
        with ExitStack() as stack:  # whatever one of these raises, the others are called
            for callback in reversed(self._observers):
                stack.callback(callback)
            self._dedup.settle(self)
