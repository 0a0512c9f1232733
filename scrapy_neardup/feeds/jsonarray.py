"""JSON: an array of objects, as Scrapy's feed exports write it, read piece by piece.

Libraries that read JSON in pieces give what it says, not what stands there; so where an object ends is found here, and
its own text is left as it is.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import IO, Any

from .base import LARGEST, FeedError, Kind, Piece, Raw
from .files import position, reading
from .jsonlines import parse_object

CHUNK = 1 << 20
_BOM = b"\xef\xbb\xbf"
# A string, up to its end or to that of what has been read so far; or what opens, closes and parts.
_TOKEN = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*(?P<end>"|\\?\Z)|[\[\]{},]', re.DOTALL)


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
        self._rows = self._arrays = 0
        self._line = 1

    def pieces(self) -> Iterator[Piece]:
        depth, is_first = 0, True
        for what in self._tokens():
            if depth == 0:
                self._begin_array()
                depth, is_first = 1, True
            elif depth > 1 or what not in b",]":
                depth = max(1, depth + (what in b"[{") - (what in b"]}"))
            else:
                if what == b"," or not is_first or self._row():  # else it is an empty array
                    yield self._piece()
                self._pass_over()
                depth, is_first = int(what == b","), False
        yield from self._rest(depth)

    def _rest(self, depth: int) -> Iterator[Piece]:
        self._at = len(self._text) + 1
        if depth == 0:
            if self._row() or not self._arrays:
                self._begin_array()
            return
        if depth == 1 and self._row():  # as when a crawl was killed: the last row is whole
            yield self._piece()
            self._pass_over()
        yield self._piece("the file ends before the array does: was it cut off?")

    def _tokens(self) -> Iterator[bytes]:
        """Yield what opens, closes and parts, outside of strings; each lies just before where we are."""
        while True:
            found = _TOKEN.search(self._text, self._at)
            if found and found["end"] in (None, b'"'):
                self._at = found.end()
                if found["end"] is None:
                    yield found[0]
                continue
            self._at = found.start() if found else len(self._text)
            if not self._read_on():
                return

    def _read_on(self) -> bool:
        text = self._text[self._begin :]
        if len(text) > LARGEST:
            raise FeedError(f"{self._path}, {self._place()}: over {LARGEST} bytes: is a quote or a bracket missing?")
        # As much again as there is, so that a very long row is not copied very often.
        more = self._file.read(max(CHUNK, len(text)))
        self._text, self._at, self._begin = text + more, self._at - self._begin, 0
        return bool(more)

    def _begin_array(self) -> None:
        """Raise FeedError where no array begins."""
        found = self._text[self._begin : self._at].strip().removeprefix(b"" if self._arrays else _BOM).lstrip()
        if found != b"[":
            shown = found[:20].decode(errors="replace") or "nothing"
            raise FeedError(
                f"{self._path}, {self._place()}: {shown!r} where an array was to begin; JSON lines are named .jsonl"
            )
        self._pass_over()
        self._arrays += 1

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
