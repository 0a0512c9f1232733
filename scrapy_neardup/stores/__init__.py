"""Stores: find earlier documents, keep signatures. `open_store` chooses one by its address."""

from __future__ import annotations

from collections.abc import Sequence

from ..detectors.base import Detector
from .base import Selection, Store, StoreError
from .memory import MemoryStore
from .redis.address import KINDS, is_server, named
from .sqlite import SqliteStore

__all__ = ["MemoryStore", "Selection", "SqliteStore", "Store", "StoreError", "check_kind", "open_store"]


def check_kind(address: str) -> None:
    """Raise StoreError for what is neither a path nor the address of a server that can be a store."""
    if "://" in address and not is_server(address):
        raise StoreError(f"store {named(address)!r}: no such kind of store; allowed are a path, {', '.join(KINDS)}")


def open_store(
    address: str | None,
    detectors: Sequence[Detector],
    *,
    namespace: str = "",
    unclean_run: str = "forget",
    run: str | None = "",
) -> Store:
    """Open the store at a path or on a server (`redis://…`), or one in memory for None.

    `run` names a run to go on with; "" starts a new one, None only looks into the store.

    Raise StoreError where it can't be read, or was made with other detectors' parameters.
    """
    if address is None:
        return MemoryStore(detectors)
    if is_server(address):
        from .redis.store import RedisStore

        return RedisStore(address, detectors, namespace=namespace, unclean_run=unclean_run, run=run)
    check_kind(address)
    return SqliteStore(address, detectors, namespace=namespace, unclean_run=unclean_run, run=run)
