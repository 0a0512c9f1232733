"""The document that is compared. Tokens and hashes are made once, on first use."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from lxml import etree

from .fingerprints.hashes import Hashes, counted, hash_lines, shingles
from .fingerprints.layout import layout
from .fingerprints.sketch import WIDTH, Sketch, figures_of, make_sketch
from .text.extractors import BUILTIN, Extract, build_reader
from .text.html import Page, looks_like_html
from .text.tokens import token_lines


class Tree(NamedTuple):
    """A page that somebody has parsed."""

    html: str
    root: etree._Element
    layout: int


@dataclass(frozen=True, eq=False)
class Document:
    """A text with the URL that it came from.

    Without URL it is compared all the same, but can be no revisit, and no request is ever skipped for it.
    """

    url: str | None = None
    text: str = ""
    title: str = ""
    aliases: tuple[str, ...] = ()
    """Further URLs of the same fetch, such as redirects."""
    loose: frozenset[str] = frozenset()
    """Those of its URLs that may well give something else when they are fetched, so that it proves nothing to know
    them: the item's own URL where another one was fetched, temporary redirects, error pages."""
    size: int = 0
    """Bytes that the fetch of this document took; 0 where unknown."""
    layout: int = 0
    """The fingerprint of its page's layout; 0 where unknown."""
    claimed: tuple[str, ...] = ()
    """URLs that the page itself names as its canonical."""
    identity: int = 0
    """The hash of the fields that tell its item from others, such as its name or number; 0 without any."""
    thin: bool = False
    """The text is under half of what is not link text on its page, or the page says next to nothing but links."""
    has_page_url: bool = False
    """The URL is not the item's own: it is that of the page that gave the item, among others as may be."""
    ready: dict[str, tuple[int, ...]] = field(default_factory=dict)
    """Fingerprints that were made in another process, by detector."""

    @classmethod
    def from_field(
        cls,
        value: str,
        *,
        url: str | None = None,
        title: str = "",
        extractor: str | Extract = BUILTIN,
        tree: Tree | None = None,
    ) -> Document:
        """Make a document of a text that may be HTML, of which only the main text (and the title) is taken.

        `extractor` says who finds it, as NEARDUP_EXTRACTOR does; plain text is taken as it is. Of the page that `tree`
        is of nothing is parsed again.
        """
        if tree and value == tree.html:
            page = build_reader(extractor)(value, root=tree.root)
            return cls(url=url, text=page.text, title=title or page.title, layout=tree.layout, thin=page.thin)
        if looks_like_html(value):
            return cls.from_page(build_reader(extractor)(value), url=url, title=title)
        return cls(url=url, text=value, title=title)

    @classmethod
    def from_page(cls, page: Page, *, url: str | None = None, title: str = "") -> Document:
        """Make a document of a page that was read."""
        return cls(url=url, text=page.text, title=title or page.title, layout=layout(page.elements), thin=page.thin)

    @cached_property
    def tokens(self) -> list[str]:
        """The words of the text, in order."""
        return self.lines.decode().split("\n") if self.lines else []

    @cached_property
    def lines(self) -> bytes:
        """The tokens in UTF-8, a line each; b"" where there are none."""
        return token_lines(self.text)

    @cached_property
    def hashes(self) -> Hashes:
        """The tokens' 128-bit hashes, of shape (n, 2): what every fingerprint is made of."""
        return hash_lines(self.lines)

    @cached_property
    def counted(self) -> tuple[Hashes, npt.NDArray[np.int64]]:
        """The hashes of the distinct tokens, ascending, and how often each stands in the text."""
        return counted(self.hashes)

    @cached_property
    def shingles(self) -> Hashes:
        """The hashes of the distinct shingles, ascending."""
        return shingles(self.hashes, WIDTH)

    @cached_property
    def sketch(self) -> Sketch:
        """What is stored of the text, to compare it with others."""
        return make_sketch(len(self.hashes), self.shingles, figures_of(self.hashes, self.lines))
