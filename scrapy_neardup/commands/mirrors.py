"""`scrapy neardup mirrors`: list the rules on hosts, and export them."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping
from typing import Any

from scrapy.settings import BaseSettings

from ..feeds import check_name, writing
from ..feeds.json_text import json_text
from ..hosts.relations import Relation
from ..hosts.rules import Hosts
from ..text.shapes import Shape
from .options import add_json, add_store, open_existing, print_outcome, print_table, read_config
from .times import Moment

EXAMPLES = """examples:
  scrapy neardup mirrors
  scrapy neardup mirrors --store neardup.sqlite --in-force --json
  scrapy neardup mirrors --export hosts.py

Each line names a mirror and, after →, its original: the host on which the pages were seen first. Confidence is a lower
bound for the share of pages with the same content, at a risk of 5 %. The counts are of the last 200 pages at
corresponding URLs: same text, near copies, different text. ↔ means that neither host was first. Such a rule skips
nothing.
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--in-force", action="store_true", help="only pairs whose rule skips or redirects requests")
    text = "write the rules in force between equal paths to FILE, a .py file, as the setting NEARDUP_MIRROR_HOSTS"
    parser.add_argument("--export", metavar="FILE", help=text)
    add_store(parser)
    add_json(parser)


def run(opts: argparse.Namespace, settings: BaseSettings) -> None:
    named = read_config(opts, settings).mirror_hosts
    if opts.export:
        check_name(opts.export, [".py"], gzips=False)
    with open_existing(opts, settings) as dedup:
        if opts.export:
            _export(dedup.store.hosts, named, opts)
            return
        found = listed(dedup.store.hosts, named)
    shown = [pair for pair in found if pair["in_force"] or not opts.in_force]
    if opts.json:
        print(json_text(shown, indent=2))
    else:
        in_force = sum(pair["in_force"] for pair in found)
        print_table(*map(_line, shown), f"{len(found)} pairs of hosts, {in_force} with a rule in force")


def _export(hosts: Hosts, named: Mapping[str, str], opts: argparse.Namespace) -> None:
    pairs = {**dict(_equal(hosts)), **named}
    lines = "".join(f"    {mirror!r}: {original!r},\n" for mirror, original in sorted(pairs.items()))
    text = f"NEARDUP_MIRROR_HOSTS = {{\n{lines}}}\n"
    with writing(opts.export, [".py"], gzips=False) as file:
        file.write(text.encode())
    print_outcome({"file": opts.export, "bytes": len(text.encode())}, f"wrote {opts.export}", as_json=opts.json)


def _equal(hosts: Hosts) -> Iterator[tuple[str, str]]:
    """Yield each mirror host with its original, if a rule in force says that they have equal paths."""
    for relation in hosts.relations():
        original = relation.original()
        if relation.in_force and original is not None and relation.shape == Shape():
            yield relation.sites[1 - original], relation.sites[original]


def _named(rule: tuple[str, str]) -> dict[str, Any]:
    return {"mirror": rule[0], "original": rule[1], "in_force": True, "known_by": "NEARDUP_MIRROR_HOSTS"}


def listed(hosts: Hosts, named: Mapping[str, str]) -> list[dict[str, Any]]:
    """Return the descriptions of the rules of the settings, then of those in the store, highest confidence first."""
    return [*map(_named, named.items()), *map(described, hosts.relations())]


def described(relation: Relation) -> dict[str, Any]:
    """Return the description of a pair of hosts, with its counts and confidence."""
    mirror, original = sides(relation)
    return {
        "mirror": relation.name(mirror),
        "original": relation.name(original),
        "in_force": relation.in_force,
        "tied": relation.original() is None,
        "known_by": "pages",
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
