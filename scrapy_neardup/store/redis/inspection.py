"""Inspection of what leads to the rows of one namespace: by all of it each row is to be found. Changes nothing."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import suppress

from .. import records
from ..base import DOCUMENT, LINK, Postings, Row
from ..damage import DAMAGE
from ..findings import Notes
from ..postings import postings
from . import packing
from .backend import RedisBackend

AT_ONCE = 200  # rows
_HASHES = ("names", "last", "pending", "run", "meta", "host")
_TYPES = {**dict.fromkeys(_HASHES, "hash"), "news": "stream"}
_COSTS = "copies of their pages are stored once more, or their URLs are fetched again"


class Inspection:
    """Looks for rows by what leads to them."""

    def __init__(self, backend: RedisBackend, notes: Notes) -> None:
        self._backend = backend
        self._notes = notes
        self._waiting: dict[str, Postings] = {}

    def check_types(self) -> None:
        """Note keys that hold something of another type. Raise StoreError where the server can't be asked."""
        server = self._backend.server
        told = server.run([("TYPE", server.key(name)) for name in _TYPES])
        for (name, wanted), found in zip(_TYPES.items(), told, strict=True):
            if found.decode() not in (wanted, "none"):
                what = f"key {server.key(name)!r} is a {found.decode()}, not a {wanted}"
                self._notes.add(what, "the store is refused, or can't be written")

    def take(self, row: Row) -> None:
        """Look for a row, together with others. Raise StoreError where the server can't be asked."""
        if records.kind_of(row.key) in (DOCUMENT, LINK) and not row.is_pending:
            self._waiting |= _postings([row])
            if len(self._waiting) >= AT_ONCE:
                self.check()

    def check(self) -> None:
        """Look for the rows that wait; others may have rewritten or deleted them since they were read."""
        waiting, self._waiting = self._waiting, {}
        if lost := self._lost(waiting):
            for key in self._lost(_postings(self._backend.get(lost))):
                self._notes.add("# rows are not found by all that should lead to them", _COSTS, repr(key))

    def _lost(self, rows: Mapping[str, Postings]) -> list[str]:
        """Return the keys of rows to which something does not lead."""
        packed = {key: packing.packed(each) for key, each in rows.items()}
        lists = self._lists({each for keys, _ in packed.values() for each in packing.pieces(keys, packing.KEY)})
        blocks = self._blocks({each for _, simhash in packed.values() for each in _blocks_of(simhash)})
        lost = []
        for key, (keys, simhash) in packed.items():
            place = packing.place(key)
            by_keys = all(_has(lists[each], place) for each in packing.pieces(keys, packing.KEY))
            if not (by_keys and all(place + simhash in blocks[each] for each in _blocks_of(simhash))):
                lost.append(key)
        return lost

    def _lists(self, keys: Iterable[bytes]) -> dict[bytes, bytes]:
        """Return the places to which keys lead; nothing for those that can't be read."""
        root = self._backend.server.root.encode()
        found = self._read({key: ("HGET", root + b"k" + key[:3], key[3:]) for key in keys})
        return found | self._read({key: ("GET", root + b"K" + key) for key, places in found.items() if places == b""})

    def _blocks(self, names: Iterable[bytes]) -> dict[bytes, bytes]:
        root = self._backend.server.root.encode()
        return self._read({name: ("GET", root + b"n" + name) for name in names})

    def _read(self, commands: Mapping[bytes, tuple[str | bytes, ...]]) -> dict[bytes, bytes]:
        """Return what is read by commands, of keys of another type too."""
        told = self._backend.server.run([*commands.values()], checks=False) if commands else []
        return {key: answer if isinstance(answer, bytes) else b"-" for key, answer in zip(commands, told, strict=True)}


def _postings(rows: Iterable[Row]) -> dict[str, Postings]:
    """Return what should lead to rows, as far as they can be read."""
    found = {}
    for row in rows:
        with suppress(*DAMAGE):  # others tell of it
            found[row.key] = postings(records.load(row.key, row.value) if isinstance(row.value, bytes) else row.value)
    return found


def _blocks_of(simhash: bytes) -> list[bytes]:
    return [bytes([block]) + simhash[2 * block : 2 * block + 2] for block in range(len(simhash) // 2)]


def _has(places: bytes, place: bytes) -> bool:
    """Return whether a place is one of those that lie one after another."""
    at = places.find(place)
    while at % packing.PLACE and at >= 0:
        at = places.find(place, at + 1)
    return at >= 0
