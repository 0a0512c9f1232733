"""The claim of a document, its place in the store while its item is on its way."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack

from ..document import Document
from ..signature import Signature
from ..verdict import Match, Verdict


class Claim:
    """A document's place in the store: pending until it is committed or withdrawn, once."""

    def __init__(
        self,
        document: Document,
        signature: Signature,
        match: Match | None,
        verdict: Verdict,
        *,
        rival: Claim | None,
        is_early: bool,
        settle: Callable[[Claim], object],
    ) -> None:
        """Create a pending claim. `settle` is called once, with the claim, after its state has changed."""
        self.document = document
        self.signature = signature
        self.match = match
        self.verdict = verdict
        self.is_successor = False
        """True for a copy that takes the place of an original whose URL no longer returns the document."""
        self.is_one_of_many = False
        """True if the page had other documents too, so that its URL stands for none of them."""
        self.is_copy = self.verdict.status == "duplicate" and not self.verdict.changed
        self.state = "pending"
        """`pending`, `committed` or `withdrawn`."""
        self.rival = rival
        """The pending claim on the original, if there was one. Its outcome decides for both."""
        self.is_early = is_early
        """Whether the original was pending at the time of the claim, in this process or another."""
        self._on_settled = settle
        self._observers: list[Callable[[], object]] = []

    def when_settled(self, callback: Callable[[], object]) -> None:
        """Call `callback` once, when the claim is committed or withdrawn; at once if it is settled already."""
        if self.state == "pending":
            self._observers.append(callback)
        else:
            callback()

    def commit(self) -> None:
        """Commit the claim: the document, or its URL as a copy of the original.

        If the original is pending, wait for its outcome, and withdraw if it is withdrawn.
        """
        if self.rival and self.rival.state == "pending":
            self.rival.when_settled(self.commit)
        else:
            self._settle(self.rival.state if self.rival else "committed")

    def withdraw(self) -> None:
        """Withdraw the claim, since the item was not stored. Its URLs are fetched again."""
        self._settle("withdrawn")

    def _settle(self, state: str) -> None:
        if self.state != "pending":
            return
        self.state = state
        with ExitStack() as stack:  # call all of them, even if one raises
            for callback in reversed(self._observers):
                stack.callback(callback)
            self._on_settled(self)
