"""Mark cases of a test as slow, so that only `pytest -m ''` or `-m slow` runs them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest


def some(cases: Iterable[Any], *quick: Any) -> list[Any]:
    """Return all cases as parameters. Those in `quick` are quick, all others are slow."""
    cases = list(cases)
    assert all(case in cases for case in quick), f"not among the cases: {[case for case in quick if case not in cases]}"
    return [case if case in quick else pytest.param(case, marks=pytest.mark.slow) for case in cases]


def slow(*cases: Any) -> list[Any]:
    """Return cases as slow parameters. A case is one value, a tuple with a value for each name, or a `pytest.param`."""
    made = [case if isinstance(case, tuple) else pytest.param(case) for case in cases]
    parameters = [case if isinstance(case, type(pytest.param())) else pytest.param(*case) for case in made]
    return [each._replace(marks=(*each.marks, pytest.mark.slow)) for each in parameters]
