"""Records of a decision: the match and the verdict."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

from .fingerprints.layout import same_layout
from .signature import Evidence, Signature

SAME_CONTENT = 0.95  # resemblance: a corrected misprint or another date is the same content


@dataclass(frozen=True)
class Verdict:
    """What was decided of a document, and on what evidence; None where there was nothing to compare with."""

    status: str
    """`unique`, `duplicate` or `revisit`: the same URL again; in a crawl that keeps revisits, content that is held and
    comes for the first time in its run."""
    duplicate_of: str | None = None
    detector: str | None = None
    """The first one that proposed the document held."""
    hamming: int | None = None
    resemblance: float | None = None
    containment: float | None = None
    length_ratio: float | None = None
    kind: str | None = None
    """Of a duplicate page: see `page_kind`."""
    copies: int = 0
    """Other URLs with the content of the original."""
    changed: bool = False
    """The URL gave another document last, of those that are held."""

    def sentence(self, url: str | None) -> str:
        """Return in words what was decided of the document with this URL."""
        subject = url or "an item without URL"
        if self.status == "unique":
            return f"{subject} is unique"
        relation = "copy" if self.status == "duplicate" else "revisit"
        original = self.duplicate_of or "an item without URL"
        if self.status == "duplicate" and self.duplicate_of == url and url:
            original = "what this run gave already"
        return f"{subject} is a {relation} of {original} (found by {self.detector}, resemblance {self.resemblance})"

    def tag(self) -> dict[str, Any]:
        """Return the verdict as the item's tag."""
        return asdict(self)


UNIQUE = Verdict("unique")


class Point(NamedTuple):
    """One thing that was checked of two documents."""

    text: str
    """What was measured, and what it takes: "resemblance 0.76, needed 0.43"."""
    is_met: bool
    """Whether it allows that one is a copy of the other."""


def in_words(status: str, points: Sequence[Point]) -> str:
    """Return a decision as a sentence: of a unique document the points that were not met, else all of them."""
    missed = [point for point in points if not point.is_met] if status == "unique" else []
    return f"{status}: {'; '.join(point.text for point in missed or points)}"


def page_kind(resemblance: float, layout: int, earlier: int) -> str | None:
    """Name the kind of a duplicate page; None where a layout is unknown.

    `full`: same content, same layout; `content`: same content, another layout; `layout`: part of the content, same
    layout; `partial`: part of the content, another layout.

    After the four kinds of the notes on search engines (1.1); same content is a resemblance of SAME_CONTENT or more.
    """
    if not layout or not earlier:
        return None
    if resemblance >= SAME_CONTENT:
        return "full" if same_layout(layout, earlier) else "content"
    return "layout" if same_layout(layout, earlier) else "partial"


@dataclass(frozen=True)
class Match:
    """A document held that passed verification."""

    signature: Signature
    evidence: Evidence
