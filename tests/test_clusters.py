"""Clusters by the self-organising map: each formula against values worked by hand, the map, and the whole."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from helpers import text

from scrapy_neardup.document import Document
from scrapy_neardup.papers import som
from scrapy_neardup.papers.som import Occurrences, count_terms, map_side, near_on_map


def documents(*texts: str) -> list[Document]:
    return [Document(text=each) for each in texts]


def som_clusters(batch: list[Document]) -> list[list[int]]:
    return som.som_clusters(enumerate(batch))


# Counts and weights: a = "red red blue" titled "red", b = "blue green", c = "green".


@pytest.fixture
def three() -> Occurrences:
    """Return the terms red 0, blue 1 and green 2 of three documents."""
    return count_terms([Document(title="Red", text="red red blue"), *documents("blue green", "green")])


def test_terms_are_counted_in_title_and_text(three: Occurrences) -> None:
    assert three.documents.tolist() == [0, 0, 1, 1, 2]
    assert three.terms.tolist() == [0, 1, 1, 2, 2]
    assert three.in_title.tolist() == [1, 0, 0, 0, 0]
    assert three.in_text.tolist() == [2, 1, 1, 1, 1]
    assert three.size == (3, 3)
    assert som.document_frequencies(three).tolist() == [1, 2, 2]


def test_frequency_weights_equation_2(three: Occurrences) -> None:
    # a: tf 3 × log(3/1 + .01) and 1 × log(3/2 + .01); b: two terms of equal weight; c: one term.
    red, blue = 3 * math.log(3.01), math.log(1.51)
    length = math.sqrt(red**2 + blue**2)
    half = math.sqrt(0.5)
    assert som.frequency_weights(three) == pytest.approx([red / length, blue / length, half, half, 1])
    assert red / length == pytest.approx(0.99232, abs=1e-5)


def test_a_term_of_all_documents_has_a_little_weight() -> None:
    found = count_terms(documents("the cat", "the dog"))
    the, cat = som.frequency_weights(found)[:2]
    assert the / cat == pytest.approx(math.log(1.01) / math.log(2.01))


@pytest.mark.parametrize(("alpha", "red"), [(1, 3), (2, 4), (3, 5), (4, 6), (6, 8)])
def test_term_weights_equations_1_3_and_4(
    three: Occurrences, alpha: float, red: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(som, "TITLE_WEIGHT", alpha)
    assert som.term_weights(three)[4] == (1 + 1) / 2
    assert som.term_weights(three)[0] == pytest.approx((0.99232 + red) / 2, abs=1e-5)


def test_no_documents_and_documents_without_text_have_no_terms() -> None:
    assert count_terms([]).size == (0, 0)
    assert count_terms([Document(title="only a title"), *documents("", "…")]).size == (3, 0)
    assert len(som.term_weights(count_terms([]))) == 0


# Selection: 10 documents, 5 in the class; a term is in 4 of them, 3 in the class.


def scores(kind: str, both: int, with_term: int, in_class: int = 5, total: int = 10) -> float:
    return float(getattr(som, kind)(np.array([both]), np.array([with_term]), in_class, total)[0])


def test_mutual_information_equation_6() -> None:
    assert scores("mutual_information", 3, 4) == pytest.approx(math.log(0.6) - math.log(0.4))
    assert scores("mutual_information", 2, 4) == pytest.approx(0)
    assert scores("mutual_information", 0, 4) == -math.inf


def test_chi_square_equation_7() -> None:
    # 10 (.3 × .4 − .1 × .2)² / (.4 × .6 × .5 × .5) = 10 × .01 / .06
    assert scores("chi_square", 3, 4) == pytest.approx(1 / 0.6)
    assert scores("chi_square", 2, 4) == pytest.approx(0)
    assert scores("chi_square", 5, 5) == pytest.approx(10)
    assert scores("chi_square", 5, 10) == 0
    assert scores("chi_square", 4, 4, in_class=10) == 0


def test_joint_score_equation_8_in_the_best_class(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(som, "CHI_SHARE", 0.25)
    # `cat` is in both documents of class 0, `dog` in one of each, `eel` in one of class 1.
    found = count_terms(documents("cat dog", "cat", "dog eel", "fox"))
    joint = som.joint_score(found, np.array([0, 0, 1, 1]))
    assert joint[0] == pytest.approx(0.25 * 4 + 0.75 * math.log(2))
    assert joint[1] == pytest.approx(0)
    # chi: 4 (.25 × .5 − 0 × .25)² / (.25 × .75 × .25) = 4/3
    assert joint[2] == pytest.approx(0.25 * 4 / 3 + 0.75 * math.log(2))


def test_highest_keeps_the_order_and_the_first_of_equal_ones() -> None:
    assert som.highest(np.array([1.0, 3.0, -np.inf, 3.0, 1.0]), 3).tolist() == [0, 1, 3]
    assert som.highest(np.array([1.0]), 3).tolist() == [0]


def test_unit_vectors_equations_9_to_11(three: Occurrences) -> None:
    vectors = som.unit_vectors(three, np.array([3.0, 4.0, 1.0, 2.0, 2.0]), np.arange(3), np.array([0, 1]))
    assert vectors.tolist() == [[0.6, 0.8], [0, 1], [0, 0]]


def test_unit_vectors_of_all_terms_of_some_documents(three: Occurrences) -> None:
    weights = np.array([3.0, 4.0, 1.0, 2.0, 2.0])
    assert som.unit_vectors(three, weights, np.array([0, 2])).tolist() == [[0.6, 0.8, 0], [0, 0, 1]]
    assert som.unit_vectors(three, weights, np.array([2])).tolist() == [[1]]


def test_rough_classes_hold_what_is_alike_together_and_are_numbered_as_they_come() -> None:
    east, north = np.array([1.0, 0.1, 0.0]), np.array([0.0, 0.1, 1.0])
    vectors = som.normalized(np.array([east, east, north, east, north, north, east, north]))
    assert som.rough_classes(vectors).tolist() == [0, 0, 1, 0, 1, 1, 0, 1]


# The map


def test_map_side_is_that_of_five_root_n_units_or_of_half_as_many_as_documents() -> None:
    assert [map_side(count) for count in (2, 3, 8, 18, 100, 1000)] == [1, 2, 2, 3, 8, 13]  # the last: 158 units


class Begun:
    """Stands for the library: makes its map with the weights given, and keeps it."""

    def __init__(self, *weights: list[list[float]]) -> None:
        self.weights = weights
        self.map: Any = None

    def MiniSom(self, *size: int, **options: Any) -> Any:  # noqa: N802 - the library's name
        self.map = pytest.importorskip("minisom").MiniSom(*size, **options)
        self.map.get_weights()[:] = self.weights
        return self.map


def test_training_equations_15_and_16(monkeypatch: pytest.MonkeyPatch) -> None:
    # Two steps on a map of one unit, w = (1, 0), x = (0, 1); the rate is .9 (1 − t/2): .9, then .45.
    # t = 0: w + .9 (x − w) = (.1, .9), of length √.82 = .90554: (.11043, .99388) once made of length 1.
    # t = 1: w + .45 (x − w) = (.55 · .11043, .55 · .99388 + .45) = (.06074, .99664), of length .99849.
    monkeypatch.setattr(som, "STEPS", 2)
    monkeypatch.setattr(som, "STEPS_A_DOCUMENT", 1)
    library = Begun([[1.0, 0.0]])
    assert som.train(library, np.array([[0.0, 1.0]] * 2)).tolist() == [[0, 0]] * 2
    assert library.map.get_weights()[0, 0] == pytest.approx([0.06074 / 0.99849, 0.99664 / 0.99849], abs=1e-5)


def test_training_equations_13_14_and_17(monkeypatch: pytest.MonkeyPatch) -> None:
    # One step on a map of nine units. x = (0, 1) is at (.6² + .2²) = .4 from the unit in the corner, (1, 0) at 2 from
    # all others: the corner wins. It becomes (.6, .8) + .9 (−.6, .2) = (.06, .98), of length √.964; those that touch
    # it (1, 0) + .9 (−1, 1) = (.1, .9), of length √.82; those two steps away stay.
    monkeypatch.setattr(som, "STEPS", 1)
    monkeypatch.setattr(som, "STEPS_A_DOCUMENT", 0)
    monkeypatch.setattr(som, "map_side", lambda documents: 3)
    away = [1.0, 0.0]
    library = Begun([[0.6, 0.8], away, away], [away] * 3, [away] * 3)
    assert som.train(library, np.array([[0.0, 1.0]])).tolist() == [[0, 0]]
    won, near = np.array([0.06, 0.98]) / math.sqrt(0.964), np.array([0.1, 0.9]) / math.sqrt(0.82)
    expected = np.array([[won, near, away], [near, near, away], [away] * 3])
    assert library.map.get_weights() == pytest.approx(expected)


def joined(units: list[list[int]], cosines: list[float]) -> list[list[int]]:
    """Return the clusters of documents whose cosine with the first is given."""
    vectors = np.array([[cosine, math.sqrt(1 - cosine**2)] for cosine in cosines])
    return near_on_map(np.array(units), lambda chosen: vectors[chosen])


def test_near_documents_of_the_same_and_of_adjacent_units_are_joined() -> None:
    assert joined([[0, 0], [0, 0]], [1, 1]) == [[0, 1]]
    assert joined([[0, 0], [1, 1]], [1, 1]) == [[0, 1]]  # they touch at a corner
    assert joined([[0, 0], [0, 2]], [1, 1]) == []
    assert joined([[0, 0], [0, 2], [1, 1]], [1, 1, 1]) == [[0, 1, 2]]  # by way of the last
    assert joined([[0, 0], [3, 3], [0, 0], [3, 3]], [1, 0, 1, 0]) == [[0, 2], [1, 3]]


def test_documents_are_near_from_the_least_cosine_on() -> None:
    assert joined([[0, 0], [0, 0]], [1, 0.9]) == [[0, 1]]
    assert joined([[0, 0], [0, 0]], [1, 0.89]) == []


def test_som_of_texts_that_are_equal_but_for_their_titles(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("minisom")
    rows = [Document(title=f"title{n}", text=text(n // 2, 40)) for n in range(10)]
    for weight, expected in ((1, [[n, n + 1] for n in range(0, 10, 2)]), (6, [])):
        monkeypatch.setattr(som, "TITLE_WEIGHT", weight)
        assert som_clusters(rows) == expected


def test_som_of_almost_nothing() -> None:
    pytest.importorskip("minisom")
    assert som_clusters([]) == []
    assert som_clusters(documents("", "", "…")) == []
    assert som_clusters(documents("", "one two", "")) == []
    assert som_clusters(documents("", "one two", "", "one two")) == [[1, 3]]
    assert som_clusters(documents("one", "two")) == []
