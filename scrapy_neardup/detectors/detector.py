"""The protocol of a detector."""

from __future__ import annotations

from collections.abc import Iterable
from operator import index
from typing import TYPE_CHECKING, Any, Protocol, SupportsIndex, runtime_checkable

if TYPE_CHECKING:
    from ..document import Document
    from ..index.kinds import Equal, Index, Near


def checked(name: str, fingerprints: Iterable[SupportsIndex]) -> tuple[int, ...]:
    """Return the fingerprints of a detector as plain integers.

    Raise TypeError or ValueError for values that are not unsigned 64-bit integers.
    """
    try:
        values = tuple(map(index, fingerprints))
    except TypeError as error:
        raise TypeError(f"detector {name!r}: fingerprints must be unsigned 64-bit integers; {error}") from None
    if values and not (min(values) >= 0 and max(values) < 2**64):
        raise ValueError(f"detector {name!r}: fingerprints must be unsigned 64-bit integers, not {values}")
    return values


@runtime_checkable
class Detector(Protocol):
    """Proposes earlier documents that a document may repeat.

    Name your own class by its import path in NEARDUP_DETECTORS. It is called without arguments. If its fingerprints are
    slow, give it an attribute `heavy = True`: crawls make them in worker processes then.
    """

    name: str
    """One word, for stats, tags and the store."""
    scheme: str
    """The version, parameters and lexicon behind the fingerprints. A store with another scheme is refused."""

    def fingerprints(self, document: Document) -> tuple[int, ...]:
        """Return the fingerprints of a document as unsigned 64-bit integers; () to abstain."""

    def index(self) -> Equal | Near | Index[Any]:
        """Return the lookup for such fingerprints: one of the store's, or a new, empty index."""
