"""Feeds of documents on disk: rows in, the same rows out. JSON lines, plain or gzipped."""

from __future__ import annotations

import gzip
import json
import os
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, NamedTuple

FORMATS = (".jsonl", ".jsonlines", ".jl", ".ndjson")


class FeedError(ValueError):
    """A feed can't be read or written; the message names the file, the line and what is wrong."""


class Line(NamedTuple):
    """One row of a feed, unread."""

    number: int
    """From 1, over all feeds read together."""
    place: str
    """The file and the line in it, for messages."""
    raw: bytes
    """As it stood in the file, with a line end."""


class Row(NamedTuple):
    """One row of a feed."""

    number: int
    """From 1, over all feeds read together."""
    raw: bytes
    """As it stood in the file, with a line end."""
    data: dict[str, Any]

    @classmethod
    def of(cls, line: Line) -> Row:
        """Raise FeedError for what is no row."""
        return cls(line.number, line.raw, parse_row(line.raw, line.place))


def read_feeds(paths: list[str]) -> Iterator[Row]:
    """Yield the rows of feeds one after another; blank lines are passed over. Raise FeedError for what is no row."""
    return map(Row.of, read_lines(paths))


def read_lines(paths: list[str]) -> Iterator[Line]:
    """Yield the rows of feeds one after another, unread. Raise FeedError for a file that can't be read."""
    number = 0
    for path in paths:
        for line, raw in _lines(path):
            number += 1
            yield Line(number, f"{path}, line {line}", raw)


def row_id(row: Row, id_field: str | None, url_field: str) -> Any:
    """Return what names a row of a feed: the field asked for, else its URL, else its number."""
    if id_field is None:
        return row.data.get(url_field) or row.number
    if id_field not in row.data:
        raise FeedError(f"row {row.number}: there is no field {id_field!r}")
    return row.data[id_field]


def _lines(path: str) -> Iterator[tuple[int, bytes]]:
    try:
        with _open(path, "rb") as file:
            for line, raw in enumerate(file, 1):
                if raw.strip():
                    yield line, raw.rstrip(b"\r\n") + b"\n"
    except (OSError, EOFError, zlib.error) as error:
        raise FeedError(f"{path}: can't be read: {getattr(error, 'strerror', None) or error}") from error


def parse_row(raw: bytes, place: str) -> dict[str, Any]:
    """Return what a line says; raise FeedError, naming the place, where that is no row."""
    try:
        data = json.loads(raw)
    except ValueError as error:
        raise FeedError(f"{place}: no JSON: {error}") from error
    if not isinstance(data, dict):
        raise FeedError(f"{place}: a JSON {type(data).__name__}; allowed is an object")
    return data


@contextmanager
def writing(path: str, formats: Sequence[str] = FORMATS) -> Iterator[IO[bytes]]:
    """Open a file that appears under its name only when all of it is written."""
    part = f"{path}.part"
    try:
        with _open(path, "wb", part, formats) as file:
            yield file
        os.replace(part, path)
    except OSError as error:
        raise FeedError(f"{path}: can't be written: {error.strerror or error}") from error
    finally:
        Path(part).unlink(missing_ok=True)


def _open(path: str, mode: str, at: str | None = None, formats: Sequence[str] = FORMATS) -> IO[bytes]:
    name = path.lower().removesuffix(".gz")
    if not name.endswith(tuple(formats)):
        raise FeedError(f"{path}: no such kind of file; allowed is {', '.join(formats)}, each also with .gz")
    opener: Callable[[str, str], Any] = open if name == path.lower() else gzip.open
    opened: IO[bytes] = opener(at or path, mode)
    return opened
