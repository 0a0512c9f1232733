"""Collect what a report shows of a store, and write it as one HTML page without scripts.

What grows with the store is counted, and of each list the beginning is shown, so that the page stays short. All
strings of a store are hostile: they go through `text` or `link`.
"""

from __future__ import annotations

import re
import time
from bisect import insort
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from html import escape
from importlib.resources import files
from string import Template
from typing import Any, TypeAlias

from w3lib.url import safe_url_string

from ..signature import Signature, Visit
from ..stats import CHANGES, plural, sized
from ..store import Store
from ..store.records import Run
from ..text.urls import canonical_url, named_site, site
from .changes import KINDS, NOT_FULL, changes, counted, in_words, kinds_of, last_crawl

MOST, COPIES = 50, 5  # rows of a list, copies of a cluster
LONGEST, LONGEST_LINK = 300, 2000  # characters of a string that are shown, and of a URL that is a link
SAVED = ("documents", "duplicates", "requests/skipped", "dead_links/rescued", "bytes_saved")
_LOGIN = re.compile(r"^(https?://)[^/?#]*@", re.IGNORECASE)

Cluster: TypeAlias = tuple[Signature, Sequence[Visit]]  # an original and copies, that of least resemblance first


class Report:
    """The content of a report at a time `now`, in seconds since the epoch. `rules` are those that `mirrors` lists."""

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
        self.copies += original.repeats
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
        """Return the page. `texts` has the beginnings of texts by canonical URL."""
        names = ("name", "made", "savings", "changes", "largest", "doubtful", "hosts")
        lists = [_clusters(clusters, self.clusters, texts) for clusters in (self.largest, self.doubtful)]
        parts = (text(self.name), _moment(self.now), _savings(self), _changes(self), *lists, _rules(self.hosts))
        template = Template(files(__package__).joinpath("page.html").read_text(encoding="utf-8"))
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
    """Return a value as HTML. Invisible characters, and those that turn a text around, are spelt out."""
    signs = str(value)
    signs = signs[:LONGEST] + "…" * (len(signs) > LONGEST)
    return escape("".join(sign if sign.isprintable() else ascii(sign)[1:-1] for sign in signs))


def link(url: str) -> str:
    """Return a URL without its login, as a link if it is one of the web. A URL with a label is none."""
    url, href = _LOGIN.sub(r"\1", url), ""
    if len(url) <= LONGEST_LINK and " " not in url:
        with suppress(ValueError):  # a broken IPv6 address, or a surrogate
            href = safe_url_string(url)
    is_web = len(href) <= LONGEST_LINK and href.lower().startswith(("http://", "https://"))
    return f'<a href="{escape(href)}" rel="noreferrer noopener">{text(url)}</a>' if is_web else text(url)


def table(caption: str, names: str, numbers: str, rows: Iterable[Sequence[str]]) -> str:
    """Return a table of cells that are HTML. Its columns are names, then numbers, both separated by commas."""
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
    rows = [(each.kind, link(each.url), link(each.former_url or "–"), _number(each.resemblance)) for each in found]
    seen = f"The last crawl, {text(report.crawl.id)}: {in_words(counted(report.changes, KINDS))}"
    note = "" if "gone" in kinds_of(report.crawl) else f". {NOT_FULL}"
    return table(f"{seen}; at most {MOST} of each kind{note}", "Change, URL, Former URL", "Resemblance", rows)


def _clusters(clusters: Sequence[Cluster], all: int, texts: Mapping[str, str]) -> str:
    parts = [f"<p>{_part(len(clusters), all, 'cluster')}</p>"]
    for original, copies in clusters:
        head = link(original.url or "without URL") + (f" ({text(original.label)})" if original.label else "")
        caption = f"{_part(len(copies), original.repeats, 'copy')}; first seen {_moment(original.first_seen)}"
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
