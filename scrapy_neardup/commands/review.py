"""`scrapy neardup review`: show drops to a person, least certain first, and keep the judgements."""

from __future__ import annotations

import argparse
import shutil
import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from scrapy.settings import BaseSettings

from ..feeds.json_text import json_text
from ..matching.evidence import Rule
from ..matching.reviews import DIFFERENT, SAME, Reviews, reviews_folder
from ..settings import Config, ConfigError
from ..stats import plural
from ..verdict import in_words
from .comparison import side_by_side
from .drops import Drop, Drops
from .feed_options import SHOWN, add_fields
from .options import add_json, add_store, existing_store, print_outcome, print_sentence, print_table
from .points import rule_points
from .streams import shown

EXAMPLES = """examples:
  scrapy neardup review dropped.jsonl items.jsonl
  scrapy neardup review in.jsonl duplicates.jsonl --store held.sqlite

Name the NEARDUP_DROPPED feed and the feed of the items; or the input of `scrapy neardup dedupe` and its --duplicates
file. Answers are kept in the folder NEARDUP_REVIEWED or, without this setting, in a folder beside the store. They form
a labelled set for `scrapy neardup evaluate` and `calibrate`. A judged pair is not shown again. If two pages are judged
different, neither is dropped again as a copy of the other.
"""
_QUESTION = "s(ame), n(ot the same), Enter: later, q(uit)? "
_LABELS = {"s": SAME, "n": DIFFERENT}
_LATER, _QUIT = "", "q"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("feeds", nargs="+", metavar="FEED", help="feeds with the dropped items and their originals")
    add_fields(parser)
    add_store(parser)
    add_json(parser)


def run(opts: argparse.Namespace, settings: BaseSettings) -> None:
    config = _config(opts, settings)
    reviews = Reviews(config)
    read = Drops(opts, config, reviews)
    drops = read.read()
    for line in read.missing[:SHOWN]:
        print(shown(line), file=sys.stderr)
    if opts.json:
        for drop in drops:
            print(json_text(_row(drop)))
        said = f"{plural(len(drops), 'drop')} to judge"
    else:
        same, different = _ask(drops, reviews, Rule.from_config(config))
        left = len(drops) - same - different
        said = (
            f"{same} the same, {different} not the same, {left} left" if drops else "no drops to judge in these feeds"
        )
    print_outcome({}, "; ".join([said, *_left_out(read)]), as_json=False)


def _config(opts: argparse.Namespace, settings: BaseSettings) -> Config:
    """Return the settings, with a folder for the answers. All namespaces of a store share this folder."""
    config = Config.from_settings(settings)
    if opts.store or not config.reviewed:
        config = replace(config, store=existing_store(opts, settings))
    if not reviews_folder(config):
        raise ConfigError("set NEARDUP_REVIEWED to a folder for the answers: a store on a server has none beside it")
    return config


def _ask(drops: Sequence[Drop], reviews: Reviews, rule: Rule) -> tuple[int, int]:
    """Show drops to a person. Return the number of pairs judged the same, and the number judged different."""
    answers = []
    for number, drop in enumerate(drops, 1):
        print_table("", f"{number} of {len(drops)}")
        _show(drop, rule)
        if (answer := _answer()) == _QUIT:
            break
        answers.append(answer)
        if answer in _LABELS:
            reviews.append(drop.original, drop.copy, _LABELS[answer])
    return answers.count("s"), answers.count("n")


def _show(drop: Drop, rule: Rule) -> None:
    for name, document in (("original", drop.original), ("dropped", drop.copy)):
        print_table(f"{name:9} {document.url}", *[f"{'':9} {document.title}"] * bool(document.title))
    print_sentence(in_words("duplicate", [*rule_points(drop.found, rule, [drop.detector], same_url=False)]))
    width = shutil.get_terminal_size().columns
    print(*side_by_side(drop.original.text, drop.copy.text, width, coloured=sys.stdout.isatty()), sep="\n")


def _answer() -> str:
    """Return an answer from stdin. The end of stdin means quit."""
    while True:
        print(_QUESTION, end="", flush=True)
        line = sys.stdin.readline() if sys.stdin else ""
        if not line:
            print()
        answer = line.strip().lower()[:1] if line else _QUIT
        if answer in (*_LABELS, _LATER, _QUIT):
            return answer


def _row(drop: Drop) -> dict[str, Any]:
    return {
        "url": drop.copy.url,
        "duplicate_of": drop.original.url,
        "resemblance": round(drop.found.resemblance, 4),
        "needed": round(drop.needed, 4),
        "title": drop.copy.title,
        "title_of_original": drop.original.title,
    }


def _left_out(read: Drops) -> Iterator[str]:
    """Yield the number of drops that are not shown, by reason."""
    if read.judged:
        yield f"{read.judged} judged before"
    if read.missing:
        yield f"{len(read.missing)} not shown: a text is in none of the feeds"
    if read.without_url:
        yield f"{read.without_url} not shown: they have no URL, or that of their original"
