"""Find the query parameters by which URLs of one host differ, and weigh whether they matter. Pure.

Bar-Yossef, Keidar, Schonfeld 2007, "Do not crawl in the DUST: different URLs with similar text". The URLs that are
equal without the parameters of a rule are a *class*. A URL that has none of the parameters is *plain*. Evidence for a
rule are two URLs of one class that returned equal documents, and evidence against it are two that did not.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache
from typing import NamedTuple

from ..text.urls import parts_of

MOST_NAMES = 3  # the maximum number of parameters that are left out together
ENOUGH = 41  # documents at two URLs of a class that bring a rule into force: 93 % of all classes, at a risk of 5 %
NEAR_COPY = 25  # further documents that the rule needs for each near copy
BRANCH = 3  # of them in a directory to which the rule applies
WINDOW = 200  # the last visits that count
SAME, NEAR, DIFFERENT = range(3)

_TOKEN = re.compile(r"(?=.*\d)[\w.%-]{8,}")  # the value of a session id: a new one for each visitor
_DATE = re.compile(r"/(?:19|20)\d\d(?:/[01]?\d(?:/[0-3]?\d)?)?(?=/)")  # other numbers tell directories apart
_NUMBER = re.compile(r"[+-]?\d+")


class Variation(NamedTuple):
    """A URL as a member of a class."""

    plain: str
    """The canonical URL without the parameters. It may not exist."""
    parts: frozenset[str]
    """The parameters that were left out, such as `print=1`. A value that looks like a session id is `*`."""
    place: str
    """The directory with the other parameters' names and the parts, since a parameter may matter in some directories,
    and one value of it may matter while another does not."""

    @property
    def key(self) -> str:
        """The class with the parts: all URLs with equal keys count as one."""
        return f"{self.plain} {sorted(self.parts)}"


def difference(a: str, b: str) -> tuple[str, ...] | None:
    """Return the names of up to `MOST_NAMES` parameters by which two URLs differ; None if they differ otherwise."""
    names = tuple(sorted({_name(item) for item in {*_items(a)} ^ {*_items(b)}}))
    one, other = variation(a, names), variation(b, names)
    is_all = one and other and one.plain == other.plain
    return names if is_all and 0 < len(names) <= MOST_NAMES else None


@lru_cache(maxsize=1024)  # the advice on a URL asks several times
def variation(url: str, names: tuple[str, ...]) -> Variation | None:
    """Return a URL as a member of its class without some parameters; None if it can't be in one.

    A URL is in no class if one of the parameters has a number other than 0 and 1, since numbers count: the pages of a
    list, items, results.
    """
    url_parts, items = parts_of(url), _items(url)
    kinds = {_kind(item) for item in items if _name(item) in names}
    if url_parts is None or None in kinds:
        return None
    kept = [item for item in items if _name(item) not in names]
    parts = frozenset(map(str, kinds))
    where = url_parts.path if kept else f"{url_parts.path.rpartition('/')[0]}/"
    place = f"{_DATE.sub('/date', where)}?{sorted(set(map(_name, kept)))} {sorted(parts)}"
    return Variation(url_parts._replace(query="&".join(kept)).geturl(), parts, place)


def _items(url: str) -> list[str]:
    parts = parts_of(url)
    return [item for item in parts.query.split("&") if item] if parts else []


def _name(item: str) -> str:
    return item.partition("=")[0]


def _kind(item: str) -> str | None:
    """Return a parameter, with `*` for the value of a session id; None for a number other than 0 and 1."""
    name, _, value = item.partition("=")
    if _TOKEN.fullmatch(value):
        return f"{name}=*"
    return None if _NUMBER.fullmatch(value) and value not in ("0", "1") else item


class Trial(NamedTuple):
    """The result of comparing a visit with an earlier one of its class."""

    outcome: int
    content: str
    """The held document's URL. A document that is at several URLs counts once."""
    place: str
    seen: float


class Rule:
    """The parameters to leave out of the URLs of a host, and the evidence that they do not matter."""

    def __init__(self, site: str, names: Iterable[str], trials: Iterable[tuple[str, Trial]] = ()) -> None:
        self.site, self.names = site, tuple(names)
        self.trials: dict[str, Trial] = {}
        """By the plain URL and the parts, oldest first."""
        self.add(trials)

    def add(self, trials: Iterable[tuple[str, Trial]]) -> None:
        """Add evidence. One different page is enough to end a rule."""
        for key, trial in trials:
            self.trials.pop(key, None)
            self.trials[key] = trial
        while len(self.trials) > WINDOW:
            del self.trials[next(iter(self.trials))]
        same = {each.content: each.seen for each in self.trials.values() if each.outcome == SAME}
        near = {each.content for each in self.trials.values() if each.outcome == NEAR}
        self.different = sum(each.outcome == DIFFERENT for each in self.trials.values())
        self.same, self.confirmed = len(same), max(same.values(), default=0.0)
        self.in_force = not self.different and self.same >= ENOUGH + NEAR_COPY * len(near)

    def __str__(self) -> str:
        return f"{self.site}/…?{'&'.join(f'{name}=…' for name in self.names)}"

    def class_of(self, here: Variation) -> str:
        """Return a name of the class of a URL."""
        return f"{here.plain} {self.names}"

    def covers(self, here: Variation) -> bool:
        """Return whether the directory of a URL has evidence of its own, with hardly any near copies."""
        found = [trial for trial in self.trials.values() if trial.place == here.place]
        same = len({trial.content for trial in found if trial.outcome == SAME})
        return same >= BRANCH and 10 * sum(trial.outcome != SAME for trial in found) <= same
