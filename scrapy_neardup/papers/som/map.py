"""Cluster a batch with a Kohonen map: join near vectors on one unit or on adjacent ones.

The map is made with selected terms, as in the paper; which of the documents that it brings together are duplicates, of
which the paper says nothing, is decided by all terms: unrelated texts may have the few selected ones in common.

Wang, Liu, Zhang 2011, An improved algorithm for removing duplicate web pages (in Chinese); equation numbers are its
own. The map is MiniSom's, from the extra `som`; what the paper does not say is decided here.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import numpy as np

from ...document import Document
from ...index.unions import Unions
from ...progress import watched
from .vectors import (
    Floats,
    Integers,
    Occurrences,
    class_numbers,
    count_terms,
    highest,
    joint_score,
    rough_classes,
    term_weights,
    unit_vectors,
    whole_vectors,
)

STEPS, STEPS_A_DOCUMENT = 1000, 10  # the paper's number, for 50 to 100 pages; more documents need more
RATE = 0.9
UNITS = 5.0  # times the root of the number of documents: MiniSom's rule of thumb …
UNITS_A_DOCUMENT = 0.5  # … but no more than this, or the copies of one text come to lie on units far apart


class MissingExtraError(ImportError):
    """What the clusters are made with is not installed; the message says how to install it."""


@dataclass(frozen=True)
class Parameters:
    """What the clusters depend on, besides the documents."""

    title_weight: float = 2.0
    """α of equation 4: how often a term in the title counts."""
    chi_share: float = 0.5
    """α of equation 8: the share of chi-square in the selection of terms; mutual information has the rest."""
    terms: int = 3000
    """How many are selected for the map."""
    similarity: float = 0.9
    """The least cosine of two documents' vectors, of all their terms."""
    seed: int = 1


def som_clusters(
    documents: Iterable[Document],
    parameters: Parameters = Parameters(),
    classes: Sequence[Hashable] | None = None,
) -> list[list[int]]:
    """Return the clusters of two documents or more, as their numbers from 0 in the order in which they came.

    `classes`: one a document, for the selection of terms, looked at when all documents have been read; without, they
    come of a first rough clustering. Documents without text are in no cluster. Raise MissingExtraError where MiniSom is
    not installed.
    """
    library = _minisom()
    found = count_terms(documents)
    weights = term_weights(found, parameters.title_weight)
    vectors = unit_vectors(found, weights, _selected(found, weights, parameters, classes))
    on_map = np.flatnonzero(vectors.any(axis=1))
    if len(on_map) < 2:
        return []
    units = train(library, vectors[on_map], parameters.seed)
    near = near_on_map(units, lambda places: whole_vectors(found, weights, on_map[places]), parameters.similarity)
    return [on_map[cluster].tolist() for cluster in near]


def _minisom() -> Any:
    try:
        return import_module("minisom")
    except ImportError as error:
        raise MissingExtraError("MiniSom is not installed: pip install 'scrapy-neardup[som]'") from error


def _selected(
    found: Occurrences, weights: Floats, parameters: Parameters, classes: Sequence[Hashable] | None
) -> Integers:
    """Return the terms that the map is made with."""
    if not len(weights):
        return np.zeros(0, dtype=np.intp)
    if classes is None:
        heaviest = highest(np.bincount(found.terms, weights).astype(float), parameters.terms)
        numbers = rough_classes(unit_vectors(found, weights, heaviest))
    else:
        numbers = class_numbers(classes)
    return highest(joint_score(found, numbers, parameters.chi_share), parameters.terms)


def train(library: Any, vectors: Floats, seed: int) -> Integers:
    """Train a map on unit vectors, and return each one's unit, as row and column; shape (documents, 2).

    Section 3.2 of the paper, steps 1 to 6; equation 12 is the vector that is drawn. The neighbourhood shrinks to the
    winner and the units that touch it, not to the winner alone as in the paper: MiniSom's radius stays above 1.
    RandomState gives the same numbers with every version of numpy.
    """
    side, steps = map_side(len(vectors)), max(STEPS, STEPS_A_DOCUMENT * len(vectors))
    # Radius and rate fall in a straight line: η(t) = 0.9 (1 − t/1000) in the paper.
    som = library.MiniSom(
        side,
        side,
        vectors.shape[1],
        sigma=side // 2 + 1,
        learning_rate=RATE,
        neighborhood_function="bubble",
        decay_function="linear_decay_to_zero",
        sigma_decay_function="linear_decay_to_one",
        random_seed=seed,
    )
    weights = som.get_weights()  # the map's own, not a copy
    np.abs(weights, out=weights)  # step 1: small random numbers from 0 to 1
    order = np.random.RandomState(seed).randint(len(vectors), size=steps)
    for step, number in enumerate(watched(order, "steps", len(order))):
        vector = vectors[number]
        som.update(vector, som.winner(vector), step, steps)  # equations 13 and 14, then 15 to 17
        # MiniSom leaves this out: adjusted vectors are no longer of length 1. The quickest way with so many numbers.
        weights /= np.sqrt(np.einsum("ijk,ijk->ij", weights, weights))[:, :, None]
    return np.array([som.winner(vector) for vector in vectors], dtype=np.intp)


def map_side(documents: int) -> int:
    """Return how many units long each side of the map is."""
    return int(np.ceil(min(UNITS * documents**0.5, UNITS_A_DOCUMENT * documents) ** 0.5))


def near_on_map(units: Integers, vectors: Callable[[Integers], Floats], similarity: float) -> list[list[int]]:
    """Return the clusters of documents whose units are the same or touch, and whose cosine is large enough.

    `units`: a row and a column for each document. `vectors` returns those of some documents, by their numbers,
    ascending. Two that are not near may share a cluster by way of others.
    """
    unions: Unions[int] = Unions()
    for number in range(len(units)):
        unions.top(number)  # so that clusters come in the order of the documents
    for unit in np.unique(units, axis=0):
        distance = np.abs(units - unit).max(axis=1)
        around = np.flatnonzero(distance <= 1)
        made, own = vectors(around), distance[around] == 0
        # Rounding may leave the cosine of equal vectors short of 1.
        near = made[own] @ made.T >= similarity - 1e-9
        for a, b in zip(*np.nonzero(near), strict=True):
            unions.join(int(around[own][a]), int(around[b]))
    return unions.clusters()
