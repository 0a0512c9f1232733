"""Write, read and remove files of an index. A file has one level, and is only a cache.

A file is written aside, and renamed once it is whole. No file names another, and no process locks them, so several may
make files of the same rows. Readers take those that cover the most rows. Opening a hostile file runs no code.
"""

from __future__ import annotations

import mmap
import re
import time
import zlib
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from uuid import uuid4

import numpy as np

from ..atomic import replacing
from .row_index import Level, merged_columns

CHECKED = 1 << 28  # bytes; the checksum of a file up to this size is compared when it is opened, in 0.1 s
ABANDONED = 3600  # seconds after which a file that is not whole has been left by a killed process

_FORMAT = int.from_bytes(b"neardup\5", "little")
_HEAD = 8 * 7  # bytes of 7 integers: format, first, last, rows, entries, the checksums of the arrays and of this head
_NAME = re.compile(r"(\d{12,})-(\d{12,})-[\da-f]{8}\.idx")


class LevelFiles:
    """The files of one index, in a folder of their own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def ranges(self) -> dict[Path, tuple[int, int]]:
        """Return the files, and the first and last row number that each covers by its name."""
        names = ((file, _NAME.fullmatch(file.name)) for file in self.folder.glob("*.idx"))
        return {file: (int(match[1]), int(match[2])) for file, match in names if match}

    def read(self, fits: Callable[[Level], bool], refuse: Callable[[Path, object], object]) -> list[Level]:
        """Return levels of adjacent rows from number 1 on, as many as there are.

        `fits` tells whether a level belongs to the store. `refuse` is called with each file that does not, or that is
        damaged, and the reason.
        """
        levels: list[Level] = []
        tried: set[Path] = set()
        while True:
            first = levels[-1].last + 1 if levels else 1
            files = {file: span for file, span in self.ranges().items() if span[0] == first and file not in tried}
            if not files:
                return levels
            file = max(files, key=lambda file: files[file][1])
            tried.add(file)
            try:
                level = read_level(file, check=file.stat().st_size <= CHECKED)
                if (level.first, level.last) != files[file] or not fits(level):
                    raise ValueError(f"{file.name} belongs to other rows")
                levels.append(level)
            except FileNotFoundError:  # another process has just put another file in its place
                pass
            except (OSError, ValueError) as error:
                refuse(file, error)

    def write(self, levels: Sequence[Level]) -> Level:
        """Merge levels of adjacent rows into a file, and return the level that is mapped from it.

        Remove the files that it makes superfluous. Raise ValueError if a level is damaged, and OSError if the file
        can't be written.
        """
        for level in levels:
            if level.path and not level.is_intact():
                remove(level.path)
                raise ValueError(f"{level.path.name} is damaged")
        self.folder.mkdir(parents=True, exist_ok=True)
        first, last = levels[0].first, levels[-1].last
        path = self.folder / f"{first:012d}-{last:012d}-{uuid4().hex[:8]}.idx"
        with replacing(path) as part:
            _write(part, levels)
        for file, span in self.ranges().items():
            if first <= span[0] and span[1] <= last and file != path:
                remove(file)
        for file in self.folder.glob("*.part"):
            with suppress(OSError):
                if time.time() - file.stat().st_mtime > ABANDONED:
                    remove(file)
        return read_level(path, check=False)


def remove(file: Path) -> None:
    """Remove a file if it is there and can be removed. Processes that have mapped it go on with it."""
    with suppress(OSError):  # outside POSIX a mapped file can't be removed
        file.unlink()


def read_level(file: Path, *, check: bool) -> Level:
    """Map the level in a file, read-only. With `check`, compare its checksum.

    Raise ValueError for damage or another format, and OSError if the file can't be opened.
    """
    with file.open("rb") as opened:
        size = file.stat().st_size
        head = opened.read(_HEAD)
        words = np.frombuffer(head.ljust(_HEAD, b"\0"), "<u8").tolist()
        form, first, last, rows, entries, checksum, of_head = words
        if form != _FORMAT or of_head != zlib.crc32(head[:-8]):
            raise ValueError(f"the head of {file.name} is damaged, or of another version")
        if size != _HEAD + 8 * (2 * rows + entries):
            raise ValueError(f"{file.name} is damaged: its size is {size}")
        view = mmap.mmap(opened.fileno(), size, access=mmap.ACCESS_READ)
    numbers = np.frombuffer(view, "<i8", rows, _HEAD)
    simhashes = np.frombuffer(view, "<u8", rows, _HEAD + 8 * rows)
    column = np.frombuffer(view, "<u8", entries, _HEAD + 16 * rows)
    level = Level(first, last, numbers, simhashes, column, file, checksum)
    if check and not level.is_intact():
        raise ValueError(f"{file.name} is damaged: its checksum does not match")
    return level


def _write(path: str, levels: Sequence[Level]) -> None:
    """Write a file piece by piece, since levels may be larger than memory."""
    rows, entries = sum(map(len, levels)), sum(len(level.entries) for level in levels)
    checksum = 0
    with open(path, "wb") as file:
        file.write(bytes(_HEAD))
        for piece in merged_columns(levels):
            data = np.ascontiguousarray(piece, piece.dtype.newbyteorder("<")).data
            file.write(data)
            checksum = zlib.crc32(data, checksum)
        head = np.array([_FORMAT, levels[0].first, levels[-1].last, rows, entries, checksum], "<u8").tobytes()
        file.seek(0)
        file.write(head + zlib.crc32(head).to_bytes(8, "little"))
