"""Open files, plain or gzipped, and write and parse JSON. A written file appears only when it is complete.

`-` is standard input and output.
"""

from __future__ import annotations

import errno
import gzip
import json
import os
import sys
from codecs import BOM_UTF8
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import IO, Any, cast
from uuid import uuid4

STREAM = "-"
_BUFFER = 1 << 18  # bytes, enough for two rows of some thousand words each


class FileError(ValueError):
    """A file can't be read or written. The message names the file, the place and the error."""


@contextmanager
def reading(path: str) -> Iterator[tuple[IO[bytes], IO[bytes]]]:
    """Open a file or standard input. Yield it as it is, and unpacked. Without gzip, these are one object."""
    with ExitStack() as stack:
        file: Any = sys.stdin.buffer if path == STREAM else stack.enter_context(open(path, "rb", _BUFFER))
        is_packed = is_gzipped(path) or file.peek(2)[:2] == b"\x1f\x8b"
        yield file, cast("IO[bytes]", stack.enter_context(gzip.open(file))) if is_packed else file


@contextmanager
def writing(path: str, endings: Sequence[str] = ("",), *, packs: bool = True) -> Iterator[IO[bytes]]:
    """Open a file for writing, or standard output. Gzip a file if its name ends in .gz, unless `packs` is False.

    Raise FileError if the name has none of the `endings`, or the file can't be written.
    """
    try:
        if path == STREAM:
            yield sys.stdout.buffer
            sys.stdout.buffer.flush()
            return
        check_name(path, endings)
        with ExitStack() as stack:
            file = stack.enter_context(open(stack.enter_context(replacing(path)), "wb", _BUFFER))
            if packs and is_gzipped(path):  # its header has the final name and no time: equal bytes each time
                file = cast("Any", stack.enter_context(gzip.GzipFile(path, "wb", fileobj=file, mtime=0)))
            yield file
    except BrokenPipeError:  # of standard output: nobody reads it any more
        raise
    except OSError as error:
        raise FileError(f"{path}: can't be written: {error.strerror or error}") from error


def check_name(path: str, endings: Sequence[str]) -> None:
    """Raise FileError unless a file name ends in one of `endings`, with or without .gz."""
    if not has_ending(path, endings):
        each = "each " * (len(endings) > 1)
        raise FileError(f"{path}: unknown file format; allowed is {', '.join(endings)}, {each}also with .gz")


def has_ending(path: str, endings: Sequence[str]) -> bool:
    """Return whether a file name ends in one of `endings`, with or without .gz."""
    return path.lower().removesuffix(".gz").endswith(tuple(endings))


def is_gzipped(path: str) -> bool:
    return path.lower().endswith(".gz")


@contextmanager
def replacing(path: str | os.PathLike[str]) -> Iterator[str]:
    """Yield the name of a temporary file to write, which replaces `path` on exit and is removed after an error.

    The temporary file is synced to disk before it replaces `path`, since a store may rely on it after a power failure.
    If `path` is a symbolic link, its target is replaced. Raise OSError if the file can't be synced or moved.
    """
    target = os.path.realpath(path)
    if os.path.isdir(target):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), os.fspath(path))
    if os.path.exists(target) and not os.path.isfile(target):  # replacing a pipe or device would break its readers
        raise OSError(errno.EINVAL, "not a regular file", os.fspath(path))
    os.stat(os.path.dirname(target))  # raises if the folder is missing
    part = f"{target}.{uuid4().hex[:8]}.part"
    try:
        yield part
        _sync(part, os.O_RDWR)
        os.replace(part, target)
    finally:
        Path(part).unlink(missing_ok=True)
    with suppress(OSError):  # some network file systems can't sync a folder, and some systems can't open one
        _sync(os.path.dirname(target), os.O_RDONLY)


def _sync(path: str, how: int) -> None:
    handle = os.open(path, how)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


# JSON


def json_text(value: Any, *, indent: int | None = None) -> str:
    r"""Return a value as JSON. Letters of all scripts stay. Lone surrogates (`\ud800`) are escaped.

    Values of unknown types are written as their `str`, and NaN and infinite numbers as null.
    """
    dump = partial(json.dumps, ensure_ascii=False, default=str, indent=indent)
    try:
        text = dump(value, allow_nan=False)
    except ValueError:  # for NaN and infinity, which are too rare to look for them first
        text = dump(json.loads(json.dumps(value, default=str), parse_constant=lambda name: None))
    return text.encode(errors="backslashreplace").decode()


def parse_object(raw: bytes) -> dict[str, Any]:
    """Parse a JSON object. Raise ValueError with the reason if `raw` is not one."""
    try:
        # Decode here, since json would guess the encoding of each line.
        data = json.loads(raw.removeprefix(BOM_UTF8).decode("utf-8", "surrogatepass"))
    except json.JSONDecodeError as error:
        raise ValueError(f"no JSON: {error.msg}, column {error.colno}") from error
    except RecursionError as error:
        raise ValueError("no JSON: too deep") from error
    if not isinstance(data, dict):
        raise ValueError(f"no JSON object but {json.dumps(data):.40}")
    return data
