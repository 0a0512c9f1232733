"""The detectors on key concepts: how good they are alone, what their parameters do, what they cost.

    python bench/dwdcs.py DIR… [--synonyms FILE…]      DIR holds docs.jsonl (id, text) and pairs.jsonl (a, b, label)

Whatever a detector proposes is taken for a duplicate, without verification: precision and recall are its own (strict
and lenient: see accuracy.py). `cand.` is how many earlier documents were proposed for a document. For each folder:
dwdcs, dwswn and imatch; thresholds of the spread, S_thr; p key concepts (experiment 3 of 曹玉娟 et al. 2011); l
candidates (experiment 4), on documents that are labelled and as many others; by length of text nodes and milliseconds
with and without merged concepts (experiment 2); and, given files, the nodes for thresholds of merging, Rel_thr.
"""

from __future__ import annotations

import argparse
import random
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain, groupby, islice
from math import inf
from statistics import mean
from typing import Any

from scrapy_neardup.detectors import Detector, IMatch
from scrapy_neardup.document import Document
from scrapy_neardup.papers.dwdcs import (
    COSINE,
    POSITION_BITS,
    SPREAD,
    ConceptIndex,
    Concepts,
    co_occurrence,
    concept_fingerprints,
    main_part,
    sentences,
)
from scrapy_neardup.papers.dwdcs import builtin as builtin_concepts
from scrapy_neardup.quality.evaluation import decide, warm_up
from scrapy_neardup.quality.labels import MODES, LabelledSet, Partition
from scrapy_neardup.settings import Config
from scrapy_neardup.text.lexicon import builtin

SPREADS = (0.01, 0.02, 0.05, 0.1, 0.2, inf)
KEYS = (5, 10, 15, 20, 25, 30)
CANDIDATES = (20, 25, 30, 40, 60, 100)
THRESHOLDS = (0.0, 0.1, 0.2, 0.3, 0.5, 0.7, 1.0)  # above 1.0 is nothing: no term is merged
LENGTHS = (500, 2000, 5000, 10**9)
SAMPLE = 40  # texts of each length that are timed


class Made:
    """A detector whose fingerprints were made before, by text: of more key concepts than are wanted."""

    name = "dwdcs"
    scheme = "made"

    def __init__(self, made: Mapping[str, tuple[int, ...]], wanted: int = 20, spread: float = SPREAD) -> None:
        self.made, self.wanted, self.spread = made, wanted, spread

    def fingerprints(self, document: Document) -> tuple[int, ...]:
        concepts = groupby(self.made[document.text], key=lambda value: value >> POSITION_BITS)
        return tuple(value for _, values in islice(concepts, self.wanted) for value in values)

    def index(self) -> ConceptIndex[Any]:
        return ConceptIndex(COSINE, self.spread)


def made(labelled: LabelledSet, concepts: Concepts, candidates: int = 30) -> dict[str, tuple[int, ...]]:
    """Return the fingerprints of all texts, of as many key concepts as there are candidates."""
    texts = (str(row["text"]) for row in labelled.rows.values())
    return {text: concept_fingerprints(text, concepts, candidates, candidates) for text in texts}


def line(name: str, labelled: LabelledSet, detector: Detector, note: str = "") -> str:
    """Return a line of a table of precision, recall, F1 and candidates a document."""
    outcome = decide(labelled.rows, Config(detectors=(detector,)), verified=False)
    predicted = Partition(outcome.clusters)
    strict, lenient = (labelled.score(predicted, MODES[mode]) for mode in ("strict", "lenient"))
    shares = f"{strict.precision:6.3f} {strict.recall:6.3f} {strict.f1:6.3f} {lenient.f1:6.3f}"
    return f"{name:24} {shares} {outcome.candidates:6.2f} {note}"


def quality(labelled: LabelledSet, concepts: Concepts) -> Iterator[str]:
    """Yield the lines of the tables that need the fingerprints of all documents."""
    merged, unmerged = made(labelled, concepts), made(labelled, Concepts())
    yield f"{'':24}      P      R     F1   len.  cand."
    yield line("dwdcs", labelled, Made(merged))
    yield line("dwswn", labelled, Made(unmerged))
    yield line("imatch, 10 randomized", labelled, IMatch(builtin(), 10))
    yield from (line(f"dwdcs, S < {spread:g}", labelled, Made(merged, spread=spread)) for spread in SPREADS)
    yield from (line(f"dwdcs, p = {wanted}", labelled, Made(merged, wanted)) for wanted in KEYS)


