"""Giving back the room that a store does not need."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from urllib.parse import unquote

from ..watching import watched
from . import open_backend
from .local.database import is_ours, open_database, tables
from .local.files import folder_of
from .local.sqlite import size_of
from .redis.address import is_server


def compact(address: str) -> None:
    """Make the index of each namespace anew without waste, and give the system back what is free of the file.

    On a server: remove what leads to rows that are gone. Crawls may go on meanwhile, and a kill at any moment leaves
    the store as it was before or after a step. Raise StoreError where it can't be read or written.
    """
    for namespace in watched(found := namespaces(address), "namespaces", len(found)):
        backend = open_backend(address, namespace, writes=True)
        try:
            backend.compact()
        finally:
            backend.abandon()


def namespaces(address: str) -> list[str]:
    """Return the namespaces of a store."""
    if is_server(address):
        from .redis.survey import namespaces as on_server

        return on_server(address)
    with closing(open_database(os.path.realpath(address), writes=False)) as db:
        return [unquote(name.partition("/")[2]) for name in tables(db) if is_ours(name)]


def size(address: str) -> int:
    """Return how many bytes a store has on disk, of all its namespaces, or a server in memory."""
    if is_server(address):
        backend = open_backend(address, "", writes=False)
        try:
            return int(str(backend.describe()["bytes_server"]))
        finally:
            backend.abandon()
    return sum(size_of(file) for file in _files(address))


def _files(path: str) -> Iterator[Path]:
    yield from (Path(path), Path(f"{path}-wal"))
    yield from folder_of(os.path.realpath(path)).rglob("*.idx")
