"""List the feed formats (`KINDS`), read several feeds in order, and write their rows to one file."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import chain
from stat import S_ISDIR, S_ISREG
from typing import TypeAlias

from .compression import check_name, has_ending, is_gzipped, writing
from .csv_table import Table
from .feed import BadRowError, FeedError, Kind, Line, Row
from .jsonarray import JsonArray
from .jsonlines import JsonLines
from .parquet import Parquet
from .warc import Warc

KINDS: tuple[type[Kind], ...] = (JsonLines, JsonArray, Table, Parquet, Warc)
"""All feed formats. To add one, write a subclass of `Kind` (feed.py), and add it here."""

BadRow: TypeAlias = Callable[[Line, str], object]
"""A function that is called with an unreadable row, and with the reason why it can't be read."""


class Feeds:
    """Several feeds of one format. Raises FeedError if their formats differ, or if a file can't be read."""

    def __init__(self, paths: Sequence[str], allowed: Sequence[type[Kind]] = KINDS) -> None:
        self.paths = paths
        self._sizes = list(map(_size, paths))
        self.kind = _common(paths, allowed)
        self.at = 0
        """The number of bytes that were read so far, out of `size`."""

    @property
    def size(self) -> int:
        return sum(self._sizes)

    def lines(self) -> Iterator[Line]:
        """Yield the unparsed rows of all feeds in order. Raise FeedError for a file that can't be read."""
        number = before = 0
        for path, size in zip(self.paths, self._sizes, strict=True):
            for piece in self.kind.split(path):
                number, self.at = number + 1, before + piece.at
                yield Line(number, f"{path}, {piece.place}", piece.raw, self.kind, piece.fault)
            self.at = before = before + size

    def rows(self, bad: BadRow | None = None) -> Iterator[Row]:
        """Yield the parsed rows. Call `bad` with each unreadable row; without `bad`, raise FeedError."""
        for line in self.lines():
            try:
                row = Row.of(line)
            except BadRowError as error:
                if bad is None:
                    raise
                bad(line, str(error))
            else:
                yield row


@contextmanager
def writing_rows(path: str, kind: Kind) -> Iterator[Callable[[Line], object]]:
    """Yield a function that writes unparsed rows to a file. The file appears only when it is complete."""
    check_name(path, kind.endings, gzips=kind.gzips, why=f"the feeds are {kind.name}, and so is the output")
    with (
        writing(path, kind.endings, gzips=kind.gzips) as file,
        kind.writer(file, gzipped=is_gzipped(path)) as write,
    ):
        yield lambda line: write(line.raw)


def _common(paths: Sequence[str], allowed: Sequence[type[Kind]]) -> Kind:
    """Return the common format of all feeds that have rows. Raise FeedError if their formats or columns differ."""
    classes = [_by_name(path, allowed) for path in paths]
    names = list(dict.fromkeys(each.name for each in classes))
    if len(names) > 1:
        raise FeedError(f"feeds of several formats, {' and '.join(names)}; allowed are feeds of one format")
    first, found = paths[0], classes[0].of(paths[0])
    for path in paths[1:]:
        kind = classes[0].of(path)
        if found.is_empty:
            first, found = path, kind
        elif kind != found and not kind.is_empty:
            raise FeedError(f"{path}: its columns differ from those of {first}")
    return found


def _by_name(path: str, allowed: Sequence[type[Kind]]) -> type[Kind]:
    """Return the format of a file by the ending of its name. Raise FeedError for an unknown ending."""
    for kind in allowed:
        if has_ending(path, kind.names, gzips=kind.gzips):
            return kind
    gzipped, others = (list(chain(*(k.names for k in allowed if k.gzips is each))) for each in (True, False))
    also = f"; or {', '.join(others)}" if others else ""
    raise FeedError(f"{path}: unknown file format; allowed is {', '.join(gzipped)}, each also with .gz{also}")


def _size(path: str) -> int:
    try:
        found = os.stat(path)
    except OSError as error:
        raise FeedError(f"{path}: can't be read: {error.strerror or error}") from error
    if not S_ISREG(found.st_mode) and not S_ISDIR(found.st_mode):  # such as a pipe, but some formats read a file twice
        raise FeedError(f"{path}: can't be read: not a regular file")
    return found.st_size
