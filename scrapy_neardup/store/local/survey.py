"""Reading all of a store's file and index, be they damaged."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from urllib.parse import unquote

from ..base import Row
from ..damage import DAMAGE
from ..verification import Finding, Space, Survey
from .database import is_ours, open_database, tables
from .files import Files, folder_of
from .sqlite import size_of
from .table import Table

_HARMLESS = "nothing: the index is made anew of the rows"


def read_file(path: str, survey: Survey) -> None:
    """Read a store at a path, as it is at one moment. Raise StoreError where it can't be opened, or is none of ours."""
    path = os.path.realpath(path)
    with closing(open_database(path, writes=False, check=False)) as db:
        db.text_factory = lambda text: text.decode("utf8", "replace")
        db.execute("BEGIN")
        is_whole = _check_file(db, survey)
        for table in filter(is_ours, _tables(db)):
            space = Space(unquote(table.partition("/")[2]), survey)
            if is_whole:
                [[count]] = db.execute(f'SELECT count(*) FROM "{table}"')
                space.read(_rows(db, table), count)
            else:
                space.read(_readable(db, table, space))
            space.end()
            _check_index(db, path, table, space)
        if db.in_transaction:  # else an error has ended it
            db.execute("ROLLBACK")
    survey.read["bytes"] = sum(size_of(Path(each)) for each in (path, f"{path}-wal"))
    survey.read["bytes"] += sum(size_of(file) for file in folder_of(path).rglob("*.idx"))


def _tables(db: sqlite3.Connection) -> list[str]:
    try:
        return tables(db)
    except sqlite3.Error:  # the head is damaged: told already
        return []


def _check_file(db: sqlite3.Connection, survey: Survey) -> bool:
    """Have SQLite check its file; return whether it finds nothing."""
    try:
        told = [str(line) for (line,) in db.execute("PRAGMA integrity_check")]
    except sqlite3.Error as error:
        told = [str(error)]
    if told != ["ok"]:
        what = "; ".join(" ".join(line.split()) for line in told)
        survey.findings.append(Finding(f"the file: SQLite says {what}", "rows of it may be lost: see what follows"))
    return told == ["ok"]


def _rows(db: sqlite3.Connection, table: str) -> Iterator[Row]:
    return (Row(*row) for row in db.execute(f'SELECT key, value FROM "{table}" ORDER BY number'))


def _readable(db: sqlite3.Connection, table: str, space: Space) -> Iterator[Row]:
    """Yield the rows of a damaged table that can be read, from both of its ends and by the index of its keys."""
    seen: dict[int, str] = {}
    for direction in ("", " DESC"):
        try:
            query = f'SELECT number, key, value FROM "{table}" NOT INDEXED ORDER BY number{direction}'
            for number, key, value in db.execute(query):
                if number in seen:
                    break
                seen[number] = key
                yield Row(str(key), value if isinstance(value, bytes) else b"")
        except sqlite3.Error:
            continue
    for number, key in _keys(db, table).items():
        if number not in seen:
            space.give_up(key, "its page is damaged")
        elif seen[number] != key:
            space.give_up(key, f"the table has it as {seen[number]!r}")


def _keys(db: sqlite3.Connection, table: str) -> dict[int, str]:
    """Return the keys by number, as the index of the table has them, as far as it can be read."""
    found: dict[int, str] = {}
    for direction in ("", " DESC"):
        try:
            for number, key in db.execute(f'SELECT number, key FROM "{table}" ORDER BY key{direction}'):
                found[number] = str(key)
        except sqlite3.Error:
            continue
    return found


def _check_index(db: sqlite3.Connection, path: str, table: str, space: Space) -> None:
    """Tell of files of the index that can't be read, or that nothing names."""
    files = Files(path, table)
    try:
        names = files.names(db)
    except (sqlite3.Error, *DAMAGE) as error:
        space.find(f"the list of the index's files can't be read: {error}", _HARMLESS, harmless=True)
        return
    for name in names:
        try:
            Table.read(files.folder / name, check=True)
        except (OSError, *DAMAGE) as error:
            what = f"file {str(files.folder / name)!r} of the index is missing or damaged: {error}"
            costs = "copies may not be found, until it is made anew"
            space.find(what, costs, f"remove {str(files.folder)!r}: it is made anew of the rows", harmless=True)
    for file in sorted(files.folder.glob("*.idx*")) if files.folder.is_dir() else ():
        if file.name not in names and file.exists():
            costs = "nothing but room on the disk: a process that was killed left it, or one is making it"
            space.find(f"file {str(file)!r} is none of the index", costs, "nothing", harmless=True)
