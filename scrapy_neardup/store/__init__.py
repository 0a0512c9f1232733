"""Open a store of signatures in a file, on a server or in memory, depending on its address."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager

from ..detectors.detector import Detector
from ..progress import watched
from .interface import Backend, Lookup, Selection, StoreError
from .local import database
from .local.memory import MemoryBackend
from .redis.address import KINDS, check_client, is_server, named
from .store import Store

__all__ = ["Selection", "Store", "StoreError", "check_kind", "compact", "open_store"]


def check_kind(address: str) -> None:
    """Raise StoreError unless an address is a path or the URL of a supported server."""
    if "://" in address and not is_server(address):
        raise StoreError(f"store {named(address)!r}: no such kind of store; allowed are a path, {', '.join(KINDS)}")


def open_store(
    address: str | None,
    detectors: Sequence[Detector],
    *,
    namespace: str = "",
    unclean_run: str = "forget",
    run: str | None = "",
    writer: str = "",
) -> Store:
    """Open the store at a path, on a server (`redis://…`), or in memory if `address` is None.

    `run` is the id of a run to resume, "" to begin a new run, or None to open the store read-only. `unclean_run` is
    what to do with the documents of dead runs: "forget" or "keep". `writer` names the spider or command that opens it.

    Raise StoreError if the store can't be read, or if a detector had other parameters when the store was written.
    """
    if address is None:
        return Store(MemoryBackend(), detectors, run=None)
    backend = open_backend(address, namespace, writes=run is not None, hears_documents=bool(Lookup(detectors).own))
    return Store(backend, detectors, unclean_run=unclean_run, run=run, writer=writer)


def open_backend(address: str, namespace: str, *, writes: bool, hears_documents: bool = False) -> Backend:
    """Open the back end at an address; without `writes`, read-only. Raise StoreError if it can't be opened.

    With `hears_documents`, the news of a server include new documents, as those of a file always do.
    """
    check_kind(address)
    if is_server(address):
        check_client(address)
        from .redis.backend import RedisBackend

        return RedisBackend(address, namespace, writes=writes, hears_documents=hears_documents)
    from .local.sqlite import SqliteBackend

    return SqliteBackend(address, namespace=namespace, writes=writes)


@contextmanager
def opened_backend(address: str, namespace: str, *, writes: bool) -> Iterator[Backend]:
    """Open the back end at an address for a `with` block. Unflushed rows are lost at its end."""
    backend = open_backend(address, namespace, writes=writes)
    try:
        yield backend
    finally:
        backend.abandon()


def namespaces(address: str) -> list[str]:
    """Return the namespaces of a store, which may be damaged. Raise StoreError if it can't be opened."""
    if is_server(address):
        check_client(address)
        from .redis.connection import namespaces as on_server

        return on_server(address)
    with closing(database.open_database(os.path.realpath(address), writes=False, check=False)) as db:
        return list(database.namespaces(db))


def compact(address: str) -> None:
    """Give unused space back to the system. Other processes may use the store meanwhile."""
    for namespace in watched(names := namespaces(address), "namespaces", len(names)):
        with opened_backend(address, namespace, writes=True) as backend:
            backend.compact()
