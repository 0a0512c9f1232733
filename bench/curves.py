"""Draws the curves of docs/accuracy.md and prints their points. Needs matplotlib, and datasketch for one line.

    python bench/curves.py DIR… -o docs/images        DIR holds docs.jsonl (id, text) and pairs.jsonl (a, b, label)

precision_recall.png   online decisions with NEARDUP_RESEMBLANCE from .1 to .9, beside datasketch's MinHash-LSH at
                       thresholds from .2 to .9; strict
sketch_size.png        F1 of the verification, pair by pair, over the bytes of a sketch, at 2, 4 or 8 bits a bin
distance.png           what SimHash alone proposes up to Hamming distance k: recall of the duplicate pairs, and
                       how many of all pairs become candidates
"""

from __future__ import annotations

import argparse
import importlib.util
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from statistics import fmean
from typing import Any, NamedTuple

import matplotlib
import numpy as np
from accuracy import minhash

from scrapy_neardup.deduplicator import Deduplicator
from scrapy_neardup.document import Document
from scrapy_neardup.fingerprints.hashes import Hashes, mix
from scrapy_neardup.fingerprints.minhash import minima
from scrapy_neardup.items import item_document
from scrapy_neardup.matching.evidence import Comparison, Rule, compare
from scrapy_neardup.quality.evaluation import decide
from scrapy_neardup.quality.labels import MODES, Cluster, LabelledSet, Pair, Partition, Score
from scrapy_neardup.settings import Config

matplotlib.use("agg")
from matplotlib import pyplot as plt

LEVELS = (0.1, 0.2, 0.3, 0.35, 0.4, 0.45, 0.5, 0.6, 0.7, 0.8, 0.9)
PEER_LEVELS = (0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9)
BINS = {2: (128, 256, 512, 1024, 2048), 4: (64, 128, 256, 512, 1024), 8: (64, 128, 256, 512)}
SKETCH_BYTES = (32, 64, 128, 256, 512)
SEEDS = 5
DISTANCES = range(17)
STRICT = MODES["strict"]


def name(labelled: LabelledSet) -> str:
    """Name a set by its folder, that of the split left out."""
    return next(part for part in reversed(Path(labelled.name).resolve().parts) if part not in ("dev", "test"))


# Precision and recall


def precision_recall(labelled: LabelledSet, axes: Any) -> None:
    def point(clusters: Iterable[Cluster]) -> tuple[float, float]:
        score = labelled.score(Partition(clusters), STRICT)
        return score.recall, score.precision

    lines = {"scrapy-neardup": [(r, point(decide(labelled.rows, Config(resemblance=r)).clusters)) for r in LEVELS]}
    if importlib.util.find_spec("datasketch"):
        lines["datasketch MinHash-128"] = [(t, point(minhash(t)(labelled.rows))) for t in PEER_LEVELS]
    for label, points in lines.items():
        axes.plot(*zip(*(at for _, at in points), strict=True), marker=".", label=label)
        for level, at in points:
            axes.annotate(f"{level:g}", at, fontsize=6)
            print(f"{name(labelled)} | {label} | {level:g} | recall {at[0]:.3f} | precision {at[1]:.3f}", flush=True)
    axes.set(title=name(labelled), xlabel="recall", ylabel="precision", xlim=(0.4, 1.02), ylim=(0.4, 1.02))
    axes.legend(fontsize=7, loc="lower left")


# Size of the sketch


class Proposed(NamedTuple):
    """A pair of documents that some detector proposed."""

    pair: Pair
    documents: tuple[Document, Document]
    found: Comparison


def proposed(labelled: LabelledSet, config: Config) -> list[Proposed]:
    """Return every pair that the detectors propose."""
    documents: dict[Any, tuple[Any, Document]] = {}
    pairs = []
    with Deduplicator.from_config(config) as dedup:
        for key, row in labelled.rows.items():
            document = item_document(row, config)
            if document and document.tokens:
                signature = dedup.sign(document)
                for earlier in dict.fromkeys(held for _, held in dedup.store.find(signature)):
                    other, text = documents[earlier]
                    found = compare(signature.sketch, earlier.sketch)
                    pairs.append(Proposed(frozenset((key, other)), (document, text), found))
                dedup.store.add(signature)
                documents[signature] = key, document
    return pairs


def codes(shingles: Hashes, bins: int, bits: int) -> np.ndarray:
    smallest = minima(shingles, bins)
    most = np.uint64(2**bits - 1)
    return np.where(smallest > 0, smallest % most + np.uint64(1), np.uint64(0)).astype(np.uint8)


