"""What is kept of a document and of the URLs that led to it. Plain records; no behaviour, no I/O."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

from .fingerprints.sketch import Sketch

TITLE = 200  # characters that are stored of a title

Key: TypeAlias = tuple[str, int, int]
"""Where a stored signature lies: the run, the number of its segment, the place in it."""


class _Weak:
    """What weak references need; `dataclass(weakref_slot=True)` came with Python 3.11."""

    __slots__ = ("__weakref__",)


@dataclass(eq=False, slots=True)
class Signature(_Weak):
    """The stored record of a document: its fingerprints by detector, and the sketch that verification compares."""

    url: str | None
    fingerprints: dict[str, tuple[int, ...]]
    sketch: Sketch
    first_seen: float
    """Seconds since the epoch."""
    layout: int = 0
    """Of its page; 0 where unknown."""
    key: Key | None = None
    """None until it is written."""
    repeats: int = 0
    """How many documents repeat it, as far as is known: its mirror degree."""
    number: int | None = None
    """Its place among all documents of a store's parts; None where it is in none."""
    title: str = ""
    """Of at most `TITLE` characters."""
    identity: int = 0
    """The hash of the fields that tell its item from others; 0 without any."""


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
    """As it was requested."""
    signature: Signature | None
    """The document held; None where the URL also gave something that is held nowhere, so that it must be fetched."""
    mirror: bool
    """True where another URL's copy is the one that is held."""
    seen: float
    """Seconds since the epoch."""
    size: int = 0
    """Bytes of the response; 0 where unknown."""
    evidence: Evidence | None = None
    """Why it was called a mirror."""
    firm: bool = True
    """False where the URL may give something else when it is fetched, so that it is never skipped for this."""
    digest: int = 0
    """The hash of its canonical form; 0 until a store has made it."""
    void: bool = False
    """True where nothing is known of the URL any more: it takes the place of what was known."""