def candidates(labelled: LabelledSet, concepts: Concepts) -> Iterator[str]:
    """Yield the lines of the table for l."""
    sample = some(labelled)
    yield f"{len(sample.rows)} documents"
    for number in CANDIDATES:
        start = time.perf_counter()
        fingerprints = made(sample, concepts, number)
        spent = (time.perf_counter() - start) / len(sample.rows)
        yield line(f"dwdcs, l = {number}", sample, Made(fingerprints), f"{spent * 1000:6.1f} ms")


def some(labelled: LabelledSet) -> LabelledSet:
    """Return the documents of up to 100 duplicate pairs, and as many others."""
    rng = random.Random(1)
    pairs = sorted(sorted(pair) for pair, label in labelled.labels.items() if label == "dup")
    kept = {part for pair in rng.sample(pairs, min(100, len(pairs))) for part in pair}
    kept |= set(rng.sample(sorted(labelled.rows.keys() - kept), min(len(kept), len(labelled.rows) - len(kept))))
    rows = {name: row for name, row in labelled.rows.items() if name in kept}
    return replace(labelled, rows=rows, labels={pair: label for pair, label in labelled.labels.items() if pair <= kept})


def costs(texts: Sequence[str], concepts: Concepts) -> Iterator[str]:
    """Yield the lines of the table by length."""
    yield f"{'characters':24} texts  nodes merged  fewer     ms merged"
    for least, end in zip((0, *LENGTHS), LENGTHS, strict=False):
        chosen = [text for text in texts if least <= len(text) < end]
        chosen = random.Random(1).sample(chosen, min(SAMPLE, len(chosen)))
        if chosen:
            (nodes, spent), (fewer, less) = (cost(chosen, resource) for resource in (Concepts(), concepts))
            shares = f"{nodes:6.0f} {fewer:6.0f} {1 - fewer / nodes:6.1%} {spent:6.1f} {less:6.1f}"
            yield f"{f'{least} to {end}':24} {len(chosen):5} {shares}"


def cost(texts: Sequence[str], concepts: Concepts) -> tuple[float, float]:
    """Return how many nodes the networks of texts have, and how many milliseconds their fingerprints take."""
    start = time.perf_counter()
    for text in texts:
        concept_fingerprints(text, concepts)
    spent = (time.perf_counter() - start) / len(texts)
    named = ([[concepts.of(term.name) for term in terms] for terms in sentences(text)] for text in texts)
    return mean(len(main_part(co_occurrence(terms))) for terms in named), spent * 1000


def merging(texts: Sequence[str], synonyms: Sequence[str]) -> Iterator[str]:
    """Yield the lines of the table for Rel_thr: how many nodes texts of 2,000 to 5,000 characters have."""
    chosen = [text for text in texts if 2000 <= len(text) < 5000]
    chosen = random.Random(1).sample(chosen, min(SAMPLE, len(chosen)))
    for threshold in THRESHOLDS if chosen else ():
        nodes, _ = cost(chosen, Concepts.load(*synonyms, threshold=threshold))
        yield f"{f'Rel > {threshold}':24} {nodes:6.0f} nodes"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", nargs="+", metavar="DIR")
    parser.add_argument("--synonyms", nargs="+", metavar="FILE", help="else the built-in ones")
    options = parser.parse_args()
    concepts = Concepts.load(*options.synonyms) if options.synonyms else builtin_concepts()
    warm_up()
    for folder in options.folders:
        labelled = LabelledSet.load(folder)
        texts = [str(row["text"]) for row in labelled.rows.values()]
        concept_fingerprints(texts[0], concepts)
        print(f"\n{folder}: {len(texts)} documents", flush=True)
        merged = merging(texts, options.synonyms) if options.synonyms else ()
        tables = (costs(texts, concepts), merged, candidates(labelled, concepts))
        for text in chain(*tables, quality(labelled, concepts)):
            print(text, flush=True)


if __name__ == "__main__":
    main()
