"""Write rows through the thread of sqlitedict, and work around its pitfalls.

- A failed `commit()` of sqlitedict kills its thread. After that, `commit()`, `close()` and each access wait for ever.
  So COMMIT is sent as a statement, which only raises if it fails. All waits here check that the thread is alive.
- sqlitedict raises the error of a statement only at the next statement, and still executes the statements queued behind
  the failed one. So a thread of this module waits for each statement before it sends the next, and sends ROLLBACK after
  an error. The crawl does not wait.
- sqlitedict sets `synchronous=OFF`, and its `timeout` is not the lock timeout. Both are set here on its connection.
- sqlitedict logs each error several times at level ERROR. Here the log is off, and the caller gets the error once.
"""

from __future__ import annotations

import logging
import queue
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

from sqlitedict import SqliteDict

from ..interface import StoreError
from ..records import Record, dump
from .database import LOCK_SECONDS, file_id, store_errors, stored_key

AT_ONCE = 400  # rows in a statement, since SQLite accepts at least 999 parameters
PATIENCE = 1.0  # seconds between two checks that the thread is alive


class Batch:
    """The changes of one transaction, as records by key."""

    def __init__(self, replaced: Mapping[str, Record] | None = None) -> None:
        self.replaced: dict[str, Record] = dict(replaced or {})
        self.updated: dict[str, Record] = {}
        """Records of rows that keep their number, so that other processes do not read them as new rows."""
        self.deleted: set[str] = set()

    def __len__(self) -> int:
        return len(self.replaced) + len(self.updated) + len(self.deleted)

    def put(self, key: str, record: Record, *, updates: bool) -> None:
        """Add a row to write. With `updates`, an existing row keeps its number."""
        self.deleted.discard(key)
        (self.updated if updates and key not in self.replaced else self.replaced)[key] = record

    def delete(self, key: str) -> None:
        """Add a row to delete."""
        self.replaced.pop(key, None)
        self.updated.pop(key, None)
        self.deleted.add(key)

    def has(self, key: str) -> bool:
        """Return whether the batch writes or deletes a row."""
        return key in self.replaced or key in self.updated or key in self.deleted

    def followed_by(self, later: Batch) -> Batch:
        """Add the changes of a later batch to this batch, and return this batch."""
        for key in later.deleted:
            self.delete(key)
        for rows, updates in ((later.replaced, False), (later.updated, True)):
            for key, record in rows.items():
                self.put(key, record, updates=updates)
        return self

    def records(self) -> dict[str, Record | None]:
        """Return all changes of the batch as records by key. None stands for a deleted row."""
        return {**dict.fromkeys(self.deleted), **self.updated, **self.replaced}


class Writer:
    """Writes batches one after another. Calls `written(batch)` once a batch is on disk."""

    def __init__(self, path: str, table: str, written: Callable[[Batch], object] = bool) -> None:
        self.batch = Batch()
        """The batch to write next."""
        self._path = path
        self._table = table
        self._written = written
        self._writing: tuple[Future[None], Batch] | None = None
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="neardup-store")
        with store_errors(path, "opened"):
            self._dict = SqliteDict(
                path,
                tablename=table,
                autocommit=False,
                journal_mode="WAL",
                outer_stack=False,
                encode=bytes,
                decode=bytes,
            )
        self._file = file_id(path)
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
        failed = self._settle(wait=wait)
        if wait and not failed:
            self._check_file()
        while self.batch and not (self._writing or failed):
            batch, self.batch = self.batch, Batch()
            self._writing = self.write(batch), batch
            failed = self._settle(wait=wait)
        if failed:
            raise failed

    def replaces(self, key: str, value: bytes) -> bool:
        """Return whether a row with this value is to be replaced, so that it gets another number."""
        record = self._writing[1].replaced.get(key) if self._writing else None
        return key in self.batch.replaced or (record is not None and dump(key, record) != value)

    def _settle(self, *, wait: bool) -> BaseException | None:
        """Handle the result of the running write if the write has ended. Return its error, if any.

        With `wait`, wait for the end of the write.
        """
        if not self._writing or not (wait or self._writing[0].done()):
            return None
        (future, batch), self._writing = self._writing, None
        if failed := future.exception():
            self.batch = batch.followed_by(self.batch)
            return failed
        self._written(batch)
        return None

    def write(self, batch: Batch) -> Future[None]:
        """Start to write a batch. If the write fails, nothing is written, and the future raises StoreError."""
        return self._thread.submit(self._write, batch)

    def _write(self, batch: Batch) -> None:
        with store_errors(self._path, "written"):
            self._do("BEGIN IMMEDIATE")
            try:
                for statement, arguments in self._statements(batch):
                    self._do(statement, arguments)
                self._do("COMMIT")
            except BaseException:
                self._do("ROLLBACK", can_fail=True)
                raise
        self._check_file()

    def _check_file(self) -> None:
        """Raise StoreError if the file was deleted or replaced, since what is written is in the old file then."""
        if file_id(self._path) != self._file:
            raise StoreError(
                f"store {self._path!r} can't be written: its file was deleted or replaced while it was open; put it"
                " back, and start again"
            )

    def _statements(self, batch: Batch) -> list[tuple[str, Sequence[Any]]]:
        keep = " ON CONFLICT (key) DO UPDATE SET value = excluded.value"
        found: list[tuple[str, Sequence[Any]]] = []
        for some in _sliced(sorted(batch.deleted)):
            found.append((f'DELETE FROM "{self._table}" WHERE key IN ({_marks("?", some)})', [*map(stored_key, some)]))
        for verb, rows, end in (("INSERT", batch.updated, keep), ("REPLACE", batch.replaced, "")):
            for some in _sliced(list(rows)):
                values = [value for key in some for value in (stored_key(key), dump(key, rows[key]))]
                begin = f'{verb} INTO "{self._table}" (key, value) VALUES'
                found.append((f"{begin} {_marks('(?,?)', some)}{end}", values))
        return found

    def _do(self, statement: str, arguments: Sequence[Any] = (), *, can_fail: bool = False) -> None:
        """Execute a statement, and wait until it ends. If it fails, raise the error unless `can_fail`."""
        done: queue.Queue[Any] = queue.Queue()
        try:
            self._dict.conn.execute(statement, arguments, done)
            while True:
                try:
                    done.get(timeout=PATIENCE)
                    break
                except queue.Empty:
                    if not self._dict.conn.is_alive():
                        raise StoreError(f"store {self._path!r} can't be written: sqlitedict's thread died") from None
            self._dict.conn.check_raise_error()
        except Exception:
            if not can_fail:
                raise

    def close(self) -> None:
        """Wait for the running write, and close the file."""
        self._thread.shutdown()
        connection = self._dict.conn
        self._dict.close(do_log=False, force=True)  # without `force`, this waits even for a dead thread
        connection.join(LOCK_SECONDS)


def _sliced(keys: list[str]) -> list[list[str]]:
    return [keys[at : at + AT_ONCE] for at in range(0, len(keys), AT_ONCE)]


def _marks(mark: str, some: Sequence[object]) -> str:
    return ",".join([mark] * len(some))
