"""Measure detectors on labelled sets, with verdicts as in a crawl or `dedupe`, and learn thresholds from them.

A labelled set is a folder with documents and judgements on pairs of them.
"""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import product
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from .deduplicator import Deduplicator
from .document import Document
from .feeds import Feeds, Row
from .files import FileError
from .items import item_document
from .matching.matcher import ANYTHING, Rule, compare
from .settings import Config, detector_name
from .signature import Signature

# Labelled sets

Pair: TypeAlias = frozenset[Any]  # the ids of two documents
Cluster: TypeAlias = Sequence[Any]  # the ids of documents that repeat one another


class Mode(NamedTuple):
    """The labels of duplicates (`right`), and of pairs that do not count (`ignored`). All other pairs are different."""

    right: frozenset[str]
    ignored: frozenset[str]


MODES = {
    "strict": Mode(frozenset({"dup"}), frozenset({"partial", "rewrite"})),
    "lenient": Mode(frozenset({"dup"}), frozenset({"partial", "rewrite", "template"})),
    "hard": Mode(frozenset({"dup", "rewrite"}), frozenset({"partial"})),
}


class Score(NamedTuple):
    """The agreement of predicted pairs with labels, as ratios and as numbers of pairs. Without pairs, a ratio is 0."""

    precision: float
    recall: float
    f1: float
    right: int
    wrong: int
    missed: int


