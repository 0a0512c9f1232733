"""Read and write CSV and TSV. The first row has the column names, and each further row is a document."""

from __future__ import annotations

import csv
import re
from collections import Counter, deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import IO, Any, NamedTuple

from .compression import has_ending, lines_of, position, reading
from .feed import LARGEST, SPREAD, FeedError, Kind, Piece, Raw

DELIMITERS = ",;\t|"
_QUOTED = re.compile(rb'"[^"]*"')


@dataclass(frozen=True)
class Table(Kind):
    """CSV with these columns and this delimiter.

    Feeds with the same columns and delimiter can be written to one file, even if their first rows are quoted
    differently.
    """

    columns: tuple[str, ...]
    delimiter: str = ","
    head: bytes = field(default=b"", compare=False)
    """The row of column names, with the bytes that it had in the file."""

    name = "CSV"
    names = (".csv", ".tsv")

    @property
    def endings(self) -> tuple[str, ...]:
        return self.names if self.delimiter == "\t" or self.is_empty else self.names[:1]

    @property
    def is_empty(self) -> bool:
        return not self.columns

    @classmethod
    def of(cls, path: str) -> Table:
        """Return the format of a file, with its delimiter and column names. Raise FeedError if a name is invalid."""
        with reading(path) as file:
            line = next((line for line in lines_of(file, path) if line.strip()), b"")
        delimiter = _delimiter(line, is_tsv=has_ending(path, cls.names[1:], gzips=True))
        with reading(path) as file:
            first = next(_records(file, delimiter, path), None)
        if first is None:  # no rows, as in the feed of a crawl without items
            return cls(())
        _check_head(first, path)
        return cls(tuple(first.cells), delimiter, _ended(first.raw, b"\n"))

    def split(self, path: str) -> Iterator[Piece]:
        """Yield all rows except the row of column names. Skip blank rows."""
        end = b"\r\n" if self.head.endswith(b"\r\n") else b"\n"
        with reading(path) as file:
            records = _records(file, self.delimiter, path)
            next(records, None)
            for number, raw, cells, fault in records:
                if not fault and len(cells) != len(self.columns):
                    fault = f"{len(cells)} fields; allowed are {len(self.columns)}, the number of columns"
                yield Piece(f"line {number}", _ended(raw, end), position(file), fault)

    def parse(self, raw: Raw) -> dict[str, Any]:
        assert isinstance(raw, bytes)
        cells = next(_reader([raw.decode()], self.delimiter))
        return dict(zip(self.columns, cells, strict=True))

    @contextmanager
    def writer(self, file: IO[bytes], *, gzipped: bool) -> Iterator[Callable[[Any], object]]:
        file.write(self.head)
        yield file.write


def _delimiter(head: bytes, *, is_tsv: bool) -> str:
    """Return the delimiter that is most frequent in the first line.

    For TSV, return a tab, unless the line has only other delimiters.
    """
    unquoted = _QUOTED.sub(b"", head)
    counts = {each: unquoted.count(each.encode()) for each in DELIMITERS}
    return "\t" if is_tsv and (counts["\t"] or not any(counts.values())) else max(counts, key=counts.__getitem__)


class _Record(NamedTuple):
    line: int
    raw: bytes
    cells: list[str]
    fault: str | None


class _Lines:
    """Yields the lines of a file as text, for `csv.reader`. `taken` holds the lines of the current row as bytes."""

    def __init__(self, lines: Iterator[bytes]) -> None:
        self._lines = lines
        self._again: deque[bytes] = deque()
        self._size = 0
        self.taken: list[bytes] = []
        self.number = 1
        """The number of the first line in `taken`."""

    def __iter__(self) -> Iterator[str]:
        return self

    def __next__(self) -> str:
        line = self._again.popleft() if self._again else next(self._lines)
        self.taken.append(line)
        self._size += len(line)
        if self._size > SPREAD and len(self.taken) > 1:
            raise csv.Error(f"over {SPREAD} bytes")
        # Only utf-8-sig removes a byte order mark.
        return line.decode("utf-8-sig" if self.number == len(self.taken) == 1 else "utf-8")

    def begin_row(self) -> None:
        self.number += len(self.taken)
        self.taken, self._size = [], 0

    def give_back(self) -> None:
        """Put back all lines of the current row except the first, so that they are read again."""
        self._again.extendleft(reversed(self.taken[1:]))
        del self.taken[1:]


def _records(file: IO[bytes], delimiter: str, path: str) -> Iterator[_Record]:
    """Yield the rows of a file.

    If a row can't be read, yield its first line with a `fault`, and continue with its second line. That line may begin
    another row, if the first line lacks a closing quote.
    """
    lines = _Lines(lines_of(file, path))
    reader = _reader(lines, delimiter)
    while True:
        lines.begin_row()
        fault, cells = None, []
        try:
            cells = next(reader)
        except StopIteration:
            return
        except (csv.Error, UnicodeDecodeError) as error:
            fault = _fault(error, lines)
            lines.give_back()
            reader = _reader(lines, delimiter)
        if cells or fault:
            yield _Record(lines.number, b"".join(lines.taken), cells, fault)


def _fault(error: csv.Error | UnicodeDecodeError, lines: _Lines) -> str:
    why = f"no UTF-8: {error.reason}" if isinstance(error, UnicodeDecodeError) else f"no CSV: {error}"
    more = len(lines.taken) - 1
    return f"{why}, in line {lines.number + more}: is a quote missing?" if more else why


def _reader(lines: Any, delimiter: str) -> Any:
    # The limit on the size of a field is global. Its default of 128 KB is too low for many pages.
    csv.field_size_limit(max(LARGEST, csv.field_size_limit()))
    return csv.reader(lines, delimiter=delimiter, strict=True)


def _ended(raw: bytes, end: bytes) -> bytes:
    """Return a row with a line end. Add `end` if the row has none, as may happen in the last row of a file."""
    return raw if raw.endswith((b"\n", b"\r")) else raw + end


def _check_head(first: _Record, path: str) -> None:
    twice = [name for name, count in Counter(first.cells).items() if count > 1]
    if fault := first.fault or (f"column {twice[0]!r} occurs twice" if twice else None):
        raise FeedError(f"{path}, line {first.line}: {fault}")
