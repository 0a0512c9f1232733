"""Files that appear under their names only when all of them is written."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from uuid import uuid4


@contextmanager
def replacing(path: str | os.PathLike[str]) -> Iterator[str]:
    """Give the name of a file that takes the place of `path` at the end, or goes if there is an error.

    No two have one name. Where `path` is a symbolic link, what it leads to is replaced. OSError: see `check_place`.
    """
    check_place(path)
    target = os.path.realpath(path)
    part = f"{target}.{uuid4().hex[:8]}.part"
    try:
        yield part
        os.replace(part, target)
    finally:
        Path(part).unlink(missing_ok=True)


def check_place(path: str | os.PathLike[str]) -> None:
    """Raise OSError where no file can be at a path: it is a directory, or in none."""
    target = os.path.realpath(path)
    if os.path.isdir(target):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), os.fspath(path))
    os.stat(os.path.dirname(target))
