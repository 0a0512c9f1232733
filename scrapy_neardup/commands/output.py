"""Print results as JSON or as lines that fit a terminal, and show the progress of long work."""

from __future__ import annotations

import shutil
import sys
import time
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Mapping
from itertools import accumulate
from textwrap import fill
from typing import Any, TypeVar
from unicodedata import combining, east_asian_width

from tqdm import tqdm

from ..feeds import Feeds
from ..feeds.text_rows import json_text
from .terminal import shown

T = TypeVar("T")


def print_lines(lines: Iterable[str], result: object = None, *, as_json: bool = False) -> None:
    """Print lines, each cut to the width of the terminal, if there is one. With `as_json`, print `result` as JSON."""
    if as_json:
        print(json_text(result, indent=2))
        return
    width = shutil.get_terminal_size().columns if sys.stdout.isatty() else None
    for line in map(shown, lines):
        print(line if width is None else cut(line, width))


def print_result(result: Mapping[str, Any], *, as_json: bool) -> None:
    """Print a mapping as JSON, or as one line for each name and value."""
    print_lines((line for name, value in result.items() for line in _lines(name, value)), result, as_json=as_json)


def print_outcome(result: object, said: str, *, as_json: bool) -> None:
    """Print an outcome: `result` as JSON on stdout, or the line `said` on stderr."""
    if as_json:
        print(json_text(result, indent=2))
    else:
        print(shown(said), file=sys.stderr)


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
