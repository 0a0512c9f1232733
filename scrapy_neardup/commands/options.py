"""Options that several verbs share, and printing."""

from __future__ import annotations

import argparse
import os
import shutil
import sys
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import replace
from itertools import accumulate
from math import inf
from textwrap import fill
from typing import Any, TypeVar
from unicodedata import combining, east_asian_width

from scrapy.settings import BaseSettings
from scrapy.utils.project import inside_project

from ..crawl.default_store import default_store
from ..deduplicator import Deduplicator
from ..feeds import FeedError
from ..settings import Config, ConfigError
from ..store import StoreError, check_kind
from ..store.redis.address import is_server
from ..text.json_text import json_text
from .streams import shown

T = TypeVar("T")


def add_store(
    parser: argparse.ArgumentParser, told: str = "a path, or redis://… (default: NEARDUP_STORE of the project)"
) -> None:
    """Add the option that names the store; the default is the project's."""
    parser.add_argument("--store", type=_address, metavar="S", help=told)


def _address(text: str) -> str:
    # A variable of the shell that is not set: none is meant, so the project's would be the wrong one.
    return _allowed(text, str, str.strip, "a path, or redis://…")


def add_json(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="print JSON")


def whole(low: int, high: float = inf) -> Callable[[str], int]:
    """Return what reads a whole number from `low` up, to `high` if given."""
    allowed = f"a whole number from {low}" + (f" to {high}" if high < inf else "")
    return lambda text: _allowed(text, int, lambda number: low <= number <= high, allowed)


def number(low: int, high: int, *, above: bool = False) -> Callable[[str], float]:
    """Return what reads a number from `low`, or `above` it, to `high`."""
    allowed = f"a number {'above' if above else 'from'} {low}{' up' if above else ''} to {high}"
    return lambda text: _allowed(text, float, lambda n: low <= n <= high and not (above and n == low), allowed)


def _allowed(text: str, read: Callable[[str], T], fits: Callable[[T], object], allowed: str) -> T:
    with suppress(ValueError):
        if fits(value := read(text)):
            return value
    raise argparse.ArgumentTypeError(f"{text!r} is not allowed; allowed is {allowed}")


def read_config(opts: argparse.Namespace, settings: BaseSettings, **changes: Any) -> Config:
    """Read the project's settings, with what the options say instead."""
    config = Config.from_settings(settings)
    if opts.store:
        changes["store"] = opts.store
    if "{spider}" in config.namespace:
        raise ConfigError(
            f"NEARDUP_NAMESPACE = {config.namespace!r}: of which spider? Name it: -s NEARDUP_NAMESPACE=NAME"
        )
    return replace(config, **changes)


def existing(opts: argparse.Namespace, settings: BaseSettings) -> Config:
    """Read the settings, with the path of a store that exists; raise StoreError where there is none."""
    config = with_store(opts, settings)
    if config.store and not is_server(config.store) and not os.path.exists(config.store):
        raise StoreError(f"store {config.store!r} does not exist")
    return config


def existing_store(opts: argparse.Namespace, settings: BaseSettings) -> str:
    """Return the address of a store that exists, all namespaces of which are meant; raise StoreError for none."""
    only = BaseSettings({name: settings[name] for name in ("NEARDUP_STORE", "JOBDIR") if settings.get(name)})
    return str(existing(opts, only).store)


def with_store(opts: argparse.Namespace, settings: BaseSettings, *, writes: bool = False) -> Config:
    """Read the settings, with the address of the store that is meant; who `writes` gets its folder made.

    Raise StoreError, ConfigError where none is.
    """
    config = read_config(opts, settings)
    if config.store:
        check_kind(config.store)
        return config
    store = default_store(settings)
    if not (inside_project() or store.exists()):
        raise StoreError(f"which store? Give --store, or call this inside a Scrapy project: there is no {store}")
    if writes:
        store.parent.mkdir(parents=True, exist_ok=True)
    return replace(config, store=str(store))


def check_apart(**files: str | list[str] | None) -> None:
    """Raise FeedError where one file is to be two things; a store on a server is no file."""
    seen: dict[object, str] = {}
    for what, names in files.items():
        for name in names if isinstance(names, list) else filter(None, [names]):
            before = what if "://" in name else seen.setdefault(_file(name), what)
            if before != what:
                raise FeedError(f"{name}: can't be both {before.replace('_', ' ')} and {what.replace('_', ' ')}")


def _file(name: str) -> object:
    """Return what is the same for all names of a file, of which a link on the disk makes another."""
    try:
        found = os.stat(name)
    except OSError:
        return os.path.realpath(name)
    return found.st_dev, found.st_ino


def open_existing(opts: argparse.Namespace, settings: BaseSettings) -> Deduplicator:
    """Open the store for looking into it; raise StoreError where there is none."""
    return Deduplicator.from_config(existing(opts, settings), run=None)


def print_result(result: Mapping[str, Any], *, as_json: bool) -> None:
    """Print a mapping as JSON, or as lines of name and value."""
    if as_json:
        print(json_text(result, indent=2))
        return
    for name, value in result.items():
        print_table(*_lines(name, value))


def print_outcome(result: Mapping[str, Any], said: str, *, as_json: bool) -> None:
    """Print the outcome of work: as JSON on stdout, or as a line on stderr."""
    if as_json:
        print(json_text(result, indent=2))
    else:
        print(shown(said), file=sys.stderr)


def print_table(*lines: str) -> None:
    """Print lines, `shown`; on a terminal they are cut to its width, so that each stays a line."""
    width = shutil.get_terminal_size().columns if sys.stdout.isatty() else None
    for line in map(shown, lines):
        print(line if width is None else cut(line, width))


def print_sentence(sentence: str) -> None:
    """Print a sentence, `shown`, in one line; on a terminal in as many as it needs."""
    said = shown(sentence)
    print(fill(said, shutil.get_terminal_size().columns) if sys.stdout.isatty() else said)


def cut(line: str, width: int) -> str:
    """Return a line of so many columns of a terminal: both its ends, with a mark where the middle is missing."""
    ends = list(accumulate(map(columns, line), initial=0))
    if ends[-1] <= width:
        return line
    head = bisect_right(ends, max(0, width - 1) // 2) - 1
    left_out = ends[-1] - max(0, width - 1 - ends[head])
    tail = bisect_right(ends, ends[bisect_left(ends, left_out)]) - 1  # behind the marks of what is left out
    return f"{line[:head]}…{line[tail:]}"


def columns(character: str) -> int:
    """Return how many columns of a terminal a character takes: Chinese two, marks on the letter before none."""
    return 0 if combining(character) else 1 + (east_asian_width(character) in "FW")


def _lines(name: str, value: Any) -> Iterable[str]:
    if isinstance(value, Mapping):
        yield name
        for key, part in value.items():
            yield from (f"  {line}" for line in _lines(key, part))
    elif isinstance(value, (list, tuple)) and not all(isinstance(part, (int, float)) for part in value):
        yield name
        for part in value:
            yield from ([f"  {part}"] if isinstance(part, str) else (f"  {line}" for line in _lines("-", part)))
    else:
        yield f"{name:24} {value}"
