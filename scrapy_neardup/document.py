"""The document that is compared. Its tokens and their hashes are made once, when first asked for."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import numpy.typing as npt

from .fingerprints.hashing import Hashes, counted, distinct, hash_tokens, shingle_hashes
from .fingerprints.layout import layout
from .fingerprints.sketch import WIDTH, Sketch, make_sketch
from .text.extractors import BUILTIN, Extract, build_reader
from .text.html import looks_like_html
from .text.sentences import split_lines
from .text.tokens import tokenize


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
    ready: dict[str, tuple[int, ...]] = field(default_factory=dict)
    """Fingerprints that were made in another process, by detector."""

    @classmethod
    def from_field(
        cls, value: str, *, url: str | None = None, title: str = "", extractor: str | Extract = BUILTIN
    ) -> Document:
        """Make a document of a text that may be HTML, of which only the main text (and the title) is taken.

        `extractor` says who finds it, as NEARDUP_EXTRACTOR does; plain text is taken as it is.
        """
        if looks_like_html(value):
            page = build_reader(extractor)(value)
            return cls(url=url, text=page.text, title=title or page.title, layout=layout(page.elements))
        return cls(url=url, text=value, title=title)

    @cached_property
    def tokens(self) -> list[str]:
        """The words of the text, in order."""
        return tokenize(self.text)

    @cached_property
    def lines(self) -> bytes:
        """The tokens in UTF-8, a line each."""
        return "\n".join(self.tokens).encode()

    @cached_property
    def hashes(self) -> Hashes:
        """The tokens' 128-bit hashes, of shape (n, 2): what every fingerprint is made of."""
        return hash_tokens(self.tokens)

    @cached_property
    def counted(self) -> tuple[Hashes, npt.NDArray[np.int64]]:
        """The hashes of the distinct tokens, ascending, and how often each stands in the text."""
        return counted(self.hashes)

    @cached_property
    def shingles(self) -> Hashes:
        """The hashes of the distinct shingles, ascending."""
        return distinct(shingle_hashes(self.hashes[:, 0], WIDTH))

    @cached_property
    def sketch(self) -> Sketch:
        """What is stored of the text, to compare it with others."""
        return make_sketch(len(self.tokens), self.shingles, self.hashes[:, 0][self._are_figures()])

    @cached_property
    def line_hashes(self) -> list[int]:
        """The hashes of its distinct lines and sentences, see `split_lines`; of another process they may be others."""
        return list(map(hash, split_lines(self.text)))

    def _are_figures(self) -> npt.NDArray[np.bool_]:
        """Say of each token whether it begins with a digit 0 … 9."""
        letters = np.frombuffer(b"\n" + self.lines, np.uint8)
        starts = (letters == ord("\n")).nonzero()[0] + 1
        first: npt.NDArray[np.uint8] = letters.take(starts[: len(self.tokens)], mode="clip")
        return first < ord(":")
