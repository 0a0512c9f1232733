"""JSON: an array of objects, read piece by piece.

Libraries that read JSON in pieces return values and lose the original text. This module finds where an object ends, and
keeps its text.
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
# What is in a string. Not of as many escapes as there may be: of each something would be kept in memory meanwhile.
_BLANK = re.compile(rb"\s*")
_INSIDE = re.compile(rb'[^"\\]*(?:\\.[^"\\]*){0,4096}', re.DOTALL)


@dataclass(frozen=True)
class JsonArray(Kind):
    """An array of objects. A file with several, one after another, as from crawls that were appended, is one feed."""

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
    """Finds where rows begin and end."""

    def __init__(self, path: str, file: IO[bytes]) -> None:
        self._path = path
        self._file = file
        self._text = b""
        """What has been read, from the row that is being looked at on."""
        self._begin = self._at = 0
        """Where in the text that row begins, and how far it has been looked at."""
        self._rows = self._arrays = self._depth = 0
        self._line = 1

    def pieces(self) -> Iterator[Piece]:
        yield from self._whole()
        while later := self._later():
            yield self._cut(later)
            yield from self._whole()
        yield from self._rest()

    def _whole(self) -> Iterator[Piece]:
        """Yield rows, up to one that is none and has others in it, or that does not end."""
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
                if what == b"," or not is_first or self._row():  # else it is an empty array
                    yield self._piece()
                self._pass_over()
                self._depth, is_first = int(what == b","), False

    def _later(self, end: int | None = None) -> int:
        """Return where in the row a line begins as it does, with an object; 0 for nowhere."""
        end, start = len(self._text) if end is None else end, _end(_BLANK, self._text, self._begin)
        if not self._depth or self._text.find(b"\n", start, end) < 0:
            return 0
        _, has_line, indent = self._text[self._begin : start].rpartition(b"\n")
        found = re.compile(rb"\n" + (indent if has_line else rb"[ \t]*") + rb"\{").search(self._text, start, end)
        return found.start() + 1 if found else 0

    def _cut(self, later: int) -> Piece:
        """End the row before that line; parsing shows whether it is complete."""
        self._at, self._depth = later + 1, 1
        piece = self._piece()._replace(raw=self._row().removesuffix(b",").rstrip())
        self._at = later
        self._pass_over()
        return piece

    def _rest(self) -> Iterator[Piece]:
        self._at = len(self._text) + 1
        if self._depth == 0:
            if self._outside():
                self._begin_array()
            return
        if self._depth == 1 and self._row():  # as when a crawl was killed: the last row is whole
            yield self._piece()
            self._pass_over()
        yield self._piece("the file ends before the array does: was it cut off?")

    def _tokens(self) -> Iterator[bytes]:
        """Yield what opens, closes and parts, outside of strings; each lies just before where we are."""
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
        """Return where a string ends; None where it does not in what has been read."""
        text = self._text
        while (at := _end(_INSIDE, text, at)) + 1 < len(text):
            if text[at] == _QUOTE:
                return at + 1
        return at + 1 if text[at:] == b'"' else None

    def _read_on(self) -> bool:
        text = self._text[self._begin :]
        if len(text) > SPREAD and self._later():
            return False
        if len(text) > LARGEST:
            raise FeedError(f"{self._path}, {self._place()}: over {LARGEST} bytes: is a quote or a bracket missing?")
        # As much again as there is, so that a very long row is not copied very often.
        more = self._file.read(max(CHUNK, len(text)))
        self._text, self._at, self._begin = text + more, self._at - self._begin, 0
        return bool(more)

    def _begin_array(self) -> None:
        """Raise FeedError where no array begins."""
        found = self._outside()
        if found != b"[":
            shown = found[:20].decode(errors="replace")
            raise FeedError(
                f"{self._path}, {self._place()}: {shown!r} where an array was to begin; JSON lines are named .jsonl"
            )
        self._pass_over()
        self._arrays += 1

    def _outside(self) -> bytes:
        """Return what stands where an array may begin: at the end of a file, or of an empty one, nothing."""
        return self._text[self._begin : self._at].strip().removeprefix(b"" if self._arrays else BOM_UTF8).lstrip()

    def _row(self) -> bytes:
        """Return the text of the row that ends just before where we are."""
        return self._text[self._begin : self._at - 1].strip()

    def _piece(self, fault: str | None = None) -> Piece:
        piece = Piece(self._place(), self._row(), position(self._file), fault)
        self._rows += 1
        return piece

    def _place(self) -> str:
        text = self._text[self._begin : self._at - 1]
        line = self._line + text[: len(text) - len(text.lstrip())].count(b"\n")
        return f"row {self._rows + 1}, line {line}"

    def _pass_over(self) -> None:
        self._line += self._text.count(b"\n", self._begin, self._at)
        self._begin = self._at


def _end(pattern: re.Pattern[bytes], text: bytes, at: int) -> int:
    """Return where what matches from there on ends; where nothing does, there."""
    found = pattern.match(text, at)
    return found.end() if found else at


def _is_json(raw: bytes) -> bool:
    try:
        parse_object(raw)
    except ValueError:
        return False
    return True
