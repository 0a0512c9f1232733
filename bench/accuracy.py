"""Measure precision, recall and F1 on labelled sets: of the defaults, of each detector alone, and of other packages.

    python bench/accuracy.py DIR… [--text-dedup PYTHON]

DIR has docs.jsonl (id, text) and pairs.jsonl (a, b, label). `scrapy neardup lab evaluate --help` explains strict,
lenient and hard F1, and gives the same figures for our detectors. Documents come in file order. A peer is another
package. A document joins the first earlier one that the peer's index returns, or else enters the index.
text-dedup takes the whole file, and joins all documents that share a band. Each pair in a cluster counts as found. Rows
with `raw` accept all that a detector proposes. Peers that are not installed are named (pip install -r bench/peers.txt).
"""

from __future__ import annotations

import argparse
import importlib.util
import time
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from peers import Peer, characters, datasketch, rensa, simhash, text_dedup_clusters

from scrapy_neardup.items import item_document
from scrapy_neardup.quality import MODES, Cluster, LabelledSet, result_of
from scrapy_neardup.settings import DEFAULT_DETECTORS, Config
from scrapy_neardup.text.tokens import tokenize

Rows = Mapping[Any, Mapping[str, Any]]
Run = Callable[[Rows], Iterable[Cluster]]


def ours(*detectors: str, verified: bool = True) -> Run:
    config = Config(detectors=detectors)

    def run(rows: Rows) -> Iterable[Cluster]:
        documents = ((name, item_document(row, config)) for name, row in rows.items())
        return result_of(documents, config, verified=verified).clusters

    return run


def exact(rows: Rows) -> Iterable[Cluster]:
    clusters: dict[str, list[Any]] = {}
    for name, row in rows.items():
        clusters.setdefault(" ".join(row["text"].split()), []).append(name)
    return clusters.values()


def peer(decide_by: Peer) -> Run:
    def run(rows: Rows) -> Iterable[Cluster]:
        names, clusters = list(rows), dict[Any, list[Any]]()
        for name, found in zip(names, decide_by(row["text"] for row in rows.values()), strict=True):
            clusters.setdefault(name if found is None else names[found], []).append(name)
        return clusters.values()

    return run


ALONE = (*DEFAULT_DETECTORS, "feature_code", "dwdcs", "dwswn")
NEEDS = {"dwdcs": "snowballstemmer", "dwswn": "snowballstemmer"}

CONTESTANTS: dict[str, tuple[str, Run]] = {
    "default (all four)": ("", ours(*DEFAULT_DETECTORS)),
    **{name: (NEEDS.get(name, ""), ours(name)) for name in ALONE},
    **{f"{name}, raw": (NEEDS.get(name, ""), ours(name, verified=False)) for name in ALONE},
    "exact text": ("", exact),
    "datasketch MinHash-128 at .5": ("datasketch", peer(datasketch)),
    "datasketch MinHash-128 at .7": ("datasketch", peer(partial(datasketch, threshold=0.7))),
    "rensa MinHash-128 at .5": ("rensa", peer(rensa)),
    "simhash package, distance 3": ("simhash", peer(partial(simhash, features=characters))),
}


def text_dedup(python: str, folder: str) -> Run:
    return lambda rows: text_dedup_clusters(python, Path(folder, "docs.jsonl"))


def line(labelled: LabelledSet, run: Run) -> str:
    """Return a line of the table: strict P, R and F1, lenient and hard F1, documents a second."""
    start = time.perf_counter()
    clusters = list(run(labelled.rows))
    rate = len(labelled.rows) / (time.perf_counter() - start)
    strict, lenient, hard = (labelled.score(clusters, mode) for mode in MODES.values())
    shares = (strict.precision, strict.recall, strict.f1, lenient.f1, hard.f1)
    return " ".join(f"{share:7.3f}" for share in shares) + f" {rate:7.0f}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", nargs="+", metavar="DIR")
    parser.add_argument("--text-dedup", metavar="PYTHON", help="of an environment that has the package text-dedup")
    opts = parser.parse_args()
    tokenize("预热")  # loads the dictionary before the first measurement
    for folder in opts.folders:
        labelled = LabelledSet.load(folder)
        head = " ".join(f"{name:>7}" for name in ("P", "R", "F1", "lenient", "hard", "docs/s"))
        print(f"\n{folder}: {len(labelled.rows)} documents\n{'':30} {head}")
        others = {"text-dedup MinHash-128 at .5": ("", text_dedup(opts.text_dedup, folder))} if opts.text_dedup else {}
        for name, (package, run) in (CONTESTANTS | others).items():
            if package and importlib.util.find_spec(package) is None:
                print(f"{name:30} is not installed")
            else:
                print(f"{name:30} {line(labelled, run)}", flush=True)


if __name__ == "__main__":
    main()
