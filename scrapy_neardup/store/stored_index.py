"""The index of a table of a store, with its larger levels in files beside the store. It is only a cache of the rows.

A file has one level. It is written aside, and renamed once it is whole. No file names another, and no process locks
them, so several may make files of the same rows. Readers take those that cover the most rows, and build levels of the
rows that none covers. Opening a hostile file runs no code.
"""

from __future__ import annotations

import logging
import mmap
import re
import sqlite3
import time
import zlib
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from itertools import takewhile
from pathlib import Path
from urllib.parse import quote
from uuid import uuid4

import msgpack
import numpy as np

from .. import row_index
from ..files import replacing
from ..fingerprints.record import Head, index_keys
from ..row_index import Level, Posted, RowIndex, merged_columns
from .records import DAMAGE, Key, load, page_keys, visit_keys

STEP = 1 << 16  # rows to build into a level at a time, which takes 100 MB of memory
LEAST = 1 << 13  # the minimum number of rows for a file; fewer rows are indexed anew each time, in 0.1 s
SAMPLES = 64  # rows that are looked up in a file, to see whether it belongs to the store
CHECKED = 1 << 28  # bytes; the checksum of a file up to this size is compared when it is opened, in 0.1 s
ABANDONED = 3600  # seconds after which a file that is not whole has been left by a killed process
_FORMAT = int.from_bytes(b"neardup\6", "little")
_HEAD = 8 * 7  # bytes of 7 integers: format, first, last, rows, entries, the checksums of the arrays and of this head
_NAME = re.compile(r"(\d{12,})-(\d{12,})-[\da-f]{8}\.idx")
_PLAIN = 0x93  # begins the body of a visit with at most three fields: that of a new document's own URL
logger = logging.getLogger(__name__)


def folder_of(path: str, table: str = "") -> Path:
    """Return the folder of the index of a table, or of all indexes of a store."""
    return Path(f"{path}.index", quote(table, safe=""))


class StoredIndex(RowIndex):
    """The index of a table."""

    def __init__(self, db: sqlite3.Connection, path: str, table: str, *, writes: bool) -> None:
        super().__init__()
        self._db = db
        self._path = path
        self._table = table
        self._files = LevelFiles(folder_of(path, table))
        self._writes = writes
        """True if larger levels become files. False for a store that is only read, and after an error."""

    def load(self, last: int) -> None:
        """Read the levels in files. If more than `TAIL` rows up to number `last` follow, build levels of these rows."""
        self.levels = self._files.read(partial(fits, self._db, self._table), self._refuse)
        count = len(self.levels)
        while last - self.last > row_index.TAIL:
            self._merge_now([level_of_rows(self._db, self._table, self.last, last)])
        self._merge_now(row_index.due(self.levels[count:], row_index.MOST, row_index.MOST))
        self._merge_now(row_index.due(self._mergeable(), row_index.RATIO, row_index.MERGED))

    def _refuse(self, file: Path, why: object) -> None:
        self._warn(f"is rebuilt: {why}")
        if self._writes:
            remove(file)

    def _merge_now(self, levels: Sequence[Level]) -> None:
        self._start_merge(levels)
        self.adopt()

    def _mergeable(self) -> list[Level]:
        """Return the levels that this process may merge: all, or the newest ones that are in memory."""
        newest = [*takewhile(lambda level: not level.path, reversed(self.levels))][::-1]
        return self.levels if self._writes else newest

    def _merge(self, levels: Sequence[Level]) -> list[Level]:
        """Return levels as one level: in a file if it is large enough and this process makes files, else in memory.

        Called in the thread. After an error make no more files. The index is only a cache, so a merge that failed loses
        nothing.
        """
        if not self._writes or sum(map(len, levels)) < LEAST:
            return super()._merge(levels) if len(levels) > 1 else [*levels]
        try:
            return [self._files.write(levels)]
        except Exception as error:
            self._writes = False
            self._warn(f"stays in memory: {error}")
            return [*levels]

    def _warn(self, why: str) -> None:
        logger.warning("Store %r: its index %s", self._path, why)


