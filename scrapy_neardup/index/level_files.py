"""Write, read and remove files of an index. A file has one level, and is only a cache.

A file is written aside, and renamed once it is whole. No file names another, and no process locks them, so several may
make files of the same rows. Readers take those that cover the most rows. A file says which rows it covers, and carries
samples of them, by which a reader can tell whether it belongs to a store. Opening a hostile file runs no code.
"""

from __future__ import annotations

import mmap
import re
import time
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeAlias
from uuid import uuid4

import numpy as np
import numpy.typing as npt

from ..atomic import replacing
from .row_index import Integers, Level, merged_entries

CHECKED = 1 << 28  # bytes; the checksum of a file up to this size is compared when it is opened, in 0.1 s
ABANDONED = 3600  # seconds after which a file that is not whole has been left by a killed process

Samples: TypeAlias = Mapping[int, int]
"""Some of the rows in a level: the hash of a row's key by its number."""

_FORMAT = int.from_bytes(b"neardup\4", "little")
_WORDS = 9  # of a head: format, first, last, rows, entries, samples; the checksums of the arrays, samples, and head
_NAME = re.compile(r"(\d{12,})-(\d{12,})-[\da-f]{8}\.idx")


class LevelFiles:
    """The files of one index, in a folder of their own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def ranges(self) -> dict[Path, tuple[int, int]]:
        """Return the files, and the first and last row number that each covers by its name."""
        names = ((file, _NAME.fullmatch(file.name)) for file in self.folder.glob("*.idx"))
        return {file: (int(match[1]), int(match[2])) for file, match in names if match}

    def read(self, fits: Callable[[Level, Samples], bool], refuse: Callable[[Path, object], object]) -> list[Level]:
        """Return levels of adjacent rows from number 1 on, as many as there are.

        `fits` tells whether a level belongs to the store. `refuse` is called with each file that does not, or that is
        damaged, and the reason.
        """
        levels: list[Level] = []
        tried: set[Path] = set()
        while True:
            after = levels[-1].last if levels else 0
            files = {file: span for file, span in self.ranges().items() if span[0] == after + 1 and file not in tried}
            if not files:
                return levels
            file = max(files, key=lambda file: files[file][1])
            tried.add(file)
            try:
                levels.append(_fitting(file, files[file], fits))
            except FileNotFoundError:  # another process has just put another file in its place
                pass
            except (OSError, ValueError) as error:
                refuse(file, error)

    def write(self, levels: Sequence[Level], samples: Samples) -> Level:
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
            _write(part, levels, np.array([*samples.items()], "<u8").reshape(-1, 2))
        self._tidy(path, first, last)
        return read_level(path, check=False)[0]

    def _tidy(self, path: Path, first: int, last: int) -> None:
        """Remove files of rows that `path` covers too, and what killed processes have left."""
        for file, span in self.ranges().items():
            if first <= span[0] and span[1] <= last and file != path:
                remove(file)
        for file in self.folder.glob("*.part"):
            with suppress(OSError):
                if time.time() - file.stat().st_mtime > ABANDONED:
                    file.unlink()


def remove(file: Path) -> None:
    """Remove a file if it is there and can be removed. Processes that have mapped it go on with it."""
    with suppress(OSError):  # outside POSIX a mapped file can't be removed
        file.unlink()


def read_level(file: Path, *, check: bool) -> tuple[Level, Samples]:
    """Map the level in a file, read-only, and return it with samples of its rows. With `check`, compare its checksum.

    Raise ValueError for damage or another format, and OSError if the file can't be opened.
    """
    with file.open("rb") as opened:
        size = file.stat().st_size
        head = opened.read(8 * _WORDS)
        words = np.frombuffer(head.ljust(8 * _WORDS, b"\0"), "<u8").tolist()
        _, first, last, rows, entries, samples, checksum, of_samples, _ = words
        if words[0] != _FORMAT or words[-1] != zlib.crc32(head[:-8]):
            raise ValueError(f"the head of {file.name} is damaged, or of another version")
        if size != 8 * (_WORDS + 2 * samples + 2 * rows + entries):
            raise ValueError(f"{file.name} is damaged: its size is {size}")
        view = mmap.mmap(opened.fileno(), size, access=mmap.ACCESS_READ)
    known = np.frombuffer(view, "<u8", 2 * samples, 8 * _WORDS).reshape(-1, 2)
    at = 8 * (_WORDS + 2 * samples)
    level = Level(
        *(first, last, np.frombuffer(view, "<i8", rows, at), np.frombuffer(view, "<u8", rows, at + 8 * rows)),
        np.frombuffer(view, "<u8", entries, at + 16 * rows),
    )
    level.path, level.checksum = file, checksum
    if zlib.crc32(known.data) != of_samples or (check and not level.is_intact()):
        raise ValueError(f"{file.name} is damaged: its checksum does not match")
    return level, dict(known.tolist())


def _fitting(file: Path, span: tuple[int, int], fits: Callable[[Level, Samples], bool]) -> Level:
    """Return the level in a file. Raise ValueError if the file is damaged, or belongs to other rows."""
    check = file.stat().st_size <= CHECKED
    level, samples = read_level(file, check=check)
    if (level.first, level.last) != span or not fits(level, samples):
        raise ValueError(f"{file.name} belongs to other rows")
    level.checksum = None if check else level.checksum
    return level


def _write(path: str, levels: Sequence[Level], samples: Integers) -> None:
    """Write a file piece by piece, since levels may be larger than memory."""
    rows, entries = sum(map(len, levels)), sum(len(level.entries) for level in levels)
    checksum = 0
    with open(path, "wb") as file:
        file.write(bytes(8 * _WORDS) + samples.tobytes())
        for piece in _columns(levels):
            data = np.ascontiguousarray(piece, piece.dtype.newbyteorder("<")).data
            file.write(data)
            checksum = zlib.crc32(data, checksum)
        words = [_FORMAT, levels[0].first, levels[-1].last, rows, entries, len(samples), checksum]
        head = np.array([*words, zlib.crc32(samples.data)], "<u8").tobytes()
        file.seek(0)
        file.write(head + np.array([zlib.crc32(head)], "<u8").tobytes())


def _columns(levels: Sequence[Level]) -> Iterator[npt.NDArray[Any]]:
    """Yield the numbers, SimHashes and entries of merged levels, in pieces."""
    yield from (level.numbers for level in levels)
    yield from (level.simhashes for level in levels)
    yield from merged_entries(levels)
