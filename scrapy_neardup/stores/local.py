"""What claims take where one process decides alone, or others are heard of later: nothing but to add the document."""

from __future__ import annotations

from collections.abc import Sequence

from ..signature import Signature


class Local:
    """The part of a store that claims use, for stores on this machine."""

    is_remote = False

    def add(self, signature: Signature) -> None:
        """Hold a new document, pending."""
        raise NotImplementedError

    def foresee(self, signatures: Sequence[Signature]) -> None:
        """Do nothing: to look for several at once is no quicker."""

    def intend(self, signature: Signature) -> None:
        """Do nothing: `enter` is enough."""

    def enter(self, signature: Signature) -> bool:
        """Hold the document."""
        self.add(signature)
        return True

    def leave(self, signature: Signature) -> None:
        """Do nothing: no document is held before it is entered."""

    def is_pending(self, signature: Signature) -> bool:
        """Say no: no other process's document is found before it is committed."""
        return False
