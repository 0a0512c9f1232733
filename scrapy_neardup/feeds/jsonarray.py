"""Read and write JSON arrays of objects. A file is read in pieces, so it need not fit in memory.

Streaming JSON libraries return only the parsed values, and a feed needs the original text of each row. So this module
finds the end of each object itself.
"""

from __future__ import annotations

import re
from codecs import BOM_UTF8
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import IO, Any

from .compression import position, reading
from .feed import LARGEST, SPREAD, FeedError, Kind, Piece, Raw
from .jsonlines import parse_object

CHUNK = 1 << 20
_QUOTE = ord('"')
_TOKEN = re.compile(rb'["\[\]{},]')
_BLANK = re.compile(rb"\s*")
# The content of a string. The number of escapes in a match is limited, since `re` keeps state for each of them.
_INSIDE = re.compile(rb'[^"\\]*(?:\\.[^"\\]*){0,4096}', re.DOTALL)


@dataclass(frozen=True)
class JsonArray(Kind):
    """JSON arrays of objects. Crawls may append several arrays to a file; all of them together are one feed."""

    name = "JSON"
    names = (".json",)

    def split(self, path: str) -> Iterator[Piece]:
        with reading(path) as file:
            yield from _Splitter(path, file).pieces()

    def parse(self, raw: Raw) -> dict[str, Any]:
        return parse_object(raw)

    @contextmanager
    def writer(self, file: IO[bytes], *, gzipped: bool) -> Iterator[Callable[[Any], object]]:
        before = b"[\n"

        def write(raw: bytes) -> None:
            nonlocal before
            file.write(before + raw)
            before = b",\n"

        yield write
        file.write((b"[" if before == b"[\n" else b"") + b"\n]\n")


