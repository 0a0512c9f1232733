"""Recognise siblings, pages of one form with different subjects, which are not copies. No I/O.

Reference pages of a library, products of a shop and ads of an employer share most of their words. What a third page
has too is *form*, and no evidence of a copy. The rest is a page's *own* text. The *later* page is judged, the *earlier*
one is held. `Pair.why_siblings` looks for a reason to keep both: facts differ, the text is thin (`Document.thin`), the
earlier text lacks the subject of the later title, the own texts resemble each other too little, or each text has
figures or passages that the other lacks. docs/decisions.md has all reasons.

Third pages are the other candidates, and the last pages of the later page's host: at first, a sample from the store.
Pages with the text of the earlier page do not count: they are records that differ in a fact. Copies count only if they
may be siblings after all (`Siblings.learn_copy`).
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cached_property
from itertools import compress, filterfalse
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from ..document import Document
from ..facts import Kind, Names, agree, are_strongly_equal, counting, differing, name_of, names_in
from ..fingerprints.hashes import minima, places, shingle_hashes
from ..fingerprints.record import BINS, WIDTH, Overlap, common_shingles, missing_figures, overlap, resemblance
from ..signature import Signature
from ..text.tokens import (
    NAME,
    Words,
    differ_in_number,
    differ_in_one_place,
    names,
    same_title,
    subject,
    title_parts,
    title_text,
    title_words,
    tokenize,
)
from ..text.urls import home

PAGES = 128  # remembered pages of a host, the last ones
MOST = 256 * PAGES  # remembered pages of all hosts; the hosts seen longest ago are forgotten
LITTLE = 0.4  # the required resemblance of own texts about one subject; also the share of a subject that is too little
NEARLY_ALL = 0.9  # the required resemblance of own texts about different subjects of one host
SHINGLES = 8  # sampled shingles in a row that the earlier text lacks make a passage
PASSAGE = 20  # words of a passage that counts on any host
PART = 0.16  # if passages, or the new words of a URL, make up more than this share of a text, it is another text
SOME = 0.03  # the same share, if the titles of one host say nothing, or if the passages have `MUCH` words
MUCH = 400  # words of new passages that no copy has
PARTICLE = 3  # the maximum letters of "the", "les" or "из", in scripts whose words are longer: those before U+0590
LACKS_SUBJECT = "the earlier text lacks the subject of the title"

PageKey: TypeAlias = tuple[str, str]
"""The URL and the title of a page. The items of a list page have one URL, but different titles."""


class JudgedPage:
    """The later page. What is needed of it for the comparison with each earlier page is computed once."""

    def __init__(self, document: Document, signature: Signature, others: Mapping[PageKey, bytes]) -> None:
        """`others` has the codes of the sketches of other known pages, which show what is form."""
        self.document = document
        self.signature = signature
        self.others = others
        self.joined = b"".join(others.values())
        self._bins: dict[tuple[str, int], npt.NDArray[np.intp]] = {}

    @cached_property
    def title(self) -> Words:
        return title_words(self.signature.title)

    @cached_property
    def subject(self) -> Words:
        return subject(self.title, self.host_titles)

    @cached_property
    def site_name(self) -> set[str]:
        """The tokens of the title outside its subject; all tokens if all known titles of its host are equal."""
        of_subject = () if self.host_titles == {self.title} else self.subject
        return set(tokenize(title_text([word for word in self.title if word not in of_subject])))

    @cached_property
    def host_titles(self) -> set[Words]:
        return set(self.titles) - {()}

    @cached_property
    def titles(self) -> list[Words]:
        """The title of each of the `others`; () for a page of another host."""
        name = self.signature.home
        return [title_words(title) if home(url) == name else () for url, title in self.others]

    @cached_property
    def samples(self) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.intp]]:
        """The positions in the text, ascending, of the shingles that the sketch samples, and the bin of each."""
        runs = shingle_hashes(self.document.hashes[:, 0], WIDTH)
        bins = places(runs, BINS)
        at = (minima(self.document.shingles, BINS)[bins] == runs).nonzero()[0]
        return at, bins[at]

    @cached_property
    def body(self) -> int:
        """The number of words of the headline above the text: a first line of words of the title; 0 without one."""
        heading = tokenize(self.document.text.lstrip().partition("\n")[0])
        return len(heading) if set(heading) <= set(tokenize(self.signature.title)) else 0

    def bins_of(self, word: str, start: int) -> npt.NDArray[np.intp]:
        """Return the bins of the sampled shingles that contain `word` at or after the position `start` of the text."""
        if (word, start) not in self._bins:
            at, bins = self.samples
            words = enumerate(self.document.tokens[start:], start)
            of = np.array([place for place, each in words if each == word], np.intp)
            self._bins[word, start] = np.unique(bins[np.isin(at, of[:, None] - np.arange(WIDTH))])
        return self._bins[word, start]


class Pair:
    """The later page beside an earlier page that it may repeat."""

    def __init__(self, page: JudgedPage, earlier: Signature) -> None:
        self._page = page
        self._later = page.signature
        self._earlier = earlier
        self.is_of_one_host = page.signature.home == earlier.home != ""

    def why_siblings(
        self, *, is_own: bool, has_its_url: bool, across_hosts: bool, is_beside: bool, needs_all: bool, counters: Names
    ) -> str | None:
        """Return the reason why the two pages are siblings; None if they are not.

        `is_own`: the later page's URL returned the earlier page before. Then only facts, titles and new words count.
        `has_its_url`: both pages have one URL, but may be two items. `is_beside`: one list page gave both in this run.
        `across_hosts`: facts and titles count even if the hosts differ. `needs_all`: the earlier page must not have
        facts that the later one lacks. `counters`: hashed names of facts that do not count.
        """
        ours, theirs = self._later.facts, self._earlier.facts
        is_record = are_strongly_equal(ours, theirs)
        if is_record is False:
            return "the items differ in a number that is the same on all sites"
        document = self._page.document
        if not self.is_of_one_host:  # each page links to its own host
            counters = names_in(ours, (Kind.LINK,)).union(counters)
        counts = self.is_of_one_host or across_hosts
        if (counts or is_beside) and not agree(ours, theirs, counters, needs_all=needs_all):
            return "the items differ in " + self._differing(counters)
        if counts and (has_its_url or is_record) and self._has_other_title(with_figures=not is_own):
            return "the titles differ"
        if is_beside and has_its_url and not self._is_equal:
            return "one page has both"
        if has_its_url and not self._is_equal and self._lacking[0] > PART and self._new > PART:
            return self._longer(self._new)
        if is_own or not document.url or not self._earlier.url:
            return None
        if is_record:  # a shop's number may be that of another record in another shop
            is_other = not self.is_of_one_host and self.differ_in_subject and self._lacks_subject()
            return LACKS_SUBJECT if is_other else None
        if ours and self._is_equal and self.is_of_one_host:
            # Equal facts and equal text are one record, even if all of the text is form.
            return "the titles differ" if self._has_other_title(with_figures=True) else None
        return next(self._reasons(), None)

    def _differing(self, counters: Names) -> str:
        ours, theirs = self._later.facts, self._earlier.facts
        differ = differing(ours, theirs) - counting(ours, theirs, counters)
        known = [name for name in self._page.document.fact_names if name_of(name) in differ]
        return "the field " + ", ".join(known) if known else "a fact"

    def _reasons(self) -> Iterator[str]:
        """Yield the reasons other than facts, such as different subjects or passages."""
        if self._page.document.scripted:
            yield "scripts make the text of the page"
        if self._page.document.thin and not self._is_same_page:
            yield "the text is thin, and the titles or the texts differ"
        if self.differ_in_subject and self._lacks_subject():
            yield LACKS_SUBJECT
        if self.differ_in_subject and self._differ_in_name:
            yield "the titles differ in a name"
        may_be_numbered = self.differ_in_subject and not (self.is_of_one_host or self._is_equal)
        if may_be_numbered and differ_in_number(self._later.title, self._earlier.title):
            yield "the titles differ in a number"
        required = self._required_own()
        if self.own_resemblance < required:
            yield f"the texts without form have a resemblance of {self.own_resemblance:.2f}, needed {required:.2f}"
        if not self._is_equal:
            if self._has_other_figures:
                yield "each text has a figure that the other lacks"
            if self._has_other_value:
                yield "the texts seem to differ in a value: the words after a label, or a date"
            yield from self._passages_apart()

    @property
    def _is_same_page(self) -> bool:
        """False if a thin page differs from the earlier page: in its title or, on one host, in its text."""
        ours, theirs = self._later.title, self._earlier.title
        if self.is_of_one_host:
            return self._is_equal and (not (ours and theirs) or self._has_same_title)
        shares_part = not set(title_parts(ours)).isdisjoint(title_parts(theirs))
        return not self.differ_in_subject or (self._is_equal and shares_part)

    def _required_own(self) -> float:
        differ, is_one = self.differ_in_subject, self.is_of_one_host
        if is_one and differ is not None:
            return NEARLY_ALL if differ else 0.0
        if not (differ or is_one):
            return LITTLE
        return LITTLE + (NEARLY_ALL - LITTLE) * self.form

    def _passages_apart(self) -> Iterator[str]:
        added, lost = self._lacking
        words = max(1, self._later.sketch.tokens)
        is_doubted = min(added, lost) > SOME and self.is_of_one_host and self._titles_say_nothing
        if added <= max(SOME, MUCH / words) and min(added, lost) <= PART and not is_doubted:  # most near copies
            return
        if self._grown > max(MUCH / words, SOME):
            yield self._longer(self._grown)
        all_ = min(self._passages.sum() / words, added)
        if min(self._grown, lost) > PART or (is_doubted and min(all_, lost) > SOME):
            yield "each text has passages that the other lacks"

    @cached_property
    def _is_there(self) -> npt.NDArray[np.bool_]:
        """For each bin of the sketches, whether the earlier text has the sampled shingle of the later text."""
        later, earlier = (np.frombuffer(each.head.codes, np.uint8) for each in (self._later, self._earlier))
        return np.array(later == earlier)

    @cached_property
    def _lacking(self) -> tuple[float, float]:
        """The share of the later text's shingles that the earlier text lacks, then the same with the texts exchanged.

        Each is 1 - containment (Broder et al. 1997, section 2).
        """
        earlier, later = self._earlier.sketch, self._later.sketch
        common = common_shingles(earlier, later, resemblance(earlier, later))
        return 1 - common / max(1, later.shingles), 1 - common / max(1, earlier.shingles)

    @cached_property
    def _grown(self) -> float:
        """The share of the later text's words that are in `_passages` of `PASSAGE` words or more."""
        if self._lacking[0] <= SOME:
            return 0.0
        large = self._passages[self._passages >= PASSAGE].sum() / max(1, self._later.sketch.tokens)
        return min(float(large), self._lacking[0])

    @property
    def _new(self) -> float:
        """The estimated share of new words in the later text, in pieces of any length; at least `_grown`."""
        is_there = self._is_there[self._page.samples[1]]
        # A piece of n new words has n + WIDTH - 1 new shingles, but only n at the beginning or end of the text.
        pieces = int(np.count_nonzero(is_there[:-1] & ~is_there[1:])) - (not is_there[-1:].all())
        return max(self._grown, self._lacking[0] - (WIDTH - 1) * max(0, pieces) / self._later.sketch.shingles)

    def _longer(self, share: float) -> str:
        return f"the text has {share * self._later.sketch.tokens:.0f} words that the earlier text lacks"

    @cached_property
    def _is_equal(self) -> bool:
        later, earlier = self._later, self._earlier
        return later.sketch == earlier.sketch and later.head.digest == earlier.head.digest

    @cached_property
    def _has_same_title(self) -> bool:
        return bool(self._page.title) and self._page.title == title_words(self._earlier.title)

    def _has_other_title(self, *, with_figures: bool) -> bool:
        """Return whether two titles have different subjects. Without `with_figures`, figures do not count."""
        page, theirs = self._page, title_words(self._earlier.title)
        if page.title == theirs or not (page.title and theirs):
            return False
        if not (self.is_of_one_host or self.differ_in_subject):  # only the names of their sites differ
            return False
        ours, theirs = page.subject, subject(theirs, page.host_titles | {page.title})
        if with_figures:
            return ours != theirs
        return [*filterfalse(str.isdigit, ours)] != [*filterfalse(str.isdigit, theirs)]

    @property
    def _differ_in_name(self) -> bool:
        """True if each title has a name that the other lacks, and the later text has both names.

        On one host, also True if the titles share a word, and the text has neither name. An equal text may have one if
        the titles differ in one place. False for equal texts of two hosts, and if a title has all parts of the other.
        """
        ours, theirs = self._page.title, title_words(self._earlier.title)
        first, second = (set(title_parts(each.title)) for each in (self._later, self._earlier))
        found = names(ours, theirs, each=self._is_equal)
        if not found or first <= second or second <= first:
            return False
        words = set(self._page.document.tokens)
        said = [bool(name) and words.issuperset(name) for name in found]
        if not self.is_of_one_host:  # news sites add "Update", "photos" and the like
            return all(said) and not self._is_equal
        if self._is_equal and bool(found[0]) != bool(found[1]):
            return False
        if all(said) or set(ours).isdisjoint(theirs):
            return all(said)
        return not any(said) or (self._is_equal and differ_in_one_place(ours, theirs))

    @property
    def _has_other_figures(self) -> bool:
        """True on one host if each text has a figure that the other lacks, and the texts seem to share a form.

        They seem to if the titles say nothing, or if both texts are equally long: copies with other dates rarely are.
        """
        later, earlier = self._later.sketch, self._earlier.sketch
        is_form = self._titles_say_nothing or later.tokens == earlier.tokens
        return self.is_of_one_host and is_form and missing_figures(later, earlier) > 0

    @property
    def _has_other_value(self) -> bool:
        """True on one host if the titles say nothing, and the earlier text seems to have another value somewhere.

        That is: it has the last sampled shingle before a value of the later text, but no sampled shingle with the
        value. And each text has shingles that the other lacks.
        """
        added, lost = self._lacking
        if not (self.is_of_one_host and self._titles_say_nothing and 2 * lost > added > 0):
            return False
        at, bins = self._page.samples
        is_there = np.append(True, self._is_there[bins])
        start, end = (np.searchsorted(at, self._page.document.values + shift) for shift in (1 - WIDTH, 1))
        known = np.cumsum(is_there)
        return bool(np.any(is_there[start] & (start < end) & (known[start] == known[end])))

    @property
    def _titles_say_nothing(self) -> bool:
        """True if the titles are equal; if one is missing, true if third pages show what is form."""
        has_titles = bool(self._later.title and self._earlier.title)
        return self._has_same_title if has_titles else any(self._counts)

    @cached_property
    def differ_in_subject(self) -> bool | None:
        """True if the titles have different subjects, False if they have one subject; None if that is unknown.

        It is unknown if a title is missing, or both subjects are. On one host, it is also unknown if a third page has
        the later title, and either no third page has the earlier title, or the subjects are equal.
        """
        page, other, is_one = self._page, self._earlier.title, self.is_of_one_host
        if not (page.title and other):
            return None
        title, known = title_words(other), [*compress(page.titles, self._counts)] if is_one else []
        theirs = subject(title, page.host_titles if is_one else ())
        are_equal = page.subject == theirs and not (is_one and self._differ_in_section and not self._is_equal)
        if page.title in known and (are_equal or title not in known):
            return None
        if are_equal:
            return False if theirs else None
        return is_one or self._has_own_end or not same_title(self._later.title, other)

    @property
    def _differ_in_section(self) -> bool:
        """True if neither title contains the other, as with "Boats: rigs: length" and "Boats: length"."""
        ours, theirs = (f" {' '.join(title)} " for title in (self._page.title, title_words(self._earlier.title)))
        return not (ours in theirs or theirs in ours)

    @property
    def _has_own_end(self) -> bool:
        """True if each title ends in a part that the other lacks, and the later title's end is not the site's name."""
        ours, theirs = (title_parts(each.title) for each in (self._later, self._earlier))
        is_known = len(self._page.host_titles - {self._page.title}) > 1
        if not (is_known and min(len(ours), len(theirs)) > 1) or ours[-1] in theirs or theirs[-1] in ours:
            return False
        before = self._page.title[: len(self._page.title) - len(title_words(ours[-1]))]
        return " ".join(["", *self._page.subject, ""]) not in " ".join(["", *before, ""])

    @cached_property
    def _counts(self) -> list[bool]:
        """For each of the other pages, whether it shows form: not the earlier page, and not pages with its text."""
        own, text = _key(self._earlier), self._earlier.head.codes
        return [place != own and codes != text for place, codes in self._page.others.items()]

    def _lacks_subject(self) -> bool:
        """Return whether the earlier text lacks most of the shingles around the words that only the later title has.

        On one host, each word counts the same, however often the text has it. It is enough to lack the longer words, if
        all stand below the headline too. On two hosts, each shingle counts the same, but not those of the site's name,
        nor those of a headline above the text with over `NAME` of the words: each site writes its own headline. If no
        shingle around words of the text is sampled, return True; for a long text of another host, False.
        """
        if self._is_equal:
            return False
        page = self._page
        words = set(tokenize(self._later.title)) - set(tokenize(self._earlier.title))
        is_name = len(words.intersection(page.document.tokens[: page.body])) <= NAME
        start = 0 if self.is_of_one_host or is_name else page.body
        if not self.is_of_one_host:
            words -= {word for word in page.site_name if page.document.tokens.count(word) == 1}
        words &= set(page.document.tokens[start:])
        found = {word: bins for word in words if len(bins := self._is_there[page.bins_of(word, start)])}
        if not found:
            return bool(words) and (self.is_of_one_host or self._later.sketch.shingles <= BINS)
        if not self.is_of_one_host:
            return float(np.concatenate([*found.values()]).mean()) <= LITTLE
        longer = [word for word in found if len(word) > PARTICLE or not word.isalpha() or word > "\u0590"]
        below = [found[word] for word in longer] if set(longer) <= set(page.document.tokens[page.body :]) else []
        return any(of and np.mean([bins.mean() for bins in of]) <= LITTLE for of in ([*found.values()], below))

    @cached_property
    def own_resemblance(self) -> float:
        """The resemblance of own texts. If all of both is form, 1.0 for equal texts of one subject, else 0.0.

        With fewer than `SHINGLES` own shingles, it is at most the resemblance of the whole texts: so few say little.
        """
        if not self._own.any:
            is_other = self.differ_in_subject and set(self._page.subject) - set(title_words(self._earlier.title))
            return float(self._is_equal and not is_other)
        own = self._own.shared / self._own.any
        return min(own, resemblance(self._earlier.sketch, self._later.sketch)) if self._own.any < SHINGLES else own

    @property
    def form(self) -> float:
        """The share of the later page's shingles that are form."""
        return 1 - self._own.first / max(1, BINS - self._later.head.codes.count(0))

    @cached_property
    def _own(self) -> Overlap:
        """The overlap of the own texts of the later and the earlier page."""
        page, own, text = self._page, _key(self._earlier), self._earlier.head.codes
        has_changed = page.others.get(own, text) != text
        others = [codes for place, codes in page.others.items() if place != own] if has_changed else [page.joined]
        return overlap(self._later.head.codes, text, b"".join(others))

    @cached_property
    def _passages(self) -> npt.NDArray[np.intp]:
        """The lengths, in words, of the passages of the later text that the earlier text lacks."""
        at, bins = self._page.samples
        is_there = self._is_there[bins]
        passage = np.cumsum(is_there)  # the number of the passage: each begins with a shared shingle
        lacking = np.bincount(passage[~is_there], minlength=1)
        ends = np.concatenate([[-WIDTH], at[is_there], [len(self._page.document.hashes)]])
        lengths: npt.NDArray[np.intp] = (np.diff(ends) - WIDTH)[: len(lacking)][lacking >= SHINGLES]
        return lengths


