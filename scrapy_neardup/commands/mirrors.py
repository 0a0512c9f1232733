"""`scrapy neardup mirrors`: list the hosts that mirror each other, learned or named in the settings."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping
from typing import Any

from scrapy.settings import BaseSettings

from ..mirrors.hosts import Hosts
from ..mirrors.relations import Relation
from ..text.json_text import json_text
from .options import add_json, add_store, open_existing, print_table, read_config
from .times import Moment

EXAMPLES = """examples:
  scrapy neardup mirrors
  scrapy neardup mirrors --store neardup.sqlite --in-force --json

The canonical host is the one whose pages were held when the other's were fetched. Confidence: with a risk of 5 %, the
share of pages with the same content is lower. same, near, different: how many pages at corresponding URLs had the same
text, much of it, or another one; of the last 200. ↔: neither host was first; then nothing is skipped by the rule.
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--in-force", action="store_true", help="only pairs that are mirrors enough to save fetches")
    add_store(parser)
    add_json(parser)


def run(opts: argparse.Namespace, settings: BaseSettings) -> None:
    named = read_config(opts, settings).mirror_hosts
    with open_existing(opts, settings) as dedup:
        found = [*map(_named, named.items()), *learned(dedup.store.hosts)]
    shown = [pair for pair in found if pair["in_force"] or not opts.in_force]
    if opts.json:
        print(json_text(shown, indent=2))
    else:
        in_force = sum(pair["in_force"] for pair in found)
        print_table(*map(_line, shown), f"{len(found)} pairs of hosts, {in_force} with a rule in force")


def _named(rule: tuple[str, str]) -> dict[str, Any]:
    return {"mirror": rule[0], "canonical": rule[1], "in_force": True, "known_by": "NEARDUP_MIRROR_HOSTS"}


def learned(hosts: Hosts) -> Iterator[dict[str, Any]]:
    """Yield what was learned of each pair of hosts, the surest first."""
    return map(described, hosts.relations())


def described(relation: Relation) -> dict[str, Any]:
    """Return what was learned of a pair of hosts."""
    mirror, canonical = sides(relation)
    return {
        "mirror": _side(relation, mirror),
        "canonical": _side(relation, canonical),
        "in_force": relation.in_force,
        "tied": relation.canonical() is None,
        "known_by": "pages",
        "confidence": round(relation.confidence, 4),
        **relation.tally._asdict(),
        "confirmed": Moment(relation.confirmed) if relation.tally.same else None,
    }


def sides(relation: Relation) -> tuple[int, int]:
    """Return which of two hosts is taken for the mirror, and which for the canonical one: in a tie the first."""
    canonical = relation.canonical() or 0
    return 1 - canonical, canonical


def _side(relation: Relation, side: int) -> str:
    """Name a host with the prefix and the ending that its paths have."""
    prefix, ending = relation.shape.prefixes[side], relation.shape.endings[side]
    return relation.sites[side] + prefix + (f"/…{ending}" if prefix or any(relation.shape.endings) else "")


def _line(pair: Mapping[str, Any]) -> str:
    force = "" if pair["in_force"] else ", no rule"
    if "confidence" not in pair:
        return f"{pair['mirror']} → {pair['canonical']}  by {pair['known_by']}"
    counts = f"{pair['same']} same, {pair['near']} near, {pair['different']} different"
    arrow = "↔" if pair["tied"] else "→"
    return f"{pair['mirror']} {arrow} {pair['canonical']}  confidence {pair['confidence']:.2f}: {counts}{force}"
