"""`scrapy neardup calibrate`: find thresholds for a target precision, and print them as settings."""

from __future__ import annotations

import argparse
from collections.abc import Iterator

from scrapy.settings import BaseSettings

from ..feeds import FeedError
from ..quality.calibration import Calibration, calibrate
from ..quality.labels import MODES, LabelledSet
from ..settings import PREFIX, Config
from ..stats import plural
from .options import add_json, number, print_result

EXAMPLES = """examples:
  scrapy neardup calibrate news --precision 0.99
  scrapy neardup calibrate news --precision 0.99 --labels lenient >> settings.py

The folder contains docs.jsonl and pairs.jsonl; scrapy neardup evaluate --help describes these files.
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("folder", metavar="DIR", help="folder with docs.jsonl and pairs.jsonl")
    parser.add_argument(
        "--precision",
        type=number(0, 1, above=True),
        required=True,
        metavar="P",
        help="the target precision: the share of the found pairs that are duplicates",
    )
    parser.add_argument(
        "--labels",
        choices=MODES,
        default="strict",
        help="how labels count; see scrapy neardup evaluate --help (default: strict)",
    )
    add_json(parser)


def run(opts: argparse.Namespace, settings: BaseSettings) -> None:
    config = Config.from_settings(settings)
    labelled = LabelledSet.load(opts.folder)
    if not MODES[opts.labels].right.intersection(labelled.labels.values()):
        raise FeedError(f"{opts.folder}: no pair is labelled 'dup'; calibration needs such pairs")
    try:
        found = calibrate(labelled, config, opts.precision, opts.labels)
    except ValueError as error:
        raise FeedError(str(error)) from error
    if opts.json:
        settings_found = {f"{PREFIX}{name.upper()}": value for name, value in found.settings.items()}
        print_result({"settings": settings_found, "reached": found.reached[opts.labels]}, as_json=True)
    else:
        print(*_lines(found, opts.labels, opts.precision), sep="\n")


def _lines(found: Calibration, mode: str, wanted: float) -> Iterator[str]:
    score = found.reached[mode]
    yield f"# target precision {wanted}; reached: precision {score['precision']}, recall {score['recall']} ({mode})"
    pairs = plural(score["right"] + score["missed"], "duplicate pair")
    yield f"# learned from {pairs}; pairs found wrongly: {score['wrong']}"
    for name, value in found.settings.items():
        yield f"{PREFIX}{name.upper()} = {value!r}"
