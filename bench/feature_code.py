"""The feature code alone, with and without the length ratio: the experiments of Peng et al., section 4.

    python bench/feature_code.py DIR…      DIR holds docs.jsonl (id, text, category) and pairs.jsonl (a, b, label)

A document repeats an earlier one if their codes match and the longer text has no more than `a` times the tokens of the
shorter; there is no other verification. inf: the code alone. First table: `classes/wrong`, the classes of two documents
and more, and those of them with a pair that is not labelled `dup`; in the category of a class's first document. Second
table: precision/recall of pairs (strict: see accuracy.py). Third and fourth, with and without the ratio: the default of
5 characters on a side, one stop and a tolerance of two, and what each does; `cand.` is how many earlier documents were
proposed for a document. Last, what the index costs: the codes at all stops of the set, and finding some of them with
one character changed, beside trying all.
"""

from __future__ import annotations

import argparse
import random
import time
from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import combinations, pairwise

from scrapy_neardup.deduplicator import Deduplicator
from scrapy_neardup.document import Document
from scrapy_neardup.items import item_document
from scrapy_neardup.matching.evidence import ANYTHING
from scrapy_neardup.papers.feature_code import CodeIndex, FeatureCode, common_subsequence, feature_codes, pack
from scrapy_neardup.quality.evaluation import warm_up
from scrapy_neardup.quality.labels import MODES, Cluster, LabelledSet, Pair, Score, pairs_of
from scrapy_neardup.settings import Config
from scrapy_neardup.signature import Signature
from scrapy_neardup.text.tokens import normalize

RATIOS = (1.0, 1.05, 1.10, 1.12, 1.14, float("inf"))
TOLERANCES = (0, 1, 2)
VARIANTS: tuple[dict[str, int], ...] = (
    {},
    {"places": 3},
    {"places": 5},
    {"tolerance": 0},
    {"tolerance": 1},
    {"length": 3},
    {"length": 4},
    {"length": 6},
    {"length": 8},
)
ALL = "all"


class Trial:
    """What a detector decides of a set at a length ratio, with no other verification."""

    def __init__(self, labelled: LabelledSet, documents: dict[str, Document], detector: FeatureCode, a: float) -> None:
        self.labelled = labelled
        found: dict[Signature, list[str]] = {}
        with Deduplicator.from_config(Config(detectors=(detector,))) as dedup:
            dedup.matcher.rule = replace(ANYTHING, length_ratio=a)
            for name, document in documents.items():
                claim = dedup.claim(document)
                claim.commit()
                found.setdefault(claim.match.signature if claim.match else claim.signature, []).append(name)
            self.candidates = dedup.matcher.compared / len(documents)
        self.classes = [names for names in found.values() if len(names) > 1]

    def count(self, category: str = ALL) -> str:
        """Return how many classes there are, and how many wrong ones."""
        classes = [names for names in self.classes if self._is_of(names, category)]
        return f"{len(classes)}/{sum(map(self._is_wrong, classes))}"

    def score(self, category: str = ALL) -> Score:
        labels = {pair: label for pair, label in self.labelled.labels.items() if self._is_of(sorted(pair), category)}
        predicted: set[Pair] = {pair for pair in pairs_of(self.classes) if self._is_of(sorted(pair), category)}
        return replace(self.labelled, labels=labels).score(predicted, MODES["strict"])

    def _is_wrong(self, names: Cluster) -> bool:
        return any(self.labelled.labels.get(frozenset(pair)) != "dup" for pair in combinations(names, 2))

    def _is_of(self, names: Cluster, category: str) -> bool:
        return category in (ALL, self.labelled.rows[names[0]].get("category"))


def table(head: str, columns: Iterable[str], rows: Iterable[tuple[str, Iterable[str]]]) -> None:
    print(f"\n{head:16}" + "".join(f"{name:>14}" for name in columns))
    for name, cells in rows:
        print(f"{name:16}" + "".join(f"{cell:>14}" for cell in cells), flush=True)


def ratios(labelled: LabelledSet, documents: dict[str, Document]) -> None:
    """Print the classes, and the pairs, at each ratio by category."""
    categories = [*sorted({str(row["category"]) for row in labelled.rows.values() if row.get("category")}), ALL]
    trials = {f"a = {a:.2f}": Trial(labelled, documents, FeatureCode(), a) for a in RATIOS}
    counts = ((name, [trial.count(category) for category in categories]) for name, trial in trials.items())
    table("classes/wrong", categories, counts)
    scores = ((name, [trial.score(category) for category in categories]) for name, trial in trials.items())
    shares = ((name, [f"{score.precision:.3f}/{score.recall:.3f}" for score in row]) for name, row in scores)
    table("P/R", categories, shares)


def variants(labelled: LabelledSet, documents: dict[str, Document]) -> None:
    """Print what more stops, less tolerance and other lengths do, at two ratios."""
    for a in (1.10, float("inf")):
        table(f"a = {a:.2f}", ("classes/wrong", "P", "R", "F1", "cand."), _variants(labelled, documents, a))


def _variants(labelled: LabelledSet, documents: dict[str, Document], a: float) -> Iterator[tuple[str, list[str]]]:
    for changed in VARIANTS:
        trial = Trial(labelled, documents, FeatureCode(**changed), a)
        score = trial.score()
        shares = [f"{value:.3f}" for value in (score.precision, score.recall, score.f1, trial.candidates)]
        name = ", ".join(f"{name} {value}" for name, value in changed.items())
        yield name or "5, 1 place, 2", [trial.count(), *shares]


def cost(documents: dict[str, Document]) -> None:
    """Print microseconds to enter a code, to find the like of one, and to try all."""
    texts = [normalize(document.text) for document in documents.values()]
    codes = list(dict.fromkeys(code for text in texts for code in feature_codes(text, places=len(text))))
    random.Random(0).shuffle(codes)
    codes = codes[:100_000]
    wanted = [code[:3] + "x" + code[4:] for code in codes[:500]]
    table(f"{len(codes)} codes", ("add µs", "find µs", "try all µs"), (_cost(codes, wanted, t) for t in TOLERANCES))


def _cost(codes: list[str], wanted: list[str], tolerance: int) -> tuple[str, list[str]]:
    width = max(len(code) for code in codes)
    index: CodeIndex[str] = CodeIndex(width, tolerance)
    times = [time.perf_counter()]
    for code in codes:
        index.add(pack(code, width), code)
    times.append(time.perf_counter())
    found = [set(index.find(pack(code, width))) for code in wanted]
    times.append(time.perf_counter())
    for code, near in zip(wanted[:3], found, strict=False):
        least = len(code) - tolerance
        tried = (other for other in codes if len(other) == len(code))
        assert near == {other for other in tried if common_subsequence(code, other) >= least}
    times.append(time.perf_counter())
    spent = [end - start for start, end in pairwise(times)]
    counts = (len(codes), len(wanted), 3)
    return f"lost: {tolerance}", [f"{s / n * 1e6:.0f}" for s, n in zip(spent, counts, strict=True)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", nargs="+", metavar="DIR")
    warm_up()
    for folder in parser.parse_args().folders:
        labelled = LabelledSet.load(folder)
        made = {name: item_document(row, Config()) for name, row in labelled.rows.items()}
        documents = {name: document for name, document in made.items() if document}
        print(f"\n{folder}: {len(documents)} documents")
        ratios(labelled, documents)
        variants(labelled, documents)
        cost(documents)


if __name__ == "__main__":
    main()
