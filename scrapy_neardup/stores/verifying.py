"""Reading all of a store, of whatever namespace: what is damaged, what that costs, and what to do. Changes nothing."""

from __future__ import annotations

import os
import sqlite3
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, suppress
from pathlib import Path

from ..signature import Key
from ..watching import watched
from . import manifest, segments
from .database import TABLE, open_database
from .inspecting import Finding, Survey, inspect, mapped
from .meta import merge_meta
from .part import Part
from .redis.address import is_server
from .rows import costs, named, split
from .runs import Run
from .spaces import Space, contradictions

_READ = ("rows", "segments", "parts", "documents", "links", "bytes")
_UNLISTED = "its documents are unknown: their pages are stored once more"


def verify(address: str) -> Survey:
    """Read all of a store at a path or on a server. Raise StoreError where it can't be opened, or is none of ours."""
    if not is_server(address):
        return _verify_file(os.path.realpath(address))
    from .redis.verifying import verify_server

    return verify_server(address)


def _verify_file(path: str) -> Survey:
    survey = Survey(Counter(dict.fromkeys(_READ, 0)))
    with closing(open_database(path, writes=False, check=False)) as db:
        db.text_factory = lambda text: text.decode("utf8", "replace")
        spaces = _begin(db, path)
        _check_file(db, survey)
        _read_rows(db, survey, spaces)
        for space in spaces.values():
            _check_space(survey, space)
        _end(db)
        survey.findings += _litter(db, path, survey.whole)
    survey.read["bytes"] += sum(os.path.getsize(file) for file in (path, f"{path}-wal") if os.path.exists(file))
    return survey


# The file


def _begin(db: sqlite3.Connection, path: str) -> dict[str, Space]:
    """Begin to read the file as it is now, with the parts that it names mapped: others may replace them meanwhile."""
    before: Mapping[str, bytes] = {}
    while True:
        db.execute("BEGIN")
        listed = _manifests(db)
        spaces = {}
        for key, value in listed.items():
            with suppress(ValueError):  # told of where the row is read
                spaces[key[6:]] = Space(key[6:], parts=mapped(path, value))
        if listed == before or not any(part.is_missing for space in spaces.values() for part in space.parts):
            return spaces
        before = listed
        _end(db)


def _end(db: sqlite3.Connection) -> None:
    if db.in_transaction:  # else an error has ended it
        db.execute("ROLLBACK")


def _manifests(db: sqlite3.Connection) -> dict[str, bytes]:
    """Return the lists of parts that can be read."""
    found: dict[str, bytes] = {}
    for number, keys in _rows(db).items():
        with suppress(sqlite3.Error, ValueError):
            if any(key.startswith("parts/") for key in keys):
                key, value = _row(db, number, keys)
                found[key] = value
    return found


def _check_file(db: sqlite3.Connection, survey: Survey) -> None:
    """Have SQLite check its file."""
    try:
        said = [str(line) for (line,) in db.execute("PRAGMA integrity_check")]
    except sqlite3.Error as error:
        said = [str(error)]
    if said != ["ok"]:
        what = "; ".join(" ".join(line.split()) for line in said)
        survey.findings.append(Finding(f"the file: SQLite says {what}", "rows of it may be lost: see what follows"))


def _rows(db: sqlite3.Connection) -> dict[int, set[str]]:
    """Return the rows by number, each with its key in the table and in the index: one may tell what the other lost."""
    found: dict[int, set[str]] = {}
    for order in ("NOT INDEXED ORDER BY rowid", "ORDER BY key"):
        for direction in ("", " DESC"):  # from both ends up to what is damaged
            with suppress(sqlite3.Error):
                for number, key in db.execute(f"SELECT rowid, key FROM {TABLE} {order}{direction}"):
                    found.setdefault(number, set()).add(str(key))
    return found


def _row(db: sqlite3.Connection, number: int, keys: set[str]) -> tuple[str, bytes]:
    """Return the key and the value of a row; raise ValueError, or SQLite's errors, where it is damaged."""
    row = db.execute(f"SELECT key, value FROM {TABLE} NOT INDEXED WHERE rowid = ?", (number,)).fetchone()
    if row is None:
        raise ValueError("only the index of the file has it")
    if len(keys) > 1 or not isinstance(row[1], bytes) or not isinstance(row[0], str):
        raise ValueError("its key or its value is damaged")
    return row[0], row[1]


