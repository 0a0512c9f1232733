"""The protocol of a detector."""

from __future__ import annotations

from collections.abc import Iterable
from operator import index
from typing import TYPE_CHECKING, Any, Protocol, SupportsIndex, runtime_checkable

if TYPE_CHECKING:
    from ..document import Document
    from ..index.kinds import Equal, Index, Near


def checked(name: str, fingerprints: Iterable[SupportsIndex]) -> tuple[int, ...]:
    """Return what a detector gave as plain integers.

    TypeError, ValueError: there is something else among them, which no store could keep.
    """
    try:
        values = tuple(map(index, fingerprints))
    except TypeError as error:
        raise TypeError(f"detector {name!r}: fingerprints are unsigned integers of 64 bits; {error}") from None
    if values and not (min(values) >= 0 and max(values) < 2**64):
        raise ValueError(f"detector {name!r}: fingerprints are unsigned integers of 64 bits, not {values}")
    return values


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

    def index(self) -> Equal | Near | Index[Any]:
        """Return how documents are found by such fingerprints: in the store, or by a new, empty index."""
