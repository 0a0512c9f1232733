"""Recognise siblings, pages of one form with different subjects, which are not copies. No I/O.

Reference pages of a library, products of a shop and ads of an employer share most of their words. What is on other
pages too is *form*, and no evidence of a copy. The rest is a page's *own* text. Two documents are siblings, and both
are kept, if one of these conditions holds. Without a URL, only the first condition is checked. If strong facts are
equal, only facts are compared.

- Strong facts. The items differ in a number that is the same on all sites, such as an ISBN.
- Facts. Both items are of one host, and differ in a fact, such as a date, place or price.
- Thin text. Both pages are of one host, the titles or the texts differ, and the later text says little of its page.
- Subject. The subjects of the titles differ, and the earlier text lacks what the later text says of its subject. Or
  both pages are of one host, and the text names neither of the two subjects.
- Own text. The own texts resemble each other too little. Different subjects on one host ask for `NEARLY_ALL`, equal
  subjects on two hosts for `LITTLE`; on one host, for nothing beyond the rule. In all other cases, the requirement is
  between the two: the more of the page is form, the more is required.
- Passages. Each text has passages that the other lacks, which are a considerable part of it. On one host, a passage of
  some words is enough if the titles are equal or missing. A long passage in the later text alone is enough too.

A shingle is form if more than one page has it, of those that this process knows: the last pages of the later page's
host, of which the store gives a sample at first, and all candidates. The earlier page does not count, nor do pages with
its text: they are records that differ in a fact. Neither does a page with other facts that has most of the earlier text
under a title of one of the two. Copies are known pages too if their title is another than their original's, or their
text differs much.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping
from functools import cached_property
from typing import NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from ..document import Document
from ..facts import Names, agree, are_strongly_equal, counting, differing, name_of
from ..fingerprints.hashes import shingle_hashes
from ..fingerprints.minhash import minima, places
from ..fingerprints.sketch import BINS, WIDTH, Codes, Sketch, overlap, resemblance
from ..signature import Signature
from ..text.tokens import tokenize
from ..text.urls import host
from ..verdict import SAME_CONTENT
from .titles import Words, names, same_title, subject, title_words

HOSTS = 256  # remembered hosts; those seen longest ago are forgotten
PAGES = 128  # remembered pages of a host, the last ones
RARE = 1  # the maximum number of other pages that have a shingle of a page's own text
LITTLE = 0.45  # the required resemblance of own texts about one subject; the share of a subject that is most of it
NEARLY_ALL = 0.9  # the required resemblance of own texts about different subjects of one host
FAR = 0.7  # the resemblance below which a copy is not near
SHINGLES = 8  # sampled shingles in a row that the earlier text lacks make a passage
PASSAGE = 20  # words of a passage that counts on any host
PART = 0.16  # the share of a text in passages, from which it is another text
SOME = 0.03  # the same share on one host, if the titles are equal or missing; or if the passages have `MUCH` words
MUCH = 400  # words of passages that no copy has

Place: TypeAlias = tuple[str, str]
"""The URL and the title of a page. A list page has items with different titles."""


class Own(NamedTuple):
    """Measures of the own text of two pages."""

    resemblance: float
    form: float
    """The share of the later page's shingles that are form."""


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
        self._owns: dict[Signature, Own] = {}

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
        is_equal = self._signature.sketch == earlier.sketch
        if ours and is_equal and self.is_of_host(earlier):
            # Equal facts and equal text are one record, even if the text is a form.
            return "the titles differ" if self.differs_in_subject(earlier) else None
        if self._document.thin and self.is_of_host(earlier) and not (is_equal and self._has_title_of(earlier)):
            return "the text is thin, and the titles or the texts differ"
        return self._why_by_subject(earlier) or self._why_by_own(earlier) or self._why_by_passages(earlier)

    def _differing(self, theirs: bytes, counters: Names) -> str:
        ours = self._signature.facts
        names = differing(ours, theirs) - counting(ours, theirs, counters)
        known = [name for name in self._document.fact_names if name_of(name) in names]
        return "the field " + ", ".join(known) if known else "a fact"

    def _why_by_subject(self, earlier: Signature) -> str | None:
        if not self.differs_in_subject(earlier):
            return None
        if not self.is_of_host(earlier) and self.own(earlier).resemblance >= SAME_CONTENT:
            return None
        if self.lacks_subject(earlier):
            return "the earlier text lacks the subject of the title"
        if self.is_of_host(earlier) and self.is_named_otherwise(earlier):
            return "the titles differ in a name"
        return None

    def _why_by_own(self, earlier: Signature) -> str | None:
        own = self.own(earlier)
        required = self.required_own(earlier, own.form)
        if own.resemblance < required:
            return f"the texts without form have a resemblance of {own.resemblance:.2f}, needed {required:.2f}"
        return None

    def required_own(self, earlier: Signature, form: float) -> float:
        """Return the required resemblance of the own texts, given the share of form."""
        differs, is_one = self.differs_in_subject(earlier), self.is_of_host(earlier)
        if differs is False:
            return 0.0 if is_one else LITTLE
        if differs and is_one:
            return NEARLY_ALL
        return LITTLE + (NEARLY_ALL - LITTLE) * form * (differs or is_one)

    def _why_by_passages(self, earlier: Signature) -> str | None:
        passages, words = self.passages(earlier), max(1, len(self._document.tokens))
        lost = 1 - _share(self._signature.sketch, earlier.sketch)
        large, all_ = int(passages[passages >= PASSAGE].sum()), int(passages.sum())
        if large > max(MUCH, SOME * words):
            return f"the text has {large} words that the earlier text lacks"
        is_doubted = self.is_of_host(earlier) and self._titles_say_nothing(earlier)
        if min(large / words, lost) > PART or (is_doubted and min(all_ / words, lost) > SOME):
            return "each text has passages that the other lacks"
        return None

    def _titles_say_nothing(self, earlier: Signature) -> bool:
        """Return whether the titles are equal, or one is missing though enough pages are known to tell what is form."""
        if self._signature.title and earlier.title:
            return self._has_title_of(earlier)
        return len(self._others) - len(self._alike(earlier)) > RARE

    def is_of_host(self, earlier: Signature) -> bool:
        """Return whether both pages are of one host."""
        return host(self._document.url or "") == host(earlier.url or "") != ""

    def differs_in_subject(self, earlier: Signature) -> bool | None:
        """Return whether the titles have different subjects; None if one has none, beside what its host's titles share.

        On one host, it is unknown too if a third known page has this page's title.
        """
        title, other = self._signature.title, earlier.title
        if not (title and other):
            return None
        is_one = self.is_of_host(earlier)
        if is_one and self._is_title_of_third(earlier):
            return None
        ours = subject(title_words(title), self._titles)
        theirs = subject(title_words(other), self._titles if is_one else ())
        if ours == theirs:
            return False if ours else None
        return is_one or not same_title(title, other)

    @cached_property
    def _titles(self) -> set[Words]:
        """The titles of the known pages of the host."""
        name = host(self._document.url or "")
        titles = (title for url, title in self._others if title and host(url) == name)
        return set(map(title_words, titles))

    def _has_title_of(self, earlier: Signature) -> bool:
        """Return whether the titles are equal, or one page has none."""
        title = self._signature.title
        return not (title and earlier.title) or title_words(title) == title_words(earlier.title)

    def _is_title_of_third(self, earlier: Signature) -> bool:
        title, alike = self._signature.title, self._alike(earlier)
        return any(other.title == title for at, other in enumerate(self._others.values()) if at not in alike)

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
        """Return whether the earlier text lacks most of the shingles around the words that only this title has.

        On one host, each word counts as much as any other, however often it is in the text.
        """
        if self._signature.sketch == earlier.sketch:
            return False
        words = self.words & (set(tokenize(self._signature.title)) - set(tokenize(earlier.title)))
        is_there = _codes(earlier.sketch.codes) == self._codes
        found = [is_there[self._bins_of(word)] for word in words]
        if self.is_of_host(earlier):
            shares = [float(each.mean()) for each in found if len(each)]
            # In a short text, a word without a sampled shingle is the first or the last one.
            is_known = bool(shares) or (bool(words) and self._signature.sketch.shingles <= BINS)
            return is_known and sum(shares) <= LITTLE * len(shares)
        found.append(np.zeros(0, bool))
        shingles = np.concatenate(found)
        return len(shingles) > 1 and bool(shingles.mean() < LITTLE)

    def is_named_otherwise(self, earlier: Signature) -> bool:
        """Return whether the titles differ in a name, and this text contains neither name."""
        found = names(title_words(self._signature.title), title_words(earlier.title))
        return found is not None and not any(name and self.words.issuperset(name) for name in found)

    def own(self, earlier: Signature) -> Own:
        """Return the measures of the own texts of both pages."""
        if earlier not in self._owns:
            self._owns[earlier] = self._measured(earlier)
        return self._owns[earlier]

    def _measured(self, earlier: Signature) -> Own:
        alike = self._alike(earlier)
        theirs = _codes(earlier.sketch.codes)
        ours_own = self._own(self._codes, self._same, alike)
        theirs_own = self._own(theirs, (self._rows == theirs) & (theirs > 0), alike)
        found = overlap(ours_own.tobytes(), theirs_own.tobytes())
        form = 1 - int(np.count_nonzero(ours_own)) / max(1, int(np.count_nonzero(self._codes)))
        is_equal = self._signature.sketch == earlier.sketch
        return Own(found.shared / found.any if found.any else float(is_equal), form)

    def _own(self, codes: Codes, same: npt.NDArray[np.bool_], alike: list[int]) -> Codes:
        """Return the codes that are no form, and 0 in all other bins. The earlier page does not count as another."""
        count = same.sum(axis=0) - same[alike].sum(axis=0)
        own: Codes = codes * (count <= RARE)
        return own

    def passages(self, earlier: Signature) -> npt.NDArray[np.intp]:
        """Return the lengths, in words, of the passages of this text that the earlier text lacks."""
        at, bins = self._samples
        is_there = _codes(earlier.sketch.codes)[bins] == self._codes[bins]
        passage = np.cumsum(is_there)  # the number of the passage: each begins with a shared shingle
        lacking = np.bincount(passage[~is_there], minlength=1)
        ends = np.concatenate([[-WIDTH], at[is_there], [len(self._document.hashes)]])
        lengths: npt.NDArray[np.intp] = (np.diff(ends) - WIDTH)[: len(lacking)][lacking >= SHINGLES]
        return lengths

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
    def _rows(self) -> Codes:
        """The codes of the other pages, one row for each."""
        return np.frombuffer(b"".join(other.codes for other in self._others.values()), np.uint8).reshape(-1, BINS)

    @cached_property
    def _same(self) -> npt.NDArray[np.bool_]:
        """For each other page, the bins in which it has the same code as this page."""
        same: npt.NDArray[np.bool_] = (self._rows == self._codes) & (self._codes > 0)
        return same

    def _bins_of(self, word: str) -> npt.NDArray[np.intp]:
        """Return the bins of the sampled shingles that contain a word."""
        at, bins = self._samples
        of = np.array([place for place, each in enumerate(self._document.tokens) if each == word])
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

    A near copy is remembered only under a title of its own: other URLs of one page do not make a form of it.
    """
    if not (copy.title and original.title):
        return resemblance < NEARLY_ALL
    return resemblance < FAR or not same_title(copy.title, original.title)


def _share(a: Sketch, b: Sketch) -> float:
    """Return the share of the shingles of `b` that `a` has: its containment (Broder et al. 1997, section 2)."""
    shared = resemblance(a, b)
    return shared * (a.shingles + b.shingles) / (1 + shared) / max(1, b.shingles)


def _codes(codes: bytes) -> Codes:
    return np.frombuffer(codes, np.uint8)
