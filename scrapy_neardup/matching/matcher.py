"""Decide whether a document is a copy, and choose its original among the candidates. No Scrapy.

Detectors propose many candidates. Sketches are compared to measure each pair, and thresholds decide which are copies.
"""

from __future__ import annotations

import logging
from bisect import bisect_right
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from ..document import Document
from ..facts import agree, differing, name_of, names_in, strong, telling
from ..fingerprints.hashes import hamming, hash_bytes
from ..fingerprints.record import Sketch, containment, missing_figures, resemblance
from ..hosts import Finding, outcome_of
from ..settings import Config
from ..signature import Evidence, Signature
from ..text.tokens import title_words
from ..text.urls import canonical_url, domain, host, listing, site
from ..verdict import Match, page_kind
from .reviews import WHY_APART, Reviews
from .siblings import PART, JudgedPage, Pair, Siblings

if TYPE_CHECKING:
    from ..store import Store


LONG = 1000  # the number of tokens from which a text is long
FAMILY_DISCOUNT = 0.13  # if the original has copies, the required resemblance R is lower by this share of 1 - R
FIGURE_SHARE = 0.1  # the share of the figures that may differ
NEAR = 0.7  # the resemblance from which all figures may differ, if the texts have few figures
FEW_FIGURES = 0.08  # the maximum share of figures among the tokens of a text with few figures
LEAST = 0.3  # whole texts with less resemblance are not copies, even if all that differs is form


class Comparison(NamedTuple):
    """The measures of a pair of documents. All but the lengths are estimates."""

    resemblance: float
    containment: float
    length_ratio: float  # tokens of the longer text divided by those of the shorter; Peng et al., section 3.2, step 3
    tokens: int  # tokens of the shorter text
    figures: int  # figures of the document that has fewer of them; 0 if one has none
    missing_figures: float  # the number of `figures` that the other document lacks


def compare(a: Sketch, b: Sketch) -> Comparison:
    """Compare two documents. The resemblance is 0 if a text has no tokens."""
    shorter, longer = sorted((a.tokens, b.tokens))
    if not shorter:
        return Comparison(0.0, 0.0, float("inf") if longer else 1.0, 0, 0, 0.0)
    shared = resemblance(a, b)
    return Comparison(
        resemblance=shared,
        containment=containment(a, b, shared),
        length_ratio=longer / shorter,
        tokens=shorter,
        figures=min(a.figures, b.figures),
        missing_figures=missing_figures(a, b),
    )


