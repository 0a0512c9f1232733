"""Learn thresholds for a target precision from labelled pairs.

The required resemblance is r + s / tokens. It falls with the length of the text, since long texts have a smaller share
of words in common by chance or by form.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import product
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ..deduplicator import Deduplicator
from ..items import item_document
from ..matching.evidence import Rule, compare
from ..progress import watched
from ..settings import Config
from ..signature import Signature
from .evaluation import evaluate
from .labels import MODES, LabelledSet

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
    with Deduplicator.from_config(replace(config, store=None, reviewed=None)) as dedup:
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
