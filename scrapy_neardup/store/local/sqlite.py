"""The back end in an SQLite file.

Rows are in one table, which is a `SqliteDict`. The index is only a cache. Rows stay in RAM until they are written. All
other rows are read from the table, over a connection that writes no rows. New rows of other processes are recognised by
their numbers, which are higher than all row numbers known so far.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing, suppress
from pathlib import Path
from threading import get_ident
from typing import Any, ClassVar
from weakref import WeakSet

from ...index.row_index import Place, Places
from ..interface import Entry, Found, Question, Row, StoreError
from ..records import COUNTED, DOCUMENT, VISIT, dump, load, postings
from .database import NO_VISIT, RunLock, key_in, open_database, shrink, store_errors, stored_key, table_of
from .memory import MemoryBackend
from .stored_index import StoredIndex, folder_of
from .writer import END, Batch, Writer

AT_ONCE = 500  # rows to read at a time, which takes some milliseconds


class SqliteBackend(MemoryBackend):
    """A back end in a file, for several processes on one machine. Raises StoreError if the file can't be opened."""

    index: StoredIndex
    _meeting: ClassVar[WeakSet[SqliteBackend]] = WeakSet()
    """The back ends of this process that find each other's pending documents. Crawlers have no place to share."""

    def __init__(self, path: str, *, namespace: str = "", writes: bool = True) -> None:
        super().__init__()
        self.name = os.path.realpath(path)  # follow links, so that all processes use the same lock files
        self._table = table_of(namespace)
        self._place = self.name, self._table, get_ident()
        self._db = open_database(self.name, self._table, writes=writes)
        self._version = self._known = 0
        self._own: deque[tuple[int, int]] = deque()
        """The first and last numbers of rows that this process wrote, above `_known`."""
        self._locks: dict[str, RunLock] = {}
        self.index = StoredIndex(self._db, self.name, self._table, writes=writes)
        self._writer: Writer | None = None
        try:
            self._writer = Writer(self.name, self._table, self._note_written) if writes else None
            with store_errors(self.name, "read"):
                [last] = self._db.execute(f'SELECT max(number) FROM "{self._table}"').fetchone()
                self.index.load(last or 0)
                self._known = self.index.last
                while self._read_news()[1]:
                    pass
        except BaseException:
            self.abandon()
            raise

    # Rows

    def get(self, keys: Iterable[str]) -> list[Row]:
        wanted = list(keys)
        rows = [Row(key, record) for key in wanted if (record := self._rows.get(key)) is not None]
        stored = [stored_key(key) for key in wanted if key not in self._rows]
        return rows + [Row(key_in(key), value) for key, value in self._select("key, value", "key", stored)]

    def _select(self, columns: str, by: str, values: Sequence[object]) -> list[Any]:
        """Return `columns` of the rows whose column `by` has one of `values`."""
        found: list[Any] = []
        with store_errors(self.name, "read"):
            for at in range(0, len(values), AT_ONCE):
                some = values[at : at + AT_ONCE]
                query = f'SELECT {columns} FROM "{self._table}" WHERE {by} IN ({",".join("?" * len(some))})'
                found += self._db.execute(query, some)
        return found

    def _at(self, places: Iterable[Place]) -> dict[Place, Row]:
        some = list(places)
        found: dict[Place, Row] = {row.key: row for row in self.get([each for each in some if isinstance(each, str)])}
        numbers = [each for each in some if isinstance(each, int)]
        for number, stored, value in self._select("number, key, value", "number", numbers):
            if (record := self._rows.get(key := key_in(stored), value)) is not None:
                found[number] = Row(key, record)
        return found

    def find(
        self, questions: Sequence[Question], entries: Sequence[Entry | None] = (), ahead: Sequence[str] = ()
    ) -> list[Found]:
        found = super().find(questions, entries, ahead)
        for other in self._others():
            newest = [*map(other.index.newest, questions)]  # of all, before one of them makes it write
            for question, places, answer in zip(questions, newest, found, strict=True):
                other.add_unread(question, places, answer)
        return found

    def _others(self) -> list[SqliteBackend]:
        """Return the other back ends that this one meets."""
        some = self._meeting if self in self._meeting else ()
        return [each for each in some if each is not self and each._place == self._place]

    def add_unread(self, question: Question, newest: Places, found: Found) -> None:
        """Add this back end's documents that another one may not have read yet: pending and new ones."""
        keys, near = newest
        for key, places in keys.items():
            found.rows[key] = self._with_unread(found.rows.get(key, []), places[-question.keys[key] :])
        found.near = self._with_unread(found.near, near)

    def _with_unread(self, rows: list[Row], places: Iterable[Place]) -> list[Row]:
        known = {row.key for row in rows}
        keys = [each for each in places if isinstance(each, str) and each.startswith(DOCUMENT) and each not in known]
        unread = self.get(keys)
        # A new document counts as pending until it is in the file, so that no link to it gets there first.
        waits = all(row.key in self._pending for row in unread) or self._can_write()
        for row in unread:
            # Encoded, since each store counts the copies of a document by itself.
            value = row.value if isinstance(row.value, bytes) else dump(row.key, row.value)
            rows = [*rows, Row(row.key, value, waits or row.key in self._pending)]
        return rows

    def _can_write(self) -> bool:
        """Start to write all buffered rows. Return False if the last write failed."""
        with suppress(StoreError):  # the rows stay in the buffer, and a later flush raises it again
            self.flush(wait=False)
            return True
        return False

    def scan(self, kind: str, run: str = "") -> Iterator[Row]:
        prefix = f"{kind}/{run}/" if run else f"{kind}/"
        last, end = (b"", NO_VISIT) if kind == VISIT else (prefix, f"{prefix[:-1]}0")  # "0" follows "/"
        query = f'SELECT key, value FROM "{self._table}" WHERE key > ? AND key < ? ORDER BY key LIMIT {AT_ONCE}'
        unwritten = {key for key in self._rows if key.startswith(prefix)}
        while True:
            with store_errors(self.name, "read"):
                rows = self._db.execute(query, (last, end)).fetchall()
            for stored, value in rows:
                unwritten.discard(key := key_in(stored))
                if (record := self._rows.get(key, value)) is not None:
                    yield Row(key, record)
            if len(rows) < AT_ONCE:
                break
            last = rows[-1][0]
        yield from self.get(sorted(unwritten))

    def size(self, kind: str) -> int:
        query = f'SELECT count(*) FROM "{self._table}" WHERE key >= ? AND key < ?'
        with store_errors(self.name, "read"):
            self._db.execute("BEGIN")  # both reads see the same rows
            try:
                [stored] = self._db.execute(query, [*map(stored_key, COUNTED[kind])]).fetchone()
                waiting = self._select("key", "key", [*map(stored_key, self._counted(kind))])
            finally:
                self._db.execute("COMMIT")
        return super().size(kind) + int(stored) - len(waiting)

    def release(self, entry: Entry) -> None:
        super().release(entry)
        if self._writer and entry.key in self._writer.batch:
            self._writer.batch.put(entry.key, None, "delete")

    def write(self, entries: Sequence[Entry], deleted: Sequence[Entry] = ()) -> None:
        assert self._writer
        for entry in deleted:
            self._rows[entry.key] = None
            self.index.remove(entry.key)
            self._writer.batch.put(entry.key, None, "delete")
        for entry in entries:
            self._put(entry)
            self._writer.batch.put(entry.key, entry.record, "update" if entry.keeps_place else "replace")

    # Writing

    def flush(self, *, wait: bool) -> None:
        if self._writer:
            self._writer.flush(wait=wait)

    def _note_written(self, batch: Batch, first: int) -> None:
        """Note the numbers of the rows that a batch replaced, from `first` on. Remove its rows from RAM."""
        assert self._writer
        waiting = self._writer.batch
        replaced = batch.keys_of("replace")
        for number, key in enumerate(replaced, first):
            if waiting.get(key, ("", None))[0] != "replace":  # else it gets another number
                self.index.number(key, number)
        self._own.append((first, first + len(replaced) - 1))
        for key, (_, record) in batch.items():
            if key not in waiting and self._rows.get(key, batch) is record:
                del self._rows[key]

    def news(self) -> tuple[list[Row], bool]:
        rows: list[Row] = []
        if self._writer:
            self._writer.settle()
        with store_errors(self.name, "read"):
            if self._version == self._newest_version() and not self._own and not self.index.has_merged:
                return rows, False
            more = True
            while more and not rows:
                rows, more = self._read_news()
            if not more:
                self.index.grow(self._known)
        return rows, more

    def _newest_version(self) -> int:
        """Return a number that changes whenever another connection commits."""
        [version] = self._db.execute("PRAGMA data_version").fetchone()
        return int(version)

    def _read_news(self) -> tuple[list[Row], bool]:
        """Read and index new rows of other processes up to the next ones of this process, at most `AT_ONCE`.

        Return them, and whether more remain. The rows of a write that may not have ended are left for later.
        """
        version = self._newest_version()
        first, last = self._own[0] if self._own else (self._writing_from(), 0)
        query = f'SELECT number, key, value FROM "{self._table}" WHERE number > ? AND number < ? ORDER BY number LIMIT'
        rows = self._db.execute(f"{query} {AT_ONCE}", (self._known, first)).fetchall()
        found: list[Row] = []
        for number, stored, value in rows:
            if number >= self._writing_from():  # asked after the rows were read, since a write says it before it ends
                return found, False
            key = key_in(stored)
            try:
                record = load(key, value)
            except ValueError as error:
                if found:
                    return found, True  # the next call raises the error
                self._known = number
                raise StoreError(f"store {self.name!r} can't be read: {error}; it was left as it is") from error
            if self._rows.get(key, key) is not None:  # else this process deletes it
                if key not in self._rows:  # else what is to be written is newer
                    self.index.remove(key)
                self.index.add(number, *postings(record))
                found.append(Row(key, value))
            self._known = number
        if len(rows) < AT_ONCE and self._own:
            self._own.popleft()
            self._known = max(self._known, last)
            return found, True
        more = len(rows) == AT_ONCE
        self._version = version if first == END and not more else 0
        return found, more

    def _writing_from(self) -> int:
        """Return the number of the first row that is being written, or one above all."""
        return self._writer.first if self._writer else END

    # Runs

    def hold_run(self, run: str) -> bool:
        lock = RunLock(self.name, run)
        if run in self._locks or not lock.acquire():
            return run in self._locks
        self._locks[run] = lock
        return True

    def is_held(self, run: str) -> bool:
        return run in self._locks or RunLock(self.name, run).is_held()

    def release_run(self, run: str) -> None:
        if lock := self._locks.pop(run, None):
            lock.release()

    # The store as a whole

    def meet(self) -> None:
        self._meeting.add(self)

    def describe(self) -> dict[str, object]:
        rows = sum(_size(file) for file in (Path(self.name), Path(f"{self.name}-wal")))
        index = sum(_size(file) for file in folder_of(self.name).rglob("*.idx"))
        return {"bytes": rows + index, "bytes_rows": rows, "bytes_index": index}

    def compact(self) -> None:
        with store_errors(self.name, "compacted"):
            self.index.rebuild(self._known)
            self.flush(wait=True)
            with closing(open_database(self.name, self._table, writes=True, check=False)) as db:
                shrink(db)

    def abandon(self) -> None:
        self._meeting.discard(self)
        self.index.end()
        if self._writer:
            self._writer.close()
            self._writer = None
        self._db.close()
        for run in list(self._locks):
            self.release_run(run)


def _size(file: Path) -> int:
    with suppress(OSError):  # another process has just removed it
        return file.stat().st_size
    return 0
