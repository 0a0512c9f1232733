"""The files of an index: made of rows, merged, and made anew where they can't be read.

They lie in a folder beside the store. Which of them count is told by a row, `meta/index`: so an older copy of the store
goes with what it knew. A file is written before the row names it, and removed after the row has forgotten it; so a kill
at any moment leaves files that nobody names, and these are removed by whoever makes the next one.
"""

from __future__ import annotations

import logging
import re
import sqlite3
from array import array
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from urllib.parse import quote
from uuid import uuid4

import msgpack
import numpy as np
import numpy.typing as npt

from ...detectors import SimHash
from ...fingerprints.hashing import MULTIPLIER
from ...signature import Link, Signature
from ..damage import DAMAGE
from ..postings import postings, salt
from ..records import load
from ..session import INDEX
from .index import due
from .table import Table

CHECKED = 1 << 28  # bytes of an index of which all is read when it is opened, to compare its checksums: 0.1 s
STEP = 1 << 18  # rows of which a table is made at a time: 500 MB

_NAME = re.compile(r"(\d{12})-(\d{12})-[\da-f]{8}\.idx")
logger = logging.getLogger(__name__)


def folder_of(path: str) -> Path:
    """Return the folder of a store's index."""
    return Path(f"{path}.index")


def size_of(file: Path) -> int:
    """Return the bytes of a file; 0 where it is gone."""
    try:
        return file.stat().st_size
    except FileNotFoundError:
        return 0


class Files:
    """Makes the tables of one namespace. It reads the store over a connection that is given with each call."""

    def __init__(self, path: str, table: str) -> None:
        self.folder = folder_of(path) / quote(table, safe="")
        self._table = table
        self.stores = False
        """Whether tables that are made become files: for who keeps others from making them."""
        self.before_making: Callable[[], object] = bool

    def names(self, db: sqlite3.Connection) -> list[str]:
        """Return the names of the files that count, as the store tells now."""
        try:
            return self.listed(db)
        except DAMAGE as error:
            self.warn(f"is made anew: {error}")
            return []

    def listed(self, db: sqlite3.Connection) -> list[str]:
        """Return the names of the files that count. Raise ValueError where the row that tells is damaged."""
        row = db.execute(f'SELECT value FROM "{self._table}" WHERE key = ?', (INDEX,)).fetchone()
        names = [str(name) for name in load(INDEX, row[0])["files"]] if row else []
        after = 1
        for first, last in map(_range, names):
            if first != after or last < first:
                raise ValueError(f"the files of the index leave a gap: {names}")
            after = last + 1
        if (
            names
            and after - 1 > db.execute("SELECT seq FROM sqlite_sequence WHERE name = ?", (self._table,)).fetchone()[0]
        ):
            raise ValueError("the index has rows that the store never had")
        return names

    def read(self, db: sqlite3.Connection) -> list[Table]:
        """Return the tables that count; those that can't be read are made anew."""
        while True:
            names = self.names(db)
            try:
                check = sum((self.folder / name).stat().st_size for name in names) <= CHECKED
                return [self.opened(name, check=check) for name in names]
            except (OSError, *DAMAGE) as error:
                if self.names(db) == names:  # else another process has just put them into others
                    self.warn(f"is made anew: {error}")
                    return [table for name in names for table in self._opened_or_made(db, name)]

    def warn(self, why: str) -> None:
        """Warn of what becomes of the index."""
        logger.warning("Store %r: its index %s", str(self.folder.parent)[:-6], why)

    def opened(self, name: str, *, check: bool) -> Table:
        """Return the table in a file. Raise ValueError, OSError where it can't be read; `check` reads all of it."""
        table = Table.read(self.folder / name, check=check)
        if (table.first, table.last) != _range(name):
            raise ValueError(f"{name} is another file of an index")
        return table

    def _opened_or_made(self, db: sqlite3.Connection, name: str) -> list[Table]:
        try:
            return [self.opened(name, check=True)]
        except (OSError, *DAMAGE):
            return self.made(db, *_range(name))

    def made(self, db: sqlite3.Connection, first: int, last: int) -> list[Table]:
        """Make tables of a range of rows, of which some may be gone."""
        self.before_making()
        tables: list[Table] = []
        for start in range(first, last + 1, STEP):
            table = self.table(db, start, min(start + STEP - 1, last))
            before = due(tables, len(table))
            tables[len(tables) - len(before) :] = [self.merged([*before, table])]
        return tables

    def table(self, db: sqlite3.Connection, first: int, last: int) -> Table:
        """Make one table of a range of rows, of which some may be gone."""
        gathered = _Gathered()
        query = f'SELECT number, key, value FROM "{self._table}" WHERE number BETWEEN ? AND ? ORDER BY number'
        for number, key, value in db.execute(query, (first, last)):
            gathered.add(number, key, value)
        return self._stored(Table.made(first, last, *gathered.arrays()))

    def merged(self, tables: Sequence[Table]) -> Table:
        """Return one table in place of several that follow one another."""
        return self._stored(Table.merged(tables)) if len(tables) > 1 else tables[0]

    def _stored(self, table: Table) -> Table:
        """Return a table in a file; where that can't be written, or is not to be, as it is."""
        if self.stores:
            with suppress(OSError):  # it is tried again, and then told of
                return self.store(table)
        return table

    def store(self, table: Table) -> Table:
        """Write a table to a file."""
        self.folder.mkdir(parents=True, exist_ok=True)
        return table.write(self.folder / f"{table.first:012d}-{table.last:012d}-{uuid4().hex[:8]}.idx")

    def tidy(self, names: Iterable[str]) -> None:
        """Remove the files that are not among those named."""
        kept = set(names)
        for file in self.folder.glob("*.idx*") if self.folder.is_dir() else ():
            if file.name not in kept:
                with suppress(OSError):  # elsewhere than on POSIX one that is mapped can't be removed
                    file.unlink()


