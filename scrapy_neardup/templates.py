"""Template text: what a site repeats on its pages. No Scrapy, no I/O.

Main-text extraction leaves most of it out, but not where the text of an item is more than the main text, or where a
site sets its notices like paragraphs. Two pages of one site may then share most of their text and still say different
things.
"""

from __future__ import annotations

import re
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from functools import cached_property

import numpy as np

from .document import Document
from .fingerprints.hashing import Hashes, hash_text, shingle_hashes
from .fingerprints.sketch import WIDTH, Sketch, make_sketch
from .signature import Signature
from .text.urls import host
from .verify import compare

SITES, LINES = 500, 2000  # sites that are remembered, and lines of each; those longest not seen are forgotten
CLUSTERS = 8  # that are remembered of a line: one that so many have is on every page
FOREIGN = 0.3  # containment below which a text is not taken from another
_LINE_END = re.compile(r"\n|(?<=[.!?])\s+|(?<=[。！？])")


class Line:
    """A line or sentence of a page; cut into words only where it is needed."""

    def __init__(self, text: str) -> None:
        self.key = hash_text(text)
        self._text = text

    @cached_property
    def hashes(self) -> Hashes:
        """Of its tokens."""
        return Document(text=self._text).hashes[:, 0]


class Page:
    """A document line by line, each line once."""

    def __init__(self, document: Document) -> None:
        self._url = document.url or ""
        self._text = document.text

    @cached_property
    def site(self) -> str:
        return host(self._url)

    @cached_property
    def lines(self) -> list[Line]:
        parts = (" ".join(part.split()) for part in _LINE_END.split(self._text))
        return [Line(part) for part in dict.fromkeys(parts) if part]


class Templates:
    """In which documents held, of the same site, each line stood so far, in this process."""

    def __init__(self) -> None:
        self._sites: OrderedDict[str, OrderedDict[int, tuple[Signature, ...]]] = OrderedDict()

    def learn(self, page: Page, held: Signature) -> None:
        """Remember the lines of a page that is held, or that repeats a document held; nothing without a site."""
        if not page.site:
            return
        lines = self._sites.setdefault(page.site, OrderedDict())
        self._sites.move_to_end(page.site)
        for line in page.lines:
            known = lines.pop(line.key, ())
            lines[line.key] = known if held in known else (*known, held)[:CLUSTERS]
        while len(lines) > LINES:
            lines.popitem(last=False)
        if len(self._sites) > SITES:
            self._sites.popitem(last=False)

    def explain(self, page: Page, earlier: Signature, min_tokens: int) -> bool:
        """Say whether what a page shares with one held of its site is no more than the site's template.

        Each must have a text of its own, long enough to be compared, and what is the page's own must be foreign to the
        earlier one: so an edited copy, whose changed lines are still much like the original's, is none such, nor is a
        cut copy, nor one with something added. Then the lines that they share decide. Those that other documents of
        the site have too are its template; if as much as the page's own is in these two alone, it is a copy beside
        other teasers. Where no other document of the site is known, it may be either, and counts as template: what is
        stored twice is not lost.
        """
        lines: Mapping[int, Sequence[Signature]] = self._sites.get(page.site, {})
        shared = [line for line in page.lines if _stands_in(earlier, lines.get(line.key, ()))]
        own = [line for line in page.lines if not _stands_in(earlier, lines.get(line.key, ()))]
        rest = earlier.sketch.tokens - _tokens(shared)
        if min(_tokens(own), rest) < max(min_tokens, 1) or not _is_foreign(own, earlier.sketch):
            return False
        only = [line for line in shared if lines[line.key] == (earlier,)]
        others_known = any(known != (earlier,) for known in lines.values())
        return _tokens(only) < _tokens(own) or not others_known


def _stands_in(document: Signature, known: Sequence[Signature]) -> bool:
    return document in known or len(known) == CLUSTERS


def _tokens(lines: Sequence[Line]) -> int:
    return sum(len(line.hashes) for line in lines)


def _is_foreign(lines: Sequence[Line], earlier: Sketch) -> bool:
    shingles = np.unique(np.concatenate([shingle_hashes(line.hashes, WIDTH) for line in lines]))
    own = make_sketch(_tokens(lines), shingles, shingles[:0])
    return compare(own, earlier).containment < FOREIGN
