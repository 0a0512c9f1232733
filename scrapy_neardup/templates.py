"""Template text: what a site repeats on its pages. No Scrapy, no I/O.

Main-text extraction leaves most of it out, but not where the text of an item is more than the main text, or where a
site sets its notices like paragraphs. Two pages of one site may then share most of their text and still say different
things.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Mapping
from functools import cached_property
from itertools import islice

import numpy as np

from .document import Document
from .fingerprints.hashing import Hashes, distinct, hash_lines, shingles
from .fingerprints.sketch import WIDTH, Sketch, make_sketch
from .signature import Signature
from .text.sentences import split_lines
from .text.tokens import token_lines
from .text.urls import host
from .verify import compare

SITES, LINES = 500, 2000  # sites that are remembered, and lines of each; those longest not seen are forgotten
CLUSTERS = 8  # that are remembered of a line: one that so many have is on every page
FOREIGN = 0.3  # containment below which a text is not taken from another


class Page:
    """A document line by line, each line once."""

    def __init__(self, document: Document) -> None:
        self._url = document.url or ""
        self._document = document
        self._hashes: dict[str, Hashes] = {}
        self._sketches: dict[tuple[str, ...], Sketch] = {}

    @cached_property
    def site(self) -> str:
        return host(self._url)

    @cached_property
    def lines(self) -> list[str]:
        """Its lines and sentences in their order, with one blank for each run of white space."""
        return split_lines(self._document.text)

    @property
    def hashes(self) -> list[int]:
        """The hashes of its lines, in their order."""
        return self._document.line_hashes

    def tokens(self, lines: Iterable[str]) -> int:
        """Return how many tokens some of its lines have."""
        return sum(len(self._line(line)) for line in lines)

    def sketch(self, lines: tuple[str, ...]) -> Sketch:
        """Return the sketch of some of its lines; of the same ones, such as a form leaves, it is made once."""
        if lines not in self._sketches:
            found = distinct(np.concatenate([shingles(self._line(line), WIDTH) for line in lines]))
            self._sketches[lines] = make_sketch(self.tokens(lines), found)
        return self._sketches[lines]

    def _line(self, line: str) -> Hashes:
        """Return the hashes of a line's tokens; it is cut into words only where it is needed."""
        if line not in self._hashes:
            self._hashes[line] = hash_lines(token_lines(line))
        return self._hashes[line]


class Templates:
    """In which documents held, of the same site, each line stood so far, in this process.

    Documents go by a number, in plain dictionaries: the garbage collector leaves out those that hold only numbers. It
    would stop the crawl for a tenth of a second to look through a million references.
    """

    def __init__(self) -> None:
        self._sites: OrderedDict[str, dict[int, tuple[int, ...]]] = OrderedDict()

    def learn(self, page: Page, held: Signature) -> None:
        """Remember the lines of a page that is held, or that repeats a document held; nothing without a site."""
        if not page.site:
            return
        lines = self._sites.setdefault(page.site, {})
        self._sites.move_to_end(page.site)
        number = _number(held)
        fresh: dict[int, tuple[int, ...]] = dict.fromkeys(page.hashes, (number,))
        for key in lines.keys() & fresh.keys():
            known = lines.pop(key)
            fresh[key] = known if number in known else (*known, number)[:CLUSTERS]
        lines.update(fresh)
        for oldest in list(islice(lines, max(0, len(lines) - LINES))):
            del lines[oldest]
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
        lines: Mapping[int, tuple[int, ...]] = self._sites.get(page.site, {})
        number = _number(earlier)
        known = {line: lines.get(key, ()) for line, key in zip(page.lines, page.hashes, strict=True)}
        own = tuple(line for line, those in known.items() if number not in those and len(those) < CLUSTERS)
        if not own:
            return False
        sketch, least = page.sketch(own), max(min_tokens, 1)
        # What costs more, to cut the other lines into words, comes last.
        if sketch.tokens < least or compare(sketch, earlier.sketch).containment >= FOREIGN:
            return False
        if earlier.sketch.tokens - (page.tokens(known) - sketch.tokens) < least:
            return False
        only = page.tokens(line for line, those in known.items() if those == (number,))
        others_known = any(those != (number,) for those in lines.values())
        return only < sketch.tokens or not others_known


def _number(document: Signature) -> int:
    return hash((document.url, document.first_seen, document.sketch.codes))
