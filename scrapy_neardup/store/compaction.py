"""Compaction of a store: give back the room that is not in use, of all namespaces."""

from __future__ import annotations

import os
from contextlib import closing
from pathlib import Path
from urllib.parse import unquote

from ..watching import watched
from . import open_backend
from .local.database import TABLE, is_ours, open_database, tables
from .local.files import folder_of, size_of
from .redis.address import is_server


def compact(address: str) -> None:
    """Make a store as small as it can be. Others may go on meanwhile. Raise StoreError where it can't be written."""
    for namespace in watched(names := _namespaces(address), "namespaces", len(names)):
        backend = open_backend(address, namespace, writes=True)
        try:
            backend.compact()
        finally:
            backend.abandon()


def _namespaces(address: str) -> list[str]:
    if is_server(address):
        from .redis.namespaces import namespaces

        return namespaces(address)[0]
    with closing(open_database(os.path.realpath(address), writes=False)) as db:
        return [unquote(table[len(TABLE) + 1 :]) for table in tables(db) if is_ours(table)]


def size(address: str) -> int:
    """Return how many bytes a store has on disk, of all its namespaces, or a server in memory."""
    if is_server(address):
        backend = open_backend(address, "", writes=False)
        try:
            return int(str(backend.describe()["bytes_server"]))
        finally:
            backend.abandon()
    path = os.path.realpath(address)
    files = [Path(path), Path(f"{path}-wal"), *folder_of(path).rglob("*.idx")]
    return sum(map(size_of, files))
