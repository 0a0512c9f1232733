"""Find the changes of a site that a run saw, and write a report on a store as one HTML page without scripts.

A store holds the last visit of each URL, with the document that the URL returned then, and the one that it returned
before. So a URL that changed in several runs is listed under the last of them. For each document, its last visit before
the run shows whether the document has moved or is gone. A URL that may return other content at each visit, such as a
temporary redirect, is left out. The own URL of an item from a list page is listed nevertheless.

To keep the page short, what grows with the store is only counted, and lists show only their beginning. Strings from a
store may be hostile: they enter the HTML only through `text` or `link`.
"""

from __future__ import annotations

import re
import time
from bisect import insort
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from html import escape
from importlib.resources import files
from operator import attrgetter
from string import Template
from typing import Any, NamedTuple, TypeAlias

from w3lib.url import safe_url_string

from .facts import counting, differing, name_of
from .matching.matcher import compare
from .signature import Signature, Visit
from .stats import CHANGES, plural, sized
from .store import Store
from .store.records import Run
from .store.visits import former
from .text.urls import canonical_url, named_site, site
from .verdict import named

SEEN = ("new", "changed")  # the kinds that any crawl can find
KINDS = (*SEEN, "moved", "gone")
FULL = "full"  # the stat of a run that finished and was to skip no revisits (NEARDUP_REVISIT = "skip")
NOT_FULL = "Moved and gone pages are unknown, since the crawl may have left out pages"
_LIMITED = ("requests/stopped", "store/unjudged")  # a run with one of these stats missed pages


class Change(NamedTuple):
    """A URL with new or changed content, or a document that has moved or is gone."""

    kind: str  # one of `KINDS`; docs/how-to/incremental.md explains them
    url: str
    former_url: str | None = None  # for moved content: its last URL before the run
    resemblance: float | None = None  # of changed content to the previous content; None if that is no longer held
    fields: Sequence[str] = ()  # for changed content: the names of the fields, other than texts, that differ


def last_crawl(store: Store, spider: str | None = None) -> Run | None:
    """Return the last run of a spider or, if `spider` is None, the last run that is no command; None without one."""
    crawls = [run for run in store.runs() if not run.writer.startswith("neardup ")]
    return next((run for run in reversed(crawls) if spider in (None, run.writer)), None)


def kinds_of(run: Run) -> tuple[str, ...]:
    """Return the kinds of changes that a run can find. Only a full crawl finds what moved and what is gone."""
    is_full = run.stats.get(FULL) and not any(run.stats.get(name) for name in _LIMITED)
    return KINDS if is_full else SEEN


def changes(store: Store, run: Run) -> Iterator[Change]:
    """Yield the changes that a run found, unsorted."""
    visits, kinds = _Visits(store, run), kinds_of(run)
    names = {name_of(name): name for each in store.runs() for name in each.fields}
    for visit in visits.changed:
        if before := former(visit):
            document, earlier = (store.document(each.target or 0) for each in (visit, before))
            found = compare(document.sketch, earlier.sketch).resemblance if document and earlier else None
            fields = sorted({*_differing(store, document, earlier, names)}) if document and earlier else []
            yield Change("changed", visit.url, resemblance=found and round(found, 4), fields=fields)
        elif visit.target in visits.own and store.session.run_at(visit.target or 0) == run.id and not visit.is_copy:
            yield Change("new", visit.url)
    if "moved" in kinds:
        yield from visits.moved()
    for name in visits.new_items:
        yield Change("new", name)
    if "gone" in kinds:
        full = [each.started for each in store.runs() if each.writer == run.writer and "gone" in kinds_of(each)]
        yield from visits.gone(max((started for started in full if started < run.started), default=float("inf")))


def _differing(store: Store, a: Signature, b: Signature, names: Mapping[int, str]) -> Iterator[str]:
    """Yield the names of the fields, other than texts and counters, in which two documents of one URL differ."""
    if a.title != b.title:
        yield "title"
    facts = differing(a.facts, b.facts) - counting(a.facts, b.facts, store.counters.of(a.url, a.facts))
    yield from (names[fact] for fact in facts if fact in names)


def counted(changes: Iterable[Change], kinds: Iterable[str]) -> dict[str, int]:
    counts = Counter(change.kind for change in changes)
    return {kind: counts[kind] for kind in kinds}


def in_words(counts: Mapping[str, int]) -> str:
    """Return numbers of changes as a phrase, such as "3 new, 1 gone"."""
    return ", ".join(f"{counts[kind]} {kind}" for kind in KINDS if counts.get(kind)) or "no changes"


