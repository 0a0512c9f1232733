"""The self-organising map, which clusters a batch of documents by the weights of their terms.

The paper is Wang, Liu, Zhang 2011, An improved algorithm for removing duplicate web pages (in Chinese). Equations are
numbered as in the paper. Equations 5 and 7 are misprinted there. Equation 5 is replaced by equation 6, which the paper
calls equal to it, and equation 7 by the usual chi-square.

As in the paper, a Kohonen map is trained on selected terms. The paper does not say which of the documents on near units
are duplicates. Here the cosine of all their terms decides, since unrelated texts may share the few selected terms. The
map is MiniSom's, from the extra `som`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from importlib import import_module
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from ..document import Document
from ..text.tokens import tokenize

STEPS = 1000  # training steps, as in the paper for 50 to 100 pages
STEPS_A_DOCUMENT = 10  # training steps for each document of a larger batch
RATE = 0.9
UNITS = 5.0  # units of the map for each square root of the number of documents: MiniSom's rule of thumb
UNITS_A_DOCUMENT = 0.5  # the maximum; on a larger map, copies of one text would be on distant units
TITLE_WEIGHT = 2.0  # α of equation 4: the weight of a term in the title
CHI_SHARE = 0.5  # α of equation 8: the share of chi-square in the selection of terms, beside mutual information
TERMS = 3000  # selected terms
SIMILARITY = 0.9  # the required cosine of two documents, over all their terms
ROUNDS = 10  # of the rough clustering
SEED = 1


Floats: TypeAlias = npt.NDArray[np.float64]
Integers: TypeAlias = npt.NDArray[np.intp]


class Occurrences(NamedTuple):
    """The terms of the documents: four arrays of equal length, with one entry for each term of each document."""

    documents: Integers  # document numbers from 0, ascending
    terms: Integers  # term numbers from 0, in the order of first occurrence
    in_title: Floats  # the number of occurrences in the title
    in_text: Floats  # the number of occurrences in the text
    size: tuple[int, int]  # the numbers of documents and of terms


def count_terms(documents: Iterable[Document]) -> Occurrences:
    """Count the terms of documents, separately in titles and in texts. If there are no documents, the arrays are empty.

    A document without text has no terms, whatever its title.
    """
    numbers: dict[str, int] = {}
    entries: list[tuple[int, int, int, int]] = []
    total = 0
    for document in documents:
        text = Counter(document.tokens)
        title = Counter(tokenize(document.title) if text else ())
        for term in dict.fromkeys((*title, *text)):
            entries.append((total, numbers.setdefault(term, len(numbers)), title[term], text[term]))
        total += 1
    owners, terms, in_title, in_text = np.array(entries, dtype=np.intp).reshape(-1, 4).T
    return Occurrences(owners, terms, in_title.astype(float), in_text.astype(float), (total, len(numbers)))


def document_frequencies(found: Occurrences) -> Integers:
    """Return the document frequency of each term; shape (terms,)."""
    return np.bincount(found.terms, minlength=found.size[1])


def frequency_weights(found: Occurrences) -> Floats:
    """Return CW of each entry: its TF-IDF, divided by the length of the document's TF-IDF vector; shape (entries,).
    Equation 2."""
    idf = np.log(found.size[0] / document_frequencies(found) + 0.01)
    weights = (found.in_title + found.in_text) * idf[found.terms]
    squares = np.bincount(found.documents, weights**2, minlength=found.size[0])
    lengths: Floats = np.sqrt(squares)[found.documents]
    return weights / lengths


def term_weights(found: Occurrences) -> Floats:
    """Return the weight of each entry, ½ CW + ½ SW; shape (entries,). Equation 1.

    SW is the number of occurrences; one in the title counts α times. Equations 3 and 4.
    """
    return frequency_weights(found) / 2 + (TITLE_WEIGHT * found.in_title + found.in_text) / 2


def mutual_information(both: Integers, with_term: Integers, in_class: int, total: int) -> Floats:
    """Return log P(t|c) − log P(t) for each term t and a class c; −∞ for a term that the class lacks. Equation 6.

    The arguments are numbers of documents: with the term and in the class, with the term, in the class, and in all.
    """
    ratio = (both / in_class) / (with_term / total)
    return np.log(ratio, out=np.full(ratio.shape, -np.inf), where=ratio > 0)


def chi_square(both: Integers, with_term: Integers, in_class: int, total: int) -> Floats:
    """Return the chi-square of each term and a class; 0 if all documents have the term, or all are in the class.

    The arguments are those of `mutual_information`. Equation 7.
    """
    t, c, tc = with_term / total, in_class / total, both / total
    apart = tc * (1 - t - c + tc) - (t - tc) * (c - tc)
    spread = t * (1 - t) * c * (1 - c)
    return np.divide(total * apart**2, spread, out=np.zeros(spread.shape), where=spread > 0)


def joint_score(found: Occurrences, classes: Integers) -> Floats:
    """Return the highest score E of each term in any class; shape (terms,).

    `classes` has the class number of each document, from 0. The paper does not say how to combine the scores of a term
    in several classes. Here the highest score counts, since a term distinguishes one class from the others.
    Equation 8, β = 1 − α.
    """
    with_term, sizes = document_frequencies(found), np.bincount(classes)
    best: Floats = np.full(found.size[1], -np.inf)
    for number, in_class in enumerate(sizes):
        inside = found.terms[classes[found.documents] == number]
        given = (np.bincount(inside, minlength=found.size[1]), with_term, int(in_class), found.size[0])
        best = np.maximum(best, CHI_SHARE * chi_square(*given) + (1 - CHI_SHARE) * mutual_information(*given))
    return best


def highest(scores: Floats, count: int) -> Integers:
    """Return the positions of the `count` highest scores, ascending. In a tie, the first positions are preferred."""
    return np.sort(np.argsort(-scores, kind="stable")[:count])


def unit_vectors(found: Occurrences, weights: Floats, documents: Integers, terms: Integers | None = None) -> Floats:
    """Return the weights of terms in documents, scaled to length 1; shape (documents, terms).

    `documents` and `terms` are ascending numbers. None stands for all terms of these documents. A document without any
    of the terms has only zeros. Equations 9 to 11.
    """
    kept = np.isin(found.documents, documents)
    terms = np.unique(found.terms[kept]) if terms is None else terms
    kept &= np.isin(found.terms, terms)
    places = documents.searchsorted(found.documents[kept]), terms.searchsorted(found.terms[kept])
    vectors = np.zeros((len(documents), len(terms)))
    vectors[places] = weights[kept]
    return normalized(vectors)


def normalized(vectors: Floats) -> Floats:
    """Return vectors scaled to length 1. Vectors of length 0 stay unchanged. Equations 10 and 11."""
    lengths = np.linalg.norm(vectors, axis=-1, keepdims=True)
    made: Floats = np.divide(vectors, lengths, out=np.zeros_like(vectors), where=lengths > 0)
    return made


def rough_classes(vectors: Floats) -> Integers:
    """Return the class number of each document, for √(n/2) classes made by spherical k-means; shape (documents,).

    The result is deterministic: the first centres are documents at equal steps. A class may end up empty.
    Dhillon, Modha 2001, Concept decompositions for large sparse text data using clustering, section 3.
    """
    count = max(1, round((len(vectors) / 2) ** 0.5))
    centres = vectors[np.arange(count) * len(vectors) // count]
    for _ in range(ROUNDS):
        nearest = np.argmax(vectors @ centres.T, axis=1)
        members = np.eye(count)[nearest]
        centres = normalized(members.T @ vectors)
    return np.unique(nearest, return_inverse=True)[1]


def som_clusters(documents: Iterable[tuple[Any, Document]]) -> list[list[Any]]:
    """Cluster documents, each given with its id. Return the ids of each cluster of two or more, in order of arrival.

    The classes for the selection of terms come from a first rough clustering. Documents without text are in no cluster.
    Raise ModuleNotFoundError if MiniSom is not installed.
    """
    minisom = import_module("minisom")
    rows = list(documents)
    found = count_terms(document for _, document in rows)
    weights = term_weights(found)
    vectors = unit_vectors(found, weights, np.arange(found.size[0]), _selected(found, weights))
    on_map = np.flatnonzero(vectors.any(axis=1))
    if len(on_map) < 2:
        return []
    units = train(minisom, vectors[on_map])
    near = near_on_map(units, lambda places: unit_vectors(found, weights, on_map[places]))
    return [[rows[place][0] for place in on_map[cluster]] for cluster in near]


def _selected(found: Occurrences, weights: Floats) -> Integers:
    """Return the numbers of the terms on which the map is trained."""
    if not len(weights):
        return np.zeros(0, dtype=np.intp)
    heaviest = highest(np.bincount(found.terms, weights).astype(float), TERMS)
    classes = rough_classes(unit_vectors(found, weights, np.arange(found.size[0]), heaviest))
    return highest(joint_score(found, classes), TERMS)


def train(library: Any, vectors: Floats) -> Integers:
    """Train a map on unit vectors, and return the row and column of each vector's unit; shape (documents, 2).

    Section 3.2 of the paper, steps 1 to 6; equation 12 is the drawn vector. In the paper, the neighbourhood shrinks to
    the winner alone. Here it shrinks to the winner and its adjacent units, since MiniSom's radius stays above 1.
    RandomState is used because it gives equal numbers in every version of numpy.
    """
    side, steps = map_side(len(vectors)), max(STEPS, STEPS_A_DOCUMENT * len(vectors))
    # Radius and rate fall linearly: η(t) = 0.9 (1 − t/1000) in the paper.
    som = library.MiniSom(
        side, side, vectors.shape[1], sigma=side // 2 + 1, learning_rate=RATE, random_seed=SEED,
        neighborhood_function="bubble",
        decay_function="linear_decay_to_zero", sigma_decay_function="linear_decay_to_one",
    )  # fmt: skip
    weights = som.get_weights()  # the weights of the map itself, not a copy
    np.abs(weights, out=weights)  # step 1: small random numbers from 0 to 1
    order = np.random.RandomState(SEED).randint(len(vectors), size=steps)
    for step, number in enumerate(order):
        vector = vectors[number]
        som.update(vector, som.winner(vector), step, steps)  # equations 13 and 14, then 15 to 17
        # MiniSom does not scale adjusted vectors back to length 1. This is the fastest way to do it.
        weights /= np.sqrt(np.einsum("ijk,ijk->ij", weights, weights))[:, :, None]
    return np.array([som.winner(vector) for vector in vectors], dtype=np.intp)


def map_side(documents: int) -> int:
    """Return the side length, in units, of the map for a number of documents."""
    return int(np.ceil(min(UNITS * documents**0.5, UNITS_A_DOCUMENT * documents) ** 0.5))


def near_on_map(units: Integers, vectors: Callable[[Integers], Floats]) -> list[list[int]]:
    """Return the clusters of documents that are on the same unit or on adjacent units, and have a large enough cosine.

    `units`: a row and a column for each document. `vectors` returns the vectors of documents, given their ascending
    numbers. Two documents that are not near may share a cluster through other documents.
    """
    clusters = np.arange(len(units))  # the cluster of each document, named after its first one
    for unit in np.unique(units, axis=0):
        distance = np.abs(units - unit).max(axis=1)
        around = np.flatnonzero(distance <= 1)
        made, own = vectors(around), distance[around] == 0
        # Rounding may leave the cosine of equal vectors below 1.
        for near in made[own] @ made.T >= SIMILARITY - 1e-9:
            joined = clusters[around[near]]
            clusters[np.isin(clusters, joined)] = joined.min()
    members = (np.flatnonzero(clusters == first) for first in np.unique(clusters))
    return [found.tolist() for found in members if len(found) > 1]
