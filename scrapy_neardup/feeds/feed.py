"""The base class of feed formats (`Kind`), and the rows of a feed."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import IO, Any, ClassVar, NamedTuple, TypeAlias

SPREAD = 1 << 23  # bytes; in a larger row of several lines, a quote or bracket is assumed to be missing
LARGEST = 1 << 28  # the maximum bytes of a row; in a larger one, a quote or bracket was never closed


class FeedError(ValueError):
    """A feed can't be read or written. The message names the file, the line and the error."""


class BadRowError(FeedError):
    """A row can't be read. The rows after it may be valid."""


class NoRowError(ValueError):
    """A row is invalid. The message is the reason. `below` is the line of the error in the row, from 0 on."""

    def __init__(self, why: str, below: int = 0) -> None:
        super().__init__(why)
        self._below = below

    def describe(self, place: str) -> str:
        """Return the message, preceded by the place of the error, given the place of the row.

        `place` must end in the number of the row's first line, such as `items.json, row 2, line 7`.
        """
        before, _, number = place.rpartition(" ")
        return f"{f'{before} {int(number) + self._below}' if self._below else place}: {self}"


@dataclass(frozen=True)
class Span:
    """The byte range of a row in a file, for a row that may be too large for memory."""

    path: str
    start: int
    size: int

    def __len__(self) -> int:
        return self.size


Raw: TypeAlias = bytes | Span
"""An unparsed row, or its byte range in a file. `len` returns the size of the row in bytes."""


class Piece(NamedTuple):
    """An unparsed row of a file."""

    place: str
    """The place of the row in its file, such as `line 3`."""
    raw: Raw
    at: int
    """The number of bytes of the file that were read so far."""
    fault: str | None = None
    """The reason why the row is invalid, if that is known without parsing it; else None."""


class Kind(ABC):
    """A feed format, which splits files into rows, parses rows, and writes them.

    To add a format, write a subclass, and add it to `KINDS` in sequence.py. Formats are sent to other processes, so
    they must not hold open files. Feeds can be written to one file if their formats are equal.
    """

    name: ClassVar[str]
    """The name of the format in messages."""
    names: ClassVar[tuple[str, ...]]
    """The endings of file names of the format, in lower case."""
    gzips: ClassVar[bool] = True
    """True if a whole file may be gzipped, with a name that ends in .gz."""
    settings: ClassVar[Mapping[str, Any]] = {}
    """Values of settings that the rows of this format require."""

    @classmethod
    def of(cls, path: str) -> Kind:
        """Return the format of a file. Raise FeedError if it can't be determined."""
        return cls()

    @property
    def endings(self) -> tuple[str, ...]:
        """The allowed endings for the name of a file in which rows of this format are written."""
        return self.names

    @property
    def is_empty(self) -> bool:
        """True if the feed has no rows. It then fits into one file with any feed that has the same format `name`."""
        return False

    @abstractmethod
    def split(self, path: str) -> Iterator[Piece]:
        """Yield the unparsed rows of a file. Raise FeedError if the file can't be read."""

    @abstractmethod
    def parse(self, raw: Raw) -> dict[str, Any]:
        """Parse a row. Raise ValueError with the reason if it is not a row."""

    @abstractmethod
    def writer(self, file: IO[bytes], *, gzipped: bool) -> AbstractContextManager[Callable[[Any], object]]:
        """Yield a function that writes an unparsed row. The file is complete when the `with` block ends.

        `gzipped`: whether the name of the file ends in .gz. The caller compresses such a file if `gzips` is true. If
        `gzips` is false, the writer must compress it.
        """


class Line(NamedTuple):
    """An unparsed row of a feed."""

    number: int
    """The number of the row, counted from 1 over all feeds together."""
    place: str
    """The file and the line in it, for messages."""
    raw: Raw
    """The unparsed row."""
    kind: Kind
    fault: str | None = None
    """The reason why the row is invalid, as in `Piece`."""


class Row(NamedTuple):
    """A parsed row of a feed."""

    number: int
    """The number of the row, counted from 1 over all feeds together."""
    raw: Raw
    """The unparsed row."""
    data: dict[str, Any]
    place: str
    """The file and the line in it, for messages."""

    @classmethod
    def of(cls, line: Line) -> Row:
        """Parse a line. Raise BadRowError if it is not a valid row."""
        try:
            if line.fault:
                raise ValueError(line.fault)
            return cls(line.number, line.raw, line.kind.parse(line.raw), line.place)
        except NoRowError as error:
            raise BadRowError(error.describe(line.place)) from error
        except ValueError as error:
            raise BadRowError(f"{line.place}: {error}") from error


def row_id(row: Row, id_field: str | None, url_field: str) -> Any:
    """Return the id of a row: its field `id_field`. If `id_field` is None, return its URL, or else its number.

    Raise FeedError if the row lacks the field.
    """
    if id_field is None:
        return row.data.get(url_field) or row.number
    if id_field not in row.data:
        raise FeedError(f"{row.place}: there is no id field {id_field!r}")
    return row.data[id_field]
