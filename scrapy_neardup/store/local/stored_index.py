"""Keep the index of a file: its larger levels in files beside it, made anew from the rows where they are missing."""

from __future__ import annotations

import logging
import sqlite3
from array import array
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from itertools import takewhile
from pathlib import Path
from urllib.parse import quote

import msgpack
import numpy as np

from ...fingerprints.hashes import hash_text
from ...fingerprints.record import index_keys
from ...index import row_index
from ...index.level_files import LevelFiles, Samples, remove
from ...index.row_index import Level, RowIndex
from ..records import DAMAGE, load, page_keys, visit_keys
from .database import key_in

STEP = 1 << 16  # rows to build into a level at a time, which takes 100 MB of memory
LEAST = 1 << 13  # the minimum number of rows for a file; fewer rows are indexed anew each time, in 0.1 s
SAMPLES = 64  # rows whose keys a file has, by which a reader sees that it belongs to the store
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
        while self.last < last:
            self.levels.append(level_of_rows(self._db, self._table, self.last, last))
            self._merge_now(self.levels[-1:])
        self._merge_now(row_index.due(self._mergeable()))

    def _merge_now(self, levels: Sequence[Level]) -> None:
        try:
            self.put(self._merge(levels)()) if levels else None
        except (OSError, ValueError) as error:
            self._stop(error)

    def _stop(self, error: Exception) -> None:
        """Make no more files. The index is only a cache, so a failed merge loses nothing."""
        self._writes = False
        self._warn(f"stays in memory: {error}")

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
        self.start_merge(self._mergeable())

    def _merge(self, levels: Sequence[Level]) -> Callable[[], Level]:
        return partial(self._kept, levels, self._samples(levels))  # samples are read in this thread

    def _kept(self, levels: Sequence[Level], samples: Samples) -> Level:
        """Return levels as one level: in a file if it is large enough and this process makes files, else in memory."""
        if self._writes and sum(map(len, levels)) >= LEAST:
            return self._files.write(levels, samples)
        return levels[0] if len(levels) == 1 else Level.merged(levels)

    def adopt(self) -> None:
        """Wait for the running merge, if any, and put its result in place of the merged levels."""
        try:
            super().adopt()
        except Exception as error:
            self._stop(error)

    def _samples(self, levels: Sequence[Level]) -> Samples:
        """Return the hashes of some rows: in each level the last row, the second last, the fourth last, and so on."""
        numbers = [int(level.numbers[-1 << n]) for level in levels for n in range(len(level).bit_length())]
        return _hashes(self._db, self._table, numbers[-SAMPLES:])

    def _warn(self, why: str) -> None:
        logger.warning("Store %r: its index %s", self._path, why)


def fits(db: sqlite3.Connection, table: str, level: Level, samples: Samples) -> bool:
    """Return whether a level is of rows of this table: the table has had as many, and has some of the samples.

    A number is never given twice, so a row with another key shows that the file is of another store or an older copy.
    """
    with suppress(sqlite3.OperationalError):  # no table has had a row
        [most] = db.execute("SELECT max(seq) FROM sqlite_sequence WHERE name = ?", (table,)).fetchone()
        found = _hashes(db, table, list(samples))
        return level.last <= (most or 0) and bool(found) and found.items() <= samples.items()
    return False


def _hashes(db: sqlite3.Connection, table: str, numbers: Sequence[int]) -> Samples:
    """Return the hashes of the keys of those rows that exist, by number."""
    query = f'SELECT number, key FROM "{table}" WHERE number IN ({",".join("?" * len(numbers))})'
    return {number: hash_text(key_in(key)) for number, key in db.execute(query, numbers)}


def level_of_rows(db: sqlite3.Connection, table: str, after: int, last: int) -> Level:
    """Build a level of the stored rows with numbers above `after`, up to number `last` or of `STEP` rows."""
    postings, rows, number = _Postings(), 0, after
    query = f'SELECT number, key, value FROM "{table}" WHERE number > ? AND number <= ? ORDER BY number LIMIT {STEP}'
    for rows, (number, key, value) in enumerate(db.execute(query, (after, last)), 1):  # noqa: B007
        with suppress(*DAMAGE):  # `stats --check` reports a damaged row
            postings.add(number, key, value)
    return postings.level(after + 1, number if rows == STEP else last)


class _Postings:
    """Postings of rows in growing arrays. The keys in a record are copied as bytes, without decoding the document."""

    def __init__(self) -> None:
        self._numbers = array("q")
        self._keys, self._of = array("Q"), array("Q")
        self._near: dict[int, int] = {}
        """The SimHashes of documents by slot."""

    def add(self, number: int, key: str | bytes, value: bytes) -> None:
        """Add the postings of a row. Raise an exception of `DAMAGE` if it is damaged."""
        before = len(self._keys)
        if isinstance(key, bytes):
            if value[4] <= _PLAIN or not (keys := visit_keys(load(key_in(key), value))):
                return
            self._keys.extend(keys)
        elif key.startswith("document/"):
            url, _, _, record, label, sample = msgpack.unpackb(value[4:], unicode_errors="surrogatepass")
            self._keys.extend(page_keys(url, label=bool(label), sample=bool(sample)))
            self._add_record(record)
        else:
            return
        self._of.extend([len(self._numbers)] * (len(self._keys) - before))
        self._numbers.append(number)

    def _add_record(self, record: bytes) -> None:
        keys, simhash = index_keys(record)
        self._keys.frombytes(keys)
        if simhash is not None:
            self._near[len(self._numbers)] = simhash

    def level(self, first: int, last: int) -> Level:
        """Return the level of all added rows."""
        keys, of = np.frombuffer(self._keys, np.uint64), np.frombuffer(self._of, np.uint64)
        is_key = keys != 0
        return Level.made((first, last), self._numbers, keys[is_key], of[is_key], self._near)