class _Visits:
    """Sorts the last visits of all URLs by what they say of a run."""

    def __init__(self, store: Store, run: Run) -> None:
        self.changed: list[Visit] = []  # of URLs that the run saw for the first time, or with another document
        self.delivered: set[int] = set()  # the ids of the documents that any URL returned since the run began
        self.kept: set[int] = set()  # the ids of the documents that one URL returned in the run and at the visit before
        self.earlier: dict[int, Visit] = {}  # the last visit of each document by this spider before the run
        self.own: set[int] = set()  # the ids of the documents that their own URL returned at its last visit
        self.new_items: list[str] = []  # the names of the items that the run added, of pages with several items
        # Of such items that earlier runs of this spider added: id, time of the last delivery, name.
        self._items: list[tuple[int, float, str]] = []
        self._delivered_before: dict[int, float] = {}
        self._run, self._store = run, store
        self._writers = {each.id: each.writer for each in store.runs()}
        for visit in store.urls.all():
            if visit.signature is not None:
                self._read(replace(visit, signature=None), visit.signature)
        for document in store.signatures():
            if document.label and document.id not in self.own:
                self._read_item(document)

    def _read_item(self, document: Signature) -> None:
        name, added_by = named(document.url, document.label), self._store.run_of(document)
        if added_by == self._run.id:
            self.new_items.append(name)
        elif self._writers.get(added_by) == self._run.writer:
            seen = max(document.first_seen, self._delivered_before.get(document.id, 0.0))
            self._items.append((document.id, seen, name))

    def _read(self, visit: Visit, document: Signature) -> None:
        id = document.id
        if is_seen := visit.seen >= self._run.started:
            self.delivered.add(id)
        else:
            self._delivered_before[id] = max(visit.seen, self._delivered_before.get(id, 0.0))
        if visit.name or (visit.loose and not (visit.url == document.url or self._is_listed(document))):
            return
        if visit.url == document.url and not visit.is_copy:
            self.own.add(id)
        added_by, before = self._store.session.run_at(visit.at), former(visit)
        if is_seen and added_by == self._run.id and not (before and before.target == id):
            self.changed.append(visit)
        elif is_seen:
            self.kept.add(id)
        elif self._writers.get(added_by) == self._run.writer:
            self.earlier[id] = max(visit, self.earlier.get(id, visit), key=attrgetter("seen"))

    def _is_listed(self, document: Signature) -> bool:
        """Return whether a document is that of an item from a list page, and the item has its own URL."""
        own = self._store.resolve(document.url) if document.url else None
        return own is not None and own.loose and own.signature is document

    def moved(self) -> Iterator[Change]:
        """Yield the moved documents, each with the first of its new URLs.

        If the run skipped requests, a document whose former URL was a copy is left out: that URL may be among them.
        """
        settled = set(self.kept)
        for visit in sorted(self.changed, key=attrgetter("seen")):
            id = visit.target or 0
            if former(visit) is None and id in self.earlier and id not in settled:
                settled.add(id)
                last = self.earlier[id]
                if not (last.is_copy and self._run.stats.get("requests/skipped")):
                    yield Change("moved", visit.url, last.url)

    def gone(self, since: float) -> Iterator[Change]:
        """Yield the documents last seen between the previous full crawl, which began at `since`, and this run."""
        for id, last in self.earlier.items():
            if last.seen >= since and id not in self.delivered:
                yield Change("gone", last.url)
        for id, seen, name in self._items:
            if seen >= since and id not in self.delivered and id not in self.earlier:
                yield Change("gone", name)


MOST, COPIES = 50, 5  # the maximum rows of a list, and copies of a cluster
LONGEST, LONGEST_LINK = 300, 2000  # the maximum characters of a shown string, and of a URL that is a link
SAVED = ("documents", "duplicates", "requests/skipped", "dead_links/rescued", "bytes_saved")
_LOGIN = re.compile(r"^(https?://)[^/?#]*@", re.IGNORECASE)

Cluster: TypeAlias = tuple[Signature, Sequence[Visit]]  # an original, and copies by ascending resemblance


