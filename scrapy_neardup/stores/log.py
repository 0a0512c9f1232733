"""The file under the store: a log of rows in one SQLite table, written and read by one thread of its own.

Waiting for the disk, or for the lock of another process, happens there, away from the crawl. Rows that are appended
together are one transaction, so a process that is killed leaves all of them or none.

Power loss: SQLite's write-ahead log with `synchronous=FULL` has the disk confirm each transaction before it counts as
done. So what was appended outlives a power loss once `sync(wait=True)` has returned, and of a transaction that was cut
off nothing is left. That goes as far as the disk keeps what it confirmed; on network file systems nothing is promised.
"""

from __future__ import annotations

import sqlite3
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

from .database import TABLE, open_database, told
from .writing import Writing

Rows = list[tuple[str, bytes]]
_Result = TypeVar("_Result")


class Log:
    """Rows of bytes by key, in the order in which they were last written.

    Opened without `writes` it leaves the file as it is, which may then lie where it can't be written.
    """

    def __init__(self, path: str, *, writes: bool = True) -> None:
        self.path = path
        self._last_row = 0
        self._unwritten: deque[list[tuple[str, bytes | None]]] = deque()
        self._writing = Writing()
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="neardup-store")
        try:
            self._db = self._thread.submit(open_database, path, writes=writes).result()
        except BaseException:
            self._thread.shutdown()
            raise

    def append(self, key: str, value: bytes | None) -> None:
        """Put a row at the end, in place of an earlier one of that key; None deletes. Durable after `sync`."""
        self.append_all([(key, value)])

    def append_all(self, rows: Iterable[tuple[str, bytes | None]]) -> None:
        """Put several rows at the end that are written together or not at all."""
        self._unwritten.append(list(rows))

    def sync(self, *, wait: bool) -> None:
        """Write what was appended. Raise StoreError for what failed by now; it is kept, and tried again next time."""
        failed = self._writing.failure()
        if self._unwritten and (wait or not self._writing.is_on):
            self._writing.begin(self._thread.submit(self._drain))
        if wait and self._writing.is_on:
            failed = self._writing.failure(wait=True)
        if failed:
            raise failed

    def _drain(self) -> None:
        while self._unwritten:
            with told(self.path, "written"), self._db:
                self._db.execute("BEGIN IMMEDIATE")
                for key, value in self._unwritten[0]:
                    if value is None:
                        self._db.execute(f"DELETE FROM {TABLE} WHERE key = ?", (key,))
                    else:
                        self._db.execute(f"REPLACE INTO {TABLE} (key, value) VALUES (?, ?)", (key, value))
            self._unwritten.popleft()

    def news(self, *kinds: str) -> Future[Rows]:
        """Read the rows whose key begins so, of those written since the last call by any process; at first all.

        The result raises StoreError where they can't be read.
        """
        return self.made_of_news(list, *kinds)

    def made_of_news(self, make: Callable[[Rows], _Result], *kinds: str) -> Future[_Result]:
        """Read the same, and have something made of it in the log's thread."""
        return self._thread.submit(lambda: make(self._read(kinds)))

    def _read(self, kinds: Sequence[str]) -> Rows:
        # One query: of two, the second could see rows that lie past what the first had missed.
        begins = " OR ".join("substr(key, 1, ?) = ?" for _ in kinds)
        query = f"SELECT rowid, key, value FROM {TABLE} WHERE rowid > ? AND ({begins}) ORDER BY rowid"
        lengths = (part for kind in kinds for part in (len(kind), kind))
        with told(self.path, "read"):
            rows = self._db.execute(query, (self._last_row, *lengths)).fetchall()
            read = [(key, _checked(key, value)) for _, key, value in rows]
        if rows:
            self._last_row = rows[-1][0]
        return read

    def get(self, key: str) -> bytes | None:
        """Return a row as it is in the file now. Raise StoreError where it can't be read."""

        def read() -> bytes | None:
            with told(self.path, "read"):
                row = self._db.execute(f"SELECT value FROM {TABLE} WHERE key = ?", (key,)).fetchone()
                return _checked(key, row[0]) if row else None

        return self._asked(read)

    def pragma(self, name: str) -> object:
        """Return one of SQLite's settings, as it is in force."""
        return self._asked(lambda: self._db.execute(f"PRAGMA {name}").fetchone()[0])

    def _asked(self, question: Callable[[], _Result]) -> _Result:
        return self._thread.submit(question).result()

    def close(self) -> None:
        """Let go of the file."""
        self._thread.submit(self._db.close).result()
        self._thread.shutdown()


def _checked(key: object, value: object) -> bytes:
    if not isinstance(key, str) or not isinstance(value, bytes):
        raise sqlite3.DatabaseError(f"row {key!r} is damaged")
    return value
