"""The back end on a server: every decision is made there, so that processes of several machines share them.

Keys, each beginning with `{neardup:NAMESPACE:2}`, so that a cluster keeps them together (2 is the version of all this):
- `rPLACE`: the row of a document, a link or news of hosts; `:run` and `:meta`, hashes: the rows with a name,
- `:pending`, a hash: the rows of documents that are held and not committed, which count while their run's lease lasts,
- `kBUCKET`, 2^18 small hashes: a key's other bits to the places of the rows that it finds, the oldest first; a list
  that is long lies in `KBUCKET…` instead, and is '' in the bucket,
- `nBLOCK`: the places and SimHashes of documents with these 16 bits in that block of four,
- `:names`, a hash: runs to ordinals, and back; `:last`, of each run and kind the highest number; `:lease.ORDINAL`,
- `:news` and `:documents`, streams: rows that were written; the latter while there is `:hears`.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import Any

from ...index.base import NEWEST
from .. import records
from ..base import RUN, Entry, Found, Question, Row, StoreError
from . import packing
from .connection import Command
from .leases import LEASE
from .packing import NAMED, PLACE, packed_keys, pieces
from .rows import AT_ONCE, Rows
from .server import Server
from .writes import BATCH

MANY = 255  # rows of one key that the script returns at most
_HEARD = 86_400  # seconds for which documents are told to who once asked
_STEPS = (("k", 1 << packing.BUCKETS, 64), ("n", 1 << 18, 256))  # buckets that are compacted, and how many at a time
logger = logging.getLogger(__name__)


class RedisBackend(Rows):
    """A store on a server, for several processes of several machines. Raise StoreError where it can't be asked."""

    is_remote = True

    def __init__(self, address: str, namespace: str, *, writes: bool, hears_documents: bool = False) -> None:
        super().__init__(Server(address, namespace), writes=writes)
        self.name = self.server.name
        self._streams = ["news", "documents"] if hears_documents else ["news"]
        self._heard = dict.fromkeys(self._streams, b"0")
        try:
            self._begin()
        except BaseException:
            self.abandon()
            raise

    def _begin(self) -> None:
        asked = [("XREVRANGE", self.server.key(each), "+", "-", "COUNT", 1) for each in self._streams]
        latest = zip(self._streams, self.server.run(asked, checks=self._writes), strict=True)
        self._heard |= {stream: found[0][0] for stream, found in latest if found and isinstance(found, list)}
        if self._writes:
            self.server.run(self._hearing())

    def _hearing(self) -> list[Command]:
        """Return what has all processes tell of documents for some time."""
        return [("SET", self.server.key("hears"), "1", "EX", _HEARD)] if "documents" in self._streams else []

    # Questions

    def find(self, questions: Sequence[Question], entries: Sequence[Entry | None] = ()) -> list[Found]:
        with self.server.told():
            entries = entries or [None] * len(questions)
            holds = [self._holding(entry) if entry else None for entry in entries]
            asked = [self._asked(*each) for each in zip(questions, entries, holds, strict=True)]
            told, answers = self._ask_to_hold(asked, holds)
            for entry, hold, (*_, is_held) in zip(entries, holds, answers, strict=True):
                if entry and hold and is_held:
                    self.server.writes.held[hold[1]] = entry, hold
            rows = self._told(told)
            own = [hold[1] if hold else b"" for hold in holds]
            return [
                self._found(question, answer, rows, own[at:])
                for at, (question, answer) in enumerate(zip(questions, answers, strict=True))
            ]

    def _holding(self, entry: Entry) -> packing.Operation:
        return packing.holding(self._new_place(entry), entry)

    def _ask_to_hold(self, asked: Sequence[Any], holds: Sequence[packing.Operation | None]) -> Any:
        try:
            return self._ask(asked)
        except StoreError:
            self._release_all(holds)  # some may be held
            raise

    def _asked(self, question: Question, entry: Entry | None, hold: packing.Operation | None) -> list[Any]:
        keys = [key for key, most in question.keys.items() if most <= MANY]
        newest = bytes(question.keys[key] for key in keys)
        simhash = question.simhash
        blocks = b"" if simhash is None else packing.blocks(simhash, question.distance)
        asked = [packed_keys(keys), newest, blocks, hold[1:] if hold else False]
        return asked if entry and question.keys.keys() <= {*entry.postings.keys} else [*asked, False]

    def _found(self, question: Question, answer: Any, rows: dict[bytes, Row], own: Iterable[bytes]) -> Found:
        hits, lasts, entries, is_held = answer
        keys = [key for key, most in question.keys.items() if most <= MANY]
        found: dict[int, list[Row]] = {}
        for at, place in zip(reversed(hits[::2]), reversed(hits[1::2]), strict=True):
            if place in rows:
                found.setdefault(keys[at], []).append(rows[place])
        for key, most in question.keys.items():
            if most > MANY:
                found[key] = list(self._rows_at(self._places(key)).values())[-most:]
        near = self._near(question, entries, own) if entries else []
        pairs = zip(pieces(packed_keys(keys), packing.KEY), pieces(lasts, PLACE), strict=True) if lasts else ()
        return Found(found, near, bool(is_held), b"".join(map(b"".join, pairs)))

    def _near(self, question: Question, entries: bytes, own: Iterable[bytes]) -> list[Row]:
        """Return the rows that are near in SimHash, of which some may be gone."""
        assert question.simhash is not None
        places = packing.nearest(entries, question.simhash, question.distance, own)
        rows: dict[bytes, Row] = {}
        for at in range(0, len(places), NEWEST):
            if len(rows) < NEWEST:
                rows |= self._rows_at(places[at : at + NEWEST])
        nearest = [place for place in places if place in rows][:NEWEST]
        return [rows[place] for place in sorted(nearest)]

    def _places(self, key: int) -> list[bytes]:
        """Return all places of a key."""
        [short, long] = self.server.run([self._reading("HGET", key), ("GET", self._long(key))])
        return list(dict.fromkeys(pieces(long or b"" if short == b"" else short or b"", PLACE)))

    def count(self, key: int) -> int:
        [short, long] = self.server.run([self._reading("HSTRLEN", key), ("STRLEN", self._long(key))])
        return int(short or long) // PLACE

    def _reading(self, command: str, key: int) -> tuple[str, bytes, bytes]:
        packed = packed_keys([key])
        return command, f"{self.server.root}k".encode() + packed[:3], packed[3:]

    def _long(self, key: int) -> bytes:
        return f"{self.server.root}K".encode() + packed_keys([key])

    # Pending documents

    def hold(self, entry: Entry, seen: bytes) -> bool:
        with self.server.told():
            operation = self._holding(entry)
            pairs = list(pieces(seen, packing.KEY + PLACE))
            keys = b"".join(pair[: packing.KEY] for pair in pairs)
            lasts = b"".join(pair[packing.KEY :] for pair in pairs)
            _, [[*_, is_held]] = self._ask_to_hold([[keys, b"", b"", operation[1:], lasts]], [operation])
            if is_held:
                self.server.writes.held[operation[1]] = entry, operation
            return bool(is_held)

    def release(self, entry: Entry) -> None:
        with self.server.told():
            self._release_all([self._holding(entry)])

    def _release_all(self, holds: Iterable[packing.Operation | None]) -> None:
        for _, place, _, keys, simhash in filter(None, holds):
            self.server.writes.held.pop(place, None)
            self.server.writes.add(["free", place, keys, simhash])

    # Writing

    def write(self, entries: Sequence[Entry], deleted: Sequence[Entry] = ()) -> None:
        with self.server.told():
            operations = [*map(self._deletion, deleted), *map(self._writing, entries)]
            self.server.writes.add(*operations)
            for operation in operations:
                self.server.writes.held.pop(operation[1], None)
        if len(self.server.writes) >= BATCH and not self.server.writes.failure:
            with suppress(StoreError):  # it stays queued, and `flush` tells
                self.server.run([])

    def _deletion(self, entry: Entry) -> packing.Operation:
        kind = records.kind_of(entry.key)
        if kind in NAMED:
            return ["set", kind, records.id_of(entry.key), False, False]
        return ["drop", self._new_place(entry), *packing.packed(entry.postings)]

    def _writing(self, entry: Entry) -> packing.Operation:
        kind = records.kind_of(entry.key)
        if kind in NAMED:
            value = records.dump(entry.key, entry.record)
            return ["set", kind, records.id_of(entry.key), value, False, entry.keeps_place]
        place = self._new_place(entry)
        return packing.writing(place, entry, self.server.writes.held.get(place, (None, None))[1])

    def flush(self, *, wait: bool) -> None:
        if wait:
            self.server.connection.wait(LEASE)
        if wait or self.server.writes or self.server.writes.failure:
            self.server.flush()

    def news(self) -> tuple[list[Row], bool]:
        with self.server.told():
            after = [(each, b"(" + self._heard[each]) for each in self._streams]
            reading = [("XRANGE", self.server.key(name), first, "+", "COUNT", AT_ONCE) for name, first in after]
            told = self.server.run([*reading, *(self._hearing() if self._writes else ())])[: len(reading)]
            places: list[bytes] = []
            runs: list[bytes] = []
            for stream, entries in zip(self._streams, told, strict=True):
                for id, (what, value) in entries:
                    self._heard[stream] = id
                    (places if what == b"place" else runs).append(value)
            rows = self._rows_at(dict.fromkeys(places)).values()
            named = self._get_named([f"{RUN}/{name.decode()}" for name in dict.fromkeys(runs)])
            return [*named, *(row for row in rows if not row.is_pending)], any(len(each) == AT_ONCE for each in told)

    # Runs

    def hold_run(self, run: str) -> bool:
        with self.server.told():
            if not self.server.leases.take(self.server.ask, run):
                return False
        if self.server.leases.renew_on(self.server.renew):
            self._warn_of_eviction()
        return True

    def is_held(self, run: str) -> bool:
        with self.server.told():
            ordinal = self.server.leases.ordinal(self.server.ask, run, makes=False)
            return ordinal is not None and bool(self.server.run([("EXISTS", self._lease(ordinal))])[0])

    def _lease(self, ordinal: bytes) -> bytes:
        return self.server.key("lease.").encode() + ordinal

    def release_run(self, run: str) -> None:
        with self.server.told():
            self.server.leases.release(self.server.ask, run)

    # All of it

    def describe(self) -> dict[str, object]:
        memory = self.server.memory()
        return {
            "bytes_server": int(memory.get("used_memory", 0)),
            "eviction": memory.get("maxmemory_policy", "noeviction"),
        }

    def _warn_of_eviction(self) -> None:
        memory = self.server.memory()
        policy = memory.get("maxmemory_policy", "noeviction")
        if policy != "noeviction" and memory.get("maxmemory", "0") != "0":
            logger.warning(
                "Store %r: when the server is full it drops keys, documents with them: set its maxmemory-policy to"
                " noeviction instead of %s", self.name, policy,
            )  # fmt: skip

    def compact(self) -> None:
        with self.server.told():
            self.server.ask("compact", ["pending", 0, 0])
            for what, count, step in _STEPS:
                for first in range(0, count, step):
                    self.server.ask("compact", [what, first, min(first + step, count) - 1])

    def abandon(self) -> None:
        self.server.close()
