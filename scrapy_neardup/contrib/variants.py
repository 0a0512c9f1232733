"""Skip URLs that differ from a fetched one only in query parameters that never change the content.

Bar-Yossef, Keidar, Schonfeld 2007, "Do not crawl in the DUST: different URLs with similar text". A *rule* says which
parameters of a host do not matter, such as `print`. URLs that are equal without these are a *class*. The one without
any is *plain*. Two URLs of a class that return equal documents are evidence for the rule. Different ones end it.
"""

from __future__ import annotations

import json
import logging
import re
import time
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import NamedTuple

from scrapy import Request, signals
from scrapy.crawler import Crawler
from scrapy.utils.datatypes import LocalCache
from w3lib.url import url_query_cleaner

from ..crawl import Adviser
from ..crawl.detours import is_plain
from ..crawl.extension import NearDup
from ..deduplicator import Claim
from ..files import replacing
from ..hosts import SHORT
from ..mirrors import SKIP, Advice
from ..settings import ConfigError
from ..signature import Signature, Visit
from ..text.urls import canonical_url, parts_of, site

logger = logging.getLogger(__name__)

ENOUGH, AGAIN = 41, 200  # documents, each at two URLs of a class, that a rule needs: at first, and after it was wrong
BRANCH, WALL = 3, 8  # such documents that a place needs; so many classes with one document: it may be a login wall
EQUAL = 0.99  # the resemblance of equal texts
MOST_NAMES, MOST_URLS = 3, 32  # the maximum of parameters left out together, and of URLs compared for a document
DOCUMENTS, PLACES = 1_000, 16  # the maximum of remembered documents for a rule, and of places for a document
RULES, SITES, CLASSES = 8, 2_000, 100_000  # the maximum of remembered rules for a host, of hosts, and of classes

_SESSION = re.compile(r"=(?=.*\d)[\w.%-]{8,}$")  # the value of a session id: a new one for each visitor
_NUMBER = re.compile(r".*=(?![01]$)[+-]?\d+")  # such a number matters: it may be a page of a list, an id or an amount
_DATE = re.compile(r"/(?:19|20)\d\d(?:/[01]?\d(?:/[0-3]?\d)?)?(?=/)")  # all dates are one place


class Variation(NamedTuple):
    """A URL as a member of a class."""

    plain: str  # the canonical URL without the parameters; it may not exist
    parts: frozenset[str]  # the parameters that were left out, such as `print=1`; the value of a session id is `*`
    place: str  # the directory, other parameters, and parts: a parameter may matter only in some places


def variation(url: str, names: str) -> Variation | None:
    """Return a URL as a member of the class without the parameters `names`; None if the URL can't be in a class."""
    plain = url_query_cleaner(canonical_url(url), names.split("&"), remove=True, unique=False, keep_fragments=True)
    kept, parts = sorted(item.partition("=")[0] for item in _items(plain)), parts_of(plain)
    left_out = frozenset(_SESSION.sub("=*", item) for item in _items(url) - _items(plain))
    if parts is None or any(map(_NUMBER.fullmatch, left_out)):
        return None
    where = parts.path if kept else f"{parts.path.rpartition('/')[0]}/"
    return Variation(plain, left_out, f"{_DATE.sub('/date', where)}?{kept} {sorted(left_out)}")


def difference(a: str, b: str) -> str:
    """Return the parameters without which two URLs are equal; "" if there are none, or more than `MOST_NAMES`."""
    names = sorted({item.partition("=")[0] for item in _items(a) ^ _items(b)})
    one, other = (variation(url, "&".join(names)) for url in (a, b))
    return "&".join(names) if one and other and one.plain == other.plain and len(names) <= MOST_NAMES else ""


def _items(url: str) -> set[str]:
    parts = parts_of(url)
    return {*parts.query.split("&")} - {""} if parts else set()


@dataclass
class Rule:
    """Parameters to leave out of the URLs of a host, and the evidence that they do not matter."""

    names: str  # in alphabetical order, with `&` between them
    same: dict[str, list[str]] = field(default_factory=dict)
    """The evidence: by the own URL of a document, the places of the URLs of one class that returned the document."""
    needed: int = ENOUGH
    confirmed: float = 0.0

    @property
    def in_force(self) -> bool:
        return len(self.same) >= self.needed

    def covers(self, here: Variation) -> bool:
        return sum(here.place in places for places in self.same.values()) >= BRANCH

    def confirm(self, url: str, own: str) -> None:
        """Note that `url` returned the document whose own URL is `own`, if these are two URLs of one class."""
        here, there = variation(url, self.names), variation(own, self.names)
        if here and there and here.plain == there.plain and canonical_url(url) != canonical_url(own):
            self.confirmed = time.time()
            if len(self.same) < DOCUMENTS:
                self.same[own] = [*dict.fromkeys([*self.same.get(own, ()), here.place, there.place])][-PLACES:]


