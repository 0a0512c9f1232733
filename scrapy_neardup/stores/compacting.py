"""Giving back the space that a store does not need."""

from __future__ import annotations

import os
from contextlib import closing
from pathlib import Path

from ..watching import watched
from . import manifest
from .absorbing import alone, tidy
from .database import open_database, told
from .log import Log
from .redis.address import is_server


def compact(address: str) -> None:
    """Put all that each namespace holds into one part without waste, and cut the log down to what is in use.

    On a server: remove what leads to documents that are forgotten, and evidence that counts no more. Crawls may go on
    meanwhile, and a kill at any moment leaves the store as it was before or after a step. Raise StoreError where it
    can't be read or written.
    """
    if not is_server(address):
        _compact_file(os.path.realpath(address))
        return
    from .redis.compacting import compact_server

    compact_server(address)


def _compact_file(path: str) -> None:
    for namespace in watched(spaces := _namespaces(path), "namespaces", len(spaces)):
        with alone(path):
            tidy(path, namespace, whole=True)
    with told(path, "compacted"), closing(open_database(path, writes=True)) as db:
        # Unlike VACUUM it leaves each row its number, by which others know what is new to them. A script, since a
        # single statement would give back a single page.
        db.executescript("PRAGMA incremental_vacuum")
        db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()


def size(address: str) -> int:
    """Return how many bytes a store has on disk, of all its namespaces, or a server in memory."""
    if is_server(address):
        from .redis.compacting import memory

        return memory(address)
    beside = manifest.folder(address)
    files = [Path(address), Path(f"{address}-wal"), *(beside.iterdir() if beside.is_dir() else ())]
    return sum(file.stat().st_size for file in files if file.exists())


def _namespaces(path: str) -> list[str]:
    """Return the namespaces of a store, as they are in the keys of rows."""
    with closing(Log(path, writes=False)) as log:
        return [key.removeprefix("meta/") for key, _ in log.news("meta/").result()]
