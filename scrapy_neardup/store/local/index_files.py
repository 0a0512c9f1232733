"""The files of an index: which of them count, and how they are made.

They lie in a folder beside the store. A row of the store, `meta/index`, names those that count: so an older copy of the
store never reads newer files. A file is written before the row names it, and removed once the row names it no more. A
kill may leave files that the row does not name; the process that makes the next file removes them. One process at a
time makes files: the one that has the lock.
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

CHECKED = 1 << 28  # bytes of an index of which all is read when it is opened, to compare its checksums: 0.1 s
STEP = 1 << 18  # rows of which a table is made at a time: 500 MB
LEAST = 1 << 15  # rows of a table that is worth a file: fewer are read again in 0.1 s

_NAME = re.compile(r"(\d{12})-(\d{12})-[\da-f]{8}\.idx")
logger = logging.getLogger(__name__)


def folder_of(path: str) -> Path:
    """Return the folder of a store's index."""
    return Path(f"{path}.index")


def size_of(file: Path) -> int:
    """Return the bytes of a file; 0 where it can't be looked at."""
    try:
        return file.stat().st_size
    except OSError:
        return 0


class Files:
    """Reads and makes the tables of one namespace."""

    def __init__(self, path: str, table: str, *, writes: bool = False) -> None:
        self.folder = folder_of(path) / quote(table, safe="")
        self._table = table
        self._writes = writes
        self._lock = FileLock(f"{self.folder}.lock", thread_local=False)

    # Who makes files

    @property
    def is_held(self) -> bool:
        """Whether this process is the one that makes files."""
        return self._lock.is_locked

    def hold(self, rows: int) -> bool:
        """Take the lock if so many rows are worth a file; return whether this process has it."""
        if self._writes and rows >= LEAST:
            with suppress(Timeout, OSError):  # another process makes them, or nobody can
                self._lock.acquire(timeout=0)
        return self.is_held

    def release(self) -> None:
        """Release the lock: other processes may make files."""
        self._lock.release()

    # Which files count

    def names(self, db: sqlite3.Connection) -> list[str]:
        """Return the names of the files that count, as the store tells now."""
        try:
            return self.listed(db)
        except DAMAGE as error:
            self.warn(f"is made anew: {error}")
            return []

    def listed(self, db: sqlite3.Connection) -> list[str]:
        """Return the names of the files that count. Raise ValueError where the row that tells is damaged."""
        row = db.execute(f'SELECT value FROM "{self._table}" WHERE key = ?', (INDEX,)).fetchone()
        names = [str(name) for name in load(INDEX, row[0])["files"]] if row else []
        after = 1
        for first, last in map(_range, names):
            if first != after or last < first:
                raise ValueError(f"the files of the index leave a gap: {names}")
            after = last + 1
        query = "SELECT seq FROM sqlite_sequence WHERE name = ?"
        if names and after - 1 > db.execute(query, (self._table,)).fetchone()[0]:
            raise ValueError("the index has rows that the store never had")
        return names

    def read(self, db: sqlite3.Connection) -> list[Table]:
        """Return the tables that count; those that can't be read are made anew."""
        while True:
            names = self.names(db)
            try:
                check = sum((self.folder / name).stat().st_size for name in names) <= CHECKED
                return [self.opened(name, check=check) for name in names]
            except (OSError, *DAMAGE) as error:
                if self.names(db) == names:  # else another process has just put them into others
                    self.warn(f"is made anew: {error}")
                    return [table for name in names for table in self._opened_or_made(db, name)]

    def opened(self, name: str, *, check: bool) -> Table:
        """Return the table in a file. Raise ValueError, OSError where it can't be read; `check` reads all of it."""
        table = Table.read(self.folder / name, check=check)
        if (table.first, table.last) != _range(name):
            raise ValueError(f"{name} is another file of an index")
        return table

    def _opened_or_made(self, db: sqlite3.Connection, name: str) -> list[Table]:
        try:
            return [self.opened(name, check=True)]
        except (OSError, *DAMAGE):
            return self.made(db, *_range(name))

    def warn(self, why: str) -> None:
        """Warn of what becomes of the index."""
        logger.warning("Store %r: its index %s", str(self.folder.parent)[:-6], why)

    # How they are made

    def made(self, db: sqlite3.Connection, first: int, last: int) -> list[Table]:
        """Make tables of a range of rows; some of them may be gone."""
        tables: list[Table] = []
        for start in range(first, last + 1, STEP):
            tables.append(self._stored(table_of_rows(db, self._table, start, min(start + STEP - 1, last))))
            if several := due(tables):
                tables[-len(several) :] = [self.merged(several)]
        return tables

    def merged(self, tables: Sequence[Table]) -> Table:
        """Make one table of several that follow one another."""
        return self._stored(Table.merged(tables))

    def _stored(self, table: Table) -> Table:
        """Return a table in a file, where it is worth one and this process makes them; else as it is."""
        if len(table) < LEAST or not self.is_held:
            return table
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            return table.write(self.folder / f"{table.first:012d}-{table.last:012d}-{uuid4().hex[:8]}.idx")
        except (OSError, *DAMAGE) as error:
            self.warn(f"stays in memory: {error}")
            return table

    def tidy(self, names: Iterable[str]) -> None:
        """Remove the files that are not among those named."""
        kept = set(names)
        for file in self.folder.iterdir() if self.folder.is_dir() else ():
            if file.name not in kept:
                with suppress(OSError):  # elsewhere than on POSIX one that is mapped can't be removed
                    file.unlink()


def _range(name: str) -> tuple[int, int]:
    """Return the first and the last row that a file covers. Raise ValueError for a name that none has."""
    match = _NAME.fullmatch(name)
    if not match:
        raise ValueError(f"{name!r:.80} is no file of an index")
    return int(match[1]), int(match[2])
