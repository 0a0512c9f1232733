"""Verify, compact and measure stores with all their namespaces."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import closing, contextmanager

from ..progress import watched
from . import open_backend
from .interface import Backend
from .local import file_inspection
from .local.database import namespaces, open_database
from .redis.address import check_client, is_server
from .verification import Survey


def verify(address: str) -> Survey:
    """Verify all rows of a store. Raise StoreError if it can't be opened, or is not a store of this package."""
    survey = Survey()
    if is_server(address):
        check_client(address)
        from .redis.inspection import inspect

        inspect(address, survey)
    else:
        file_inspection.inspect(os.path.realpath(address), survey)
    return survey


def compact(address: str) -> None:
    """Give unused space back to the system. Other processes may use the store meanwhile.

    Raise StoreError if the store can't be written.
    """
    for namespace in watched(names := _namespaces(address), "namespaces", len(names)):
        with _opened(address, namespace, writes=True) as backend:
            backend.compact()


def size(address: str) -> int:
    """Return the size of a store in bytes: on disk or, for a server, all memory that the server uses."""
    with _opened(address, "", writes=False) as backend:
        described = backend.describe()
    return int(str(described["bytes_server" if backend.is_remote else "bytes"]))


def _namespaces(address: str) -> list[str]:
    if is_server(address):
        check_client(address)
        from .redis.connection import namespaces as namespaces_of

        return namespaces_of(address)
    with closing(open_database(os.path.realpath(address), writes=False)) as db:
        return list(namespaces(db))


@contextmanager
def _opened(address: str, namespace: str, *, writes: bool) -> Iterator[Backend]:
    backend = open_backend(address, namespace, writes=writes)
    try:
        yield backend
    finally:
        backend.abandon()
