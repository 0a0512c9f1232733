"""Precision, recall and F1 of online decisions on labelled sets: ours, each detector alone, and peers, in one run.

    python bench/accuracy.py DIR…        DIR holds docs.jsonl (id, text) and pairs.jsonl (a, b, label)

Strict, lenient and hard are explained by `scrapy neardup evaluate --help`, whose figures for our own detectors these
are. Documents come in file order; a peer puts a document to the first one that its index returns, and else into the
index; all pairs of a cluster are predicted. `raw` means that what a detector proposes is taken without verification.
Peers that are not installed are passed over (`pip install datasketch simhash`).
"""

from __future__ import annotations

import argparse
import importlib.util
import re
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from scrapy_neardup.config import DEFAULT_DETECTORS, Config
from scrapy_neardup.evaluate import decide, warm_up
from scrapy_neardup.labels import MODES, Cluster, LabelledSet, Partition

Rows = Mapping[Any, Mapping[str, Any]]
Run = Callable[[Rows], Iterable[Cluster]]
HAN = re.compile("[\u4e00-\u9fff]")


def shingles(text: str) -> set[str]:
    """Cut a text into 5-character shingles if it is Chinese, else into shingles of three words."""
    if len(HAN.findall(text)) > 0.2 * len(text):
        text = re.sub(r"[\W_]", "", text).lower()
        return {text[start : start + 5] for start in range(max(1, len(text) - 4))}
    words = re.findall(r"[a-z0-9]+", text.lower())
    return {" ".join(words[start : start + 3]) for start in range(max(1, len(words) - 2))}


def weighted(text: str) -> list[tuple[str, int]]:
    """Return the features that the simhash package makes of a text, with weights that its bytes can hold."""
    text = "".join(re.findall(r"\w+", text.lower()))
    counts = Counter(text[start : start + 4] for start in range(max(1, len(text) - 3)))
    return [(feature, min(count, 255)) for feature, count in counts.items()]


def ours(*detectors: str, verified: bool = True) -> Run:
    return lambda rows: decide(rows, Config(detectors=detectors), verified=verified).clusters


def exact(rows: Rows) -> Iterable[Cluster]:
    clusters: dict[str, list[Any]] = {}
    for name, row in rows.items():
        clusters.setdefault(" ".join(row["text"].split()), []).append(name)
    return clusters.values()


def minhash(threshold: float) -> Run:
    def run(rows: Rows) -> Iterable[Cluster]:
        from datasketch import MinHash, MinHashLSH

        index, clusters = MinHashLSH(threshold=threshold, num_perm=128), {}
        for name, row in rows.items():
            sketch = MinHash(128)
            sketch.update_batch([shingle.encode() for shingle in shingles(row["text"])])
            found = index.query(sketch)
            if not found:
                index.insert(name, sketch)
            clusters.setdefault(found[0] if found else name, []).append(name)
        return clusters.values()

    return run


def simhash(distance: int) -> Run:
    def run(rows: Rows) -> Iterable[Cluster]:
        from simhash import Simhash, SimhashIndex

        index, clusters = SimhashIndex([], k=distance, log=None), {}
        for name, row in rows.items():
            value = Simhash(weighted(row["text"]))
            found = index.get_near_dups(value)
            if not found:
                index.add(name, value)
            clusters.setdefault(found[0] if found else name, []).append(name)
        return clusters.values()

    return run


ALONE = (*DEFAULT_DETECTORS, "feature_code", "dwdcs", "dwswn")

CONTESTANTS: dict[str, tuple[str, Run]] = {
    "default (all four)": ("", ours(*DEFAULT_DETECTORS)),
    **{name: ("", ours(name)) for name in ALONE},
    **{f"{name}, raw": ("", ours(name, verified=False)) for name in ALONE},
    "exact text": ("", exact),
    "datasketch MinHash-128 at .5": ("datasketch", minhash(0.5)),
    "datasketch MinHash-128 at .7": ("datasketch", minhash(0.7)),
    "simhash package, distance 3": ("simhash", simhash(3)),
}


def line(labelled: LabelledSet, run: Run) -> str:
    """Return a line of the table: P, R, F1 strict, F1 lenient and hard, adjusted Rand index, documents a second."""
    start = time.perf_counter()
    clusters = list(run(labelled.rows))
    rate = len(labelled.rows) / (time.perf_counter() - start)
    predicted = Partition(clusters)
    strict, lenient, hard = (labelled.score(predicted, mode) for mode in MODES.values())
    shares = (strict.precision, strict.recall, strict.f1, lenient.f1, hard.f1)
    agreement = labelled.agreement(predicted, MODES["strict"])
    return " ".join(f"{share:7.3f}" for share in (*shares, agreement)) + f" {rate:7.0f}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", nargs="+", metavar="DIR")
    warm_up()
    for folder in parser.parse_args().folders:
        labelled = LabelledSet.load(folder)
        head = " ".join(f"{name:>7}" for name in ("P", "R", "F1", "lenient", "hard", "ARI", "docs/s"))
        print(f"\n{folder}: {len(labelled.rows)} documents\n{'':30} {head}")
        for name, (package, run) in CONTESTANTS.items():
            if package and importlib.util.find_spec(package) is None:
                print(f"{name:30} is not installed")
            else:
                print(f"{name:30} {line(labelled, run)}", flush=True)


if __name__ == "__main__":
    main()
