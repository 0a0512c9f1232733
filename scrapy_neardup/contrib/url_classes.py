"""Find the parts by which URLs of one host differ, such as a session id or `/amp`, and weigh whether they matter. Pure.

Bar-Yossef, Keidar, Schonfeld 2007, "Do not crawl in the DUST: different URLs with similar text". The URLs that are
equal without the parts of a shape are a *class*. A URL that has none of the parts is *plain*. Evidence for a rule are
two URLs of one class that returned equal documents, and evidence against it are two that did not.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import NamedTuple

from ..text.shapes import Place, Shape, hash_place, parts_of

ENOUGH = 41  # documents at two URLs of a class that bring a rule into force: 93 % of all classes, at a risk of 5 %
BRANCH = 3  # of them in a directory to which the rule applies
WINDOW = 200  # the last visits that count
SAME, NEAR, DIFFERENT = range(3)
MOST_NAMES = 3  # the maximum number of parameters that are left out together

# A part of a path has no digits, since numbers may count pages.
_PREFIX = re.compile(r"/[A-Za-z][A-Za-z_-]{0,30}")
_ENDING = re.compile(r"/|[/.]?[A-Za-z][A-Za-z_-]{0,30}/?")
_TOKEN = re.compile(r"(?=.*\d)[\w.%-]{8,}")  # the value of a session id: a new one for each visitor
_DATE = re.compile(r"/(?:19|20)\d\d(?:/[01]?\d(?:/[0-3]?\d)?)?(?=/)")  # other numbers tell directories apart
_NUMBER = re.compile(r"[+-]?\d+")
_SWITCHES = ("0", "1")


class Variation(NamedTuple):
    """A URL as a member of a class."""

    plain: str
    """The canonical URL without the parts. It may not exist."""
    parts: frozenset[str]
    """The parts that were left out: `/amp`, or `print=1`. A value that looks like a session id is `*`."""
    place: Place
    """The place of the evidence. Its branch is the directory with the parts, since a part may matter in some
    directories, and one value of a parameter may matter while another does not."""


class Trial(NamedTuple):
    """The result of comparing a visit with an earlier one of its class."""

    outcome: int
    content: int
    """A hash of the held document's URL. A document that is at several paths counts once."""
    branch: int
    seen: float


class Rule:
    """The parts to leave out of the URLs of a host, and the evidence that they do not matter."""

    def __init__(self, site: str, shape: Shape) -> None:
        self.site, self.shape = site, shape
        self.trials: dict[int, Trial] = {}
        """By the hash of the URL's place, oldest first."""
        self.add([])

    def add(self, trials: list[tuple[int, Trial]]) -> None:
        """Add evidence. One different page is enough to end a rule. For each near copy, it needs as much again."""
        for path, trial in trials:
            self.trials.pop(path, None)
            self.trials[path] = trial
        while len(self.trials) > WINDOW:
            del self.trials[next(iter(self.trials))]
        same = {each.content: each.seen for each in self.trials.values() if each.outcome == SAME}
        near = {each.content for each in self.trials.values() if each.outcome == NEAR}
        self.different = sum(each.outcome == DIFFERENT for each in self.trials.values())
        self.same, self.confirmed = len(same), max(same.values(), default=0.0)
        self.in_force = not self.different and self.same >= ENOUGH * (1 + len(near))

    @property
    def name(self) -> str:
        """The host with the parts, such as `a.example/amp/…` or `a.example/…?sid=…`."""
        ending = self.shape.endings[0]
        return f"{self.site}{self.shape.prefixes[0]}/…{ending.replace('&', '=…&')}{'=…' * ('?' in ending)}"

    @property
    def recheck(self) -> float:
        """The share of URLs to fetch in spite of the rule. The share is larger for a rule with less evidence."""
        return float(1 - 0.05 ** (1 / (self.same + 1))) / 4

    def covers(self, here: Variation) -> bool:
        """Return whether the directory of a URL has evidence of its own, with hardly any near copies."""
        found = [trial for trial in self.trials.values() if trial.branch == here.place.branch]
        same = len({trial.content for trial in found if trial.outcome == SAME})
        return same >= BRANCH and 10 * sum(trial.outcome != SAME for trial in found) <= same

    def class_of(self, here: Variation) -> str:
        """Return a name of the class of a URL."""
        return f"{hash_place(f'{self.site} {self.shape} {here.plain}'):x}"


