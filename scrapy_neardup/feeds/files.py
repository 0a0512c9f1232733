"""Files of feeds: opened, plain or gzipped, and written so that they appear as a whole or not at all."""

from __future__ import annotations

import gzip
import os
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from .base import FeedError


def is_gzipped(path: str) -> bool:
    """Say whether a file is gzipped, by its name."""
    return path.lower().endswith(".gz")


@contextmanager
def reading(path: str, *, gzips: bool = True) -> Iterator[IO[bytes]]:
    """Open a file to be read; with `gzips` unpacked if its name ends in .gz. Raise FeedError where it can't be read."""
    try:
        with _open(path, "rb", gzips and is_gzipped(path)) as file:
            yield file
    except (OSError, EOFError, zlib.error) as error:
        raise FeedError(f"{path}: can't be read: {getattr(error, 'strerror', None) or error}") from error


def position(file: IO[bytes]) -> int:
    """Return how many bytes of a file have been read, before they were unpacked."""
    return int(getattr(file, "fileobj", file).tell())


@contextmanager
def writing(path: str, formats: Sequence[str], *, gzips: bool = True) -> Iterator[IO[bytes]]:
    """Open a file that appears under its name only when all of it is written.

    `formats`: the endings that its name may have, with `gzips` also followed by .gz. Raise FeedError.
    """
    check_name(path, formats, gzips=gzips)
    part = f"{path}.part"
    try:
        with _open(part, "wb", gzips and is_gzipped(path)) as file:
            yield file
        os.replace(part, path)
    except OSError as error:
        raise FeedError(f"{path}: can't be written: {error.strerror or error}") from error
    finally:
        Path(part).unlink(missing_ok=True)


def check_name(path: str, formats: Sequence[str], *, gzips: bool = True, why: str = "no such kind of file") -> None:
    """Raise FeedError for a name with another ending."""
    if not has_ending(path, formats, gzips=gzips):
        also = f", {'each ' * (len(formats) > 1)}also with .gz" if gzips else ""
        raise FeedError(f"{path}: {why}; allowed is {', '.join(formats)}{also}")


def has_ending(path: str, formats: Sequence[str], *, gzips: bool) -> bool:
    """Say whether the name of a file ends so."""
    name = path.lower()
    return (name.removesuffix(".gz") if gzips else name).endswith(tuple(formats))


def _open(path: str, mode: str, is_gzip: bool) -> IO[bytes]:
    opener: Callable[[str, str], Any] = gzip.open if is_gzip else open
    opened: IO[bytes] = opener(path, mode)
    return opened