class Variants(Adviser):
    """An extension that learns the rules of each host. With VARIANTS_FILE, later crawls know them at once."""

    def __init__(self, neardup: NearDup, file: str | None) -> None:
        self._neardup, self._dedup, self._file = neardup, neardup.dedup, file
        self._ttl = neardup.config.mirror_ttl if neardup.config.revisit == "skip" else 0.0
        self.rules: LocalCache[str, list[Rule]] = LocalCache(SITES)  # by host
        self._last: LocalCache[str, tuple[str, float]] = LocalCache(CLASSES)  # by class: its last document, and when
        try:
            read = json.loads(Path(file).read_bytes()) if file and Path(file).exists() else {"rules": {}, "last": {}}
            for name, rules in read["rules"].items():
                self.rules[name] = [Rule(r["names"], dict(r["same"]), int(r["needed"]), r["confirmed"]) for r in rules]
            self._last.update((name, (own, float(seen))) for name, (own, seen) in read["last"].items())
        except (OSError, ValueError, LookupError, TypeError, AttributeError) as error:
            raise ConfigError(f"VARIANTS_FILE = {file!r} can't be read: {error!r}") from error

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Variants:
        neardup = NearDup.from_crawler(crawler)
        neardup.advisers.append(o := cls(neardup, crawler.settings.get("VARIANTS_FILE")))
        crawler.signals.connect(o.spider_closed, signal=signals.spider_closed)
        return o

    async def spider_closed(self) -> None:
        if self._file:
            await self._neardup.ask(self.save, self._file)

    def save(self, file: str) -> None:
        with replacing(file) as part:
            Path(part).write_bytes(json.dumps({"rules": self.rules, "last": self._last}, default=vars).encode())

    async def advise(self, request: Request) -> Advice | None:
        is_asked = self._neardup.config.skip_mirrors and is_plain(request)
        return await self._neardup.ask(self.advice, request.url) if is_asked else None

    def advice(self, url: str) -> Advice | None:
        """Return the advice to skip a URL; None to fetch it. A URL that was fetched before is not skipped."""
        since = time.time() - self._neardup.config.mirror_ttl
        rules = [rule for rule in self.rules.get(site(url), ()) if rule.in_force and rule.confirmed >= since]
        for rule in rules if rules and not self._dedup.store.resolve(url) else ():
            visit = self._last_of_class(url, rule)
            is_fresh = visit and (self._dedup.deliveries.is_of_run(visit.seen) or time.time() - visit.seen < self._ttl)
            if visit and visit.signature and is_fresh and self._stands_for(url, rule, visit.signature):
                return Advice(SKIP, visit.signature.url, visit.size, known_by="the rule on variants of its URL")
        return None

    def _last_of_class(self, url: str, rule: Rule) -> Visit | None:
        """Return the last visit to a URL's class, else to its plain URL; None if its text was short or may change."""
        here = variation(url, rule.names)
        own, seen = self._last.get(f"{here.plain} {rule.names}", (here.plain, 0.0)) if here else ("", 0.0)
        visit = self._dedup.store.resolve(own)
        is_long = visit and not visit.loose and visit.signature and visit.signature.sketch.tokens >= SHORT
        return replace(visit, seen=max(seen, visit.seen)) if visit and is_long else None

    def _stands_for(self, url: str, rule: Rule, held: Signature) -> bool:
        """Return whether a rule says that a URL returns the document `held`, so that the URL may be skipped."""
        here, there = variation(url, rule.names), variation(held.url or "", rule.names)
        # A parameter that only the held URL has may matter. So no plain URL is skipped, nor one language for another.
        if not (here and there and there.plain == here.plain and there.parts <= here.parts):
            return False
        visits = self._dedup.store.visits(held, MOST_URLS) if held.copy_count >= WALL else ()
        is_wall = len({found.plain for each in visits if (found := variation(each.url, rule.names))}) >= WALL
        is_apart = is_wall or self._dedup.matcher.reviews.differ(url, held.url)
        return not is_apart and rule.covers(here) and rule.covers(there)

    def visited(self, claim: Claim) -> None:
        for url in dict.fromkeys((claim.document.url, *claim.document.aliases)):
            if url and url not in claim.document.loose:
                self._suspect(url, claim)
                for rule in self.rules.get(site(url), ()):
                    self._learn(url, rule, claim)

    def _suspect(self, url: str, claim: Claim) -> None:
        """Add a rule for each set of parameters by which a URL differs from another URL with the same document."""
        for visit in self._dedup.store.visits(claim.match.signature, MOST_URLS) if claim.match else ():
            names, rules = difference(url, visit.url), self.rules.get(site(url), [])
            if names and names not in (rule.names for rule in rules):
                rules.sort(key=lambda rule: (rule.in_force, rule.needed, len(rule.same)))
                self.rules[site(url)] = [*rules[1 - RULES :], Rule(names)]

    def _learn(self, url: str, rule: Rule, claim: Claim) -> None:
        """Confirm the rule if a URL returned the last document of its class. End it if another came in the same run."""
        was_in_force, document = rule.in_force, (claim.match or claim).signature
        visit = self._last_of_class(url, rule) if claim.signature.sketch.tokens >= SHORT else None
        if visit and visit.signature is document:
            if claim.match and claim.match.evidence.resemblance >= EQUAL:
                rule.confirm(url, document.url or "")
        elif visit and self._dedup.deliveries.is_of_run(visit.seen):  # else it may have changed since then
            rule.same, rule.needed = {}, AGAIN
        if here := variation(url, rule.names):
            self._last[f"{here.plain} {rule.names}"] = document.url or "", time.time()
        if rule.in_force != was_in_force:
            self._neardup.stats.inc_value(f"neardup/variants/{'dropped' if was_in_force else 'learned'}")
            how = "in content: they are fetched again" if was_in_force else "in nothing that matters"
            what = f"{site(url)}/…?{rule.names.replace('&', '=…&')}=… and the same URLs without these parameters differ"
            logger.log(logging.WARNING if was_in_force else logging.INFO, "%s %s", what, how)
