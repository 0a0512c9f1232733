"""Inspection of a store's file, and of the index beside it: all that can be read of them, whatever is damaged."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path
from urllib.parse import quote, unquote

from ...watching import watched
from ..consistency import Consistency
from ..damage import DAMAGE
from ..findings import Finding, Notes, Survey
from .database import TABLE, is_ours, open_database, tables
from .files import Files, folder_of, size_of

_ANEW = "nothing: it is made anew when the store is next opened for writing"
_SLOW = "look-ups that it should answer find nothing until then: pages are stored, or fetched, once more"
_SPARE = "nothing but room on the disk: a process that was killed left it, or one is making it"
_REMOVED = "nothing: it is removed when the index next grows; or remove it while nobody uses the store"


def inspect(path: str, survey: Survey) -> None:
    """Read all of a store's file. Raise StoreError where it can't be opened, or is none of ours."""
    files = _files(path)
    with closing(open_database(path, writes=False, check=False)) as db:
        db.text_factory = lambda text: text.decode("utf8", "replace")
        names = _begin(db, path, survey)
        is_whole = _check_file(db, survey)
        for table in names:
            _inspect_table(db, table, survey, is_whole=is_whole)
        if db.in_transaction:  # else an error has ended it
            db.execute("ROLLBACK")
    in_use = {folder_of(path) / quote(table, safe="") / name for table, listed in names.items() for name in listed}
    for file in files:
        if file not in in_use and file.exists():
            survey.findings.append(Finding(f"file {str(file)!r} is none of the index", _SPARE, _REMOVED, harmless=True))
    survey.read["bytes"] += sum(map(size_of, (Path(path), Path(f"{path}-wal"), *in_use)))


def _files(path: str) -> list[Path]:
    return sorted(file for file in folder_of(path).rglob("*") if file.is_file() and file.suffix != ".lock")


# The index


def _begin(db: sqlite3.Connection, path: str, survey: Survey) -> dict[str, list[str]]:
    """Begin to read the file as it is now; return its tables, each with the files of its index, which are checked.

    Others may put files into others meanwhile: then begin once more.
    """
    while True:
        db.execute("BEGIN")
        found: dict[str, list[str]] = {}
        findings: list[Finding] = []
        for table in filter(is_ours, tables(db)):
            found[table] = _listed(Files(path, table), db)
            findings += _inspect_index(Files(path, table), found[table])
        if not findings or found == _listed_anew(db, path, found):
            survey.read["index_files"] += sum(map(len, found.values()))
            survey.findings += findings
            return found


def _listed_anew(db: sqlite3.Connection, path: str, before: dict[str, list[str]]) -> dict[str, list[str]]:
    """Return what the store tells of the files of its index by now; the next transaction may begin."""
    db.execute("ROLLBACK") if db.in_transaction else None
    db.execute("BEGIN")
    found = {table: _listed(Files(path, table), db) for table in before}
    if found != before:
        db.execute("ROLLBACK")
    return found


def _listed(files: Files, db: sqlite3.Connection) -> list[str]:
    with suppress(sqlite3.Error, *DAMAGE):  # told of where the row is read
        return files.listed(db)
    return []


def _inspect_index(files: Files, names: list[str]) -> Iterator[Finding]:
    for name in names:
        try:
            files.opened(name, check=True)
        except (OSError, *DAMAGE) as error:
            why = getattr(error, "strerror", None) or " ".join(str(error).split())
            yield Finding(
                f"file {str(files.folder / name)!r} of the index can't be read: {why}", _SLOW, _ANEW, harmless=True
            )


# The file


def _check_file(db: sqlite3.Connection, survey: Survey) -> bool:
    """Have SQLite check its file; return whether it is whole."""
    try:
        said = [str(line) for (line,) in db.execute("PRAGMA integrity_check")]
    except sqlite3.Error as error:
        said = [str(error)]
    if said != ["ok"]:
        what = "; ".join(" ".join(line.split()) for line in said)
        survey.findings.append(Finding(f"the file: SQLite says {what}", "rows of it may be lost: see what follows"))
    return said == ["ok"]


def _inspect_table(db: sqlite3.Connection, table: str, survey: Survey, *, is_whole: bool) -> None:
    notes = Notes(unquote(table.removeprefix(TABLE).removeprefix("/")))
    rows = _Rows(db, table, Consistency(notes))
    rows.read()
    rows.content.check(is_quiet=is_whole)  # what is lost is not to be blamed on others
    survey.read.update({name: rows.content.read[name] for name in ("rows", "documents", "links", "runs")})
    survey.findings += notes.findings()


class _Rows:
    """The rows of a table, read from both ends of it up to what is damaged, and one by one in between."""

    def __init__(self, db: sqlite3.Connection, table: str, content: Consistency) -> None:
        self.content = content
        self._db = db
        self._table = table
        self._why = ""

    def read(self) -> None:
        """Read all that can be read."""
        first, after = 0, self._end()
        for number in watched(self._ascending(), "rows"):
            first = number
        if self._why:
            for number in self._descending(first):
                after = number
            self._read_between(first, after)

    def _end(self) -> int:
        """Return a number above those of all rows, as far as that can be told."""
        with suppress(sqlite3.Error, TypeError):
            return (
                int(self._db.execute("SELECT seq FROM sqlite_sequence WHERE name = ?", (self._table,)).fetchone()[0])
                + 1
            )
        return 1

    def _ascending(self) -> Iterator[int]:
        return self._taken("number > 0 ORDER BY number")

    def _descending(self, after: int) -> Iterator[int]:
        return self._taken(f"number > {after} ORDER BY number DESC")

    def _taken(self, where: str) -> Iterator[int]:
        """Take in rows up to one that can't be read, and yield their numbers."""
        query = f'SELECT number, key, value FROM "{self._table}" NOT INDEXED WHERE {where}'
        try:
            for number, key, value in self._db.execute(query):
                self.content.take(str(key), value)
                yield number
        except (sqlite3.Error, MemoryError) as error:
            self._why = str(error)

    def _read_between(self, first: int, after: int) -> None:
        """Read rows between two numbers one by one. The index of keys may tell what is lost."""
        keys, lost = self._keys(first, after), 0
        query = f'SELECT number, key, value FROM "{self._table}" NOT INDEXED WHERE number = ?'
        for number in range(first + 1, after):
            try:
                if row := self._db.execute(query, (number,)).fetchone():
                    self.content.take(str(row[1]), row[2])
                elif number in keys:
                    raise sqlite3.DatabaseError("only the index of the file has it")
            except (sqlite3.Error, MemoryError) as error:
                if number in keys:
                    self.content.give_up(keys[number], error)
                lost += number not in keys
        self.content.lose(lost, self._why)

    def _keys(self, first: int, after: int) -> dict[int, str]:
        """Return the keys of rows by number, as far as the index of keys tells, read from both of its ends."""
        found: dict[int, str] = {}
        for direction in ("", " DESC"):
            with suppress(sqlite3.Error):
                for number, key in self._db.execute(f'SELECT number, key FROM "{self._table}" ORDER BY key{direction}'):
                    if first < number < after:
                        found[number] = str(key)
        return found
