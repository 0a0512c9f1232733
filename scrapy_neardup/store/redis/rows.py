"""Rows on a server: where they lie, and how they are read."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import msgpack

from .. import records
from ..base import META, Entry, Row
from . import packing
from .packing import KINDS, NAMED
from .server import Server

AT_ONCE = 500  # rows that are read at a time


class Rows:
    """Reads the rows of one namespace, those that this process holds included."""

    def __init__(self, server: Server, *, writes: bool) -> None:
        self.server = server
        self._writes = writes

    def place(self, key: str, *, makes: bool = False) -> bytes | None:
        """Return the place of a row; None where its run has no ordinal."""
        run, number = records.place_of(records.id_of(key))
        ordinal = self.server.leases.ordinal(self.server.ask, run, makes=makes)
        return ordinal and packing.place(ordinal, records.kind_of(key), number)

    def _new_place(self, entry: Entry) -> bytes:
        place = self.place(entry.key, makes=True)
        assert place
        return place

    def _key(self, place: bytes) -> str:
        return packing.key_at(place, lambda ordinal: self.server.leases.run(ordinal, self.names))

    def names(self) -> dict[str, bytes]:
        """Return the ordinals of all runs."""
        [names] = self.server.run([("HGETALL", self.server.key("names"))])
        return {name.decode(): ordinal for name, ordinal in _pairs(names) if not name.startswith(b"=")}

    def _row(self, place: bytes, value: bytes, is_pending: object) -> Row | None:
        """Return the row at a place; None for a document that this process held and gave up."""
        if is_pending and place in self.server.writes.held:
            entry, _ = self.server.writes.held[place]
            return Row(entry.key, entry.record)
        is_own = is_pending and place[:3] in self.server.leases.fence
        return None if is_own else Row(self._key(place), value, bool(is_pending))

    # Rows

    def get(self, keys: Iterable[str]) -> list[Row]:
        keys = list(keys)
        with self.server.told():
            named = [key for key in keys if records.kind_of(key) in NAMED]
            places = [self.place(key) for key in keys if records.kind_of(key) not in NAMED]
            return [*self._get_named(named), *self._rows_at(filter(None, places)).values()]

    def _get_named(self, keys: Sequence[str]) -> Iterator[Row]:
        commands = [("HGET", self.server.key(records.kind_of(key)), records.id_of(key)) for key in keys]
        for key, value in zip(keys, self.server.run(commands) if commands else [], strict=True):
            if value is not None:
                self._remember(key, value)
                yield Row(key, value)

    def _remember(self, key: str, value: bytes) -> None:
        """Remember what a server that has lost all has to have again."""
        if self._writes and records.kind_of(key) == META:
            self.server.writes.remember_named(["set", META, records.id_of(key), value, True])

    def _rows_at(self, places: Iterable[bytes]) -> dict[bytes, Row]:
        """Return the rows that there are, by place."""
        wanted = list(places)
        found: dict[bytes, Row] = {}
        for at in range(0, len(wanted), AT_ONCE):
            told, _ = self._ask([], b"".join(wanted[at : at + AT_ONCE]))
            found |= self._told(told)
        return found

    def _ask(self, questions: Sequence[Any], places: bytes = b"") -> tuple[list[Any], list[Any]]:
        """Return what is told of rows, and the answers to questions."""
        packed = msgpack.packb([questions, places], use_bin_type=False)
        [[told, answers]] = self.server.run([self.server.call("find", packed, fenced=any(q[3] for q in questions))])
        return told, answers

    def _told(self, told: Sequence[Any]) -> dict[bytes, Row]:
        """Return rows by place."""
        rows = {place: self._row(place, *rest) for place, *rest in zip(told[::3], told[1::3], told[2::3], strict=True)}
        return {place: row for place, row in rows.items() if row}

    def scan(self, kind: str, run: str = "") -> Iterator[Row]:
        if kind in NAMED:
            yield from self._scan_named(kind, run)
            return
        with self.server.told():
            names = self.names()
            for name in sorted(names) if not run else [run] if run in names else []:
                yield from self._scan_run(kind, name, names[name])

    def _scan_named(self, kind: str, run: str) -> Iterator[Row]:
        [rows] = self.server.run([("HGETALL", self.server.key(kind))])
        for name, value in sorted(_pairs(rows)):
            if run in ("", name.decode()):
                yield Row(f"{kind}/{name.decode()}", value)

    def _scan_run(self, kind: str, run: str, ordinal: bytes) -> Iterator[Row]:
        of_kind = ordinal + bytes([KINDS.index(kind)])
        held = {place for place in self.server.writes.held if packing.is_of(place, ordinal, kind)}
        [last] = self.server.run([("HGET", self.server.key("last"), of_kind)])
        for first in range(0, int(last or 0) + 1, AT_ONCE):
            places = [packing.place(ordinal, kind, n) for n in range(first, min(first + AT_ONCE, int(last or 0) + 1))]
            [values] = self.server.run([("MGET", *(f"{self.server.root}r".encode() + place for place in places))])
            for place, value in zip(places, values, strict=True):
                if value is not None or place in held:
                    held.discard(place)
                    row = Row(self._key(place), value) if value is not None else self._row(place, b"", True)
                    if row:
                        yield row
        yield from filter(None, (self._row(place, b"", True) for place in sorted(held)))


def _pairs(flat: Any) -> Iterable[tuple[bytes, bytes]]:
    """Return the fields and values of a hash: protocol 2 has them in turn, 3 as a dictionary."""
    if isinstance(flat, dict):
        return [*flat.items()]
    return zip(flat[::2], flat[1::2], strict=True)
