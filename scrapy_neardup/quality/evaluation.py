"""Measure detectors on labelled sets, with verdicts as in a crawl or `dedupe`, and learn thresholds from them."""

from __future__ import annotations

import random
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ..deduplicator import Deduplicator
from ..items import item_document
from ..matching.matcher import ANYTHING, Rule, compare
from ..progress import watched
from ..settings import Config, detector_name
from ..signature import Signature
from ..text.tokens import tokenize
from .labels import MODES, Cluster, LabelledSet, Partition


@dataclass(frozen=True)
class Outcome:
    """The verdicts on a set of documents, and their cost."""

    clusters: Sequence[Cluster]
    """Each original with its copies."""
    candidates: float
    """The mean number of candidates compared with a document."""
    rate: float
    """Documents a second, from text to verdict."""
    size: float
    """The mean size of a document's record, in bytes."""


def decide(rows: Mapping[Any, Mapping[str, Any]], config: Config, *, verified: bool = True) -> Outcome:
    """Decide on documents in order, with a store in memory. Without `verified`, no thresholds are applied."""
    clusters: dict[Signature, list[Any]] = {}
    with Deduplicator.from_config(replace(config, store=None)) as dedup:
        if not verified:
            dedup.matcher.rule = ANYTHING
        start = time.perf_counter()
        for name, row in watched(rows.items(), "docs", len(rows)):
            document = item_document(row, config)
            if document:
                claim = dedup.claim(document)
                claim.commit()
                clusters.setdefault(claim.match.signature if claim.match else claim.signature, []).append(name)
        seconds = time.perf_counter() - start
        return Outcome(
            list(clusters.values()),
            dedup.matcher.compared / (len(rows) or 1),
            len(rows) / seconds,
            sum(len(signature.record) for signature in dedup.store.signatures()) / (len(dedup) or 1),
        )


def evaluate(labelled: LabelledSet, config: Config, *, verified: bool = True) -> dict[str, Any]:
    """Compare the verdicts of a configuration, all detectors together, with the labels of a set. Return the results."""
    outcome = decide(labelled.rows, config, verified=verified)
    predicted = Partition(outcome.clusters)
    return {
        "detectors": list(map(detector_name, config.detectors)),
        **{name: labelled.score(predicted, mode)._asdict() for name, mode in MODES.items()},
        "candidates_per_document": round(outcome.candidates, 3),
        "documents_per_second": round(outcome.rate),
        "bytes_per_document": round(outcome.size),
        "found": labelled.found(predicted),
    }


def shuffled(labelled: LabelledSet, seed: int) -> LabelledSet:
    """Return a set with its documents in a random order, which depends on the seed."""
    order = list(labelled.rows)
    random.Random(seed).shuffle(order)
    return replace(labelled, rows={name: labelled.rows[name] for name in order})


def warm_up() -> None:
    """Load everything that is loaded on first use, so that the first measurement does not include it."""
    tokenize("预热")


LEVELS = np.arange(0.3, 1.0, 0.01)  # r
ALLOWANCES = (0.0, 2.5, 5.0, 8.0, 10.0, 15.0, 20.0, 30.0, 40.0)  # s, in shingles
MINIMA = (20, 25, 30, 40, 50, 60, 75, 100, 150, 200, 300)  # tokens
LENGTHS = (20, 30, 50, 75, 100, 150, 200, 300, 500, 1000, 2000)
MARGINS = (1, 2, 4, 8)


class Pairs(NamedTuple):
    """The measures of candidate pairs, in arrays with one element for each pair."""

    tokens: npt.NDArray[np.float64]
    """Tokens of the shorter text."""
    resemblance: npt.NDArray[np.float64]
    right: npt.NDArray[np.bool_]
    """True if the pair is labelled as a duplicate."""


@dataclass(frozen=True)
class Fit:
    """Thresholds, and their results on the pairs from which they were learned."""

    level: float
    allowance: float
    min_tokens: int
    right: int
    wrong: int

    def settings(self) -> dict[str, Any]:
        """Return the thresholds as settings. `resemblance` is a dictionary by minimum number of tokens."""
        lengths = (self.min_tokens, *(n for n in LENGTHS if n > self.min_tokens))
        required = {n: min(1.0, round(self.level + self.allowance / n, 3)) for n in lengths}
        return {"resemblance": required, "min_tokens": self.min_tokens}


class Calibration(NamedTuple):
    """Settings that reach a target precision, and their results on the whole set in file order."""

    settings: dict[str, Any]
    reached: dict[str, Any]
    """The results, as `evaluate` returns them."""


def calibrate(labelled: LabelledSet, config: Config, precision: float, mode: str = "strict") -> Calibration:
    """Return the settings with the highest recall that reach a precision on a set. Raise ValueError if none do so."""
    pairs = compared(labelled, config, mode)
    tried = []
    for margin in MARGINS:
        fit = best_fit(pairs, precision, margin)
        if fit is None:
            break
        settings = fit.settings()
        reached = evaluate(labelled, replace(config, **settings))
        tried.append(reached[mode]["precision"])
        if reached[mode]["precision"] >= precision:
            return Calibration(settings, reached)
    best = f"; the best ones reach {max(tried)}" if tried else ""
    raise ValueError(f"no thresholds reach a precision of {precision} on {labelled.name}{best}")


def best_fit(pairs: Pairs, precision: float, margin: int = 1) -> Fit | None:
    """Return the thresholds with the highest recall that reach a precision; None if there are none.

    In a tie, thresholds with fewer wrong pairs come first, then those nearer to the defaults. If the thresholds accept
    any wrong pair, they must reach the precision with `margin` more wrong pairs too, since a few errors in a sample say
    little about their true number.
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


def compared(labelled: LabelledSet, config: Config, mode: str = "strict") -> Pairs:
    """Return the measures of the candidate pairs that pass all thresholds except those to be learned."""
    right = {pair for pair, label in labelled.labels.items() if label in MODES[mode].right}
    found = [
        (tokens, resemblance, pair in right)
        for pair, tokens, resemblance in _proposed(labelled, config)
        if labelled.labels.get(pair) not in MODES[mode].ignored
    ]
    tokens, resemblance, labels = zip(*found, strict=True) if found else ((), (), ())
    return Pairs(np.array(tokens, float), np.array(resemblance, float), np.array(labels, bool))


def _proposed(labelled: LabelledSet, config: Config) -> Iterator[tuple[frozenset[Any], int, float]]:
    names: dict[Signature, Any] = {}
    rule = Rule.from_config(config)
    anyhow = replace(rule, resemblance=0.0, allowance=0.0, short_allowance=0.0, min_tokens=MINIMA[0])
    with Deduplicator.from_config(replace(config, store=None)) as dedup:
        for name, row in watched(labelled.rows.items(), "docs", len(labelled.rows)):
            document = item_document(row, config)
            if document is None or not document.lines:
                continue
            signature = dedup.sign(document)
            for _, held in dedup.matcher.candidates(document, signature):
                comparison = compare(signature.sketch, held.sketch)
                if anyhow.accepts(comparison):
                    yield frozenset((name, names[held])), comparison.tokens, comparison.resemblance
            dedup.store.add(signature)
            names[signature] = name
