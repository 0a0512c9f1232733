"""Reading all that a server holds of our stores: each row has its checksum, so damage of rows is seen as in a file."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import closing
from itertools import count
from typing import Any
from urllib.parse import unquote, urlsplit

from ..base import DOCUMENT, HOST, LINK, META, RUN, Row
from ..verification import Finding, Space, Survey
from .address import connecting
from .backend import RedisBackend
from .connection import Connection
from .server import VERSION, Server

AT_ONCE = 1000  # keys that the server looks at for one answer
_ROOT = re.compile(rb"\{neardup:([^:{}]*):(\d+)\}")


def read_server(address: str, survey: Survey) -> None:
    """Read all namespaces of a server. Raise StoreError where it can't be asked."""
    for namespace in namespaces(address):
        backend = RedisBackend(address, namespace, writes=False)
        try:
            space = Space(namespace, survey)
            space.read(_rows(backend))
            space.end()
        finally:
            backend.abandon()
    _check_memory(address, survey)


def _rows(backend: RedisBackend) -> Iterator[Row]:
    for kind in (META, RUN, DOCUMENT, LINK, HOST):
        yield from (row for row in backend.scan(kind) if not row.is_pending)


def _check_memory(address: str, survey: Survey) -> None:
    with closing(Server(address, "")) as server:
        memory = server.memory()
    survey.read["bytes_server"] = int(memory.get("used_memory", 0))
    policy = memory.get("maxmemory_policy", "noeviction")
    if policy != "noeviction" and int(memory.get("maxmemory", 0)):
        survey.findings.append(
            Finding(
                f"the server drops keys when it is full (maxmemory-policy {policy})",
                "documents or all of a store may go at any time",
                "set its maxmemory-policy to noeviction",
                harmless=True,
            )
        )


def namespaces(address: str) -> list[str]:
    """Return the namespaces of a server, or of all nodes of a cluster."""
    found = set()
    for key in _keys(address):
        match = _ROOT.match(key)
        if match and int(match[2]) == VERSION:
            found.add(unquote(match[1].decode(errors="replace")))
    return sorted(found)


def _keys(address: str) -> Iterator[bytes]:
    for ask in _nodes(address):
        cursor: Any = b"0"
        while True:
            [(cursor, names)] = ask([("SCAN", cursor, "MATCH", "{neardup:*", "COUNT", AT_ONCE)])
            yield from names
            if cursor == b"0":
                break


def _nodes(address: str) -> Iterator[Any]:
    """Yield what asks the server, or of a cluster each node that has keys."""
    with closing(Server(address, "")) as server:
        if not urlsplit(address).scheme.endswith("+cluster"):
            yield server.run
            return
        [ranges] = server.run([("CLUSTER", "SLOTS")])
    masters = {tuple(master[:2]): range(first, last + 1) for first, last, master, *_ in ranges}
    for slots in masters.values():
        with closing(Connection(connecting(address, _key_in(slots)))) as connection:
            yield connection.exchange


def _key_in(slots: range) -> str:
    """Return a name that a cluster puts into one of these slots."""
    from redis.crc import key_slot

    return next(str(n) for n in count() if key_slot(str(n).encode()) in slots)
