"""Turn documents into unit vectors of weighted, selected terms. Pure.

All but the last two functions follow Wang, Liu, Zhang 2011, An improved algorithm for removing duplicate web pages (in
Chinese), with its equation numbers. Equations 5 and 7 are misprinted there. They are replaced by equation 6, which the
paper calls equal to 5, and by the usual chi-square.
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
    """The number of occurrences."""
    in_text: Floats
    size: tuple[int, int]
    """The numbers of documents and of terms."""


def count_terms(documents: Iterable[Document]) -> Occurrences:
    """Count the terms of documents, in titles and in texts; arrays of length 0 for no documents.

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
    """Return CW of each entry: its component in the document's TF-IDF vector of length 1; shape (entries,).

    Equation 2.
    """
    idf = np.log(found.size[0] / document_frequencies(found) + 0.01)
    weights = (found.in_title + found.in_text) * idf[found.terms]
    squares = np.bincount(found.documents, weights**2, minlength=found.size[0])
    lengths: Floats = np.sqrt(squares)[found.documents]
    return weights / lengths


def place_weights(found: Occurrences, title_weight: float) -> Floats:
    """Return SW of each entry: the occurrences of the term, those in the title weighted by α; shape (entries,).

    Equations 3 and 4.
    """
    return title_weight * found.in_title + found.in_text


def term_weights(found: Occurrences, title_weight: float) -> Floats:
    """Return the weight of each entry, ½ CW + ½ SW; shape (entries,).

    Equation 1.
    """
    return frequency_weights(found) / 2 + place_weights(found, title_weight) / 2


def mutual_information(both: Integers, with_term: Integers, in_class: int, total: int) -> Floats:
    """Return log P(t|c) − log P(t), given numbers of documents; −∞ for a term that the class lacks.

    Equation 6.
    """
    ratio = (both / in_class) / (with_term / total)
    return np.log(ratio, out=np.full(ratio.shape, -np.inf), where=ratio > 0)


def chi_square(both: Integers, with_term: Integers, in_class: int, total: int) -> Floats:
    """Return the dependence of each term and the class; 0 if either is in all documents.

    Equation 7.
    """
    t, c, tc = with_term / total, in_class / total, both / total
    apart = tc * (1 - t - c + tc) - (t - tc) * (c - tc)
    spread = t * (1 - t) * c * (1 - c)
    return np.divide(total * apart**2, spread, out=np.zeros(spread.shape), where=spread > 0)


def joint_score(found: Occurrences, classes: Integers, chi_share: float) -> Floats:
    """Return E of each term in the class with its maximum; shape (terms,). `classes`: a number for each document,
    from 0.

    A term distinguishes its class from the others, so the class with the maximum counts. The paper does not say how to
    join the scores of a term in several classes.

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
    """Return the positions of the highest scores, ascending. Ties go to the first."""
    return np.sort(np.argsort(-scores, kind="stable")[:count])


def unit_vectors(found: Occurrences, weights: Floats, selected: Integers) -> Floats:
    """Return a vector of length 1 of the selected terms of each document; shape (documents, selected).

    All 0 for a document without any of them. Equations 9 to 11.
    """
    columns = np.full(found.size[1], -1)
    columns[selected] = np.arange(len(selected))
    kept = columns[found.terms] >= 0
    vectors = np.zeros((found.size[0], len(selected)))
    vectors[found.documents[kept], columns[found.terms[kept]]] = weights[kept]
    return normalized(vectors)


def whole_vectors(found: Occurrences, weights: Floats, chosen: Integers) -> Floats:
    """Return a vector of length 1 of all terms of each chosen document; shape (chosen, terms of any of these).

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
    """Number classes from 0 in the order of their first occurrence."""
    numbers: dict[Hashable, int] = {}
    return np.array([numbers.setdefault(name, len(numbers)) for name in classes], dtype=np.intp)


def rough_classes(vectors: Floats, rounds: int = 10) -> Integers:
    """Return √(n/2) classes for documents without given classes, by spherical k-means; shape (documents,).

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
