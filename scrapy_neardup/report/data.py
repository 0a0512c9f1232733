"""Collect the data of a report as plain JSON values."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple, TypeAlias
from urllib.parse import urlsplit

from ..progress import watched
from ..signature import Evidence, Link, Signature
from ..store import Store
from ..text.urls import canonical_url
from .columns import (
    IN_FORCE,
    NAMED,
    NO_RULE,
    NOT_IN_FORCE,
    UNKNOWN,
    ClusterRow,
    EdgeRow,
    EvidenceRow,
    MemberRow,
    RunRow,
    Strings,
    columns,
    rate,
)

Report: TypeAlias = dict[str, Any]
"""The names that the scripts of the page read."""

NONE_LEARNED = (NO_RULE, UNKNOWN, UNKNOWN, UNKNOWN)
MOST_EDGES = 10_000  # nobody reads more, and a crawl of the web has very many

# Names and passwords of users in a URL are left out: reports are passed on.
_URL = re.compile(r"(https?://)(?:[^/?#]*@)?([^/?#]*)(.*)", re.IGNORECASE | re.DOTALL)


class HostMirror(NamedTuple):
    """What was learned of two hosts, or what the settings say of them."""

    mirror: str
    """A host, with its port where that is not the default."""
    canonical: str
    confidence: float = 0.0
    agreeing: int = 0
    """Pages that were the same on both."""
    disagreeing: int = 0
    in_force: bool = True
    named: bool = False
    """Whether it is a rule of the user's own: then the counts mean nothing."""


class RunSummary(NamedTuple):
    """What a run came to."""

    id: str
    started: float
    """Seconds since the epoch."""
    closed: float | None
    """None where it never closed, or not yet."""
    stats: Mapping[str, int]
    """By their names in Scrapy's stats, with or without `neardup/`."""


def build(store: Store, hosts: Iterable[HostMirror], runs: Iterable[RunSummary], now: float) -> Report:
    """Gather what a report made at `now`, in seconds since the epoch, shows of a store."""
    clusters = Clusters(now)
    found = store.documents.repeated()
    for signature in watched(found, "clusters", len(found)):
        clusters.add(signature, (link for link in store.links(signature) if link.mirror))
    return {
        "made": int(now),
        # Of a path or an address its last part: what stands before is nobody else's business.
        "store": {"name": re.split(r"[/\\]", str(store.describe()["store"]))[-1], "documents": len(store)},
        **clusters.dump(),
        **_edges(clusters.pairs(), hosts),
        "runs": columns(RunRow, [_run(run) for run in sorted(runs, key=lambda run: run.started)]),
    }


class Clusters:
    """Takes in clusters one after another."""

    def __init__(self, now: float) -> None:
        self._now = now
        self._origins, self._kinds, self._detectors = Strings(), Strings(), Strings()
        self._clusters: list[ClusterRow] = []
        self._members: list[MemberRow] = []
        self._evidence: list[EvidenceRow] = []
        self._pairs: Counter[tuple[int, int]] = Counter()

    def add(self, signature: Signature, mirrors: Iterable[Link]) -> None:
        """Add a document and the links to its mirrors."""
        origin, path = self._split(signature.url or "")
        before = len(self._members)
        for link in mirrors:
            member = self._member(link, path)
            self._members.append(member)
            self._evidence.append(self._found(link.evidence) if link.evidence else EvidenceRow())
            self._pairs[member.origin, origin] += 1
        listed = len(self._members) - before
        self._clusters.append(ClusterRow(origin, path, signature.repeats, listed, self._age(signature.first_seen)))

    def pairs(self) -> Counter[tuple[str, str]]:
        """Count the mirrors by their host and the canonical's."""
        hosts = [_host(origin) for origin in self._origins.all()]
        found: Counter[tuple[str, str]] = Counter()
        for (mirror, canonical), urls in self._pairs.items():
            if hosts[mirror] and hosts[canonical]:
                found[hosts[mirror], hosts[canonical]] += urls
        return found

    def dump(self) -> Report:
        """Return the columns, and the strings that they name."""
        return {
            "origins": self._origins.all(),
            "kinds": self._kinds.all(),
            "detectors": self._detectors.all(),
            "clusters": columns(ClusterRow, self._clusters),
            "members": {**columns(MemberRow, self._members), **columns(EvidenceRow, self._evidence)},
        }

    def _member(self, link: Link, canonical: str) -> MemberRow:
        origin, path = self._split(link.url)
        return MemberRow(origin, 0 if path == canonical else path, self._age(link.seen), link.size)

    def _found(self, evidence: Evidence) -> EvidenceRow:
        return EvidenceRow(
            self._kinds.number(evidence.kind) if evidence.kind else UNKNOWN,
            self._detectors.number(evidence.detector),
            UNKNOWN if evidence.hamming is None else evidence.hamming,
            rate(evidence.resemblance),
            rate(evidence.containment),
            rate(evidence.length_ratio),
        )

    def _split(self, url: str) -> tuple[int, str]:
        """Return the number of scheme and host, and what follows; an empty origin where there is no host."""
        parts = _URL.fullmatch(url)
        return self._origins.number(parts[1] + parts[2] if parts else ""), parts[3] if parts else url

    def _age(self, seconds: float) -> int:
        return int(self._now - seconds)


def _host(origin: str) -> str:
    """Return the host, with its port where that is not the default; "" where there is none."""
    try:
        return urlsplit(canonical_url(origin)).netloc
    except ValueError:  # a broken IPv6 address
        return ""


def _edges(pairs: Counter[tuple[str, str]], known: Iterable[HostMirror]) -> Report:
    """Return the hosts, and which of them mirror which: by rules, and by no more than the mirrors counted."""
    # Two hosts may correspond in several ways; the surest one is shown.
    rules = {(rule.mirror, rule.canonical): _rule(rule) for rule in sorted(known, key=_rule)}
    found = {pair: rules.get(pair, NONE_LEARNED) for pair in {**rules, **pairs}}
    strongest = sorted(found, key=lambda pair: (found[pair], pairs[pair]), reverse=True)
    hosts = Strings()
    edges = [
        EdgeRow(hosts.number(pair[0]), hosts.number(pair[1]), pairs[pair], *found[pair])
        for pair in strongest[:MOST_EDGES]
    ]
    return {"pairs": len(strongest), "hosts": hosts.all(), "edges": columns(EdgeRow, edges)}


def _rule(rule: HostMirror) -> tuple[int, int, int, int]:
    if rule.named:
        return NAMED, UNKNOWN, UNKNOWN, UNKNOWN
    state = IN_FORCE if rule.in_force else NOT_IN_FORCE
    return state, rate(rule.confidence), rule.agreeing, rule.disagreeing


def _run(run: RunSummary) -> RunRow:
    stats = {name.removeprefix("neardup/"): value for name, value in run.stats.items()}
    names = ("documents", "duplicates", "requests/skipped", "dead_links/rescued", "bytes_saved")
    closed = UNKNOWN if run.closed is None else int(run.closed)
    return RunRow(run.id, int(run.started), closed, *(int(stats.get(name, 0)) for name in names))
