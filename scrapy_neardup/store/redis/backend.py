"""The back end on a server. Lookups and writes are one atomic script on the server, `store.lua`.

All keys begin with `{neardup:NAMESPACE:4}`, which keeps them on one node of a cluster. 4 is the version of this layout:

- `rPLACE`: the row of a document or link. PLACE is its place, 8 bytes: the code of its run (32 bits), its kind (1 bit)
  and its number (31 bits).
- `:run`, `:meta` and `:host`: hashes of the other rows by name.
- `kBUCKET`: 2^18 small hashes. The first 18 bits of an index key choose the bucket. The bucket maps bits 16 to 48 of the
  key to the places of the rows, oldest first. If this list is long, it is in `k` with the first 48 bits of the key
  instead, and the bucket has '' in its place.
- `nBLOCK`: a list of places and SimHashes of documents. BLOCK is one of the four blocks of a SimHash, as its number and
  its 16 bits. Each document is in four such lists.
- `:names`: a hash from the code of a run to its id.
- `:last`: a hash from the code of a run to its highest row number.
- `:lease.CODE`: the lease of a run, a hash of its pending documents by place. It expires unless it is renewed.
- `:news`: a stream of written rows of runs and hosts, and of documents while `:hears` exists.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cache
from itertools import islice
from struct import pack
from typing import Any

import numpy as np

from ...index.kinds import NEWEST
from ...index.row_index import flips, most_flips
from .. import records
from ..interface import DOCUMENT, HOST, LINK, META, RUN, Entry, Found, Postings, Question, Row, StoreError
from ..keys import id_of, key_of, kind_of, place_of
from .connection import BATCH, Hold, Operation, Server, code, keys, store_errors

KINDS = (DOCUMENT, LINK)
NAMED = (RUN, META, HOST)  # kinds of rows that have a name instead of a place, with one hash for each kind
CODE, PLACE, KEY = 4, 8, 8  # bytes of a run's code, a place and a key
MANY = 255  # the maximum number of rows of a key that the script returns, sent as one byte
AT_ONCE = 500  # rows to read at a time
NEWS = 2000  # entries of the stream to read at a time
_HEARD = 86_400  # seconds for which new documents are announced after a process last asked for them
_NUMBER = 31  # bits of a row number
_ENTRY = np.dtype([("place", f"V{PLACE}"), ("simhash", ">u8")])
logger = logging.getLogger(__name__)


class RedisBackend:
    """A back end on a server, for processes on several machines. Raises StoreError if it can't be reached."""

    is_remote = True

    def __init__(self, address: str, namespace: str, *, writes: bool, hears_documents: bool = False) -> None:
        self.server = Server(address, namespace)
        self.name = self.server.name
        self._address = address
        self._writes = writes
        self._runs: dict[bytes, str] = {}
        self._hears_documents = hears_documents
        self._hearing = [["call", "SET", self.server.key("hears"), "1", "EX", _HEARD]] * (hears_documents and writes)
        try:
            latest = ["call", "XREVRANGE", self.server.key("news"), "+", "-", "COUNT", 1]
            told, *_ = self.server.run(latest, *self._hearing, checks=writes)
            self._heard = told[0][0] if told and isinstance(told, list) else b"0"
            if writes:
                self._warn_of_eviction()
            self.server.keep()
        except BaseException:
            self.abandon()
            raise

    # Rows

    def get(self, keys: Iterable[str]) -> list[Row]:
        keys = list(keys)
        with store_errors(self.name):
            named = [key for key in keys if kind_of(key) in NAMED]
            places = [place(key) for key in keys if kind_of(key) not in NAMED]
            return [*self._get_named(named), *self._rows_at(places).values()]

    def _get_named(self, keys: Sequence[str]) -> Iterator[Row]:
        asked = [["call", "HGET", self.server.key(kind_of(key)), id_of(key)] for key in keys]
        for key, value in zip(keys, self.server.run(*asked) if asked else [], strict=True):
            if value is not None:
                # If the server loses its data, this row is written again.
                if self._writes and kind_of(key) == META:
                    self.server.queue.remember(["add", META, id_of(key), value])
                yield Row(key, value)

    def _rows_at(self, places: Iterable[bytes]) -> dict[bytes, Row]:
        """Return the existing rows at these places, as a dictionary by place."""
        wanted, found = iter(places), dict[bytes, Row]()
        while some := b"".join(islice(wanted, AT_ONCE)):
            [[told, _]] = self.server.run(["look", [], some])
            found |= self._decoded(told)
        return found

    def _decoded(self, told: Sequence[Any]) -> dict[bytes, Row]:
        """Decode the rows in an answer, by place. Leave out pending documents that this process has withdrawn."""
        rows, own, held = {}, {*self.server.runs.values()}, self.server.queue.held
        for place, value, is_pending in zip(told[::3], told[1::3], told[2::3], strict=True):
            is_own = is_pending and place[:CODE] in own
            if not is_own:
                rows[place] = Row(self._key(place), value, bool(is_pending))
            elif place in held:
                rows[place] = Row(self._key(place), held[place].record)
        return rows

    def names(self) -> dict[str, bytes]:
        """Return the code of each run, by the id of the run."""
        [names] = self.server.run(["call", "HGETALL", self.server.key("names")])
        return {run.decode(): code for code, run in zip(names[::2], names[1::2], strict=True)}

    def _key(self, place: bytes) -> str:
        """Return the key of the row at a place. Raise ValueError if its run is unknown."""
        if place[:CODE] not in self._runs:
            self._runs = {code: run for run, code in self.names().items()}
        if place[:CODE] not in self._runs:
            raise ValueError(f"no run has the code {place[:CODE].hex()}")
        number = int.from_bytes(place[CODE:], "big")
        return key_of(KINDS[number >> _NUMBER], self._runs[place[:CODE]], number & (1 << _NUMBER) - 1)

    def scan(self, kind: str, run: str = "") -> Iterator[Row]:
        with store_errors(self.name):
            if kind not in NAMED:
                for name in [run] if run else sorted(self.names()):
                    yield from self._scan_run(kind, name)
                return
            [rows] = self.server.run(["call", "HGETALL", self.server.key(kind)])
            for name, value in sorted(zip(rows[::2], rows[1::2], strict=True)):
                if not run or name.decode().partition("/")[0] == run:
                    yield Row(f"{kind}/{name.decode()}", value)

    def _scan_run(self, kind: str, run: str) -> Iterator[Row]:
        [last] = self.server.run(["call", "HGET", self.server.key("last"), code(run)])
        numbers = places(kind, run)
        written = numbers[: int(last or -1) + 1]
        for at in range(0, len(written), AT_ONCE):
            rows = self._rows_at(number.to_bytes(PLACE, "big") for number in written[at : at + AT_ONCE])
            yield from (row for row in rows.values() if isinstance(row.value, bytes) and not row.is_pending)
        for hold in [*self.server.queue.held.values()]:
            if int.from_bytes(hold.place, "big") in numbers:
                yield Row(self._key(hold.place), hold.record)

    # Lookups

    def find(self, questions: Sequence[Question], entries: Sequence[Entry | None] = ()) -> list[Found]:
        with store_errors(self.name):
            holds = [entry and _holding(entry) for entry in entries or [None] * len(questions)]
            told, answers = self._look([*map(_asked, questions, holds)], holds)
            rows = self._decoded(told)
            own = [hold.place if hold else b"" for hold in holds]
            return [
                self._found(question, answer, rows, own[at:])
                for at, (question, answer) in enumerate(zip(questions, answers, strict=True))
            ]

    def _look(self, asked: Sequence[Any], holds: Sequence[Hold | None]) -> tuple[list[Any], list[Any]]:
        """Send lookups, and note the documents that the server now holds. Return rows found, and answers to lookups."""
        try:
            [[told, answers]] = self.server.run(["look", asked, b""])
        except StoreError:
            self._release(holds)  # the server may have held some of them
            raise
        self.server.queue.held |= {
            hold.place: hold for hold, (*_, is_held) in zip(holds, answers, strict=True) if hold and is_held
        }
        return told, answers

    def _found(self, question: Question, answer: Any, rows: dict[bytes, Row], own: Iterable[bytes]) -> Found:
        hits, lasts, entries, is_held = answer
        few = _few(question)
        found: dict[int, list[Row]] = {}
        for at, place in zip(reversed(hits[::2]), reversed(hits[1::2]), strict=True):
            if place in rows:
                found.setdefault(few[at], []).append(rows[place])
        for key, most in question.keys.items():
            if most > MANY:
                found[key] = list(self._rows_at(self._places(key)).values())[-most:]
        near = self._near(question, entries, own, rows) if entries else []
        return Found(found, near, bool(is_held), b"" if is_held else packed_keys(few) + lasts)

    def _near(self, question: Question, entries: bytes, own: Iterable[bytes], known: Mapping[bytes, Row]) -> list[Row]:
        """Return the existing rows with a near SimHash. `entries` has the index entries of the SimHash's blocks.

        Rows in `known` are not read again. Most near documents also share a key, so this saves a round trip.
        """
        assert question.simhash is not None
        places = nearest(entries, question.simhash, question.distance, own)
        rows: dict[bytes, Row] = {}
        for at in range(0, len(places), NEWEST):
            if len(rows) < NEWEST:
                some = places[at : at + NEWEST]
                rows |= {place: known[place] for place in some if place in known}
                rows |= self._rows_at(place for place in some if place not in known)
        found = [place for place in places if place in rows][:NEWEST]
        return [rows[place] for place in sorted(found)]

    def _places(self, key: int) -> list[bytes]:
        """Return the places of all rows that the index has for a key, oldest first."""
        [packed] = self.server.run(["places", packed_keys([key])])
        return list(dict.fromkeys(pieces(packed, PLACE)))

    def count(self, key: int) -> int:
        return len(self._places(key))

    # Pending documents

    def hold(self, entry: Entry, seen: bytes) -> bool:
        with store_errors(self.name):
            hold, middle = _holding(entry), len(seen) // 2
            _, [[*_, is_held]] = self._look([[seen[:middle], b"", b"", hold[:4], seen[middle:]]], [hold])
            return bool(is_held)

    def release(self, entry: Entry) -> None:
        self._release([_holding(entry)])
        self.server.hurry()  # another process may wait for it

    def _release(self, holds: Iterable[Hold | None]) -> None:
        self.server.queue.add(*(["free", each.place, each.keys, each.simhash] for each in holds if each))

    # Writing

    def write(self, entries: Sequence[Entry], deleted: Sequence[Entry] = ()) -> None:
        queue = self.server.queue
        queue.add(*map(_deletion, deleted), *(_writing(entry, queue.held) for entry in entries))
        if len(queue) >= BATCH and not queue.refused:
            with suppress(StoreError):  # the rows stay in the queue, and `flush` raises
                self.server.run()

    def flush(self, *, wait: bool) -> None:
        if wait or self.server.queue:
            self.server.flush(tells=wait)

    def reach(self) -> None:
        self.server.reach()

    def news(self) -> tuple[list[Row], bool]:
        with store_errors(self.name):
            later = ["call", "XRANGE", self.server.key("news"), b"(" + self._heard, "+", "COUNT", NEWS]
            told, *_ = self.server.run(later, *self._hearing)
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
        return bool(self.server.run(["call", "EXISTS", self.server.lease(run)])[0])

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
        self.flush(wait=True)
        lists = keys(self._address, f"{self.server.root}[kn]*")
        while some := [["tidy", name] for name in islice(lists, BATCH)]:
            self.server.run(*some)

    def abandon(self) -> None:
        self.server.close()


