"""`scrapy neardup mirrors`: list the rules on hosts, and export them."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping
from typing import Any

from scrapy.settings import BaseSettings

from ..feeds import check_name, writing
from ..hosts.rules import Hosts, Relation
from ..text.urls import Shape
from .options import add_json, add_store, open_existing, read_config
from .output import Moment, print_lines, print_outcome


def add_mirrors(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("--in-force", action="store_true", help="only pairs whose rule skips or redirects requests")
    text = "write the rules in force between equal paths to FILE, a .py file, as the setting NEARDUP_MIRROR_HOSTS"
    add("--export", metavar="FILE", help=text)
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
    if opts.export:
        check_name(opts.export, [".py"], gzips=False)
    with open_existing(opts, settings) as dedup:
        if opts.export:
            _export(dedup.store.hosts, named, opts)
            return
        found = listed(dedup.store.hosts, named)
    shown = [pair for pair in found if pair["in_force"] or not opts.in_force]
    told = f"{len(found)} pairs of hosts, {sum(pair['in_force'] for pair in found)} with a rule in force"
    print_lines([*map(_line, shown), told], shown, as_json=opts.json)


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
