"""The map and the shingles, as clusters of small batches: how often each judges a document as people did.

    python bench/som.py DIR… [--classes category]

DIR holds docs.jsonl (id, text, title) and pairs.jsonl (a, b, label). Each sample is 100 documents: random clusters of
duplicates until they make up 40, the rest drawn from all others. `accuracy` is the share of documents of which it is
rightly said whether the sample holds a duplicate of them, `worst` that of the worst sample, `found` the same of those
that have one. P, R and F1 count pairs (strict: see accuracy.py), all that share a cluster. Each is the mean of the
samples, `s` the seconds, from tokens to clusters. The last lines are of larger batches, half of whose documents have
duplicates as far as the set has so many.
"""

from __future__ import annotations

import argparse
import random
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple
from unittest.mock import patch

import numpy as np

from scrapy_neardup.document import Document
from scrapy_neardup.index.unions import Unions
from scrapy_neardup.items import item_document
from scrapy_neardup.matching.evidence import Rule
from scrapy_neardup.papers import som as som_module
from scrapy_neardup.papers.som import Parameters, som_clusters
from scrapy_neardup.quality.evaluation import warm_up
from scrapy_neardup.quality.labels import MODES, LabelledSet, Partition
from scrapy_neardup.quality.shingle_clusters import shingle_clusters
from scrapy_neardup.settings import Config

SIZE, REPEATED = 100, 0.4
FIRST_SEED = 1000  # the defaults were chosen with samples of other seeds
ALPHAS = (1, 2, 3, 4, 6)
BATCHES = (300, 1000)
VARIANTS: dict[str, dict[str, Any]] = {
    **{f"similarity {value}": {"similarity": value} for value in (0.8, 0.85, 0.95)},
    **{f"terms {value}": {"terms": value} for value in (300, 1000)},
    **{f"chi_share {value}": {"chi_share": value} for value in (0.1, 0.9)},
    **{f"seed {value}": {"seed": value} for value in (2, 3)},
}
TRAIN, NEAR_ON_MAP = som_module.train, som_module.near_on_map
HEAD = f"{'':36} accuracy  worst  found      P      R     F1       s"

Documents = Mapping[Any, Document]
Method = Callable[[LabelledSet, Documents], list[list[int]]]


class Figures(NamedTuple):
    accuracy: float
    found: float
    precision: float
    recall: float
    f1: float
    seconds: float


def shingle(labelled: LabelledSet, documents: Documents) -> list[list[int]]:
    return shingle_clusters((documents[name] for name in labelled.rows), Rule.from_config(Config()))


def som(labelled: LabelledSet, documents: Documents, field: str | None = None, **changes: Any) -> list[list[int]]:
    classes = [row.get(field) for row in labelled.rows.values()] if field else None
    return som_clusters((documents[name] for name in labelled.rows), Parameters(**changes), classes)


def no_map(labelled: LabelledSet, documents: Documents) -> list[list[int]]:
    """All documents on one unit: what is missed by this is not the map's fault."""
    with patch.object(som_module, "train", lambda library, vectors, seed: np.zeros((len(vectors), 2), dtype=int)):
        return som(labelled, documents)


def selected_only(labelled: LabelledSet, documents: Documents) -> list[list[int]]:
    """The map's own terms decide, not all of them."""
    trained: list[np.ndarray] = []

    def train(library: Any, vectors: np.ndarray, seed: int) -> np.ndarray:
        trained.append(vectors)
        return TRAIN(library, vectors, seed)

    def near(units: np.ndarray, vectors: Any, similarity: float) -> list[list[int]]:
        return NEAR_ON_MAP(units, lambda places: trained[0][places], similarity)

    with patch.multiple(som_module, train=train, near_on_map=near):
        return som(labelled, documents)


