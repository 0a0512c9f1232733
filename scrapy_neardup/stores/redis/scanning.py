"""Which keys of ours a server has, of whatever namespace: looked through some at a time."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass, field
from itertools import count
from typing import Any
from urllib.parse import unquote, urlsplit

from .server import Server
from .store import VERSION, root_of

AT_ONCE = 1000  # keys that the server looks at for one answer
_KEY = re.compile(rb"(\{neardup:([^:{}]*):(\d+)\})(.*)", re.DOTALL)
_TABLES = {"k": 0, "s": 0, "u": 0, "h": 5, "d": 4, "r": 4, "o": 4}  # bytes of the number that follows
_NAMED = re.compile(
    rb":(gone|pending|runs|numbers|ids|holders|sessions|hot|news|meta|(?:open|lease|session)\.[\da-f]+)"
)
TYPES = {
    **dict.fromkeys(("", "k", "s", "u", ":pending", ":runs", ":numbers", ":ids", ":holders", ":sessions"), "hash"),
    **dict.fromkeys(("h", ":open"), "list"), ":hot": "set", ":news": "stream",
}  # fmt: skip
"""Of keys by kind; all others are strings."""
_ALSO = {"string": "bitmap"}  # Kvrocks tells of strings of bits


@dataclass
class Namespace:
    """The keys of one namespace."""

    root: str
    keys: Counter[str] = field(default_factory=Counter)
    """How many of each kind."""
    most: dict[str, int] = field(default_factory=dict)
    """The highest number of each kind that has numbers."""
    strangers: list[str] = field(default_factory=list)
    """Keys of names that a store has not."""
    wrong: list[str] = field(default_factory=list)
    """Keys that are of another type than a store's, with what they are."""

    @property
    def name(self) -> str:
        return unquote(self.root.split(":")[1])

    def take(self, rest: bytes, type_: str) -> None:
        """Take in a key of which the name goes on so after the root."""
        shown, (kind, number) = repr(self.root.encode() + rest)[1:], _kind_of(rest)
        wanted = TYPES.get(kind, "string") if kind is not None else None
        if kind is None:
            self.strangers.append(shown)
        elif type_ not in (wanted, _ALSO.get(wanted or ""), "none"):  # none: it has gone meanwhile
            self.wrong.append(f"{shown} is a {type_}, not a {wanted}")
        else:
            self.keys[kind] += 1
            self.most[kind] = max(number, self.most.get(kind, 0))


def _kind_of(rest: bytes) -> tuple[str | None, int]:
    if not rest:
        return "", 0
    if _NAMED.fullmatch(rest):
        return rest.decode().partition(".")[0], 0
    kind = chr(rest[0])
    return (kind, int.from_bytes(rest[1:], "big")) if len(rest) - 1 == _TABLES.get(kind) else (None, 0)


def namespaces(address: str) -> tuple[dict[str, Namespace], list[str]]:
    """Return the namespaces of a server by what their keys begin with, and what is there of other versions."""
    found: dict[str, Namespace] = {}
    others: Counter[tuple[str, int]] = Counter()
    for root, version, rest, type_ in _keys(address):
        if version == VERSION:
            found.setdefault(root, Namespace(root)).take(rest, type_)
        else:
            others[root, version] += 1
    return found, [f"{number} keys of {root!r}" for (root, _), number in others.items()]


def _keys(address: str) -> Iterator[tuple[str, int, bytes, str]]:
    """Yield root, version, the rest of the name, and the type of each key."""
    for server in _nodes(address):
        with closing(server):
            for names in _scanned(server):
                types = server.run([("TYPE", name) for name in names])
                for name, type_ in zip(names, types, strict=True):
                    if match := _KEY.fullmatch(name):
                        root, _, version, rest = match.groups()
                        yield root.decode(errors="replace"), int(version), rest, _text(type_)


def _scanned(server: Server) -> Iterator[list[bytes]]:
    cursor: Any = b"0"
    while True:
        [(cursor, names)] = server.run([("SCAN", cursor, "MATCH", "{neardup:*", "COUNT", AT_ONCE)])
        if names:
            yield names
        if cursor == b"0":
            return


def _nodes(address: str) -> Iterator[Server]:
    """Yield the server, or of a cluster each one that has keys."""
    server = Server(address, root_of(""))
    if not urlsplit(address).scheme.endswith("+cluster"):
        yield server
        return
    with closing(server):
        [ranges] = server.run([("CLUSTER", "SLOTS")])
    masters = {tuple(master[:2]): range(first, last + 1) for first, last, master, *_ in ranges}
    for slots in masters.values():
        yield Server(address, _key_in(slots))


def _key_in(slots: range) -> str:
    """Return a name that a cluster puts into one of these slots."""
    from redis.crc import key_slot

    return next(str(n) for n in count() if key_slot(str(n).encode()) in slots)


def _text(said: bytes | str) -> str:
    return said.decode() if isinstance(said, bytes) else said


def info(server: Server, section: str) -> Mapping[str, str]:
    """Return what a server says of itself."""
    [said] = server.run([("INFO", section)])
    lines = (line.partition(":") for line in said.decode().splitlines())
    return {name: value for name, colon, value in lines if colon}
