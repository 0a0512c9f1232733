"""Skip URLs that differ from a fetched one only in query parameters that never change the content.

Bar-Yossef, Keidar, Schonfeld 2007, "Do not crawl in the DUST: different URLs with similar text". A *rule* says
which parameters of a host do not matter. URLs that are equal without these are a *class*, and one that has none of them
is *plain*. Two URLs of a class that returned equal documents are evidence for the rule; different ones, against it.
"""

from __future__ import annotations

import json
import logging
import re
import time
from collections.abc import Iterable, Iterator
from functools import lru_cache
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

from scrapy import Request, signals
from scrapy.crawler import Crawler
from scrapy.utils.datatypes import LocalCache

from ..crawl import Adviser
from ..crawl.extension import NearDup
from ..crawl.middleware import is_plain
from ..deduplicator import Claim, Deduplicator
from ..files import replacing
from ..mirrors import SKIP, Advice
from ..settings import ConfigError
from ..signature import Signature
from ..text.urls import canonical_url, parts_of, site

logger = logging.getLogger(__name__)

MOST_NAMES = 3  # the maximum number of parameters that are left out together
ENOUGH = 41  # documents at two URLs of a class that bring a rule into force: 93 % of all classes, at a risk of 5 %
NEAR_COPY = 25  # further documents that the rule needs for each near copy
BRANCH = 3  # such documents in each directory to which the rule applies
WINDOW = 200  # the last visits that count
SAME, NEAR, DIFFERENT = range(3)
SHORT = 40  # tokens; a shorter text is too often only the frame of the site
EQUAL = 0.99  # the resemblance of equal texts
MOST_URLS = 16  # URLs of a document that are compared with a new one
MANY = 8  # classes whose URLs give one document: it may be a login wall
PER_SITE, SITES, CLASSES = 8, 2_000, 100_000  # the maximum numbers of rules of a host, of hosts, of classes

_TOKEN = re.compile(r"(?=.*\d)[\w.%-]{8,}")  # the value of a session id: a new one for each visitor
_DATE = re.compile(r"/(?:19|20)\d\d(?:/[01]?\d(?:/[0-3]?\d)?)?(?=/)")  # other numbers tell directories apart
_NUMBER = re.compile(r"[+-]?\d+")


class Variation(NamedTuple):
    """A URL as a member of a class."""

    plain: str
    """The canonical URL without the parameters. It may not exist."""
    parts: frozenset[str]
    """The parameters that were left out, such as `print=1`. A value that looks like a session id is `*`."""
    place: str
    """The directory with the other parameters' names and the parts, since a parameter may matter in some directories,
    and one value of it may matter while another does not."""

    @property
    def key(self) -> str:
        """The class with the parts: all URLs with equal keys count as one."""
        return f"{self.plain} {sorted(self.parts)}"


def difference(a: str, b: str) -> tuple[str, ...] | None:
    """Return the parameters without which two URLs are of one class; None if there are none, or over `MOST_NAMES`."""
    names = tuple(sorted({_name(item) for item in {*_items(a)} ^ {*_items(b)}}))
    one, other = variation(a, names), variation(b, names)
    is_all = one and other and one.plain == other.plain
    return names if is_all and 0 < len(names) <= MOST_NAMES else None


@lru_cache(maxsize=1024)  # the advice on a URL asks several times
def variation(url: str, names: tuple[str, ...]) -> Variation | None:
    """Return a URL as a member of its class without some parameters; None if it can't be in one.

    A URL is in no class if one of the parameters has a number other than 0 and 1, since numbers count: the pages of a
    list, items, results.
    """
    url_parts, items = parts_of(url), _items(url)
    kinds = {_kind(item) for item in items if _name(item) in names}
    if url_parts is None or None in kinds:
        return None
    kept = [item for item in items if _name(item) not in names]
    parts = frozenset(map(str, kinds))
    where = url_parts.path if kept else f"{url_parts.path.rpartition('/')[0]}/"
    place = f"{_DATE.sub('/date', where)}?{sorted(set(map(_name, kept)))} {sorted(parts)}"
    return Variation(url_parts._replace(query="&".join(kept)).geturl(), parts, place)


def _items(url: str) -> list[str]:
    parts = parts_of(url)
    return [item for item in parts.query.split("&") if item] if parts else []


def _name(item: str) -> str:
    return item.partition("=")[0]


def _kind(item: str) -> str | None:
    """Return a parameter, with `*` for the value of a session id; None for a number other than 0 and 1."""
    name, _, value = item.partition("=")
    if _TOKEN.fullmatch(value):
        return f"{name}=*"
    return None if _NUMBER.fullmatch(value) and value not in ("0", "1") else item


