"""Open, check and write the SQLite file of a store, and add advice to errors of SQLite."""

from __future__ import annotations

import logging
import os
import queue
import sqlite3
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, TypeAlias
from urllib.parse import quote, unquote

from sqlitedict import SqliteDict

from .backend import StoreError
from .records import MADE, Key, Record, dump, is_intact, load, merged

TABLE = "neardup"
LOCK_SECONDS = 30  # seconds to wait for another process
CACHE = 16_000  # KB of cached pages
PAGE = 16_384  # bytes; a row takes about 800, and smaller pages would leave a tenth of their space unused
# Numbers are never reused, and a replaced row gets a new number. So rows above the highest known number are new.
_COLUMNS = "(number INTEGER PRIMARY KEY AUTOINCREMENT, key NOT NULL UNIQUE, value BLOB)"
SMALL = 2**25  # bytes; all checksums of a file up to this size are compared when it is opened, which takes 0.1 s
ERRORS = sqlite3.Error, UnicodeDecodeError, MemoryError
"""The errors of SQLite. A damaged file raises the last two."""
END = (1 << 63) - 1  # above the number of any row
WRITTEN = 400  # rows in a statement that writes, since SQLite accepts at least 999 parameters
PATIENCE = 1.0  # seconds between two checks that the thread is alive
Changes: TypeAlias = Mapping[Key, tuple[Record | None, bool]]
"""By key: the record to write, or None to delete the row; and whether it is news, so that the row gets a new number."""
_LEAST_BYTES = 512  # the minimum size of an SQLite file, which is one page
_NO_STORE = "is not a store: its file is not a database; it was left as it is"
_ADVICE = {
    "is locked": f"another process has locked it for {LOCK_SECONDS} seconds; try again later",
    "is full": "free some disk space",
    "disk I/O": "the disk has failed, or is full",
    "readonly": "this user may not write it, or its file system is read-only",
    "unable to open": "this user has no permission to open it, or to create files in its directory",
    "no such column": "its table belongs to another program; name another store with NEARDUP_STORE",
    "": "it is damaged; restore a backup, or name another store with NEARDUP_STORE",
}


def table_of(namespace: str) -> str:
    """Return the name of the SQLite table that has the rows of a namespace."""
    return TABLE + (f"/{quote(namespace, safe='')}" if namespace else "")


def open_database(path: str, table: str = TABLE, *, writes: bool, check: bool = True) -> sqlite3.Connection:
    """Open the file of a store. With `writes`, create a missing file or table.

    `check=False` opens a damaged file too, so that it can be inspected. Use the connection in one thread at a time.
    Raise StoreError if the file can't be opened or created.
    """
    check_file(Path(path), writes)
    if writes:  # create it for its owner only, since URLs may have tokens; SQLite gives its log the same mode
        with suppress(OSError):  # it exists, or SQLite says why it can't be created
            os.close(os.open(path, os.O_CREAT | os.O_EXCL, 0o600))
    with store_errors(path, "opened"):
        db = sqlite3.connect(
            _address(Path(path), writes), uri=True, timeout=LOCK_SECONDS, isolation_level=None, check_same_thread=False
        )
        try:
            db.execute("PRAGMA trusted_schema=OFF")  # the file may be hostile
            db.execute(f"PRAGMA cache_size={-CACHE}")
            _check_content(path, db, check)
            _prepare(db, table, writes)
        except BaseException:
            db.close()
            raise
    return db


@contextmanager
def store_errors(path: str, what: str) -> Iterator[None]:
    """Convert SQLite's errors in a `with` block to StoreError with advice. `what`, such as "read", says what failed."""
    try:
        yield
    except ERRORS as error:
        raise failure(path, what, error) from error


def failure(path: str, what: str, error: Exception) -> StoreError:
    """Return a StoreError with advice for one of `ERRORS`. `what`, such as "read", says what failed."""
    why = " ".join(str(error).split())
    if "not a database" in why:
        return StoreError(f"store {path!r} {_NO_STORE}")
    advice = next(advice for sign, advice in _ADVICE.items() if sign in why)
    return StoreError(f"store {path!r} can't be {what}: {why}; {advice}; it was left as it is")


