"""`scrapy neardup clusters`: list the documents of a store that have copies, with their copies."""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Mapping
from typing import Any

from scrapy.settings import BaseSettings

from ..signature import Link, Signature
from ..store import Store
from ..text.json_text import json_text
from .options import add_json, add_store, open_existing, print_table, whole
from .times import Moment

EXAMPLES = """examples:
  scrapy neardup clusters
  scrapy neardup clusters --store neardup.sqlite --limit 1000 --json

The document with most mirrors comes first, those with as many by their URL. A document's mirror degree says how many
other URLs have its content, so it may serve as a signal for ranking. The kind of a mirror: content same (full, content)
or same in part (layout, partial), in the same layout (full, layout) or in another one.
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--limit", type=whole(0), default=20, metavar="N", help="list so many (default: 20; 0: all)")
    add_store(parser)
    add_json(parser)


def run(opts: argparse.Namespace, settings: BaseSettings) -> None:
    with open_existing(opts, settings) as dedup:
        found = dedup.store.documents.repeated()
        clusters = [_cluster(dedup.store, signature) for signature in found[: opts.limit or None]]
    if opts.json:
        print(json_text(clusters, indent=2))
    else:
        for cluster in clusters:
            print_table(*_lines(cluster))
        print(f"{len(clusters)} of {len(found)} clusters")


def _cluster(store: Store, signature: Signature) -> dict[str, Any]:
    return {
        "canonical": signature.url,
        "mirrors": signature.repeats,
        "first_seen": Moment(signature.first_seen),
        "members": [_member(link) for link in store.links(signature) if link.mirror],
    }


def _member(link: Link) -> dict[str, Any]:
    evidence = link.evidence._asdict() if link.evidence else {}
    return {"url": link.url, "last_seen": Moment(link.seen), **evidence}


def _lines(cluster: Mapping[str, Any]) -> Iterable[str]:
    count = cluster["mirrors"]
    yield f"{cluster['canonical'] or 'without URL'}  ({count} mirror{'s' * (count != 1)})"
    for member in cluster["members"]:
        resemblance, kind = member.get("resemblance"), member.get("kind") or "-"
        yield f"  {resemblance if resemblance is not None else '-':>6}  {kind:7}  {member['url']}"
