"""Read settings, from Scrapy or from keywords, into one frozen, validated record."""

from __future__ import annotations

import ast
import json
import os
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, fields, replace
from datetime import timedelta
from difflib import get_close_matches
from os import PathLike
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, TypedDict, get_args

from .text.html import BUILTIN, extract_function

if TYPE_CHECKING:
    from typing_extensions import Unpack

Action: TypeAlias = Literal["drop", "tag", "audit"]
Revisit: TypeAlias = Literal["keep", "drop", "skip"]
Scope: TypeAlias = Literal["all", "host", "domain"]
ShortText: TypeAlias = Literal["unique", "exact"]
UncleanRun: TypeAlias = Literal["forget", "keep"]

Duration: TypeAlias = "float | str | timedelta"


class Keywords(TypedDict, total=False):
    """Every setting except the store, as a user writes it."""

    enabled: bool
    store_required: bool
    namespace: str
    fields: Sequence[str] | None
    title_field: str
    url_field: str
    ignore_fields: Sequence[str]
    extractor: str | Callable[[str], str | None]
    detectors: Sequence[object]
    """Names or import paths, mappings with a `name` and arguments, or objects with the protocol `Detector`."""
    action: Action
    revisit: Revisit
    dropped: str | PathLike[str] | None
    scope: Scope
    length_ratio: float
    resemblance: float | Mapping[int, float]
    min_tokens: int
    short_text: ShortText
    skip_mirrors: bool
    skip_start: bool
    dead_http_codes: Iterable[int] | str
    mirror_hosts: Mapping[str, str]
    learn_hosts: bool
    redirect_mirrors: bool
    recheck: float
    mirror_ttl: Duration
    ttl: Duration | None
    unclean_run: UncleanRun
    preferred_hosts: Sequence[str]
    workers: int


PREFIX = "NEARDUP_"
STORE_NAME = "neardup.sqlite"  # in Scrapy's data folder
TAG_FIELD = "neardup"  # of an item
DEFAULT_DETECTORS = ("exact", "imatch", "simhash", "shingle")
BUILTIN_DETECTORS = (*DEFAULT_DETECTORS, "feature_code", "dwdcs", "dwswn")
_FLAGS = {"true": True, "1": True, "yes": True, "false": False, "0": False, "no": False, "": False, "none": False}
_UNITS = {"s": 1, "second": 1, "m": 60, "minute": 60, "h": 3600, "hour": 3600, "d": 86400, "day": 86400, "week": 604800}
_HOST = re.compile(r"(?:[\w-]+(?:\.[\w-]+)*\.?|\[[0-9a-f:.]+\])(?::\d{1,5})?")
_NAMED = (str, Mapping)


class ConfigError(ValueError):
    """A setting has an invalid value. The message names the setting, the value and the allowed values."""


Check = Callable[[Any], Any]
"""Converts a setting from what the user writes to what `Config` holds. Raises ValueError with the allowed values."""


def checking(allowed: str, fits: Callable[[Any], object], read: Check = lambda value: value) -> Check:
    """Return a check that converts a value by `read`. It raises ValueError(allowed) unless this works and `fits`."""

    def check(value: Any) -> Any:
        with suppress(ValueError, TypeError, KeyError, AttributeError, OverflowError):
            if fits(result := read(value)):
                return result
        raise ValueError(allowed)

    return check


def number(low: float, high: float = float("inf"), kind: Callable[[Any], float] = float) -> Check:
    def read(value: Any) -> float:
        return kind(value) if not isinstance(value, bool) and kind(value) == float(value) else float("nan")

    limits = f"from {low} to {high}" if high < float("inf") else f"from {low} up"
    allowed = f"a number {limits}" if kind is float else f"a whole number {limits}"
    return checking(allowed, lambda value: low <= value <= high, read)


def _choice(literal: Any) -> Check:
    allowed = get_args(literal)
    return checking(" or ".join(map(repr, allowed)), lambda value: value in allowed)


def _optional(check: Check) -> Check:
    return lambda value: None if value is None or value == "" else check(value)


def _listed(value: Any) -> tuple[Any, ...]:
    """Return a list as a tuple. Text, as the option `-s` passes it, is a list in brackets or is split at commas."""
    if isinstance(value, str) and not value.startswith("["):
        return tuple(part.strip() for part in value.split(",") if part.strip())
    value = literal(value)
    if isinstance(value, str) or not isinstance(value, Sequence):
        raise TypeError
    return tuple(value)


