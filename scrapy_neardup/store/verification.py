"""Verify a store: each row, the rows of a namespace against each other, and a server's index. Nothing is changed.

For each row of a server, only one or two numbers are kept in memory. Ten million documents take half a gigabyte.
"""

from __future__ import annotations

import os
import sqlite3
from array import array
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import closing, suppress
from itertools import islice, starmap
from typing import Any, NamedTuple

import numpy as np

from . import database, is_server, open_backend, records, server_module, shown_address
from .backend import Entry, StoreError
from .records import DAMAGE, DOCUMENT, HOST, META, RUN, VISIT, FormatError, Key
from .stored_index import posted

AT_ONCE = 200  # rows of a server to look up in its index at a time
_KINDS = (META, RUN, VISIT, DOCUMENT, HOST)  # visits first: their documents were written before them
_REFUSED, _AGAIN = "the store is refused", "an item that needs it passes without a verdict, or its page is stored again"
_REMEDY = "restore a backup of the store, delete its damaged rows (see docs/store.md), or begin another one"


class Damage(NamedTuple):
    """A kind of damage or inconsistency: what it is, what it costs, and what to do."""

    what: str
    costs: str
    to_do: str = _REMEDY


class Survey:
    """The counts and findings of a verified store; and the runs and ids of the current namespace, for `compare`."""

    def __init__(self, *, of_server: bool) -> None:
        """With `of_server`, note visits without a document: a server that was full may have deleted the document.

        In a file, such a visit is no damage: one process may record it while another forgets the document.
        """
        self._of_server = of_server
        self.read = Counter(rows=0, documents=0, visits=0, runs=0)  # the number of rows by kind
        self._found: dict[tuple[str, str], tuple[int, object]] = {}
        self.begin("")

    @property
    def findings(self) -> list[Damage]:
        """The distinct findings, each with its count and first example."""
        found = []
        for (what, costs), (count, example) in self._found.items():
            first = "; the first: " if count > 1 else ": "
            found.append(Damage(" ".join(f"{count} {what}{first}{example}".split()) if example else what, costs))
        return found

    def begin(self, namespace: str) -> None:
        self._suffix = f" (namespace {namespace!r})" if namespace else ""
        self._is_readable, self._has_schemes = True, False
        self.runs: set[str] = set()
        self._writers: set[int] = set()
        self._documents, self._targets = array("Q"), array("Q")

    def note(self, what: str, costs: str, example: object = "") -> None:
        """Add a finding, or count it once more. The first example is kept."""
        finding = what + self._suffix, costs
        count, first = self._found.get(finding, (0, example))
        self._found[finding] = count + 1, first

    def add(self, key: Key, value: Any) -> bool:
        """Add a row, or the exception that tells why it can't be read. Return whether the row is whole.

        The key is "" if it is unknown. Raise FormatError if the store is of another version.
        """
        kind = records.kind_of(key)
        try:
            if isinstance(value, Exception):
                raise value
            if not (records.is_key(key) and isinstance(value, bytes)):
                raise ValueError("a store has no such row")
            records.check(key, record := records.load(key, value))
        except FormatError:
            raise
        except (*DAMAGE, sqlite3.Error, MemoryError, StoreError) as error:
            self._is_readable = False
            what = f"rows of kind {kind!r} can't be read" if kind in _KINDS else "rows can't be read"
            costs = _REFUSED if kind in (META, RUN, HOST) else _AGAIN
            self.note(what, costs, f"{key!r:.80}: {error}" if key else error)
            return False
        self.read.update({"rows", f"{kind}s"} & self.read.keys())
        if kind == META:
            self._has_schemes = True
        elif kind == RUN:
            self.runs.add(str(records.name_of(key)))
        else:
            self._writers.add(records.code_of(records.origin(key, record)))
        if self._of_server and kind == DOCUMENT:
            self._documents.append(record.id)
        elif self._of_server and kind == VISIT and record.target is not None:
            self._targets.append(record.target)
        return True

    def compare(self) -> None:
        """If all rows of the namespace could be read, compare them with each other. No process may write meanwhile."""
        if not self._is_readable:
            return
        if self.runs and not self._has_schemes:
            self.note("the record of the schemes of the store is missing", _REFUSED)
        for code in sorted(self._writers.difference(map(records.code, self.runs))):
            self.note("records of runs are missing", "`export` and `stats` leave out their rows", f"code {code:08x}")
        if lost := int((~np.isin(np.asarray(self._targets), np.asarray(self._documents))).sum()):
            self.note(f"{lost} visits lead to documents that do not exist", "these URLs are fetched again")


