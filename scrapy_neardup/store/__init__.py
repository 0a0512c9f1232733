"""Open a store of signatures in a file, on a server or in memory, depending on its address."""

from __future__ import annotations

import re
from collections.abc import Sequence
from types import ModuleType

from ..detectors import Detector
from .backend import Backend, Selection, StoreError
from .local import MemoryBackend, SqliteBackend, compact_file
from .store import Store

__all__ = ["Selection", "Store", "StoreError", "check_kind", "compact", "open_store"]

SCHEMES = ("redis", "rediss", "valkey", "valkeys")
KINDS = (*SCHEMES, *(f"{scheme}+{kind}" for scheme in SCHEMES for kind in ("sentinel", "cluster")), "unix")


def is_server(address: str) -> bool:
    """Return whether an address is the URL of a server, such as `redis://localhost`."""
    return address.partition("://")[0] in KINDS and "://" in address


def shown_address(address: str) -> str:
    """Return an address or a path for display, with passwords hidden."""
    hidden = re.sub(r"(://[^:@]*:).*@", r"\1***@", address)  # up to the last @, since an invalid password may have one
    return re.sub(r"(password=)[^&]*", r"\1***", hidden) if "://" in address else address


def check_kind(address: str) -> None:
    """Raise StoreError unless an address is a path or the URL of a supported server."""
    if "://" in address and not is_server(address):
        allowed = f"a path, {', '.join(KINDS)}"
        raise StoreError(f"store {shown_address(address)!r}: no such kind of store; allowed are {allowed}")


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

    `run` is the id of a run to resume, "" to begin a new run, or None to open the store read-only. `unclean_run` says
    what to do with the documents of dead runs: "forget" or "keep". `writer` is the spider or command that opens it.

    Raise StoreError if the store can't be read, or if a detector had other parameters when the store was written.
    """
    if address is None:
        return Store(MemoryBackend(), detectors, run=None)
    backend = open_backend(address, namespace, writes=run is not None)
    return Store(backend, detectors, unclean_run=unclean_run, run=run, writer=writer)


def open_backend(address: str, namespace: str, *, writes: bool) -> Backend:
    """Open the back end at an address, read-only unless `writes`. Raise StoreError if it can't be opened."""
    check_kind(address)
    if is_server(address):
        backend: Backend = server_module(address).RedisBackend(address, namespace, writes=writes)
        return backend
    return SqliteBackend(address, namespace=namespace, writes=writes)


def server_module(address: str) -> ModuleType:
    """Return the module of the back end on a server. Raise StoreError if the client library is not installed."""
    try:
        from . import redis
    except ImportError:
        advice = "needs the extra `redis`: pip install 'scrapy-neardup[redis]'"
        raise StoreError(f"store {shown_address(address)!r} {advice}") from None
    return redis


def compact(address: str) -> None:
    """Shrink a store's file by its unused space, even while other processes use it. Do nothing for a server."""
    if not is_server(address):
        compact_file(address)