def sample(labelled: LabelledSet, size: int, share: float, seed: int) -> LabelledSet:
    """Draw a small set from a large one, in random order."""
    chance = random.Random(seed)
    unions: Unions[Any] = Unions()
    for pair in sorted(sorted(pair) for pair, label in labelled.labels.items() if label in MODES["strict"].right):
        unions.join(*pair)
    families = unions.clusters()
    repeated = {name for family in families for name in family}
    chosen: list[Any] = []
    for family in chance.sample(families, len(families)):
        if len(chosen) + len(family) <= share * size:
            chosen += family
    others = [name for name in labelled.rows if name not in repeated]
    chosen += chance.sample(others, min(len(others), size - len(chosen)))
    rows = {name: labelled.rows[name] for name in chance.sample(chosen, len(chosen))}
    labels = {pair: label for pair, label in labelled.labels.items() if pair <= rows.keys()}
    return replace(labelled, rows=rows, labels=labels)


def judge(labelled: LabelledSet, documents: Documents, method: Method) -> Figures:
    start = time.perf_counter()
    numbers = method(labelled, documents)
    seconds = time.perf_counter() - start
    names = list(labelled.rows)
    clusters = [[names[number] for number in cluster] for cluster in numbers]
    said = {name for cluster in clusters for name in cluster}
    true = {name for pair, label in labelled.labels.items() if label in MODES["strict"].right for name in pair}
    score = labelled.score(Partition(clusters), MODES["strict"])
    return Figures(1 - len(said ^ true) / len(names), len(said & true) / len(true), *score[:3], seconds)


def line(name: str, samples: Sequence[LabelledSet], documents: Documents, method: Method) -> str:
    """Return a line of a table."""
    figures = [judge(each, documents, method) for each in samples]
    accuracy, *others, seconds = (sum(column) / len(figures) for column in zip(*figures, strict=True))
    worst = min(each.accuracy for each in figures)
    shares = "".join(f" {value:6.3f}" for value in others)
    return f"{name:36} {accuracy:8.3f} {worst:6.2f}{shares} {seconds:7.2f}"


def read(samples: Sequence[LabelledSet]) -> dict[Any, Document]:
    """Return the documents of samples, with their tokens and sketches made."""
    rows = {name: row for each in samples for name, row in each.rows.items()}
    documents = {name: item_document(row, Config()) or Document() for name, row in rows.items()}
    for document in documents.values():
        _ = document.sketch
    return documents


def contestants(field: str | None) -> Iterator[tuple[str, Method]]:
    yield "shingle", shingle
    for alpha in ALPHAS:
        yield f"som, α = {alpha}", partial(som, title_weight=alpha)
    for alpha in ALPHAS if field else ():
        yield f"som, α = {alpha}, classes: {field}", partial(som, field=field, title_weight=alpha)
    yield "som, α = 2, without the map", no_map
    yield "som, α = 2, selected terms decide", selected_only
    for name, changes in VARIANTS.items():
        yield f"som, α = 2, {name}", partial(som, **changes)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", nargs="+", metavar="DIR")
    parser.add_argument("--classes", metavar="F", help="also with the classes of this field")
    parser.add_argument("--samples", type=int, default=10, metavar="N", help="how many (default: 10)")
    opts = parser.parse_args()
    warm_up()
    for folder in opts.folders:
        labelled = LabelledSet.load(folder)
        samples = [sample(labelled, SIZE, REPEATED, FIRST_SEED + number) for number in range(opts.samples)]
        documents = read(samples)
        print(f"\n{folder}: {len(samples)} samples of {SIZE} documents\n{HEAD}")
        for name, method in contestants(opts.classes):
            print(line(name, samples, documents, method), flush=True)
        for size in BATCHES:
            batch = [sample(labelled, size, 0.5, FIRST_SEED)]
            documents = read(batch)
            print(line(f"{size} documents, shingle", batch, documents, shingle), flush=True)
            print(line(f"{size} documents, som", batch, documents, som), flush=True)
            print(line(f"{size} documents, without the map", batch, documents, no_map), flush=True)
            print(line(f"{size} documents, selected terms", batch, documents, selected_only), flush=True)


if __name__ == "__main__":
    main()
