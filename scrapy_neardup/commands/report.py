"""`scrapy neardup report`: write a report on a store as one HTML page."""

from __future__ import annotations

import argparse
import time

from scrapy.settings import BaseSettings

from ..deduplicator import Deduplicator
from ..feeds import writing
from ..report.page import LONGEST, Report
from ..stats import plural
from ..text.urls import canonical_url
from .mirrors import listed
from .options import add_json, add_store, check_apart, documents_of, existing
from .output import print_outcome

FORMATS = (".html", ".htm")  # no .gz: browsers do not open .gz files from a disk


def add_report(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("-o", "--output", required=True, metavar="FILE", help="write the page to FILE, .html or .htm")
    parser.add_argument("--texts", nargs="+", metavar="FEED", help="feeds with the texts of originals and copies")
    add_store(parser)
    add_json(parser)


def run_report(opts: argparse.Namespace, settings: BaseSettings) -> None:
    """Write a report on a store as one HTML page.

    example:
      scrapy neardup report -o report.html --texts items.jsonl dropped.jsonl

    Open the page in a browser; the page needs no network. A store contains no texts. To see the beginning of each text,
    name feeds with --texts: the feed of the items, and NEARDUP_DROPPED for the copies.
    """
    config = existing(opts, settings)
    check_apart(the_store=config.store, a_feed=opts.texts, the_report=opts.output)
    with Deduplicator.from_config(config, run=None) as dedup, writing(opts.output, FORMATS, gzips=False) as file:
        report = Report(dedup.store, listed(dedup.store.hosts, config.mirror_hosts), time.time())
        wanted = set(map(canonical_url, report.urls()))
        found = documents_of(opts.texts or (), config)
        texts = {url: " ".join(each.text[: 2 * LONGEST].split()) for url, each in found if url in wanted}
        file.write(report.page(texts))
    outcome = {"clusters": report.clusters, "documents": report.documents}
    said = f"{plural(report.clusters, 'cluster')} of {plural(report.documents, 'document')}"
    print_outcome(outcome, said, as_json=opts.json)
