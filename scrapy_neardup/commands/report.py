"""`scrapy neardup report`: what a store holds and what it saved, as one HTML page."""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

from scrapy.settings import BaseSettings

from ..feeds import FeedError, writing
from ..index.relations import Relation
from ..report.data import HostMirror, RunSummary, build
from ..report.page import write_page
from .options import add_store, open_existing

EXAMPLES = """examples:
  scrapy neardup report -o report.html
  scrapy neardup report -o report.html --store neardup.sqlite

Open the page in a browser; it needs no network.
"""
FORMATS = (".html", ".htm")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("-o", "--output", required=True, metavar="FILE", help="the page: .html, also .html.gz")
    add_store(parser)


def run(opts: argparse.Namespace, settings: BaseSettings) -> None:
    if opts.store and Path(opts.store).absolute() == Path(opts.output).absolute():
        raise FeedError(f"{opts.output}: can't be both the store and the report")
    with open_existing(opts, settings) as dedup, writing(opts.output, FORMATS) as file:
        runs = [RunSummary(run.id, run.started, run.closed, run.stats) for run in dedup.store.runs()]
        report = build(dedup.store, map(_host_mirror, dedup.store.hosts.relations()), runs, now=time.time())
        write_page(report, file)
    print(f"{len(report['clusters']['degree'])} clusters of {report['store']['documents']} documents", file=sys.stderr)


def _host_mirror(relation: Relation) -> HostMirror:
    canonical = relation.canonical() or 0
    mirror, tally = relation.sites[1 - canonical], relation.tally
    agreeing = tally.same + tally.near
    return HostMirror(
        mirror, relation.sites[canonical], relation.confidence, agreeing, tally.different, relation.in_force
    )