# The arguments of the script


def place(key: str) -> bytes:
    """Return the place of the row with this key, as 8 bytes. Raise IndexError if the row number is too high."""
    run, number = place_of(id_of(key))
    return places(kind_of(key), run)[number].to_bytes(PLACE, "big")


def places(kind: str, run: str) -> range:
    """Return all possible places of the rows of a kind and run. Item N is the place of row N, as an integer."""
    first = int.from_bytes(code(run), "big") << 32 | KINDS.index(kind) << _NUMBER
    return range(first, first + (1 << _NUMBER))


def pieces(packed: bytes, size: int) -> Iterator[bytes]:
    """Yield consecutive pieces of `size` bytes."""
    return (packed[at : at + size] for at in range(0, len(packed), size))


def packed_keys(keys: Sequence[int]) -> bytes:
    return pack(f">{len(keys)}Q", *keys)


def packed(postings: Postings) -> tuple[bytes, bytes]:
    """Return the keys and the SimHash of postings as bytes. Without a SimHash, the second value is b""."""
    simhash = postings.simhash
    return packed_keys([*dict.fromkeys(postings.keys)]), b"" if simhash is None else pack(">Q", simhash)


def _holding(entry: Entry) -> Hold:
    """Encode the document in an entry as the arguments that hold it as pending."""
    return Hold(place(entry.key), records.dump(entry.key, entry.record), *packed(entry.postings), entry.record)


