"""The file under the store: a log of rows in sqlitedict, written and read by one thread of its own.

sqlitedict waits for a lock of another process, and tells of an error only at the next call: both happen here, away
from the crawl. Each row is one transaction, so a process that is killed leaves whole rows or none.
"""

from __future__ import annotations

import logging
import sqlite3
from collections import deque
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

from sqlitedict import SqliteDict

from .base import StoreError

TABLE = "neardup"


class Log:
    """Rows of bytes by key, in the order in which they were last written."""

    def __init__(self, path: str) -> None:
        self.path = path
        check_file(path)
        # It logs each error with two stacks before it raises it; we say it in one line.
        logging.getLogger("sqlitedict").setLevel(logging.CRITICAL)
        try:
            self._db = SqliteDict(
                path, TABLE, autocommit=True, journal_mode="WAL", encode=bytes, decode=bytes, outer_stack=False
            )
        except (sqlite3.Error, RuntimeError) as error:
            raise StoreError(f"store {path!r} can't be opened: {error}; it was left as it is") from error
        # Not sqlitedict's, whose thread dies of a damaged page and leaves its caller waiting.
        self._reader = sqlite3.connect(path, check_same_thread=False, isolation_level=None)
        self._last_row = 0
        self._unwritten: deque[tuple[str, bytes | None]] = deque()
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="neardup-store")
        self._writing: Future[None] | None = None
        # sqlitedict switches it off, which would leave a power loss free to damage the file.
        self._db.conn.execute("PRAGMA synchronous=FULL")

    def append(self, key: str, value: bytes | None) -> None:
        """Put a row at the end, in place of an earlier one of that key; None deletes. Durable after `sync`."""
        self._unwritten.append((key, value))

    def sync(self, *, wait: bool) -> None:
        """Write what was appended. Raise StoreError for what failed by now; it is kept, and tried again next time."""
        failed = self._failure()
        if self._unwritten and (wait or self._writing is None):
            self._writing = self._thread.submit(self._drain)
        if wait and self._writing:
            failed = self._failure(wait=True)
        if failed:
            raise StoreError(f"store {self.path!r} can't be written: {failed}") from failed

    def _failure(self, *, wait: bool = False) -> BaseException | None:
        if self._writing is None or not (wait or self._writing.done()):
            return None
        writing, self._writing = self._writing, None
        return writing.exception()

    def _drain(self) -> None:
        while self._unwritten:
            key, value = self._unwritten[0]
            if value is not None:
                self._db[key] = value
            elif key in self._db:
                del self._db[key]
            self._db.conn.check_raise_error()
            self._unwritten.popleft()

    def news(self, *kinds: str) -> Future[list[tuple[str, bytes]]]:
        """Read the rows whose key begins so, of those written since the last call by any process; at first all."""
        return self._thread.submit(self._read, kinds)

    def _read(self, kinds: Sequence[str]) -> list[tuple[str, bytes]]:
        # One query: of two, the second could see rows that lie past what the first had missed.
        begins = " OR ".join("substr(key, 1, ?) = ?" for _ in kinds)
        query = f'SELECT rowid, key, value FROM "{TABLE}" WHERE rowid > ? AND ({begins}) ORDER BY rowid'
        lengths = (part for kind in kinds for part in (len(kind), kind))
        rows = self._reader.execute(query, (self._last_row, *lengths)).fetchall()
        if rows:
            self._last_row = rows[-1][0]
        return [(key, bytes(value)) for _, key, value in rows]

    def get(self, key: str) -> bytes | None:
        """Return a row as it is in the file now."""
        query = f'SELECT value FROM "{TABLE}" WHERE key = ?'
        row = self._thread.submit(lambda: self._reader.execute(query, (key,)).fetchone()).result()
        return bytes(row[0]) if row else None

    def close(self) -> None:
        """Let go of the file."""
        self._thread.submit(self._reader.close).result()
        self._thread.submit(self._db.close).result()
        self._thread.shutdown()


def check_file(path: str) -> None:
    """Raise StoreError where the file can't be a store: sqlitedict would hang, or make a table in it."""
    file = Path(path)
    if not file.parent.is_dir():
        raise StoreError(f"store {path!r}: there is no directory {str(file.parent)!r}")
    if not file.exists() or not file.stat().st_size:
        return
    try:
        connection = sqlite3.connect(f"{file.absolute().as_uri()}?mode=rw", uri=True)
        try:
            tables = [name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        finally:
            connection.close()
    except sqlite3.Error as error:
        raise StoreError(f"store {path!r} can't be read ({error}); it was left as it is") from error
    if tables and TABLE not in tables:
        raise StoreError(f"store {path!r} is an SQLite file but no store of scrapy-neardup; it was left as it is")
