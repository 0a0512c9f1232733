"""Collect evidence that parts of a host's URLs never change the content, such as session ids or `/amp`. No I/O.

A rule on variants is a relation of a host with itself. The URLs that are equal without the parts form a class. The
evidence for the rule comes from two URLs of one class that returned equal documents.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

from ..text.shapes import Place
from ..text.url_classes import Variation, class_name, variation
from ..text.urls import canonical_url
from .relations import PENALTY, RISK, Outcome, Relation, Row, Tally, Trial, beta_quantile

BOUND = 0.93
"""The minimum confidence of a rule: that of 41 equal pages, and none with other content."""
BRANCH = 3  # equal pages that a directory needs before the rule applies to it
DOUBTS = 3  # different pages for which a candidate is kept up, beside one in ten


class ClassFinding(NamedTuple):
    """The result of comparing a fetched document with the last document of its class."""

    outcome: Outcome
    content: int
    """See `Finding.content`."""
    held: str
    """The held document's own URL."""


@dataclass(eq=False, slots=True)
class Variant(Relation):
    """A host, the parts to leave out of its URLs, and the evidence on it."""

    def place(self, url: str, side: int = 0) -> Place | None:
        """Return the place of a URL; None if the URL is in no class."""
        found = self.variation(url)
        return found.place if found else None

    def counterpart(self, url: str, side: int = 0) -> str | None:
        """Return the name of a URL's class; None if the URL is in no class."""
        found = self.variation(url)
        return class_name(self.sites[0], self.shape, found.plain) if found else None

    def variation(self, url: str) -> Variation | None:
        """Return a URL as a member of its class; None if the URL is in no class."""
        return variation(url, self.shape)

    def places(self, url: str) -> list[str]:
        """Return the other URL and the name under which the store may know a document of a URL's class."""
        found, own = self.variation(url), self.counterpart(url)
        return [*([found.plain] if found.parts else []), own] if found and own else []

    def has_enough(self, bound: float, warm_up: int) -> bool:
        """Return whether the evidence is enough for a rule. The bound of a rule on hosts does not matter."""
        return self.confidence >= BOUND

    def covers(self, place: Place) -> bool:
        """Return whether the evidence covers the directory of a place. No other directory's evidence counts for it."""
        here = [trial for trial in self.trials.values() if trial.branch == place.branch]
        found = Counter(trial.outcome for trial in here)
        same = len({trial.content for trial in here if trial.outcome is Outcome.SAME})
        return same >= BRANCH and found[Outcome.NEAR] + PENALTY * found[Outcome.DIFFERENT] <= same / PENALTY

    def permits(self, url: str, held: str | None) -> bool:
        """Return whether a URL may be skipped for a document whose own URL is `held`.

        The held URL must be in the same class, and may have no part that the URL lacks. So a plain URL is never
        skipped, nor is one language skipped for another.
        """
        ours, theirs = self.variation(url), self.variation(held or "")
        if not ours or not theirs or ours.plain != theirs.plain or not theirs.parts <= ours.parts:
            return False
        return bool(ours.parts) and self.covers(ours.place) and self.covers(theirs.place)

    def wanted(self, url: str) -> str | None:
        """Return the name under which to record a fetched document; None if the evidence needs none."""
        found = self.variation(url)
        is_hopeless = self.tally.different > DOUBTS + self.tally.same // PENALTY
        return self.counterpart(url) if found and found.parts and not is_hopeless else None

    def compare(self, url: str, look: Callable[[str], ClassFinding | None], now: float) -> Iterator[Row]:
        """Compare a document with the last document of its class, and yield the evidence.

        Equal content counts only if the held document's own URL is another URL of the class.
        """
        here = self.variation(url)
        found = next(filter(None, map(look, self.places(url))), None)
        if not here or not found or canonical_url(found.held) == canonical_url(url):
            return
        there = self.variation(found.held)
        if found.outcome is not Outcome.SAME:
            yield self.row(here.place.path, _trial(found, here, now))
        elif there and there.plain == here.plain:
            yield from (self.row(each.place.path, _trial(found, each, now)) for each in (here, there))

    def original(self) -> int:
        """Return the side of the URLs without the parts."""
        return 1

    def rate(self, tally: Tally) -> float:
        """Return a lower bound of the share of classes with equal content. Near copies always count against it."""
        return beta_quantile(RISK, 1 + tally.same, 1 + tally.near + PENALTY * tally.different)


def _trial(found: ClassFinding, here: Variation, now: float) -> Trial:
    return Trial(found.outcome, found.content, here.place.branch, 0, now)