def _writing(entry: Entry, held: Mapping[bytes, Hold]) -> Operation:
    """Return the operation that writes a row. `held` maps places to pending documents."""
    kind, value = kind_of(entry.key), records.dump(entry.key, entry.record)
    if kind in NAMED:
        return ["set", kind, id_of(entry.key), value, kind != META and not entry.keeps_place]
    at, (keys, simhash) = place(entry.key), packed(entry.postings)
    others: bytes | bool = b"" if entry.keeps_place else False
    if (hold := held.get(at)) and hold.simhash == simhash:
        before = {*pieces(hold.keys, KEY)}
        others = b"".join(key for key in pieces(keys, KEY) if key not in before)
    return ["row", at, value, keys, simhash, others, kind == DOCUMENT]


def _deletion(entry: Entry) -> Operation:
    kind = kind_of(entry.key)
    if kind in NAMED:
        return ["set", kind, id_of(entry.key), False, False]
    return ["drop", place(entry.key), *packed(entry.postings)]


def _few(question: Question) -> list[int]:
    return [key for key, most in question.keys.items() if most <= MANY]


def _asked(question: Question, hold: Hold | None) -> list[Any]:
    """Return a lookup as arguments of the script."""
    few = _few(question)
    newest = bytes(question.keys[key] for key in few)
    blocks = b"" if question.simhash is None else _blocks(question.simhash, question.distance)
    return [packed_keys(few), newest, blocks, hold[:4] if hold else False]


