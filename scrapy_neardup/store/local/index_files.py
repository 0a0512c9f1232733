"""Read, write and remove the files of an index.

The files are in a folder beside the store. The row `meta/index` of the store names the valid files, so a restored
backup of the store never reads newer files. A file is written before the row names it. It is removed after the row has
stopped naming it. A killed process may leave unnamed files, which are removed when the next file is made. Only the
process that holds the lock of the index makes files.
"""

from __future__ import annotations

import logging
import re
import sqlite3
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from urllib.parse import quote
from uuid import uuid4

from filelock import FileLock, Timeout

from ..damage import DAMAGE
from ..meta import INDEX
from ..records import load
from .rebuild import table_of_rows
from .row_index import due
from .table import Table

CHECKED = 1 << 28  # bytes; all checksums of an index up to this size are compared when it is opened, in 0.1 s
STEP = 1 << 18  # rows to build into a table at a time, which takes 500 MB of memory
LEAST = 1 << 15  # the minimum number of rows for a file; fewer rows are indexed anew each time, in 0.1 s

_NAME = re.compile(r"(\d{12})-(\d{12})-[\da-f]{8}\.idx")
logger = logging.getLogger(__name__)


def folder_of(path: str) -> Path:
    """Return the folder of the index of a store."""
    return Path(f"{path}.index")


def size_of(file: Path) -> int:
    """Return the size of a file in bytes; 0 if it can't be read."""
    try:
        return file.stat().st_size
    except OSError:
        return 0


class Files:
    """The index files of one namespace, each with one table."""

    def __init__(self, path: str, table: str, *, writes: bool = False) -> None:
        self.folder = folder_of(path) / quote(table, safe="")
        self._table = table
        self._writes = writes
        self._lock = FileLock(f"{self.folder}.lock", thread_local=False)

    # The lock

    @property
    def is_held(self) -> bool:
        """True if this process holds the lock of the index, and therefore makes its files."""
        return self._lock.is_locked

    def hold(self, rows: int) -> bool:
        """Take the lock if it is free and `rows` rows are enough for a file. Return whether this process holds it."""
        if self._writes and rows >= LEAST:
            with suppress(Timeout, OSError):  # another process has the lock, or the folder can't be written
                self._lock.acquire(timeout=0)
        return self.is_held

    def release(self) -> None:
        """Release the lock, so that another process can make files."""
        self._lock.release()

    # Valid files

    def names(self, db: sqlite3.Connection) -> list[str]:
        """Return the names of the valid files. If the row that names them is damaged, warn and return no names."""
        try:
            return self.listed(db)
        except DAMAGE as error:
            self.warn(f"is rebuilt: {error}")
            return []

    def listed(self, db: sqlite3.Connection) -> list[str]:
        """Return the names of the valid files. Raise an exception of `DAMAGE` if the row that names them is damaged."""
        row = db.execute(f'SELECT value FROM "{self._table}" WHERE key = ?', (INDEX,)).fetchone()
        names = [str(name) for name in load(INDEX, row[0])["files"]] if row else []
        after = 1
        for first, last in map(_range, names):
            if first != after or last < first:
                raise ValueError(f"the files of the index leave a gap: {names}")
            after = last + 1
        query = "SELECT seq FROM sqlite_sequence WHERE name = ?"
        if names and after - 1 > db.execute(query, (self._table,)).fetchone()[0]:
            raise ValueError("the index has rows that the store lacks")
        return names

    def read(self, db: sqlite3.Connection) -> list[Table]:
        """Return the tables in the valid files. If a file can't be read, rebuild its table."""
        while True:
            names = self.names(db)
            try:
                check = sum((self.folder / name).stat().st_size for name in names) <= CHECKED
                return [self.opened(name, check=check) for name in names]
            except (OSError, *DAMAGE) as error:
                if self.names(db) == names:  # otherwise another process has just replaced the files
                    self.warn(f"is rebuilt: {error}")
                    return [table for name in names for table in self._opened_or_made(db, name)]

    def opened(self, name: str, *, check: bool) -> Table:
        """Return the table in the file `name`. With `check`, compare its checksums.

        Raise ValueError or OSError if the file can't be read.
        """
        table = Table.read(self.folder / name, check=check)
        if (table.first, table.last) != _range(name):
            raise ValueError(f"{name} belongs to another index")
        return table

    def _opened_or_made(self, db: sqlite3.Connection, name: str) -> list[Table]:
        try:
            return [self.opened(name, check=True)]
        except (OSError, *DAMAGE):
            return self.made(db, *_range(name))

    def warn(self, why: str) -> None:
        """Log a warning about the index. `why` continues the sentence "its index …"."""
        logger.warning("Store %r: its index %s", str(self.folder.parent)[:-6], why)

    # Making files

    def made(self, db: sqlite3.Connection, first: int, last: int) -> list[Table]:
        """Build tables from the stored rows with numbers `first` to `last`. Some of these rows may be deleted."""
        tables: list[Table] = []
        for start in range(first, last + 1, STEP):
            tables.append(self._stored(table_of_rows(db, self._table, start, min(start + STEP - 1, last))))
            if several := due(tables):
                tables[-len(several) :] = [self.merged(several)]
        return tables

    def merged(self, tables: Sequence[Table]) -> Table:
        """Merge tables with adjacent ranges of rows into one table."""
        return self._stored(Table.merged(tables))

    def _stored(self, table: Table) -> Table:
        """Write a table to a file if the table is large enough and this process makes files.

        Return the table in the file, or the given table if it was not written.
        """
        if len(table) < LEAST or not self.is_held:
            return table
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            return table.write(self.folder / f"{table.first:012d}-{table.last:012d}-{uuid4().hex[:8]}.idx")
        except (OSError, *DAMAGE) as error:
            self.warn(f"stays in memory: {error}")
            return table

    def tidy(self, names: Iterable[str]) -> None:
        """Remove all index files except those with these names."""
        kept = set(names)
        for file in self.folder.iterdir() if self.folder.is_dir() else ():
            if file.name not in kept:
                with suppress(OSError):  # outside POSIX a mapped file can't be removed
                    file.unlink()


def _range(name: str) -> tuple[int, int]:
    """Return the first and last row number in the name of a file. Raise ValueError for an invalid name."""
    match = _NAME.fullmatch(name)
    if not match:
        raise ValueError(f"{name!r:.80} is not a file of an index")
    return int(match[1]), int(match[2])
