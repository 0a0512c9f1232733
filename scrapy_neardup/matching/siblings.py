"""Recognise siblings, pages of one form with different subjects, which are not copies. No I/O.

Reference pages of a library, products of a shop and issues of a bulletin share most of their words. The shared words
are on other pages too, so they are no evidence of a copy. Two documents are siblings, and both are kept, if one of
these conditions holds. Without a URL, only the first condition is checked. If strong facts are equal, no other is.

- Strong facts. The items differ in a number that is the same on all sites, such as an ISBN.
- Facts. Both items are of one host, and differ in a fact, such as a date, place or price. If their facts and texts are
  equal, only their titles count.
- Subject. The titles differ, the later text contains words that only the later title has, and the earlier text lacks
  most of the shingles around these words.
- Name. Both pages are of one host, the titles differ in a few words at one place, and the later text does not contain
  the differing words of either title. So the subject of the pages is not in the compared text.
- Thin text. Both pages are of one host, the titles or the texts differ, and the later text says little of its page.
- Own. The later text has rare shingles, which few other pages have, and the earlier text lacks too many of them. If
  the titles differ, or a third page has the same title, the earlier text must have more of them. The larger the share
  of the later text that is form, the more rare shingles the earlier text must have.
- Passage. Both pages are of one host, with too few known pages to tell which shingles are rare, and each text has a
  passage that the other lacks.

The "other pages" are the last pages of the later page's host that this process held, the sample of this host that the
store had before, and all candidates, except those with the earlier page's text: they are records that differ in a fact,
and do not show what is form. Neither does a page with a title and most of the text of one of the two pages, and other
facts.
"""

from __future__ import annotations

import re
import unicodedata
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping
from functools import cache, cached_property
from itertools import takewhile
from typing import NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from ..document import Document
from ..facts import Names, agree, are_strongly_equal, counting, differing, name_of
from ..fingerprints.hashes import shingle_hashes
from ..fingerprints.minhash import minima, places
from ..fingerprints.sketch import BINS, WIDTH, Codes, overlap, resemblance
from ..signature import Signature
from ..text.main_text import squeeze
from ..text.tokens import marks, tokenize
from ..text.urls import host

HOSTS = 256  # remembered hosts; those seen longest ago are forgotten
PAGES = 128  # remembered pages of a host, the last ones
RARE = 1  # the maximum number of other pages that have a rare shingle
OWN = 0.5  # the share of a page's rare shingles that the earlier page must have
OWN_OF_FORM = 0.9  # the same share for a page of a form, if the titles differ or a third page has the same title
# A page is of a form if at least this share of its shingles is not rare. With a smaller share, the earlier page must
# have a share of rare shingles between OWN and OWN_OF_FORM, in proportion.
FORM = 0.2
SUBJECT = 0.35  # the share of the shingles around a page's subject that the earlier page must have
SUBJECT_SHINGLES = 2  # minimum number of known shingles around the subject
PASSAGE = 20  # minimum words of a passage that only one text has
PASSAGE_SHARE = 0.08  # the same minimum as a share of the text; the larger minimum counts
PASSAGE_SHINGLES = 8  # minimum number of known shingles in the passage
FAR = 0.7  # the resemblance below which a copy is not near
NAME = 3  # the maximum number of words in which titles of one form differ

Place: TypeAlias = tuple[str, str]
"""The URL and the title of a page. A list page has items with different titles."""

_SEPARATOR = re.compile(r"\s+[|–—·»:_-]+\s+|:\s+|(?<=[^\x00-\x7f])[|_-]+|[|_-]+(?=[^\x00-\x7f])|｜")
_CHARACTER = "[\u3040-\u30ff\u3400-\u9fff]"


class Own(NamedTuple):
    """Measures of a page's own text, in comparison with an earlier page."""

    share: float
    """The share of the page's rare shingles that the earlier page has."""
    form: float
    """The share of the page's shingles that are not rare."""


class Other(NamedTuple):
    """Another page, which may share a form or a title with the judged page."""

    codes: bytes
    title: str
    facts: bytes

    @classmethod
    def of(cls, signature: Signature) -> Other:
        return cls(signature.sketch.codes, signature.title, signature.facts)


