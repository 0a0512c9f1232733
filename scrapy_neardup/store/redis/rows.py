"""Read rows from a server."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import msgpack

from ..interface import Row
from ..records import META, VISIT, id_of, kind_of, load, run_key, run_of
from . import encoding
from .encoding import CODE, NAMED, PLACE, packed_keys, pieces
from .server import Server

AT_ONCE = 500  # rows to read at a time


class Rows:
    """The rows of one namespace, including pending documents of this process."""

    def __init__(self, server: Server, *, writes: bool) -> None:
        self.server = server
        self._writes = writes
        self._runs: dict[bytes, str] = {}

    def names(self) -> dict[str, bytes]:
        """Return the code of each run, by the id of the run."""
        [names] = self.server.run([("HGETALL", self.server.key("names"))])
        return {run.decode(): code for code, run in zip(names[::2], names[1::2], strict=True)}

    def _key(self, place: bytes) -> str:
        """Return the key of the row at a place. Raise ValueError if its run is unknown."""
        if encoding.is_visit(place):
            return f"{VISIT}/{place.hex()}"
        code = place[:CODE]
        if code not in self._runs:
            self._runs = {code: run for run, code in self.names().items()}
        if code not in self._runs:
            raise ValueError(f"no run has the code {code.hex()}")
        return encoding.key_at(place, self._runs[code])

    def get(self, keys: Iterable[str]) -> list[Row]:
        keys = list(keys)
        with self.server.store_errors():
            named = [key for key in keys if kind_of(key) in NAMED]
            places = [encoding.place(key) for key in keys if kind_of(key) not in NAMED]
            return [*self._get_named(named), *self._rows_at(places).values()]

    def _get_named(self, keys: Sequence[str]) -> Iterator[Row]:
        commands = [("HGET", self.server.key(kind_of(key)), id_of(key)) for key in keys]
        for key, value in zip(keys, self.server.run(commands) if commands else [], strict=True):
            if value is not None:
                # If the server loses its data, this row is written again.
                if self._writes and kind_of(key) == META:
                    self.server.writes.remember(["add", META, id_of(key), value])
                yield Row(key, value)

    def _rows_at(self, places: Iterable[bytes]) -> dict[bytes, Row]:
        """Return the existing rows at these places, as a dictionary by place."""
        wanted = list(places)
        found: dict[bytes, Row] = {}
        for at in range(0, len(wanted), AT_ONCE):
            told, _ = self._ask([], b"".join(wanted[at : at + AT_ONCE]))
            found |= self._decoded(told)
        return found

    def _ask(self, questions: Sequence[Any], places: bytes = b"") -> tuple[list[Any], list[Any]]:
        """Send lookups, and request the rows at `places`. Return all rows found, and the answers to the lookups."""
        packed = msgpack.packb([questions, places], use_bin_type=False)
        [[told, answers]] = self.server.run([self.server.script("find", packed)])
        return told, answers

    def _decoded(self, told: Sequence[Any]) -> dict[bytes, Row]:
        """Decode the rows in an answer, by place. Leave out pending documents that this process has withdrawn."""
        rows, own, held = {}, {*map(encoding.code, self.server.runs)}, self.server.writes.held
        for place, value, is_pending in zip(told[::3], told[1::3], told[2::3], strict=True):
            is_own = is_pending and place[:CODE] in own
            if not is_own:
                rows[place] = Row(self._key(place), value, bool(is_pending))
            elif place in held:
                rows[place] = Row(self._key(place), held[place].record)
        return rows

    def scan(self, kind: str, run: str = "") -> Iterator[Row]:
        with self.server.store_errors():
            if kind in NAMED:
                yield from self._scan_named(kind, run)
                return
            for name in [run] if run else sorted(self.names()):
                yield from self._scan_visits(name) if kind == VISIT else self._scan_run(name)

    def _scan_visits(self, run: str) -> Iterator[Row]:
        """Yield the visits whose state a run saw first. Those that another run has seen since are listed there too."""
        for row in self._rows_at(self._places(run_key(run))).values():
            if isinstance(row.value, bytes) and run_of(load(row.key, row.value).at) == run:
                yield row

    def _places(self, key: int) -> list[bytes]:
        """Return the places of all rows that the index has for a key, oldest first."""
        packed, root = packed_keys([key]), self.server.root.encode()
        [short, long] = self.server.run([("HGET", root + b"k" + packed[:3], packed[3:]), ("GET", root + b"K" + packed)])
        return list(dict.fromkeys(pieces(short or long or b"", PLACE)))

    def _scan_named(self, kind: str, run: str) -> Iterator[Row]:
        [rows] = self.server.run([("HGETALL", self.server.key(kind))])
        for name, value in sorted(zip(rows[::2], rows[1::2], strict=True)):
            if not run or name.decode().partition("/")[0] == run:
                yield Row(f"{kind}/{name.decode()}", value)

    def _scan_run(self, run: str) -> Iterator[Row]:
        [last] = self.server.run([("HGET", self.server.key("last"), encoding.code(run))])
        numbers = encoding.places(run)
        written = numbers[: int(last or -1) + 1]
        for at in range(0, len(written), AT_ONCE):
            places = [number.to_bytes(PLACE, "big") for number in written[at : at + AT_ONCE]]
            [values] = self.server.run([("MGET", *(f"{self.server.root}r".encode() + place for place in places))])
            for place, value in zip(places, values, strict=True):
                if value is not None:
                    yield Row(self._key(place), value)
        for hold in [*self.server.writes.held.values()]:
            if int.from_bytes(hold.place, "big") in numbers:
                yield Row(self._key(hold.place), hold.record)
