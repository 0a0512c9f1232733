"""`scrapy neardup mirrors`: list the rules on hosts and on variants of URLs, and export them."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from scrapy.settings import BaseSettings

from ..feeds import check_name, writing
from ..feeds.json_text import json_text
from ..hosts.relations import Relation
from ..hosts.rules import Hosts
from ..stats import plural
from ..store import Store
from .options import add_json, add_store, open_existing, print_outcome, print_table, read_config
from .rule_files import FILES
from .times import Moment

EXAMPLES = """examples:
  scrapy neardup mirrors
  scrapy neardup mirrors --store neardup.sqlite --in-force --json
  scrapy neardup mirrors --export rules.json

Each line names a mirror and, after →, its original: the host on which the pages were seen first. Confidence is a lower
bound for the share of pages with the same content, at a risk of 5 %. The counts are of the last 200 pages at
corresponding URLs: same text, near copies, different text. ↔ means that neither host was first. Such a rule skips
nothing. A host with a part of its URLs, such as a.example/…?sid=…, stands for the URLs that have this part; after → are
the same URLs without it.
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--in-force", action="store_true", help="only pairs whose rule skips or redirects requests")
    text = "write the rules in force to FILE: .json for duplicate-url-discarder, .txt for robots.txt, .py for settings"
    parser.add_argument("--export", metavar="FILE", help=text)
    add_store(parser)
    add_json(parser)


def run(opts: argparse.Namespace, settings: BaseSettings) -> None:
    named = read_config(opts, settings).mirror_hosts
    if opts.export:
        check_name(opts.export, list(FILES), gzips=False)
    with open_existing(opts, settings) as dedup:
        if opts.export:
            _export(dedup.store, named, opts)
            return
        found = [*map(_named, named.items()), *learned(dedup.store.hosts)]
    shown = [pair for pair in found if pair["in_force"] or not opts.in_force]
    if opts.json:
        print(json_text(shown, indent=2))
    else:
        print_table(*map(_line, shown), *_totals(found))


def _export(store: Store, named: Mapping[str, str], opts: argparse.Namespace) -> None:
    text = FILES[Path(opts.export).suffix.lower()](store, named)
    with writing(opts.export, list(FILES), gzips=False) as file:
        file.write(text.encode())
    print_outcome({"file": opts.export, "bytes": len(text.encode())}, f"wrote {opts.export}", as_json=opts.json)


def _totals(found: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    variants = [pair["in_force"] for pair in found if pair.get("variants")]
    hosts = [pair["in_force"] for pair in found if not pair.get("variants")]
    yield f"{len(hosts)} pairs of hosts, {sum(hosts)} with a rule in force"
    if variants:
        yield f"{plural(len(variants), 'kind')} of variants, {sum(variants)} with a rule in force"


def _named(rule: tuple[str, str]) -> dict[str, Any]:
    return {"mirror": rule[0], "original": rule[1], "in_force": True, "known_by": "NEARDUP_MIRROR_HOSTS"}


def learned(hosts: Hosts) -> Iterator[dict[str, Any]]:
    """Yield the description of each relation in the store, highest confidence first."""
    return map(described, hosts.relations())


def described(relation: Relation) -> dict[str, Any]:
    """Return the description of a pair of hosts, or of variants of URLs, with its counts and confidence."""
    mirror, original = sides(relation)
    return {
        "mirror": relation.name(mirror),
        "original": relation.name(original),
        "in_force": relation.in_force,
        "tied": relation.original() is None,
        "known_by": "pages",
        "variants": relation.is_variant,
        "confidence": round(relation.confidence, 4),
        **relation.tally._asdict(),
        "confirmed": Moment(relation.confirmed) if relation.tally.same else None,
    }


def sides(relation: Relation) -> tuple[int, int]:
    """Return the numbers of the mirror and of the original in a relation, 0 or 1. In a tie, host 0 is the original."""
    original = relation.original() or 0
    return 1 - original, original


def _line(pair: Mapping[str, Any]) -> str:
    force = "" if pair["in_force"] else ", no rule"
    if "confidence" not in pair:
        return f"{pair['mirror']} → {pair['original']}  by {pair['known_by']}"
    counts = f"{pair['same']} same, {pair['near']} near, {pair['different']} different"
    arrow = "↔" if pair["tied"] else "→"
    return f"{pair['mirror']} {arrow} {pair['original']}  confidence {pair['confidence']:.2f}: {counts}{force}"
