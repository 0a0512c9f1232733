"""Read several feeds as one, and write their rows.

What can't be read is told with its place, and the rest is read.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import IO, Any, NamedTuple

from ..files import STREAM, FeedError, check_name, has_ending, reading, writing
from .formats import KINDS, UNREADABLE, BrokenError, Feed, JsonLines, Parquet, Warc, json_text

__all__ = ["FORMATS", "Feed", "FeedError", "Feeds", "Row", "json_text", "row_id", "writing", "writing_rows"]

FORMATS = JsonLines.endings


class Row(NamedTuple):
    """A row of a feed."""

    number: int  # counted from 1 over all feeds together
    data: dict[str, Any]
    place: str  # the file and the place in it, for messages
    raw: Any = None  # the row as its file has it, for a file of the same format; None if the format has no such thing

    def field(self, name: str) -> Any:
        """Return a field. Raise FeedError without it."""
        if name not in self.data:
            raise FeedError(f"{self.place}: there is no field {name!r}")
        return self.data[name]


def _raise(place: str, why: str) -> None:
    raise FeedError(f"{place}: {why}")


class Feeds:
    """Several feeds of one format. Raises FeedError if their formats differ, or if a file does not exist."""

    def __init__(self, paths: Sequence[str]) -> None:
        self.paths = paths
        self.size = sum(map(_size, paths))  # bytes
        found = list(dict.fromkeys(map(_kind, paths)))
        if len(found) > 1:
            names = " and ".join(kind.name for kind in found)
            raise FeedError(f"feeds of several formats, {names}; allowed are feeds of one format")
        self.kind = found[0]
        self.number = 0  # of the row that was read last
        self._file: IO[bytes] | None = None
        self._before = 0

    @property
    def at(self) -> int:
        """The number of bytes of `size` that were read so far."""
        is_open = self._file and not self._file.closed and self._file.seekable()
        return self._before + (self._file.tell() if is_open and self._file else 0)

    def rows(self, bad: Callable[[str, str], object] = _raise) -> Iterator[Row]:
        """Yield the rows. Call `bad` with the place of what can't be read, and the reason. Raise FeedError without it,
        or if no row can be read."""
        good = 0
        for path in self.paths:
            place = path
            try:
                with reading(path) as (self._file, file):
                    for at, data, raw in self.kind(file, path).rows():
                        self.number, place = self.number + 1, f"{path}, {self.kind.unit} {at}"
                        if isinstance(data, ValueError):
                            bad(place, str(data))
                        else:
                            good += 1
                            yield Row(self.number, data, place, raw)
            except UNREADABLE as error:
                why = " ".join(str(getattr(error, "strerror", None) or error).split())
                if not self.number and path == self.paths[-1]:
                    raise FeedError(f"{path}: can't be read: {why}") from error
                self.number += 1
                bad(f"{path}, after {place[len(path) + 2 :]}" if place != path else path, f"can't be read: {why}")
            self._before += _size(path)
        if self.number > good == 0:
            raise FeedError("no row can be read; nothing was written")


@contextmanager
def writing_rows(path: str, feeds: Feeds) -> Iterator[Callable[[Row], object]]:
    """Yield a function that writes rows of `feeds` to a file, those of the same format as they were read."""
    kind = _kind(path)
    if kind in (Parquet, Warc) and kind is not feeds.kind:
        raise FeedError(f"{path}: {kind.name} is written only from {kind.name}, but the feeds are {feeds.kind.name}")
    with writing(path, kind.endings, packs=kind.is_packed_whole) as file:
        output = kind(file, path, feeds.paths)
        try:
            yield lambda row: output.write(row.data, row.raw if kind is feeds.kind else None)
            output.close()
        except BrokenError as error:
            raise FeedError(f"{path}: can't be written: {error}") from error


def row_id(row: Row, id_field: str | None, url_field: str) -> Any:
    """Return the field `id_field` of a row; if that is None, its URL or number. Raise FeedError without the field."""
    return row.data.get(url_field) or row.number if id_field is None else row.field(id_field)


def _kind(path: str) -> type[Feed]:
    """Return the format of a file by the ending of its name. Raise FeedError for an unknown ending."""
    if path == STREAM:
        return JsonLines
    check_name(path, [ending for kind in KINDS for ending in kind.endings])
    return next(kind for kind in KINDS if has_ending(path, kind.endings))


def _size(path: str) -> int:
    try:
        if os.path.isdir(path):
            raise IsADirectoryError(21, "Is a directory")
        return 0 if path == STREAM else os.stat(path).st_size
    except OSError as error:
        raise FeedError(f"{path}: can't be read: {error.strerror or error}") from error
