"""What a detector is: to the decision a proposer of earlier documents, to the store a way to index them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

if TYPE_CHECKING:
    from ..document import Document
    from ..index.base import Index


@runtime_checkable
class Detector(Protocol):
    """Proposes earlier documents that a document may repeat.

    A class of your own, named by its import path in NEARDUP_DETECTORS, is called without arguments. If its
    fingerprints take long, give it an attribute `heavy = True`: crawls then make them in processes of their own.
    """

    name: str
    """One word: in stats, tags and the store."""
    scheme: str
    """What the fingerprints depend on (version, parameters, lexicon): a store made under another one is refused."""

    def fingerprints(self, document: Document) -> tuple[int, ...]:
        """Return the document's fingerprints, unsigned 64-bit integers; () to abstain."""

    def index(self) -> Index[Any]:
        """Return a new, empty index that finds documents by such fingerprints."""
