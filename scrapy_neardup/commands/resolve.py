"""`scrapy neardup resolve`: list other URLs with the content of a URL."""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Mapping
from typing import Any

from scrapy.settings import BaseSettings

from ..feeds.json_text import json_text
from ..mirrors.advice import Alternative, Mirrors
from .options import add_json, add_store, open_existing, print_table, read_config
from .times import Moment

EXAMPLES = """examples:
  scrapy neardup resolve http://example.com/gone.html
  scrapy neardup resolve --store neardup.sqlite --json http://example.com/a.html http://example.com/b.html

The best URL comes first: the one with the latest day of a visit. Among URLs with the same day, preferred hosts come
first, then https, then shorter URLs. URLs that follow from rules on hosts, and were never visited, come last. Nothing
is fetched.
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("urls", nargs="+", metavar="URL", help="URLs, dead or not")
    add_store(parser)
    add_json(parser)


def run(opts: argparse.Namespace, settings: BaseSettings) -> None:
    with open_existing(opts, settings) as dedup:
        mirrors = Mirrors(dedup.store, read_config(opts, settings), dedup.matcher.reviews)
        found = [{"url": url, "alternatives": list(map(_described, mirrors.alternatives(url)))} for url in opts.urls]
    if opts.json:
        print(json_text(found, indent=2))
    else:
        for entry in found:
            print_table(*_lines(entry))


def _described(other: Alternative) -> dict[str, Any]:
    link = other.link
    return {
        "url": other.url,
        "known_by": other.known_by,
        "last_seen": Moment(link.seen) if link else None,
        "evidence": link.evidence._asdict() if link and link.evidence and link.is_copy else None,
        "confidence": None if other.confidence is None else round(other.confidence, 4),
    }


def _lines(entry: Mapping[str, Any]) -> Iterable[str]:
    yield entry["url"]
    for other in entry["alternatives"]:
        evidence = other["evidence"] or {}
        how_sure = evidence.get("resemblance", other["confidence"])
        sure = "" if how_sure is None else how_sure
        yield f"  {other['known_by']:9}  {other['last_seen'] or '':19}  {sure:6}  {other['url']}"
    if not entry["alternatives"]:
        yield "  no other URL with its content is known"
