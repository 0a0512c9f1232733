"""Write rows through the thread of sqlitedict, and work around its pitfalls.

- A failed `commit()` of sqlitedict kills its thread, and who waits for a dead thread waits for ever. So COMMIT is sent
  as a statement, which only raises if it fails, and all waits check that the thread is alive.
- sqlitedict raises the error of a statement only at the next statement, and still executes the statements queued behind
  the failed one. So a thread of this module waits for each statement before it sends the next. The crawl does not wait.
- sqlitedict sets `synchronous=OFF`, and its `timeout` is not the lock timeout. Both are set here on its connection.
- sqlitedict logs each error several times at level ERROR. Here the log is off, and the caller gets the error once.
"""

from __future__ import annotations

import logging
import os
import queue
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from typing import Any, TypeAlias

from sqlitedict import SqliteDict

from ..interface import StoreError
from ..records import Record, dump
from .database import LOCK_SECONDS, store_errors, stored_key

AT_ONCE = 400  # rows in a statement, since SQLite accepts at least 999 parameters
PATIENCE = 1.0  # seconds between two checks that the thread is alive
Changes: TypeAlias = Mapping[str, tuple[Record | None, bool]]
"""By key, the record to write, None to delete the row; and whether the row gets a new number."""


class Writer:
    """Writes changes one after another, each in one transaction, in a thread."""

    def __init__(self, path: str, table: str) -> None:
        self._path = path
        self._table = table
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="neardup-store")
        options = {"tablename": table, "journal_mode": "WAL", "encode": bytes, "decode": bytes}
        with store_errors(path, "opened"):
            self._dict = SqliteDict(path, autocommit=False, outer_stack=False, **options)
        self._file = os.stat(path)
        self._dict.conn.log = logging.Logger("sqlitedict", logging.CRITICAL + 1)
        try:
            with store_errors(path, "opened"):
                self._do(f"PRAGMA busy_timeout={LOCK_SECONDS * 1000}")
                self._do("PRAGMA synchronous=FULL")
        except BaseException:
            self.close()
            raise

    def write(self, changes: Changes) -> Future[int]:
        """Start to write changes. The future has the first of the new numbers, which are without gaps.

        If the write fails, nothing is written, and the future raises StoreError.
        """
        return self._thread.submit(self._write, changes)

    def _write(self, changes: Changes) -> int:
        with store_errors(self._path, "written"):
            self._do("BEGIN IMMEDIATE")
            try:
                [first] = self._do("SELECT max(seq) + 1 FROM sqlite_sequence WHERE name = ?", [self._table])
                for statement, arguments in self._statements(changes):
                    self._do(statement, arguments)
                self._do("COMMIT")
            except BaseException:
                with suppress(Exception):
                    self._do("ROLLBACK")
                raise
        self.check_file()
        return first or 1

    def _statements(self, changes: Changes) -> Iterator[tuple[str, list[Any]]]:
        deleted = [[stored_key(key)] for key, (record, _) in changes.items() if record is None]
        yield from _for_some(f'DELETE FROM "{self._table}" WHERE key IN (', deleted, ")", "?")
        into = f'INTO "{self._table}" (key, value) VALUES '
        rows = {key: [stored_key(key), dump(key, record)] for key, (record, _) in changes.items() if record is not None}
        yield from _for_some(f"REPLACE {into}", [row for key, row in rows.items() if changes[key][1]])
        update = " ON CONFLICT (key) DO UPDATE SET value = excluded.value"
        yield from _for_some(f"INSERT {into}", [row for key, row in rows.items() if not changes[key][1]], update)

    def check_file(self) -> None:
        """Raise StoreError if the file was deleted or replaced, since what is written is in the old file then."""
        with suppress(OSError):
            if os.path.samestat(os.stat(self._path), self._file):
                return
        why = "its file was deleted or replaced while it was open; put it back, and start again"
        raise StoreError(f"store {self._path!r} can't be written: {why}")

    def _do(self, statement: str, arguments: Sequence[Any] = ()) -> Any:
        """Execute a statement, wait until it ends, and return its first row, if any. Raise its error, if any."""
        done: queue.Queue[Any] = queue.Queue()
        self._dict.conn.execute(statement, arguments, done)
        while True:
            with suppress(queue.Empty):
                row = done.get(timeout=PATIENCE)
                self._dict.conn.check_raise_error()
                return row
            if not self._dict.conn.is_alive():
                raise StoreError(f"store {self._path!r} can't be written: sqlitedict's thread died")

    def close(self) -> None:
        """Wait for the running write, and close the file."""
        self._thread.shutdown()
        connection = self._dict.conn
        self._dict.close(do_log=False, force=True)  # without `force`, this waits even for a dead thread
        connection.join(LOCK_SECONDS)


def _for_some(begin: str, rows: list[list[Any]], end: str = "", mark: str = "(?,?)") -> Iterator[tuple[str, list[Any]]]:
    """Yield statements for `AT_ONCE` rows at a time, with their arguments."""
    for at in range(0, len(rows), AT_ONCE):
        some = rows[at : at + AT_ONCE]
        yield f"{begin}{','.join([mark] * len(some))}{end}", [value for row in some for value in row]
