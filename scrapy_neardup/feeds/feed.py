"""The protocol of a kind of feed, and its rows."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import IO, Any, ClassVar, NamedTuple, TypeAlias

SPREAD = 1 << 23  # bytes of a row of several lines: in what is longer a quote or a bracket is missing, it is taken
LARGEST = 1 << 28  # bytes of a row: what is longer is no row, but a quote or a bracket that nobody closed


class FeedError(ValueError):
    """A feed can't be read or written; the message names the file, the line and what is wrong."""


class BadRowError(FeedError):
    """A row can't be read; those after it may well be."""


class NoRowError(ValueError):
    """Why something is no row; `below`: so many lines after its first."""

    def __init__(self, why: str, below: int = 0) -> None:
        super().__init__(why)
        self._below = below

    def told(self, place: str) -> str:
        """Report it, given where the row begins: a place that ends in a line number."""
        before, _, number = place.rpartition(" ")
        return f"{f'{before} {int(number) + self._below}' if self._below else place}: {self}"


@dataclass(frozen=True)
class Span:
    """Where a row lies that is better not held in memory."""

    path: str
    start: int
    size: int

    def __len__(self) -> int:
        return self.size


Raw: TypeAlias = bytes | Span
"""A row as it stands in its file; its `len` is in bytes."""


class Piece(NamedTuple):
    """A row of a file, unread."""

    place: str
    """Which it is, such as `line 3`."""
    raw: Raw
    at: int
    """How many bytes of the file have been read."""
    fault: str | None = None
    """Why it is no row, where that shows without reading it."""


class Kind(ABC):
    """How the rows of one kind of feed are read and written.

    It goes to other processes, so nothing that is open is in it. Feeds of equal kinds can be written as one.
    """

    name: ClassVar[str]
    """What people call it."""
    names: ClassVar[tuple[str, ...]]
    """How the names of its files end, in lower case."""
    gzips: ClassVar[bool] = True
    """Whether a file may also be gzipped as a whole: then its name ends in .gz."""
    settings: ClassVar[Mapping[str, Any]] = {}
    """What the configuration has to be for its rows, whatever else it is."""

    @classmethod
    def of(cls, path: str) -> Kind:
        """Return the kind that a file is of. Raise FeedError where it can't be told."""
        return cls()

    @property
    def endings(self) -> tuple[str, ...]:
        """How the name of a file with these rows may end."""
        return self.names

    @property
    def is_empty(self) -> bool:
        """Whether nothing is known of the rows, since there are none: then it goes with all others of its name."""
        return False

    @abstractmethod
    def split(self, path: str) -> Iterator[Piece]:
        """Yield the rows of a file, unread. Raise FeedError where the file can't be read on."""

    @abstractmethod
    def parse(self, raw: Raw) -> dict[str, Any]:
        """Read a row; raise ValueError, saying why, for what is none."""

    @abstractmethod
    def writer(self, file: IO[bytes], *, gzipped: bool) -> AbstractContextManager[Callable[[Any], object]]:
        """Give what writes a row as it stands; the file is whole when the context ends.

        `gzipped`: whether its name ends in .gz; if `gzips`, the file sees to that itself.
        """


class Line(NamedTuple):
    """One row of a feed, unread."""

    number: int
    """From 1, over all feeds read together."""
    place: str
    """The file and the line in it, for messages."""
    raw: Raw
    """As it stood in the file."""
    kind: Kind
    fault: str | None = None


class Row(NamedTuple):
    """One row of a feed."""

    number: int
    """From 1, over all feeds read together."""
    raw: Raw
    """As it stood in the file."""
    data: dict[str, Any]
    place: str
    """The file and the line in it, for messages."""

    @classmethod
    def of(cls, line: Line) -> Row:
        """Raise BadRowError for what is no row."""
        try:
            if line.fault:
                raise ValueError(line.fault)
            return cls(line.number, line.raw, line.kind.parse(line.raw), line.place)
        except NoRowError as error:
            raise BadRowError(error.told(line.place)) from error
        except ValueError as error:
            raise BadRowError(f"{line.place}: {error}") from error


def row_id(row: Row, id_field: str | None, url_field: str) -> Any:
    """Return what names a row of a feed: the field asked for, else its URL, else its number."""
    if id_field is None:
        return row.data.get(url_field) or row.number
    if id_field not in row.data:
        raise FeedError(f"{row.place}: there is no id field {id_field!r}")
    return row.data[id_field]
