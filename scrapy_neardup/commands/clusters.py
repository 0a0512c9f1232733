"""`scrapy neardup clusters`: list originals with their copies."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable, Mapping
from operator import attrgetter
from typing import Any, TypeAlias

from scrapy.settings import BaseSettings

from ..signature import Signature
from ..stats import plural
from ..store import Store
from ..store.runs import is_of
from ..verdict import named
from .options import add_json, add_store, open_existing, whole
from .output import Moment, print_lines

Cluster: TypeAlias = dict[str, Any]


ORDERS: Mapping[str, Callable[[Cluster], float]] = {
    "copies": lambda cluster: -cluster["copies"],
    "resemblance": lambda cluster: min((copy.get("resemblance", 1.0) for copy in cluster["members"]), default=1.0),
    "words": lambda cluster: -cluster["words"],
}


def add_clusters(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("--host", metavar="H", help="only clusters with a URL of this host, named with or without port")
    text = "most copies first (the default), least resemblance first, or longest text first; ties are sorted by URL"
    add("--sort", choices=ORDERS, default="copies", help=text)
    add("--limit", type=whole(0), default=20, metavar="N", help="list N clusters (default: 20; 0: all)")
    add_store(parser)
    add_json(parser)


def run_clusters(opts: argparse.Namespace, settings: BaseSettings) -> None:
    """List originals with their copies.

    example:
      scrapy neardup clusters --host shop.example.com --sort resemblance

    Each copy has a kind, which compares its page with the page of the original. full: same content, same layout.
    content: same content, other layout. layout: part of the content, same layout. partial: part of the content, other
    layout. A dash means that the layout of one of the two pages is unknown.
    """
    with open_existing(opts, settings) as dedup:
        clusters = [_cluster(dedup.store, signature) for signature in dedup.store.repeated()]
    chosen = [each for each in clusters if opts.host is None or any(is_of(opts.host, url) for url in _urls(each))]
    listed = sorted(chosen, key=ORDERS[opts.sort])[: opts.limit or None]
    lines = [line for cluster in listed for line in _lines(cluster)]
    print_lines([*lines, f"{len(listed)} of {plural(len(clusters), 'cluster')}"], listed, as_json=opts.json)


def _urls(cluster: Cluster) -> list[str]:
    return [cluster["original"], *(copy["url"] for copy in cluster["members"])]


def _cluster(store: Store, signature: Signature) -> Cluster:
    return {
        "original": signature.url and named(signature.url, signature.label),
        "copies": signature.repeats,
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
