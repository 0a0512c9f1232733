"""The two stored records: the signature of a document, and the visit of a URL. No I/O."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from .fingerprints.record import Decoded
from .text.urls import home

TITLE = 200  # stored characters of a title


@dataclass(eq=False, slots=True)
class Signature(Decoded):
    """A document as it is stored. Parts of `record` are decoded on access."""

    url: str | None
    record: bytes  # see `fingerprints/record.py`
    first_seen: float  # seconds since the epoch
    title: str = ""  # at most `TITLE` characters
    label: str = ""  # words that name the item among others of its page; "" if the page gave no other
    id: int = 0  # the key of the row (see `store/records.py`); 0 until a store holds the document
    count: Callable[[int], int] | None = None  # gives the number of copies of the document with an id; set by the store
    sample: bool = False  # true if it is one of the sampled pages of its host; set by the store

    @cached_property
    def home(self) -> str:
        """The host of its URL without "www."; "" if there is none."""
        return home(self.url or "")

    def says_the_same(self, other: Signature) -> bool:
        return (self.sketch, self.facts) == (other.sketch, other.facts)

    def is_twin_of(self, other: Signature) -> bool:
        """Return whether two documents have equal titles, sketches and facts, as when two processes hold one page."""
        return self.title == other.title and self.says_the_same(other)

    @property
    def can_be_repeated(self) -> bool:
        return self.head.tokens > 0 or bool(self.head.facts and self.url)

    @property
    def copy_count(self) -> int:
        return self.count(self.id) if self.count else 0


class Evidence(NamedTuple):
    """The measurements of a pair of documents."""

    detector: str  # the first detector that proposed the earlier document
    hamming: int | None  # the Hamming distance between the SimHashes; None if a document has none
    resemblance: float
    containment: float
    length_ratio: float
    kind: str | None = None  # the kind of a copied page, see `verdict.page_kind`; None if a layout is unknown


@dataclass(eq=False, slots=True)
class Visit:
    """The last outcome of a URL, or a note on a document that is found by a name (see `store/visits.py`)."""

    url: str  # as it was requested; "" for a visit with a name
    signature: Signature | None  # None if the URL returned several documents, or content that is not held
    is_copy: bool  # true if the URL repeats a document that another URL returned
    seen: float  # seconds since the epoch
    size: int = 0  # bytes of the response; 0 if unknown
    evidence: Evidence | None = None  # of a copy; also if the URL took its original's place, and `is_copy` is false
    loose: bool = False  # true if the URL may return other content next time (`Document.loose`): it is never skipped
    name: str = ""  # of a visit that is not found by its URL; it begins with a kind such as `item`
    target: int | None = None  # the id of the document; set by the store
    at: int = 0  # the id of this state: the code of the run that first saw it, and a number; set by the store
    before: Visit | None = None  # what the URL returned before that run, without `signature`; set by the store

    @property
    def shown(self) -> str:
        """The URL of the visit; for the name of an item of a page, its URL and label; "" for any other name."""
        return self.url or self.name.partition(": ")[2]