class _Splitter:
    """Splits a file into rows, which are the elements of its arrays."""

    def __init__(self, path: str, file: IO[bytes]) -> None:
        self._path = path
        self._file = file
        self._text = b""
        """The part of the file in memory. It includes the current row as far as it was read."""
        self._begin = self._at = 0
        """Positions in `_text`: the beginning of the current row, and the end of the text that was searched so far."""
        self._rows = self._arrays = self._depth = 0
        self._line = 1

    def pieces(self) -> Iterator[Piece]:
        """Yield the rows, valid or not. Raise FeedError for text outside arrays."""
        yield from self._whole()
        while later := self._later():
            yield self._cut(later)
            yield from self._whole()
        yield from self._rest()

    def _whole(self) -> Iterator[Piece]:
        """Yield complete rows. Stop before a row without an end, or an invalid row that seems to contain other rows."""
        is_first = True
        for what in self._tokens():
            if self._depth == 0:
                self._begin_array()
                self._depth, is_first = 1, True
            elif self._depth > 1 or what not in b",]":
                self._depth = max(1, self._depth + (what in b"[{") - (what in b"]}"))
            elif self._later(self._at) and not _is_json(self._row()):
                return
            else:
                if what == b"," or not is_first or self._row():  # otherwise the array is empty
                    yield self._piece()
                self._pass_over()
                self._depth, is_first = int(what == b","), False

    def _later(self, end: int | None = None) -> int:
        """Return the position at which the next row probably begins inside the current one; 0 if there is none.

        This is the first line after the beginning of the current row that opens an object with the same indent. Only
        the text before `end` is searched.
        """
        end, start = len(self._text) if end is None else end, _end(_BLANK, self._text, self._begin)
        if not self._depth or self._text.find(b"\n", start, end) < 0:
            return 0
        _, has_line, indent = self._text[self._begin : start].rpartition(b"\n")
        found = re.compile(rb"\n" + (indent if has_line else rb"[ \t]*") + rb"\{").search(self._text, start, end)
        return found.start() + 1 if found else 0

    def _cut(self, later: int) -> Piece:
        """Return the text before the position `later` as one row, and begin the next row there.

        The current row has no end, or seems to contain the next row, since a quote, bracket or comma is missing. If
        only the comma is missing, the returned row is valid. Parsing shows whether this is so.
        """
        self._at, self._depth = later + 1, 1
        piece = self._piece()._replace(raw=self._row().removesuffix(b",").rstrip())
        self._at = later
        self._pass_over()
        return piece

    def _rest(self) -> Iterator[Piece]:
        """Yield the last row at the end of the file, and a fault if its array has no end."""
        self._at = len(self._text) + 1
        if self._depth == 0:
            if self._outside():
                self._begin_array()
            return
        if self._depth == 1 and self._row():  # the last row is complete, but not its array, as after a killed crawl
            yield self._piece()
            self._pass_over()
        yield self._piece("the file ends before the array; it is probably truncated")

    def _tokens(self) -> Iterator[bytes]:
        """Yield each bracket, brace and comma outside strings. Move the current position behind each of them."""
        while True:
            found = _TOKEN.search(self._text, self._at)
            end = self._string_end(found.end()) if found and found[0] == b'"' else found and found.end()
            if found and end:
                self._at = end
                if found[0] != b'"':
                    yield found[0]
                continue
            self._at = found.start() if found else len(self._text)
            if not self._read_on():
                return

    def _string_end(self, at: int) -> int | None:
        """Return the end of a string, given the position after its opening quote; None if the end was not read yet."""
        text = self._text
        while (at := _end(_INSIDE, text, at)) + 1 < len(text):
            if text[at] == _QUOTE:
                return at + 1
        return at + 1 if text[at:] == b'"' else None

    def _read_on(self) -> bool:
        """Read more of the file. Return False at its end, or if a large row probably contains the next row."""
        text = self._text[self._begin :]
        if len(text) > SPREAD and self._later():
            return False
        if len(text) > LARGEST:
            raise FeedError(f"{self._path}, {self._place()}: over {LARGEST} bytes: is a quote or a bracket missing?")
        # Double the text each time, so that a very long row is copied only a few times.
        more = self._file.read(max(CHUNK, len(text)))
        self._text, self._at, self._begin = text + more, self._at - self._begin, 0
        return bool(more)

    def _begin_array(self) -> None:
        """Enter the array that begins at the current position. Raise FeedError if there is none."""
        found = self._outside()
        if found != b"[":
            shown = found[:20].decode(errors="replace")
            raise FeedError(
                f"{self._path}, {self._place()}: {shown!r} in place of an array; JSON lines need the ending .jsonl"
            )
        self._pass_over()
        self._arrays += 1

    def _outside(self) -> bytes:
        """Return the stripped text after the last array: b"[" if an array begins here, b"" at the end of the file."""
        return self._text[self._begin : self._at].strip().removeprefix(b"" if self._arrays else BOM_UTF8).lstrip()

    def _row(self) -> bytes:
        """Return the text of the row that ends just before the current position."""
        return self._text[self._begin : self._at - 1].strip()

    def _piece(self, fault: str | None = None) -> Piece:
        """Return the current row, and increase the number of rows."""
        piece = Piece(self._place(), self._row(), position(self._file), fault)
        self._rows += 1
        return piece

    def _place(self) -> str:
        text = self._text[self._begin : self._at - 1]
        line = self._line + text[: len(text) - len(text.lstrip())].count(b"\n")
        return f"row {self._rows + 1}, line {line}"

    def _pass_over(self) -> None:
        """Begin the next row at the current position."""
        self._line += self._text.count(b"\n", self._begin, self._at)
        self._begin = self._at


def _end(pattern: re.Pattern[bytes], text: bytes, at: int) -> int:
    """Return the end of the match at a position, or the position itself if nothing matches there."""
    found = pattern.match(text, at)
    return found.end() if found else at


def _is_json(raw: bytes) -> bool:
    try:
        parse_object(raw)
    except ValueError:
        return False
    return True
