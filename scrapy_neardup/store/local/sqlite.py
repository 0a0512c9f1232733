"""The back end in an SQLite file.

Rows are in one table, which is a `SqliteDict`. The index is only a cache. Rows stay in RAM until they are written. All
other rows are read from the table, over a connection that writes no rows. New rows of other processes are recognised by
their numbers, which are higher than all row numbers known so far.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from pathlib import Path
from threading import get_ident
from typing import Any, ClassVar
from weakref import WeakSet

from ...index.row_index import Place
from ...signature import Visit
from ..interface import Entry, Found, Question, Row, StoreError
from ..records import COUNTED, DOCUMENT, VISIT, dump, load, postings, run_of
from .database import NO_VISIT, RunLock, key_in, open_database, shrink, store_errors, stored_key, table_of
from .memory import MemoryBackend
from .stored_index import StoredIndex, folder_of
from .writer import Batch, Writer

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
        self._locks: dict[str, RunLock] = {}
        self.index = StoredIndex(self._db, self.name, self._table, writes=writes)
        self._writer: Writer | None = None
        try:
            self._writer = Writer(self.name, self._table, self._note_written) if writes else None
            with store_errors(self.name, "read"):
                self._open_index()
        except BaseException:
            self.abandon()
            raise

    def _open_index(self) -> None:
        """Read the index, and build its missing levels."""
        last = self._db.execute(f'SELECT max(number) FROM "{self._table}"').fetchone()[0] or 0
        self.index.load(last)
        self._known = self.index.last
        while self._read_news()[1]:
            pass

    # Rows

    def get(self, keys: Iterable[str]) -> list[Row]:
        wanted = list(keys)
        rows = [Row(key, record) for key in wanted if (record := self._rows.get(key)) is not None]
        stored = [stored_key(key) for key in wanted if key not in self._rows]
        found = self._select("key, value", "key", stored) if stored else ()
        return rows + [Row(key_in(key), value) for key, value in found]

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
        known = list(places)
        numbers = [place for place in known if isinstance(place, int)]
        rows = self._select("number, key, value", "number", numbers) if numbers else ()
        found: dict[Place, Row] = {number: Row(key_in(key), value) for number, key, value in rows}
        if self._rows:
            for place in [place for place, row in found.items() if row.key in self._rows]:
                key = found.pop(place).key
                if (record := self._rows[key]) is not None:
                    found[place] = Row(key, record)
        if len(numbers) < len(known):
            found |= {row.key: row for row in self.get(place for place in known if isinstance(place, str))}
        return found

    def find(
        self, questions: Sequence[Question], entries: Sequence[Entry | None] = (), ahead: Sequence[str] = ()
    ) -> list[Found]:
        found = super().find(questions, entries, ahead)
        for other in self._others():
            for question, answer in zip(questions, found, strict=True):
                other.add_unread(question, answer)
        return found

    def _others(self) -> list[SqliteBackend]:
        """Return the other back ends that this one meets."""
        if self not in self._meeting or len(self._meeting) == 1:
            return []
        return [each for each in self._meeting if each is not self and each._place == self._place]

    def add_unread(self, question: Question, found: Found) -> None:
        """Add this back end's documents that another one may not have read yet: pending and new ones."""
        keys, near = self.index.newest(question)
        for key, places in keys.items():
            found.rows[key] = self._with_unread(found.rows.get(key, []), places[-question.keys[key] :])
        found.near = self._with_unread(found.near, near)

    def _with_unread(self, rows: list[Row], places: Iterable[Place]) -> list[Row]:
        known = {row.key for row in rows}
        keys = [each for each in places if isinstance(each, str) and each.startswith(DOCUMENT) and each not in known]
        unread = self.get(keys)
        # A new document counts as pending until it is in the file, so that no link to it gets there first.
        waits = all(row.key in self._pending for row in unread) or self._can_write()
        # Encoded, since each store counts the copies of a document by itself.
        return rows + [Row(row.key, _encoded(row), waits or row.key in self._pending) for row in unread]

    def _can_write(self) -> bool:
        """Start to write all buffered rows. Return False if the last write failed."""
        try:
            self.flush(wait=False)
        except StoreError:  # the rows stay in the buffer, and a later flush raises it again
            return False
        return True

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
                if key not in self._rows:
                    yield Row(key, value)
                elif (record := self._rows[key]) is not None:
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
        if self._writer and self._writer.batch.has(entry.key):
            self._writer.batch.delete(entry.key)

    def write(self, entries: Sequence[Entry], deleted: Sequence[Entry] = ()) -> None:
        assert self._writer
        for entry in deleted:
            self._rows[entry.key] = None
            self.index.remove(entry.key)
            self._writer.batch.delete(entry.key)
        for entry in entries:
            self._put(entry)
            self._writer.batch.put(entry.key, entry.record, updates=entry.keeps_place)

    # Writing

    def flush(self, *, wait: bool) -> None:
        if self._writer:
            self._writer.flush(wait=wait)

    def _note_written(self, batch: Batch) -> None:
        """Remove the rows of a written batch from RAM."""
        waiting = self._writer.batch if self._writer else batch
        for key, record in batch.records().items():
            if not waiting.has(key) and key in self._rows and self._rows[key] is record:
                del self._rows[key]

    def news(self) -> tuple[list[Row], bool]:
        rows: list[Row] = []
        with store_errors(self.name, "read"):
            if self._version == self._newest_version() and not self.index.has_merged:
                return rows, False
            more = True
            while more and not rows:  # skip batches that have only rows of this process
                rows, more = self._read_news()
            if not more:
                self.index.grow(self._known)
        return rows, more

    def _newest_version(self) -> int:
        """Return a number that changes whenever another connection commits."""
        [version] = self._db.execute("PRAGMA data_version").fetchone()
        return int(version)

    def _read_news(self) -> tuple[list[Row], bool]:
        """Read a batch of new rows, and index them. Return those of other processes, and whether more remain."""
        version = self._newest_version()
        query = f'SELECT number, key FROM "{self._table}" WHERE number > ? ORDER BY number LIMIT {AT_ONCE}'
        rows = [(number, key_in(key)) for number, key in self._db.execute(query, (self._known,))]
        found, damage = self._index_rows(rows)
        if damage and not found:
            raise damage
        if damage:
            return found, True  # the next call raises the error
        if not (more := len(rows) == AT_ONCE):
            self._version = version
        return found, more

    def _index_rows(self, rows: Sequence[tuple[int, str]]) -> tuple[list[Row], StoreError | None]:
        """Index new rows until one is damaged. Return the rows of other processes, and the error, if any.

        Visits are read in any case, since another process may have written one after this process did. What the index
        has under the key of a visit is newer than its row if this process writes it again.
        """
        others = [number for number, key in rows if not self._is_known(key)]
        values = dict(self._select("number, value", "number", others))
        found: list[Row] = []
        for number, key in rows:
            if number in values:
                try:
                    record = load(key, values[number])
                except ValueError as error:
                    self._known = number - bool(found)
                    return found, StoreError(f"store {self.name!r} can't be read: {error}; it was left as it is")
                if not (self._writer and self._writer.replaces(key, values[number])):
                    self.index.remove(key)
                self.index.add(number, *postings(record))
                if not (isinstance(record, Visit) and run_of(record.at) in self._locks):
                    found.append(Row(key, values[number]))
            else:
                self.index.number(key, number)
            self._known = number
        return found, None

    def _is_known(self, key: str) -> bool:
        """Return whether a new row needs only its number, as this process wrote it, or is deleted by this process."""
        return self._rows.get(key, key) is None or (self.index.has(key) and not key.startswith(VISIT))

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
    """Return the size of a file in bytes; 0 if it can't be read."""
    try:
        return file.stat().st_size
    except OSError:
        return 0


def _encoded(row: Row) -> bytes:
    return row.value if isinstance(row.value, bytes) else dump(row.key, row.value)
