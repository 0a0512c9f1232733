"""Collect the data of a report as plain JSON values."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple, TypeAlias
from urllib.parse import urlsplit

from ..progress import watched
from ..signature import Evidence, Signature, Visit
from ..stats import CHANGES
from ..store import Store
from ..text.urls import canonical_url
from .changes import KINDS, in_words
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
"""The data of a report, under the names that the scripts of the page use."""

NONE_LEARNED = (NO_RULE, UNKNOWN, UNKNOWN, UNKNOWN, "")
MOST_EDGES = 10_000  # the maximum number of edges in a report; a large crawl may have more, which nobody reads
SNIPPET = 240  # the number of characters of a text that are shown

# User names and passwords in URLs are left out, since reports are passed on.
_URL = re.compile(r"(https?://)(?:[^/?#]*@)?([^/?#]*)(.*)", re.IGNORECASE | re.DOTALL)


class HostMirror(NamedTuple):
    """A rule on two hosts, learned or from the settings."""

    mirror: str
    """A host, with its port unless that is the default."""
    original: str
    confidence: float = 0.0
    agreeing: int = 0
    """Pages with the same content on both."""
    disagreeing: int = 0
    in_force: bool = True
    named: bool = False
    """True if the rule is from the settings. If so, its counts have no meaning."""
    paths: str = ""
    """See `EdgeRow.paths`."""


class RunSummary(NamedTuple):
    """The outcome of a run."""

    id: str
    writer: str
    started: float
    """Seconds since the epoch."""
    closed: float | None
    """Seconds since the epoch; None if the run is not closed."""
    stats: Mapping[str, int]
    """Scrapy's stats by name, with or without `neardup/`."""


def build(
    store: Store,
    hosts: Iterable[HostMirror],
    runs: Iterable[RunSummary],
    now: float,
    texts: Mapping[str, str] | None = None,
) -> Report:
    """Collect the data of a report that is written at `now`, in seconds since the epoch.

    `texts` has the texts of pages by canonical URL. The report shows their beginnings.
    """
    clusters = Clusters(now, texts or {})
    found = store.repeated()
    for signature in watched(found, "clusters", len(found)):
        clusters.add(signature, (visit for visit in store.visits(signature) if visit.is_copy))
    return {
        "made": int(now),
        # Only the last part of a path or an address: the rest may be private.
        "store": {"name": re.split(r"[/\\]", str(store.describe()["store"]))[-1], "documents": len(store)},
        **clusters.dump(),
        **_edges(clusters.pairs(), hosts),
        "runs": columns(RunRow, [_run(run) for run in sorted(runs, key=lambda run: run.started)]),
    }


class Clusters:
    """Collects clusters one after another."""

    def __init__(self, now: float, texts: Mapping[str, str]) -> None:
        self._now = now
        self._texts = texts
        self._origins, self._kinds, self._detectors = Strings(), Strings(), Strings()
        self._clusters: list[ClusterRow] = []
        self._members: list[MemberRow] = []
        self._evidence: list[EvidenceRow] = []
        self._pairs: Counter[tuple[int, int]] = Counter()

    def add(self, signature: Signature, copies: Iterable[Visit]) -> None:
        """Add an original and the visits of its copies."""
        origin, path = self._split(signature.url or "")
        before = len(self._members)
        for visit in copies:
            member = self._member(visit, path)
            self._members.append(member)
            self._evidence.append(self._found(visit.evidence) if visit.evidence else EvidenceRow())
            self._pairs[member.origin, origin] += 1
        listed = len(self._members) - before
        age, snippet = self._age(signature.first_seen), self._snippet(signature.url)
        path += f" ({signature.label})" * bool(signature.label)
        self._clusters.append(ClusterRow(origin, path, signature.repeats, listed, age, snippet))

    def pairs(self) -> Counter[tuple[str, str]]:
        """Return the number of copies for each pair of hosts: the host of the copy, and the host of the original."""
        hosts = [_host(origin) for origin in self._origins.all()]
        found: Counter[tuple[str, str]] = Counter()
        for (mirror, original), urls in self._pairs.items():
            if hosts[mirror] and hosts[original]:
                found[hosts[mirror], hosts[original]] += urls
        return found

    def dump(self) -> Report:
        """Return the columns and their string tables."""
        return {
            "origins": self._origins.all(),
            "kinds": self._kinds.all(),
            "detectors": self._detectors.all(),
            "clusters": columns(ClusterRow, self._clusters),
            "members": {**columns(MemberRow, self._members), **columns(EvidenceRow, self._evidence)},
        }

    def _member(self, visit: Visit, original: str) -> MemberRow:
        origin, path = self._split(visit.shown)
        return MemberRow(
            origin, 0 if path == original else path, self._age(visit.seen), visit.size, self._snippet(visit.url)
        )

    def _snippet(self, url: str | None) -> str:
        return " ".join(self._texts.get(canonical_url(url), "")[:SNIPPET].split()) if url and self._texts else ""

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
        """Return the number of a URL's origin (scheme and host) and the rest of the URL. The origin may be ""."""
        parts = _URL.fullmatch(url)
        return self._origins.number(parts[1] + parts[2] if parts else ""), parts[3] if parts else url

    def _age(self, seconds: float) -> int:
        return int(self._now - seconds)


def _host(origin: str) -> str:
    """Return the host of an origin, with its port unless that is the default; "" if there is no host."""
    try:
        return urlsplit(canonical_url(origin)).netloc
    except ValueError:  # a broken IPv6 address
        return ""


def _edges(pairs: Counter[tuple[str, str]], known: Iterable[HostMirror]) -> Report:
    """Return the hosts and the edges between them. An edge is a rule, or a pair of hosts with copies but no rule."""
    # Two hosts may correspond in several ways. The surest way is shown.
    rules = {(rule.mirror, rule.original): _rule(rule) for rule in sorted(known, key=_rule)}
    found = {pair: rules.get(pair, NONE_LEARNED) for pair in {**rules, **pairs}}
    strongest = sorted(found, key=lambda pair: (found[pair], pairs[pair]), reverse=True)
    hosts = Strings()
    edges = [
        EdgeRow(hosts.number(pair[0]), hosts.number(pair[1]), pairs[pair], *found[pair])
        for pair in strongest[:MOST_EDGES]
    ]
    return {"pairs": len(strongest), "hosts": hosts.all(), "edges": columns(EdgeRow, edges)}


def _rule(rule: HostMirror) -> tuple[int, int, int, int, str]:
    if rule.named:
        return NAMED, UNKNOWN, UNKNOWN, UNKNOWN, ""
    state = IN_FORCE if rule.in_force else NOT_IN_FORCE
    return state, rate(rule.confidence), rule.agreeing, rule.disagreeing, rule.paths


def _run(run: RunSummary) -> RunRow:
    stats = {name.removeprefix("neardup/"): value for name, value in run.stats.items()}
    names = ("documents", "duplicates", "requests/skipped", "dead_links/rescued", "bytes_saved")
    closed = UNKNOWN if run.closed is None else int(run.closed)
    counts = {kind: int(stats[CHANGES + kind]) for kind in KINDS if CHANGES + kind in stats}
    changes = in_words(counts) if counts else ""
    return RunRow(run.id, run.writer, int(run.started), closed, changes, *(int(stats.get(name, 0)) for name in names))
