"""`scrapy neardup lab evaluate` and `lab calibrate`: measure detectors, and find thresholds, on labelled documents."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from dataclasses import replace
from typing import Any

from scrapy.settings import BaseSettings

from ..detectors.registry import build_detectors
from ..feeds import FeedError, writing
from ..feeds.json_text import json_text
from ..quality.calibration import Calibration, calibrate
from ..quality.evaluation import contestants, evaluate, shuffled, warm_up
from ..quality.labels import MODES, LabelledSet
from ..settings import BUILTIN_DETECTORS, DEFAULT_DETECTORS, PREFIX, Config
from ..stats import plural
from .options import add_json, check_apart, number, whole
from .output import print_lines

ALL = "all"
_HEAD = (
    f"{'':34} {'P':>6} {'R':>6} {'F1':>6} {'lenient':>8} {'hard':>6} {'ARI':>6} {'cand./doc':>10} {'docs/s':>7}"
    f" {'bytes/doc':>9}"
)


def add_evaluate(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("folders", nargs="+", metavar="DIR", help="folders with docs.jsonl and pairs.jsonl")
    text = f"detectors to measure, each alone and all together; {ALL!r}: all that exist"
    add("--detectors", metavar="A,B", help=text)
    add("--unverified", action="store_true", help="accept all candidates of a detector, whatever the thresholds")
    add("--shuffle", type=whole(0), metavar="SEED", help="shuffle the documents with this random seed")
    add("--json", metavar="FILE", help="also write all results to FILE")


def run_evaluate(opts: argparse.Namespace, settings: BaseSettings) -> None:
    """Measure precision, recall and speed of detectors on labelled documents.

    example:
      scrapy neardup lab evaluate news laws --detectors simhash,shingle

    A folder contains docs.jsonl, with a document on each line: {"id": …, "text": …}, and pairs.jsonl, with a judged
    pair on each line: {"a": id, "b": id, "label": …}. Pairs labelled "dup" are duplicates. Pairs labelled "partial" or
    "rewrite" are not counted. For the lenient F1, pairs labelled "template" are not counted either. For the hard F1,
    pairs labelled "rewrite" count as duplicates. `scrapy neardup judge` writes such a folder.
    """
    config = Config.from_settings(settings)
    labelled_files = [file for folder in opts.folders for file in LabelledSet.files(folder)]
    check_apart(a_file_of_a_labelled_set=labelled_files, the_file_of_results=opts.json)
    configs = _contestants(config, opts.detectors)
    for contestant in configs:
        build_detectors(contestant)  # report a wrong name before the first measurement
    sets = [LabelledSet.load(folder) for folder in opts.folders]
    warm_up()
    with ExitStack() as stack:
        file = stack.enter_context(writing(opts.json, formats=(".json",))) if opts.json else None
        results = [_evaluated(labelled, configs, opts) for labelled in sets]
        if file:
            file.write(f"{json_text(results, indent=2)}\n".encode())


def _evaluated(labelled: LabelledSet, configs: list[Config], opts: argparse.Namespace) -> dict[str, Any]:
    """Print the results on one set, each as soon as it is known, and return them."""
    ordered = labelled if opts.shuffle is None else shuffled(labelled, opts.shuffle)
    print_lines([f"{labelled.name}: {len(labelled.rows)} documents", _HEAD])
    rows = []
    for contestant in configs:
        rows.append(evaluate(ordered, contestant, verified=not opts.unverified))
        print_lines([_measures(rows[-1])])
        sys.stdout.flush()
    found = rows[-1]["found"]
    if "dup" not in found:
        print_lines(["no pair is labelled 'dup', so precision and recall have no meaning"])
    told = ", ".join(f"{label} {some} of {all_}" for label, (some, all_) in found.items())
    print_lines([f"labelled pairs found in the last line: {told}", ""])
    return {"set": labelled.name, "documents": len(labelled.rows), "results": rows}


def _contestants(config: Config, chosen: Any) -> list[Config]:
    if chosen is not None and chosen != ALL:
        together = replace(config, detectors=chosen)
        return contestants(together, together.detectors)
    return contestants(config, (*(BUILTIN_DETECTORS if chosen else DEFAULT_DETECTORS), *config.detectors))


def _measures(row: Mapping[str, Any]) -> str:
    strict, lenient, hard = (row[mode] for mode in MODES)
    return (
        f"{' '.join(row['detectors']):34} {strict['precision']:6.4f} {strict['recall']:6.4f} {strict['f1']:6.4f}"
        f" {lenient['f1']:8.4f} {hard['f1']:6.4f} {row['adjusted_rand']:6.4f} {row['candidates_per_document']:10.2f}"
        f" {row['documents_per_second']:7d} {row['bytes_per_document']:9d}"
    )


def add_calibrate(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("folder", metavar="DIR", help="folder with docs.jsonl and pairs.jsonl")
    share, text = number(0, 1, above=True), "the target precision: the share of the found pairs that are duplicates"
    parser.add_argument("--precision", type=share, required=True, metavar="P", help=text)
    text = "how labels count; see scrapy neardup lab evaluate --help (default: strict)"
    parser.add_argument("--labels", choices=MODES, default="strict", help=text)
    add_json(parser)


def run_calibrate(opts: argparse.Namespace, settings: BaseSettings) -> None:
    """Find thresholds for a target precision, and print them as settings.

    example:
      scrapy neardup lab calibrate news --precision 0.99 >> settings.py

    The folder contains docs.jsonl and pairs.jsonl, as `scrapy neardup judge` writes them;
    scrapy neardup lab evaluate --help describes these files.
    """
    config = Config.from_settings(settings)
    labelled = LabelledSet.load(opts.folder)
    if not MODES[opts.labels].right.intersection(labelled.labels.values()):
        raise FeedError(f"{opts.folder}: no pair is labelled 'dup'; calibration needs such pairs")
    try:
        found = calibrate(labelled, config, opts.precision, opts.labels)
    except ValueError as error:
        raise FeedError(str(error)) from error
    named = {f"{PREFIX}{name.upper()}": value for name, value in found.settings.items()}
    if opts.json:
        print_lines((), {"settings": named, "reached": found.reached[opts.labels]}, as_json=True)
    else:  # whole lines, also on a terminal: they are Python
        print(*_comments(found, opts), *(f"{name} = {value!r}" for name, value in named.items()), sep="\n")


def _comments(found: Calibration, opts: argparse.Namespace) -> Iterator[str]:
    score = found.reached[opts.labels]
    reached = f"reached: precision {score['precision']}, recall {score['recall']} ({opts.labels})"
    yield f"# target precision {opts.precision}; {reached}"
    pairs = plural(score["right"] + score["missed"], "duplicate pair")
    yield f"# learned from {pairs}; pairs found wrongly: {score['wrong']}"
