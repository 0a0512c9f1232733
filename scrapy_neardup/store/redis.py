"""The back end on a server, over the connection of `redis_server`. Lookups and writes are one script, `redis.lua`.

The *place* of a row is its key as bytes. That of a document has 8: a bit that is 0, the code of its run (31 bits), and
its number (32 bits). That of a visit has 8 too, but its first bit is 1. Any other row has the place `key/KIND/NAME`.

All keys begin with `{neardup:NAMESPACE:5}`, which keeps them on one node of a cluster. 5 is the version of this layout:

- `:document.CODE`: a hash of the documents of a run, by place.
- `:visit` and `:name`: hashes of the visits of URLs, and of the visits with a name, by place.
- `:run`, `:meta` and `:host`: hashes of the other rows by NAME.
- `kBUCKET`: 2^18 small hashes. The first 18 bits of an index key choose the bucket. The bucket maps bits 16 to 48 of
  the key to a list of the places of rows, oldest first. If the list is long, the bucket has '' for it, and the list is
  in `k` with the first 48 bits of the key.
- `nBLOCK`: a list of places and SimHashes of documents. BLOCK is one of the four blocks of a SimHash, as its number and
  its 16 bits. Each document is in four such lists.
- `:last`: a hash from the code of a run to the highest number of its documents.
- `:lease.CODE`: the lease of a run, a hash of its pending documents by place. It expires unless it is renewed.
- `:news`: a stream of the places of written rows with text keys; `:added`: one of the places of new documents.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from itertools import chain, islice
from struct import pack, unpack
from threading import Thread
from typing import Any
from urllib.parse import unquote

from ..row_index import Question, flips
from . import records, shown_address
from .backend import Backend, Entry, Found, Row, StoreError
from .records import DOCUMENT, META, VISIT, Key, bounds, kind_of
from .redis_server import PLACE, VERSION, Operation, Server, clients, code, logger, store_errors

CODE = 4  # bytes of a run's code
MANY = 255  # the maximum number of rows of a key to read with a lookup
AT_ONCE = 500  # rows to read at a time
NEWS = 2000  # entries of a stream to read at a time


class RedisBackend(Server, Backend):
    """A back end on a server, for processes on several machines. Raises StoreError if it can't be reached."""

    is_remote = True

    def __init__(self, address: str, namespace: str, *, writes: bool) -> None:
        super().__init__(address, namespace)
        self._heard = {"news": b"0", "added": b"0"}  # the last entry read of each stream
        try:
            asked = (["call", "XREVRANGE", self.key(each), "+", "-", "COUNT", 1] for each in self._heard)
            latest = self.execute(*asked)
            self._heard.update((each, told[0][0]) for each, told in zip(self._heard, latest, strict=True) if told)
            memory = self._memory() if writes else {}
            if memory.get("maxmemory", "0") != "0" and (policy := memory["maxmemory_policy"]) != "noeviction":
                advice = "a full server deletes documents; set its maxmemory-policy to noeviction instead of"
                logger.warning("Store %r: %s %s", self.name, advice, policy)
            Thread(target=self.keep, name="neardup-redis", daemon=True).start()
        except BaseException:
            self.close()
            raise

    # Rows

    def get(self, keys: Iterable[Key]) -> list[Row]:
        rows = [*self._rows_at(map(place, keys))]
        for key, value, _ in rows:
            if kind_of(key) == META:  # if the server loses its data, this row is written again
                self.remember(["row", place(key), b"", b"", value, 0])
        return rows

    def _rows_at(self, places: Iterable[bytes]) -> Iterator[Row]:
        """Yield the existing rows at these places, in order."""
        wanted = iter(places)
        while some := [*islice(wanted, AT_ONCE)]:
            [[told, _]] = self.execute(["look", [], some])
            yield from self._decoded(told).values()

    def _decoded(self, told: Sequence[Any]) -> dict[bytes, Row]:
        """Return the rows in an answer, by place. Leave out pending documents that this process has withdrawn."""
        rows = {}
        for place, value, is_pending in zip(told[::3], told[1::3], told[2::3], strict=True):
            is_own = is_pending and place[:CODE] in self.runs
            if not is_own or place in self.held:
                rows[place] = Row(_key(place), value, bool(is_pending and not is_own))
        return rows

    def writers(self) -> set[int]:
        return {int.from_bytes(run, "big") for run in self._last()}

    def _last(self) -> dict[bytes, int]:
        """Return the number of the last document of each run, by the code of the run."""
        [last] = self.execute(["call", "HGETALL", self.key("last")])
        with store_errors(self.name):
            return dict(zip(last[::2], map(int, last[1::2]), strict=True))

    def scan(self, kind: str, run: str = "") -> Iterator[Row]:
        with store_errors(self.name):
            if kind == DOCUMENT:
                yield from self._documents([code(run)] if run else [])
            elif kind == VISIT:
                pairs = chain(self._pairs("visit"), self._pairs("name"))
                yield from (Row(_key(place), value) for place, value in pairs)
            else:
                rows = sorted((f"{kind}/{name.decode()}", value) for name, value in self._pairs(kind))
                yield from (Row(*row) for row in rows if row[0].startswith(str(bounds(kind, run)[0])))

    def _pairs(self, name: str) -> Iterator[tuple[bytes, bytes]]:
        """Yield the pairs of a hash. Some may come twice while others are written."""
        cursor = b""
        while cursor != b"0":
            [[cursor, pairs]] = self.execute(["call", "HSCAN", self.key(name), cursor or b"0", "COUNT", AT_ONCE])
            yield from zip(pairs[::2], pairs[1::2], strict=True)

    def _documents(self, codes: Sequence[bytes]) -> Iterator[Row]:
        """Yield the documents of the runs with these codes, or of all runs, sorted by key."""
        last = self._last()
        for place in (row for row in self.held if len(row) == PLACE):
            last[place[:CODE]] = max(last.get(place[:CODE], 0), int.from_bytes(place[CODE:], "big"))
        for run in codes or sorted(last):
            places = (run + pack(">I", number) for number in range(last.get(run, -1) + 1))
            yield from (row for row in self._rows_at(places) if not row.is_pending)

    # Lookups

    def find(
        self, questions: Sequence[Question], entries: Sequence[Entry | None] = (), ahead: Sequence[int] = ()
    ) -> tuple[list[Found], list[Row]]:
        with store_errors(self.name):
            holds = [entry and _hold(entry) for entry in entries or [None] * len(questions)]
            places = [*map(place, ahead)]
            told, answers = self._look([*map(_asked, questions, holds)], holds, places)
            rows = self._decoded(told)
            found = [self._found(question, answer, rows) for question, answer in zip(questions, answers, strict=True)]
            return found, [rows[each] for each in places if each in rows]

    def _look(self, asked: Sequence[Any], holds: Sequence[Operation | None], places: Sequence[bytes] = ()) -> Any:
        """Send lookups, and note the documents that the server now holds. Return the rows found, and the answers."""
        try:
            [[told, answers]] = self.execute(["look", asked, places])
        except StoreError:
            # The server may hold some of the documents by now.
            self.add(*(["drop", *hold[1:4], True] for hold in holds if hold))
            raise
        for hold, (*_, is_held) in zip(holds, answers, strict=True):
            if hold and is_held:
                self.held[hold[1]] = hold
        return told, answers

    def _found(self, question: Question, answer: Any, rows: dict[bytes, Row]) -> Found:
        hits, lasts, nearest, is_held = answer
        found: dict[int, list[Row]] = {}
        for at, place in zip(hits[-2::-2], hits[::-2], strict=True):  # from the oldest on
            if place in rows:
                found.setdefault(question.keys[at], []).append(rows[place])
        for key in question.keys if question.most > MANY else ():
            found[key] = [*self._rows_at(self._places(key))][-question.most :]
        near = [rows[place] for place in sorted(nearest) if place in rows]
        return Found(found, near, bool(is_held), _packed(question.keys) + lasts)

    def _places(self, key: int) -> list[bytes]:
        """Return the places of all rows that the index has for a key, oldest first."""
        [packed] = self.execute(["places", _packed([key])])
        return list(dict.fromkeys(packed[at : at + PLACE] for at in range(0, len(packed), PLACE)))

    def size(self, kind: str) -> int:
        names = [self.key("visit")] if kind == VISIT else [self.key("document.", code) for code in self._last()]
        return sum(self.execute(*(["call", "HLEN", name] for name in names)))

    def count(self, key: int) -> int:
        return len(self._places(key))

    # Pending documents

    def hold(self, entry: Entry, seen: bytes) -> bool:
        hold, middle = _hold(entry), len(seen) // 2
        _, [[*_, is_held]] = self._look([[seen[:middle], 0, b"", b"", 0, hold[1:], seen[middle:]]], [hold])
        return bool(is_held)

    def release(self, entry: Entry) -> None:
        self.add(["drop", *located(entry), True])
        self._wakes.set()  # send this soon, since another process may wait for it

    # Writing, and news

    def write(self, entries: Sequence[Entry], deleted: Sequence[Entry] = ()) -> None:
        operations: list[Operation] = [["drop", *located(each), False] for each in deleted]
        for entry in entries:
            _, row, keys, simhash, value = _hold(entry)
            known = self.held[row][2] if row in self.held else b"" if entry.is_news else keys
            operations.append(["row", row, keys, simhash, value, len(known)])
        self.add(*operations)

    def news(self, *, documents: bool = False) -> tuple[list[Row], bool]:
        with store_errors(self.name):
            streams = ("news", "added") if documents else ("news",)
            later = [[self.key(each), b"(" + self._heard[each], "+", "COUNT", NEWS] for each in streams]
            told = self.execute(*(["call", "XRANGE", *each] for each in later))
            news = dict.fromkeys(place for each in told for _, (_, place) in each)
            rows = [row for row in self._rows_at(news) if not row.is_pending]
            # Set last, so that a failure above loses no news.
            self._heard.update((name, each[-1][0]) for name, each in zip(streams, told, strict=True) if each)
            return rows, any(len(each) == NEWS for each in told)

    # The store as a whole

    def _memory(self) -> dict[str, str]:
        lines: list[str] = []
        with suppress(StoreError):  # the server may refuse to tell
            lines = self.execute(["call", "INFO", "memory"])[0].decode().splitlines()
        return {"maxmemory_policy": "noeviction", **dict(line.partition(":")[::2] for line in lines)}

    def describe(self) -> dict[str, object]:
        memory = self._memory()
        return {"bytes_server": int(memory.get("used_memory", 0)), "eviction": memory["maxmemory_policy"]}


