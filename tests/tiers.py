"""Which cases of a test with many of them belong to the quick tier: the others are marked slow."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest


def some(cases: Iterable[Any], *quick: Any) -> list[Any]:
    """Return all cases as parameters, all but a few of them slow."""
    cases = list(cases)
    assert all(case in cases for case in quick), f"not among the cases: {[case for case in quick if case not in cases]}"
    return [case if case in quick else pytest.param(case, marks=pytest.mark.slow) for case in cases]
