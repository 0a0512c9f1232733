"""Measure detectors on labelled sets, with verdicts as in a crawl or `dedupe`."""

from __future__ import annotations

import random
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from ..deduplicator import Deduplicator
from ..items import item_document
from ..matching.evidence import ANYTHING
from ..progress import watched
from ..settings import Config
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
    with Deduplicator.from_config(replace(config, store=None, reviewed=None)) as dedup:
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
            sum(map(_size, dedup.store.signatures())) / (len(dedup) or 1),
        )


def _size(signature: Signature) -> int:
    return len(signature.record)


def evaluate(labelled: LabelledSet, config: Config, *, verified: bool = True) -> dict[str, Any]:
    """Compare the verdicts of a configuration, all detectors together, with the labels of a set. Return the results."""
    outcome = decide(labelled.rows, config, verified=verified)
    predicted = Partition(outcome.clusters)
    return {
        "detectors": [part if isinstance(part, str) else part.name for part in config.detectors],
        **{name: labelled.score(predicted, mode)._asdict() for name, mode in MODES.items()},
        "adjusted_rand": round(labelled.agreement(predicted, MODES["strict"]), 4),
        "candidates_per_document": round(outcome.candidates, 3),
        "documents_per_second": round(outcome.rate),
        "bytes_per_document": round(outcome.size),
        "found": labelled.found(predicted),
    }


def contestants(together: Config, alone: Sequence[Any]) -> list[Config]:
    """Return a configuration for each detector in `alone`, then the configuration `together`."""
    configs = [replace(together, detectors=(part,)) for part in dict.fromkeys(alone)]
    return configs if configs[-1:] == [together] else [*configs, together]


def shuffled(labelled: LabelledSet, seed: int) -> LabelledSet:
    """Return a set with its documents in a random order, which depends on the seed."""
    order = list(labelled.rows)
    random.Random(seed).shuffle(order)
    return replace(labelled, rows={name: labelled.rows[name] for name in order})


def warm_up() -> None:
    """Load everything that is loaded on first use, so that the first measurement does not include it."""
    tokenize("预热")
