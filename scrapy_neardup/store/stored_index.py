"""The index of a table of a store, with its larger levels in files beside the store. It is only a cache of the rows.

A *level* is the index of all rows from a first to a last number (see `row_index`). A file has one level, and its name
has these numbers. It is written under a temporary name, and renamed once it is complete. No file refers to another, and
no process locks files. So several processes may write files of the same rows. Readers take the files that cover the
most rows, and build levels of the rows that no file covers. Opening a hostile file runs no code.
"""

from __future__ import annotations

import logging
import re
import sqlite3
import time
import zlib
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import takewhile
from pathlib import Path
from urllib.parse import quote
from uuid import uuid4

import msgpack
import numpy as np

from .. import row_index
from ..files import replacing
from ..row_index import Level, Posted, RowIndex, merged_columns
from ..signature import Signature
from .records import DAMAGE, Key, load, postings, visit_keys

STEP = 1 << 16  # rows to build into a level at a time, which takes 100 MB of memory
LEAST = 1 << 13  # the minimum number of rows for a file; fewer rows are indexed anew each time, in 0.1 s
SAMPLES = 64  # rows that are looked up in a file, to see whether it belongs to the store
CHECKED = 1 << 28  # bytes; the checksum of a file up to this size is compared when it is opened, in 0.1 s
ABANDONED = 3600  # seconds after which an incomplete file counts as left by a killed process
_FORMAT = int.from_bytes(b"neardup\7", "little")
_HEAD = 4  # integers before the arrays: the format, the numbers of rows and entries, the checksum of the arrays
_NAME = re.compile(r"(\d{12,})-(\d{12,})-[\da-f]{8}\.idx")
_PLAIN = 0x93  # the first byte of a visit's body with three fields; up to this, a visit is of a new document's own URL
logger = logging.getLogger(__name__)


def folder_of(path: str, table: str = "") -> Path:
    """Return the folder of the index of a table, or of all indexes of a store."""
    return Path(f"{path}.index", quote(table, safe=""))


class StoredIndex(RowIndex):
    """The index of a table. Its files are in a folder of their own."""

    def __init__(
        self, db: sqlite3.Connection, path: str, table: str, lacks_number: Callable[[int], bool], *, writes: bool
    ) -> None:
        super().__init__(lacks_number)
        self._db = db
        self._path = path
        self._table = table
        self.folder = folder_of(path, table)
        self._writes = writes  # whether larger levels become files; false after an error

    def load(self, last: int) -> None:
        """Read the levels in files. If more than `TAIL` rows up to number `last` follow, build levels of these rows."""
        self.levels = [*self.read()]
        count = len(self.levels)
        while last - self.last > row_index.TAIL:
            self._merge_now([self._level_of_rows(last)])
        self._merge_now(row_index.due(self.levels[count:], row_index.MOST, row_index.MOST))
        self._merge_now(row_index.due(self._mergeable(), row_index.RATIO, row_index.MERGED))

    def _level_of_rows(self, last: int) -> Level:
        """Build a level of the rows after the last level: up to number `last`, but at most `STEP` rows."""
        query = f'SELECT number, key, value FROM "{self._table}" WHERE number > ? AND number <= ? ORDER BY number LIMIT'
        stored = self._db.execute(f"{query} {STEP}", (self.last, last))
        rows = [(number, posted(key, value)) for number, key, value in stored]
        end = rows[-1][0] if len(rows) == STEP else last
        return Level.of(self.last + 1, end, [known for _, known in rows if known])

    def _merge_now(self, levels: Sequence[Level]) -> None:
        self._start_merge(levels)
        self.adopt()

    def _mergeable(self) -> list[Level]:
        """Return the levels that this process may merge: all if it makes files, else the newest ones in memory."""
        newest = [*takewhile(lambda level: not isinstance(level, FileLevel), reversed(self.levels))][::-1]
        return self.levels if self._writes else newest

    def _merge(self, levels: Sequence[Level]) -> list[Level]:
        """Merge levels into one: in a file if they are large enough and this process makes files, else in memory.

        Called in the index's thread. If a file can't be written, return the levels as they are, and make no more files.
        """
        if not self._writes or sum(map(len, levels)) < LEAST:
            return super()._merge(levels) if len(levels) > 1 else [*levels]
        try:
            return [self.write(levels)]
        except FileNotFoundError:  # another process has just put another file in its place
            return [*levels]
        except Exception as error:
            self._writes = False
            self._warn(f"stays in memory: {error}")
            return [*levels]

    def _warn(self, why: str) -> None:
        logger.warning("Store %r: its index %s", self._path, why)

    def files(self) -> dict[Path, tuple[int, int]]:
        """Return the files, and the first and last row number that each covers by its name."""
        names = ((file, _NAME.fullmatch(file.name)) for file in self.folder.glob("*.idx"))
        return {file: (int(match[1]), int(match[2])) for file, match in names if match}

    def read(self) -> list[FileLevel]:
        """Return levels from files that together cover the rows from number 1 on, without a gap.

        Warn of each file that is damaged, or is of another store. If this process makes files, it removes such a file.
        """
        levels: list[FileLevel] = []
        for file, (first, last) in sorted(self.files().items(), key=lambda each: (each[1][0], -each[1][1])):
            if first == (levels[-1].last + 1 if levels else 1):
                try:
                    level = read_level(file, first, last)
                    if not self._fits(level):
                        raise ValueError(f"{file.name} belongs to other rows")
                    levels.append(level)
                except FileNotFoundError:  # another process has just put another file in its place
                    return self.read()
                except (OSError, ValueError) as error:
                    self._warn(f"is rebuilt: {error}")
                    if self._writes:
                        remove(file)
        return levels

    def _fits(self, level: Level) -> bool:
        """Return whether a level is of this table: the table has had its last number, and it has a sample of rows.

        A table gives no number twice. Most rows of the sample are among the last ones of the level.
        """
        with suppress(sqlite3.OperationalError):  # as long as no table has had a row
            made = self._db.execute("SELECT max(seq) FROM sqlite_sequence WHERE name = ?", (self._table,)).fetchone()
            if level.last <= (made[0] or 0):
                numbers = level.last + 1 - np.geomspace(1, level.last + 1 - level.first, SAMPLES)
                query = f'SELECT key, value FROM "{self._table}" WHERE number IN ({",".join("?" * SAMPLES)})'
                rows = [posted(*row) for row in self._db.execute(query, numbers.astype(np.int64).tolist())]
                return any(rows) and all(map(level.has, filter(None, rows)))
        return False

    def write(self, levels: Sequence[Level]) -> FileLevel:
        """Merge levels of adjacent rows into a file. Return the level mapped from it. Raise OSError if that fails."""
        self.folder.mkdir(parents=True, exist_ok=True)
        first, last = levels[0].first, levels[-1].last
        path = self.folder / f"{first:012d}-{last:012d}-{uuid4().hex[:8]}.idx"
        with replacing(path) as part:
            _write(part, levels)
        level = read_level(path, first, last)  # at once, since a process that writes the same rows may remove it
        self._tidy(level)
        return level

    def _tidy(self, new: FileLevel) -> None:
        """Remove the files that a new one makes superfluous, and those that killed processes left."""
        for file, (first, last) in self.files().items():
            if new.first <= first and last <= new.last and file != new.path:
                remove(file)
        for file in self.folder.glob("*.part"):
            with suppress(OSError):
                if time.time() - file.stat().st_mtime > ABANDONED:
                    remove(file)


