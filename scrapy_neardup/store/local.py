"""The back ends of one machine: in memory, and in an SQLite file.

In a file, the rows of a namespace are in one table, which is a `SqliteDict`. The index is only a cache. A row stays in
RAM until it is written. All other rows are read from the table, over a connection that writes no rows. Each written row
that is news gets a number above all numbers before it. So a process finds new rows of others by their numbers.
"""

from __future__ import annotations

import json
import os
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import closing, suppress
from itertools import chain
from pathlib import Path
from threading import get_ident
from typing import Any, ClassVar, cast
from weakref import WeakSet

from filelock import BaseFileLock, FileLock, Timeout

from ..row_index import NEWEST, Places, Question, RowIndex, keep_nearest
from . import database
from .backend import Backend, Entry, Found, Row, StoreError
from .database import END, Changes, Writer, open_database, store_errors
from .records import COUNTED, DOCUMENT, Key, Record, bounds, code_of, dump, id_of, is_id
from .stored_index import StoredIndex, folder_of, posted, remove

AT_ONCE = 500  # rows to read at a time, which takes some milliseconds
LOOK_SECONDS = 0.05  # seconds to wait for a lock, since another process may hold it only to check it


class MemoryBackend(Backend):
    """A back end with its rows in a dictionary. The rows are lost when the process ends."""

    name = "in memory"

    def __init__(self) -> None:
        self.index = RowIndex()
        self._rows: dict[Key, Record | None] = {}
        """Records by key. None stands for a deleted row, which may still be in the file of an `SqliteBackend`."""
        self._pending: dict[Key, int] = {}  # the number of index keys of each pending document
        self._written = 0

    def get(self, keys: Iterable[Key]) -> list[Row]:
        return [Row(key, record) for key in keys if (record := self._rows.get(key)) is not None]

    def scan(self, kind: str, run: str = "") -> Iterator[Row]:
        yield from self.get(self._keys(kind, run))

    def _keys(self, kind: str, run: str) -> list[Any]:
        """Return the keys of the rows of a kind in RAM; with `run`, only those of this run."""
        first, end = bounds(kind, run)
        some: list[Any] = [key for key in self._rows if isinstance(key, type(first))]
        return [key for key in some if first <= key < end]

    def find(
        self, questions: Sequence[Question], entries: Sequence[Entry | None] = (), ahead: Sequence[int] = ()
    ) -> tuple[list[Found], list[Row]]:
        places = self.index.find(questions)
        answers = [self._found(question, found) for question, found in zip(questions, places, strict=True)]
        return answers, self.get(ahead)

    def _found(self, question: Question, places: Places, times: int = 1) -> Found:
        """Return the rows at `places`, which the index gave when asked for `times` as many rows as the question wants.

        If too few of these rows still exist, ask the index again, for more.
        """
        if not places.keys and not places.near:
            return Found()
        found_at = {place for found in (*places.keys.values(), places.near) for place in found}
        rows = {cast(int, row.key): row for row in self.get(found_at)}
        keys = {key: [rows[place] for place in found if place in rows] for key, found in places.keys.items()}
        near = {place: far for place, far in places.near.items() if place in rows}
        most, is_short = question.most, len(near) < NEWEST and len(places.near) == times * NEWEST
        if is_short or any(len(keys[key]) < most and len(found) == times * most for key, found in places.keys.items()):
            times *= 8
            wider = question._replace(most=times * most)
            return self._found(question, self.index.find([wider], times * NEWEST)[0], times)
        if len(near) > NEWEST:
            keep_nearest(near, NEWEST)
        return Found({key: found[-most:] for key, found in keys.items()}, [rows[place] for place in near])

    def size(self, kind: str) -> int:
        return sum(self._rows[key] is not None and key not in self._pending for key in self._counted(kind))

    def _counted(self, kind: str) -> list[Key]:
        return [key for key in self._rows if isinstance(key, int) and key in COUNTED[kind]]

    def count(self, key: int) -> int:
        return self.index.count(key)

    def hold(self, entry: Entry, seen: bytes) -> bool:
        self._put(entry)
        self._pending[entry.key] = len(entry.keys)
        return True

    def release(self, entry: Entry) -> None:
        self._pending.pop(entry.key, None)
        self._rows.pop(entry.key, None)
        self.index.remove(cast(int, entry.key))

    def write(self, entries: Sequence[Entry], deleted: Sequence[Entry] = ()) -> None:
        for entry in deleted:
            self._rows.pop(entry.key, None)
        for entry in entries:
            self._put(entry)
        self._written += len(entries)
        self.index.grow(self._written)

    def _put(self, entry: Entry) -> None:
        key, record, keys, simhash, is_news = entry
        if (known := self._pending.pop(key, None)) is not None:
            keys, simhash = keys[known:], None
        if is_news and (keys or simhash is not None):
            self.index.add(cast(int, key), keys, simhash)
        self._rows[key] = record

    def close(self) -> None:
        self.index.end()