class Page:
    """The judged page. Values that the comparison with each earlier page needs are computed once."""

    def __init__(self, document: Document, signature: Signature, others: Mapping[Place, Other]) -> None:
        """`others` has other pages by URL and title."""
        self._document = document
        self._signature = signature
        self._others = others
        self._compared: Signature | None = None
        self._positions: list[int] = []

    def why_sibling_of(self, earlier: Signature, *, is_own: bool, counters: Names = ()) -> str | None:
        """Return the reason why this page and an earlier one are siblings; None if they are not.

        `is_own`: the earlier page is what this URL returned before. Then they are siblings only if facts differ.
        `counters`: the names of the facts that do not count on this host.
        """
        ours, theirs = self._signature.facts, earlier.facts
        is_one = are_strongly_equal(ours, theirs)
        if is_one is False:
            return "the items differ in a number that is the same on all sites"
        if self.is_of_host(earlier) and not agree(ours, theirs, counters):
            return "the items differ in " + self._differing(theirs, counters)
        if is_own or is_one or not self._document.url or not earlier.url:
            return None
        if ours and self.is_of_host(earlier) and self._signature.sketch == earlier.sketch:
            # Equal facts and equal text are one record, even if the text is a form.
            return None if self._may_have_title_of(earlier) else "the titles differ"
        differs = self._signature.sketch != earlier.sketch or self._differs_in_title(earlier)
        if self._document.thin and differs and self.is_of_host(earlier):
            return "the text is thin, and the titles or the texts differ"
        return self._why_by_titles(earlier) or self._why_by_texts(earlier)

    def _may_have_title_of(self, earlier: Signature) -> bool:
        """Return whether the titles are equal, apart from the name of a site, or this page has none."""
        ours, theirs = (squeeze(title).casefold() for title in (self._signature.title, earlier.title))
        return not ours or ours in (theirs, *_parts(theirs)) or theirs in _parts(ours)

    def _differing(self, theirs: bytes, counters: Names) -> str:
        ours = self._signature.facts
        names = differing(ours, theirs) - counting(ours, theirs, counters)
        known = [name for name in self._document.fact_names if name_of(name) in names]
        return "the field " + ", ".join(known) if known else "a fact"

    def _why_by_titles(self, earlier: Signature) -> str | None:
        if not self._differs_in_title(earlier):
            return None
        if self.lacks_subject(earlier):
            return "the earlier text lacks the subject of the title"
        if self.is_of_host(earlier) and self.is_named_otherwise(earlier):
            return "the titles differ in a name"
        return None

    def _why_by_texts(self, earlier: Signature) -> str | None:
        own = self.own(earlier)
        if own is None and self.is_of_host(earlier) and self.has_passage(earlier):
            return "each text has a passage that the other lacks"
        required = required_own(own.form, is_doubted=self._is_doubted_by_title(earlier)) if own else 0.0
        if own and own.share < required:
            return f"the earlier text has {own.share:.2f} of the text that is rare on its site, needed {required:.2f}"
        return None

    def is_of_host(self, earlier: Signature) -> bool:
        """Return whether both pages are of one host."""
        return host(self._document.url or "") == host(earlier.url or "") != ""

    def _differs_in_title(self, earlier: Signature) -> bool:
        """Return whether both have a title, and the titles differ."""
        title = self._signature.title
        return bool(title and earlier.title) and title_words(title) != title_words(earlier.title)

    def _is_doubted_by_title(self, earlier: Signature) -> bool:
        """Return whether both have a title, and the titles differ or a third page has this page's title."""
        title, alike = self._signature.title, self._alike(earlier)
        thirds = (other for at, other in enumerate(self._others.values()) if at not in alike)
        is_shared = bool(title and earlier.title) and any(third.title == title for third in thirds)
        return is_shared or self._differs_in_title(earlier)

    def _alike(self, earlier: Signature) -> list[int]:
        """Return the positions, among the other pages, of the earlier page and of its other records."""
        if self._compared is not earlier:
            place, self._compared = _place(earlier), earlier
            self._positions = [
                n
                for n, (at, other) in enumerate(self._others.items())
                if at == place or self._is_record(other, earlier)
            ]
        return self._positions

    def _is_record(self, other: Other, earlier: Signature) -> bool:
        """Return whether another page is a further record with the text of an earlier page, told apart by a fact."""
        if other.codes == earlier.sketch.codes:
            return True
        if not other.facts or other.facts == self._signature.facts:
            return False
        found = overlap(other.codes, earlier.sketch.codes)
        return other.title in (self._signature.title, earlier.title) and found.shared >= FAR * found.any

    @cached_property
    def words(self) -> frozenset[str]:
        return frozenset(self._document.tokens)

    def lacks_subject(self, earlier: Signature) -> bool:
        """Return whether the earlier text lacks most of the shingles around the words that only this title has."""
        subject = self.words & (set(tokenize(self._signature.title)) - set(tokenize(earlier.title)))
        bins = self._bins_of(subject)
        is_there = _codes(earlier.sketch.codes)[bins] == self._codes[bins]
        return len(bins) >= SUBJECT_SHINGLES and bool(is_there.mean() < SUBJECT)

    def is_named_otherwise(self, earlier: Signature) -> bool:
        """Return whether the titles are of one form and differ in a name, and this text contains neither name."""
        names = differing_words(title_words(self._signature.title), title_words(earlier.title))
        return names is not None and not any(self._has(tokenize(_joined(name))) for name in names)

    def _has(self, words: list[str]) -> bool:
        return bool(words) and self.words.issuperset(words)

    def own(self, earlier: Signature) -> Own | None:
        """Return the measures of this page's own text; None if too few other pages are known."""
        if len(self._others) - len(self._alike(earlier)) <= RARE:
            return None
        rare = self._rare(earlier)
        form = 1 - float(rare.sum() / max(int((self._codes > 0).sum()), 1))
        found = overlap(self._signature.sketch.codes, earlier.sketch.codes)
        rare_found = overlap((self._codes * rare).tobytes(), earlier.sketch.codes)
        ours, theirs = self._signature.sketch.shingles, earlier.sketch.shingles
        # As for containment (Broder et al. 1997, section 2): a share of the union, times the size of the union.
        rare_in_both = rare_found.shared / max(found.any + found.shared, 1) * (ours + theirs)
        return Own(rare_in_both / max(1.0, min((1 - form) * ours, theirs)), form)

    def _rare(self, earlier: Signature) -> npt.NDArray[np.bool_]:
        """Return the bins with a rare shingle of this page. The earlier page does not count as another page."""
        count = self._same.sum(axis=0) - self._same[self._alike(earlier)].sum(axis=0)
        rare: npt.NDArray[np.bool_] = (count <= RARE) & (self._codes > 0)
        return rare

    def has_passage(self, earlier: Signature) -> bool:
        """Return whether each text has a passage that the other lacks."""
        at, bins = self._samples
        is_there = _codes(earlier.sketch.codes)[bins] == self._codes[bins]
        passage = np.cumsum(is_there)  # the number of the passage: each begins with a shared shingle
        lacking = np.bincount(passage[~is_there], minlength=1)
        ends = np.concatenate([[-WIDTH], at[is_there], [len(self._document.hashes)]])
        longest = int((np.diff(ends) - WIDTH)[: len(lacking)][lacking >= PASSAGE_SHINGLES].max(initial=0))
        shared = resemblance(self._signature.sketch, earlier.sketch)
        ours, theirs = self._signature.sketch.shingles, earlier.sketch.shingles
        theirs_alone = theirs - shared * (ours + theirs) / (1 + shared)
        return longest >= max(PASSAGE, PASSAGE_SHARE * self._signature.sketch.tokens) and theirs_alone >= PASSAGE

    @cached_property
    def _samples(self) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.intp]]:
        """Return the positions of the sampled shingles in the text, in order, and their bins."""
        runs = shingle_hashes(self._document.hashes[:, 0], WIDTH)
        bins = places(runs, BINS)
        at = (minima(self._document.shingles, BINS)[bins] == runs).nonzero()[0]
        return at, bins[at]

    @cached_property
    def _codes(self) -> Codes:
        return _codes(self._signature.sketch.codes)

    @cached_property
    def _same(self) -> npt.NDArray[np.bool_]:
        """For each other page, the bins in which it has the same code as this page."""
        rows = np.frombuffer(b"".join(other.codes for other in self._others.values()), np.uint8).reshape(-1, BINS)
        same: npt.NDArray[np.bool_] = (rows == self._codes) & (self._codes > 0)
        return same

    def _bins_of(self, words: frozenset[str]) -> npt.NDArray[np.intp]:
        """Return the bins of the sampled shingles that contain one of these words."""
        at, bins = self._samples
        of = np.array([place for place, word in enumerate(self._document.tokens) if word in words])
        return np.unique(bins[np.isin(at, of[:, None] - np.arange(WIDTH))])


