"""The SQLite file of a store: checks before it is opened, and errors that say what to do."""

from __future__ import annotations

import os
import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from urllib.parse import quote, unquote

from .. import meta
from ..interface import StoreError
from ..records import is_intact, load

TABLE = "neardup"
LOCK_SECONDS = 30  # how long to wait for another process
CACHE = 16_000  # KB of pages that are kept in memory
PAGE = 16_384  # bytes: of smaller pages a tenth is left over, as a row takes some 800
# A number is never used again, and a row that is replaced gets a new one: so numbers above those known are news.
_COLUMNS = "(number INTEGER PRIMARY KEY AUTOINCREMENT, key TEXT NOT NULL UNIQUE, value BLOB)"
SMALL = 2**25  # bytes of a file of which all is read whenever it is opened, to compare checksums: 0.1 s
FILLED = 0.7  # of a file by its rows: what is less is written anew, which takes some seconds a gigabyte
_LEAST_BYTES = 512  # of an SQLite file: one page
_ADVICE = {
    "is locked": f"another process has had it to itself for {LOCK_SECONDS} seconds; try again when that is done",
    "is full": "make room on the disk",
    "disk I/O": "the disk has failed, or is full",
    "readonly": "this user may not write it, or its file system is read-only",
    "unable to open": "this user must be allowed to write it and to make files in its directory",
    "no such column": "its table is no store's: another program made it; name another store with NEARDUP_STORE",
    "": "it is damaged; bring back a copy of it, or name another store with NEARDUP_STORE",
}


def table_of(namespace: str) -> str:
    """Return the table of a namespace."""
    return TABLE + (f"/{quote(namespace, safe='')}" if namespace else "")


def open_database(path: str, table: str = TABLE, *, writes: bool, check: bool = True) -> sqlite3.Connection:
    """Open a store's file to read it; with `writes` make a table that is not there. Raise StoreError.

    Without `check` it may be damaged: this is for who looks for the damage. It is used by one thread at a time.
    """
    check_file(Path(path), writes)
    with told(path, "opened"):
        db = sqlite3.connect(
            _address(Path(path), writes), uri=True, timeout=LOCK_SECONDS, isolation_level=None, check_same_thread=False
        )
        try:
            db.execute("PRAGMA trusted_schema=OFF")  # the file may be a stranger's
            db.execute(f"PRAGMA cache_size={-CACHE}")
            _check_content(path, db, check)
            _prepare(db, table, writes)
            if check:
                _check_format(path, db, table)
        except BaseException:
            db.close()
            raise
    return db


@contextmanager
def told(path: str, what: str) -> Iterator[None]:
    """Raise StoreError in place of SQLite's errors: what can't be done to the store, why, and what to do."""
    try:
        yield
    except (sqlite3.Error, UnicodeDecodeError, MemoryError) as error:  # the last two by what is damaged
        why = " ".join(str(error).split())
        advice = next(advice for sign, advice in _ADVICE.items() if sign in why)
        raise StoreError(f"store {path!r} can't be {what}: {why}; {advice}; it was left as it is") from error


def check_file(path: Path, writes: bool) -> None:
    """Raise StoreError for what SQLite has no clear word for, or would make files beside before it refused it."""
    name = f"store {str(path)!r}"
    if not os.path.isdir(path.parent):
        raise StoreError(f"{name}: there is no directory {str(path.parent)!r}; make it first")
    if writes and not os.access(path.parent, os.W_OK):
        raise StoreError(f"{name} can't be written: this user must be allowed to make files in its directory")
    if not _exists(path):
        return
    if not path.is_file():
        what = "a directory" if path.is_dir() else "no file"
        raise StoreError(f"{name} is {what}; allowed is the path of a file")
    if not os.access(path, os.R_OK):
        raise StoreError(f"{name} can't be read: this user has no permission to")
    if writes and not os.access(path, os.W_OK):
        raise StoreError(f"{name} can't be written: this user may not write it, or its file system is read-only")
    if not _may_be_database(path):
        raise StoreError(f"{name} is no store: its file is not a database; it was left as it is")


def _exists(path: Path) -> bool:
    try:
        path.stat()
    except FileNotFoundError:
        return False
    except (OSError, ValueError) as error:  # a name that is too long, a folder that may not be looked into
        raise StoreError(f"store {str(path)!r} can't be opened: {getattr(error, 'strerror', error)}") from error
    return True


