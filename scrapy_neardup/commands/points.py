"""List the points that decide a comparison, each with a measure and its threshold."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from operator import ge, le
from typing import Any

from ..detectors import Exact
from ..matching.evidence import Comparison, Rule
from ..verdict import Point

_LIMITS: tuple[tuple[str, str, Callable[[float, float], bool]], ...] = (
    ("resemblance", "resemblance {:g}, needed {:g}", ge),
    ("length_ratio", "length ratio {:g}, allowed {:g}", le),
    ("missing_figures", "{:g} figures differ, allowed {:g}", le),
)


def rule_points(found: Comparison, rule: Rule, proposed_by: list[str], *, same_url: bool) -> Iterator[Point]:
    """Yield the points that the rule checks for two documents, and whether each is met."""
    least = max(rule.min_tokens, 1)
    if found.tokens >= least:
        measured = found._asdict()
        if rule.ignores_figures(found):
            del measured["missing_figures"]
        yield from limit_points(measured, thresholds_of(rule, found.tokens, found.figures))
        yield Point(f"found by {', '.join(proposed_by) or 'no detector'}", bool(proposed_by))
    elif found.tokens and (same_url or rule.short_text == "exact"):
        is_same = Exact.name in proposed_by
        yield Point(f"{found.tokens} words, fewer than {least}: {'' if is_same else 'not '}all are equal", is_same)
    else:
        yield Point(f"{found.tokens} words, needed {least}", False)


def limit_points(found: Mapping[str, Any], thresholds: Mapping[str, Any]) -> Iterator[Point]:
    """Yield a point for each measure that has a threshold."""
    for name, text, is_met in _LIMITS:
        if name in found:
            value, limit = round(found[name], 4), thresholds[name]
            yield Point(text.format(value, limit), is_met(value, limit))


def thresholds_of(rule: Rule, tokens: int, figures: int, *, repeated: bool = False) -> dict[str, Any]:
    return {
        "min_tokens": rule.min_tokens,
        "resemblance": round(rule.required_resemblance(tokens, repeated=repeated), 4) if tokens else None,
        "length_ratio": rule.length_ratio,
        "missing_figures": round(rule.allowed_figures(tokens, figures), 4),
    }
