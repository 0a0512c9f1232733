"""Mark the cases of a test that are not in the quick tier."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest


def some(cases: Iterable[Any], *quick: Any) -> list[Any]:
    """Return all cases as parameters, all but a few of them slow."""
    cases = list(cases)
    assert all(case in cases for case in quick), f"not among the cases: {[case for case in quick if case not in cases]}"
    return [case if case in quick else pytest.param(case, marks=pytest.mark.slow) for case in cases]


def slow(*cases: Any) -> list[Any]:
    """Return cases as slow parameters. A tuple has a value for each name; a `pytest.param` keeps its id and marks."""
    made = [case if isinstance(case, tuple) else pytest.param(case) for case in cases]
    parameters = [case if isinstance(case, type(pytest.param())) else pytest.param(*case) for case in made]
    return [each._replace(marks=(*each.marks, pytest.mark.slow)) for each in parameters]