class Report:
    """The content of a report. `rules`: as `neardup mirrors` lists them. `now`: the time in seconds since the epoch."""

    def __init__(self, store: Store, rules: Sequence[Mapping[str, Any]], now: float) -> None:
        self.now, self.documents = now, len(store)
        self.name = re.split(r"[/\\]", str(store.describe()["store"]))[-1]  # the folders may be private
        self.runs = sorted(store.runs(), key=lambda run: run.started)
        self.crawl = last_crawl(store)
        self.changes = list(changes(store, self.crawl)) if self.crawl else []
        self.clusters = self.copies = self.bytes = 0
        self.largest: list[Cluster] = []
        self.doubtful: list[Cluster] = []  # each with its copy of least resemblance
        pairs: Counter[tuple[str, str]] = Counter()
        for original in store.repeated():  # those with most copies first
            copies = [visit for visit in store.visits(original) if visit.is_copy]
            self._add(original, sorted(copies, key=_resemblance))
            host = site(canonical_url(original.url or ""))
            pairs.update((site(canonical_url(visit.shown)), host) for visit in copies)
        known = {_hosts(rule) for rule in rules}
        others = [{"mirror": pair[0], "original": pair[1]} for pair in pairs if all(pair) and pair not in known]
        self.hosts = sorted([(rule, pairs[_hosts(rule)]) for rule in (*rules, *others)], key=_rank)

    def _add(self, original: Signature, copies: list[Visit]) -> None:
        self.clusters += 1
        self.copies += original.copy_count
        self.bytes += sum(visit.size for visit in copies)
        if len(self.largest) < MOST:
            self.largest.append((original, copies[:COPIES]))
        if copies and _resemblance(copies[0]) < 1:
            insort(self.doubtful, (original, copies[:1]), key=lambda cluster: _resemblance(cluster[1][0]))
            del self.doubtful[MOST:]

    def urls(self) -> Iterator[str]:
        """Yield the URLs whose texts the page can show."""
        for original, copies in (*self.largest, *self.doubtful):
            yield from (original.url or "", *(visit.url for visit in copies))

    def page(self, texts: Mapping[str, str]) -> bytes:
        """Return the report as an HTML page. `texts` has the beginnings of texts by canonical URL."""
        names = ("name", "made", "savings", "changes", "largest", "doubtful", "hosts")
        lists = [_clusters(clusters, self.clusters, texts) for clusters in (self.largest, self.doubtful)]
        parts = (text(self.name), _moment(self.now), _savings(self), _changes(self), *lists, _rules(self.hosts))
        template = Template(files(__package__).joinpath("report.html").read_text(encoding="utf-8"))
        return template.substitute(dict(zip(names, parts, strict=True))).encode()


def _resemblance(visit: Visit) -> float:
    return visit.evidence.resemblance if visit.evidence else 1.0


def _hosts(rule: Mapping[str, Any]) -> tuple[str, str]:
    mirror, original = (named_site(rule[side].partition("/")[0]) for side in ("mirror", "original"))
    return mirror, original


def _rank(row: tuple[Mapping[str, Any], int]) -> tuple[Any, ...]:
    rule, copies = row
    return not rule.get("in_force"), "known_by" not in rule, -rule.get("confidence", 1), -copies, rule["mirror"]


def text(value: object) -> str:
    """Return a value as HTML, cut to `LONGEST` characters. Characters that are not printable become escapes."""
    signs = str(value)
    signs = signs[:LONGEST] + "…" * (len(signs) > LONGEST)
    return escape("".join(sign if sign.isprintable() else ascii(sign)[1:-1] for sign in signs))


def link(url: str) -> str:
    """Return a URL, without its login, as HTML. A web address becomes a link; one with a label behind it does not."""
    url, href = _LOGIN.sub(r"\1", url), ""
    if len(url) <= LONGEST_LINK and " " not in url:
        with suppress(ValueError):  # a broken IPv6 address, or a surrogate
            href = safe_url_string(url)
    is_web = len(href) <= LONGEST_LINK and href.lower().startswith(("http://", "https://"))
    return f'<a href="{escape(href)}" rel="noreferrer noopener">{text(url)}</a>' if is_web else text(url)


def table(caption: str, names: str, numbers: str, rows: Iterable[Sequence[str]]) -> str:
    """Return an HTML table. `names`, `numbers`: the heads of the text and number columns. Cells must be HTML."""
    columns = [(name, "") for name in names.split(", ")] + [(name, ' class="number"') for name in numbers.split(", ")]
    head = "".join(f'<th scope="col"{kind}>{name}</th>' for name, kind in columns)
    lines = ("".join(f"<td{kind}>{cell}</td>" for cell, (_, kind) in zip(row, columns, strict=True)) for row in rows)
    body = "\n".join(f"<tr>{line}</tr>" for line in lines)
    inner = f"<table><caption>{caption}</caption><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
    return f'<div role="region" tabindex="0" aria-label="{caption}">{inner}</div>\n'


def _number(value: float | None) -> str:
    return "–" if value is None else f"{value:.3f}" if isinstance(value, float) else f"{value:,}"


def _part(shown: int, all: int, noun: str) -> str:
    return plural(all, noun) if shown == all else f"{shown} of {plural(all, noun)}, the rest is left out"


def _moment(seconds: float) -> str:
    with suppress(ValueError, OverflowError, OSError):
        return time.strftime("%Y-%m-%d %H:%M", time.localtime(seconds))
    return "–"


