"""Print results as JSON or as lines, and show the progress of long work."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, TypeVar

from tqdm import tqdm

from ..feeds import Feeds
from ..feeds.text_rows import json_text
from .terminal import shown

T = TypeVar("T")


def print_lines(lines: Iterable[str], result: object = None, *, as_json: bool = False) -> None:
    """Print lines or, with `as_json`, `result` as JSON."""
    for line in [json_text(result, indent=2)] if as_json else map(shown, lines):
        print(line)


def print_result(result: Mapping[str, Any], *, as_json: bool) -> None:
    """Print a mapping as JSON, or as one line for each name and value."""
    print_lines((line for name, value in result.items() for line in _lines(name, value)), result, as_json=as_json)


def print_outcome(result: object, said: str, *, as_json: bool) -> None:
    """Print an outcome: `result` as JSON on stdout, or the line `said` on stderr."""
    if as_json:
        print(json_text(result, indent=2))
    else:
        print(shown(said), file=sys.stderr)


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


class Moment:
    """A time, given in seconds since the epoch. `format()` gives local time for people, `str()` ISO 8601."""

    def __init__(self, seconds: float) -> None:
        self._local = time.localtime(seconds)  # datetime fails after the year 9999

    def __format__(self, spec: str) -> str:
        return format(time.strftime("%Y-%m-%d %H:%M:%S", self._local), spec)

    def __str__(self) -> str:
        offset = time.strftime("%z", self._local)
        return f"{time.strftime('%Y-%m-%dT%H:%M:%S', self._local)}{offset[:-2]}:{offset[-2:]}"


def counted(things: Iterable[T], unit: str, total: int | None = None) -> Iterator[T]:
    """Yield `things`, and show a bar with their number and rate and, if `total` is known, the remaining time.

    The bar disappears at the end. Without a terminal, there is none.
    """
    yield from tqdm(things, unit=f" {unit}", total=total, disable=None, dynamic_ncols=True, leave=False)


def through(feeds: Feeds, batches: Iterable[T]) -> Iterator[T]:
    """Yield rows, or batches of rows, that are read from `feeds`, and show a bar with bytes, rate and time left."""
    with tqdm(total=feeds.size or None, unit="B", unit_scale=True, disable=None, dynamic_ncols=True) as bar:
        for batch in batches:
            bar.update(feeds.at - bar.n)
            yield batch
