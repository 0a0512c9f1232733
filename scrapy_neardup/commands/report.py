"""`scrapy neardup report`: write a report on a store as one HTML page."""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from scrapy.settings import BaseSettings

from ..deduplicator import Deduplicator
from ..feeds import Feeds, writing
from ..hosts.relations import Relation
from ..hosts.rules import Hosts
from ..items import item_document
from ..report.data import SNIPPET, HostMirror, RunSummary, build
from ..report.page import write_page
from ..settings import Config
from ..stats import plural
from ..text.shapes import named_site
from ..text.urls import canonical_url
from .mirrors import sides
from .options import add_json, add_store, check_apart, existing, print_outcome

EXAMPLES = """examples:
  scrapy neardup report -o report.html
  scrapy neardup report -o report.html --store neardup.sqlite
  scrapy neardup report -o report.html --texts items.jsonl dropped.jsonl

Open the page in a browser; the page needs no network. A store contains no texts. To see the beginning of each text,
name feeds with --texts: the feed of the items, and NEARDUP_DROPPED for the copies.
"""
FORMATS = (".html", ".htm")  # no .gz: browsers do not open .gz files from a disk


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("-o", "--output", required=True, metavar="FILE", help="write the page to FILE, .html or .htm")
    parser.add_argument("--texts", nargs="+", metavar="FEED", help="feeds with the texts of originals and copies")
    add_store(parser)
    add_json(parser)


def run(opts: argparse.Namespace, settings: BaseSettings) -> None:
    config = existing(opts, settings)
    check_apart(the_store=config.store, a_feed=opts.texts, the_report=opts.output)
    texts = _texts(opts.texts or (), config)
    with Deduplicator.from_config(config, run=None) as dedup, writing(opts.output, FORMATS, gzips=False) as file:
        runs = [RunSummary(run.id, run.writer, run.started, run.closed, run.stats) for run in dedup.store.runs()]
        report = build(dedup.store, _host_mirrors(dedup.store.hosts, config.mirror_hosts), runs, time.time(), texts)
        write_page(report, file)
    clusters, documents = len(report["clusters"]["degree"]), report["store"]["documents"]
    outcome = {"clusters": clusters, "documents": documents}
    print_outcome(outcome, f"{plural(clusters, 'cluster')} of {plural(documents, 'document')}", as_json=opts.json)


def _texts(paths: Sequence[str], config: Config) -> dict[str, str]:
    """Return the beginning of each text in these feeds, by the canonical URL of its row."""
    texts = {}
    for path in paths:
        feeds = Feeds([path])
        fields = replace(config, **feeds.kind.settings)
        for row in feeds.rows():
            if (document := item_document(row.data, fields)) and document.url:
                texts[canonical_url(document.url)] = document.text[:SNIPPET]
    return texts


def _host_mirrors(hosts: Hosts, named: Mapping[str, str]) -> Iterator[HostMirror]:
    yield from (_learned(relation) for relation in hosts.relations() if not relation.is_variant)
    for mirror, canonical in named.items():
        yield HostMirror(named_site(mirror), named_site(canonical), named=True)


def _learned(relation: Relation) -> HostMirror:
    tally, ends = relation.tally, sides(relation)
    mirror, original = (relation.sites[side] for side in ends)
    agreeing = tally.same + tally.near
    paths = " → ".join(relation.name(side).removeprefix(relation.sites[side]) or "/…" for side in ends)
    return HostMirror(
        mirror, original, relation.confidence, agreeing, tally.different, relation.in_force,
        paths="" if paths == "/… → /…" else paths,
    )  # fmt: skip
