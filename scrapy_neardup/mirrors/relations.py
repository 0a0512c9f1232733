"""The evidence on two hosts whose URLs correspond in one way, and how far it can be trusted."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import IntEnum
from functools import lru_cache
from typing import NamedTuple

from ..text.shapes import Place, Shape, counterpart, place

BOUND = 0.88
"""The least confidence of a rule: 23 paths with the same content and none with another reach it."""
WARM_UP = 12  # documents, however low the bound
WINDOW = 200  # the last paths count, so that a rule is un-learned
PENALTY = 10  # a page that would be missed weighs as much as so many that are alike
RISK = 0.05  # that the share of equal pages is in truth below the confidence
BRANCH = 2  # equal pages that a directory must show before the rule holds in it …
BRANCHES = 5  # … unless so many directories did
CONTAINED = 0.99  # of the shorter text: what is missing is no more than the sketch's error
SHORT = 40  # tokens: what is extracted of shorter texts is too often the page's frame


class Outcome(IntEnum):
    """What comparing two documents at corresponding URLs gave."""

    SAME = 0
    """Equal texts, or one holds all of the other: headers and footers may come along."""
    NEAR = 1
    """A repetition, yet not all of it: two mirrors, or two versions."""
    DIFFERENT = 2
    """Two documents: whoever skips one for the other misses it."""
    UNKNOWN = 3
    """Nothing after all: what was taken for a page's text turned out to be its frame."""


def judge(*, same_text: bool, duplicate: bool, containment: float, tokens: int) -> Outcome | None:
    """Return the outcome of a comparison; None if the texts are too short.

    `duplicate`: by the verification; `containment` in 0 … 1; `tokens` of the shorter text.
    """
    if duplicate and (same_text or containment >= CONTAINED):
        return Outcome.SAME
    if tokens < SHORT:
        return None
    return Outcome.NEAR if duplicate else Outcome.DIFFERENT


class Trial(NamedTuple):
    """One path at which both hosts were seen; the last time counts."""

    outcome: Outcome
    content: int
    """An id of the document that was held: one that lies at many paths counts once."""
    branch: int
    holder: int
    """0 or 1: the host whose page was first; NOBODY where a third one's was."""
    seen: float
    """Seconds since the epoch."""
    claimed: bool = False
    """Whether the page said itself that it is the copy of the one held."""


class Tally(NamedTuple):
    """How many trials went which way."""

    same: int
    near: int
    different: int
    claimed: int = 0
    """Of the same ones those that the page claimed itself: they count twice."""


NOTHING = Tally(0, 0, 0)
NOBODY = 2


class Row(NamedTuple):
    """One trial as it is stored: JSON can hold it. What several processes and runs found adds up."""

    sites: tuple[str, str]
    prefixes: tuple[str, str]
    endings: tuple[str, str]
    path: int
    """The rest as in `Trial`."""
    outcome: int
    content: int
    branch: int
    holder: int
    seen: float
    claimed: bool = False


@dataclass(eq=False, slots=True)
class Relation:
    """Two hosts, in alphabetical order, and how their URLs correspond."""

    sites: tuple[str, str]
    shape: Shape
    trials: dict[int, Trial] = field(default_factory=dict)
    """By the hash of the path, the last seen last."""
    tally: Tally = NOTHING
    confidence: float = 0.0
    confirmed: float = -math.inf
    """When the content was last seen to be the same, in seconds since the epoch."""
    in_force: bool = False
    _branches: Counter[int] = field(default_factory=Counter)

    @property
    def is_promising(self) -> bool:
        """Whether all that was seen speaks for a rule, and some more pages will tell."""
        return not self.in_force and 0 < self.tally.same < WINDOW // 4 and not self.tally.different

    def side(self, site: str) -> int:
        """Return which of the two hosts it is, 0 or 1."""
        return self.sites.index(site)

    def counterpart(self, url: str, side: int) -> str | None:
        """Return the URL of the other host that corresponds to one of host `side`, in canonical form."""
        return counterpart(url, self._seen_from(side), self.sites[1 - side])

    def place(self, url: str, side: int) -> Place | None:
        """Return where a URL of host `side` lies; None where the shape does not fit it."""
        return place(url, self._seen_from(side))

    def _seen_from(self, side: int) -> Shape:
        return self.shape.flip() if side else self.shape

    def row(self, path: int, trial: Trial) -> Row:
        """Return what is stored of a trial."""
        return Row(self.sites, *self.shape, path, **trial._asdict())

    def add(self, rows: Iterable[Row]) -> None:
        """Add trials, oldest first; each replaces the earlier one of its path."""
        for row in rows:
            self.trials.pop(row.path, None)
            if row.outcome != Outcome.UNKNOWN:
                self.trials[row.path] = Trial(Outcome(row.outcome), *row[5:])
            if len(self.trials) > WINDOW:
                del self.trials[next(iter(self.trials))]
        self._count()

    def _count(self) -> None:
        same = {t.content: t for t in self.trials.values() if t.outcome is Outcome.SAME}
        near = {t.content for t in self.trials.values() if t.outcome is Outcome.NEAR}
        different = sum(t.outcome is Outcome.DIFFERENT for t in self.trials.values())
        self.tally = Tally(len(same), len(near), different, sum(t.claimed for t in same.values()))
        self.confidence = confidence(self.tally)
        self.confirmed = max((t.seen for t in same.values()), default=-math.inf)
        self._branches = Counter(t.branch for t in same.values())

    def covers(self, place: Place) -> bool:
        """Return whether the evidence reaches to a place: hosts may share one directory and no more."""
        return self._branches[place.branch] >= BRANCH or len(self._branches) >= BRANCHES

    def original(self) -> int | None:
        """Return the host whose pages were held at most paths, 0 or 1; None for as many of either."""
        first, second = self.holders()
        return None if first == second else int(second > first)

    def holders(self) -> tuple[int, int]:
        """Return at how many paths which host's page was first."""
        holders = Counter(trial.holder for trial in self.trials.values())
        return holders[0], holders[1]


def confidence(tally: Tally) -> float:
    """Return the lower bound of the share of paths with the same content: with a risk of 5 % it is less.

    That of the Beta posterior under an even prior, so that 23 equal pages alone give .05 ** (1 / 24) = .883. A page of
    other content counts as many failures. Near copies count as failures too, since two versions of a site have many of
    them, and some pages that differ; but not where a full window has not one that does.
    """
    near = tally.near if tally.different or sum(tally) < WINDOW else 0
    same = tally.same + tally.claimed + tally.near - near
    return beta_quantile(RISK, 1 + same, 1 + near + PENALTY * tally.different)


@lru_cache(maxsize=4096)
def beta_quantile(risk: float, a: int, b: int) -> float:
    """Return the x at which the Beta distribution with whole parameters from 1 on reaches `risk`.

    By bisection: P(X ≤ x) is the chance of at least `a` successes in a + b - 1 trials of chance x.
    """
    low, high = 0.0, 1.0
    for _ in range(40):
        middle = (low + high) / 2
        low, high = (middle, high) if _beta_cdf(middle, a, b) < risk else (low, middle)
    return (low + high) / 2


def _beta_cdf(x: float, a: int, b: int) -> float:
    if b > a:  # the sum has b terms
        return 1 - _beta_cdf(1 - x, b, a)
    trials = a + b - 1
    chance = trials * math.log(x)  # of no failure, then of one more each time
    total = 0.0
    odds = math.log1p(-x) - math.log(x)
    for failures in range(b):
        total += math.exp(chance)
        chance += math.log((trials - failures) / (failures + 1)) + odds
    return total
