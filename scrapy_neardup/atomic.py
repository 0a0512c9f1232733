"""Write files that appear under their names only once they are complete."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from uuid import uuid4


@contextmanager
def replacing(path: str | os.PathLike[str]) -> Iterator[str]:
    """Give the name of a file that takes the place of `path` at the end, or goes if there is an error.

    It is on disk by then: a store that remembers its rows outlives a power failure, and so must they.

    No two have one name. Where `path` is a symbolic link, what it leads to is replaced. OSError: see `check_place`.
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
    with suppress(OSError):  # not every file system that is shared over a network can do this
        sync_folder(os.path.dirname(target))


def sync_folder(folder: str | os.PathLike[str]) -> None:
    """Sync a folder, so that the names of its files are on disk."""
    if os.name == "posix":  # elsewhere a folder can't be opened
        _sync(folder, os.O_RDONLY)


def _sync(path: str | os.PathLike[str], how: int) -> None:
    handle = os.open(path, how)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def check_place(path: str | os.PathLike[str]) -> None:
    """Raise OSError where no file can be put at a path: a directory, a pipe or a device is there, or no folder."""
    target = os.path.realpath(path)
    if os.path.isdir(target):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), os.fspath(path))
    if os.path.exists(target) and not os.path.isfile(target):  # it would be gone, and who reads a pipe would wait
        raise OSError(errno.EINVAL, "no regular file", os.fspath(path))
    os.stat(os.path.dirname(target))
