"""Learn from visits which parts of a host's URLs never change the content, and advise on URLs by these rules."""

from __future__ import annotations

import time
from collections.abc import Iterator
from itertools import islice
from typing import TYPE_CHECKING, Any

from scrapy.utils.datatypes import LocalCache

from ..mirrors.advice import SKIP, Advice
from ..text.shapes import Shape, hash_place, site
from ..text.urls import canonical_url
from .url_classes import DIFFERENT, NEAR, SAME, Rule, Trial, Variation, difference, variation

if TYPE_CHECKING:
    from ..deduplicator import Deduplicator
    from ..matching.claim import Claim
    from ..signature import Signature

SHORT = 40  # tokens; a shorter text is too often only the frame of the site
EQUAL = 0.99  # the resemblance of equal texts
MOST_URLS = 16  # URLs of a document that are compared with a new one
MANY = 8  # classes whose URLs give one document: it may be a login wall
PER_SITE, SITES, CLASSES = 8, 2_000, 100_000  # the maximum numbers of rules of a host, of hosts, of classes


class VariantRules:
    """Learns rules from visits, and advises by them."""

    def __init__(self, dedup: Deduplicator, *, ttl: float, skips_revisits: bool = False) -> None:
        self._dedup = dedup
        self._ttl = ttl
        self._skips_revisits = skips_revisits
        self._rules: LocalCache[str, list[Rule]] = LocalCache(SITES)
        self._last: LocalCache[str, tuple[str, float]] = LocalCache(CLASSES)
        """By class: the own URL of the document that its last visit returned, and the time of that visit."""

    def __iter__(self) -> Iterator[Rule]:
        """Yield all rules, in force or not."""
        yield from (rule for rules in self._rules.values() for rule in rules)

    def dump(self) -> dict[str, Any]:
        """Return all evidence, and the last visit of each class, as JSON types."""
        return {"rules": [[rule.site, rule.shape, [*rule.trials.items()]] for rule in self], "last": self._last}

    def load(self, read: dict[str, Any]) -> None:
        """Take in what `dump` returned."""
        for name, (prefixes, endings), trials in read["rules"]:
            rule = self._new(name, Shape(tuple(prefixes), tuple(endings)))
            rule.add([(path, Trial(*trial)) for path, trial in trials])
        self._last.update(read["last"])

    # Before the fetch

    def advise(self, url: str) -> Advice | None:
        """Return the advice on a URL that was never fetched; None to fetch it."""
        rules = [rule for rule in self._rules.get(site(url), ()) if rule.in_force]
        for rule in rules if rules and not self._dedup.store.resolve(url) else ():
            here = variation(url, rule.shape)
            if here and time.time() - rule.confirmed <= self._ttl:
                for held, seen, size in self._visits(rule, here):
                    if self._is_fresh(seen) and self._stands_for(rule, here, held, url):
                        return Advice(SKIP, held.url, size, rule.recheck, "the rule on variants of its URL")
        return None

    def _is_fresh(self, seen: float) -> bool:
        """Return whether a visit belongs to this run or, if revisits are skipped, is within the TTL."""
        is_new = self._skips_revisits and time.time() - seen <= self._ttl
        return is_new or self._dedup.deliveries.is_of_run(seen)

    def _stands_for(self, rule: Rule, here: Variation, held: Signature, url: str) -> bool:
        """Return whether a URL may be skipped for a document.

        The document's own URL must be in the same class, and may have no part that the skipped one lacks. So a plain
        URL is never skipped, nor is one language skipped for another.
        """
        there = variation(held.url or "", rule.shape)
        if not here.parts or not there or there.plain != here.plain or not there.parts <= here.parts:
            return False
        is_apart = held.sketch.tokens < SHORT or self._dedup.matcher.reviews.differ(url, held.url)
        return rule.covers(here) and rule.covers(there) and not is_apart and not self._is_in_many_classes(rule, held)

    def _is_in_many_classes(self, rule: Rule, held: Signature) -> bool:
        if held.repeats + 1 < MANY:
            return False
        urls = (link.url for link in islice(self._dedup.store.links(held), 1000) if site(link.url) == rule.site)
        return len({found.plain for url in urls if (found := variation(url, rule.shape))}) >= MANY

    def _visits(self, rule: Rule, here: Variation) -> Iterator[tuple[Signature, float, int]]:
        """Yield the last visits of the plain URL and of the class: the document, the time, and the size."""
        own, seen = self._last.get(rule.class_of(here), ("", 0.0))
        for url, when in ((here.plain if here.parts else "", 0.0), (own, seen)):
            link = self._dedup.store.resolve(url) if url else None
            if link and link.signature and link.firm:
                yield link.signature, when or link.seen, link.size

    # After the fetch

    def learn(self, url: str, claim: Claim) -> Iterator[Rule]:
        """Learn from the document that a URL returned. Yield the rules that came into force or ended."""
        self._suspect(url, claim)
        for rule in self._rules.get(site(url), ()):
            if here := variation(url, rule.shape):
                before = rule.in_force
                trials = (self._trials(rule, url, here, *visit[:2], claim) for visit in self._visits(rule, here))
                rule.add(next(filter(None, trials), []))
                self._note_last(rule, here, claim)
                if rule.in_force != before:
                    yield rule

    def _suspect(self, url: str, claim: Claim) -> None:
        """Add a rule for each way in which a URL differs from another one that returned the same document."""
        links = self._dedup.store.links(claim.match.signature) if claim.match and site(url) else ()
        others = (link.url for link in links if site(link.url) == site(url))
        for shape in filter(None, (difference(url, other) for other in islice(others, MOST_URLS))):
            if shape not in (rule.shape for rule in self._rules.get(site(url), ())):
                self._new(site(url), shape)

    def _new(self, name: str, shape: Shape) -> Rule:
        rules = self._rules[name] = self._rules.get(name, [])
        if len(rules) >= PER_SITE:
            rules.remove(min(rules, key=lambda rule: (rule.in_force, rule.same, rule.confirmed)))
        rules.append(Rule(name, shape))
        return rules[-1]

    def _trials(
        self, rule: Rule, url: str, here: Variation, held: Signature, seen: float, claim: Claim
    ) -> list[tuple[int, Trial]]:
        """Return the evidence from a visit and an earlier one of its class; none if they prove nothing."""
        tokens = min(held.sketch.tokens, claim.signature.sketch.tokens)
        if tokens < SHORT or canonical_url(held.url or "") == canonical_url(url):
            return []
        outcome, places = DIFFERENT, [here]
        if held.id == (claim.match or claim).signature.id:
            outcome = NEAR if claim.match and claim.match.evidence.resemblance < EQUAL else SAME
        if outcome == SAME:  # counts only if the document's own URL is another one of the class
            there = variation(held.url or "", rule.shape)
            places = [here, there] if there and there.plain == here.plain else []
        elif not self._dedup.deliveries.is_of_run(seen):  # it may have changed since then
            return []
        content, now = hash_place(held.url or ""), claim.signature.first_seen
        return [(each.place.path, Trial(outcome, content, each.place.branch, now)) for each in places]

    def _note_last(self, rule: Rule, here: Variation, claim: Claim) -> None:
        own, is_hopeless = (claim.match or claim).signature.url, rule.different > 3 + rule.same // 10
        if claim.is_one_of_many or not own:
            self._last.pop(rule.class_of(here), None)
        elif here.parts and not is_hopeless:
            self._last[rule.class_of(here)] = own, claim.signature.first_seen
