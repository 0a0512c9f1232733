"""The two stored records: the signature of a document and the link of a URL. No I/O."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from .fingerprints.sketch import Sketch

SIMHASH = "simhash"  # the only detector whose fingerprints are also found by Hamming distance
TITLE = 200  # stored characters of a title


class _Weak:
    """The slots for weak references; `dataclass(weakref_slot=True)` needs Python 3.11."""

    __slots__ = ("__weakref__",)


class Visit(NamedTuple):
    """The last fetch of a URL."""

    seen: float
    """Seconds since the epoch."""
    size: int
    """Bytes of the response; 0 if unknown."""
    before: str | None = None
    """See `Link.before`."""


@dataclass(eq=False, slots=True)
class Signature(_Weak):
    """The stored record of a document: its fingerprints by detector, and its sketch for verification."""

    url: str | None
    fingerprints: Mapping[str, tuple[int, ...]]
    sketch: Sketch
    first_seen: float
    """Seconds since the epoch."""
    layout: int = 0
    """The fingerprint of the page's layout; 0 if unknown."""
    title: str = ""
    """At most `TITLE` characters."""
    facts: bytes = b""
    """The packed facts of the record (`facts.pack`); b"" without any."""
    label: str = ""
    """Words that name the record among others of its page; "" if it is alone there."""
    id: str = ""
    """`RUN/NUMBER`; "" until a store holds it."""
    own: Visit | None = None
    """The last visit in which its own URL returned the document; None if that URL has returned something else since."""
    count: Callable[[str], int] | None = None
    """Returns the number of copies of a document, given its id. Set by the store that holds the document."""
    known_repeats: int | None = None
    sample: bool = False
    """True if it is one of the documents by which the store knows the pages of its host. Set by the store."""

    def says_the_same(self, other: Signature) -> bool:
        """Return whether two documents have equal sketches and facts.

        There may be two such documents if two processes hold the same page at the same time.
        """
        return (self.sketch, self.facts) == (other.sketch, other.facts)

    @property
    def can_be_repeated(self) -> bool:
        """True if it has text, or is a record without text that has a place."""
        return self.sketch.tokens > 0 or bool(self.facts and self.url)

    @property
    def repeats(self) -> int:
        """The number of known copies."""
        if self.known_repeats is None:
            self.known_repeats = self.count(self.id) if self.count else 0
        return self.known_repeats


class Evidence(NamedTuple):
    """The measurements of a pair of documents."""

    detector: str
    """The first detector that proposed the earlier document."""
    hamming: int | None
    """The distance between the SimHashes, if both have one."""
    resemblance: float
    containment: float
    length_ratio: float
    kind: str | None = None
    """The kind of a copied page, see `verdict.page_kind`; None if a layout is unknown."""


@dataclass(eq=False, slots=True)
class Link:
    """The state of a URL after its last fetch."""

    url: str
    """The URL as it was requested; "" for a copy without URL."""
    signature: Signature | None
    """The document that the URL returned; None if it also returned content that is not held, so it must be fetched."""
    is_copy: bool
    """True if the URL repeats a document that another URL returned."""
    seen: float
    """Seconds since the epoch."""
    size: int = 0
    """Bytes of the response; 0 if unknown."""
    evidence: Evidence | None = None
    """The evidence on a copy."""
    firm: bool = True
    """False if the URL may return other content at the next fetch. Then it is never skipped for this document."""
    target: str | None = None
    """The id of the document; set by the store."""
    key: str = ""
    """The key of its row; "" until a store has it."""
    before: str | None = None
    """The id of the document that the URL returned before the run that added this row; "" if it is unknown, None for a
    new URL. Set by the store."""
