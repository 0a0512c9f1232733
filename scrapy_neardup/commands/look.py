"""`scrapy neardup clusters`, `report`, `changes`, `mirrors`, `stats`: look into a store."""

from __future__ import annotations

import argparse
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from operator import attrgetter
from typing import Any, TypeAlias

from scrapy.settings import BaseSettings

from .. import report
from ..files import writing
from ..hosts import Hosts, Relation
from ..signature import Signature
from ..stats import plural, sized
from ..store import Store, StoreError, shown_address
from ..store.records import Run
from ..store.verification import verify
from ..text.urls import canonical_url
from ..verdict import named
from . import Moment, answer, fields
from .options import BadRows, check_apart, documents_of, held, whole, with_store

Cluster: TypeAlias = dict[str, Any]

ORDERS: Mapping[str, Callable[[Cluster], float]] = {
    "copies": lambda cluster: -cluster["copies"],
    "resemblance": lambda cluster: min((copy.get("resemblance", 1.0) for copy in cluster["members"]), default=1.0),
}


def add_clusters(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    text = "most copies first (the default), or least resemblance first; ties are sorted by URL"
    add("--sort", choices=ORDERS, default="copies", help=text)
    add("--limit", type=whole, default=20, metavar="N", help="list N clusters (default: 20; 0: all)")


def run_clusters(opts: argparse.Namespace, settings: BaseSettings) -> None:
    """List originals with their copies.

    example:
      scrapy neardup clusters --sort resemblance --limit 50

    Each copy has a kind, which compares its page with the page of the original. full: same content, same layout.
    content: same content, other layout. layout: part of the content, same layout. partial: part of the content, other
    layout. A dash means that the layout of one of the two pages is unknown.
    """
    with held(with_store(opts, settings)) as store:
        clusters = [_cluster(store, signature) for signature in store.repeated()]
    ordered = sorted(clusters, key=lambda cluster: (ORDERS[opts.sort](cluster), cluster["original"] or ""))
    listed = ordered[: opts.limit or None]
    lines = [line for cluster in listed for line in _lines(cluster)]
    answer(opts, listed, [*lines, f"{len(listed)} of {plural(len(clusters), 'cluster')}"])


def _cluster(store: Store, signature: Signature) -> Cluster:
    return {
        "original": signature.url and named(signature.url, signature.label),
        "copies": signature.copy_count,
        "words": signature.sketch.tokens,
        "first_seen": Moment(signature.first_seen),
        "members": [
            {"url": copy.shown, "last_seen": Moment(copy.seen), **(copy.evidence._asdict() if copy.evidence else {})}
            for copy in filter(attrgetter("is_copy"), store.visits(signature))
        ],
    }


def _lines(cluster: Cluster) -> Iterable[str]:
    copies = plural(cluster["copies"], "copy")
    yield f"{cluster['original'] or 'without URL'}  ({copies}, {plural(cluster['words'], 'word')})"
    for member in cluster["members"]:
        resemblance, kind = member.get("resemblance"), member.get("kind") or "-"
        yield f"  {resemblance if resemblance is not None else '-':>6}  {kind:7}  {member['url']}"


def add_report(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("-o", "--output", required=True, metavar="FILE", help="write the page to FILE, .html or .htm")
    text = "feeds with the texts of originals and copies"
    parser.add_argument("--texts", nargs="+", default=[], metavar="FEED", help=text)


def run_report(opts: argparse.Namespace, settings: BaseSettings) -> int:
    """Write a report on a store as one HTML page.

    example:
      scrapy neardup report -o report.html --texts items.jsonl dropped.jsonl

    Open the page in a browser; the page needs no network. A store contains no texts. To see the beginning of each text,
    name feeds with --texts: the feed of the items, and NEARDUP_DROPPED for the copies.
    """
    config, bad = with_store(opts, settings), BadRows()
    check_apart(the_store=config.store, a_feed=opts.texts, the_report=opts.output)
    with held(config) as store, writing(opts.output, (".html", ".htm")) as file:
        made = report.Report(store, listed(store.hosts, config.mirror_hosts), time.time())
        wanted = set(map(canonical_url, made.urls()))
        found = documents_of(opts.texts, config, bad)
        texts = {url: " ".join(each.text[: 2 * report.LONGEST].split()) for url, each in found if url in wanted}
        file.write(made.page(texts))
    said = f"{plural(made.clusters, 'cluster')} of {plural(made.documents, 'document')}"
    return bad.answer(opts, {"clusters": made.clusters, "documents": made.documents}, said)


def add_changes(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--spider", metavar="NAME", help="the last crawl of this spider (default: of any spider)")


def run_changes(opts: argparse.Namespace, settings: BaseSettings) -> None:
    """List the pages that are new, changed, moved or gone.

    example:
      scrapy neardup changes --store neardup.sqlite

    The last crawl is compared with the last full crawl of the same spider. new: a new URL with new content. changed:
    other content than at the previous visit of the URL. The line has the resemblance of the texts, or `fields` if they
    are the same, and the names of changed fields. moved: known content at a new URL, while no earlier URL has it now.
    gone: content of the previous crawl that no URL has now. Moved and gone pages are listed only for a crawl that
    finished and left out no pages.
    """
    with held(with_store(opts, settings)) as store:
        run = report.last_crawl(store, opts.spider)
        if opts.spider and not run:
            raise StoreError(f"store {store.backend.name!r} has no run of the spider {opts.spider!r}; see stats --runs")
        found = list(report.changes(store, run)) if run else []
    found.sort(key=lambda change: (report.KINDS.index(change.kind), change.url))
    lines = [*map(_change_line, found), report.in_words(report.counted(found, report.KINDS))]
    is_full = run and report.kinds_of(run) == report.KINDS
    said = "" if is_full else f"{report.NOT_FULL}." if run else "The store has seen no crawl."
    answer(opts, [change._asdict() for change in found], lines, said)


def _change_line(change: report.Change) -> str:
    told = f"before: {change.former_url}" if change.former_url else ", ".join(change.fields)
    measured = "" if change.resemblance is None else "fields" if change.resemblance == 1 else change.resemblance
    return f"{change.kind:7}  {measured:6}  {change.url}{f'  ({told})' if told else ''}"


def run_mirrors(opts: argparse.Namespace, settings: BaseSettings) -> None:
    """List the hosts that mirror each other.

    example:
      scrapy neardup mirrors --store neardup.sqlite

    Each line has a mirror, → its original, and the evidence. The original is the host on which the pages were seen
    first. Confidence is a lower bound for the share of pages with the same content, at a risk of 5 %. The counts are of
    the last 200 pages at corresponding URLs. ↔ means that neither host was first; such a rule skips nothing.
    """
    config = with_store(opts, settings)
    with held(config) as store:
        found = listed(store.hosts, config.mirror_hosts)
    told = f"{plural(len(found), 'pair')} of hosts, {sum(pair['in_force'] for pair in found)} with a rule in force"
    answer(opts, found, [*map(_pair_line, found), told])


def listed(hosts: Hosts, mirror_hosts: Mapping[str, str]) -> list[dict[str, Any]]:
    """Return the pairs of NEARDUP_MIRROR_HOSTS, then those in the store by descending confidence, as dictionaries."""
    by_hand = {"in_force": True, "known_by": "NEARDUP_MIRROR_HOSTS"}
    rules = [{"mirror": mirror, "original": original, **by_hand} for mirror, original in mirror_hosts.items()]
    return [*rules, *map(described, hosts.relations())]


def described(relation: Relation) -> dict[str, Any]:
    """Return a pair of hosts, its counts and its confidence as a dictionary."""
    side = relation.original() or 0  # the place of the original among the two hosts; in a tie, the first
    return {
        "mirror": relation.name(1 - side),
        "original": relation.name(side),
        "in_force": relation.in_force,
        "tied": relation.original() is None,
        "known_by": "pages",
        "confidence": round(relation.confidence, 4),
        **relation.tally._asdict(),
        "confirmed": Moment(relation.confirmed) if relation.tally.same else None,
    }


def _pair_line(pair: Mapping[str, Any]) -> str:
    if "confidence" not in pair:
        return f"{pair['mirror']} → {pair['original']}  by {pair['known_by']}"
    counts = f"{pair['same']} same, {pair['near']} near, {pair['different']} different"
    force, arrow = "" if pair["in_force"] else ", no rule", "↔" if pair["tied"] else "→"
    return f"{pair['mirror']} {arrow} {pair['original']}  confidence {pair['confidence']:.2f}: {counts}{force}"


def add_stats(parser: argparse.ArgumentParser) -> None:
    add = parser.add_mutually_exclusive_group().add_argument
    add("--runs", action="store_true", help="list the runs, oldest first, with what they came to")
    add("--check", action="store_true", help="check every row, and list damage with its cost and a remedy")


def run_stats(opts: argparse.Namespace, settings: BaseSettings) -> None:
    """Count what a store holds, list its runs, or check its rows.

    example:
      scrapy neardup stats --store neardup.sqlite --json

    clusters: documents that have copies. copies: URLs that repeat a document. urls: URLs that the store knows.
    bytes: the size of the store on disk. bytes_server: the size of all data on the server. A run is closed, alive (a
    process has it open), or died. The next run forgets or keeps the documents of a dead run, as NEARDUP_UNCLEAN_RUN
    says. --check reads all namespaces, also while crawls run. The exit code is 2 if a row is damaged.
    """
    config = with_store(opts, settings)
    if opts.check:
        _check(opts, str(config.store))
        return
    with held(config) as store:
        if opts.runs:
            runs = _runs(store)
            answer(opts, runs, [*map(_run_line, runs), plural(len(runs), "run")])
        else:
            figures = _figures(store)
            readable = {name: sized(size) for name, size in figures.items() if name[:5] == "bytes"}
            answer(opts, figures, fields({**figures, **readable}))


def _figures(store: Store) -> dict[str, Any]:
    counts = [signature.copy_count for signature in store.signatures()]
    schemes = store.session.made["schemes"].keys() - {"sketch", "tokens"}
    return {
        "documents": len(store),
        "clusters": sum(map(bool, counts)),
        "copies": sum(counts),
        "detectors": ", ".join(sorted(schemes)),
        **store.describe(),
    }


def _runs(store: Store) -> list[dict[str, Any]]:
    dead = {run.id for run in died(store)}
    return [
        {
            "run": run.id,
            "writer": run.writer,
            "started": Moment(run.started),
            "state": _state(run, is_dead=run.id in dead),
            "closed": Moment(run.closed) if run.closed else None,
            "forgotten": _share_forgotten(run),
            "stats": dict(run.stats),
        }
        for run in store.runs()
    ]


def _state(run: Run, *, is_dead: bool) -> str:
    """Return the state of a run. A run that died counts as closed if a later run kept its documents."""
    if run.closed is not None and run.closed == run.paused:
        return "closed"
    return "died" if run.closed is not None or is_dead else "alive"  # closed, but not by itself: it was forgotten


def died(store: Store) -> list[Run]:
    """Return the dead runs, which were never closed and are open in no process."""
    found = {run.id for run in store.runs() if run.closed is None and not store.is_alive(run.id)}
    return [run for run in store.runs() if run.closed is None and run.id in found]  # a run may have closed meanwhile


def _share_forgotten(run: Run) -> str | None:
    """Return how much of a run was forgotten: "all", "part", or None for nothing."""
    reached = 0  # all rows up to this one are forgotten
    for first, last in sorted(run.forgotten):  # a row may be in several ranges
        reached = max(reached, last) if first <= reached + 1 else reached
    return None if not run.forgotten else "all" if reached >= run.sealed else "part"


def _run_line(run: Mapping[str, Any]) -> str:
    state = f"closed {run['closed']}" if run["state"] == "closed" else run["state"]
    line = f"{run['run']}  {run['writer'] or '-':15}  started {run['started']}  {state:26}  {', '.join(_came_to(run))}"
    return line.rstrip()


def _came_to(run: Mapping[str, Any]) -> Iterator[str]:
    stats = Counter(run["stats"])
    if stats["audit"]:
        yield "audit"
    if stats["documents"]:
        yield f"{plural(stats['documents'], 'document')}, {plural(stats['duplicates'], 'duplicate')}"
    if stats["revisits"]:
        yield plural(stats["revisits"], "revisit")
    if stats["requests/skipped"]:
        yield f"{plural(stats['requests/skipped'], 'request')} saved"
    if stats["forgot/urls"]:
        yield f"forgot {plural(stats['forgot/documents'], 'document')} and {plural(stats['forgot/urls'], 'URL')}"
    if run["forgotten"]:
        yield "forgotten" if run["forgotten"] == "all" else "forgotten in part"


def _check(opts: argparse.Namespace, address: str) -> None:
    survey, store = verify(address), shown_address(address)
    found = survey.findings
    result = {"store": store, **survey.read, "whole": not found}
    told = (line for each in found for line in (each.what, f"  costs: {each.costs}", f"  to do: {each.to_do}"))
    answer(opts, {**result, "findings": [each._asdict() for each in found]}, [*told, *fields(result)])
    if found:
        counted = plural(len(found), "finding")
        raise StoreError(f"store {store!r} is damaged, see the list ({counted}); it was left as it is")