def literal(value: Any) -> Any:
    """Return the value of text in JSON or Python syntax, as `-s` passes it. Return anything else unchanged."""
    for read in (json.loads, ast.literal_eval) if isinstance(value, str) else ():
        with suppress(ValueError, SyntaxError):
            return read(value)
    return value


def detector_name(part: Any) -> Any:
    """Return the name or the import path of an entry of NEARDUP_DETECTORS; None or "" if it has none."""
    if isinstance(part, _NAMED):
        return part if isinstance(part, str) else part.get("name")
    return getattr(part, "name", "")


def _detectors(value: Any) -> tuple[Any, ...]:
    """Return the entries of NEARDUP_DETECTORS. Raise ValueError for an unknown name that is no import path."""
    allowed = (
        f"a list of {', '.join(BUILTIN_DETECTORS)} or import paths of your own detectors, each alone or with arguments:"
        " {'name': 'simhash', 'distance': 6}"
    )
    parts = checking(allowed, bool, _listed)(value)
    for part in parts:
        name = detector_name(part)
        is_known = isinstance(name, str) and (name in BUILTIN_DETECTORS or "." in name)
        if isinstance(part, _NAMED) and not is_known:
            near = get_close_matches(str(name), BUILTIN_DETECTORS, 1)
            raise ValueError(f"{allowed}, not {part!r}{f'; did you mean {near[0]!r}?' if near else ''}")
    return tuple({**part} if isinstance(part, Mapping) else part for part in parts)


def _by_length(value: Any) -> Any:
    """Return one resemblance for all texts, or resemblances by the minimum number of tokens, in ascending order."""
    value, share = literal(value), number(0, 1)
    if not isinstance(value, Mapping):
        return share(value)
    return dict(sorted((int(number(0, kind=int)(tokens)), share(least)) for tokens, least in value.items()))


