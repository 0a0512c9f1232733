"""Template text: what a site repeats on its pages. No Scrapy, no I/O.

Main-text extraction leaves most of it out, but not where the text of an item is more than the main text, or where a
site sets its notices like paragraphs. Two pages of one site may then share most of their text and still say different
things.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Iterable
from collections.abc import Set as AbstractSet
from functools import cached_property
from typing import TypeAlias

import numpy as np

from .document import Document
from .fingerprints.hashing import Hashes, distinct, hash_bytes, hash_lines, shingles
from .fingerprints.sketch import WIDTH, Sketch, containment_by_chance, make_sketch
from .signature import Signature
from .text.sentences import split_lines
from .text.tokens import token_lines
from .text.urls import host
from .verify import compare

SITES = 500  # that are remembered; those longest not seen are forgotten
LINES, DOCUMENTS = 4000, 200  # of a site that are remembered: half of twice as many is forgotten at a time
CLUSTERS = 8  # documents, of which a line that so many have is on every page
FOREIGN = 0.3  # containment below which a text is not taken from another …
SURELY = 2.0  # … and how many standard errors more count for nothing: every page of the site before it is another trial

Stands: TypeAlias = "dict[int, set[int]]"
"""The numbers of the documents in which lines stand, by the hash of the line."""
NONE: AbstractSet[int] = frozenset()
FORGOTTEN = range(-CLUSTERS, 0)  # stand for documents that are forgotten, of which as many had a line


class Page:
    """A document line by line, each line once."""

    def __init__(self, document: Document) -> None:
        self._url = document.url or ""
        self._document = document
        self._hashes: dict[str, Hashes] = {}
        self._sketches: dict[tuple[str, ...], Sketch] = {}
        self._stands: dict[str, AbstractSet[int]] = {}

    @cached_property
    def site(self) -> str:
        return host(self._url)

    @cached_property
    def lines(self) -> list[str]:
        """Its lines and sentences in their order, with one blank for each run of white space."""
        return split_lines(self._document.text)

    @property
    def hashes(self) -> Hashes:
        """The hashes of its lines, in their order."""
        return self._document.line_hashes

    def stands(self, site: Site) -> dict[str, AbstractSet[int]]:
        """Return of each line in which documents of its site it stands; these are asked once."""
        if not self._stands:
            known = site.stands(self.hashes)
            self._stands = {
                line: known.get(key, NONE) for line, key in zip(self.lines, self.hashes.tolist(), strict=True)
            }
        return self._stands

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


class Site:
    """The lines of documents of one site, the last ones; each document goes by a number.

    As they come: they are looked through where two pages are compared, which most never are. Of documents that are
    forgotten it keeps the lines that are on every page.
    """

    def __init__(self) -> None:
        self._documents: deque[tuple[int, Hashes]] = deque()
        self._lines = 0
        self._template = np.zeros(0, np.uint64)  # the lines that were seen last come first

    def learn(self, number: int, lines: Hashes) -> None:
        """Remember the lines of a document."""
        if not len(lines):
            return
        lines = lines[-LINES:].copy() if len(lines) > LINES else lines
        self._documents.append((number, lines))
        self._lines += len(lines)
        # However long the pages are, some must be known to tell what is on each.
        if len(self._documents) > (2 * CLUSTERS if self._lines > 2 * LINES else 2 * DOCUMENTS):
            self._forget_half()

    def _forget_half(self) -> None:
        ascending = np.sort(np.concatenate([lines for _, lines in self._documents]))
        often = ascending[CLUSTERS - 1 :][ascending[CLUSTERS - 1 :] == ascending[: 1 - CLUSTERS]]
        stands = self.stands(np.concatenate([distinct(often), self._template]))
        seen = [line for line, those in stands.items() if len(those) >= CLUSTERS and max(those) >= 0]
        template = np.array(seen, np.uint64)
        rest = self._template[~np.isin(self._template, template)]
        self._template = np.concatenate([template, rest])[:LINES]
        for _ in range(len(self._documents) // 2):
            self._lines -= len(self._documents.popleft()[1])

    def stands(self, lines: Hashes) -> Stands:
        """Return in which documents each of some lines stands; those that stand in none are left out."""
        numbers, known = zip(*self._documents, strict=True) if self._documents else ((), ())
        held = np.concatenate([lines[:0], *known])
        shared = np.isin(held, lines).nonzero()[0]
        ends = np.cumsum([0, *map(len, known)])
        found: Stands = {line: set(FORGOTTEN) for line in lines[np.isin(lines, self._template)].tolist()}
        for line, place in zip(held[shared].tolist(), ends.searchsorted(shared, side="right").tolist(), strict=True):
            found.setdefault(line, set()).add(numbers[place - 1])
        return found

    def has_others(self, number: int) -> bool:
        """Say whether another document is known than one."""
        return len(self._template) > 0 or any(other != number for other, _ in self._documents)

    def __len__(self) -> int:
        """How many lines are remembered, as often as they stand there."""
        return self._lines + len(self._template)


class Templates:
    """What stood in the documents of each site so far, in this process."""

    def __init__(self) -> None:
        self._sites: OrderedDict[str, Site] = OrderedDict()

    def learn(self, page: Page, held: Signature) -> None:
        """Remember the lines of a page that is held, or that repeats a document held; nothing without a site."""
        if not page.site:
            return
        self._sites.setdefault(page.site, Site()).learn(_number(held), page.hashes)
        self._sites.move_to_end(page.site)
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
        site = self._sites.get(page.site, Site())
        number, stands = _number(earlier), page.stands(site)
        own = tuple(line for line, those in stands.items() if number not in those and len(those) < CLUSTERS)
        if not own:
            return False
        sketch, least = page.sketch(own), max(min_tokens, 1)
        # What costs more, to cut the other lines into words, comes last.
        if sketch.tokens < least or not _is_foreign(sketch, earlier.sketch):
            return False
        if earlier.sketch.tokens - (page.tokens(stands) - sketch.tokens) < least:
            return False
        only = page.tokens(line for line, those in stands.items() if those == {number})
        return only < sketch.tokens or not site.has_others(number)


def _is_foreign(own: Sketch, earlier: Sketch) -> bool:
    """Say whether a text is not taken from an earlier one, as far as the sketches can tell."""
    return compare(own, earlier).containment < FOREIGN + SURELY * containment_by_chance(own, earlier)


def _number(document: Signature) -> int:
    return hash_bytes(document.sketch.codes + (document.url or "").encode(errors="surrogatepass"))