class Siblings:
    """Remembers the last pages of each host: a sample from the store, then those that this process has held."""

    def __init__(self, stored: Callable[[str], Iterable[Signature]]) -> None:
        """`stored` returns pages of a host from the store, oldest first."""
        self._stored = stored
        self._hosts: OrderedDict[str, dict[PageKey, bytes]] = OrderedDict()
        self._complete: set[str] = set()  # hosts whose sample was read from the store, when a page had candidates
        self._count = 0  # the number of remembered pages

    def learn(self, signature: Signature) -> None:
        """Remember a page, unless it has no host."""
        if not (name := signature.home):
            return
        pages = self._hosts.setdefault(name, {})
        known = len(pages)
        pages[_key(signature)] = signature.head.codes
        if len(pages) > PAGES:
            del pages[next(iter(pages))]  # an OrderedDict would take ten times as long to copy
        self._keep(name, len(pages) - known)

    def _keep(self, name: str, more: int) -> None:
        """Count `more` pages of the host seen last. Above `MOST` pages in all, forget the hosts seen longest ago."""
        self._hosts.move_to_end(name)
        self._count += more
        while self._count > MOST:
            first, pages = self._hosts.popitem(last=False)
            self._count -= len(pages)
            self._complete.discard(first)

    def forget(self, signature: Signature) -> None:
        if self._hosts.get(signature.home, {}).pop(_key(signature), None):
            self._count -= 1

    def learn_copy(self, copy: Signature, original: Signature, resemblance: float) -> None:
        """Remember a copy that may be a sibling after all, so that it shows which text is form.

        It may be one if the titles differ, or the texts share little; without two titles, if it is no near copy.
        """
        has_titles = bool(copy.title and original.title)
        has_own_title = has_titles and not same_title(copy.title, original.title)
        if has_own_title or resemblance < (LITTLE if has_titles else NEARLY_ALL):
            self.learn(copy)

    def _pages(self, name: str) -> dict[PageKey, bytes]:
        """Return the remembered pages of a host and, before them, those that the store has."""
        if name not in self._complete:
            known = self._hosts.get(name, {})
            stored = {_key(each): each.sketch.codes for each in self._stored(name)} if len(known) < PAGES else {}
            self._hosts[name] = dict([*(stored | known).items()][-PAGES:])
            self._complete.add(name)
            self._keep(name, len(self._hosts[name]) - len(known))
        return self._hosts[name]

    def page(self, document: Document, signature: Signature, proposed: Iterable[Signature]) -> JudgedPage:
        """Return the page of a document, for comparison with its candidates."""
        others = {_key(each): each.sketch.codes for each in proposed if each.url}
        others |= self._pages(signature.home) if signature.home else {}
        others.pop(_key(signature), None)
        return JudgedPage(document, signature, others)


def _key(signature: Signature) -> PageKey:
    return signature.url or "", signature.title
