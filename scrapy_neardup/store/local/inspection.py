"""Inspection of a store's file, and of the index beside it: all that can be read of them, whatever is damaged."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path
from urllib.parse import unquote

from ...watching import watched
from ..consistency import Consistency
from ..damage import DAMAGE
from ..findings import Finding, Notes, Survey
from .database import TABLE, is_ours, open_database, tables
from .files import Files, size_of

_END = 1 << 62  # above the numbers of all rows
_ANEW = "nothing: it is made anew when the store is next opened for writing"
_SLOW = "look-ups that it should answer find nothing until then: pages are stored, or fetched, once more"
_SPARE = "nothing but room on the disk: a process that was killed left it, or one is making it"
_REMOVED = "nothing: it is removed when the index next grows; or remove it while nobody uses the store"


def inspect(path: str, survey: Survey) -> None:
    """Read all of a store's file. Raise StoreError where it can't be opened, or is none of ours."""
    with closing(open_database(path, writes=False, check=False)) as db:
        db.text_factory = lambda text: text.decode("utf8", "replace")
        names = [table for table in tables(db) if is_ours(table)]
        files = _inspect_index(db, [Files(path, table) for table in names], survey)
        with suppress(sqlite3.Error):
            db.execute("BEGIN")  # to read it as it is now
        is_whole = _check_file(db, survey)
        for table in names:
            _inspect_table(db, table, survey, is_whole=is_whole)
    survey.read["bytes"] += sum(map(size_of, (Path(path), Path(f"{path}-wal"), *files)))


def _inspect_index(db: sqlite3.Connection, indexes: list[Files], survey: Survey) -> set[Path]:
    """Check the files of the index, and return them."""
    there = {file for each in indexes for file in each.folder.glob("*")}
    while True:
        in_use = {each.folder / name: each for each in indexes for name in _listed(each, db)}
        findings = [found for file, index in in_use.items() for found in _inspect_file(index, file)]
        if not findings or in_use.keys() == {each.folder / name for each in indexes for name in _listed(each, db)}:
            break  # else another process has just put them into others
    litter = sorted(file for file in there - in_use.keys() if file.exists())
    survey.findings += findings
    survey.findings += [Finding(f"file {str(file)!r} is none of the index", _SPARE, _REMOVED, True) for file in litter]
    survey.read["index_files"] += len(in_use)
    return {*in_use}


def _listed(files: Files, db: sqlite3.Connection) -> list[str]:
    with suppress(sqlite3.Error, *DAMAGE):  # told of where the row is read
        return files.listed(db)
    return []


def _inspect_file(files: Files, file: Path) -> Iterator[Finding]:
    try:
        files.opened(file.name, check=True)
    except (OSError, *DAMAGE) as error:
        why = getattr(error, "strerror", None) or " ".join(str(error).split())
        yield Finding(f"file {str(file)!r} of the index can't be read: {why}", _SLOW, _ANEW, harmless=True)


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
    rows = Consistency(notes)
    _read(db, table, rows)
    rows.check(is_quiet=is_whole)  # what is lost is not to be blamed on others
    survey.read.update({name: rows.read[name] for name in ("rows", "documents", "links", "runs")})
    survey.findings += notes.findings()


def _read(db: sqlite3.Connection, table: str, rows: Consistency) -> None:
    """Read the rows of a table from both ends of it up to what is damaged, and one by one in between."""
    query = f'SELECT number, key, value FROM "{table}" NOT INDEXED WHERE number > ? AND number < ? ORDER BY number'
    first, why = _take(db, query, 0, _END, rows)
    if not why:
        return
    last, _ = _take(db, f"{query} DESC", first, _END, rows)
    with suppress(sqlite3.Error, TypeError):
        [highest] = db.execute("SELECT seq FROM sqlite_sequence WHERE name = ?", (table,)).fetchone()
        last = min(last or _END, int(highest) + 1)
    between = range(first + 1, last if last < _END else first + 1)
    rows.lose(sum(bool(_take(db, query, number - 1, number + 1, rows)[1]) for number in between), why)


def _take(db: sqlite3.Connection, query: str, after: int, before: int, rows: Consistency) -> tuple[int, str]:
    """Take in rows up to one that can't be read; return the number of the last one that could, and why no more."""
    number = 0
    try:
        for row in watched(db.execute(query, (after, before)), "rows"):
            number = row[0]
            rows.take(str(row[1]), row[2])
    except (sqlite3.Error, MemoryError) as error:
        return number, str(error)
    return number, ""
