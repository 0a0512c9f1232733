"""Find and leave out the parts by which URLs of one host differ, such as a session id or `/amp`. Pure.

Bar-Yossef, Keidar, Schonfeld 2007, "Do not crawl in the DUST: different URLs with similar text". The URLs that are
equal without the parts of a shape are a *class*. A URL that has none of the parts is *plain*.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import NamedTuple

from .shapes import Place, Shape, hash_place, parts_of

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
    where: str
    """The path of the directory, with the prefix; or the whole path, if the URL has other parameters."""
    parts: frozenset[str]
    """The parts that were left out: `/amp`, or `print=1`. A value that looks like a session id is `*`."""
    place: Place
    """The place of the evidence. Its branch is the directory with the parts, since a part may matter in some
    directories, and one value of a parameter may matter while another does not."""


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
    split, (ending, names) = _split(url), names_of(shape)
    parts = parts_of(url)
    if not split or not parts:
        return None
    path, items = split
    left_out = [item for item in items if _name(item) in names]
    kept = [item for item in items if _name(item) not in names]
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
    return Variation(plain, where, told, Place(hash_place(f"{plain} {sorted(told)}"), hash_place(branch)))


def class_name(site: str, shape: Shape, plain: str) -> str:
    """Return the name of a class, under which the last visit of its URLs is recorded."""
    return f"class {site} {hash_place(f'{shape} {plain}'):016x}"


def names_of(shape: Shape) -> tuple[str, list[str]]:
    """Return the ending of the path and the names of the parameters that a shape leaves out."""
    ending, _, names = shape.endings[0].partition("?")
    return ending, names.split("&") if names else []


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
