"""Add and read the options that several verbs share, open their store, and print their results."""

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

from ..crawl import default_store
from ..deduplicator import Deduplicator
from ..feeds import FeedError
from ..feeds.json_text import json_text
from ..settings import Config, ConfigError
from ..store import StoreError, check_kind
from ..store.redis.address import is_server
from .streams import shown

T = TypeVar("T")


def add_store(
    parser: argparse.ArgumentParser, text: str = "a path, or redis://… (default: NEARDUP_STORE of the project)"
) -> None:
    """Add the option `--store`. The default is the store of the project."""
    parser.add_argument("--store", type=_address, metavar="S", help=text)


def _address(text: str) -> str:
    # An empty value comes from an unset variable of the shell. The project's store must not take its place.
    return _allowed(text, str, str.strip, "a path, or redis://…")


def add_json(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="print the result as JSON")


def whole(low: int, high: float = inf) -> Callable[[str], int]:
    """Return a function that reads a whole number from `low` to `high`."""
    allowed = f"a whole number from {low}" + (f" to {high}" if high < inf else "")
    return lambda text: _allowed(text, int, lambda number: low <= number <= high, allowed)


def number(low: int, high: int, *, above: bool = False) -> Callable[[str], float]:
    """Return a function that reads a number from `low` to `high`. With `above`, `low` itself is not allowed."""
    allowed = f"a number {'above' if above else 'from'} {low}{' up' if above else ''} to {high}"
    return lambda text: _allowed(text, float, lambda n: low <= n <= high and not (above and n == low), allowed)


def _allowed(text: str, read: Callable[[str], T], fits: Callable[[T], object], allowed: str) -> T:
    with suppress(ValueError):
        if fits(value := read(text)):
            return value
    raise argparse.ArgumentTypeError(f"{text!r} is not allowed; allowed is {allowed}")


def read_config(opts: argparse.Namespace, settings: BaseSettings, **changes: Any) -> Config:
    """Return the settings of the project, with `changes`, and with the store that the options name."""
    config = Config.from_settings(settings)
    if opts.store:
        changes["store"] = opts.store
    if "{spider}" in config.namespace:
        raise ConfigError(
            f"NEARDUP_NAMESPACE = {config.namespace!r}: {{spider}} has a value only in a crawl; name one namespace with"
            " -s NEARDUP_NAMESPACE=NAME"
        )
    return replace(config, **changes)


def existing(opts: argparse.Namespace, settings: BaseSettings) -> Config:
    """Return the settings, with the address of the store. Raise StoreError if the store does not exist."""
    config = with_store(opts, settings)
    if config.store and not is_server(config.store) and not os.path.exists(config.store):
        raise StoreError(f"store {config.store!r} does not exist")
    return config


def existing_store(opts: argparse.Namespace, settings: BaseSettings) -> str:
    """Return the address of the store, whatever its namespace. Raise StoreError if the store does not exist."""
    only = BaseSettings({name: settings[name] for name in ("NEARDUP_STORE", "JOBDIR") if settings.get(name)})
    return str(existing(opts, only).store)


def with_store(opts: argparse.Namespace, settings: BaseSettings, *, writes: bool = False) -> Config:
    """Return the settings, with the address of the store. With `writes`, create the folder of the default store.

    Raise ConfigError for a bad setting, StoreError if no store is named.
    """
    config = read_config(opts, settings)
    if config.store:
        check_kind(config.store)
        return config
    store = default_store(settings)
    if not (inside_project() or store.exists()):
        raise StoreError(f"no store: name one with --store, or run this in a Scrapy project ({store} does not exist)")
    if writes:
        store.parent.mkdir(parents=True, exist_ok=True)
    return replace(config, store=str(store))


def check_apart(**files: str | list[str] | None) -> None:
    """Raise FeedError if one file is given for two options. A store on a server is not a file."""
    seen: dict[object, str] = {}
    for what, names in files.items():
        for name in names if isinstance(names, list) else filter(None, [names]):
            # Standard input and output are no files.
            key = (what == "a_feed",) if name == "-" else _file(name)
            before = what if "://" in name else seen.setdefault(key, what)
            if before != what:
                raise FeedError(f"{name}: can't be both {before.replace('_', ' ')} and {what.replace('_', ' ')}")


def _file(name: str) -> object:
    """Return a key that is equal for all names of a file, also through links."""
    try:
        found = os.stat(name)
    except OSError:
        return os.path.realpath(name)
    return found.st_dev, found.st_ino


def open_existing(opts: argparse.Namespace, settings: BaseSettings) -> Deduplicator:
    """Open the store for reading. Raise StoreError if it does not exist."""
    return Deduplicator.from_config(existing(opts, settings), run=None)


def print_result(result: Mapping[str, Any], *, as_json: bool) -> None:
    """Print a mapping as JSON, or as one line for each name and value."""
    if as_json:
        print(json_text(result, indent=2))
        return
    for name, value in result.items():
        print_table(*_lines(name, value))


def print_outcome(result: Mapping[str, Any], said: str, *, as_json: bool) -> None:
    """Print an outcome: `result` as JSON on stdout, or the line `said` on stderr."""
    if as_json:
        print(json_text(result, indent=2))
    else:
        print(shown(said), file=sys.stderr)


def print_table(*lines: str) -> None:
    """Print lines. On a terminal, shorten each to the width of the terminal."""
    width = shutil.get_terminal_size().columns if sys.stdout.isatty() else None
    for line in map(shown, lines):
        print(line if width is None else cut(line, width))


def print_sentence(sentence: str) -> None:
    """Print a sentence in one line. On a terminal, wrap it."""
    said = shown(sentence)
    print(fill(said, shutil.get_terminal_size().columns) if sys.stdout.isatty() else said)


def cut(line: str, width: int) -> str:
    """Return a line of at most `width` terminal columns. In a longer line, `…` replaces the middle."""
    ends = list(accumulate(map(columns, line), initial=0))
    if ends[-1] <= width:
        return line
    head = bisect_right(ends, max(0, width - 1) // 2) - 1
    left_out = ends[-1] - max(0, width - 1 - ends[head])
    tail = bisect_right(ends, ends[bisect_left(ends, left_out)]) - 1  # after combining marks of the last missing letter
    return f"{line[:head]}…{line[tail:]}"


def columns(character: str) -> int:
    """Return the width of a character in terminal columns: 2 for Chinese, 0 for combining marks, else 1."""
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
