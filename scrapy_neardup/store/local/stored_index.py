"""An index with older tables in files. A thread merges the files."""

from __future__ import annotations

import sqlite3
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import takewhile

from .index_files import Files
from .row_index import TAIL, Index, due
from .table import Table


class StoredIndex(Index):
    """An index from postings to rows.

    Only one process makes files. In the others, rows newer than the files are in RAM.
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
        """The names of the files of the first tables. Later tables have no files."""
        return [table.path.name for table in takewhile(lambda table: table.path, self.tables) if table.path]

    @property
    def is_merging(self) -> bool:
        """Whether a merge is running, or its result is not yet in use."""
        return self._merging is not None

    @property
    def has_merged(self) -> bool:
        """Whether the result of a merge is ready for `adopt`."""
        return self._merging is not None and self._merging.done()

    def load(self, last: int) -> None:
        """Read the tables in files. Build tables of later rows up to number `last` if there are more than `TAIL`."""
        self._files.hold(last)
        self.tables = self._files.read(self._db)
        if last - self.last > TAIL:
            self._cover(last)

    def _cover(self, last: int) -> None:
        """Build tables of the rows after the last table, up to number `last`."""
        self.tables += self._files.made(self._db, self.last + 1, last)

    def grow(self, last: int) -> None:
        """Build a table of the newest rows, up to number `last`, if there are `TAIL` or more. Start a merge if due."""
        if last - self.last >= TAIL:
            self.seal(last)
        if self.has_merged:
            self.adopt()
        if not (self._merging or self._is_stuck) and self._due():
            self._take_over(last)
            if tables := self._due():
                self._merging = self._thread.submit(self._files.merged, tables)

    def _due(self) -> list[Table]:
        """Return the tables that are due to be merged. Without the lock, these are only tables after the last file."""
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
        """Wait for the running merge, if any, and use its result."""
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
        """Stop the thread after the running merge. Return whether there was one."""
        self._thread.shutdown()
        has_merged = self.is_merging
        self.adopt()
        return has_merged