@dataclass(frozen=True)
class Rule:
    """The thresholds that a copy has to meet.

    They depend on the length of the texts, since a few changed words matter more in a short text.
    """

    resemblance: float | Mapping[int, float]
    """The required resemblance of long texts; or required resemblances by minimum number of tokens, ascending."""
    length_ratio: float
    min_tokens: int
    short_text: str = "unique"
    allowance: float = 0.12
    """Added to the required resemblance for up to `LONG` tokens; beyond, `allowance` × `LONG` / tokens is added."""
    short_allowance: float = 8.0
    """`short_allowance` / tokens is added instead if it is more, as for short texts. Neither is added if `resemblance`
    is a mapping."""
    tokens_a_figure: float = 200.0
    """One more figure may differ for each of this many tokens."""

    @classmethod
    def from_config(cls, config: Config) -> Rule:
        return cls(config.resemblance, config.length_ratio, config.min_tokens, config.short_text)

    def accepts(
        self,
        found: Comparison,
        *,
        same_text: bool = False,
        same_record: bool = False,
        repeated: bool = False,
    ) -> bool:
        """Return whether one document repeats the other.

        `same_text`: their normalized texts are equal. `same_record`: both have one URL, or are of one host with equal
        facts. `repeated`: the original has copies already.

        A text of fewer than `min_tokens` tokens repeats only an equal text: of the same record or, with `short_text`
        "exact", of any. The rule is less strict if the original has copies: the two may be versions of a third text,
        and two versions differ more than a copy and its original.
        """
        if found.tokens < max(self.min_tokens, 1):
            is_exact = self.short_text == "exact" and found.tokens > 0
            return same_text and (same_record or is_exact)
        return (
            found.resemblance >= self.required_resemblance(found.tokens, repeated=repeated)
            and found.length_ratio <= self.length_ratio
            and (
                self.ignores_figures(found)
                or found.missing_figures <= self.allowed_figures(found.tokens, found.figures)
            )
        )

    def ignores_figures(self, found: Comparison) -> bool:
        """Return whether all figures may differ, because the texts are near copies with few figures."""
        return found.resemblance >= NEAR and found.figures <= FEW_FIGURES * found.tokens

    def may_accept(self, a: Sketch, b: Sketch) -> bool:
        """Return whether `accepts` may be True when form is left out (see siblings.py); True for a short text."""
        return min(a.tokens, b.tokens) < self.min_tokens or resemblance(a, b) >= LEAST

    def required_resemblance(self, tokens: int, *, repeated: bool = False) -> float:
        """Return the required resemblance, given the number of tokens of the shorter text."""
        if isinstance(self.resemblance, (int, float)):
            tokens = max(tokens, 1)
            more = max(self.allowance * min(1.0, LONG / tokens), self.short_allowance / tokens)
            required = min(1.0, self.resemblance + more)
        else:
            lengths = list(self.resemblance)
            required = self.resemblance[lengths[max(0, bisect_right(lengths, tokens) - 1)]]
        return required - FAMILY_DISCOUNT * (1 - required) * repeated

    def allowed_figures(self, tokens: int, figures: int) -> float:
        """Return the number of figures that may differ, given `Comparison.tokens` and `Comparison.figures`."""
        return FIGURE_SHARE * figures + tokens / self.tokens_a_figure


ANYTHING = Rule(0.0, float("inf"), 0, allowance=0.0, short_allowance=0.0, tokens_a_figure=float("1e-9"))
"""A rule that accepts every pair of texts with tokens, for measurements without verification."""


class Preference:
    """The hosts in NEARDUP_PREFERRED_HOSTS. Their pages are never dropped or skipped for another host's page."""

    def __init__(self, hosts: Collection[str] = ()) -> None:
        self._hosts = frozenset(host(f"//{name}") for name in hosts)

    def __contains__(self, url: str | None) -> bool:
        return bool(self._hosts) and host(url or "") in self._hosts

    def outranks(self, url: str | None, other: str | None) -> bool:
        """Return whether `url` is on a preferred host, and `other` on any other host, even a preferred one."""
        return url in self and host(url or "") != host(other or "")


logger = logging.getLogger(__name__)

MAX_CANDIDATES = 200  # the maximum number of candidates from each detector; a large family of similar texts has more
MOST_COPIED = 10_000  # the maximum number of first copies to remember
LISTS = 100  # pages of several items of which the items are remembered: the last ones
URL = "url"  # in place of a detector: the candidate is what the document's URL returned last
NEAREST = 0.1  # matches count as nearest if their resemblance is less than this below the highest resemblance

_cached = lru_cache(maxsize=10_000)
SCOPES: dict[str, Callable[[str], str]] = {"all": lambda url: "", "host": _cached(host), "domain": _cached(domain)}
Proposed: TypeAlias = tuple[str, Signature]  # the name of a detector, and a document that it proposed


