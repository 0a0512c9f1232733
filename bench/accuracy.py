"""Precision, recall and F1 of online decisions with defaults, beside peers, on labelled sets.

    python bench/accuracy.py DIR…        DIR holds docs.jsonl (id, text) and pairs.jsonl (a, b, label)
    python bench/accuracy.py DIR… -s resemblance=0.3 -s 'detectors=["exact", "shingle"]'        ours alone, changed

Strict counts `dup` pairs as right, leaves out `partial` and `rewrite`, and takes all others for wrong; lenient leaves
out `template` pairs too. Documents come in file order; a document goes to the cluster of the first one it repeats, and
all pairs of a cluster are predicted. Peers that are not installed are passed over (`pip install datasketch simhash`).
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import re
import time
from collections import Counter
from collections.abc import Callable, Iterable
from itertools import combinations
from pathlib import Path

from scrapy_neardup import Deduplicator, Document

Clusters = Iterable[list[str]]
Pairs = set[frozenset[str]]
HAN = re.compile("[\u4e00-\u9fff]")


def read(path: Path) -> list[dict[str, str]]:
    return [json.loads(line) for line in path.read_text(encoding="utf8").splitlines()]


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


def ours(**settings: object) -> Callable[[list[dict[str, str]]], Clusters]:
    def run(documents: list[dict[str, str]]) -> Clusters:
        clusters: dict[object, list[str]] = {}
        with Deduplicator.open(None, **settings) as dedup:
            for row in documents:
                claim = dedup.claim(Document(text=row["text"], title=row.get("title", "")))
                claim.commit()
                held = claim.match.signature if claim.match else claim.signature
                clusters.setdefault(held, []).append(row["id"])
        return clusters.values()

    return run


def exact(documents: list[dict[str, str]]) -> Clusters:
    clusters: dict[str, list[str]] = {}
    for row in documents:
        clusters.setdefault(" ".join(row["text"].split()), []).append(row["id"])
    return clusters.values()


def minhash(threshold: float) -> Callable[[list[dict[str, str]]], Clusters]:
    def run(documents: list[dict[str, str]]) -> Clusters:
        from datasketch import MinHash, MinHashLSH

        index, clusters = MinHashLSH(threshold=threshold, num_perm=128), {}
        for row in documents:
            sketch = MinHash(128)
            sketch.update_batch([shingle.encode() for shingle in shingles(row["text"])])
            found = index.query(sketch)
            if not found:
                index.insert(row["id"], sketch)
            clusters.setdefault(found[0] if found else row["id"], []).append(row["id"])
        return clusters.values()

    return run


def simhash(distance: int) -> Callable[[list[dict[str, str]]], Clusters]:
    def run(documents: list[dict[str, str]]) -> Clusters:
        from simhash import Simhash, SimhashIndex

        index, clusters = SimhashIndex([], k=distance, log=None), {}
        for row in documents:
            value = Simhash(weighted(row["text"]))
            found = index.get_near_dups(value)
            if not found:
                index.add(row["id"], value)
            clusters.setdefault(found[0] if found else row["id"], []).append(row["id"])
        return clusters.values()

    return run


def f1(predicted: Pairs, labels: dict[frozenset[str], str], ignored: set[str]) -> tuple[float, float, float]:
    right = {pair for pair, label in labels.items() if label == "dup"}
    counted = {pair for pair in predicted if labels.get(pair) not in ignored}
    hits = len(counted & right)
    precision, recall = hits / (len(counted) or 1), hits / (len(right) or 1)
    return precision, recall, 2 * precision * recall / ((precision + recall) or 1)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", nargs="+", type=Path, metavar="DIR")
    parser.add_argument("-s", "--setting", action="append", default=[], metavar="NAME=JSON")
    arguments = parser.parse_args()
    settings = {name: json.loads(value) for name, _, value in (s.partition("=") for s in arguments.setting)}
    contestants = {
        "scrapy-neardup": ("scrapy_neardup", ours(**settings)),
        "exact text": ("scrapy_neardup", exact),
        "datasketch MinHash-128 at .5": ("datasketch", minhash(0.5)),
        "datasketch MinHash-128 at .7": ("datasketch", minhash(0.7)),
        "simhash package, distance 3": ("simhash", simhash(3)),
    }
    if settings:
        contestants = {"scrapy-neardup": contestants["scrapy-neardup"]}
    for folder in arguments.folders:
        documents = read(folder / "docs.jsonl")
        labels = {frozenset((row["a"], row["b"])): row["label"] for row in read(folder / "pairs.jsonl")}
        print(f"\n{folder}: {len(documents)} documents\n{'':30}      P      R     F1  lenient  docs/s")
        for name, (package, run) in contestants.items():
            if importlib.util.find_spec(package) is None:
                print(f"{name:30} is not installed")
                continue
            start = time.perf_counter()
            clusters = run(documents)
            rate = len(documents) / (time.perf_counter() - start)
            predicted = {frozenset(pair) for cluster in clusters for pair in combinations(cluster, 2)}
            strict = f1(predicted, labels, {"partial", "rewrite"})
            lenient = f1(predicted, labels, {"partial", "rewrite", "template"})
            print(f"{name:30}", *(f"{value:6.3f}" for value in strict), f"{lenient[2]:8.3f} {rate:7.0f}")


if __name__ == "__main__":
    main()
