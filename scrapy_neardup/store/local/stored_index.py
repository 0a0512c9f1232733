"""Keep the index of a file: its larger levels in files beside it, made anew from the rows where they are missing."""

from __future__ import annotations

import logging
import sqlite3
from array import array
from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from itertools import takewhile
from pathlib import Path
from urllib.parse import quote

import msgpack
import numpy as np

from ...fingerprints.record import index_keys
from ...index import row_index
from ...index.level_files import LevelFiles, remove
from ...index.row_index import Level, Posted, RowIndex
from ..records import DAMAGE, load, page_keys, visit_keys
from .database import key_in

STEP = 1 << 16  # rows to build into a level at a time, which takes 100 MB of memory
LEAST = 1 << 13  # the minimum number of rows for a file; fewer rows are indexed anew each time, in 0.1 s
SAMPLES = 64  # rows that are compared with a file, to see whether it belongs to the store
_PLAIN = 0x93  # begins the body of a visit with at most three fields: that of a new document's own URL
logger = logging.getLogger(__name__)


def folder_of(path: str) -> Path:
    """Return the folder of the indexes of a store."""
    return Path(f"{path}.index")


def files_of(path: str, table: str) -> LevelFiles:
    """Return the index files of a table of a store."""
    return LevelFiles(folder_of(path) / quote(table, safe=""))


class StoredIndex(RowIndex):
    """The index of a table. Use it in one thread at a time; it merges levels in a thread of its own."""

    def __init__(self, db: sqlite3.Connection, path: str, table: str, *, writes: bool) -> None:
        super().__init__()
        self._db = db
        self._path = path
        self._table = table
        self._files = files_of(path, table)
        self._writes = writes
        """True if larger levels become files. False for a store that is only read, and after an error."""

    def load(self, last: int) -> None:
        """Read the levels in files. If more than `TAIL` rows up to number `last` follow, build levels of these rows."""
        self.levels = self._files.read(partial(fits, self._db, self._table), self._refuse)
        if last - self.last > row_index.TAIL:
            self._cover(last)

    def _refuse(self, file: Path, why: object) -> None:
        self._warn(f"is rebuilt: {why}")
        if self._writes:
            remove(file)

    def rebuild(self, last: int) -> None:
        """Rebuild all levels, up to row number `last`."""
        self.adopt()
        self.seal(last)
        self.levels = []
        self._cover(last)

    def _cover(self, last: int) -> None:
        """Build levels of all rows after the last level, up to number `last`, and merge them."""
        count = len(self.levels)
        while self.last < last:
            self.levels.append(level_of_rows(self._db, self._table, self.last, last))
            self.put(self._merge(self.levels[-1:]))
        if built := row_index.due(self.levels[count:], row_index.MOST):
            self.put(self._merge(built))
        if taken := row_index.due(self._mergeable()):
            self.put(self._merge(taken))

    def _mergeable(self) -> list[Level]:
        """Return the levels that this process may merge: all, or the newest ones that are in memory."""
        newest = [*takewhile(lambda level: not level.path, reversed(self.levels))][::-1]
        return self.levels if self._writes else newest

    def grow(self, last: int) -> None:
        """If `TAIL` rows up to number `last` are in no level, make a level of them. Start a merge if one is due."""
        if last - self.last >= row_index.TAIL:
            self.seal(last)
        if self.has_merged:
            self.adopt()
        self.start_merge()

    def _merge(self, levels: Sequence[Level]) -> list[Level]:
        """Return levels as one level: in a file if it is large enough and this process makes files, else in memory.

        After an error make no more files. The index is only a cache, so a merge that failed loses nothing.
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
    """Return whether a level is of rows of this table: the table has had as many, and it has what some of them post.

    A number is never given twice, so a row that posts something else shows that the file is of another store or an
    older copy. Most of the rows that are compared are among the last ones.
    """
    places = (len(level) - np.geomspace(1, max(1, len(level)), SAMPLES).astype(np.int64)).tolist()
    slots = {int(level.numbers[place]): place for place in places if place >= 0}
    with suppress(sqlite3.OperationalError):  # no table has had a row
        [most] = db.execute("SELECT max(seq) FROM sqlite_sequence WHERE name = ?", (table,)).fetchone()
        query = f'SELECT number, key, value FROM "{table}" WHERE number IN ({",".join("?" * len(slots))})'
        rows = [posted for row in db.execute(query, [*slots]) if (posted := _posted(*row))]
        return level.last <= (most or 0) and bool(rows) and level.has(rows, [slots[number] for number, _, _ in rows])
    return False


def level_of_rows(db: sqlite3.Connection, table: str, after: int, last: int) -> Level:
    """Build a level of the stored rows with numbers above `after`, up to number `last` or of `STEP` rows."""
    rows: list[Posted] = []
    count, number = 0, after
    query = f'SELECT number, key, value FROM "{table}" WHERE number > ? AND number <= ? ORDER BY number LIMIT {STEP}'
    for count, (number, key, value) in enumerate(db.execute(query, (after, last)), 1):  # noqa: B007
        if posted := _posted(number, key, value):
            rows.append(posted)
    return Level.of(after + 1, number if count == STEP else last, rows)


def _posted(number: int, key: str | bytes, value: bytes) -> Posted | None:
    """Return the postings of a row, without decoding a document. None without any, or if the row is damaged."""
    with suppress(*DAMAGE):  # `stats --check` reports a damaged row
        if isinstance(key, bytes):
            if value[4] > _PLAIN and (keys := visit_keys(load(key_in(key), value))):
                return number, array("Q", keys), None
        elif key.startswith("document/"):
            url, _, _, record, label, sample = msgpack.unpackb(value[4:], unicode_errors="surrogatepass")
            of_record, simhash = index_keys(record)
            found = array("Q", page_keys(url, label=bool(label), sample=bool(sample)))
            found.frombytes(of_record)
            return number, found, simhash
    return None
