"""`scrapy neardup mirrors`: list the rules on hosts."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from typing import Any

from scrapy.settings import BaseSettings

from ..hosts import Hosts, Relation
from .options import add_json, add_store, open_existing, read_config
from .output import Moment, print_lines


def add_mirrors(parser: argparse.ArgumentParser) -> None:
    text = "only pairs whose rule skips or redirects requests"
    parser.add_argument("--in-force", action="store_true", help=text)
    add_store(parser)
    add_json(parser)


def run_mirrors(opts: argparse.Namespace, settings: BaseSettings) -> None:
    """List the hosts that mirror each other, with the evidence for each pair.

    example:
      scrapy neardup mirrors --in-force

    Each line names a mirror and, after →, its original: the host on which the pages were seen first. Confidence is a
    lower bound for the share of pages with the same content, at a risk of 5 %. The counts are of the last 200 pages at
    corresponding URLs: same text, near copies, different text. ↔ means that neither host was first. Such a rule skips
    nothing.
    """
    named = read_config(opts, settings).mirror_hosts
    with open_existing(opts, settings) as dedup:
        found = listed(dedup.store.hosts, named)
    shown = [pair for pair in found if pair["in_force"] or not opts.in_force]
    told = f"{len(found)} pairs of hosts, {sum(pair['in_force'] for pair in found)} with a rule in force"
    print_lines([*map(_line, shown), told], shown, as_json=opts.json)


def listed(hosts: Hosts, named: Mapping[str, str]) -> list[dict[str, Any]]:
    """Return the descriptions of the rules of the settings, then of those in the store, highest confidence first."""
    by_hand = {"in_force": True, "known_by": "NEARDUP_MIRROR_HOSTS"}
    rules = [{"mirror": mirror, "original": original, **by_hand} for mirror, original in named.items()]
    return [*rules, *map(described, hosts.relations())]


def described(relation: Relation) -> dict[str, Any]:
    """Return the description of a pair of hosts, with its counts and confidence."""
    original = relation.original() or 0  # in a tie, host 0
    return {
        "mirror": relation.name(1 - original),
        "original": relation.name(original),
        "in_force": relation.in_force,
        "tied": relation.original() is None,
        "known_by": "pages",
        "confidence": round(relation.confidence, 4),
        **relation.tally._asdict(),
        "confirmed": Moment(relation.confirmed) if relation.tally.same else None,
    }


def _line(pair: Mapping[str, Any]) -> str:
    if "confidence" not in pair:
        return f"{pair['mirror']} → {pair['original']}  by {pair['known_by']}"
    counts = f"{pair['same']} same, {pair['near']} near, {pair['different']} different"
    force, arrow = "" if pair["in_force"] else ", no rule", "↔" if pair["tied"] else "→"
    return f"{pair['mirror']} {arrow} {pair['original']}  confidence {pair['confidence']:.2f}: {counts}{force}"
