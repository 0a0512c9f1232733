"""The stored records: a document's signature, the link of a URL. No I/O."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from .fingerprints.sketch import Sketch

SIMHASH = "simhash"  # the detector whose fingerprint, one a document, is found by near ones too
TITLE = 200  # characters that are stored of a title


class _Weak:
    """What weak references need; `dataclass(weakref_slot=True)` came with Python 3.11."""

    __slots__ = ("__weakref__",)


class Visit(NamedTuple):
    """When a URL was last fetched."""

    seen: float
    """Seconds since the epoch."""
    size: int
    """Bytes of the response; 0 where unknown."""


@dataclass(eq=False, slots=True)
class Signature(_Weak):
    """The stored record of a document: its fingerprints by detector, and the sketch that verification compares."""

    url: str | None
    fingerprints: Mapping[str, tuple[int, ...]]
    sketch: Sketch
    first_seen: float
    """Seconds since the epoch."""
    layout: int = 0
    """Of its page; 0 where unknown."""
    title: str = ""
    """Of at most `TITLE` characters."""
    identity: int = 0
    """The hash of the fields that tell its item from others; 0 without any."""
    id: str = ""
    """`RUN/NUMBER`; "" until a store holds it."""
    own: Visit | None = None
    """The visit of its own URL with which it came; None where that URL gave something else since."""
    count: Callable[[str], int] | None = None
    """Counts the mirrors of a document, given its id: set by the store that holds it."""
    known_repeats: int | None = None

    def says_the_same(self, other: Signature) -> bool:
        """Return whether two documents have one text: two processes that met it at the same time both hold it."""
        return (self.sketch, self.identity) == (other.sketch, other.identity)

    @property
    def repeats(self) -> int:
        """How many documents repeat it, as far as is known: its mirror degree."""
        if self.known_repeats is None:
            self.known_repeats = self.count(self.id) if self.count else 0
        return self.known_repeats


class Evidence(NamedTuple):
    """What was found on comparing two documents."""

    detector: str
    """The first one that proposed the earlier document."""
    hamming: int | None
    """Between their SimHashes, where both have one."""
    resemblance: float
    containment: float
    length_ratio: float
    kind: str | None = None
    """Of a duplicate page, see `verdict.page_kind`; None where a layout is unknown."""


@dataclass(eq=False, slots=True)
class Link:
    """What a URL led to when it was last fetched."""

    url: str
    """As it was requested; "" for a document without a URL that repeats another."""
    signature: Signature | None
    """The document held; None where the URL also gave something that is held nowhere, so that it must be fetched."""
    is_copy: bool
    """True where another URL's copy is the one that is held."""
    seen: float
    """Seconds since the epoch."""
    size: int = 0
    """Bytes of the response; 0 where unknown."""
    evidence: Evidence | None = None
    """Why it was called a mirror."""
    firm: bool = True
    """False where the URL may give something else when it is fetched, so that it is never skipped for this."""
    target: str | None = None
    """The id of the document held; set by the store."""
    key: str = ""
    """Of its row; "" until a store has it."""
