"""Namespaces of a server: looked for among all of its keys, some at a time."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from itertools import count
from typing import Any
from urllib.parse import unquote, urlsplit

from .server import VERSION, Server

AT_ONCE = 1000  # keys that the server looks at for one answer
_KEY = re.compile(rb"\{neardup:([^:{}]*):(\d+)\}.*", re.DOTALL)


def namespaces(address: str) -> tuple[list[str], list[str]]:
    """Return the namespaces of a server, and what is there of other versions, in words. Raise StoreError."""
    found: Counter[tuple[bytes, int]] = Counter()
    for server in _nodes(address):
        with closing(server):
            for name in _scanned(server):
                if match := _KEY.fullmatch(name):
                    found[match[1], int(match[2])] += 1
    ours = sorted(unquote(name.decode(errors="replace")) for name, version in found if version == VERSION)
    others = {f"{{neardup:{name.decode(errors='replace')}:{version}}}": number
              for (name, version), number in found.items() if version != VERSION}  # fmt: skip
    return ours, [f"{number} keys of {root!r} are of another version" for root, number in sorted(others.items())]


def _scanned(server: Server) -> Iterator[bytes]:
    cursor: Any = b"0"
    while True:
        [(cursor, names)] = server.run([("SCAN", cursor, "MATCH", "{neardup:*", "COUNT", AT_ONCE)])
        yield from names
        if cursor == b"0":
            return


def _nodes(address: str) -> Iterator[Server]:
    """Yield the server, or of a cluster each one that has keys."""
    server = Server(address, "")
    if not urlsplit(address).scheme.endswith("+cluster"):
        yield server
        return
    with closing(server):
        [ranges] = server.run([("CLUSTER", "SLOTS")])
    masters = {tuple(master[:2]): range(first, last + 1) for first, last, master, *_ in ranges}
    for slots in masters.values():
        yield Server(address, _namespace_in(slots))


def _namespace_in(slots: range) -> str:
    """Return a namespace whose keys a cluster puts into one of these slots."""
    from redis.crc import key_slot

    return next(name for name in map(str, count()) if key_slot(f"neardup:{name}:{VERSION}".encode()) in slots)
