"""An index whose older tables lie in files, merged in a thread."""

from __future__ import annotations

import sqlite3
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import takewhile

from .index_files import Files
from .row_index import TAIL, Index, due
from .table import Table


class StoredIndex(Index):
    """Finds rows by their postings. One process makes files; in all others only RAM has what came after these."""

    def __init__(self, db: sqlite3.Connection, files: Files) -> None:
        super().__init__()
        self._db = db
        self._files = files
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="neardup-index")
        self._merging: Future[Table] | None = None
        self._is_stuck = False

    @property
    def names(self) -> list[str]:
        """The names of the files that hold its first tables."""
        return [table.path.name for table in takewhile(lambda table: table.path, self.tables) if table.path]

    @property
    def is_merging(self) -> bool:
        """Whether tables are being merged, or were and are still to be put in place."""
        return self._merging is not None

    @property
    def has_merged(self) -> bool:
        """Whether a merged table is to be put in place."""
        return self._merging is not None and self._merging.done()

    def load(self, last: int) -> None:
        """Read the tables that lie in files; make those of later rows up to number `last`, unless they are few."""
        self._files.hold(last)
        self.tables = self._files.read(self._db)
        if last - self.last > TAIL:
            self._cover(last)

    def _cover(self, last: int) -> None:
        """Make tables of the rows after those in tables, up to a number."""
        self.tables += self._files.made(self._db, self.last + 1, last)

    def grow(self, last: int) -> None:
        """Make a table of the newest rows, up to number `last`, once they are many; begin to merge tables if due."""
        if last - self.last >= TAIL:
            self.seal(last)
        if self.has_merged:
            self.adopt()
        if not (self._merging or self._is_stuck) and self._due():
            self._take_over(last)
            if tables := self._due():
                self._merging = self._thread.submit(self._files.merged, tables)

    def _due(self) -> list[Table]:
        """Return tables to merge: without the right to make files, only those after the last file."""
        newest = [*takewhile(lambda table: not table.path, reversed(self.tables))][::-1]
        return due(self.tables if self._files.is_held else newest)

    def _take_over(self, last: int) -> None:
        """Make files from now on, if no other process does; go on with the files that others made since."""
        is_first = not self._files.is_held and self._files.hold(last)
        if is_first and self._files.names(self._db) != self.names:
            self.seal(last)
            self.tables = [table for table in self._files.read(self._db) if table.last <= last]
            self._cover(last)

    def adopt(self) -> None:
        """Wait for the thread, and put the merged table in place."""
        merging, self._merging = self._merging, None
        try:
            self.put(merging.result()) if merging else None
        except Exception as error:  # it is a cache
            self._is_stuck = True
            self._files.warn(f"does not grow: {error!r}")

    def rebuild(self, last: int) -> None:
        """Make all tables anew, up to row `last`."""
        self.adopt()
        self.seal(last)
        self.tables = self._files.made(self._db, 1, last)

    def end(self) -> bool:
        """Stop the thread; return whether it merged tables, which are then in place."""
        self._thread.shutdown()
        has_merged = self.is_merging
        self.adopt()
        return has_merged
