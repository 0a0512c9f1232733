"""Template text: lines that a site repeats on its pages. No Scrapy, no I/O.

Main-text extraction leaves most of it out, but not where the text of an item is more than the main text, or where a
site sets its notices like paragraphs. Two pages of one site may then share most of their text and still say different
things.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator

from .document import Document
from .fingerprints.hashing import hash_text
from .fingerprints.sketch import Sketch
from .text.tokens import normalize
from .text.urls import host
from .verify import Comparison, compare

SITES, LINES = 500, 1000  # sites that are remembered, and lines of each; those longest not seen are forgotten
ALL_SHARED = 0.9  # containment: the smaller of two texts has nothing of its own
FOREIGN = 0.3  # containment below which a text is not taken from another


class Templates:
    """What each site's pages said so far, line by line, in this process."""

    def __init__(self) -> None:
        self._sites: OrderedDict[str, OrderedDict[int, None]] = OrderedDict()

    def learn(self, document: Document) -> None:
        """Remember the lines of a page; nothing of a document without URL."""
        if not document.url:
            return
        lines = self._sites.setdefault(host(document.url), OrderedDict())
        self._sites.move_to_end(host(document.url))
        for _, key in _lines(document.text):
            lines[key] = None
            lines.move_to_end(key)
        while len(lines) > LINES:
            lines.popitem(last=False)
        if len(self._sites) > SITES:
            self._sites.popitem(last=False)

    def own_text(self, document: Document) -> str:
        """Return the lines of a page that no page of its site has had."""
        known = self._sites.get(host(document.url or ""), ())
        return "\n".join(line for line, key in _lines(document.text) if key not in known)

    def explain(self, document: Document, earlier: Sketch, found: Comparison, min_tokens: int) -> bool:
        """Say whether what a page shares with an earlier one of its site is no more than the site's template.

        It is where both have text besides what they share, and the lines that are this page's own are a text long
        enough to be compared, of which the earlier page has little. So an edited copy, whose changed lines are still
        much like the original's, is none such, nor is a cut copy, nor one with something added.
        """
        if found.containment >= ALL_SHARED:
            return False
        own = Document(text=self.own_text(document))
        return len(own.tokens) >= max(min_tokens, 1) and compare(own.sketch, earlier).containment < FOREIGN


def _lines(text: str) -> Iterator[tuple[str, int]]:
    """Yield the lines that hold anything, each with its key."""
    return ((line, hash_text(" ".join(normalize(line).split()))) for line in text.splitlines() if line.strip())
