"""The back end in a file: rows in one table of SQLite, which is a `SqliteDict`, and an index that is only a cache.

Rows that are not written yet are held in RAM, as the back end in memory holds all; for all others the table is asked
over a connection that only reads. What other processes wrote is read by number: those above the highest that is known.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

from ..base import Entry, Found, Postings, Question, Row, StoreError
from ..damage import DAMAGE
from ..postings import postings
from ..records import load
from ..session import INDEX
from .database import open_database, shrink, table_of, told
from .files import Files, folder_of, size_of
from .index import TAIL, due
from .locks import RunLock
from .memory import MemoryBackend
from .table import Table
from .tail import Place
from .writer import Batch, Writer

AT_ONCE = 500  # rows that are read at a time: some milliseconds


class SqliteBackend(MemoryBackend):
    """A store in a file, for several processes of one machine. Raise StoreError where it can't be opened."""

    def __init__(self, path: str, *, namespace: str = "", writes: bool = True) -> None:
        super().__init__()
        self.name = os.path.realpath(path)  # one name for the file and its locks, by whatever link it was reached
        self._table = table_of(namespace)
        self._db = open_database(self.name, self._table, writes=writes)
        self._writes = writes
        self._version = self._known = 0
        self._locks: dict[str, RunLock] = {}
        self._files = Files(self.name, self._table)
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="neardup-index")
        self._merging: Future[Table] | None = None
        self._is_stuck = False
        self._writer: Writer | None = None
        try:
            self._writer = Writer(self.name, self._table, self._note_written) if writes else None
            with told(self.name, "read"):
                self._open_index()
        except BaseException:
            self.abandon()
            raise

    # The index

    def _open_index(self) -> None:
        """Have tables for all rows, but for few that came last."""
        last = self._db.execute(f'SELECT max(number) FROM "{self._table}"').fetchone()[0] or 0
        if self._writes:
            self._files.hold(last)
        self.index.tables = self._files.read(self._db)
        if last - self.index.last > TAIL:
            self._cover(last)
        self._known = self.index.last
        while self._read_news()[1]:
            pass
        self._name_files()

    def _cover(self, last: int) -> None:
        """Have tables for all rows up to a number."""
        self.index.tables += self._files.made(self._db, self.index.last + 1, last)

    def _named(self) -> list[str]:
        return [table.path.name for table in self.index.tables if table.path]

    def _name_files(self) -> None:
        """Have the store name the files that count, where it names others."""
        if self._files.is_held and self._files.names(self._db) != self._named():
            self.write([Entry(INDEX, {"files": self._named()})])

    def _grow(self) -> None:
        """Make a table of the newest rows, and have several become one in a thread."""
        if len(self.index.tail) >= TAIL and self._known > self.index.last:
            self.index.seal(self._known)
        if self._merging and self._merging.done():
            self._adopt()
            self._name_files()
        if not (self._merging or self._is_stuck) and due(self.index.tables):
            self._take_over()
            if tables := due(self.index.tables):
                self._merging = self._thread.submit(self._files.merged, tables)

    def _take_over(self) -> None:
        """Make files from now on, if nobody else does; go on with those of the process that made them before."""
        is_first = self._writes and not self._files.is_held and self._files.hold(self._known)
        if is_first and self._files.names(self._db) != self._named():
            self.index.tables = [table for table in self._files.read(self._db) if table.last <= self._known]
            self._cover(self._known)
            self._name_files()

    def _adopt(self) -> None:
        """Go by the table that was made of several."""
        merging, self._merging = self._merging, None
        try:
            self.index.put(merging.result()) if merging else None
        except Exception as error:  # it is a cache
            self._is_stuck = True
            self._files.warn(f"does not grow: {error!r}")

    def _end_index(self) -> None:
        """Name what is being made, since its thread is waited for anyway; let others make files."""
        self._thread.shutdown()
        if self._merging and self._writer and self._files.is_held:
            with suppress(Exception):  # it is made again
                self._adopt()
                self._writer.write(Batch({INDEX: {"files": self._named()}})).result()
                self._files.tidy(self._named())
        self._files.release()

    # Rows

    def get(self, keys: Iterable[str]) -> list[Row]:
        wanted = list(keys)
        rows = [Row(key, record) for key in wanted if (record := self._rows.get(key)) is not None]
        stored = [key for key in wanted if key not in self._rows]
        return rows + [Row(*row) for row in self._select("key, value", "key", stored)] if stored else rows

    def _select(self, columns: str, by: str, values: Sequence[object]) -> list[Any]:
        """Return columns of the rows that have one of the values."""
        found: list[Any] = []
        with told(self.name, "read"):
            for at in range(0, len(values), AT_ONCE):
                some = values[at : at + AT_ONCE]
                query = f'SELECT {columns} FROM "{self._table}" WHERE {by} IN ({",".join("?" * len(some))})'
                found += self._db.execute(query, some)
        return found

    def _at(self, places: Iterable[Place]) -> dict[Place, Row]:
        known = list(places)
        numbers = [place for place in known if isinstance(place, int)]
        rows = self._select("number, key, value", "number", numbers) if numbers else ()
        found: dict[Place, Row] = {number: Row(key, value) for number, key, value in rows}
        if self._rows:
            for place in [place for place, row in found.items() if row.key in self._rows]:
                key = found.pop(place).key
                if (record := self._rows[key]) is not None:
                    found[place] = Row(key, record)
        if len(numbers) < len(known):
            found |= {row.key: row for row in self.get(place for place in known if isinstance(place, str))}
        return found

    def find(self, questions: Sequence[Question], entries: Sequence[Entry | None] = ()) -> list[Found]:
        try:
            return super().find(questions, entries)
        except DAMAGE as error:  # of a large index only the head was checked
            advice = f"remove the folder {str(folder_of(self.name))!r}, and it is made anew"
            raise StoreError(f"store {self.name!r} can't be read: its index is damaged: {error!r}; {advice}") from error

    def scan(self, kind: str, run: str = "") -> Iterator[Row]:
        prefix = f"{kind}/{run}/" if run else f"{kind}/"
        query = f'SELECT key, value FROM "{self._table}" WHERE key > ? AND key < ? ORDER BY key LIMIT {AT_ONCE}'
        unwritten = {key for key in self._rows if key.startswith(prefix)}
        last, end = prefix, f"{prefix[:-1]}0"  # the character after the slash
        while True:
            with told(self.name, "read"):
                rows = self._db.execute(query, (last, end)).fetchall()
            for key, value in rows:
                unwritten.discard(key)
                if key not in self._rows:
                    yield Row(key, value)
                elif (record := self._rows[key]) is not None:
                    yield Row(key, record)
            if len(rows) < AT_ONCE:
                break
            last = rows[-1][0]
        yield from self.get(sorted(unwritten))

    def release(self, entry: Entry) -> None:
        super().release(entry)
        if self._writer and self._writer.batch.has(entry.key):
            self._writer.batch.delete(entry.key)

    def write(self, entries: Sequence[Entry], deleted: Sequence[Entry] = ()) -> None:
        assert self._writer
        for entry in deleted:
            self._rows[entry.key] = None
            self._writer.batch.delete(entry.key)
        for entry in entries:
            self._put(entry)
            self._writer.batch.put(entry.key, entry.record, updates=entry.keeps_place)

    def _add(self, key: str, postings: Postings) -> None:
        self.index.add(key, postings)

    # Writing

    def flush(self, *, wait: bool) -> None:
        if self._writer:
            self._writer.flush(wait=wait)

    def _note_written(self, batch: Batch) -> None:
        """Let go of rows that are on disk."""
        waiting = self._writer.batch if self._writer else batch
        for key, record in batch.records().items():
            if not waiting.has(key) and key in self._rows and self._rows[key] is record:
                del self._rows[key]
        if batch.has(INDEX) and not (self._merging or waiting.has(INDEX)):
            self._files.tidy(self._named())

    def news(self) -> tuple[list[Row], bool]:
        rows: list[Row] = []
        with told(self.name, "read"):
            if self._version == self._newest_version() and not (self._merging and self._merging.done()):
                return rows, False
            more = True
            while more and not rows:  # this process's own rows only get their numbers
                rows, more = self._read_news()
            if not more:
                self._grow()
        return rows, more

    def _newest_version(self) -> int:
        """Return what changes whenever anybody commits."""
        [version] = self._db.execute("PRAGMA data_version").fetchone()
        return int(version)

    def _read_news(self) -> tuple[list[Row], bool]:
        """Return some rows that other processes wrote; this one's own get their numbers."""
        version = self._newest_version()
        query = f'SELECT number, key FROM "{self._table}" WHERE number > ? ORDER BY number LIMIT {AT_ONCE}'
        rows = self._db.execute(query, (self._known,)).fetchall()
        found, damage = self._take_in(rows)
        if damage and not found:
            raise damage
        if damage:
            return found, True  # the damage is told of the next time, when these are known
        if not (more := len(rows) == AT_ONCE):
            self._version = version
        return found, more

    def _take_in(self, rows: Sequence[tuple[int, str]]) -> tuple[list[Row], StoreError | None]:
        """Have the newest rows be found, up to one that is damaged; return those that others need to know of."""
        others = [number for number, key in rows if not self.index.tail.has(key)]
        values = dict(self._select("number, value", "number", others))
        found: list[Row] = []
        for number, key in rows:
            if not self.index.tail.number(key, number) and number in values:
                try:
                    self.index.add(number, postings(load(key, values[number])))
                except ValueError as error:
                    self._known = number - bool(found)
                    return found, StoreError(f"store {self.name!r} can't be read: {error}; it was left as it is")
                found.append(Row(key, values[number]))
            self._known = number
        return found, None

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

    # All of it

    def describe(self) -> dict[str, object]:
        rows = sum(size_of(file) for file in (Path(self.name), Path(f"{self.name}-wal")))
        index = sum(size_of(file) for file in folder_of(self.name).rglob("*.idx"))
        return {"bytes": rows + index, "bytes_rows": rows, "bytes_index": index}

    def compact(self) -> None:
        with told(self.name, "compacted"):
            self._merging = None
            if self._files.is_held:  # else another process makes the files, in time
                self.index.tables = self._files.made(self._db, 1, self._known)
                self._name_files()
            self.flush(wait=True)
            with closing(open_database(self.name, self._table, writes=True, check=False)) as db:
                shrink(db)

    def abandon(self) -> None:
        self._end_index()
        if self._writer:
            self._writer.close()
            self._writer = None
        self._db.close()
        for run in list(self._locks):
            self.release_run(run)