class Trial(NamedTuple):
    """The result of comparing a visit with an earlier one of its class."""

    outcome: int
    content: str
    """The held document's URL. A document that is at several URLs counts once."""
    place: str
    seen: float


class Rule:
    """The parameters to leave out of the URLs of a host, and the evidence that they do not matter."""

    def __init__(self, site: str, names: Iterable[str], trials: Iterable[tuple[str, Trial]] = ()) -> None:
        self.site, self.names = site, tuple(names)
        self.trials: dict[str, Trial] = {}
        """By the plain URL and the parts, oldest first."""
        self.add(trials)

    def add(self, trials: Iterable[tuple[str, Trial]]) -> None:
        """Add evidence. One different page is enough to end a rule."""
        for key, trial in trials:
            self.trials.pop(key, None)
            self.trials[key] = trial
        while len(self.trials) > WINDOW:
            del self.trials[next(iter(self.trials))]
        same = {each.content: each.seen for each in self.trials.values() if each.outcome == SAME}
        near = {each.content for each in self.trials.values() if each.outcome == NEAR}
        self.different = sum(each.outcome == DIFFERENT for each in self.trials.values())
        self.same, self.confirmed = len(same), max(same.values(), default=0.0)
        self.in_force = not self.different and self.same >= ENOUGH + NEAR_COPY * len(near)

    def __str__(self) -> str:
        return f"{self.site}/…?{'&'.join(f'{name}=…' for name in self.names)}"

    def class_of(self, here: Variation) -> str:
        return f"{here.plain} {self.names}"

    def covers(self, here: Variation) -> bool:
        """Return whether the directory of a URL has evidence of its own, with hardly any near copies."""
        found = [trial for trial in self.trials.values() if trial.place == here.place]
        same = len({trial.content for trial in found if trial.outcome == SAME})
        return same >= BRANCH and 10 * sum(trial.outcome != SAME for trial in found) <= same


class Learner:
    """Learns rules on parameters from visits, and advises by them."""

    def __init__(self, dedup: Deduplicator, *, ttl: float, skips_revisits: bool = False) -> None:
        self._dedup = dedup
        self._ttl = ttl
        self._skips_revisits = skips_revisits
        self.rules: LocalCache[str, list[Rule]] = LocalCache(SITES)
        """By host, in force or not."""
        self._last: LocalCache[str, tuple[str, float]] = LocalCache(CLASSES)
        """By class: the own URL of the document that its last visit returned, and the time of that visit."""

    def dump(self) -> dict[str, Any]:
        """Return all evidence, and the last visit of each class, as JSON types."""
        rules = [[rule.site, rule.names, [*rule.trials.items()]] for rules in self.rules.values() for rule in rules]
        return {"rules": rules, "last": self._last}

    def load(self, read: dict[str, Any]) -> None:
        """Load evidence and visits that `dump` returned."""
        for name, names, trials in read["rules"]:
            self._add(Rule(name, names, [(key, Trial(*trial)) for key, trial in trials]))
        self._last.update(read["last"])

    def _add(self, rule: Rule) -> None:
        rules = self.rules[rule.site] = self.rules.get(rule.site, [])
        if len(rules) >= PER_SITE:
            rules.remove(min(rules, key=lambda each: (each.in_force, each.same, each.confirmed)))
        rules.append(rule)

    # Before the fetch

    def advise(self, url: str) -> Advice | None:
        """Return the advice on a URL that was never fetched; None to fetch it."""
        rules = [rule for rule in self.rules.get(site(url), ()) if rule.in_force]
        for rule in rules if rules and not self._dedup.store.resolve(url) else ():
            here = variation(url, rule.names)
            if here and time.time() - rule.confirmed <= self._ttl:
                for held, seen, size in self._visits(rule, here):
                    is_fresh = self._skips_revisits and time.time() - seen <= self._ttl
                    is_fresh = is_fresh or self._dedup.deliveries.is_of_run(seen)
                    if is_fresh and self._stands_for(rule, here, held, url):
                        recheck = (1 - 0.05 ** (1 / (rule.same + 1))) / 4  # more often after less evidence
                        return Advice(SKIP, held.url, size, recheck, "the rule on variants of its URL")
        return None

    def _stands_for(self, rule: Rule, here: Variation, held: Signature, url: str) -> bool:
        """Return whether a URL may be skipped for a document.

        The document's own URL must be in the same class, and may have no part that the skipped one lacks. So a plain
        URL is never skipped, nor is one language skipped for another.
        """
        there = variation(held.url or "", rule.names)
        if not here.parts or not there or there.plain != here.plain or not there.parts <= here.parts:
            return False
        is_apart = held.sketch.tokens < SHORT or self._dedup.matcher.reviews.differ(url, held.url)
        return rule.covers(here) and rule.covers(there) and not is_apart and not self._is_in_many_classes(rule, held)

    def _is_in_many_classes(self, rule: Rule, held: Signature) -> bool:
        links = self._dedup.store.visits(held, 1000) if held.copy_count + 1 >= MANY else ()
        return len({found.plain for link in links if (found := variation(link.url, rule.names))}) >= MANY

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
        for rule in self.rules.get(site(url), ()):
            if here := variation(url, rule.names):
                before = rule.in_force
                trials = (self._trials(rule, url, here, *visit[:2], claim) for visit in self._visits(rule, here))
                rule.add(next(filter(None, trials), []))
                self._note_last(rule, here, claim)
                if rule.in_force != before:
                    yield rule

    def _suspect(self, url: str, claim: Claim) -> None:
        """Add a rule for each way in which a URL differs from another one that returned the same document."""
        links = self._dedup.store.visits(claim.match.signature, 8 * MOST_URLS) if claim.match and site(url) else ()
        others = (link.url for link in links if site(link.url) == site(url))
        for names in filter(None, (difference(url, other) for other in islice(others, MOST_URLS))):
            if names not in (rule.names for rule in self.rules.get(site(url), ())):
                self._add(Rule(site(url), names))

    def _trials(
        self, rule: Rule, url: str, here: Variation, held: Signature, seen: float, claim: Claim
    ) -> list[tuple[str, Trial]]:
        """Return the evidence from a visit and an earlier one of its class; none if they prove nothing."""
        own, tokens = held.url or "", min(held.sketch.tokens, claim.signature.sketch.tokens)
        if tokens < SHORT or canonical_url(own) == canonical_url(url):
            return []
        outcome, places = DIFFERENT, [here]
        if held.id == (claim.match or claim).signature.id:
            outcome = NEAR if claim.match and claim.match.evidence.resemblance < EQUAL else SAME
        if outcome == SAME:  # counts only if the document's own URL is another one of the class
            there = variation(own, rule.names)
            places = [here, there] if there and there.plain == here.plain else []
        elif not self._dedup.deliveries.is_of_run(seen):  # it may have changed since then
            return []
        now = claim.signature.first_seen
        return [(each.key, Trial(outcome, own, each.place, now)) for each in places]

    def _note_last(self, rule: Rule, here: Variation, claim: Claim) -> None:
        own, is_hopeless = (claim.match or claim).signature.url, rule.different > 3 + rule.same // 10
        if claim.is_one_of_many or not own:
            self._last.pop(rule.class_of(here), None)
        elif here.parts and not is_hopeless:
            self._last[rule.class_of(here)] = own, claim.signature.first_seen


