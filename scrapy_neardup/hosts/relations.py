"""Collect evidence that two hosts mirror each other, and compute the confidence of the rule."""

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
"""The minimum confidence of a rule: that of 23 paths with equal content, and none with other content."""
WARM_UP = 12  # the minimum number of equal or near documents for a rule, however low the bound
WINDOW = 200  # the number of paths that count; older ones are dropped, so that a rule can be unlearned
PENALTY = 10  # one different page weighs as much as this many equal ones
RISK = 0.05  # the probability that the share of equal pages is below the confidence
BRANCH = 2  # equal pages that a directory needs before the rule applies to it
BRANCHES = 5  # directories with equal pages, after which the rule applies to all directories
CONTAINED = 0.99  # the contained share of the shorter text that counts as all of it, given the error of the sketch
SHORT = 40  # tokens; the text of a shorter page is too often only the frame of the site


class Outcome(IntEnum):
    """The result of comparing two documents at corresponding URLs."""

    SAME = 0
    """Equal texts, or one text contains the other, for example because it has a header or footer too."""
    NEAR = 1
    """A partial repetition. The hosts may be mirrors, or two versions of a site."""
    DIFFERENT = 2
    """Different documents. If one were skipped because of the other, the skipped document would be lost."""
    UNKNOWN = 3
    """The evidence was retracted, for example because the compared text was only the frame of the page."""


def judge(*, same_text: bool, duplicate: bool, containment: float, tokens: int) -> Outcome | None:
    """Return the outcome of a comparison; None if the texts are too short.

    `duplicate`: whether verification accepts the pair. `containment`: from 0 to 1. `tokens`: the number of tokens
    in the shorter text.
    """
    if duplicate and (same_text or containment >= CONTAINED):
        return Outcome.SAME
    if tokens < SHORT:
        return None
    return Outcome.NEAR if duplicate else Outcome.DIFFERENT


class Trial(NamedTuple):
    """The result of the last comparison of two pages at corresponding paths of two hosts."""

    outcome: Outcome
    content: int
    """An id of the held document. A document that is at several paths counts once."""
    branch: int
    holder: int
    """The host that had the document first: 0 or 1, or NOBODY for a third host."""
    seen: float
    """Seconds since the epoch."""
    claimed: bool = False
    """True if the page named the URL of the held document as its canonical URL."""


class Tally(NamedTuple):
    """The numbers of trials by outcome."""

    same: int
    near: int
    different: int
    claimed: int = 0
    """The number of trials in `same` that a canonical URL confirms. These trials count twice."""


NOTHING = Tally(0, 0, 0)
NOBODY = 2


class Row(NamedTuple):
    """A trial as it is stored, with JSON types. All evidence consists of the rows of all processes and runs."""

    sites: tuple[str, str]
    prefixes: tuple[str, str]
    endings: tuple[str, str]
    path: int
    """The hash of the path. The following fields are as in `Trial`."""
    outcome: int
    content: int
    branch: int
    holder: int
    seen: float
    claimed: bool = False


@dataclass(eq=False, slots=True)
class Relation:
    """Two hosts in alphabetical order, the correspondence of their URLs, and the evidence on it."""

    sites: tuple[str, str]
    shape: Shape
    trials: dict[int, Trial] = field(default_factory=dict)
    """Trials by the hash of the path, in the order of their last visits."""
    tally: Tally = NOTHING
    confidence: float = 0.0
    confirmed: float = -math.inf
    """The time of the last trial with equal content, in seconds since the epoch."""
    in_force: bool = False
    _branches: Counter[int] = field(default_factory=Counter)

    def has_enough(self, bound: float, warm_up: int) -> bool:
        """Return whether the evidence is enough for a rule, given the minimum confidence and number of pages."""
        return self.tally.same + self.tally.near >= warm_up and self.confidence >= bound

    def name(self, side: int) -> str:
        """Return a host with the prefix and the ending of its URLs, such as `b.example/m/…` or `a.example/….html`."""
        prefix, ending = self.shape.prefixes[side], self.shape.endings[side]
        return self.sites[side] + prefix + (f"/…{ending}" if prefix or any(self.shape.endings) else "")

    def side(self, site: str) -> int:
        """Return the position of a host in `sites`, 0 or 1."""
        return self.sites.index(site)

    def counterpart(self, url: str, side: int) -> str | None:
        """Return the canonical URL on the other host that corresponds to a URL on host `side` (0 or 1)."""
        return counterpart(url, self._seen_from(side), self.sites[1 - side])

    def place(self, url: str, side: int) -> Place | None:
        """Return the place of a URL under the prefix of host `side`, 0 or 1; None if the URL does not fit the shape."""
        return place(url, self._seen_from(side))

    def _seen_from(self, side: int) -> Shape:
        return self.shape.flip() if side else self.shape

    def row(self, path: int, trial: Trial) -> Row:
        """Return the stored form of a trial."""
        return Row(self.sites, *self.shape, path, **trial._asdict())

    def add(self, rows: Iterable[Row]) -> None:
        """Add trials, which must be sorted oldest first. Each trial replaces the earlier trial of its path."""
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
        """Return whether the evidence covers the directory of a place. Two hosts may share only some directories.

        If enough directories have equal pages, the evidence covers all directories.
        """
        return self._branches[place.branch] >= BRANCH or len(self._branches) >= BRANCHES

    def original(self) -> int | None:
        """Return the host (0 or 1) that had the page first at more paths than the other host; None in a tie."""
        first, second = self.holders()
        return None if first == second else int(second > first)

    def holders(self) -> tuple[int, int]:
        """Return two numbers: at how many paths each host had the page first."""
        holders = Counter(trial.holder for trial in self.trials.values())
        return holders[0], holders[1]


def confidence(tally: Tally) -> float:
    """Return a lower bound of the share of paths with equal content. The risk of a lower share is 5 %.

    The bound is the 5 % quantile of the Beta posterior under a uniform prior. For 23 equal pages and no others, the
    bound is .05 ** (1 / 24) = .883. Each different page counts as `PENALTY` failures. Near copies count as failures
    too, because two versions of one site have many near copies along with some different pages. But in a full window
    without a different page, near copies count as equal.
    """
    near = tally.near if tally.different or sum(tally) < WINDOW else 0
    same = tally.same + tally.claimed + tally.near - near
    return beta_quantile(RISK, 1 + same, 1 + near + PENALTY * tally.different)


@lru_cache(maxsize=4096)
def beta_quantile(risk: float, a: int, b: int) -> float:
    """Return the quantile `risk` of the Beta distribution with the integer parameters `a` and `b`.

    It is found by bisection: P(X ≤ x) is the chance of at least `a` successes in a + b - 1 trials of probability x.
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
    chance = trials * math.log(x)  # the logarithm of the probability of no failure, then of one more failure each time
    total = 0.0
    odds = math.log1p(-x) - math.log(x)
    for failures in range(b):
        total += math.exp(chance)
        chance += math.log((trials - failures) / (failures + 1)) + odds
    return total