@dataclass(frozen=True)
class LabelledSet:
    """Documents, and the labels of pairs that were judged. All other pairs count as different."""

    name: str
    rows: Mapping[Any, dict[str, Any]]  # the fields of each document, without its id, by id in file order
    labels: Mapping[Pair, str]

    @classmethod
    def load(cls, folder: str) -> LabelledSet:
        """Read docs.jsonl (id, text, …) and pairs.jsonl (a, b, label). Raise FileError for an invalid row."""
        docs, pairs = (os.path.join(folder, name) for name in ("docs.jsonl", "pairs.jsonl"))
        rows: dict[Any, dict[str, Any]] = {}
        for row in Feeds([docs]).rows():
            if rows.setdefault(_id(row, "id"), row.data) is not row.data:
                raise FileError(f"{row.place}: id {row.data['id']!r} occurs twice; allowed is once")
        labels = {}
        for row in Feeds([pairs]).rows():
            pair = frozenset(_id(row, side) for side in "ab")
            if unknown := [part for part in pair if part not in rows]:
                raise FileError(f"{row.place}: id {unknown[0]!r} is not in {docs}")
            if len(pair) < 2:
                raise FileError(f"{row.place}: {row.data['a']!r} is paired with itself")
            labels[pair] = str(row.field("label"))
        fields = {name: {key: value for key, value in row.items() if key != "id"} for name, row in rows.items()}
        return cls(str(folder), fields, labels)

    def documents(self, config: Config) -> Iterator[tuple[Any, Document | None]]:
        """Yield the id and the document of each row; None for a row that has no document, see `item_document`."""
        return ((name, item_document(row, config)) for name, row in self.rows.items())

    def score(self, clusters: Sequence[Cluster], mode: Mode) -> Score:
        """Return the score of predicted clusters. Each pair of documents in one cluster is a predicted pair."""
        found, joined = self.found(clusters), sum(len(each) * (len(each) - 1) // 2 for each in clusters)
        right = sum(found[label][0] for label in found if label in mode.right)
        missed = sum(found[label][1] for label in found if label in mode.right) - right
        ignored = sum(found[label][0] for label in found if label in mode.ignored)
        wrong = joined - ignored - right
        precision, recall = _share(right, right + wrong), _share(right, right + missed)
        return Score(precision, recall, _share(2 * right, 2 * right + wrong + missed), right, wrong, missed)

    def found(self, clusters: Sequence[Cluster]) -> dict[str, tuple[int, int]]:
        """Return two numbers for each label: its pairs that lie within one predicted cluster, and all its pairs."""
        number = {name: number for number, cluster in enumerate(clusters) for name in cluster}
        found = Counter(label for (a, b), label in self.labels.items() if a in number and number[a] == number.get(b))
        total = Counter(self.labels.values())
        return {label: (found[label], total[label]) for label in sorted(total)}


def _share(part: int, whole: int) -> float:
    return round(part / whole, 4) if whole else 0.0


def _id(row: Row, name: str) -> str | int:
    value = row.field(name)
    if not isinstance(value, (str, int)):
        raise FileError(f"{row.place}: {name} is {value!r}; allowed is text or a whole number")
    return value


# Measurements


@dataclass(frozen=True)
class Result:
    """The verdicts on a set of documents, and their cost."""

    clusters: Sequence[Cluster]  # each original with its copies
    candidates: float  # the mean number of candidates with which a document is compared
    rate: float  # documents a second, from text to verdict
    size: float  # the mean size of a document's record, in bytes


def result_of(documents: Iterable[tuple[Any, Document | None]], config: Config, *, verified: bool = True) -> Result:
    """Decide on documents with ids, in order, in a store in memory. Apply no thresholds if `verified` is False."""
    clusters, rows = dict[Signature, list[Any]](), 0
    with Deduplicator.from_config(replace(config, store=None)) as dedup:
        if not verified:
            dedup.matcher.rule = ANYTHING
        start = time.perf_counter()
        for name, document in documents:
            rows += 1
            if document:
                with _naming(name):
                    claim = dedup.claim(document)
                claim.commit()
                clusters.setdefault(claim.match.signature if claim.match else claim.signature, []).append(name)
        seconds = time.perf_counter() - start
        return Result(
            list(clusters.values()),
            dedup.matcher.compared / (rows or 1),
            rows / seconds,
            sum(len(signature.record) for signature in dedup.store.signatures()) / (len(dedup) or 1),
        )


@contextmanager
def _naming(name: Any) -> Iterator[None]:
    """Convert an error of a detector to a FileError that names the document."""
    try:
        yield
    except Exception as error:  # the user's detectors may raise anything
        raise FileError(f"document {name!r}: {error!r}") from error


def evaluate(labelled: LabelledSet, config: Config, *, verified: bool = True) -> dict[str, Any]:
    """Compare the verdicts under a configuration with the labels of a set. Return scores and costs by name."""
    result = result_of(labelled.documents(config), config, verified=verified)
    return {
        "detectors": list(map(detector_name, config.detectors)),
        **{name: labelled.score(result.clusters, mode)._asdict() for name, mode in MODES.items()},
        "candidates_per_document": round(result.candidates, 3),
        "documents_per_second": round(result.rate),
        "bytes_per_document": round(result.size),
        "found": labelled.found(result.clusters),
    }


# Calibration

# A text of n tokens needs a resemblance of level + allowance / n.
LEVELS = np.arange(0.3, 1.0, 0.01)
ALLOWANCES = (0.0, 2.5, 5.0, 8.0, 10.0, 15.0, 20.0, 30.0, 40.0)
MINIMA = (20, 25, 30, 40, 50, 60, 75, 100, 150, 200, 300)  # values of NEARDUP_MIN_TOKENS
LENGTHS = (20, 30, 50, 75, 100, 150, 200, 300, 500, 1000, 2000)  # numbers of tokens, the keys of NEARDUP_RESEMBLANCE
MARGINS = (1, 2, 4, 8)  # how many more wrong pairs thresholds must allow for, see `best_fit`


class Pairs(NamedTuple):
    """The measures of candidate pairs, in arrays with one element for each pair."""

    tokens: npt.NDArray[np.float64]  # tokens of the shorter text
    resemblance: npt.NDArray[np.float64]
    right: npt.NDArray[np.bool_]  # true if the pair is labelled as a duplicate


@dataclass(frozen=True)
class Fit:
    """Thresholds, and their results on the pairs from which they were learned."""

    level: float
    allowance: float
    min_tokens: int
    right: int
    wrong: int

    def settings(self) -> dict[str, Any]:
        """Return the thresholds as settings. `resemblance` maps minimum numbers of tokens to required resemblances."""
        lengths = (self.min_tokens, *(n for n in LENGTHS if n > self.min_tokens))
        required = {n: min(1.0, round(self.level + self.allowance / n, 3)) for n in lengths}
        return {"resemblance": required, "min_tokens": self.min_tokens}


def calibrate(labelled: LabelledSet, config: Config, precision: float) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the settings with the highest recall that reach a precision on a set, and what `evaluate` says of them.

    Raise FileError if no settings reach the precision.
    """
    pairs = compared(labelled, config)
    tried = []
    for margin in MARGINS:
        fit = best_fit(pairs, precision, margin)
        if fit is None:
            break
        settings = fit.settings()
        reached = evaluate(labelled, replace(config, **settings))
        tried.append(reached["strict"]["precision"])
        if reached["strict"]["precision"] >= precision:
            return settings, reached
    best = f"; the best ones reach {max(tried)}" if tried else ""
    raise FileError(f"no thresholds reach a precision of {precision} on {labelled.name}{best}")


def best_fit(pairs: Pairs, precision: float, margin: int = 1) -> Fit | None:
    """Return the thresholds with the highest recall that reach a precision; None if there are none.

    In a tie, thresholds with fewer wrong pairs come first, then those nearer to the defaults. Thresholds that accept a
    wrong pair must reach the precision even with `margin` more wrong pairs, since a few errors in a sample say little
    about the true number.
    """
    fits = (
        fit
        for fit in _fits(pairs)
        if fit.right and fit.right >= precision * (fit.right + fit.wrong + margin * (fit.wrong > 0))
    )
    return max(fits, key=lambda fit: (fit.right, -fit.wrong, -_strangeness(fit)), default=None)


def _fits(pairs: Pairs) -> Iterator[Fit]:
    for allowance, least in product(ALLOWANCES, MINIMA):
        # The highest level that each pair meets. Equal texts meet any level.
        met = np.where(pairs.resemblance >= 1, np.inf, pairs.resemblance - allowance / pairs.tokens)
        met = np.where(pairs.tokens >= least, met, -np.inf)
        right, wrong = (np.sort(met[side]) for side in (pairs.right, ~pairs.right))
        for level in LEVELS:
            counts = (len(side) - int(np.searchsorted(side, level)) for side in (right, wrong))
            yield Fit(round(float(level), 2), allowance, least, *counts)


def _strangeness(fit: Fit) -> float:
    default, config = Rule(0.0, 0.0, 0), Config()
    assert not isinstance(config.resemblance, Mapping)
    return (
        abs(fit.level - config.resemblance)
        + abs(fit.allowance - default.short_allowance) / 50
        + abs(fit.min_tokens - config.min_tokens) / 100
    )


def compared(labelled: LabelledSet, config: Config) -> Pairs:
    """Return the measures of the candidate pairs that pass all thresholds except those that are to be learned."""
    mode, names, found = MODES["strict"], dict[Signature, Any](), list[tuple[float, float, bool]]()
    rule = Rule.from_config(config)
    anyhow = replace(rule, resemblance=0.0, allowance=0.0, short_allowance=0.0, min_tokens=MINIMA[0])
    with Deduplicator.from_config(replace(config, store=None)) as dedup:
        for name, document in labelled.documents(config):
            if document is None or not document.lines:
                continue
            with _naming(name):
                signature = dedup.sign(document)
            for _, held in dedup.matcher.candidates(document, signature):
                label = labelled.labels.get(frozenset((name, names[held])))
                comparison = compare(signature.sketch, held.sketch)
                if label not in mode.ignored and anyhow.accepts(comparison):
                    found.append((comparison.tokens, comparison.resemblance, label in mode.right))
            dedup.store.add(signature)
            names[signature] = name
    tokens, resemblance, right = np.array(found, float).reshape(-1, 3).T
    return Pairs(tokens, resemblance, right > 0)
