"""Open feed files for reading and writing, plain or gzipped. A written file appears only once it is complete."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import count
from typing import IO, cast

from ..atomic import replacing
from .feed import LARGEST, FeedError

_BUFFER = 1 << 18  # bytes, enough for two typical rows of some thousand words each


def is_gzipped(path: str) -> bool:
    """Return whether a file is gzipped, by its name."""
    return path.lower().endswith(".gz")


@contextmanager
def reading(path: str, *, gzips: bool = True) -> Iterator[IO[bytes]]:
    """Open a file for reading. With `gzips`, unpack the file if its name ends in .gz.

    Raise FeedError if the file can't be read.
    """
    try:
        with gzip.open(path) if gzips and is_gzipped(path) else open(path, "rb", _BUFFER) as file:
            yield cast("IO[bytes]", file)
    except (OSError, EOFError, zlib.error) as error:
        raise FeedError(f"{path}: can't be read: {getattr(error, 'strerror', None) or error}") from error


def lines_of(file: IO[bytes], path: str) -> Iterator[bytes]:
    """Yield the lines of a file with their line ends. Raise FeedError for a line that is too long for memory."""
    for number in count(1):
        line = file.readline(LARGEST + 1)
        if len(line) > LARGEST:
            raise FeedError(f"{path}, line {number}: over {LARGEST} bytes")
        if not line:
            return
        yield line


def position(file: IO[bytes]) -> int:
    """Return the number of bytes read from a file. For a gzipped file, compressed bytes are counted."""
    return int(getattr(file, "fileobj", file).tell())


@contextmanager
def writing(path: str, formats: Sequence[str], *, gzips: bool = True) -> Iterator[IO[bytes]]:
    """Open a file for writing. It appears under its name only when it is complete.

    `formats` are the allowed endings of its name. With `gzips`, the name may also end in .gz after such an ending, and
    the file is then compressed. Raise FeedError for another name, or if the file can't be written.
    """
    check_name(path, formats, gzips=gzips)
    with telling(path), replacing(path) as part, open(part, "wb", _BUFFER) as file:
        if not gzips or not is_gzipped(path):
            yield file
        else:
            with gzip.GzipFile(path, "wb", fileobj=file) as packed:  # the gzip header gets the final name
                yield cast("IO[bytes]", packed)


@contextmanager
def telling(path: str) -> Iterator[None]:
    """Convert an OSError in a `with` block that writes a file to a FeedError that names the file."""
    try:
        yield
    except OSError as error:
        raise FeedError(f"{path}: can't be written: {error.strerror or error}") from error


def check_name(path: str, formats: Sequence[str], *, gzips: bool = True, why: str = "unknown file format") -> None:
    """Raise FeedError if the name of a file has none of the endings `formats`. `why` is the reason in the message."""
    if not has_ending(path, formats, gzips=gzips):
        also = f", {'each ' * (len(formats) > 1)}also with .gz" if gzips else ""
        raise FeedError(f"{path}: {why}; allowed is {', '.join(formats)}{also}")


def has_ending(path: str, formats: Sequence[str], *, gzips: bool) -> bool:
    """Return whether the name of a file has one of these endings. With `gzips`, .gz may follow the ending."""
    name = path.lower()
    return (name.removesuffix(".gz") if gzips else name).endswith(tuple(formats))