def difference(a: str, b: str) -> Shape | None:
    """Return the parts by which two URLs of one host differ; None if they differ otherwise, or not at all.

    They may differ in a directory at the start of the path, or in an ending, and in up to `MOST_NAMES` parameters.
    """
    ours, theirs = _split(a), _split(b)
    if not ours or not theirs:
        return None
    names = sorted({_name(item) for item in set(ours[1]) ^ set(theirs[1])})
    found = _path_parts(*sorted((ours[0], theirs[0]), key=len))
    if not found or len(names) > MOST_NAMES or not (names or any(found)):
        return None
    query = f"?{'&'.join(names)}" if names else ""
    shape = Shape((found[0], ""), (found[1] + query, ""))
    one, other = variation(a, shape), variation(b, shape)
    return shape if one and other and one.plain == other.plain else None


@lru_cache(maxsize=1024)  # the advice on a URL asks several times
def variation(url: str, shape: Shape) -> Variation | None:
    """Return a URL as a member of its class under a shape; None if it can't be in one.

    A URL is in no class if one of its parameters has a number other than 0 and 1, since numbers count: the pages of a
    list, items, results.
    """
    split, parts = _split(url), parts_of(url)
    ending, _, query = shape.endings[0].partition("?")
    names = set(filter(None, query.split("&")))
    if not split or not parts:
        return None
    path, items = split
    left_out = [item for item in items if _name(item) in names]
    kept = [item for item in items if item not in left_out]
    kinds = set(map(_kind, left_out))
    if None in kinds:
        return None
    prefix = shape.prefixes[0]
    begins = bool(prefix) and path.startswith(f"{prefix}/")
    if begins:
        path, kinds = path[len(prefix) :], kinds | {f"{prefix}/"}
    if _has_ending(path, ending):
        path, kinds = path[: -len(ending)], kinds | {f"…{ending}"}
    told = frozenset(map(str, kinds))
    of_path, of_query = ([item for item in kept if item.startswith(";") == is_path] for is_path in (True, False))
    plain = parts._replace(path="".join([path, *of_path]), query="&".join(of_query)).geturl()
    where = prefix * begins + (path if kept else f"{path.rpartition('/')[0]}/")
    branch = f"{_DATE.sub('/date', where)}?{sorted(set(map(_name, kept)))} {sorted(told)}"
    return Variation(plain, told, Place(hash_place(f"{plain} {sorted(told)}"), hash_place(branch)))


def _split(url: str) -> tuple[str, list[str]] | None:
    """Return the path of a URL and its parameters. Those of the path begin with a semicolon."""
    parts = parts_of(url)
    if not parts:
        return None
    path, mark, rest = parts.path.partition(";")
    if "/" in rest:
        path, mark, rest = parts.path, "", ""
    return path, [*(f";{item}" for item in rest.split(";") if mark), *filter(None, parts.query.split("&"))]


def _name(item: str) -> str:
    return item.partition("=")[0]


def _kind(item: str) -> str | None:
    """Return a parameter, with `*` for the value of a session id; None for a number other than 0 and 1."""
    name, _, value = item.partition("=")
    if _TOKEN.fullmatch(value):
        return f"{name}=*"
    return None if _NUMBER.fullmatch(value) and value not in _SWITCHES else item


def _path_parts(short: str, long: str) -> tuple[str, str] | None:
    """Return the prefix and the ending that a path has and a shorter one lacks; None if they differ otherwise."""
    if short == long:
        return "", ""
    if short == "/":
        return None
    if long.endswith(short) and _PREFIX.fullmatch(prefix := long.removesuffix(short)):
        return prefix, ""
    rest = long.removeprefix(short)
    return ("", rest) if _has_ending(long, rest) and _ENDING.fullmatch(rest) else None


def _has_ending(path: str, ending: str) -> bool:
    """Return whether a path has an ending that begins a segment or an extension, after at least one segment."""
    before = path.removesuffix(ending)
    begins = ending[:1] in ("/", ".") or before.endswith("/")
    return bool(ending) and path.endswith(ending) and begins and before not in ("", "/")
