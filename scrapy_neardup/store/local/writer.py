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
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from typing import Any

from sqlitedict import SqliteDict

from ..interface import StoreError
from ..records import Record, dump
from .database import LOCK_SECONDS, store_errors, stored_key

AT_ONCE = 400  # rows in a statement, since SQLite accepts at least 999 parameters
END = (1 << 63) - 1  # above the number of any row
PATIENCE = 1.0  # seconds between two checks that the thread is alive
_ROWS = 'INTO "{}" (key, value) VALUES '
_VERBS = {
    "delete": ('DELETE FROM "{}" WHERE key IN (', "?", ")"),
    "replace": (f"REPLACE {_ROWS}", "(?,?)", ""),
    "update": (f"INSERT {_ROWS}", "(?,?)", " ON CONFLICT (key) DO UPDATE SET value = excluded.value"),
}


class Batch(dict[str, tuple[str, Record | None]]):
    """The changes of one transaction: by key a verb of `_VERBS`, and the record or None."""

    def put(self, key: str, record: Record | None, verb: str) -> None:
        """Add a row. With the verb "update" an existing row keeps its number, so that others do not read it as new."""
        is_new = verb == "update" and self.get(key, ("", None))[0] == "replace"
        self[key] = "replace" if is_new else verb, record

    def keys_of(self, verb: str) -> list[str]:
        return [key for key, (wanted, _) in self.items() if wanted == verb]

    def statements(self, table: str) -> list[tuple[str, list[Any]]]:
        """Return the statements that write the batch, with their arguments."""
        found: list[tuple[str, list[Any]]] = []
        for verb, (begin, mark, end) in _VERBS.items():
            keys = self.keys_of(verb)
            for at in range(0, len(keys), AT_ONCE):
                arguments: list[Any] = []
                for key in (some := keys[at : at + AT_ONCE]):
                    record = self[key][1]
                    arguments += (stored_key(key),) if record is None else (stored_key(key), dump(key, record))
                found.append((f"{begin.format(table)}{','.join([mark] * len(some))}{end}", arguments))
        return found


class Writer:
    """Writes batches one after another. Calls `written(batch, first)` once a batch is on disk.

    Its replaced rows have the numbers from `first` on, in their order.
    """

    def __init__(self, path: str, table: str, written: Callable[[Batch, int], object]) -> None:
        self.batch = Batch()
        """The batch to write next."""
        self.first = END
        """The number of the first row that the running write replaces, once that is known."""
        self._path = path
        self._table = table
        self._written = written
        self._writing: tuple[Future[None], Batch] | None = None
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

    def flush(self, *, wait: bool) -> None:
        """Start to write the buffered rows. With `wait`, return once all are written.

        Raise StoreError if a write failed. The rows of that write stay in the buffer.
        """
        self._settle(wait=wait)
        if wait:
            self._check_file()
        while self.batch and not self._writing:
            batch, self.batch = self.batch, Batch()
            self._writing = self.write(batch), batch
            self._settle(wait=wait)

    def settle(self) -> None:
        """Handle the result of the running write if it has ended well."""
        if self._writing and self._writing[0].done() and not self._writing[0].exception():
            self._settle(wait=False)

    def _settle(self, *, wait: bool) -> None:
        """Handle the result of the running write if the write has ended. With `wait`, wait for its end.

        Raise its error, if any.
        """
        if self._writing and (wait or self._writing[0].done()):
            (future, batch), self._writing = self._writing, None
            failed = future.exception()
            first, self.first = self.first, END
            if failed:
                for key, (verb, record) in self.batch.items():
                    batch.put(key, record, verb)
                self.batch = batch
                raise failed
            self._written(batch, first)

    def write(self, batch: Batch) -> Future[None]:
        """Start to write a batch. If the write fails, nothing is written, and the future raises StoreError."""
        return self._thread.submit(self._write, batch)

    def _write(self, batch: Batch) -> None:
        with store_errors(self._path, "written"):
            self._do("BEGIN IMMEDIATE")
            try:
                first = self._do("SELECT max(seq) + 1 FROM sqlite_sequence WHERE name = ?", [self._table])[0] or 1
                for statement, arguments in batch.statements(self._table):
                    self._do(statement, arguments)
                self.first = first  # before anyone can read the rows
                self._do("COMMIT")
            except BaseException:
                self.first = END
                with suppress(Exception):
                    self._do("ROLLBACK")
                raise
        self._check_file()

    def _check_file(self) -> None:
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
