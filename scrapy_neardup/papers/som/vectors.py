"""Turn documents into unit vectors of weighted, selected terms. No I/O.

All but the last two functions follow Wang, Liu, Zhang 2011, An improved algorithm for removing duplicate web pages (in
Chinese). Equations are numbered as in the paper. Equations 5 and 7 are misprinted there. Equation 5 is replaced by
equation 6, which the paper calls equal to it, and equation 7 by the usual chi-square.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Sequence
from typing import NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from ...document import Document
from ...text.tokens import tokenize

Floats: TypeAlias = npt.NDArray[np.float64]
Integers: TypeAlias = npt.NDArray[np.intp]


class Occurrences(NamedTuple):
    """The terms of the documents: four arrays of equal length, with an entry for each term of each document."""

    documents: Integers
    """Document numbers from 0, ascending."""
    terms: Integers
    """Term numbers from 0, in the order of first occurrence."""
    in_title: Floats
    """The number of occurrences in the title."""
    in_text: Floats
    """The number of occurrences in the text."""
    size: tuple[int, int]
    """The numbers of documents and of terms."""


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
    """Return CW of each entry: its component in the document's TF-IDF vector, scaled to length 1; shape (entries,).

    Equation 2.
    """
    idf = np.log(found.size[0] / document_frequencies(found) + 0.01)
    weights = (found.in_title + found.in_text) * idf[found.terms]
    squares = np.bincount(found.documents, weights**2, minlength=found.size[0])
    lengths: Floats = np.sqrt(squares)[found.documents]
    return weights / lengths


def place_weights(found: Occurrences, title_weight: float) -> Floats:
    """Return SW of each entry: the number of occurrences of the term, weighted; shape (entries,).

    Occurrences in the title have the weight α = `title_weight`, those in the text 1. Equations 3 and 4.
    """
    return title_weight * found.in_title + found.in_text


def term_weights(found: Occurrences, title_weight: float) -> Floats:
    """Return the weight of each entry, ½ CW + ½ SW; shape (entries,).

    Equation 1.
    """
    return frequency_weights(found) / 2 + place_weights(found, title_weight) / 2


def mutual_information(both: Integers, with_term: Integers, in_class: int, total: int) -> Floats:
    """Return log P(t|c) − log P(t) for each term t and a class c; −∞ for a term that the class lacks.

    The arguments are numbers of documents: with the term and in the class, with the term, in the class, and in all.

    Equation 6.
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


def joint_score(found: Occurrences, classes: Integers, chi_share: float) -> Floats:
    """Return the highest score E of each term in any class; shape (terms,).

    `classes` has the class number of each document, from 0. The paper does not say how to combine the scores of a term
    in several classes. Here the highest score counts, since a term distinguishes one class from the others.

    Equation 8, α = `chi_share`, β = 1 − α.
    """
    with_term, sizes = document_frequencies(found), np.bincount(classes)
    best: Floats = np.full(found.size[1], -np.inf)
    for number, in_class in enumerate(sizes):
        inside = found.terms[classes[found.documents] == number]
        given = (np.bincount(inside, minlength=found.size[1]), with_term, int(in_class), found.size[0])
        best = np.maximum(best, chi_share * chi_square(*given) + (1 - chi_share) * mutual_information(*given))
    return best


def highest(scores: Floats, count: int) -> Integers:
    """Return the positions of the `count` highest scores, ascending. In a tie, the first positions are preferred."""
    return np.sort(np.argsort(-scores, kind="stable")[:count])


def unit_vectors(found: Occurrences, weights: Floats, selected: Integers) -> Floats:
    """Return the weights of the selected terms in each document, scaled to length 1; shape (documents, selected).

    A document without selected terms has only zeros. Equations 9 to 11.
    """
    columns = np.full(found.size[1], -1)
    columns[selected] = np.arange(len(selected))
    kept = columns[found.terms] >= 0
    vectors = np.zeros((found.size[0], len(selected)))
    vectors[found.documents[kept], columns[found.terms[kept]]] = weights[kept]
    return normalized(vectors)


def whole_vectors(found: Occurrences, weights: Floats, chosen: Integers) -> Floats:
    """Return the weights of all terms in each chosen document, scaled to length 1; shape (chosen, their terms).

    `chosen`: ascending document numbers.
    """
    kept = np.isin(found.documents, chosen)
    terms, columns = np.unique(found.terms[kept], return_inverse=True)
    vectors = np.zeros((len(chosen), len(terms)))
    vectors[np.searchsorted(chosen, found.documents[kept]), columns] = weights[kept]
    return normalized(vectors)


def normalized(vectors: Floats) -> Floats:
    """Return vectors scaled to length 1. Vectors of length 0 stay unchanged.

    Equations 10 and 11.
    """
    lengths = np.linalg.norm(vectors, axis=-1, keepdims=True)
    made: Floats = np.divide(vectors, lengths, out=np.zeros_like(vectors), where=lengths > 0)
    return made


def class_numbers(classes: Sequence[Hashable]) -> Integers:
    """Return the number of each class, from 0 in the order of first occurrence."""
    numbers: dict[Hashable, int] = {}
    return np.array([numbers.setdefault(name, len(numbers)) for name in classes], dtype=np.intp)


def rough_classes(vectors: Floats, rounds: int = 10) -> Integers:
    """Return the class number of each document, for √(n/2) classes made by spherical k-means; shape (documents,).

    It is deterministic: the first centres are documents at equal steps through the batch. A class may end up empty.
    The other classes then have consecutive numbers.

    Dhillon, Modha 2001, Concept decompositions for large sparse text data using clustering, section 3.
    """
    count = max(1, round((len(vectors) / 2) ** 0.5))
    centres = vectors[np.arange(count) * len(vectors) // count]
    for _ in range(rounds):
        nearest = np.argmax(vectors @ centres.T, axis=1)
        members = np.eye(count)[nearest]
        centres = normalized(members.T @ vectors)
    return class_numbers(nearest.tolist())
