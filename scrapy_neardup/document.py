"""The document that is compared with others. Its tokens and hashes are computed once, on first use."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
from lxml import etree

from . import native
from .fingerprints.hashes import Hashes, hash_tokens, layout, shingles
from .fingerprints.record import WIDTH, Source
from .text.html import BUILTIN, Extract, PageText, elements, looks_like_html, read_page
from .text.tokens import length, spaced, tokenize, word_lines
from .text.urls import home

_WORD = re.compile(rb"[0-9A-Za-z\x80-\xff]")  # the first byte of a word in `Document.spaced`


@dataclass(frozen=True, eq=False)
class Tree:
    """A parsed page."""

    html: str
    root: etree._Element

    @cached_property
    def layout(self) -> int:
        return layout(elements(self.root))


@dataclass(eq=False)  # not frozen, since a frozen document takes three times as long to make
class Document:
    """A text with its URL.

    A document without a URL is compared too. It can't be a revisit, and no request is skipped because of it.
    """

    url: str | None = None
    text: str = ""
    title: str = ""
    aliases: tuple[str, ...] = ()
    """Further URLs of the same fetch, such as URLs that redirected to `url`."""
    loose: frozenset[str] = frozenset()
    """The URLs that may return other content at the next fetch, so that they are never skipped: temporary redirects,
    error pages, and the item's own URL if another URL was fetched."""
    size: int = 0
    """Bytes of the response; 0 if unknown."""
    layout: int = 0
    """The fingerprint of the page's layout; 0 if unknown."""
    claimed: tuple[str, ...] = ()
    """The canonical URLs that the page itself names."""
    facts: bytes = b""
    """The packed facts of the item (`facts.pack`); b"" without any."""
    thin: bool = False
    """True if the text may not be what the page is about: a small part of the page, hidden, from data, mostly links."""
    scripted: bool = False
    """True if the page has hardly any text, but scripts that may make some."""
    fact_names: tuple[str, ...] = ()
    """The names of the facts, for messages."""
    has_own_url: bool = True
    """False if the page at `url` may give other items too, and no field of this item has the URL."""
    is_one_of_several: bool = False
    """True if the page at `url` may give other items too, even if a field of this item has the URL."""
    page: str = ""
    """The URL of the page that gave the item and may give others; "" if the page gave only this one."""
    label: str = ""
    """Words that name the item among others of its page; "" if the page gave no other."""
    ready: dict[str, tuple[int, ...]] = field(default_factory=dict)
    """Fingerprints of heavy detectors that were computed before the claim, by the name of the detector."""

    @classmethod
    def from_field(
        cls,
        value: str,
        *,
        url: str | None = None,
        title: str = "",
        extractor: str | Extract = BUILTIN,
        tree: Tree | None = None,
        page: PageText | None = None,
    ) -> Document:
        """Return the document of a plain text or an HTML page. Of HTML, the main text, title and layout are used.

        `extractor` finds the main text; see NEARDUP_EXTRACTOR. To save time, give `tree` if the page was parsed before,
        and `page` if its text was extracted before.
        """
        known = tree if tree and value == tree.html else None
        if page is None:
            if not (known or looks_like_html(value)):
                return cls(url, value, title)
            page = read_page(value, extractor, known.root if known else None)
        shown = known.layout if known else layout(page.elements)
        return cls(url, page.text, title or page.title, layout=shown, thin=page.thin, scripted=page.scripted)

    @property
    def source(self) -> Source:
        """The parts that the record of the document is made of."""
        return Source(self.spaced if native.compiled else self.lines, self.home, self.facts, self.layout)

    @property
    def home(self) -> bytes:
        """The host, for the key of host, facts and text together (`Head.identity`); b"" without facts or a host."""
        return home(self.url).encode(errors="surrogatepass") if self.facts and self.url else b""

    @cached_property
    def tokens(self) -> list[str]:
        """The words of the text in order."""
        return self.lines.decode().split("\n") if self.lines else []

    @cached_property
    def values(self) -> npt.NDArray[np.intp]:
        """The positions, ascending, of the tokens of dates, and of values such as "green" in "Colour: green"."""
        words = self.tokens
        found = {*_labelled(self.text), *_dated(words)}
        return np.array(sorted(found.intersection(range(len(words)))), np.intp)

    @cached_property
    def spaced(self) -> bytes:
        """The tokens in UTF-8, with ASCII separators between them."""
        return spaced(self.text)

    @property
    def has_tokens(self) -> bool:
        """False if the text has no words."""
        return _WORD.search(self.spaced) is not None

    @cached_property
    def lines(self) -> bytes:
        """The tokens in UTF-8, one a line; b"" without tokens."""
        return word_lines(self.spaced)

    @cached_property
    def hashes(self) -> Hashes:
        """The 128-bit hashes of the tokens, of shape (n, 2)."""
        return hash_tokens(self.lines.split())

    @cached_property
    def shingles(self) -> Hashes:
        """The hashes of the distinct shingles, ascending."""
        return shingles(self.hashes, WIDTH)

    def __getstate__(self) -> dict[str, Any]:
        """Return the fields, to be sent to another process, without the values that were computed from them."""
        return {name: value for name, value in self.__dict__.items() if name in self.__dataclass_fields__}


