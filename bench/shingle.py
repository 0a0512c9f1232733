"""The batch clusters of shingles on whole labelled sets, for several numbers of keys.

    python bench/shingle.py DIR…

DIR holds docs.jsonl (id, text, title) and pairs.jsonl (a, b, label). A line is for so many super-shingles, of each of
which so many documents are remembered. P, R and F1 count pairs (strict, then F1 of the other modes: see accuracy.py);
`compared` is how many documents one is compared with.
"""

from __future__ import annotations

import argparse
import itertools
import time
from unittest.mock import patch

from som import read, shingle

from scrapy_neardup.matching import batch as shingle_module
from scrapy_neardup.quality.evaluation import warm_up
from scrapy_neardup.quality.labels import MODES, LabelledSet, Partition

SETTINGS = ((12, 16), (32, 4), (32, 16), (32, 64))  # super-shingles, newest of one
HEAD = "  keys  newest       P       R      F1 lenient    hard     ARI  compared  docs/s"


def whole(labelled: LabelledSet, bands: int, newest: int) -> str:
    """Return a line of the table."""
    documents, names = read([labelled]), list(labelled.rows)
    repeats, compared = shingle_module.repeats, itertools.count()
    settings = {"BANDS": bands, "NEWEST": newest, "repeats": lambda *texts: next(compared) >= 0 and repeats(*texts)}
    start = time.perf_counter()
    with patch.multiple(shingle_module, **settings):
        numbers = shingle(labelled, documents)
    seconds = time.perf_counter() - start
    predicted = Partition([names[number] for number in cluster] for cluster in numbers)
    strict, *others = (labelled.score(predicted, mode) for mode in MODES.values())
    shares = [*strict[:3], *(score.f1 for score in others), labelled.agreement(predicted, MODES["strict"])]
    values = "".join(f" {value:7.4f}" for value in shares)
    return f"{bands:6} {newest:7}{values} {next(compared) / len(names):9.2f} {len(names) / seconds:7.0f}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", nargs="+", metavar="DIR")
    opts = parser.parse_args()
    warm_up()
    for folder in opts.folders:
        labelled = LabelledSet.load(folder)
        print(f"\n{folder}: {len(labelled.rows)} documents\n{HEAD}")
        for bands, newest in SETTINGS:
            print(whole(labelled, bands, newest), flush=True)


if __name__ == "__main__":
    main()