def estimate(a: np.ndarray, b: np.ndarray, bits: int) -> float:
    """Estimate resemblance as `fingerprints.sketch` does, for any number of bins and bits."""
    used, both = np.count_nonzero(a | b), np.count_nonzero((a > 0) & (b > 0))
    equal = np.count_nonzero((a == b) & (a > 0))
    chance = 1 / (2**bits - 1)
    return max(0.0, (equal - (both - equal) * chance / (1 - chance)) / used) if used else 1.0


def sized_f1(labelled: LabelledSet, pairs: Sequence[Proposed], bins: int, bits: int, seed: int) -> Score:
    """Score the pairs that the rule accepts where sketches have another size, and other hashes for each seed."""
    sketches: dict[Document, np.ndarray] = {}
    rule, accepted = Rule.from_config(Config()), []
    for pair, documents, found in pairs:
        for document in documents:
            if document not in sketches:
                shuffled = np.sort(mix(document.shingles + np.uint64(seed))) if seed else document.shingles
                sketches[document] = codes(shuffled, bins, bits)
        shared = estimate(*(sketches[document] for document in documents), bits)
        if rule.accepts(found._replace(resemblance=shared)):
            accepted.append(pair)
    labels = [labelled.labels.get(pair) for pair in accepted]
    right, ignored = labels.count("dup"), sum(label in STRICT.ignored for label in labels)
    duplicates = list(labelled.labels.values()).count("dup")
    return Score.of(right, len(labels) - ignored - right, duplicates - right)


def sketch_size(labelled: LabelledSet, axes: Any) -> None:
    pairs = proposed(labelled, replace(Config(), store=None))
    for bits, sizes in BINS.items():
        means = [fmean(sized_f1(labelled, pairs, bins, bits, s).f1 for s in range(SEEDS)) for bins in sizes]
        axes.plot([bins * bits / 8 for bins in sizes], means, marker=".", label=f"{bits} bits a bin")
        for bins, f1 in zip(sizes, means, strict=True):
            print(f"{name(labelled)} | {bins} bins of {bits} bits | {bins * bits // 8} bytes | F1 {f1:.4f}", flush=True)
    axes.set(title=name(labelled), xlabel="bytes a document", ylabel="F1, pair by pair", xscale="log")
    axes.set_xticks(SKETCH_BYTES, list(map(str, SKETCH_BYTES)))
    axes.minorticks_off()
    axes.legend(fontsize=7)


# Hamming distance


def distance(labelled: LabelledSet, axes: Any) -> None:
    with Deduplicator.open(None, detectors=["simhash"]) as dedup:
        documents = {key: Document(text=row["text"]) for key, row in labelled.rows.items()}
        hashes = {key: dedup.sign(d).fingerprints["simhash"][0] for key, d in documents.items() if d.tokens}
    values = np.array(list(hashes.values()), np.uint64)
    counts = sum(np.bincount(np.bitwise_count(values[n + 1 :] ^ values[n]), minlength=65) for n in range(len(values)))
    right = [pair for pair, label in labelled.labels.items() if label == "dup" and pair <= hashes.keys()]
    apart = np.array([(hashes[a] ^ hashes[b]).bit_count() for a, b in map(tuple, right)])
    recall = [float((apart <= k).mean()) for k in DISTANCES]
    share = [float(counts[: k + 1].sum() / counts.sum()) for k in DISTANCES]
    axes.plot(DISTANCES, recall, marker=".", label="recall of duplicate pairs")
    axes.plot(DISTANCES, share, marker=".", label="share of all pairs proposed")
    for k in DISTANCES:
        print(
            f"{name(labelled)} | k = {k} | recall {recall[k]:.3f} | {share[k] * 1e6:.0f} of a million pairs", flush=True
        )
    axes.set(title=name(labelled), xlabel="Hamming distance up to", yscale="log", ylim=(1e-6, 2))
    axes.legend(fontsize=7, loc="lower right")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", nargs="+", metavar="DIR")
    parser.add_argument("-o", "--output", type=Path, required=True, metavar="FOLDER")
    parser.add_argument("--only", choices=("precision_recall", "sketch_size", "distance"))
    arguments = parser.parse_args()
    sets = [LabelledSet.load(folder) for folder in arguments.folders]
    for draw in (precision_recall, sketch_size, distance):
        if arguments.only not in (None, draw.__name__):
            continue
        figure, panels = plt.subplots(1, len(sets), figsize=(4 * len(sets), 3.6), squeeze=False)
        for labelled, axes in zip(sets, panels[0], strict=True):
            draw(labelled, axes)
            axes.grid(alpha=0.3)
        figure.tight_layout()
        figure.savefig(arguments.output / f"{draw.__name__}.png", dpi=110, metadata={"Software": None})


if __name__ == "__main__":
    main()