class Siblings:
    """Remembers the last pages of each host that this process held, after those that the store had before."""

    def __init__(self, stored: Callable[[str], Iterable[Signature]]) -> None:
        """`stored` returns pages of a host from the store, oldest first."""
        self._stored = stored
        self._hosts: OrderedDict[str, dict[Place, Other]] = OrderedDict()

    def learn(self, signature: Signature) -> None:
        """Remember a page, unless it has no host."""
        url = signature.url or ""
        if not (name := host(url)):
            return
        pages = self._pages(name)
        pages[_place(signature)] = Other.of(signature)
        if len(pages) > PAGES:
            del pages[next(iter(pages))]  # an OrderedDict would take ten times as long to copy
        self._hosts.move_to_end(name)

    def _pages(self, name: str) -> dict[Place, Other]:
        """Return the remembered pages of a host. A host that is met for the first time has those of the store."""
        if name not in self._hosts:
            self._hosts[name] = {_place(each): Other.of(each) for each in self._stored(name)}
            if len(self._hosts) > HOSTS:
                self._hosts.popitem(last=False)
        return self._hosts[name]

    def page(self, document: Document, signature: Signature, proposed: Iterable[Signature]) -> Page:
        """Return the page of a document, for comparison with its candidates."""
        name = host(document.url or "")
        others = dict(self._pages(name) if name else {})
        for each in proposed:
            if each.url:
                others.setdefault(_place(each), Other.of(each))
        others.pop(_place(signature), None)
        return Page(document, signature, others)