def _range(name: str) -> tuple[int, int]:
    """Return the first and the last row that a file covers. Raise ValueError for a name that none has."""
    match = _NAME.fullmatch(name)
    if not match:
        raise ValueError(f"{name!r:.80} is no file of an index")
    return int(match[1]), int(match[2])


class _Gathered:
    """Postings of rows, as arrays that grow."""

    def __init__(self) -> None:
        self._prints: dict[str, list[bytes]] = {}
        self._of: dict[str, tuple[array[int], array[int]]] = {}
        self._keys, self._numbers = array("Q"), array("q")

    def add(self, number: int, key: str, value: bytes) -> None:
        """Add a row. What is damaged is left out: `verify` tells of it."""
        with suppress(*DAMAGE):
            if key.startswith("document/"):
                self._add_document(number, key, value)
            elif key.startswith("link/"):
                link = load(key, value)
                assert isinstance(link, Link)
                self._extend(number, postings(link).keys)

    def _add_document(self, number: int, key: str, value: bytes) -> None:
        url, _, _, prints, *_, own = msgpack.unpackb(value[4:], unicode_errors="surrogatepass")
        for name, packed in prints.items():
            self._prints.setdefault(name, []).append(packed)
            of, counts = self._of.setdefault(name, (array("q"), array("q")))
            of.append(number)
            counts.append(len(packed) // 8)
        if own and url:
            self._extend(number, postings(Signature(url, {}, None, 0.0, own=own)).keys)  # type: ignore[arg-type]

    def _extend(self, number: int, keys: Sequence[int]) -> None:
        self._keys.extend(keys)
        self._numbers.extend([number] * len(keys))

    def arrays(
        self,
    ) -> tuple[npt.NDArray[np.uint64], npt.NDArray[np.int64], npt.NDArray[np.uint64], npt.NDArray[np.int64]]:
        """Return all keys, the rows' numbers, SimHashes and the numbers of theirs."""
        keys, numbers = [np.frombuffer(self._keys, np.uint64)], [np.frombuffer(self._numbers, np.int64)]
        near, of_near = np.zeros(0, np.uint64), np.zeros(0, np.int64)
        for name, packed in self._prints.items():
            values = np.frombuffer(b"".join(packed), "<u8").astype(np.uint64)
            of, counts = (np.frombuffer(column, np.int64) for column in self._of[name])
            if name == SimHash.name:
                near, of_near = values[np.cumsum(counts) - counts], of
            else:
                keys.append((values ^ np.uint64(salt(name))) * MULTIPLIER)
                numbers.append(np.repeat(of, counts))
        return np.concatenate(keys), np.concatenate(numbers), near, of_near