def check_file(path: Path, writes: bool) -> None:
    """Raise StoreError for a path where SQLite would raise an unclear error, or leave other files behind."""
    name = f"store {str(path)!r}"
    if not os.path.isdir(path.parent):
        raise StoreError(f"{name}: there is no directory {str(path.parent)!r}; create it first")
    if writes and not os.access(path.parent, os.W_OK):
        raise StoreError(f"{name} can't be written: this user needs permission to create files in its directory")
    try:
        size = path.stat().st_size
    except FileNotFoundError:
        return
    except (OSError, ValueError) as error:  # for example, the name is too long, or the folder is not accessible
        raise StoreError(f"{name} can't be opened: {getattr(error, 'strerror', error)}") from error
    if not path.is_file():
        raise StoreError(f"{name} is a directory, or no file; allowed is the path of a file")
    if not os.access(path, os.R_OK):
        raise StoreError(f"{name} can't be read: this user has no permission to")
    if writes and not os.access(path, os.W_OK):  # SQLite would leave files beside it that its owner can't write
        raise StoreError(f"{name} can't be written: this user may not write it, or its file system is read-only")
    if 0 < size < _LEAST_BYTES:  # SQLite treats a file of one byte as empty
        raise StoreError(f"{name} {_NO_STORE}")


def _address(path: Path, writes: bool) -> str:
    address = path.absolute().as_uri()
    if writes:
        return f"{address}?mode=rwc"
    # SQLite creates files beside a database even to read it. If it can't, and no process writes the database, open
    # the database as immutable.
    if all(os.access(place, os.W_OK) for place in (path, path.parent)):
        return f"{address}?mode=rw"
    return f"{address}?mode=ro" if Path(f"{path}-wal").exists() else f"{address}?mode=ro&immutable=1"


def _check_content(path: str, db: sqlite3.Connection, check: bool) -> None:
    ours = [*namespaces(db).values()]
    if tables(db) and not ours:
        raise StoreError(f"store {path!r} is an SQLite file but not a store of scrapy-neardup; it was left as it is")
    if check and ours:
        _check_formats(path, db, ours)
        db.execute("BEGIN")  # all reads see the same rows, even if another process begins a run
        _check_rows(db, ours)
        db.execute("COMMIT")


def namespaces(db: sqlite3.Connection) -> dict[str, str]:
    """Return the name of the table of each namespace, by namespace. Leave out tables of other programs."""
    return {unquote(name[len(TABLE) + 1 :]): name for name in tables(db) if f"{name}/".startswith(f"{TABLE}/")}


def tables(db: sqlite3.Connection) -> list[str]:
    query = "SELECT name FROM sqlite_master WHERE type = 'table' AND substr(name, 1, 7) != 'sqlite_'"
    return [name for (name,) in db.execute(query)]


def _check_rows(db: sqlite3.Connection, names: list[str]) -> None:
    """Raise sqlite3.DatabaseError if the file is damaged. Of a large file, read only the newest row of each table."""
    if db.execute("PRAGMA page_count").fetchone()[0] * PAGE <= SMALL:
        [said] = db.execute("PRAGMA integrity_check(1)").fetchone()
        if said != "ok":
            raise sqlite3.DatabaseError(said)
        for name in names:
            for key, value in db.execute(f'SELECT key, value FROM "{name}" NOT INDEXED'):
                if not is_intact(key, value):
                    raise sqlite3.DatabaseError(f"the checksum of row {key!r} does not match")
    for name in names:
        db.execute(f'SELECT key FROM "{name}" ORDER BY number DESC LIMIT 1').fetchone()


def _check_formats(path: str, db: sqlite3.Connection, names: list[str]) -> None:
    for name in names:
        for (value,) in db.execute(f'SELECT value FROM "{name}" WHERE key = ?', (MADE,)):
            try:
                merged(load(MADE, value), {})  # raises for another format
            except ValueError as error:
                raise StoreError(f"store {path!r} does not fit: {error}; it was left as it is") from error


