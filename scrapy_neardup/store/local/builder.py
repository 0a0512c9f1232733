"""Building tables in a thread while a crawl goes on; one process at a time."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing

from filelock import FileLock, Timeout

from .files import Files
from .index import TAIL, Index, due
from .table import Table

REST = 60.0  # seconds before what went wrong is tried again


class Builder:
    """Has what is due be built: a table of the tail, or one of several tables."""

    def __init__(self, files: Files, connect: Callable[[], sqlite3.Connection]) -> None:
        self._files = files
        self._connect = connect
        self._lock = FileLock(files.folder.with_suffix(".lock"), thread_local=False)
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="neardup-index")
        self._work: Future[Table] | None = None
        self._rests_until = 0.0

    @property
    def is_busy(self) -> bool:
        """Whether a table is being made, or the store does not name it yet."""
        return self._lock.is_locked

    def hold(self, seconds: float = 0) -> bool:
        """Keep other processes from building; return False where one is at it for so long."""
        if self._lock.is_locked:
            return True
        try:
            self._files.folder.parent.mkdir(exist_ok=True)
            self._lock.acquire(timeout=seconds)
        except (Timeout, OSError):
            return False
        self._files.stores = True
        return True

    def release(self) -> None:
        """Let other processes build."""
        self._files.stores = False
        self._lock.release()

    def begin(self, index: Index, known: int) -> None:
        """Begin what is due first, given the highest number of which all rows are known. The lock is held."""
        if len(index.tail) >= TAIL:
            self._work = self._thread.submit(self._made, index.last + 1, known)
        elif tables := _mergeable(index):
            self._work = self._thread.submit(self._files.merged, tables)
        else:
            self.release()

    def is_due(self, index: Index) -> bool:
        """Return whether there is anything to build."""
        is_due = len(index.tail) >= TAIL or bool(_mergeable(index))
        return is_due and time.monotonic() >= self._rests_until

    def _made(self, first: int, last: int) -> Table:
        with closing(self._connect()) as db:
            return self._files.table(db, first, last)

    def result(self) -> Table | None:
        """Return what was built, once; None where it is not done. Raise what went wrong: then it is tried again."""
        if self._work is None or not self._work.done():
            return None
        work, self._work = self._work, None
        try:
            return work.result()
        except BaseException:
            self._rests_until = time.monotonic() + REST
            self.release()
            raise

    def finish(self) -> Table | None:
        """Wait for the thread, which makes no more; return what it was building, if anything."""
        self._thread.shutdown()
        return self.result()


def _mergeable(index: Index) -> list[Table]:
    """Return the last tables that are to become one."""
    if len(index.tables) < 2:
        return []
    before = due(index.tables[:-1], len(index.tables[-1]))
    return [*before, index.tables[-1]] if before else []
