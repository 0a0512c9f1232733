"""Learn which hosts mirror each other. No I/O.

A *relation* is two hosts and a *shape*, which says how a URL of one host becomes the corresponding URL of the other. A
*trial* compares the pages at two such URLs. A relation with enough equal pages is a *rule in force*: pages that were
not fetched yet are expected to be equal too.

Bharat, Broder, Dean, Henzinger 2000, "A comparison of techniques to find mirrored hosts on the WWW": two hosts mirror
each other if most paths that are valid on one are valid on the other, and give similar content (section 2).
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, field
from enum import IntEnum
from functools import lru_cache
from heapq import nlargest
from itertools import islice
from typing import NamedTuple, TypeAlias

from .text.urls import Place, Shape, canonical_url, counterpart, shape, site

BOUND = 0.88  # the minimum confidence of a rule: that of 23 paths with equal content, and none with other content
WINDOW = 200  # the number of paths that count; older ones are dropped, so that a rule can be unlearned
PENALTY = 10  # one different page weighs as much as this many equal ones
STEPS = 1 << 30  # from 0 to 1, among which a quantile is searched
RISK = 0.05  # the probability that the share of equal pages is below the confidence
BRANCH = 2  # equal pages that a directory needs before the rule applies to it
BRANCHES = 5  # directories with equal pages, after which the rule applies to all directories
CONTAINED = 0.99  # from this containment on, the other text has all of the shorter one, given the error of the sketch
SHORT = 40  # tokens; the text of a shorter page is too often only the frame of the site


class Outcome(IntEnum):
    """The result of comparing two documents at corresponding URLs."""

    SAME = 0
    """Equal texts, or one text contains the other, for example because it has a header or footer too."""
    NEAR = 1
    """A partial repetition. The hosts may be mirrors, or two versions of a site."""
    DIFFERENT = 2
    """Different documents. If one were skipped because of the other, the skipped document would be lost."""
    UNKNOWN = 3
    """The evidence was retracted, for example because the compared text was only the frame of the page."""


def outcome_of(*, duplicate: bool, containment: float, tokens: int) -> Outcome | None:
    """Return the outcome of a comparison; None if the texts are too short to tell, or missing.

    `duplicate`: whether verification accepts the pair. `containment`: from 0 to 1. `tokens`: the number of tokens
    in the shorter text.
    """
    if duplicate and containment >= CONTAINED:
        return Outcome.SAME
    if tokens < SHORT:
        return None
    return Outcome.NEAR if duplicate else Outcome.DIFFERENT


class Tally(NamedTuple):
    """The numbers of trials by outcome."""

    same: int
    near: int
    different: int
    claimed: int = 0  # the trials in `same` that a canonical URL confirms; they count twice


NOBODY = 2


class Trial(NamedTuple):
    """The stored result of the last comparison of two pages at corresponding paths of two hosts.

    The trials of all processes and runs are the evidence.
    """

    sites: tuple[str, str]
    prefixes: tuple[str, str]
    endings: tuple[str, str]
    path: int  # the hash of the path
    outcome: int
    content: int  # the id of the held document; one that is at several paths counts once
    branch: int  # the hash of the first directory under the prefix
    holder: int  # the host that had the document first: 0 or 1, or NOBODY for a third host
    seen: float  # seconds since the epoch
    claimed: bool = False  # true if the page named the URL of the held document as its canonical URL


class There(NamedTuple):
    """The counterpart of a URL on the other host of a relation."""

    side: int  # the position of the other host in the relation: 0 or 1
    url: str  # the canonical form, for lookups; do not request it
    place: Place


@dataclass(eq=False, slots=True)
class Relation:
    """Two hosts in alphabetical order, the shape that relates their URLs, and the evidence on it."""

    sites: tuple[str, str]
    shape: Shape
    trials: dict[int, Trial] = field(default_factory=dict)  # by the hash of the path, the last visited last
    tally: Tally = field(default_factory=lambda: Tally(0, 0, 0))
    confidence: float = 0.0
    confirmed: float = -math.inf  # the time of the last trial with equal content
    in_force: bool = False
    _branches: Counter[int] = field(default_factory=Counter)

    def name(self, side: int) -> str:
        """Return a host with the prefix and the ending of its URLs, such as `b.example/m/…` or `a.example/….html`."""
        prefix, ending = self.shape.prefixes[side], self.shape.endings[side]
        return self.sites[side] + prefix + (f"/…{ending}" if prefix or any(self.shape.endings) else "")

    def across(self, url: str) -> There | None:
        """Return the counterpart of a URL of one host on the other host; None if the URL does not fit the shape."""
        side = self.sites.index(site(url))
        seen = self.shape.flip() if side else self.shape
        found = counterpart(url, seen, self.sites[1 - side])
        return There(1 - side, *found) if found else None

    def compare(
        self, url: str, twins: list[str], look: Callable[[str], Finding | None], now: float, claims: Collection[str]
    ) -> list[Trial]:
        """Compare the page at a URL with its counterpart on the other host, and return the evidence.

        `twins`: other URLs of its host with the same text. A text with twins is only the frame of the pages. It proves
        no difference, and earlier differences of the twins are retracted. See `Hosts.learn` for the other arguments.
        """
        trials = (self.trials.get(there.place.path) for there in map(self.across, twins) if there)
        wrong = (trial for trial in trials if trial and trial.outcome == Outcome.DIFFERENT)
        rows = [trial._replace(outcome=Outcome.UNKNOWN, seen=now) for trial in wrong]
        there = self.across(url)
        found = look(there.url) if there else None
        if there and found and not (twins and found.outcome is Outcome.DIFFERENT):
            claimed, other = there.url in claims, self.sites[there.side]
            first = other if claimed else found.first or other
            holder = self.sites.index(first) if first in self.sites else NOBODY
            pages = self.sites, *self.shape, there.place.path
            rows.append(Trial(*pages, found.outcome, found.content, there.place.branch, holder, now, claimed))
        return rows

    def add(self, rows: Iterable[Trial]) -> bool:
        """Add trials, sorted oldest first. Each replaces the earlier one of its path; an UNKNOWN trial only removes it.

        Return whether the rule came into force or was dropped.
        """
        for row in rows:
            self.trials.pop(row.path, None)
            if row.outcome != Outcome.UNKNOWN:  # equal values are kept in memory once
                self.trials[row.path] = row._replace(sites=self.sites, **self.shape._asdict())
            if len(self.trials) > WINDOW:
                del self.trials[next(iter(self.trials))]
        trials, before = self.trials.values(), self.in_force
        same = {t.content: t for t in trials if t.outcome == Outcome.SAME}
        near = {t.content for t in trials if t.outcome == Outcome.NEAR}
        different = sum(t.outcome == Outcome.DIFFERENT for t in trials)
        self.tally = Tally(len(same), len(near), different, sum(t.claimed for t in same.values()))
        self.confidence = confidence(self.tally)
        self.confirmed = max((t.seen for t in same.values()), default=-math.inf)
        self._branches = Counter(t.branch for t in same.values())
        self.in_force = self.confidence >= BOUND
        return self.in_force != before

    def covers(self, place: Place) -> bool:
        """Return whether the evidence covers the directory of a place. Two hosts may share only some directories.

        If enough directories have equal pages, the evidence covers all directories.
        """
        return self._branches[place.branch] >= BRANCH or len(self._branches) >= BRANCHES

    def original(self) -> int | None:
        """Return the host (0 or 1) that had a page first more often than the other host; None in a tie."""
        holders = Counter(trial.holder for trial in self.trials.values())
        return None if holders[0] == holders[1] else int(holders[1] > holders[0])


def confidence(tally: Tally) -> float:
    """Return a lower bound of the share of paths with equal content. The risk of a lower share is 5 %.

    The bound is the 5 % quantile of the Beta posterior under a uniform prior. For 23 equal pages and no others, the
    bound is .05 ** (1 / 24) = .883. Each different page counts as `PENALTY` failures. Near copies count as failures
    too, because two versions of one site have many near copies along with some different pages. But in a full window
    without a different page, near copies count as equal.
    """
    near = tally.near if tally.different or sum(tally) < WINDOW else 0
    same = tally.same + tally.claimed + tally.near - near
    return beta_quantile(RISK, 1 + same, 1 + near + PENALTY * tally.different)


@lru_cache(maxsize=4096)
def beta_quantile(risk: float, a: int, b: int) -> float:
    """Return the quantile `risk` of the Beta distribution with the integer parameters `a` and `b`.

    It is found by bisection: P(X ≤ x) is the chance of at least `a` successes in a + b - 1 trials of probability x.
    """
    return bisect_left(range(STEPS), risk, 1, key=lambda step: _beta_cdf(step / STEPS, a, b)) / STEPS


def _beta_cdf(x: float, a: int, b: int) -> float:
    if b > a:  # the sum has b terms, so the smaller parameter comes last
        return 1 - _beta_cdf(1 - x, b, a)
    trials, won, lost = a + b - 1, math.log(x), math.log1p(-x)
    ways = (math.lgamma(trials + 1) - math.lgamma(n + 1) - math.lgamma(trials - n + 1) for n in range(b))
    return sum(math.exp(each + (trials - n) * won + n * lost) for n, each in enumerate(ways))


_Key: TypeAlias = tuple[tuple[str, str], Shape]

PER_PAIR = 8  # the maximum number of relations of two hosts
PER_PAGE = 32  # the maximum number of relations of a host to check for a page, since each costs a lookup
TOTAL = 20_000  # the maximum number of relations
SITES = 1_000_000  # the maximum number of hosts for which the time of the first page is remembered
MAX_KNOWN = 16  # the maximum number of URLs of a document to consider; a page that is on many hosts proves little
CAUTION = 1 / 4  # the share of URLs to fetch in spite of a rule is 1 - confidence, times this


class Finding(NamedTuple):
    """The result of comparing a fetched document with the document held at another URL."""

    outcome: Outcome
    content: int  # an id of the held document, below 2 ** 64 and equal in every process
    first: str = ""  # the host that gave the held document first; "" for the host of the other URL


class Counterpart(NamedTuple):
    """A URL on another host that has the same content according to a rule."""

    url: str  # the canonical form, for lookups; do not request it
    relation: Relation
    is_original: bool
    """True if the host of `url` had a page first more often than the other host, and was itself first seen no later. So
    a host that copies a site later never replaces the original host."""

    @property
    def recheck(self) -> float:
        """The share of the rule's URLs to fetch in spite of the rule: the less evidence, the larger."""
        return (1 - self.relation.confidence) * CAUTION