# Where a part of a text ends: a line or a cell, a label, a sentence, or a value in a row of several.
_END = re.compile(
    r"([\n\t]|:(?=[\s*]|[^\W\d_])|[：【】]|[.;!?](?=\s)|[。；！？|｜]|\s[·•–—=-]\s"
    r"|,(?=[^\W\d_ ]*(?: [^\W\d_]+){1,3}:))"  # before the label of another value
)
_COLONS = (":", "：", "】")
_AFTER_LABEL = (*_COLONS, *"\n\t|｜", " - ", " – ", " — ", " = ")
_YEAR = re.compile(r"(?:19|20)\d\d")
_MONTHS = "january|february|march|april|june|july|august|september|october|november|december"
_DAY = re.compile(
    rf"{_MONTHS}|(?:mon|tues|wednes|thurs|fri|satur|sun)day|today|tonight|tomorrow|first|second|third|fifth|eighth|ninth"
    r"|twelfth|(?:four|six|seven|ten|eleven|\w+teen|\w+tie)th"
    "|[一二三四五六七八九十廿卅〇○]+[月日号]|(?:周|星期|礼拜)[一二三四五六日天]|[本下上这]周|[今明后]天"
)
_BESIDE_DAY = re.compile(rf"{_MONTHS}|may|[月日号]")
LABEL, BEFORE_COLON, VALUE = 3, 5, 6  # maximum numbers of words: in a label, in a label before a colon, in a value


def _labelled(text: str) -> Iterator[int]:
    """Yield the position of each word of a value that follows a label.

    A label is a few words before a colon, or a short line or cell: "Colour: moss green", in one line or two.
    """
    place, has_label = 0, False
    parts = _END.split(text)
    for part, end in zip(parts[::2], [*parts[1::2], ""], strict=True):
        if words := tokenize(part):
            size = length(words)
            if has_label and size <= VALUE and end not in _COLONS:
                yield from range(place, place + len(words))
            most = BEFORE_COLON if end in _COLONS else LABEL
            has_label = size <= most and end.replace("\u00a0", " ") in _AFTER_LABEL
            place += len(words)


def _dated(words: Sequence[str]) -> Iterator[int]:
    """Yield the positions of words of dates: months, days, figures beside a month or year, a word before a year."""
    for place, word in enumerate(words):
        if _DAY.fullmatch(word):
            yield place
        if _BESIDE_DAY.fullmatch(word):
            yield from _days(words, place - 1, place + 2)
        elif _YEAR.fullmatch(word):
            yield from (days := [*_days(words, place - 2, place + 3)])
            if (before := place - 1 - (place - 1 in days)) >= 0:
                yield before


def _days(words: Sequence[str], first: int, end: int) -> Iterator[int]:
    """Return the positions, from `first` to before `end`, of figures that may be a day or a month."""
    return (at for at in range(max(0, first), min(end, len(words))) if words[at].isdigit() and len(words[at]) < 3)
