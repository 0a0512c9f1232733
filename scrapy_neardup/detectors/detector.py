"""The protocol of a detector, and the check of its fingerprints."""

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

    To use a class of your own, put its import path into NEARDUP_DETECTORS. The class is called without arguments. If
    its fingerprints are slow to compute, set its attribute `heavy = True`. Crawls then compute them in worker
    processes.
    """

    name: str
    """One word, for stats, tags and the store."""
    scheme: str
    """The version, parameters and lexicon that determine the fingerprints. A store with another scheme is refused."""

    def fingerprints(self, document: Document) -> tuple[int, ...]:
        """Return the fingerprints of a document as unsigned 64-bit integers; () to abstain."""

    def index(self) -> Equal | Near | Index[Any]:
        """Return the lookup for these fingerprints: `Equal` or `Near` of the store, or a new, empty index."""
