"""`scrapy neardup evaluate`: measure precision, recall and speed of detectors on labelled sets."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import replace
from typing import Any

from scrapy.settings import BaseSettings

from ..detectors.registry import build_detectors
from ..feeds import writing
from ..feeds.json_text import json_text
from ..quality.evaluation import contestants, evaluate, shuffled, warm_up
from ..quality.labels import MODES, LabelledSet
from ..settings import BUILTIN_DETECTORS, DEFAULT_DETECTORS, Config
from .options import check_apart, print_table, whole

EXAMPLES = """examples:
  scrapy neardup evaluate news laws
  scrapy neardup evaluate news --detectors simhash,shingle --json figures.json
  scrapy neardup evaluate news --detectors all
  scrapy neardup evaluate news --shuffle 1 -s NEARDUP_RESEMBLANCE=0.5

A folder contains docs.jsonl, with a document on each line: {"id": …, "text": …}, and pairs.jsonl, with a judged pair
on each line: {"a": id, "b": id, "label": …}. Pairs labelled "dup" are duplicates. Pairs labelled "partial" or "rewrite"
are not counted. For the lenient F1, pairs labelled "template" are not counted either. For the hard F1, pairs labelled
"rewrite" count as duplicates.
"""

ALL = "all"
_HEAD = (
    f"{'':34} {'P':>6} {'R':>6} {'F1':>6} {'lenient':>8} {'hard':>6} {'ARI':>6} {'cand./doc':>10} {'docs/s':>7}"
    f" {'bytes/doc':>9}"
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("folders", nargs="+", metavar="DIR", help="folders with docs.jsonl and pairs.jsonl")
    parser.add_argument(
        "--detectors", metavar="A,B", help=f"detectors to measure, each alone and all together; {ALL!r}: all that exist"
    )
    parser.add_argument(
        "--unverified", action="store_true", help="accept all candidates of a detector, whatever the thresholds"
    )
    parser.add_argument("--shuffle", type=whole(0), metavar="SEED", help="shuffle the documents with this random seed")
    parser.add_argument("--json", metavar="FILE", help="also write all results to FILE")


def run(opts: argparse.Namespace, settings: BaseSettings) -> None:
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
        results = []
        for labelled in sets:
            ordered = labelled if opts.shuffle is None else shuffled(labelled, opts.shuffle)
            print_table(f"{labelled.name}: {len(labelled.rows)} documents", _HEAD)
            rows = []
            for contestant in configs:
                rows.append(evaluate(ordered, contestant, verified=not opts.unverified))
                print_table(_line(rows[-1]))
                sys.stdout.flush()  # show it before the next measurement
            if "dup" not in rows[-1]["found"]:
                print_table("no pair is labelled 'dup', so precision and recall have no meaning")
            print_table(f"labelled pairs found in the last line: {_found(rows[-1]['found'])}", "")
            results.append({"set": labelled.name, "documents": len(labelled.rows), "results": rows})
        if file:
            file.write(f"{json_text(results, indent=2)}\n".encode())


def _contestants(config: Config, chosen: Any) -> list[Config]:
    if chosen is not None and chosen != ALL:
        together = replace(config, detectors=chosen)
        return contestants(together, together.detectors)
    return contestants(config, (*(BUILTIN_DETECTORS if chosen else DEFAULT_DETECTORS), *config.detectors))


def _line(row: Mapping[str, Any]) -> str:
    strict, lenient, hard = (row[mode] for mode in MODES)
    return (
        f"{' '.join(row['detectors']):34} {strict['precision']:6.4f} {strict['recall']:6.4f} {strict['f1']:6.4f}"
        f" {lenient['f1']:8.4f} {hard['f1']:6.4f} {row['adjusted_rand']:6.4f} {row['candidates_per_document']:10.2f}"
        f" {row['documents_per_second']:7d} {row['bytes_per_document']:9d}"
    )


def _found(found: Mapping[str, tuple[int, int]]) -> str:
    return ", ".join(f"{label} {some} of {all_}" for label, (some, all_) in found.items())