class Hosts:
    """Learns from fetched documents which hosts mirror each other.

    Call `counterparts` only for unknown URLs: what is known of a URL takes precedence over a rule.
    """

    def __init__(self) -> None:
        self._relations: dict[_Key, Relation] = {}
        self._by_site: dict[str, list[Relation]] = {}
        self._met: dict[str, float] = {}

    def learn(
        self,
        url: str,
        known: Collection[str],
        look: Callable[[str], Finding | None],
        now: float,
        *,
        claimed: Iterable[str] = (),
    ) -> tuple[list[Trial], list[Relation]]:
        """Learn from a document that was fetched at `url`. Return the evidence to store, and the relations whose rules
        came into force or were dropped.

        `known`: other URLs that returned this document. `look`: a function that compares the document with the document
        held at a URL. It returns None if no document is held there, or the texts are too short. `now`: seconds since
        the epoch. `claimed`: the canonical URLs that the page itself names. Such a URL proves nothing alone, but equal
        content at it counts twice.
        """
        own = site(url)
        if not known and own not in self._by_site:  # as for most documents
            return [], []
        itself = canonical_url(url)
        elsewhere = ((other, site(other)) for other in known if canonical_url(other) != itself)
        others = dict(islice((each for each in elsewhere if each[1]), MAX_KNOWN))
        twins = [other for other, name in others.items() if name == own]
        for other, name in others.items():
            if name != own:
                self._suspect((own, url), (name, other))
        claims = frozenset(map(canonical_url, claimed))
        rows: list[Trial] = []
        changed: list[Relation] = []
        for relation in self._busiest(own):
            found = relation.compare(url, twins, look, now, claims)
            rows += found
            if found and relation.add(found):
                changed.append(relation)
        return rows, changed

    def load(self, rows: Iterable[Trial]) -> None:
        """Load stored evidence, in any order. Loading a row twice changes nothing."""
        found: dict[_Key, list[Trial]] = {}
        for row in sorted(rows, key=lambda row: (row.seen, row.outcome)):  # retractions last
            found.setdefault((row.sites, Shape(row.prefixes, row.endings)), []).append(row)
        for key, trials in found.items():
            self._relation(*key).add(trials)

    def dump(self) -> list[Trial]:
        """Return all evidence, oldest first."""
        rows = (row for relation in self.relations() for row in relation.trials.values())
        return sorted(rows, key=lambda row: row.seen)

    def counterparts(self, url: str, since: float = -math.inf) -> list[Counterpart]:
        """Return the counterparts of a URL by the rules in force, sorted by descending confidence.

        Rules that were last confirmed before `since`, in seconds since the epoch, are left out.
        """
        fresh = (r for r in self._busiest(site(url)) if r.in_force and r.confirmed >= since)
        found = [
            Counterpart(there.url, relation, self._leads(relation, there.side))
            for relation in fresh
            if (there := relation.across(url)) and relation.covers(there.place)
        ]
        return sorted(found, key=lambda counterpart: -counterpart.relation.confidence)

    def _leads(self, relation: Relation, side: int) -> bool:
        """Return whether the host `side` is the original of the other one; see `Counterpart.is_original`."""
        first, other = (self._met.get(relation.sites[each], math.inf) for each in (side, 1 - side))
        return relation.original() == side and first <= other

    def meet(self, name: str, when: float) -> bool:
        """Record that a host was seen at the time `when`. Return whether this is its earliest known time."""
        known = self._met.get(name)
        is_first = len(self._met) < SITES if known is None else when < known
        if is_first:
            self._met[name] = when
        return is_first

    def known(self, url: str) -> list[Trial]:
        """Return the evidence from comparisons of the page at a URL."""
        found = ((r.trials, r.across(url)) for r in self._by_site.get(site(url), ()))
        return [trials[there.place.path] for trials, there in found if there and there.place.path in trials]

    def retract(self, rows: Iterable[Trial]) -> list[Trial]:
        """Forget evidence. Return rows that must be stored, so that the evidence stays forgotten."""
        found = [row._replace(outcome=Outcome.UNKNOWN) for row in rows]
        self.load(found)
        return found

    def relations(self) -> list[Relation]:
        """Return all relations, whether or not they are rules in force, sorted by descending confidence."""
        return sorted(
            self._relations.values(), key=lambda relation: (-relation.confidence, relation.sites, relation.shape)
        )

    def _suspect(self, *pages: tuple[str, str]) -> None:
        """Relate two hosts if URLs of one document on them have a shape. Each of `pages` is a host and a URL on it."""
        (first, a), (second, b) = sorted(pages)
        if found := shape(a, b):
            self._relation((first, second), found)

    def _relation(self, sites: tuple[str, str], shape: Shape) -> Relation:
        key = (sites, shape)
        if key not in self._relations:
            self._make_room(sites)
            self._relations[key] = relation = Relation(sites, shape)
            for name in sites:
                self._by_site.setdefault(name, []).append(relation)
        return self._relations[key]

    def _make_room(self, sites: tuple[str, str]) -> None:
        """Drop relations with the least evidence: one of `PER_PAIR` of a pair, a tenth of `TOTAL` of all."""
        pair = [relation for relation in self._by_site.get(sites[0], ()) if relation.sites == sites]
        if len(pair) >= PER_PAIR:
            self._drop(min(pair, key=_evidence))
        if len(self._relations) >= TOTAL:  # drop several at once, since this must examine all of them
            for relation in sorted(self._relations.values(), key=_evidence)[: TOTAL // 10]:
                self._drop(relation)

    def _drop(self, relation: Relation) -> None:
        del self._relations[relation.sites, relation.shape]
        for name in relation.sites:
            self._by_site[name].remove(relation)
            if not self._by_site[name]:
                del self._by_site[name]

    def _busiest(self, own: str) -> list[Relation]:
        return nlargest(PER_PAGE, self._by_site.get(own, ()), key=_evidence)


def _evidence(relation: Relation) -> tuple[bool, int, float]:
    return relation.in_force, relation.tally.same, relation.confirmed