def namespaces(address: str) -> list[str]:
    """Return the sorted namespaces of this version on a server or cluster. Raise StoreError if the server fails."""
    with store_errors(shown_address(address)), clients(address)() as client:
        keys = client.scan_iter(match=f"{{neardup:*:{VERSION}}}*", count=1000)
        names = {key.split(b":")[1] for key in keys}
    return sorted(unquote(name.decode(errors="replace")) for name in names)


# The arguments of the script


def place(key: Key) -> bytes:
    return key.to_bytes(PLACE, "big", signed=True) if isinstance(key, int) else f"key/{key}".encode()


def _key(place: bytes) -> Key:
    if len(place) > PLACE:
        return place.partition(b"/")[2].decode()
    return int.from_bytes(place, "big", signed=True)


def _packed(keys: Sequence[int]) -> bytes:
    return pack(f">{len(keys)}Q", *keys)


def located(entry: Entry) -> tuple[bytes, bytes, bytes]:
    """Return the place of a row, its keys and its SimHash as bytes. Without a SimHash, the last value is b""."""
    simhash = b"" if entry.simhash is None else pack(">Q", entry.simhash)
    return place(entry.key), _packed(entry.keys), simhash


def _hold(entry: Entry) -> Operation:
    return ["hold", *located(entry), records.dump(entry.key, entry.record)]


def _asked(question: Question, hold: Operation | None) -> list[Any]:
    """Return the arguments of the script for a question and for the operation that holds its document, if any."""
    simhash, blocks = b"", b""
    if question.simhash is not None:
        simhash = pack(">Q", question.simhash)
        values = unpack(">4H", simhash)
        blocks = b"".join([pack(">BH", block, values[block] ^ bits) for block, bits in flips(question.distance)])
    most = question.most if question.most <= MANY else 0
    return [_packed(question.keys), most, blocks, simhash, question.distance, hold[1:] if hold else False]
