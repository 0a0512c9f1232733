"""Verify the file and the index of a store, however damaged they are."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing, suppress

from ...index.level_files import read_level
from ...progress import watched
from ..interface import StoreError
from ..verification import Finding, Survey, Verification
from .database import key_in, namespaces, open_database
from .stored_index import files_of, fits

_ANEW = "nothing: the next crawl rebuilds it"
_REFUSED = (
    "restore a backup of the store, or delete damaged rows of documents and visits, with their keys:"
    " DELETE FROM neardup WHERE key = 'KEY', or WHERE key = X'HASH' for visit/HASH"
)
_SLOW = "until then, each opening of the store takes longer, since the index is rebuilt in memory"


def inspect(path: str, survey: Survey) -> None:
    """Verify the whole file of a store, and add findings to `survey`.

    Raise StoreError if the file can't be opened, or is not a store of this package.
    """
    survey.read["index_files"] = 0
    with closing(open_database(path, writes=False, check=False)) as db:
        db.text_factory = lambda text: text.decode("utf8", "replace")
        tables = namespaces(db)
        for table in tables.values():
            _inspect_index(path, table, db, survey)
        db.execute("BEGIN")  # all reads see the same snapshot
        _check_file(db, survey)
        for namespace, table in tables.items():
            rows = Verification(survey, namespace)
            _read(db, table, rows)
            rows.check()
    _check_opening(path, survey)


def _inspect_index(path: str, table: str, db: sqlite3.Connection, survey: Survey) -> None:
    for file, span in files_of(path, table).ranges().items():
        try:
            level, samples = read_level(file, check=True)
            if (level.first, level.last) != span or not fits(db, table, level, samples):
                raise ValueError("it belongs to other rows")
            survey.read["index_files"] += 1
        except (OSError, ValueError, sqlite3.Error) as error:
            if file.exists():  # otherwise another process has just put another file in its place
                why = getattr(error, "strerror", None) or error
                what = f"file {str(file)!r} of the index can't be read: {why}"
                survey.note(Finding(what, _SLOW, _ANEW, harmless=True))


def _check_file(db: sqlite3.Connection, survey: Survey) -> None:
    """Run SQLite's integrity check."""
    try:
        said = "; ".join(str(line) for (line,) in db.execute("PRAGMA integrity_check"))
    except sqlite3.Error as error:
        said = str(error)
    if said != "ok":
        survey.note(Finding(f"the file: SQLite says {said}", "rows of it may be lost: see what follows"))


def _check_opening(path: str, survey: Survey) -> None:
    """Add a finding if a crawl can't open the store. In a small file, a single damaged row prevents it."""
    try:
        open_database(path, writes=False).close()
    except StoreError as error:
        survey.note(Finding(str(error), "crawls and commands refuse the store", _REFUSED))


def _read(db: sqlite3.Connection, table: str, rows: Verification) -> None:
    for key, value in watched(_rows(db, table), "rows"):
        if isinstance(value, Exception):
            rows.lose(value)
        else:
            rows.take(key, value)


def _rows(db: sqlite3.Connection, table: str) -> Iterator[tuple[str, object]]:
    """Yield the key and value of each row of a table. If a row can't be read, yield "" and the error instead."""
    query = f'SELECT number, key, value FROM "{table}" NOT INDEXED WHERE number > ? ORDER BY number'
    last = after = 0
    with suppress(sqlite3.Error, TypeError):
        [last] = db.execute("SELECT seq FROM sqlite_sequence WHERE name = ?", (table,)).fetchone()
    while after <= last:
        try:
            for number, key, value in db.execute(query, (after,)):
                after = max(after, number)
                yield key_in(key), value
            return
        except (sqlite3.Error, MemoryError) as error:
            yield "", error
        after += 1
