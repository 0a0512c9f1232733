"""`scrapy neardup report`: draw a store and its savings as one HTML page."""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator, Mapping

from scrapy.settings import BaseSettings

from ..deduplicator import Deduplicator
from ..feeds import writing
from ..mirrors.hosts import Hosts
from ..mirrors.relations import Relation
from ..report.data import HostMirror, RunSummary, build
from ..report.page import write_page
from ..stats import plural
from ..text.shapes import named_site
from .mirrors import sides
from .options import add_json, add_store, check_apart, existing, print_outcome

EXAMPLES = """examples:
  scrapy neardup report -o report.html
  scrapy neardup report -o report.html --store neardup.sqlite

Open the page in a browser; it needs no network.
"""
FORMATS = (".html", ".htm")  # no .gz: browsers do not open that from a disk


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("-o", "--output", required=True, metavar="FILE", help="the page: .html or .htm")
    add_store(parser)
    add_json(parser)


def run(opts: argparse.Namespace, settings: BaseSettings) -> None:
    config = existing(opts, settings)
    check_apart(the_store=config.store, the_report=opts.output)
    with Deduplicator.from_config(config, run=None) as dedup, writing(opts.output, FORMATS, gzips=False) as file:
        runs = [RunSummary(run.id, run.started, run.closed, run.stats) for run in dedup.store.runs()]
        report = build(dedup.store, _host_mirrors(dedup.store.hosts, config.mirror_hosts), runs, now=time.time())
        write_page(report, file)
    clusters, documents = len(report["clusters"]["degree"]), report["store"]["documents"]
    outcome = {"clusters": clusters, "documents": documents}
    print_outcome(outcome, f"{plural(clusters, 'cluster')} of {plural(documents, 'document')}", as_json=opts.json)


def _host_mirrors(hosts: Hosts, named: Mapping[str, str]) -> Iterator[HostMirror]:
    yield from map(_learned, hosts.relations())
    for mirror, canonical in named.items():
        yield HostMirror(named_site(mirror), named_site(canonical), named=True)


def _learned(relation: Relation) -> HostMirror:
    mirror, canonical = (relation.sites[side] for side in sides(relation))
    tally = relation.tally
    agreeing = tally.same + tally.near
    return HostMirror(mirror, canonical, relation.confidence, agreeing, tally.different, relation.in_force)