def verify(address: str) -> Survey:
    """Verify all rows of a store. Raise StoreError if it can't be opened, or is not a store of this version."""
    survey = Survey(of_server=is_server(address))
    try:
        (_verify_server if is_server(address) else _verify_file)(address, survey)
    except FormatError as error:
        raise StoreError(f"store {shown_address(address)!r} does not fit: {error}") from error
    return survey


def _verify_file(address: str, survey: Survey) -> None:
    with closing(database.open_database(path := os.path.realpath(address), writes=False, check=False)) as db:
        db.text_factory = lambda text: text.decode("utf8", "replace")
        tables = database.namespaces(db)
        try:
            db.execute("BEGIN")  # from here on, all reads see the same snapshot
            said = "; ".join(str(line) for (line,) in db.execute("PRAGMA integrity_check"))
        except sqlite3.Error as error:
            said = str(error)
        if said != "ok":
            survey.note(f"the file: SQLite says {said}", "rows of it may be lost: see what follows")
        for name, table in tables.items():
            survey.begin(name)
            for row in _rows_of_file(db, table):
                survey.add(*row)
            survey.compare()
    survey.begin("")
    try:  # in a small file, a single damaged row prevents opening
        database.open_database(path, writes=False).close()
    except StoreError as error:
        survey.note(str(error), "crawls and commands refuse the store")


def _rows_of_file(db: sqlite3.Connection, table: str) -> Iterator[tuple[Key, Any]]:
    """Yield the key and value of each row of a table. If a row can't be read, yield "" and the error instead."""
    query = f'SELECT number, key, value FROM "{table}" NOT INDEXED WHERE number > ? ORDER BY number'
    last = after = 0
    with suppress(sqlite3.Error, TypeError):
        [last] = db.execute("SELECT seq FROM sqlite_sequence WHERE name = ?", (table,)).fetchone()
    while after <= last:
        try:
            for number, key, value in db.execute(query, (after,)):
                after = max(after, number)
                yield key, value
            return
        except (sqlite3.Error, MemoryError) as error:
            yield "", error
        after += 1


def _verify_server(address: str, survey: Survey) -> None:
    names = server_module(address).namespaces(address)
    survey.read["namespaces"] = len(names)
    for name in names:
        survey.begin(name)
        with closing(open_backend(address, name, writes=False)) as backend:
            _verify_namespace(backend, survey)


def _verify_namespace(backend: Any, survey: Survey) -> None:
    rows = _rows_of_server(backend)
    while some := [*islice(rows, AT_ONCE)]:
        lacking = _lacking(backend, [row for row in some if survey.add(*row)])
        # Read again, since another process may have rewritten or deleted them.
        for key in _lacking(backend, [(row.key, row.value) for row in backend.get(lacking)]):
            survey.note("rows are missing in their index", _AGAIN, repr(key))
    try:
        if not (backend.news()[0] or any(map(backend.is_held, survey.runs))):  # no run is or was open meanwhile
            survey.compare()
    except (StoreError, *DAMAGE) as error:
        survey.note(str(error), _REFUSED)


def _rows_of_server(backend: Any) -> Iterator[tuple[Key, Any]]:
    """Yield the key and value of each row. If the rows of a kind can't be read, yield the error and go on."""
    for kind in _KINDS:
        try:
            yield from ((row.key, row.value) for row in backend.scan(kind))
        except (StoreError, *DAMAGE) as error:
            backend.execute(["call", "PING"])  # raises if the server is down
            yield f"{kind}/…", error


def _lacking(backend: Any, rows: Iterable[tuple[Key, Any]]) -> list[Key]:
    """Return the keys of the rows that are missing in at least one of their lists in the index."""
    from .redis import located

    known = [found for found in starmap(posted, rows) if found]
    asked = (["lacks", *located(Entry(key, {}, keys, simhash))] for key, keys, simhash in known)
    return [key for (key, *_), lacks in zip(known, backend.execute(*asked), strict=True) if lacks]
