"""Stores to rows and back, whatever kind of store is at an address."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from .exporting import exported
from .importing import Imported, load
from .interchange import Record
from .sqlite import SqliteStore


@contextmanager
def export_rows(address: str, namespace: str) -> Iterator[Iterator[Record]]:
    """Give the rows of a store (see `interchange`), the first one with how many follow. Raise StoreError."""
    store = SqliteStore(address, (), namespace=namespace, run=None)
    try:
        yield exported(store)
    finally:
        store.close()


def import_rows(address: str, namespace: str, rows: Iterable[Record]) -> Imported:
    """Take such rows into a store, which need not exist. Raise ValueError for the first that is none, StoreError."""
    return load(address, namespace, rows)
