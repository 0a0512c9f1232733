"""Learn which hosts mirror each other, and predict the counterpart of a URL. No I/O, no clock.

Bharat, Broder, Dean, Henzinger 2000, "A comparison of techniques to find mirrored hosts on the WWW": two hosts mirror
each other if most paths that are valid on one are valid on the other, and give similar content (section 2).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from heapq import nlargest
from itertools import islice
from typing import NamedTuple, TypeAlias

from ..text.shapes import Shape, shape, site
from ..text.url_classes import difference
from ..text.urls import canonical_url
from .relations import BOUND, NOBODY, WARM_UP, Outcome, Relation, Row, Trial
from .variants import ClassFinding, Variant

_Key: TypeAlias = tuple[tuple[str, str], Shape]

PER_PAIR = 8  # the maximum number of relations of two hosts
PER_PAGE = 32  # the maximum number of relations of a host to check for a page, since each costs a lookup
TOTAL = 20_000  # the maximum number of relations
SITES = 1_000_000  # the maximum number of hosts for which the time of the first page is remembered
MAX_KNOWN = 16  # the maximum number of URLs of a document to consider; a page that is on many hosts proves little
CAUTION = 1 / 4  # the share of URLs to fetch in spite of a rule is this part of 1 - confidence


class Finding(NamedTuple):
    """The result of comparing a fetched document with the document held at another URL."""

    outcome: Outcome
    content: int
    """An id of the held document, below 2 ** 64 and equal in every process."""
    first: str = ""
    """The host that gave the held document first; "" for the host of the URL itself."""


class Counterpart(NamedTuple):
    """A URL on another host that has the same content according to a rule."""

    url: str
    """The canonical form, for lookups. Do not request it."""
    confidence: float
    relation: Relation
    is_original: bool
    """True if the host of `url` had the page first at the majority of paths, and was itself seen first. A host that
    copies a site later must not replace the original host."""

    @property
    def recheck(self) -> float:
        """The share of such URLs to fetch in spite of the rule. The share is larger for a rule with less evidence."""
        return (1 - self.confidence) * CAUTION


class Change(NamedTuple):
    """A rule that came into force, or was dropped."""

    relation: Relation
    in_force: bool


class Hosts:
    """Learns from fetched documents which hosts mirror each other.

    The known state of a URL takes precedence over a rule, so call `counterparts` only for unknown URLs.
    """

    def __init__(self, *, bound: float = BOUND, warm_up: int = WARM_UP) -> None:
        self._bound = bound
        self._warm_up = warm_up
        self._by_site: dict[str, dict[_Key, Relation]] = {}
        self._count = 0
        self._met: dict[str, float] = {}

    def learn(
        self,
        url: str,
        known: Iterable[str],
        look: Callable[[str], Finding | None],
        now: float,
        *,
        claimed: Iterable[str] = (),
        hosts: bool = True,
        look_in_class: Callable[[str], ClassFinding | None] | None = None,
    ) -> tuple[list[Change], list[Row]]:
        """Learn from a document that was fetched at `url`. Return changed rules, and the evidence to store.

        `known`: other URLs that returned this document. `look`: a function that compares the document with the document
        held at a URL. It returns None if no document is held there, or the texts are too short. `now`: seconds since
        the epoch. `claimed`: the canonical URLs that the page itself names. Such a URL proves nothing alone, but equal
        content at it counts twice. `hosts`: whether to learn about other hosts. `look_in_class`: a function like
        `look`, needed to learn about variants of URLs.
        """
        own, itself = site(url), canonical_url(url)
        elsewhere = (other for other in known if site(other) and canonical_url(other) != itself)
        others = list(islice(elsewhere, MAX_KNOWN)) if own else []
        if not others and own not in self._by_site:  # as for most documents
            return [], []
        twins = [other for other in others if site(other) == own]
        for other in others:
            if hosts if site(other) != own else look_in_class:
                self._suspect(url, other)
        claims = frozenset(map(canonical_url, claimed))
        rows: list[Row] = []
        changes: list[Change] = []
        for relation in self._busiest(own):
            found: list[Row] = []
            if isinstance(relation, Variant):
                found += relation.compare(url, look_in_class, now) if look_in_class else ()
            elif hosts:
                found += _retractions(relation, own, twins, now)
                found += _trials(relation, url, look, now, claims, frame=bool(twins))
            rows += found
            changes += self._add_evidence(relation, found)
        return changes, rows

    def load(self, rows: Iterable[Row]) -> list[Change]:
        """Load stored evidence, in any order. Return changed rules. Loading a row twice changes nothing.

        Rows may come from JSON, with lists in place of tuples.
        """
        found: dict[_Key, list[Row]] = {}
        for row in sorted((Row(*row) for row in rows), key=lambda row: (row.seen, row.outcome)):  # retractions last
            (first, second), shape = row.sites, Shape(*map(_pair, (row.prefixes, row.endings)))
            found.setdefault(((first, second), shape), []).append(row)
        return [change for key, rows in found.items() for change in self._add_evidence(self._relation(*key), rows)]

    def dump(self) -> list[Row]:
        """Return all evidence, oldest first."""
        rows = (relation.row(*trial) for relation in self.relations() for trial in relation.trials.items())
        return sorted(rows, key=lambda row: row.seen)

    def counterparts(self, url: str, since: float = -math.inf) -> list[Counterpart]:
        """Return the counterparts of a URL by the rules in force, sorted by descending confidence.

        Rules that were last confirmed before `since`, in seconds since the epoch, are left out.
        """
        own = site(url)
        fresh = (r for r in self._busiest(own) if r.confirmed >= since and not r.is_variant)
        found = (self._apply(relation, url, own) for relation in fresh)
        return sorted(filter(None, found), key=lambda counterpart: -counterpart.confidence)

    def variants(self, url: str, since: float = -math.inf) -> Iterator[Counterpart]:
        """Yield the URLs under which the store may know the content of a URL by the rules on variants in force.

        `since` is as for `counterparts`.
        """
        for relation in self._variants(url):
            if relation.in_force and relation.confirmed >= since:
                for place in relation.places(url):
                    yield Counterpart(place, relation.confidence, relation, is_original=True)

    def classes(self, url: str) -> Iterator[str]:
        """Yield the names under which to record the document that a URL returned, as evidence on variants."""
        yield from filter(None, (relation.wanted(url) for relation in self._variants(url)))

    def _variants(self, url: str) -> Iterator[Variant]:
        return (relation for relation in self._busiest(site(url)) if isinstance(relation, Variant))

    def _apply(self, relation: Relation, url: str, own: str) -> Counterpart | None:
        side = relation.side(own)
        other, here = relation.counterpart(url, side), relation.place(url, side)
        if not (relation.in_force and other and here and relation.covers(here)):
            return None
        return Counterpart(other, relation.confidence, relation, self._leads(relation, 1 - side))

    def _leads(self, relation: Relation, side: int) -> bool:
        """Return whether host `side` had the page first at more paths than the other host, and was seen no later."""
        first, other = (self._met.get(relation.sites[each], math.inf) for each in (side, 1 - side))
        return relation.original() == side and first <= other

    def suspects(self, url: str) -> list[str]:
        """Return possible counterparts of a URL, on hosts that look like mirrors but have too little evidence yet."""
        own = site(url)
        hosts = [r for r in self._busiest(own) if r.is_promising and not r.is_variant]
        promising = [r for r in hosts if self._leads(r, 1 - r.side(own))]
        return [other for r in promising if (other := r.counterpart(url, r.side(own)))]

    def meet(self, url: str, when: float) -> bool:
        """Record that a page was seen at the time `when`. Return whether this is the earliest known time of its host.

        A host can't be a copy of a host that was first seen later.
        """
        return self.meet_site(site(url), when)

    def meet_site(self, name: str, when: float) -> bool:
        """Record that a host was seen at the time `when`. Return whether this is its earliest known time."""
        known = self._met.get(name)
        is_news = len(self._met) < SITES if known is None else when < known
        if is_news:
            self._met[name] = when
        return is_news

    def met(self) -> Iterable[tuple[str, float]]:
        """Return each host with the time of its first page."""
        return self._met.items()

    def known(self, url: str) -> list[Row]:
        """Return the evidence from comparisons of the page at a URL."""
        own = site(url)
        places = (
            (relation, relation.place(url, relation.side(own))) for relation in self._by_site.get(own, {}).values()
        )
        return [r.row(p.path, r.trials[p.path]) for r, p in places if p and p.path in r.trials]

    def retract(self, rows: Iterable[Row]) -> list[Row]:
        """Forget evidence. Return rows that must be stored, so that the evidence stays forgotten."""
        found = [row._replace(outcome=Outcome.UNKNOWN) for row in rows]
        self.load(found)
        return found

    def relations(self) -> list[Relation]:
        """Return all relations, sorted by descending confidence, even if their rules are not in force."""
        once = {key: relation for known in self._by_site.values() for key, relation in known.items()}
        return sorted(once.values(), key=lambda relation: (-relation.confidence, relation.sites, relation.shape))

    def __len__(self) -> int:
        """Return the number of relations."""
        return self._count

    def _add_evidence(self, relation: Relation, rows: list[Row]) -> list[Change]:
        if not rows:
            return []
        before = relation.in_force
        relation.add(rows)
        relation.in_force = relation.has_enough(self._bound, self._warm_up)
        return [Change(relation, relation.in_force)] if relation.in_force != before else []

    def _suspect(self, url: str, other: str) -> None:
        """Given two URLs of one document, add a relation of their hosts, or of their host, if the URLs correspond."""
        (first, a), (second, b) = sorted((site(u), u) for u in (url, other))
        if found := difference(a, b) if first == second else shape(a, b):
            self._relation((first, second), found)

    def _relation(self, sites: tuple[str, str], shape: Shape) -> Relation:
        key = (sites, shape)
        if known := self._by_site.get(sites[0], {}).get(key):
            return known
        self._make_room(sites)
        relation = Variant(sites, shape) if sites[0] == sites[1] else Relation(sites, shape)
        self._count += 1
        for name in sites:
            self._by_site.setdefault(name, {})[key] = relation
        return relation

    def _make_room(self, sites: tuple[str, str]) -> None:
        """Drop the relations with the least evidence if there are too many."""
        pair = [relation for relation in self._by_site.get(sites[0], {}).values() if relation.sites == sites]
        if len(pair) >= PER_PAIR:
            self._drop(min(pair, key=_evidence))
        if self._count >= TOTAL:  # drop several at once, since this must examine all of them
            for relation in sorted(self.relations(), key=_evidence)[: TOTAL // 10]:
                self._drop(relation)

    def _drop(self, relation: Relation) -> None:
        self._count -= 1
        for name in set(relation.sites):
            del self._by_site[name][relation.sites, relation.shape]
            if not self._by_site[name]:
                del self._by_site[name]

    def _busiest(self, own: str) -> list[Relation]:
        known = self._by_site.get(own, {}).values()
        return list(known) if len(known) <= PER_PAGE else nlargest(PER_PAGE, known, key=_evidence)


def _pair(names: Iterable[str]) -> tuple[str, str]:
    first, second = names
    return first, second


def _evidence(relation: Relation) -> tuple[bool, int, float]:
    return relation.in_force, relation.tally.same, relation.confirmed


def _retractions(relation: Relation, own: str, twins: list[str], now: float) -> Iterator[Row]:
    """Yield retractions of DIFFERENT outcomes for the `twins`, which are pages of this host with the same text.

    Such a text is only the frame of the pages, so it proves no difference.
    """
    side = relation.side(own)
    for here in filter(None, (relation.place(twin, side) for twin in twins)):
        trial = relation.trials.get(here.path)
        if trial and trial.outcome is Outcome.DIFFERENT:
            yield relation.row(here.path, trial._replace(outcome=Outcome.UNKNOWN, seen=now))


def _trials(
    relation: Relation,
    url: str,
    look: Callable[[str], Finding | None],
    now: float,
    claims: frozenset[str],
    *,
    frame: bool,
) -> Iterator[Row]:
    """Compare a document with the page at its counterpart in a relation, and yield the evidence.

    `frame`: whether the document repeats another page of its own host. If so, a difference proves nothing.
    """
    side = relation.side(site(url))
    other, here = relation.counterpart(url, side), relation.place(url, side)
    found = look(other) if other and here else None
    if found and here and not (frame and found.outcome is Outcome.DIFFERENT):
        claimed = other in claims
        first = relation.sites[1 - side] if claimed else found.first or relation.sites[1 - side]
        holder = relation.side(first) if first in relation.sites else NOBODY
        trial = Trial(found.outcome, found.content, here.branch, holder, now, claimed)
        yield relation.row(here.path, trial)
