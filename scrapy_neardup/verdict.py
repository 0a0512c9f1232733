"""The verdict on a document, the match behind it, and the sentence that explains it."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from .fingerprints.hashes import same_layout
from .signature import Evidence, Signature

SAME_CONTENT = 0.95  # the minimum resemblance of the same content, which may differ in a misprint or a date
OTHER_LAYOUT = ("content", "partial")  # the kinds of copies that have another layout than the original; see `page_kind`


@dataclass(frozen=True)
class Verdict:
    """The decision on a document, with its evidence. For a unique document, the evidence is None."""

    status: str
    """`unique`, `duplicate` or `revisit`. A revisit is a document that its own URL returned before. In a crawl with
    NEARDUP_REVISIT = "keep", it is instead a document of an earlier run that this run gets for the first time."""
    duplicate_of: str | None = None
    """The URL of the original; without one, the URL of the page that gave the original; None without either."""
    original: str = ""
    """Words that name the original among other items of its page; "" if the page gave no other."""
    detector: str | None = None
    """The first detector that proposed the original."""
    hamming: int | None = None
    resemblance: float | None = None
    containment: float | None = None
    length_ratio: float | None = None
    kind: str | None = None
    """The kind of a copied page; see `page_kind`."""
    copies: int = 0
    """The number of other URLs with the content of the original."""
    changed: bool = False
    """True if the document's own URL last returned another document, which is still held."""

    def is_dropped(self, revisit: str, *, is_written: bool = False) -> bool:
        """Return whether the document's item is dropped, given NEARDUP_REVISIT.

        With "keep", only the feed of this run counts. With another value, the feeds of earlier runs count too, but an
        item is kept if its URL last returned another document. `is_written`: whether an earlier row of the same feeds
        has the document; a duplicate of such a row is never kept. A crawl leaves this out: `status` tells it.
        """
        if self.status == "unique":
            return False
        if revisit == "keep":
            return is_written or self.status == "duplicate"
        return not self.changed or (is_written and self.status == "duplicate")

    def sentence(self, url: str | None, label: str = "") -> str:
        """Return the verdict on the document with this URL and label as a sentence."""
        subject = named(url, label)
        if self.status == "unique":
            return f"{subject} is unique"
        relation = "copy" if self.status == "duplicate" else "revisit"
        original = named(self.duplicate_of, self.original)
        if self.status == "duplicate" and url and (self.duplicate_of, self.original) == (url, label):
            original = "an earlier item of this run"
        return f"{subject} is a {relation} of {original} (found by {self.detector}, resemblance {self.resemblance})"

    def tag(self) -> dict[str, Any]:
        """Return the verdict as a dictionary, the tag of the item."""
        return asdict(self)


UNIQUE = Verdict("unique")


def named(url: str | None, label: str = "") -> str:
    """Return what a document is called in messages: its URL and, for one of several items of a page, its label."""
    name = url or "an item without URL"
    return f"{name} ({label})" if label else name


def page_kind(resemblance: float, layout: int, earlier: int) -> str | None:
    """Return the kind of a copied page; None if a layout is unknown.

    `full`: same content, same layout. `content`: same content, other layout. `layout`: part of the content, same
    layout. `partial`: part of the content, other layout. "Same content" means a resemblance of SAME_CONTENT or more.
    docs/algorithms/page_kinds.md has their source.
    """
    if not layout or not earlier:
        return None
    if resemblance >= SAME_CONTENT:
        return "full" if same_layout(layout, earlier) else "content"
    return "layout" if same_layout(layout, earlier) else "partial"


@dataclass(frozen=True)
class Match:
    """A held document that passed verification, with the evidence on the pair."""

    signature: Signature
    evidence: Evidence