def _place(signature: Signature) -> Place:
    return signature.url or "", signature.title


def may_hide_form(copy: Signature, original: Signature, resemblance: float) -> bool:
    """Return whether to remember a copy among the known pages. After a wrong verdict, it shows which text is form.

    A copy that is near its original is not remembered. Neither is a copy if both pages have titles and are of one host,
    since the titles are then enough to recognise siblings.
    """
    have_titles = bool(copy.title and original.title)
    return resemblance < FAR and not (have_titles and host(copy.url or "") == host(original.url or ""))


def required_own(form: float, *, is_doubted: bool) -> float:
    """Return the share of a page's rare shingles that an earlier page must have, given the page's share of form."""
    return OWN + (OWN_OF_FORM - OWN) * min(1.0, form / FORM) * is_doubted


def same_title(first: str, second: str) -> bool:
    """Return whether two titles are equal apart from the names of their sites."""
    first, second = (squeeze(title).casefold() for title in (first, second))
    return first in second or second in first or _longest_part(first) == _longest_part(second)


def _longest_part(title: str) -> str:
    return max(_parts(title), key=len)


def _parts(title: str) -> list[str]:
    return _SEPARATOR.split(title)


def title_words(title: str) -> list[str]:
    """Return the words of a title in lower case. Each Chinese or Japanese character, and each operator, is a word."""
    return _title_word().findall(unicodedata.normalize("NFKC", title).lower())


@cache
def _title_word() -> re.Pattern[str]:
    return re.compile(rf"{_CHARACTER}|(?:(?!{_CHARACTER})[\w{marks()}])+|[-+*/%=<>!&|^~]+")


def differing_words(a: list[str], b: list[str]) -> tuple[list[str], list[str]] | None:
    """Return the differing words of two titles of one form; None if they are not of one form."""
    start = _equal(zip(a, b, strict=False))
    end = _equal(zip(reversed(a[start:]), reversed(b[start:]), strict=False))
    names = a[start : len(a) - end], b[start : len(b) - end]
    is_form = start + end > 0 and all(0 < len(name) <= NAME for name in names)
    return names if is_form else None


def _joined(name: list[str]) -> str:
    """Return the words of a title as text, without blanks between Chinese or Japanese characters."""
    return "".join(word if re.match(_CHARACTER, word) else f" {word} " for word in name)


def _equal(pairs: Iterable[tuple[str, str]]) -> int:
    """Return the number of equal pairs at the beginning."""
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))


def _codes(codes: bytes) -> Codes:
    return np.frombuffer(codes, np.uint8)
