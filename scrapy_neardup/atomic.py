"""Write files that appear under their names only when they are complete."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from uuid import uuid4


@contextmanager
def replacing(path: str | os.PathLike[str]) -> Iterator[str]:
    """Yield the name of a temporary file, which replaces `path` on exit and is removed after an error.

    The file is synced to disk before it replaces `path`, since a store may rely on it after a power failure. Each
    temporary name is unique. If `path` is a symbolic link, its target is replaced. Raise OSError as `check_place` does.
    """
    check_place(path)
    target = os.path.realpath(path)
    part = f"{target}.{uuid4().hex[:8]}.part"
    try:
        yield part
        _sync(part, os.O_RDWR)
        os.replace(part, target)
    finally:
        Path(part).unlink(missing_ok=True)
    with suppress(OSError):  # some network file systems do not support this, and other systems can't open a folder
        _sync(os.path.dirname(target), os.O_RDONLY)


def _sync(path: str, how: int) -> None:
    handle = os.open(path, how)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def check_place(path: str | os.PathLike[str]) -> None:
    """Raise OSError if no file can be created at a path: it is a directory, pipe or device, or its folder is
    missing."""
    target = os.path.realpath(path)
    if os.path.isdir(target):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), os.fspath(path))
    if os.path.exists(target) and not os.path.isfile(target):  # replacing a pipe or device would break its readers
        raise OSError(errno.EINVAL, "not a regular file", os.fspath(path))
    os.stat(os.path.dirname(target))