class Variants(Adviser):
    """An extension that learns the rules of each host. With VARIANTS_FILE, later crawls know them at once."""

    def __init__(self, neardup: NearDup, file: str | None) -> None:
        config = neardup.config
        self._neardup, self._file = neardup, file
        self._learner = Learner(neardup.dedup, ttl=config.mirror_ttl, skips_revisits=config.revisit == "skip")
        self._changes: list[bool] = []
        if file and Path(file).exists():
            try:
                self._learner.load(json.loads(Path(file).read_bytes()))
            except (OSError, ValueError, KeyError, TypeError) as error:
                raise ConfigError(f"VARIANTS_FILE = {file!r} can't be read: {error!r}") from error
        neardup.advisers.append(self)

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Variants:
        o = cls(NearDup.from_crawler(crawler), crawler.settings.get("VARIANTS_FILE"))
        crawler.signals.connect(o.spider_closed, signal=signals.spider_closed)
        return o

    async def advise(self, request: Request) -> Advice | None:
        if self._neardup.config.skip_mirrors and is_plain(request):
            return await self._neardup.ask(self._learner.advise, request.url)
        return None

    def visited(self, claim: Claim) -> None:
        for url in filter(None, (claim.document.url, *claim.document.aliases)):
            for rule in self._learner.learn(url, claim) if url not in claim.document.loose else ():
                self._changes.append(rule.in_force)
                level = logging.INFO if rule.in_force else logging.WARNING
                what = "in nothing that matters" if rule.in_force else "in content: they are fetched again"
                logger.log(level, "%s and the same URLs without these parameters differ %s", rule, what)

    async def spider_closed(self) -> None:
        for name, in_force in (("learned", True), ("dropped", False)):
            self._neardup.stats.set_value(f"neardup/variants/{name}", self._changes.count(in_force))
        if self._file:
            await self._neardup.ask(self._save, self._file)

    def _save(self, file: str) -> None:
        with replacing(file) as part:
            Path(part).write_text(json.dumps(self._learner.dump()), encoding="utf-8")