def _read_rows(db: sqlite3.Connection, survey: Survey, spaces: dict[str, Space]) -> None:
    rows = _rows(db)
    survey.read["rows"] = len(rows)
    for number, keys in watched(sorted(rows.items()), "rows", len(rows)):
        name = " or ".join(sorted(map(named, keys)))
        try:
            _read_row(survey, spaces, *_row(db, number, keys))
        except Exception as error:  # whatever damage, or a stranger, may have brought in
            _give_up(spaces, min(keys))
            why = " ".join(str(error).split())
            survey.findings.append(Finding(f"{name} can't be read: {why}", costs(min(keys))))


# Rows


def _give_up(spaces: dict[str, Space], key: str) -> None:
    """Take note of what can't be read, so that others are not blamed for it."""
    with suppress(ValueError):
        kind, name, run, number = split(key)
        space = spaces.setdefault(name, Space(name))
        if kind == "run":
            space.runs[run] = None
        if kind == "segment":
            space.documents[run, number] = None
        space.has_meta |= kind == "meta"
        space.lacks_parts |= kind == "parts"


def _read_row(survey: Survey, spaces: dict[str, Space], key: str, value: bytes) -> None:
    kind, name, run, number = split(key)
    space = spaces.setdefault(name, Space(name))
    if kind == "meta":
        merge_meta(value, {})
        space.has_meta = True
    elif kind == "run":
        space.runs[run] = _run(run, value)
    elif kind == "parts":
        manifest.names(value)
    else:
        _read_segment(survey, space, run, number, value)


def _run(name: str, value: bytes) -> Run:
    run = Run.load(value)
    if run.id != name:
        raise ValueError(f"it is that of run {run.id!r}")
    return run


def _read_segment(survey: Survey, space: Space, run: str, number: int, value: bytes) -> None:
    leads_to: list[Key] = []
    found: Callable[[Key], None] = leads_to.append
    batch = segments.decode(run, number, value, found)
    space.documents[run, number] = len(batch.signatures)
    space.links[run, number] = leads_to
    survey.read.update(segments=1, documents=len(batch.signatures), links=len(batch.links))


# What the rows of a namespace say together


def _check_space(survey: Survey, space: Space) -> None:
    survey.findings += inspect(space.parts)
    for each in filter(lambda each: each.part is not None, space.parts):
        rows = each.columns
        survey.read.update(parts=1, documents=len(rows["documents"]), links=len(rows["link_rows"]))
        survey.read["bytes"] += each.size
    survey.findings += contradictions(space)


def _litter(db: sqlite3.Connection, path: str, whole: bool) -> Iterator[Finding]:
    """Yield the files beside the store that are none of its parts; of one that is not `whole` they may have been."""
    folder = manifest.folder(path)
    files = sorted(folder.iterdir()) if folder.is_dir() else []
    listed, in_use, known = _held(db, folder)
    cost = "nothing but room on the disk: a process that was killed left it, or one is making it"
    to_do = "nothing: it is removed when the store is next put into parts"
    if not whole:
        cost, to_do = "perhaps nothing; but it may belong to what is damaged", "keep it until the store is whole"
    for file in files:
        if file.name in in_use or not file.exists():
            continue
        if not whole or manifest.is_spare(file, known, listed):
            yield Finding(f"file {str(file)!r} is none of the parts", cost, to_do, harmless=True)
        elif file.exists():
            yield Finding(f"file {str(file)!r} is in no list of parts, and has what is nowhere else", _UNLISTED)


def _held(db: sqlite3.Connection, folder: Path) -> tuple[set[str], set[str], set[tuple[str, int]]]:
    """Return the namespaces that list parts, the names of these, and the segments that these or the log hold."""
    while True:
        # In this order: a file that has just been made is then either listed, or what it holds was in the log before.
        known, listed = _logged(db), _manifests(db)
        in_use: set[str] = set()
        for value in listed.values():
            with suppress(ValueError):
                in_use.update(manifest.names(value))
        for name in in_use:
            known |= _segments(folder / name)
        if _manifests(db) == listed:  # else what is in a part may have gone on to the next before it was read
            return {key.removeprefix("parts/") for key in listed}, in_use, known


def _segments(file: Path) -> set[tuple[str, int]]:
    with suppress(ValueError, OSError):
        return Part.read(file).all_segments()
    return set()


def _logged(db: sqlite3.Connection) -> set[tuple[str, int]]:
    """Return the segments that are in the log."""
    found = set()
    with suppress(sqlite3.Error):
        for (key,) in db.execute(f"SELECT key FROM {TABLE} WHERE substr(key, 1, 8) = 'segment/'"):
            with suppress(ValueError):
                found.add(split(str(key))[2:])
    return found
