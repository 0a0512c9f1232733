"""Hold the place of a document in the store while its item passes the pipelines."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack

from ..document import Document
from ..signature import Signature
from ..verdict import Apart, Match, Verdict


class Claim:
    """The place of a document in the store: pending at first, then committed or withdrawn for good."""

    def __init__(
        self,
        document: Document,
        signature: Signature,
        match: Match | None,
        verdict: Verdict,
        *,
        rival: Claim | None,
        is_early: bool,
        apart: Apart | None = None,
        settle: Callable[[Claim], object],
    ) -> None:
        """Create a pending claim. `settle` is called once, with the claim, after its state has changed."""
        self.document = document
        self.signature = signature
        self.match = match
        self.verdict = verdict
        self.is_successor = False
        """True for a copy that takes the place of an original whose URL no longer returns the document."""
        self.is_one_of_many = not document.has_own_url
        """True if the page had other documents too, so that the URL of the page is linked to none of them."""
        self.apart = apart
        """For a unique document: an earlier one with its text, and the only fact that keeps the two apart."""
        self.is_copy = self.verdict.status == "duplicate" and not self.verdict.changed
        self.state = "pending"
        """`pending`, `committed` or `withdrawn`."""
        self.rival = rival
        """The pending claim of the original, or None. The outcome of that claim becomes the outcome of this one."""
        self.is_early = is_early
        """True if the original was pending at the time of the claim, in this process or another."""
        self._on_settled = settle
        self._observers: list[Callable[[], object]] = []

    def when_settled(self, callback: Callable[[], object]) -> None:
        """Call `callback` once, when the claim is committed or withdrawn; at once if this has already happened."""
        if self.state == "pending":
            self._observers.append(callback)
        else:
            callback()

    def commit(self) -> None:
        """Commit the claim: hold the document or, if it is a copy, record its URL as a copy of the original.

        If the claim of the original is pending, do this once that claim is committed. If that claim is withdrawn,
        withdraw this one too.
        """
        if self.rival and self.rival.state == "pending":
            self.rival.when_settled(self.commit)
        else:
            self._settle(self.rival.state if self.rival else "committed")

    def withdraw(self) -> None:
        """Withdraw the claim, since the item was not stored. The URLs of the document are fetched again."""
        self._settle("withdrawn")

    def _settle(self, state: str) -> None:
        if self.state != "pending":
            return
        self.state = state
        if not self._observers:
            self._on_settled(self)
            return
        with ExitStack() as stack:  # call all of them, even if one raises
            for callback in reversed(self._observers):
                stack.callback(callback)
            self._on_settled(self)