def _savings(report: Report) -> str:
    counts = {"Documents held": report.documents, "Clusters": report.clusters, "Copies": report.copies}
    told = {**{name: _number(count) for name, count in counts.items()}, "Size of the copies": sized(report.bytes)}
    totals = "".join(f"<div><dt>{name}</dt><dd>{value}</dd></div>" for name, value in told.items())
    charts = "".join(_chart(stat, report.runs) for stat in SAVED)
    rows = [(*_names(run), *(_saved(stat, [run]) for stat in SAVED)) for run in report.runs[: -MOST - 1 : -1]]
    caption = f"{_part(len(rows), len(report.runs), 'run')}, the newest first"
    names, numbers = "Run, Spider or command, Started, Closed, Changes", ", ".join(map(_title, SAVED))
    return f'<dl>{totals}</dl><div class="charts">{charts}</div>{table(caption, names, numbers, rows)}'


def _title(stat: str) -> str:
    return stat.replace("/", " ").replace("_", " ").capitalize()


def _saved(stat: str, runs: Sequence[Run]) -> str:
    total = sum(int(run.stats.get(stat, 0)) for run in runs)
    return sized(total) if stat == "bytes_saved" else _number(total)


def _chart(stat: str, runs: Sequence[Run]) -> str:
    values = [int(run.stats.get(stat, 0)) for run in runs[-MOST:]]
    tall = [value / max(*values, 1) for value in values]
    bars = "".join(f'<rect x="{n}" y="{1 - part:.3f}" width=".9" height="{part:.3f}"/>' for n, part in enumerate(tall))
    box = f'viewBox="0 0 {max(len(values), 10)} 1" preserveAspectRatio="none" aria-hidden="true"'  # a table follows
    return f"<figure><figcaption>{_title(stat)}: {_saved(stat, runs)}</figcaption><svg {box}>{bars}</svg></figure>"


def _names(run: Run) -> tuple[str, ...]:
    closed = "not closed" if run.closed is None else _moment(run.closed)
    kinds = {kind: int(run.stats[CHANGES + kind]) for kind in KINDS if CHANGES + kind in run.stats}
    return text(run.id), text(run.writer), _moment(run.started), closed, in_words(kinds) if kinds else "–"


def _changes(report: Report) -> str:
    if not report.crawl:
        return "<p>This store has seen no crawl.</p>"
    found = [each for kind in KINDS for each in sorted(each for each in report.changes if each.kind == kind)[:MOST]]
    told = [link(each.former_url) if each.former_url else text(", ".join(each.fields) or "–") for each in found]
    rows = [(each.kind, link(each.url), of, _number(each.resemblance)) for each, of in zip(found, told, strict=True)]
    seen = f"The last crawl, {text(report.crawl.id)}: {in_words(counted(report.changes, KINDS))}"
    note = "" if "gone" in kinds_of(report.crawl) else f". {NOT_FULL}"
    return table(f"{seen}; at most {MOST} of each kind{note}", "Change, URL, Former URL or fields", "Resemblance", rows)


def _clusters(clusters: Sequence[Cluster], all: int, texts: Mapping[str, str]) -> str:
    parts = [f"<p>{_part(len(clusters), all, 'cluster')}</p>"]
    for original, copies in clusters:
        head = link(original.url or "without URL") + (f" ({text(original.label)})" if original.label else "")
        caption = f"{_part(len(copies), original.copy_count, 'copy')}; first seen {_moment(original.first_seen)}"
        names, measures = "Copy, Kind, Detector, Seen", "Resemblance, Containment, Length ratio, Hamming, Size"
        told = _snippet(original.url, texts) + table(caption, names, measures, (_copy(copy, texts) for copy in copies))
        parts.append(f"<details open><summary><h3>{head}</h3></summary>{told}</details>\n")
    return "".join(parts)


def _copy(copy: Visit, texts: Mapping[str, str]) -> tuple[str, ...]:
    detector, hamming, resemblance, containment, ratio, kind = copy.evidence or [None] * 6
    names = (link(copy.shown) + _snippet(copy.url, texts), text(kind or "–"), text(detector or "–"))
    return *names, _moment(copy.seen), *map(_number, (resemblance, containment, ratio, hamming)), sized(copy.size)


def _snippet(url: str | None, texts: Mapping[str, str]) -> str:
    found = texts.get(canonical_url(url)) if url and texts else None
    return f'<p lang="" dir="auto">{text(found)}</p>' if found else ""


def _rules(hosts: Sequence[tuple[Mapping[str, Any], int]]) -> str:
    rows = []
    for rule, copies in hosts[:MOST]:
        state = "none" if "known_by" not in rule else "in force" if rule["in_force"] else "not in force"
        counts = (rule.get(name) for name in ("confidence", "same", "near", "different"))
        names = (text(rule["mirror"]), text(rule["original"]), state, text(rule.get("known_by", "–")))
        rows.append((*names, _number(copies), *map(_number, counts)))
    caption = f"{_part(len(rows), len(hosts), 'pair')}; the surest rules come first"
    return table(caption, "Mirror, Original, Rule, Known by", "Copies, Confidence, Same, Near, Different", rows)
