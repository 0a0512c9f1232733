"""The back end on a server. Lookups and writes are atomic scripts on the server.

All keys begin with `{neardup:NAMESPACE:3}`, which keeps them on one node of a cluster. 3 is the version of this layout:

- `rPLACE`: the row of a document or visit. PLACE is its place, 8 bytes (see `encoding`).
- `:run`, `:meta` and `:host`: hashes of the other rows by name.
- `:pending`: a hash of pending documents by place. A pending document is valid while the lease of its run lasts.
- `kBUCKET`: 2^18 small hashes. The first bits of an index key choose the bucket. The bucket maps the other bits to the
  places of the rows, oldest first. If this list is long, it is stored in `K` with the whole index key instead, and the
  bucket has '' in its place.
- `nBLOCK`: a list of places and SimHashes of documents. BLOCK is one of the four blocks of a SimHash, as its number and
  its 16 bits. Each document is in four such lists.
- `:names`: a hash from the code of a run to its id.
- `:last`: a hash from the code of a run to the highest number of its documents.
- `:lease.CODE`: the lease of a run.
- `:news`: a stream of written rows of runs and hosts, and of documents while `:hears` exists.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any

from ...index.kinds import NEWEST
from ..interface import Entry, Found, Question, Row, StoreError
from ..records import DOCUMENT, HOST, RUN
from . import encoding
from .encoding import KEY, PLACE, Hold, packed_keys
from .rows import Rows
from .server import Server
from .writes import BATCH

MANY = 255  # the maximum number of rows of a key that the script returns, sent as one byte
NEWS = 2000  # entries of the stream to read at a time
_HEARD = 86_400  # seconds for which new documents are announced after a process last asked for them
_STEPS = (("k", 1 << encoding.BUCKETS, 64), ("n", 1 << 18, 256))  # buckets to compact: prefix, number, step
logger = logging.getLogger(__name__)


class RedisBackend(Rows):
    """A back end on a server, for processes on several machines. Raises StoreError if it can't be reached."""

    is_remote = True

    def __init__(self, address: str, namespace: str, *, writes: bool, hears_documents: bool = False) -> None:
        super().__init__(Server(address, namespace), writes=writes)
        self.name = self.server.name
        self._hears_documents = hears_documents
        self._hearing = [("SET", self.server.key("hears"), "1", "EX", _HEARD)] if hears_documents and writes else []
        try:
            latest = ("XREVRANGE", self.server.key("news"), "+", "-", "COUNT", 1)
            told, *_ = self.server.run([latest, *self._hearing], checks=writes)
            self._heard = told[0][0] if told and isinstance(told, list) else b"0"
            if writes:
                self._warn_of_eviction()
            self.server.keep()
        except BaseException:
            self.abandon()
            raise

    # Lookups

    def find(
        self, questions: Sequence[Question], entries: Sequence[Entry | None] = (), ahead: Sequence[str] = ()
    ) -> list[Found]:
        with self.server.store_errors():
            holds = [entry and encoding.holding(entry) for entry in entries or [None] * len(questions)]
            places = [*map(encoding.place, ahead)]
            told, answers = self._ask_to_hold([*map(_asked, questions, holds)], holds, b"".join(places))
            rows = self._decoded(told)
            own = [hold.place if hold else b"" for hold in holds]
            found = [
                self._found(question, answer, rows, own[at:])
                for at, (question, answer) in enumerate(zip(questions, answers, strict=True))
            ]
            found[0].ahead = [rows[place] for place in places if place in rows]
            return found

    def _ask_to_hold(
        self, asked: Sequence[Any], holds: Sequence[Hold | None], places: bytes = b""
    ) -> tuple[list[Any], list[Any]]:
        """Send lookups, and note the documents that the server now holds. Return rows found, and answers to lookups."""
        try:
            told, answers = self._ask(asked, places)
        except StoreError:
            self._release_all(holds)  # the server may have held some of them
            raise
        self.server.writes.held |= {
            hold.place: hold for hold, (*_, is_held) in zip(holds, answers, strict=True) if hold and is_held
        }
        return told, answers

    def _found(self, question: Question, answer: Any, rows: dict[bytes, Row], own: Iterable[bytes]) -> Found:
        hits, lasts, entries, is_held = answer
        keys = _few(question)
        found: dict[int, list[Row]] = {}
        for at, place in zip(reversed(hits[::2]), reversed(hits[1::2]), strict=True):
            if place in rows:
                found.setdefault(keys[at], []).append(rows[place])
        for key, most in question.keys.items():
            if most > MANY:
                found[key] = list(self._rows_at(self._places(key)).values())[-most:]
        near = self._near(question, entries, own, rows) if entries else []
        return Found(found, near, bool(is_held), b"" if is_held else packed_keys(keys) + lasts)

    def _near(self, question: Question, entries: bytes, own: Iterable[bytes], known: Mapping[bytes, Row]) -> list[Row]:
        """Return the existing rows with a near SimHash. `entries` has the index entries of the SimHash's blocks.

        Rows in `known` are not read again. Most near documents also share a key, so this saves a round trip.
        """
        assert question.simhash is not None
        places = encoding.nearest(entries, question.simhash, question.distance, own)
        rows: dict[bytes, Row] = {}
        for at in range(0, len(places), NEWEST):
            if len(rows) < NEWEST:
                some = places[at : at + NEWEST]
                rows |= {place: known[place] for place in some if place in known}
                rows |= self._rows_at(place for place in some if place not in known)
        nearest = [place for place in places if place in rows][:NEWEST]
        return [rows[place] for place in sorted(nearest)]

    def count(self, key: int) -> int:
        return len(self._places(key))

    # Pending documents

    def hold(self, entry: Entry, seen: bytes) -> bool:
        with self.server.store_errors():
            hold = encoding.holding(entry)
            middle = len(seen) // (KEY + PLACE) * KEY
            asked = [seen[:middle], b"", b"", hold[:4], seen[middle:]]
            _, [[*_, is_held]] = self._ask_to_hold([asked], [hold])
            return bool(is_held)

    def release(self, entry: Entry) -> None:
        self._release_all([encoding.holding(entry)])

    def _release_all(self, holds: Iterable[Hold | None]) -> None:
        self.server.writes.add(*(["free", each.place, each.keys, each.simhash] for each in holds if each))

    # Writing

    def write(self, entries: Sequence[Entry], deleted: Sequence[Entry] = ()) -> None:
        writes = self.server.writes
        writes.add(*map(encoding.deletion, deleted), *(encoding.writing(entry, writes.held) for entry in entries))
        if len(writes) >= BATCH and not writes.refused:
            with suppress(StoreError):  # the rows stay in the queue, and `flush` raises
                self.server.run(())

    def flush(self, *, wait: bool) -> None:
        if wait or self.server.writes:
            self.server.flush(tells=wait)

    def reach(self) -> None:
        self.server.reach()

    def news(self) -> tuple[list[Row], bool]:
        with self.server.store_errors():
            later = ("XRANGE", self.server.key("news"), b"(" + self._heard, "+", "COUNT", NEWS)
            told, *_ = self.server.run([later, *self._hearing])
            names: dict[str, dict[bytes, None]] = {RUN: {}, HOST: {}, DOCUMENT: {}}
            for _, (kind, name) in told:
                names[kind.decode()][name] = None
            rows = [*self._get_named([f"{kind}/{name.decode()}" for kind in (RUN, HOST) for name in names[kind]])]
            if self._hears_documents:
                rows += [row for row in self._rows_at(names[DOCUMENT]).values() if not row.is_pending]
            if told:  # set last, so that a failure above loses no news
                self._heard = told[-1][0]
            return rows, len(told) == NEWS

    # Runs

    def hold_run(self, run: str) -> bool:
        return self.server.take(run)

    def is_held(self, run: str) -> bool:
        lease = self.server.key("lease.").encode() + encoding.code(run)
        return bool(self.server.run([("EXISTS", lease)])[0])

    def release_run(self, run: str) -> None:
        self.server.release(run)

    # The store as a whole

    def meet(self) -> None:
        pass

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
                "Store %r: a full server deletes documents; set its maxmemory-policy to"
                " noeviction instead of %s", self.name, policy,
            )  # fmt: skip

    def compact(self) -> None:
        for what, count, step in _STEPS:
            for first in range(0, count, step):
                self.server.run([self.server.script("compact", what, first, min(first + step, count) - 1)])

    def abandon(self) -> None:
        self.server.close()


def _few(question: Question) -> list[int]:
    return [key for key, most in question.keys.items() if most <= MANY]


def _asked(question: Question, hold: Hold | None) -> list[Any]:
    """Return a lookup as arguments of the script `find`."""
    keys = _few(question)
    newest = bytes(question.keys[key] for key in keys)
    blocks = b"" if question.simhash is None else encoding.blocks(question.simhash, question.distance)
    return [packed_keys(keys), newest, blocks, hold[:4] if hold else False]
