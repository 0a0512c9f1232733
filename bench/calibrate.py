"""Thresholds learned on one half of a labelled set, measured on the other.

    python bench/calibrate.py DIR… [--precision 0.99] [--splits 6]

DIR holds docs.jsonl (id, text) and pairs.jsonl (a, b, label). A set is split at random, documents that any label ties
together to one side, and each half learns for the other. The decisions are those of a crawl, in file order: precision
and recall of the clusters.
"""

from __future__ import annotations

import argparse
import random
from collections.abc import Iterator
from dataclasses import replace
from statistics import fmean
from typing import Any

from scrapy_neardup.index.unions import Unions
from scrapy_neardup.quality.calibration import calibrate
from scrapy_neardup.quality.evaluation import evaluate, warm_up
from scrapy_neardup.quality.labels import LabelledSet
from scrapy_neardup.settings import Config


def halves(labelled: LabelledSet, seed: int) -> list[LabelledSet]:
    unions: Unions[Any] = Unions()
    for pair in labelled.labels:
        unions.join(*pair)
    source, sides = random.Random(seed), {}
    for name in labelled.rows:
        sides.setdefault(unions.top(name), source.random() < 0.5)
    return [_half(labelled, {n for n in labelled.rows if sides[unions.top(n)] is side}) for side in (False, True)]


def _half(labelled: LabelledSet, names: set[Any]) -> LabelledSet:
    rows = {name: row for name, row in labelled.rows.items() if name in names}
    return replace(labelled, rows=rows, labels={p: label for p, label in labelled.labels.items() if p <= names})


def trials(labelled: LabelledSet, precision: float, splits: int, mode: str) -> Iterator[tuple[float, float]]:
    """Yield precision and recall on the half that nothing was learned from."""
    for seed in range(splits):
        parts = halves(labelled, seed)
        for learned, other in (parts, reversed(parts)):
            settings = calibrate(learned, Config(), precision, mode).settings
            score = evaluate(other, Config(**settings))[mode]
            yield score["precision"], score["recall"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", nargs="+", metavar="DIR")
    parser.add_argument("--precision", type=float, default=0.99)
    parser.add_argument("--splits", type=int, default=6)
    options = parser.parse_args()
    warm_up()
    for folder in options.folders:
        labelled = LabelledSet.load(folder)
        for mode in ("strict", "lenient"):
            found = list(trials(labelled, options.precision, options.splits, mode))
            reached, recall = zip(*found, strict=True)
            enough = sum(value >= options.precision - 0.01 for value in reached)
            print(
                f"{folder}, {mode}: precision {fmean(reached):.4f} on average, lowest {min(reached):.4f},"
                f" within .01 in {enough} of {len(found)}; recall {fmean(recall):.4f}",
                flush=True,
            )


if __name__ == "__main__":
    main()
