"""Cluster a batch with a Kohonen map, by joining near vectors on the same unit or adjacent ones.

As in the paper, the map is trained on selected terms. The paper does not say which of the documents on near units are
duplicates. Here the cosine of all their terms decides, since unrelated texts may share the few selected terms.

The paper is Wang, Liu, Zhang 2011, An improved algorithm for removing duplicate web pages (in Chinese). Equations are
numbered as in the paper. The map is MiniSom's, from the extra `som`.
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

STEPS = 1000  # training steps, as in the paper for 50 to 100 pages
STEPS_A_DOCUMENT = 10  # training steps for each document of a larger batch
RATE = 0.9
UNITS = 5.0  # units of the map for each square root of the number of documents: MiniSom's rule of thumb
UNITS_A_DOCUMENT = 0.5  # the maximum; on a larger map, copies of one text would lie on distant units


class MissingExtraError(ImportError):
    """MiniSom is not installed. The message says how to install it."""


@dataclass(frozen=True)
class Parameters:
    """The parameters of the clustering."""

    title_weight: float = 2.0
    """α of equation 4: the weight of a term in the title."""
    chi_share: float = 0.5
    """α of equation 8: the share of chi-square in the selection of terms, beside mutual information."""
    terms: int = 3000
    """The number of selected terms."""
    similarity: float = 0.9
    """The required cosine of two documents, over all their terms."""
    seed: int = 1


def som_clusters(
    documents: Iterable[Document],
    parameters: Parameters = Parameters(),
    classes: Sequence[Hashable] | None = None,
) -> list[list[int]]:
    """Return the clusters of two or more documents, as positions in the order of arrival, from 0.

    `classes` has a class for each document, for the selection of terms. It is read after all documents. If it is None,
    classes come from a first rough clustering. Documents without text are in no cluster. Raise MissingExtraError if
    MiniSom is not installed.
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
    """Return the numbers of the terms on which the map is trained."""
    if not len(weights):
        return np.zeros(0, dtype=np.intp)
    if classes is None:
        heaviest = highest(np.bincount(found.terms, weights).astype(float), parameters.terms)
        numbers = rough_classes(unit_vectors(found, weights, heaviest))
    else:
        numbers = class_numbers(classes)
    return highest(joint_score(found, numbers, parameters.chi_share), parameters.terms)


def train(library: Any, vectors: Floats, seed: int) -> Integers:
    """Train a map on unit vectors, and return the row and column of each vector's unit; shape (documents, 2).

    Section 3.2 of the paper, steps 1 to 6; equation 12 is the drawn vector. In the paper, the neighbourhood shrinks to
    the winner alone. Here it shrinks to the winner and its adjacent units, since MiniSom's radius stays above 1.
    RandomState is used because it gives equal numbers in every version of numpy.
    """
    side, steps = map_side(len(vectors)), max(STEPS, STEPS_A_DOCUMENT * len(vectors))
    # Radius and rate fall linearly: η(t) = 0.9 (1 − t/1000) in the paper.
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
    weights = som.get_weights()  # the weights of the map itself, not a copy
    np.abs(weights, out=weights)  # step 1: small random numbers from 0 to 1
    order = np.random.RandomState(seed).randint(len(vectors), size=steps)
    for step, number in enumerate(watched(order, "steps", len(order))):
        vector = vectors[number]
        som.update(vector, som.winner(vector), step, steps)  # equations 13 and 14, then 15 to 17
        # MiniSom does not scale adjusted vectors back to length 1. This is the fastest way to do it.
        weights /= np.sqrt(np.einsum("ijk,ijk->ij", weights, weights))[:, :, None]
    return np.array([som.winner(vector) for vector in vectors], dtype=np.intp)


def map_side(documents: int) -> int:
    """Return the side length, in units, of the map for a number of documents."""
    return int(np.ceil(min(UNITS * documents**0.5, UNITS_A_DOCUMENT * documents) ** 0.5))


def near_on_map(units: Integers, vectors: Callable[[Integers], Floats], similarity: float) -> list[list[int]]:
    """Return the clusters of documents that are on the same unit or on adjacent units, and have a large enough cosine.

    `units`: a row and a column for each document. `vectors` returns the vectors of documents, given their ascending
    numbers. Two documents that are not near may share a cluster through other documents.
    """
    unions: Unions[int] = Unions()
    for number in range(len(units)):
        unions.top(number)  # so that clusters come in the order of the documents
    for unit in np.unique(units, axis=0):
        distance = np.abs(units - unit).max(axis=1)
        around = np.flatnonzero(distance <= 1)
        made, own = vectors(around), distance[around] == 0
        # Rounding may leave the cosine of equal vectors below 1.
        near = made[own] @ made.T >= similarity - 1e-9
        for a, b in zip(*np.nonzero(near), strict=True):
            unions.join(int(around[own][a]), int(around[b]))
    return unions.clusters()
