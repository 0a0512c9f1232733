"""Verify a pair: decide from sketches and thresholds whether one document repeats the other.

Detectors may propose too much; this module decides, from the sketches alone.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

from ..fingerprints import sketch
from ..fingerprints.sketch import Sketch
from ..settings import Config

LONG = 1000  # tokens


class Comparison(NamedTuple):
    """What two sketches say of their documents; all of it estimated but the lengths."""

    resemblance: float
    containment: float
    length_ratio: float
    """Tokens of the longer over tokens of the shorter. Peng et al., section 3.2, step 3; a is the most allowed."""
    tokens: int
    """Of the shorter."""
    figures: int
    """Of the document with fewer of them; 0 where either has none."""
    missing_figures: float
    """How many of those the other document lacks."""


def compare(a: Sketch, b: Sketch) -> Comparison:
    """Compare two documents; texts without tokens resemble nothing."""
    shorter, longer = sorted((a.tokens, b.tokens))
    if not shorter:
        return Comparison(0.0, 0.0, float("inf"), 0, 0, 0.0)
    shared = sketch.resemblance(a, b)
    return Comparison(
        resemblance=shared,
        containment=sketch.containment(a, b, shared),
        length_ratio=longer / shorter,
        tokens=shorter,
        figures=min(a.figures, b.figures),
        missing_figures=sketch.missing_figures(a, b),
    )


@dataclass(frozen=True)
class Rule:
    """The thresholds. They depend on length: a few words changed are much of a short text and little of a long one."""

    resemblance: float | Mapping[int, float]
    """The least one for long texts, or for texts from so many tokens on, ascending."""
    length_ratio: float
    min_tokens: int
    short_text: str = "unique"
    allowance: float = 0.12
    """What a text of up to `LONG` tokens must resemble more; a longer one less of it, in proportion."""
    short_allowance: float = 8.0
    """Shingles by which a short text must resemble more, if that is more; neither where `resemblance` is by length."""
    family_discount: float = 0.13
    """What may differ more, as a share of what may differ anyway, where the earlier document is repeated already."""
    figure_share: float = 0.1
    """Figures that may differ, as a share of the figures …"""
    tokens_a_figure: float = 200.0
    """… and one more for so many tokens."""
    near: float = 0.7
    """Resemblance from which all figures may differ …"""
    few_figures: float = 0.08
    """… where they are at most this share of the tokens."""

    @classmethod
    def from_config(cls, config: Config) -> Rule:
        return cls(config.resemblance, config.length_ratio, config.min_tokens, config.short_text)

    def accepts(
        self, found: Comparison, *, same_text: bool = False, same_url: bool = False, repeated: bool = False
    ) -> bool:
        """Return whether one document repeats the other; `same_text` where their normalized texts are equal.

        A short text repeats that of its own URL if it is equal, any other's only if the user asked for that.
        `repeated`: the earlier document is repeated by others already. Texts that come in many versions differ more
        from one another than two copies do, and the first to come need not be the middle one.
        """
        if found.tokens < max(self.min_tokens, 1):
            return same_text and found.tokens > 0 and (same_url or self.short_text == "exact")
        return (
            found.resemblance >= self.required_resemblance(found.tokens, repeated=repeated)
            and found.length_ratio <= self.length_ratio
            and (self.ignores_figures(found) or self._has_the_figures(found))
        )

    def _has_the_figures(self, found: Comparison) -> bool:
        return found.missing_figures <= self.allowed_figures(found.tokens, found.figures)

    def ignores_figures(self, found: Comparison) -> bool:
        """Return whether two texts are too near, and have too few figures, to be one form with other figures."""
        return found.resemblance >= self.near and found.figures <= self.few_figures * found.tokens

    def may_accept(self, a: Sketch, b: Sketch, *, repeated: bool = False) -> bool:
        """Return whether two texts resemble each other, or are too short to tell: the quick part of `accepts`."""
        tokens = min(a.tokens, b.tokens)
        return tokens < self.min_tokens or sketch.resemblance(a, b) >= self.required_resemblance(
            tokens, repeated=repeated
        )

    def required_resemblance(self, tokens: int, *, repeated: bool = False) -> float:
        """Return the least resemblance, given the tokens of the shorter text."""
        required = self._by_length(tokens)
        return required - self.family_discount * (1 - required) * repeated

    def _by_length(self, tokens: int) -> float:
        if isinstance(self.resemblance, Mapping):
            lengths = list(self.resemblance)
            return self.resemblance[lengths[max(0, bisect_right(lengths, tokens) - 1)]]
        tokens = max(tokens, 1)
        more = max(self.allowance * min(1.0, LONG / tokens), self.short_allowance / tokens)
        return min(1.0, self.resemblance + more)

    def allowed_figures(self, tokens: int, figures: int) -> float:
        """Return how many figures may differ, given the tokens of the shorter text and how many figures it has."""
        return self.figure_share * figures + tokens / self.tokens_a_figure


ANYTHING = Rule(0.0, float("inf"), 0, allowance=0.0, short_allowance=0.0, tokens_a_figure=float("1e-9"))
"""Accepts whatever has tokens: what is proposed is taken for true."""