def seconds(value: Any) -> float:
    """Return the seconds of a number, a timedelta or text such as "30 days". Raise ValueError for anything else."""
    if isinstance(value, timedelta):
        value = value.total_seconds()
    if isinstance(value, str) and (match := re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([a-z]+)\s*", value.lower())):
        amount, unit = match.groups()
        value = float(amount) * _UNITS.get(unit, _UNITS.get(unit.rstrip("s"), float("nan")))
    return float(checking("seconds, a timedelta, or text such as '30 days'", lambda read: read >= 0, number(0))(value))


_flag = checking("True or False", lambda flag: flag is not None, lambda value: _FLAGS.get(str(value).lower()))
_name = checking("the name of an item field", lambda value: isinstance(value, str) and value)
_names = checking("a list of names", lambda names: all(isinstance(name, str) and name for name in names), _listed)
_sites = checking(
    "a list of hosts, each with or without port",
    lambda hosts: all(_HOST.fullmatch(name.lower()) for name in hosts),
    _names,
)
_path = checking("a path", bool, lambda value: str(os.fspath(value)))
_store = checking(
    "a path or an address without a placeholder; NEARDUP_NAMESPACE = '{spider}' keeps the documents of spiders apart",
    lambda path: path and ("://" in path or not re.search(r"\{spider\}|%\(\w+\)s", path)),
    _path,
)
_namespace = checking(
    "text, in which {spider} stands for the name of the spider",
    lambda value: {*re.findall(r"\{[a-z_]+\}", value)} <= {"{spider}"},
)
_fields = checking("a list of names of item fields, or None", bool, _names)
_codes = checking(
    "a list of HTTP status codes from 400 to 599",
    lambda codes: all(400 <= code <= 599 for code in codes),
    lambda value: frozenset(map(int, value if isinstance(value, (set, frozenset)) else _listed(value))),
)
_hosts = checking(
    "a dictionary from mirror host to original host, each with or without port, with no host on both sides",
    lambda hosts: all(map(_HOST.fullmatch, [*hosts, *hosts.values()])) and not {*hosts} & {*hosts.values()},
    lambda value: {mirror.lower(): canonical.lower() for mirror, canonical in literal(value).items()},
)
_resemblance = checking(
    "a number from 0 to 1, or a dictionary from minimum tokens to such numbers", lambda read: read != {}, _by_length
)
# With a lifetime of zero, everything would be forgotten between runs.
_lifetime = checking("None, seconds above 0, a timedelta, or text such as '90 days'", bool, seconds)


def _extractor(value: Any) -> Any:
    extract_function(value)  # imports it, so that a wrong path stops the crawl at its start
    return value


# ruff: noqa: RUF009 since this makes a field
def _setting(default: Any, check: Check) -> Any:
    return field(default=default, metadata={"check": check})


@dataclass(frozen=True, kw_only=True)
class Config:
    """All settings. `Config(min_tokens=20)` means NEARDUP_MIN_TOKENS = 20. A bad value raises ConfigError."""

    enabled: bool = _setting(True, _flag)
    store: str | None = _setting(None, _optional(_store))
    store_required: bool = _setting(False, _flag)
    namespace: str = _setting("", _namespace)
    fields: tuple[str, ...] | None = _setting(None, _optional(_fields))
    title_field: str = _setting("title", _name)
    url_field: str = _setting("url", _name)
    ignore_fields: tuple[str, ...] = _setting((), _names)
    extractor: str | Callable[[str], str | None] = _setting(BUILTIN, _extractor)
    detectors: tuple[Any, ...] = _setting(DEFAULT_DETECTORS, _detectors)
    action: Action = _setting("drop", _choice(Action))
    revisit: Revisit = _setting("keep", _choice(Revisit))
    dropped: str | None = _setting(None, _optional(_path))
    scope: Scope = _setting("all", _choice(Scope))
    length_ratio: float = _setting(2.5, number(1))
    resemblance: float | Mapping[int, float] = _setting(0.4, _resemblance)
    min_tokens: int = _setting(20, number(0, kind=int))
    short_text: ShortText = _setting("unique", _choice(ShortText))
    skip_mirrors: bool = _setting(True, _flag)
    skip_start: bool = _setting(False, _flag)
    dead_http_codes: frozenset[int] = _setting(frozenset({404, 410}), _codes)
    mirror_hosts: Mapping[str, str] = field(default_factory=dict, metadata={"check": _hosts})
    learn_hosts: bool = _setting(True, _flag)
    redirect_mirrors: bool = _setting(False, _flag)
    recheck: float = _setting(0.01, number(0, 1))
    mirror_ttl: float = _setting(30 * 86400.0, seconds)
    ttl: float | None = _setting(None, _optional(_lifetime))
    unclean_run: UncleanRun = _setting("forget", _choice(UncleanRun))
    preferred_hosts: tuple[str, ...] = _setting((), _sites)
    workers: int = _setting(1, number(0, 1024, int))

    if TYPE_CHECKING:  # the checks accept more types than they return

        def __init__(self, *, store: str | os.PathLike[str] | None = None, **settings: Unpack[Keywords]) -> None: ...

    def __post_init__(self) -> None:
        for setting in fields(self):
            value = getattr(self, setting.name)
            try:
                object.__setattr__(self, setting.name, setting.metadata["check"](value))
            except ValueError as error:
                name = PREFIX + setting.name.upper()
                raise ConfigError(f"{name} = {value!r} is not allowed; allowed is {error}") from None

    @classmethod
    def from_settings(cls, settings: Mapping[str, Any]) -> Config:
        """Return the NEARDUP_ settings in Scrapy's settings. Raise ConfigError for a bad value or an unknown name."""
        given = {key[len(PREFIX) :].lower(): value for key, value in settings.items() if key.startswith(PREFIX)}
        return cls.from_keywords(given)

    @classmethod
    def from_keywords(cls, given: Mapping[str, Any]) -> Config:
        """Return settings from keywords in lower case, without the prefix NEARDUP_. Raise ConfigError for a bad one."""
        known = [setting.name for setting in fields(cls)]
        for name in given:
            if name not in known:
                near = get_close_matches(name, known, 1)
                hint = f"; did you mean {PREFIX}{near[0].upper()}?" if near else ""
                raise ConfigError(f"{PREFIX}{name.upper()} is not a setting of scrapy-neardup{hint}")
        return cls(**given)

    def ignoring(self, name: str | None) -> Config:
        """Return the configuration with one more ignored field, or unchanged if `name` is None.

        Call this for the field that identifies the rows of a feed, since that field says nothing of the record.
        """
        return replace(self, ignore_fields=(*self.ignore_fields, name)) if name else self