class Matcher:
    """Gets candidates from the store, and applies the rule to them."""

    def __init__(self, store: Store, config: Config, reviews: Reviews, delivered: Callable[[Signature], bool]) -> None:
        self.rule = Rule.from_config(config)
        self._is_delivered = delivered
        self.reviews = reviews
        self.preference = Preference(config.preferred_hosts)
        self.compared = 0  # the number of compared candidates so far
        self._store = store
        self._scope = SCOPES[config.scope]
        self.apart: tuple[Signature, int] | None = None  # of the last judged document; see `_note_apart`
        self._siblings = Siblings(store.pages)
        self._erasures = store.session.erasures
        self.keeps_revisits = config.revisit == "keep"
        self._copies: dict[tuple[str, int], Signature] = {}  # the first copy with facts, by its host and its original
        self._given = lru_cache(LISTS)(lambda page: set[int]())  # ids of the documents of each list page

    def learn(self, document: Document, signature: Signature, match: Match | None) -> None:
        """Remember a document, to recognise siblings among later documents. `match` is its match with its original."""
        if document.page:
            self._given(document.page).add((match.signature if match else signature).id)
        if match is None:
            self._siblings.learn(signature)
            return
        self._siblings.learn_copy(signature, match.signature, match.evidence.resemblance)
        if signature.home and signature.facts and len(self._copies) < MOST_COPIED:
            self._copies.setdefault((signature.home, match.signature.id), signature)

    def forget(self, signature: Signature) -> None:
        """Forget a document that another one replaced, so that its text does not count as form."""
        self._siblings.forget(signature)

    def best(self, document: Document, signature: Signature) -> Match | None:
        """Return the match with the original of a document; None if the document is unique.

        Choose in steps. Skip a step that would leave no document:

        1. documents of preferred hosts;
        2. documents that the new one's URL returned: equal ones, else the last one, else all;
        3. of the nearest ones, preferably one with equal facts, then one that its URL still returns, then that with
           most copies: by resemblance alone, the order of arrival would split a family of texts;
        4. of documents with the same text, title and facts as that one, the oldest.
        """
        self.apart = None
        matches = self._repeated(document, signature)
        if len(matches) < 2:
            return matches[0] if matches else None
        own = [match for match in matches if self.is_own(document.url, match.signature)]
        equal = [match for match in own if match.signature.says_the_same(signature)]
        own = equal or [match for match in own if match.signature is self.last(document.url)] or own
        best = max(match.evidence.resemblance for match in own or matches)
        chosen = max(
            (match for match in own or matches if match.evidence.resemblance > best - NEAREST),
            key=lambda match: self._rank(signature, match),
        )
        twins = (match for match in matches if match.signature.is_twin_of(chosen.signature))
        return min(twins, key=lambda match: (match.signature.first_seen, match.signature.id))

    def _rank(self, signature: Signature, match: Match) -> tuple[bool, bool, int, float, float]:
        held = match.signature
        is_current = not self._is_superseded(held)
        return held.facts == signature.facts, is_current, held.copy_count, match.evidence.resemblance, -held.first_seen

    def _is_superseded(self, signature: Signature) -> bool:
        """Return whether a document of an earlier run is outdated: its URL has since returned another of equal text."""
        last = self.last(signature.url)
        is_other = last is not None and last is not signature and _same_text(last, signature)
        return is_other and not self._store.is_new(signature)

    def _repeated(self, document: Document, signature: Signature) -> list[Match]:
        """Return a match for each held document that a document repeats; if some are of preferred hosts, only these.

        A document of a preferred host is compared only with documents of its own host, and only these show form.
        """
        proposed = [each for each in self.candidates(document, signature) if not self._outranks(document, each)]
        if not proposed:  # most documents end here
            return []
        is_preferred = document.url in self.preference
        preferred = [each for each in proposed if not is_preferred and each[1].url in self.preference]
        matches = list(self._matches(document, signature, preferred)) if preferred else []
        return matches or list(self._matches(document, signature, proposed))

    def outranked(self, document: Document, signature: Signature) -> Iterator[Match]:
        """Yield the matches of a document of a preferred host with documents of hosts that are not preferred."""
        others = (each for each in self.candidates(document, signature) if self._outranks(document, each))
        proposed = [each for each in others if each[1].url not in self.preference]
        return self._matches(document, signature, proposed, outranked=True) if proposed else iter(())

    def _outranks(self, document: Document, proposed: Proposed) -> bool:
        return self.preference.outranks(document.url, proposed[1].url)

    def _matches(
        self, document: Document, signature: Signature, proposed: list[Proposed], *, outranked: bool = False
    ) -> Iterator[Match]:
        page = self._page(document, signature, [] if outranked else proposed)
        found = [each for name, earlier in proposed if (each := self._verified(page, name, earlier))]
        matches = [match for _, match in found]
        if signature.facts and not outranked:
            self._learn_counters(document, signature, matches)
        facts = self._distinguishing(signature, matches) if signature.facts else {}
        for pair, match in found:
            earlier = match.signature
            if self._why_apart(document, signature, earlier, pair):
                self._note_apart(signature, earlier)
            elif self._may_be_record(signature, earlier, facts):
                yield match

    def _may_be_record(self, later: Signature, earlier: Signature, facts: Mapping[str, frozenset[int]]) -> bool:
        """Return whether a document may be the same record as an earlier one, judging by the facts of third records.

        Return False if its host already has a copy of the earlier one, with other facts. So if ten ads of a host repeat
        one ad of another host, only the first is lost. On two hosts, also return False if the two differ in one of
        `facts`, which `_distinguishing` returned.
        """
        copy = self._copies.get((later.home, earlier.id))
        is_other = later.facts and copy and (later.url, later.label) != (copy.url, copy.label)
        if copy and is_other and not agree(later.facts, copy.facts):
            return False
        site = earlier.home
        if site == later.home:
            return True
        names = facts.get(site, frozenset()) | frozenset().union(*facts.values()) & names_in(earlier.facts)
        return differing(later.facts, earlier.facts).isdisjoint(names)

    def _distinguishing(self, signature: Signature, matches: Iterable[Match]) -> dict[str, frozenset[int]]:
        """For each host with several records like the document, return the facts in which these records differ.

        The document itself counts as a record of its host, unless its URL returned a copy last. Records that newer ones
        replaced do not count.
        """
        known = self._store.resolve(signature.url) if signature.url else None
        is_record = signature.home and not (known and known.is_copy)
        families = {signature.home: [signature.facts]} if is_record else {}
        for earlier in (match.signature for match in matches):
            is_replaced = earlier.home == signature.home and self.is_own(signature.url, earlier)
            if not (is_replaced or self._is_superseded(earlier)):
                families.setdefault(earlier.home, []).append(earlier.facts)
        return {site: telling(signature.facts, family) for site, family in families.items() if len(family) > 1}

    def _learn_counters(self, document: Document, signature: Signature, matches: Iterable[Match]) -> None:
        """Learn counters: facts that differ though the document's URL returned the same text in an earlier run.

        Compare with the item that has equal facts, else with the only item of the last such run. If that run has
        several items with this text, as where a cookie chooses one of them, learn nothing.
        """
        held = [each.signature for each in matches if _same_text(signature, each.signature)]
        held = [each for each in held if self.is_own(document.url, each) and not self._store.is_new(each)]
        newest = self._store.run_of(max(held, key=lambda each: each.first_seen)) if held else ""
        same = [each for each in held if each.facts == signature.facts]
        held = same or [each for each in held if self._store.run_of(each) == newest]
        if len(held) == 1:
            has_text = signature.sketch.tokens >= self.rule.min_tokens
            names = self._store.note_visit(signature, held[0], has_text=has_text)
            for name in document.fact_names:
                if name_of(name) in names:
                    what = "%r changes at most visits, so it no longer counts on %s"
                    logger.info(what, name, host(document.url or ""))

    def why_siblings(self, document: Document, signature: Signature, earlier: Signature) -> str | None:
        """Return the reason why a similar earlier document is not the original; None if there is no such reason.

        The two are siblings, or a person judged them different.
        """
        page = self._page(document, signature, self.candidates(document, signature))
        return self._why_apart(document, signature, earlier, Pair(page, earlier))

    def _page(self, document: Document, signature: Signature, proposed: Iterable[Proposed]) -> JudgedPage:
        """Return the page of a document, for comparison with its candidates.

        After a run was forgotten, start again without remembered pages: a forgotten version of a page must not turn the
        text of other versions into form.
        """
        if self._erasures != self._store.session.erasures:
            self._erasures, self._siblings = self._store.session.erasures, Siblings(self._store.pages)
        return self._siblings.page(document, signature, (earlier for _, earlier in proposed))

    def _why_apart(self, document: Document, signature: Signature, earlier: Signature, pair: Pair) -> str | None:
        has_its_url = self.is_own(document.url, earlier)
        is_own = has_its_url and not document.is_one_of_several
        is_own = is_own and _fragment(document.url) == _fragment(earlier.url)  # else another part of the page
        if not is_own and any(self.reviews.differ(url, earlier.url) for url in (document.url, *document.aliases)):
            return WHY_APART
        # The beginning of a text, as before a paywall, does not stand for the whole text, which copies may still have.
        is_cut = self.keeps_revisits and signature.head.tokens < (1 - PART) * earlier.head.tokens and earlier.copy_count
        link = self._store.resolve(document.url or "") if is_cut and not self._is_delivered(earlier) else None
        if link and link.target == earlier.id:
            return "the text lacks much of the earlier text, which has copies"
        is_item = has_its_url and document.is_one_of_several and self._store.is_new(earlier)
        is_beside = is_item or (not has_its_url and earlier.id in self._given(document.page))
        of, facts = self._store.counters.of, earlier.facts
        counters = of(document.url, facts) | of(earlier.url) if has_its_url else ()  # on two hosts if another was first
        # What changed at this URL is wanted, even if another host had it first.
        across_hosts = not self.keeps_revisits and (is_own or self._has_own(document, earlier))
        return pair.why_siblings(
            is_own=is_own,
            across_hosts=across_hosts,
            has_its_url=has_its_url,
            is_beside=is_beside,
            needs_all=(has_its_url or across_hosts) and not self._is_brief(document),
            counters=counters,
        )

    def _is_brief(self, document: Document) -> bool:
        """Return whether a document may lack facts of its record, since a list page gave it.

        If a changed fact makes a new item (NEARDUP_REVISIT), its URL must have given a page of its own before.
        """
        if not document.url or document.url not in document.loose:
            return False
        if self.keeps_revisits:
            return True
        link = self._store.resolve(document.url)
        return link is not None and not link.loose and (link.signature is not None or document.has_own_url)

    def _has_own(self, document: Document, earlier: Signature) -> bool:
        """Return whether the URL of a document had a document of its own before this run.

        False if the URL is on a preferred host: then its document takes the place of the earlier one.
        """
        if document.is_one_of_several or self.preference.outranks(document.url, earlier.url):
            return False
        last = self.last(document.url)
        return last is not None and not self._store.is_new(last)

    def candidates(self, document: Document, signature: Signature) -> Iterator[Proposed]:
        """Yield each candidate in NEARDUP_SCOPE with the first detector that proposed it.

        Finally, yield the document that this URL returned last, in any scope, if it was not yielded yet.
        """
        scope = self._scope(document.url or "")
        seen: set[Signature] = set()
        taken: dict[str, int] = {}
        for name, earlier in self._store.find(signature):
            # Each detector has its own limit, so that none crowds out the others.
            known = taken.get(name, 0)
            if known < MAX_CANDIDATES and earlier not in seen and scope == self._scope(earlier.url or ""):
                taken[name] = known + 1
                seen.add(earlier)
                yield name, earlier
        if (last := self.last(document.url)) and last not in seen:
            yield URL, last

    def _verified(self, page: JudgedPage, name: str, earlier: Signature) -> tuple[Pair, Match] | None:
        """Return a page and its candidate, proposed by `name`, as a pair and a match; None if the rule rejects them."""
        self.compared += 1
        later = page.signature
        # Most pairs end here, so expensive steps come later, above all the count of copies.
        if not self.rule.may_accept(later.sketch, earlier.sketch):
            return None
        pair, found = Pair(page, earlier), compare(later.sketch, earlier.sketch)
        found = found._replace(resemblance=max(found.resemblance, pair.own_resemblance))
        same_text = _same_text(later, earlier)
        same_record = same_text and (self.is_own(later.url, earlier) or self._is_same_record(later, earlier, pair))
        if not self.rule.accepts(found, same_record=same_record, same_text=same_text, repeated=earlier.copy_count > 0):
            return None
        distance = None if later.simhash is None or earlier.simhash is None else hamming(later.simhash, earlier.simhash)
        measures = round(found.resemblance, 4), round(found.containment, 4), round(found.length_ratio, 4)
        kind = page_kind(found.resemblance, later.head.layout, earlier.head.layout)
        return pair, Match(earlier, Evidence(name, distance, *measures, kind))

    def _is_same_record(self, later: Signature, earlier: Signature, pair: Pair) -> bool:
        """Return whether two documents with equal text are the same record of one host.

        Their facts must agree, and also their titles if the later one has a title. They must have a fact; if they have
        no text, a strong fact. They need none if the item may have moved between pages of a list since an earlier run.
        """
        if not pair.is_of_one_host or not agree(later.facts, earlier.facts):
            return False
        if later.title and title_words(later.title) != title_words(earlier.title):
            return False
        needed = later.facts if later.sketch.tokens else strong(later.facts)
        are_listed = bool(later.label and earlier.label) and not self._store.is_new(earlier)
        return bool(needed) or (are_listed and listing(later.url or "") == listing(earlier.url or ""))

    def _note_apart(self, later: Signature, earlier: Signature) -> None:
        """If a document repeats an earlier one but for one fact, set `apart` to that one and the fact's hashed name.

        Both must be of one host, and have the same text or, without NEARDUP_REVISIT = "keep", the same URL.
        """
        is_visit = not self.keeps_revisits and self.is_own(later.url, earlier)
        if (is_visit or _same_text(later, earlier)) and later.home == earlier.home:
            names = differing(later.facts, earlier.facts)
            if len(names) == 1:
                self.apart = earlier, min(names)

    def trial(self, signature: Signature, url: str) -> Finding | None:
        """Compare a document with the one that `url`, the corresponding URL of another host, last returned.

        Return None if `url` has no such document, or if the comparison proves nothing.
        """
        link = self._store.resolve(url)
        held = link.signature if link and not link.loose else None
        if link is None or held is None:
            return None
        found, is_apart = compare(signature.sketch, held.sketch), self.reviews.differ(signature.url, held.url)
        repeats = _same_text(signature, held) or self.rule.accepts(found, repeated=held.copy_count > 0)
        outcome = outcome_of(duplicate=repeats and not is_apart, containment=found.containment, tokens=found.tokens)
        first = site(held.url or "") if link.is_copy else ""
        return Finding(outcome, hash_bytes(held.sketch.codes), first) if outcome is not None else None

    def last(self, url: str | None) -> Signature | None:
        """Return the document that a URL returned last; None if the URL is unknown or returned a copy."""
        link = self._store.resolve(url) if url else None
        return link.signature if link and not link.is_copy else None

    def is_own(self, url: str | None, signature: Signature) -> bool:
        """Return whether a URL is a held document's own URL, or last returned the document, and not a copy of it."""
        if not url or not signature.url:
            return False
        return self.last(url) is signature or canonical_url(url) == canonical_url(signature.url)


def _fragment(url: str | None) -> str:
    return (url or "").partition("#")[2]


def _same_text(a: Signature, b: Signature) -> bool:
    """Return whether two documents have equal normalized texts, or both have no text."""
    if not (a.sketch.tokens and b.sketch.tokens):
        return a.sketch.tokens == b.sketch.tokens
    return bool(a.head.digest) and a.head.digest == b.head.digest