def posted(key: Key, value: bytes) -> Posted | None:
    """Return the postings of a row, without decoding a document; None if the row has none, or is damaged."""
    with suppress(*DAMAGE):  # `stats --check` reports a damaged row
        if isinstance(key, str):
            return None
        if key > 0:
            url, _, _, record, label, sample = msgpack.unpackb(value[4:], unicode_errors="surrogatepass")
            return key, *postings(Signature(url, record, 0.0, "", label, sample=sample))
        if value[4] > _PLAIN and (keys := visit_keys(load(key, value))):
            return key, keys, None
    return None


def remove(file: Path) -> None:
    """Remove a file if it is there and can be removed. Processes that have mapped it can still read it."""
    with suppress(OSError):  # outside POSIX a mapped file can't be removed
        file.unlink()


@dataclass(eq=False)
class FileLevel(Level):
    """A level that is mapped from a file."""

    path: Path


def read_level(file: Path, first: int, last: int) -> FileLevel:
    """Map the level of the rows `first` to `last` from a file, read-only.

    Raise ValueError for damage or another format, and OSError if the file can't be opened.
    """
    if (size := file.stat().st_size) % 8 or size < 8 * _HEAD:
        raise ValueError(f"{file.name} is damaged: its size is {size}")
    words = np.asarray(np.memmap(file, "<u8", "r"))
    form, rows, entries, checksum = words[:_HEAD].tolist()
    if form != _FORMAT or len(words) != _HEAD + 2 * rows + entries:
        raise ValueError(f"{file.name} is damaged, or of another version")
    if words.nbytes <= CHECKED and zlib.crc32(words[_HEAD:].data) != checksum:
        raise ValueError(f"{file.name} is damaged: its checksum does not match")
    places, simhashes, column = np.split(words[_HEAD:], [rows, 2 * rows])
    return FileLevel(first, last, places.view("<i8"), simhashes, column, file)


def _write(path: str, levels: Sequence[Level]) -> None:
    """Write a file piece by piece, since levels may be larger than memory."""
    rows, entries, checksum = sum(map(len, levels)), sum(len(level.entries) for level in levels), 0
    with open(path, "wb") as file:
        file.write(bytes(8 * _HEAD))
        for piece in merged_columns(levels):
            data = np.ascontiguousarray(piece, piece.dtype.newbyteorder("<")).data
            file.write(data)
            checksum = zlib.crc32(data, checksum)
        file.seek(0)
        file.write(np.array([_FORMAT, rows, entries, checksum], "<u8").tobytes())
