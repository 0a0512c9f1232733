"""Keep the older tables of an index in files, and merge them in a thread."""

from __future__ import annotations

import sqlite3
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import takewhile

from .index_files import Files
from .row_index import TAIL, Index, due
from .table import Table


class StoredIndex(Index):
    """An index with its older tables in files.

    Only one process makes files. All other processes keep rows that are newer than the files in RAM.
    """

    def __init__(self, db: sqlite3.Connection, files: Files) -> None:
        super().__init__()
        self._db = db
        self._files = files
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="neardup-index")
        self._merging: Future[Table] | None = None
        self._is_stuck = False

    @property
    def names(self) -> list[str]:
        """The names of the tables' files, up to the first table that has no file."""
        return [table.path.name for table in takewhile(lambda table: table.path, self.tables) if table.path]

    @property
    def is_merging(self) -> bool:
        """True if a merge is running, or has ended and waits for `adopt`."""
        return self._merging is not None

    @property
    def has_merged(self) -> bool:
        """True if a merge has ended and waits for `adopt`."""
        return self._merging is not None and self._merging.done()

    def load(self, last: int) -> None:
        """Read the tables in files. If more than `TAIL` rows up to number `last` follow, build tables of these rows."""
        self._files.hold(last)
        self.tables = self._files.read(self._db)
        if last - self.last > TAIL:
            self._cover(last)

    def _cover(self, last: int) -> None:
        """Build tables of all rows after the last table, up to number `last`."""
        self.tables += self._files.made(self._db, self.last + 1, last)

    def grow(self, last: int) -> None:
        """If `TAIL` rows up to number `last` are in no table, build a table of them. Start a merge if one is due."""
        if last - self.last >= TAIL:
            self.seal(last)
        if self.has_merged:
            self.adopt()
        if not (self._merging or self._is_stuck) and self._due():
            self._take_over(last)
            if tables := self._due():
                self._merging = self._thread.submit(self._files.merged, tables)

    def _due(self) -> list[Table]:
        """Return the tables that are to be merged now. A process without the lock merges only tables without files."""
        newest = [*takewhile(lambda table: not table.path, reversed(self.tables))][::-1]
        return due(self.tables if self._files.is_held else newest)

    def _take_over(self, last: int) -> None:
        """Take the lock if it is free, and load the files that other processes made."""
        is_first = not self._files.is_held and self._files.hold(last)
        if is_first and self._files.names(self._db) != self.names:
            self.seal(last)
            self.tables = [table for table in self._files.read(self._db) if table.last <= last]
            self._cover(last)

    def adopt(self) -> None:
        """Wait for the running merge, if any, and put its result in place of the merged tables."""
        merging, self._merging = self._merging, None
        try:
            self.put(merging.result()) if merging else None
        except Exception as error:  # the index is only a cache, so a failed merge loses nothing
            self._is_stuck = True
            self._files.warn(f"could not be merged: {error!r}")

    def rebuild(self, last: int) -> None:
        """Rebuild all tables, up to row number `last`."""
        self.adopt()
        self.seal(last)
        self.tables = self._files.made(self._db, 1, last)

    def end(self) -> bool:
        """Wait for the running merge, if any, and stop the thread. Return whether there was a merge to adopt."""
        self._thread.shutdown()
        has_merged = self.is_merging
        self.adopt()
        return has_merged
