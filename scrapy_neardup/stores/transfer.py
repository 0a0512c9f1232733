"""Stores to rows and back, whatever kind of store is at an address."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager

from .exporting import exported
from .importing import Imported, load
from .interchange import Record
from .redis.address import is_server
from .sqlite import SqliteStore


@contextmanager
def export_rows(address: str, namespace: str) -> Iterator[Iterator[Record]]:
    """Give the rows of a store (see `interchange`), the first one with how many follow. Raise StoreError."""
    if is_server(address):
        from .redis import exporting
        from .redis.store import RedisStore

        with closing(RedisStore(address, (), namespace=namespace, run=None)) as shared:
            yield exporting.exported(shared)
    else:
        with closing(SqliteStore(address, (), namespace=namespace, run=None)) as store:
            yield exported(store)


def import_rows(address: str, namespace: str, rows: Iterable[Record]) -> Imported:
    """Take such rows into a store, which need not exist. Raise ValueError for the first that is none, StoreError."""
    if is_server(address):
        from .redis import importing

        return importing.load(address, namespace, rows)
    return load(address, namespace, rows)