def fits(db: sqlite3.Connection, table: str, level: Level) -> bool:
    """Return whether a level is of rows of this table: the table has had as many, and some of them are in the level.

    A number is never given twice. Most of the rows that are looked up are among the last ones.
    """
    numbers = (level.last + 1 - np.geomspace(1, level.last + 1 - level.first, SAMPLES)).astype(np.int64).tolist()
    with suppress(sqlite3.OperationalError):  # no table has had a row
        [most] = db.execute("SELECT max(seq) FROM sqlite_sequence WHERE name = ?", (table,)).fetchone()
        query = f'SELECT key, value FROM "{table}" WHERE number IN ({",".join("?" * len(numbers))})'
        rows = [known for row in db.execute(query, numbers) if (known := posted(*row))]
        return level.last <= (most or 0) and bool(rows) and all(map(level.has, rows))
    return False


def level_of_rows(db: sqlite3.Connection, table: str, after: int, last: int) -> Level:
    """Build a level of the stored rows with numbers above `after`, up to number `last` or of `STEP` rows."""
    query = f'SELECT number, key, value FROM "{table}" WHERE number > ? AND number <= ? ORDER BY number LIMIT {STEP}'
    rows: list[Posted] = []
    count, number = 0, after
    for count, (number, key, value) in enumerate(db.execute(query, (after, last)), 1):  # noqa: B007
        if known := posted(key, value):
            rows.append(known)
    return Level.of(after + 1, number if count == STEP else last, rows)


def posted(key: Key, value: bytes) -> Posted | None:
    """Return the postings of a row, without decoding a document. None without any, or if the row is damaged."""
    with suppress(*DAMAGE):  # `stats --check` reports a damaged row
        if isinstance(key, str):
            return None
        if key > 0:
            url, _, _, record, label, sample = msgpack.unpackb(value[4:], unicode_errors="surrogatepass")
            head = Head.of(record)
            keys = index_keys(record, head) + page_keys(url, label=bool(label), sample=bool(sample))
            return key, keys, head.simhash if head.has_simhash else None
        if value[4] > _PLAIN and (keys := visit_keys(load(key, value))):
            return key, keys, None
    return None


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
        for file, (first, last) in sorted(self.ranges().items(), key=lambda each: (each[1][0], -each[1][1])):
            if first == (levels[-1].last + 1 if levels else 1):
                try:
                    level = read_level(file, check=file.stat().st_size <= CHECKED)
                    if (level.first, level.last) != (first, last) or not fits(level):
                        raise ValueError(f"{file.name} belongs to other rows")
                    levels.append(level)
                except FileNotFoundError:  # another process has just put another file in its place
                    return self.read(fits, refuse)
                except (OSError, ValueError) as error:
                    refuse(file, error)
        return levels

    def write(self, levels: Sequence[Level]) -> Level:
        """Merge levels of adjacent rows into a file, and return the level that is mapped from it.

        Raise ValueError if a level is damaged, and OSError if the file can't be written.
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
        level = read_level(path, check=False)  # first, since another process may write the same rows, and tidy up
        self._tidy(path, first, last)
        return level

    def _tidy(self, new: Path, first: int, last: int) -> None:
        """Remove the files that a new one makes superfluous, and those that killed processes left."""
        for file, span in self.ranges().items():
            if first <= span[0] and span[1] <= last and file != new:
                remove(file)
        for file in self.folder.glob("*.part"):
            with suppress(OSError):
                if time.time() - file.stat().st_mtime > ABANDONED:
                    remove(file)


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
    places = np.frombuffer(view, "<i8", rows, _HEAD)
    simhashes = np.frombuffer(view, "<u8", rows, _HEAD + 8 * rows)
    column = np.frombuffer(view, "<u8", entries, _HEAD + 16 * rows)
    level = Level(first, last, places, simhashes, column, file, checksum)
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
