"""Measure a pair of documents by their sketches, and apply the thresholds.

Detectors propose many candidates. The thresholds decide which of them are accepted.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

from ..fingerprints import shingles
from ..fingerprints.shingles import Sketch
from ..settings import Config

LONG = 1000  # the number of tokens from which a text is long
LEAST = 0.3  # whole texts with less resemblance are not copies, whatever is form


class Comparison(NamedTuple):
    """The measures of a pair of documents. All but the lengths are estimates."""

    resemblance: float
    containment: float
    length_ratio: float
    """The tokens of the longer text, divided by those of the shorter. Peng et al., section 3.2, step 3."""
    tokens: int
    """Tokens of the shorter text."""
    figures: int
    """The number of figures in the document that has fewer of them; 0 if one document has none."""
    missing_figures: float
    """The number of these figures that the other document lacks."""


def compare(a: Sketch, b: Sketch) -> Comparison:
    """Compare two documents. The resemblance is 0 if a text has no tokens."""
    shorter, longer = sorted((a.tokens, b.tokens))
    if not shorter:
        return Comparison(0.0, 0.0, float("inf") if longer else 1.0, 0, 0, 0.0)
    shared = shingles.resemblance(a, b)
    return Comparison(
        resemblance=shared,
        containment=shingles.containment(a, b, shared),
        length_ratio=longer / shorter,
        tokens=shorter,
        figures=min(a.figures, b.figures),
        missing_figures=shingles.missing_figures(a, b),
    )


@dataclass(frozen=True)
class Rule:
    """The thresholds that a copy has to meet.

    They depend on the length of the texts, since a few changed words matter more in a short text.
    """

    resemblance: float | Mapping[int, float]
    """The required resemblance of long texts; or required resemblances by minimum number of tokens, ascending."""
    length_ratio: float
    min_tokens: int
    short_text: str = "unique"
    allowance: float = 0.12
    """Added to the required resemblance of texts of up to `LONG` tokens. For longer texts, only the part `LONG` /
    tokens of it is added."""
    short_allowance: float = 8.0
    """Divided by the number of tokens, and then added in place of `allowance` if it is more, as in short texts. If
    `resemblance` is given by length, neither is added."""
    family_discount: float = 0.13
    """If the original has copies already, the allowed difference, 1 - required resemblance, grows by this share."""
    figure_share: float = 0.1
    """The share of the figures that may differ."""
    tokens_a_figure: float = 200.0
    """One more figure may differ for each of this many tokens."""
    near: float = 0.7
    """The resemblance from which all figures may differ, if the texts have few figures."""
    few_figures: float = 0.08
    """The maximum share of figures among the tokens of a text with few figures."""

    @classmethod
    def from_config(cls, config: Config) -> Rule:
        return cls(config.resemblance, config.length_ratio, config.min_tokens, config.short_text)

    def accepts(
        self,
        found: Comparison,
        *,
        same_text: bool = False,
        same_record: bool = False,
        repeated: bool = False,
    ) -> bool:
        """Return whether one document repeats the other.

        `same_text`: their normalized texts are equal. `same_record`: both have one URL, or are of one site with equal
        facts. `repeated`: the original has copies already.

        A text of fewer than `min_tokens` tokens repeats only an equal text: of the same record or, with `short_text`
        "exact", of any. If the original has copies, the rule is less strict, since the original
        is then one of several versions of a text, and another version may differ more from it than a copy does.
        """
        if found.tokens < max(self.min_tokens, 1):
            is_exact = self.short_text == "exact" and found.tokens > 0
            return same_text and (same_record or is_exact)
        return (
            found.resemblance >= self.required_resemblance(found.tokens, repeated=repeated)
            and found.length_ratio <= self.length_ratio
            and (
                self.ignores_figures(found)
                or found.missing_figures <= self.allowed_figures(found.tokens, found.figures)
            )
        )

    def ignores_figures(self, found: Comparison) -> bool:
        """Return whether all figures may differ, because the texts are near copies with few figures."""
        return found.resemblance >= self.near and found.figures <= self.few_figures * found.tokens

    def may_accept(self, found: Comparison) -> bool:
        """Return whether two texts may be accepted once form is left out. Texts too short to tell may be too."""
        return found.tokens < self.min_tokens or found.resemblance >= LEAST

    def required_resemblance(self, tokens: int, *, repeated: bool = False) -> float:
        """Return the required resemblance, given the number of tokens of the shorter text."""
        if isinstance(self.resemblance, Mapping):
            lengths = list(self.resemblance)
            required = self.resemblance[lengths[max(0, bisect_right(lengths, tokens) - 1)]]
        else:
            tokens = max(tokens, 1)
            more = max(self.allowance * min(1.0, LONG / tokens), self.short_allowance / tokens)
            required = min(1.0, self.resemblance + more)
        return required - self.family_discount * (1 - required) * repeated

    def allowed_figures(self, tokens: int, figures: int) -> float:
        """Return the number of figures that may differ, given `Comparison.tokens` and `Comparison.figures`."""
        return self.figure_share * figures + tokens / self.tokens_a_figure


ANYTHING = Rule(0.0, float("inf"), 0, allowance=0.0, short_allowance=0.0, tokens_a_figure=float("1e-9"))
"""A rule that accepts every pair of texts with tokens, for measurements without verification."""