def _blocks(simhash: int, distance: int) -> bytes:
    """Return the blocks to search for SimHashes within a Hamming distance of `simhash`: number and value of each."""
    values = np.array([simhash], ">u8").view(">u2")
    which, flipped = _probes(distance)
    names = np.empty(len(which), [("block", "u1"), ("value", ">u2")])
    names["block"], names["value"] = which, values[which] ^ flipped
    return names.tobytes()


@cache
def _probes(distance: int) -> tuple[Any, Any]:
    pairs = [(block, flip) for block, most in enumerate(most_flips(distance)) for flip in flips(most)]
    which, flipped = zip(*pairs, strict=True)
    return np.array(which, np.uint8), np.array(flipped, np.uint16)


def nearest(entries: bytes, simhash: int, distance: int, left_out: Iterable[bytes]) -> Sequence[bytes]:
    """Return the places of documents with a SimHash within a Hamming distance of `simhash`, nearest first.

    `entries` has the places and SimHashes to search. Places in `left_out` are not returned. Raise ValueError if
    `entries` is damaged.
    """
    table = np.frombuffer(entries, _ENTRY)
    far = np.bitwise_count(table["simhash"] ^ np.uint64(simhash))
    near = (far <= distance).nonzero()[0]
    order = near[np.argsort(far[near], kind="stable")]
    found = dict.fromkeys(table["place"][order].tolist())
    for each in left_out:
        found.pop(each, None)
    return list(found)
