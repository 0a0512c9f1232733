"""The verification: the comparison of two sketches, and the thresholds."""

from __future__ import annotations

import math

import pytest
from helpers import hashes, sketch, sketch_of, text

from scrapy_neardup.matching.matcher import ANYTHING, Comparison, Rule, compare

RULE = Rule(resemblance=0.5, length_ratio=2.0, min_tokens=20)
GOOD = Comparison(1.0, 1.0, 1.0, 100, 0, 0.0)


def test_compare_texts_of_different_length() -> None:
    a, b = sketch(60, hashes(58, 1), figures=[1, 2, 3]), sketch(90, hashes(58, 1), figures=[1, 2, 9, 10])
    assert compare(a, b) == compare(b, a) == Comparison(1.0, 1.0, 1.5, 60, 3, 1.0)


def test_compare_with_a_part_of_the_text() -> None:
    whole, part = sketch_of(text(1, 300)), sketch_of(text(1, 150))
    found = compare(whole, part)
    assert found.length_ratio == 2.0
    assert found.resemblance == pytest.approx(0.5, abs=0.08)
    assert found.containment == pytest.approx(1.0, abs=0.12)


def test_texts_without_tokens_resemble_nothing() -> None:
    nothing, something = sketch(0), sketch(60, hashes(58, 1))
    for pair, ratio in (((nothing, something), math.inf), ((something, nothing), math.inf), ((nothing, nothing), 1.0)):
        found = compare(*pair)
        assert found == Comparison(0.0, 0.0, ratio, 0, 0, 0.0)
        assert not RULE.accepts(found)
        assert not Rule(0.0, 1e9, 0, "exact").accepts(found, same_text=True)


@pytest.mark.parametrize(
    ("change", "accepted"),
    [
        ({"resemblance": 0.62}, True),  # .5 and .12
        ({"resemblance": 0.6199}, False),
        ({"length_ratio": 2.0}, True),
        ({"length_ratio": 2.01}, False),
        ({"tokens": 20}, True),
        ({"tokens": 19}, False),
        ({"figures": 5, "missing_figures": 1.0}, True),  # a tenth of 5, and one for 200 tokens: .5 + .5
        ({"resemblance": 0.69, "figures": 5, "missing_figures": 1.1}, False),
        ({"resemblance": 0.7, "figures": 8, "missing_figures": 8.0}, True),  # near, and few are figures
        ({"resemblance": 0.7, "figures": 9, "missing_figures": 9.0}, False),
        ({"figures": 50, "missing_figures": 5.5}, True),
        ({"figures": 50, "missing_figures": 5.6}, False),
    ],
)
def test_each_threshold_accepts_up_to_its_limit(change: dict[str, float], accepted: bool) -> None:
    assert RULE.accepts(GOOD._replace(**change)) is accepted


@pytest.mark.parametrize(
    ("tokens", "required"), [(5, 1.0), (16, 1.0), (20, 0.9), (40, 0.7), (100, 0.62), (1000, 0.62), (5000, 0.524)]
)
def test_short_texts_must_resemble_more(tokens: int, required: float) -> None:
    assert RULE.required_resemblance(tokens) == pytest.approx(required)


@pytest.mark.parametrize(
    ("tokens", "required"), [(5, 0.9), (20, 0.9), (99, 0.9), (100, 0.6), (499, 0.6), (500, 0.4), (10**6, 0.4)]
)
def test_required_resemblance_by_length(tokens: int, required: float) -> None:
    assert Rule({20: 0.9, 100: 0.6, 500: 0.4}, 2.0, 20).required_resemblance(tokens) == required


@pytest.mark.parametrize(
    ("resemblance", "repeated", "accepted"), [(0.61, False, False), (0.571, True, True), (0.57, True, False)]
)
def test_what_others_repeat_needs_less(resemblance: float, repeated: bool, accepted: bool) -> None:
    # .5 and .12: .38 may differ, and .13 of that more
    assert RULE.accepts(GOOD._replace(resemblance=resemblance), repeated=repeated) is accepted


def test_anything_is_accepted_that_has_tokens() -> None:
    assert ANYTHING.accepts(Comparison(0.0, 0.0, 99.0, 1, 9, 9.0))
    assert not ANYTHING.accepts(Comparison(0.0, 0.0, math.inf, 0, 0, 0.0))


@pytest.mark.parametrize(("tokens", "figures", "allowed"), [(200, 0, 1.0), (1000, 0, 5.0), (20, 10, 1.1)])
def test_allowed_figures_by_length_and_number(tokens: int, figures: int, allowed: float) -> None:
    assert RULE.allowed_figures(tokens, figures) == pytest.approx(allowed)


@pytest.mark.parametrize(
    ("short_text", "same_text", "accepted"),
    [("unique", True, False), ("unique", False, False), ("exact", False, False), ("exact", True, True)],
)
def test_short_texts_are_accepted_as_the_setting_says(short_text: str, same_text: bool, accepted: bool) -> None:
    rule = Rule(0.5, 2.0, 20, short_text)
    assert rule.accepts(GOOD._replace(tokens=19), same_text=same_text) is accepted
