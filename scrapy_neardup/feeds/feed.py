"""Open files of rows for reading and writing, plain or gzipped; `-` is standard input and output."""

from __future__ import annotations

import gzip
import sys
import zlib
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from typing import IO, Any, ClassVar, NamedTuple, TypeAlias, cast

from ..atomic import replacing

LARGEST = 1 << 28  # the maximum bytes of a row
STREAM = "-"
_BUFFER = 1 << 18  # bytes, enough for two typical rows of some thousand words each


class FeedError(ValueError):
    """A feed can't be read or written. The message names the file, the place and the error."""


class BrokenError(Exception):
    """The rest of a feed can't be read. The message gives the reason."""


UNREADABLE = (BrokenError, OSError, EOFError, zlib.error)


class Row(NamedTuple):
    """A row of a feed."""

    number: int  # counted from 1 over all feeds together
    data: dict[str, Any]
    place: str  # the file and the place in it, for messages
    raw: Any = None  # the row as its file has it, for a file of the same format; None if the format has no such thing


Found: TypeAlias = tuple[int, dict[str, Any] | ValueError, Any]
"""The number of a row in its file, the row or the reason why it can't be read, and the row as the file has it."""


class Feed(ABC):
    """An open file of rows, which is either read or written."""

    name: ClassVar[str]  # in messages
    endings: ClassVar[tuple[str, ...]]  # of file names, in lower case; .gz may follow
    unit: ClassVar[str] = "row"  # what the number of a row counts
    is_packed_whole: ClassVar[bool] = True  # False if it packs each row of a file whose name ends in .gz
    settings: ClassVar[Mapping[str, Any]] = {}  # that the rows of this format require

    def __init__(self, file: IO[bytes], path: str, sources: Sequence[str] = ()) -> None:
        """`sources` are the feeds whose rows are written."""
        self.file = file
        self.path = path
        self.sources = sources

    @abstractmethod
    def rows(self) -> Iterator[Found]:
        """Yield the rows, and also what is no valid row. Raise an error of UNREADABLE if the rest can't be read."""

    @abstractmethod
    def write(self, data: Mapping[str, Any], raw: Any = None) -> None:
        """Write a row. `raw` is the row as a file of the same format has it."""

    def close(self) -> None:  # noqa: B027 - most formats write nothing behind the last row
        """End a file that is written."""

    def lines(self) -> Iterator[bytes]:
        """Yield the lines of the file. Raise BrokenError for a line that is too long for memory."""
        while line := self.file.readline(LARGEST):
            if len(line) == LARGEST:
                raise BrokenError(f"a line of over {LARGEST} bytes")
            yield line


@contextmanager
def reading(path: str) -> Iterator[tuple[IO[bytes], IO[bytes]]]:
    """Open a file or standard input. Yield it as it is, and unpacked if it is gzipped."""
    with ExitStack() as stack:
        file: Any = sys.stdin.buffer if path == STREAM else stack.enter_context(open(path, "rb", _BUFFER))
        is_packed = is_gzipped(path) or file.peek(2)[:2] == b"\x1f\x8b"
        yield file, cast("IO[bytes]", stack.enter_context(gzip.open(file))) if is_packed else file


@contextmanager
def writing(path: str, formats: Sequence[str], *, packs: bool = True) -> Iterator[IO[bytes]]:
    """Open a file for writing, which appears only when it is complete, and is packed if it `packs` and its name ends in
    .gz; or standard output. Raise FeedError for another ending than `formats`, or if the file can't be written."""
    with ExitStack() as stack:
        stack.enter_context(telling(path))
        if path == STREAM:
            stack.callback(sys.stdout.buffer.flush)
            yield sys.stdout.buffer
            return
        check_name(path, formats)
        file = stack.enter_context(open(stack.enter_context(replacing(path)), "wb", _BUFFER))
        if packs and is_gzipped(path):  # the gzip header gets the final name
            yield cast("IO[bytes]", stack.enter_context(gzip.GzipFile(path, "wb", fileobj=file)))
        else:
            yield file


@contextmanager
def telling(path: str) -> Iterator[None]:
    """Convert an OSError in a `with` block that writes a file, except a broken pipe, to a FeedError that names it."""
    try:
        yield
    except BrokenPipeError:  # no file's: nobody reads the output any more
        raise
    except OSError as error:
        raise FeedError(f"{path}: can't be written: {error.strerror or error}") from error


def check_name(path: str, formats: Sequence[str]) -> None:
    """Raise FeedError if the name of a file has none of the endings `formats`, which .gz may follow."""
    if not has_ending(path, formats):
        each = "each " * (len(formats) > 1)
        raise FeedError(f"{path}: unknown file format; allowed is {', '.join(formats)}, {each}also with .gz")


def has_ending(path: str, formats: Sequence[str]) -> bool:
    """Return whether the name of a file has one of these endings, which .gz may follow."""
    return path.lower().removesuffix(".gz").endswith(tuple(formats))


def is_gzipped(path: str) -> bool:
    """Return whether the name of a file says that it is gzipped."""
    return path.lower().endswith(".gz")