def _prepare(db: sqlite3.Connection, table: str, writes: bool) -> None:
    """Create the table if it is missing: with `writes=False`, only as an empty, temporary table."""
    if not writes:
        if table not in tables(db):
            db.execute(f'CREATE TEMP TABLE "{table}" {_COLUMNS.replace(" AUTOINCREMENT", "")}')
        return
    if not tables(db):
        db.execute(f"PRAGMA page_size={PAGE}")  # must come first, since any other statement fixes the size
    _use_write_ahead_log(db)
    with db:
        db.execute("BEGIN IMMEDIATE")  # fails if the file can't be written
        db.execute(f'CREATE TABLE IF NOT EXISTS "{table}" {_COLUMNS}')


def _use_write_ahead_log(db: sqlite3.Connection) -> None:
    """Switch the file to a write-ahead log. Retry while another process creates the file."""
    end = time.monotonic() + LOCK_SECONDS
    while True:
        try:
            db.execute("PRAGMA journal_mode=WAL")
            return
        except sqlite3.OperationalError as error:
            # If several processes create the file at once, SQLite fails in all but one, without waiting.
            if "locked" not in str(error) or time.monotonic() > end:
                raise
            time.sleep(0.01)


class Writer:
    """Writes changes one after another, each in one transaction, through the thread of sqlitedict.

    It works around the pitfalls of sqlitedict:
    - A failed `commit()` kills the thread, and a caller that waits for a dead thread waits for ever. So COMMIT is sent
      as a statement, whose failure only raises. All waits check that the thread is alive.
    - A statement's error is raised only at the next statement, and statements queued behind the failed one are still
      executed. So a second thread sends each statement when the one before it has ended. The crawl does not wait.
    - sqlitedict sets `synchronous=OFF`, and has no option for the lock timeout. Both are set here on its connection.
    - It logs each error several times. Here its log is off, and the caller gets the error once.
    """

    def __init__(self, path: str, table: str) -> None:
        self._path = path
        self._table = table
        self.first = END  # the number of the first new row of the last write, set just before its COMMIT
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
        """Start to write changes. The future returns the number of the first new row. The others follow without gaps.

        If the write fails, nothing is written, and the future raises StoreError.
        """
        self.first = END
        return self._thread.submit(self._write, changes)

    def _write(self, changes: Changes) -> int:
        with store_errors(self._path, "written"):
            self._do("BEGIN IMMEDIATE")
            try:
                [first] = self._do("SELECT max(seq) + 1 FROM sqlite_sequence WHERE name = ?", [self._table])
                for statement, arguments in self._statements(changes):
                    self._do(statement, arguments)
                self.check_file()
                self.first = first or 1
                self._do("COMMIT")
            except BaseException:
                self.first = END
                with suppress(Exception):
                    self._do("ROLLBACK")
                raise
        return self.first

    def _statements(self, changes: Changes) -> Iterator[tuple[str, list[Any]]]:
        deleted: list[list[Any]] = [[key] for key, (record, _) in changes.items() if record is None]
        yield from _for_some(f'DELETE FROM "{self._table}" WHERE key IN (', deleted, ")", "?")
        into = f'INTO "{self._table}" (key, value) VALUES '
        rows = {key: [key, dump(key, record)] for key, (record, _) in changes.items() if record is not None}
        yield from _for_some(f"REPLACE {into}", [row for key, row in rows.items() if changes[key][1]])
        update = " ON CONFLICT (key) DO UPDATE SET value = excluded.value"
        yield from _for_some(f"INSERT {into}", [row for key, row in rows.items() if not changes[key][1]], update)

    def check_file(self) -> None:
        """Raise StoreError if the file was deleted or replaced: SQLite would go on writing to the old one."""
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
    """Yield statements for `WRITTEN` rows at a time, with their arguments: `begin`, a `mark` for each row, `end`."""
    for at in range(0, len(rows), WRITTEN):
        some = rows[at : at + WRITTEN]
        yield f"{begin}{','.join([mark] * len(some))}{end}", [value for row in some for value in row]