class SqliteBackend(MemoryBackend):
    """A back end in a file, for several processes on one machine. Raises StoreError if the file can't be opened."""

    index: StoredIndex
    _meeting: ClassVar[WeakSet[SqliteBackend]] = WeakSet()
    """The back ends of this process that share pending documents (`meet`). Its crawlers have no other common object."""

    def __init__(self, path: str, *, namespace: str = "", writes: bool = True) -> None:
        super().__init__()
        self.name = os.path.realpath(path)  # follow links, so that all processes use the same lock files
        self._table = database.table_of(namespace)
        self._place = self.name, self._table, get_ident()
        self._db = open_database(self.name, self._table, writes=writes)
        self._known = 0  # the highest row number that was read
        self._own: deque[tuple[int, int]] = deque()  # numbers of rows of this process that `_read_news` has not reached
        self._waiting: dict[Key, bool] = {}  # rows to write next, and whether each is news to others
        self._writing: tuple[Future[int], Changes] | None = None
        self._locks: dict[str, BaseFileLock] = {}
        self.index = StoredIndex(self._db, self.name, self._table, self._lacks_number, writes=writes)
        self._writer: Writer | None = None
        try:
            self._writer = Writer(self.name, self._table) if writes else None
            with store_errors(self.name, "read"):
                [last] = self._db.execute(f'SELECT max(number) FROM "{self._table}"').fetchone()
                self.index.load(last or 0)
                self._known = self.index.last
                while self._read_news()[1]:
                    pass
        except BaseException:
            self.close()
            raise

    # Rows

    def get(self, keys: Iterable[Key]) -> list[Row]:
        wanted = list(keys)
        rows = super().get(wanted)
        stored = [key for key in wanted if key not in self._rows]
        for at in range(0, len(stored), AT_ONCE):
            some = stored[at : at + AT_ONCE]
            query = f'SELECT key, value FROM "{self._table}" WHERE key IN ({",".join("?" * len(some))})'
            rows += [Row(*row) for row in self._read(query, some)]
        return rows

    def _read(self, query: str, arguments: Sequence[Any] = ()) -> list[Any]:
        try:
            return self._db.execute(query, arguments).fetchall()
        except database.ERRORS as error:
            raise database.failure(self.name, "read", error) from error

    def find(
        self, questions: Sequence[Question], entries: Sequence[Entry | None] = (), ahead: Sequence[int] = ()
    ) -> tuple[list[Found], list[Row]]:
        found, rows_ahead = super().find(questions, entries, ahead)
        some = self._meeting if self in self._meeting else ()
        for other in [each for each in some if each is not self and each._place == self._place]:
            for answer, unread in zip(found, other.unread(questions), strict=True):
                for key, rows in unread.rows.items():
                    answer.rows[key] = _joined(rows, answer.rows.get(key, ()))
                answer.near = _joined(unread.near, answer.near)
        return found, rows_ahead

    def unread(self, questions: Sequence[Question]) -> list[Found]:
        """Return the pending and unwritten documents that answer questions of another back end of this process.

        An unwritten document counts as pending, unless the last write failed. So the other back end waits until the
        document is in the file, and only then writes a visit that names it.
        """
        answers, _ = super().find(questions)
        found = chain.from_iterable(chain(each.near, *each.rows.values()) for each in answers)
        new = {row.key: cast(Record, row.value) for row in found if row.key in self._rows and is_id(row.key)}
        waits = new.keys() <= self._pending.keys() or self._can_write()
        # As bytes, so that each store makes its own object, which has the count of copies in this store.
        rows = {key: Row(key, dump(key, each), waits or key in self._pending) for key, each in new.items()}

        def unread(some: Iterable[Row]) -> list[Row]:
            return [rows[row.key] for row in some if row.key in rows]

        return [Found({key: unread(some) for key, some in each.rows.items()}, unread(each.near)) for each in answers]

    def _can_write(self) -> bool:
        """Start to write all buffered rows. Return False if the last write failed."""
        with suppress(StoreError):  # the rows stay in the buffer, and a later flush raises the error again
            self.flush(wait=False)
            return True
        return False

    def scan(self, kind: str, run: str = "") -> Iterator[Row]:
        unwritten = {*self._keys(kind, run)}
        first, end = bounds(kind, run)
        query = f'SELECT key, value FROM "{self._table}" WHERE key > ? AND key < ? ORDER BY key LIMIT {AT_ONCE}'
        rows: list[Any] = [(first, None)]
        while rows:
            rows = self._read(query, (rows[-1][0], end))
            for key, value in rows:
                unwritten.discard(key)
                if (record := self._rows.get(key, value)) is not None:
                    yield Row(key, record)
        yield from self.get(sorted(unwritten))

    def size(self, kind: str) -> int:
        first, end = COUNTED[kind].start, COUNTED[kind].stop
        own = json.dumps(self._counted(kind))  # the rows in RAM
        query = f'SELECT count(*) FROM "{self._table}" WHERE key >= ? AND key < ? AND key NOT IN'
        [(stored,)] = self._read(f"{query} (SELECT value FROM json_each(?))", (first, end, own))
        return super().size(kind) + int(stored)

    def writers(self) -> set[int]:
        found, least = set(), 0
        query = f'SELECT key FROM "{self._table}" WHERE key > ? AND key < ? ORDER BY key LIMIT 1'
        while rows := self._read(query, (least, COUNTED[DOCUMENT].stop)):
            found.add(code := code_of(rows[0][0]))
            least = id_of(code + 1, 0)  # behind all documents of this run
        return found

    # Writing

    def write(self, entries: Sequence[Entry], deleted: Sequence[Entry] = ()) -> None:
        for entry in deleted:
            if entry.key in self._waiting and is_id(entry.key):  # it was never written
                self.index.remove(cast(int, entry.key))
            self._rows[entry.key] = None
            self._waiting[entry.key] = True
        for entry in entries:
            self._put(entry)
            self._wait(entry.key, is_news=entry.is_news)

    def _wait(self, key: Key, *, is_news: bool) -> None:
        self._waiting[key] = is_news or self._waiting.get(key, False)

    def flush(self, *, wait: bool) -> None:
        if self._writer:
            self._settle(wait=wait)
            while self._waiting and not self._writing:
                changes = {key: (self._rows.get(key), is_news) for key, is_news in self._waiting.items()}
                self._waiting = {}
                self._writing = self._writer.write(changes), changes
                self._settle(wait=wait)

    def _settle(self, *, wait: bool) -> None:
        """Handle the result of the last write that was started, if there is one by now; with `wait`, wait for it.

        If the write failed, raise its error. Its rows then stay in the buffer.
        """
        if self._writing and (wait or self._writing[0].done()):
            (future, changes), self._writing = self._writing, None
            if error := future.exception():
                later, self._waiting = self._waiting, {key: is_news for key, (_, is_news) in changes.items()}
                for key, is_news in later.items():
                    self._wait(key, is_news=is_news)
                raise error
            new = sum(is_news and record is not None for record, is_news in changes.values())
            self._own.append((future.result(), future.result() + new - 1))
            self.version = 0  # so that `news` reads the rows after these
            for key in changes.keys() - self._waiting.keys():
                self._rows.pop(key, None)

    def _lacks_number(self, place: int) -> bool:
        """Return whether the row at a place has no number yet, or will get a new one."""
        writing = self._writing[1].get(place) if self._writing else None
        return place in self._pending or self._waiting.get(place, False) or bool(writing and writing[1])

    def news(self, *, documents: bool = False) -> tuple[list[Row], bool]:
        if self._writing and self._writing[0].done() and not self._writing[0].exception():  # else `flush` raises
            self._settle(wait=False)
        [(version,)] = self._read("PRAGMA data_version")  # changes when another connection commits
        if version == self.version:
            return [], False
        rows, more = self._read_news()
        self.version = self.version if more else version
        if not self._own:  # the index has all rows up to this number
            self.index.grow(self._known, wait=False)
        return rows, more

    def _read_news(self) -> tuple[list[Row], bool]:
        """Read and index at most `AT_ONCE` new rows of other processes, up to the next row of this process.

        Return them, and whether more remain. At a row that this process is still writing, wait until it is written.
        """
        first, last = self._own[0] if self._own else (END, 0)
        query = f'SELECT number, key, value FROM "{self._table}" WHERE number > ? AND number < ? ORDER BY number LIMIT'
        rows = self._read(f"{query} {AT_ONCE}", (self._known, first))
        written = self._writer.first if self._writer and self._writing else END
        found: list[Row] = []
        for number, key, value in rows:
            if number >= written:
                self._settle(wait=True)
                return found, True
            self._known = number
            if self._rows.get(key, key) is not None:  # else this process is deleting it
                if known := posted(key, value):
                    self.index.add(*known)
                found.append(Row(key, value))
        if len(rows) < AT_ONCE and self._own:
            self._own.popleft()
            self._known = max(self._known, last)
            return found, True
        return found, len(rows) == AT_ONCE

    # Runs

    def hold_run(self, run: str) -> bool:
        if run not in self._locks:
            lock = self._lock(run)
            with suppress(Timeout):
                lock.acquire(timeout=LOOK_SECONDS, poll_interval=LOOK_SECONDS / 10)
                self._locks[run] = lock
        return run in self._locks

    def _lock(self, run: str) -> BaseFileLock:
        return FileLock(f"{self.name}.run-{run}.lock", thread_local=False)

    def is_held(self, run: str) -> bool:
        lock = self._lock(run)
        if run in self._locks or not os.path.exists(lock.lock_file):  # this check must not create it
            return run in self._locks
        try:
            lock.acquire(timeout=0)
        except (Timeout, PermissionError):
            return True
        lock.release()
        return False

    def release_run(self, run: str) -> None:
        if lock := self._locks.pop(run, None):
            with suppress(OSError):  # outside POSIX an open file can't be removed
                # The file is removed first, so that a waiting process notices that it is gone, and starts over.
                Path(lock.lock_file).unlink()
            lock.release()

    # The store as a whole

    def meet(self) -> None:
        self._meeting.add(self)

    def describe(self) -> dict[str, object]:
        rows = sum(_size(file) for file in (Path(self.name), Path(f"{self.name}-wal")))
        index = sum(_size(file) for file in folder_of(self.name).rglob("*.idx"))
        return {"bytes": rows + index, "bytes_rows": rows, "bytes_index": index}

    def close(self) -> None:
        self._meeting.discard(self)
        if self._writer:
            self._writer.close()
            self._writer = None
        self._db.close()
        for run in list(self._locks):
            self.release_run(run)
        super().close()


def compact_file(path: str) -> None:
    """Rewrite the file of a store and its indexes without what was deleted."""
    with closing(open_database(path, writes=True, check=False)) as db, store_errors(path, "compacted"):
        db.execute("VACUUM")  # takes some seconds per gigabyte; rows keep their numbers
        db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
        names = database.namespaces(db)
    for file in folder_of(os.path.realpath(path)).rglob("*.idx"):
        remove(file)
    for name in names:
        SqliteBackend(path, namespace=name).close()  # makes its index anew


def _joined(*rows: Iterable[Row]) -> list[Row]:
    return [*{row.key: row for row in chain(*rows)}.values()]


def _size(file: Path) -> int:
    with suppress(OSError):  # another process has just removed it
        return file.stat().st_size
    return 0
