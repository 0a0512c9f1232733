"""The protocol of a feed format, and the rows of a feed."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import IO, Any, ClassVar, NamedTuple, TypeAlias

SPREAD = 1 << 23  # bytes of a multi-line row: beyond this, a quote or bracket is assumed to be missing
LARGEST = 1 << 28  # bytes of a row: beyond this, a quote or bracket was never closed


class FeedError(ValueError):
    """A feed can't be read or written. The message names the file, the line and the error."""


class BadRowError(FeedError):
    """A row can't be read. The next rows may be fine."""


class NoRowError(ValueError):
    """The reason why something is not a row. `below` is the number of lines from its first line to the error."""

    def __init__(self, why: str, below: int = 0) -> None:
        super().__init__(why)
        self._below = below

    def told(self, place: str) -> str:
        """Return the message, given the place of the row, which ends in the number of its first line."""
        before, _, number = place.rpartition(" ")
        return f"{f'{before} {int(number) + self._below}' if self._below else place}: {self}"


@dataclass(frozen=True)
class Span:
    """The place of a row that is too large for memory."""

    path: str
    start: int
    size: int

    def __len__(self) -> int:
        return self.size


Raw: TypeAlias = bytes | Span
"""A row as it stands in its file. Its `len` is in bytes."""


class Piece(NamedTuple):
    """An unparsed row of a file."""

    place: str
    """Its place, such as `line 3`."""
    raw: Raw
    at: int
    """The number of bytes of the file read so far."""
    fault: str | None = None
    """The reason why it is not a row, if that is known without parsing."""


class Kind(ABC):
    """A feed format, which reads and writes rows.

    Formats are sent to other processes, so they hold no open files. Feeds of equal formats can be written as one.
    """

    name: ClassVar[str]
    """The name of the format in messages."""
    names: ClassVar[tuple[str, ...]]
    """The endings of file names of the format, in lower case."""
    gzips: ClassVar[bool] = True
    """Whether a whole file may be gzipped, with a name that ends in .gz."""
    settings: ClassVar[Mapping[str, Any]] = {}
    """Settings that the rows require."""

    @classmethod
    def of(cls, path: str) -> Kind:
        """Return the format of a file. Raise FeedError if it can't be determined."""
        return cls()

    @property
    def endings(self) -> tuple[str, ...]:
        """The allowed endings of a file with these rows."""
        return self.names

    @property
    def is_empty(self) -> bool:
        """Whether the feed has no rows, so that it fits together with any feed of the same name."""
        return False

    @abstractmethod
    def split(self, path: str) -> Iterator[Piece]:
        """Yield the unparsed rows of a file. Raise FeedError if the file can't be read."""

    @abstractmethod
    def parse(self, raw: Raw) -> dict[str, Any]:
        """Parse a row. Raise ValueError with the reason if it is not a row."""

    @abstractmethod
    def writer(self, file: IO[bytes], *, gzipped: bool) -> AbstractContextManager[Callable[[Any], object]]:
        """Yield a function that writes an unparsed row. The file is complete when the context ends.

        `gzipped` is whether the name of the file ends in .gz. With `gzips` the caller compresses the file.
        """


class Line(NamedTuple):
    """An unparsed row of a feed."""

    number: int
    """From 1, over all feeds together."""
    place: str
    """The file and the line in it, for messages."""
    raw: Raw
    """The row as it stood in the file."""
    kind: Kind
    fault: str | None = None


class Row(NamedTuple):
    """One row of a feed."""

    number: int
    """From 1, over all feeds together."""
    raw: Raw
    """The row as it stood in the file."""
    data: dict[str, Any]
    place: str
    """The file and the line in it, for messages."""

    @classmethod
    def of(cls, line: Line) -> Row:
        """Parse a row. Raise BadRowError if it is not one."""
        try:
            if line.fault:
                raise ValueError(line.fault)
            return cls(line.number, line.raw, line.kind.parse(line.raw), line.place)
        except NoRowError as error:
            raise BadRowError(error.told(line.place)) from error
        except ValueError as error:
            raise BadRowError(f"{line.place}: {error}") from error


def row_id(row: Row, id_field: str | None, url_field: str) -> Any:
    """Return the id of a row: the chosen field, else its URL, else its number."""
    if id_field is None:
        return row.data.get(url_field) or row.number
    if id_field not in row.data:
        raise FeedError(f"{row.place}: there is no id field {id_field!r}")
    return row.data[id_field]