def _may_be_database(path: Path) -> bool:
    """Return whether a file begins as SQLite's do.

    SQLite itself is asked: its locks are those of the process, so to open the file and close it again would let go of
    them for all stores that are open on it. Others could then delete the write-ahead log that these write to.
    """
    if path.stat().st_size < _LEAST_BYTES:  # of a single byte SQLite thinks that it is nothing
        return path.stat().st_size == 0
    try:
        with closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro&immutable=1", uri=True)) as db:
            db.execute("PRAGMA schema_version")
    except sqlite3.Error as error:
        return "not a database" not in str(error)
    return True


def _address(path: Path, writes: bool) -> str:
    address = path.absolute().as_uri()
    if writes:
        return f"{address}?mode=rwc"
    # SQLite locks with files beside what it reads. Where it can't make them, a file that nobody has open is read as is.
    if all(os.access(place, os.W_OK) for place in (path, path.parent)):
        return f"{address}?mode=rw"
    return f"{address}?mode=ro" if Path(f"{path}-wal").exists() else f"{address}?mode=ro&immutable=1"


def _check_content(path: str, db: sqlite3.Connection, check: bool) -> None:
    names = tables(db)
    if names and not any(is_ours(name) for name in names):
        raise StoreError(f"store {path!r} is an SQLite file but no store of scrapy-neardup; it was left as it is")
    if check and names:
        _check_rows(db, [name for name in names if is_ours(name)])


def namespaces(db: sqlite3.Connection) -> dict[str, str]:
    """Return the tables of all namespaces."""
    return {unquote(table[len(TABLE) + 1 :]): table for table in tables(db) if is_ours(table)}


def is_ours(table: str) -> bool:
    """Return whether a table is that of a namespace."""
    return table == TABLE or table.startswith(f"{TABLE}/")


def tables(db: sqlite3.Connection) -> list[str]:
    """Return the names of all tables, but SQLite's own."""
    query = "SELECT name FROM sqlite_master WHERE type = 'table' AND substr(name, 1, 7) != 'sqlite_'"
    return [name for (name,) in db.execute(query)]


def _check_rows(db: sqlite3.Connection, names: list[str]) -> None:
    """Raise sqlite3.DatabaseError for damage: anywhere in a small file, else in the pages that a crawl begins with."""
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


def _check_format(path: str, db: sqlite3.Connection, table: str) -> None:
    for (value,) in db.execute(f'SELECT value FROM "{table}" WHERE key = ?', (meta.KEY,)):
        try:
            meta.merged(load(meta.KEY, value), {})
        except ValueError as error:
            raise StoreError(f"store {path!r} does not fit: {error}; it was left as it is") from error


def _prepare(db: sqlite3.Connection, table: str, writes: bool) -> None:
    """Make the table if it is missing; for a reader, an empty one that is not in the file."""
    if not writes:
        if table not in tables(db):
            db.execute(f'CREATE TEMP TABLE "{table}" {_COLUMNS.replace(" AUTOINCREMENT", "")}')
        return
    if not tables(db):
        db.execute(f"PRAGMA page_size={PAGE}")  # first: any other statement settles it
        db.execute("PRAGMA auto_vacuum=INCREMENTAL")  # of a file with tables it would only change the head
    _keep_ahead(db)
    with db:
        db.execute("BEGIN IMMEDIATE")  # fails where the file can't be written
        db.execute(f'CREATE TABLE IF NOT EXISTS "{table}" {_COLUMNS}')


def _keep_ahead(db: sqlite3.Connection) -> None:
    """Switch to a write-ahead log."""
    end = time.monotonic() + LOCK_SECONDS
    while True:
        try:
            db.execute("PRAGMA journal_mode=WAL")
            return
        except sqlite3.OperationalError as error:
            # Of several processes that make one file at once, SQLite lets all but one fail without any waiting.
            if "locked" not in str(error) or time.monotonic() > end:
                raise
            time.sleep(0.01)


def shrink(db: sqlite3.Connection) -> None:
    """Give back the room of a file that is not in use. Rows keep their numbers."""
    sums = [
        db.execute(f'SELECT sum(length(key) * 2 + length(value)) FROM "{table}"').fetchone() for table in tables(db)
    ]
    [pages] = db.execute("PRAGMA page_count").fetchone()
    if sum(size or 0 for (size,) in sums) < FILLED * pages * PAGE:  # then pages are half empty, and not only free
        db.execute("VACUUM")
    db.executescript("PRAGMA incremental_vacuum")  # a single statement would give back a single page
    db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
