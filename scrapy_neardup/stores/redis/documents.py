"""The documents that a server holds, as this process knows them: each is one object."""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from struct import Struct, iter_unpack
from typing import Any
from weakref import WeakValueDictionary

from ...signature import Key, Link, Signature
from ..layered import digest
from .asking import field
from .damage import sound
from .packing import Place, document_of, is_void, place_of, unpack_document, unpack_link
from .server import Command, Server

CHUNK = 256  # documents or links that are asked for at once
RECENT = 4096  # documents that are kept in memory, since the next ones will likely be like them
BUCKETS = 64  # that are read at once
PER_BLOCK = 16
TOLD = Struct(">II")
LINKED = Struct("<B8s")


class Documents:
    """Fetches documents and links. `run`: the number of this process's run, whose pending documents it sees."""

    def __init__(self, server: Server) -> None:
        self.run = 0
        self.pending: dict[Signature, None] = {}
        """Those of this process."""
        self.others: dict[int, int] = {}
        """Pending documents of other runs, as they were last seen, and of which runs they are."""
        self.runs: dict[int, str] = {}
        """Ids of runs by number."""
        self.count = 0
        """How many documents there are at least."""
        self.unknown: set[int] = set()
        """Hashes of URLs of which nothing is known."""
        self.linked: set[int] = set()
        """Hashes of URLs of which the server may be yet to hear."""
        self._server = server
        self._held: WeakValueDictionary[int, Signature] = WeakValueDictionary()
        self._recent: deque[Signature] = deque(maxlen=RECENT)

    def hold(self, signature: Signature, number: int) -> None:
        """Let a new document be the one of a number."""
        signature.number = number
        self._held[number] = signature
        self.count = max(self.count, number + 1)

    def recheck(self, committing: Collection[int]) -> None:
        """Let go of numbers that are no longer those of the documents in memory; `committing`: to be committed next."""
        self.learn_runs()
        held, last = dict(self._held), self.next_number
        numbers, same = iter([number for number in held if number < last]), set[int]()
        while some := list(islice(numbers, CHUNK)):
            rows = self._server.ask("fetch", pack_numbers(some), b"\1" * len(some))
            same |= {n for n, row in zip(some, rows, strict=True) if self._is_same(held[n], row, committing)}
        self.unknown.clear()
        self.others.clear()
        for number in held.keys() - same:
            held[number].number = None
            self._held.pop(number, None)

    def _is_same(self, signature: Signature, row: bytes, committing: Collection[int]) -> bool:
        """Say whether a row tells of a document in memory, and of none that is pending for nobody."""
        if not row or signature.key is None:
            return False
        run, segment, place = place_of(row[TOLD.size :])
        mine = TOLD.unpack_from(row)[0] == self.run
        known = signature in self.pending or signature.number in committing
        return signature.key == (self.runs.get(run), segment, place) and (known or not mine or not self.run)

    def counted(self, repeats: bytes) -> None:
        """Take in how often documents are repeated, as scripts tell."""
        for number, count in iter_unpack(">II", repeats or b""):
            if signature := self._held.get(number):
                signature.repeats = count

    def fetch(self, numbers: Iterable[int], *, pending: bool = False) -> dict[int, Signature]:
        """Return the documents of these numbers that are held; `pending`: be it by another process, and not yet."""
        wanted = list(dict.fromkeys(numbers))
        if not wanted:
            return {}
        known = {number: self._held.get(number) for number in wanted}
        full = bytes(known[number] is None for number in wanted)
        rows = self._server.ask("fetch", pack_numbers(wanted), full)
        found = ((number, self._told(number, row, pending)) for number, row in zip(wanted, rows, strict=True))
        return {number: signature for number, signature in found if signature}

    def _told(self, number: int, row: bytes, pending: bool = False) -> Signature | None:
        self.others.pop(number, None)
        if not row:
            return None
        run, repeats = TOLD.unpack_from(row)
        if run and run != self.run:
            self.others[number] = run
            if not pending:
                return None
        signature = self._held.get(number) or self._made(number, row[TOLD.size :])
        signature.repeats = repeats
        return signature

    def _made(self, number: int, record: bytes) -> Signature:
        with sound(self._server.name):
            signature, place = unpack_document(record)
        signature.key = self._key(place)
        self.hold(signature, number)
        self._recent.append(signature)
        return signature

    def _key(self, place: Place) -> Key:
        """Return as what a document was written."""
        return (self.run_id(place[0]), *place[1:])

    def run_id(self, number: int) -> str:
        """Return the id of a run, which may have begun only just. Raise StoreError where it has none."""
        with sound(self._server.name):
            if number not in self.runs:
                self.learn_runs()
            return self.runs[number]

    def learn_runs(self) -> None:
        """Read the ids of runs anew."""
        [rows] = self._server.run([("HGETALL", self._server.key("ids"))])
        self.runs = {int(number): name.decode() for number, name in pairs(rows).items()}

    # Links

    def resolve(self, digests: Sequence[int]) -> list[Link | None]:
        """Return what is known of URLs, given their hashes."""
        answer = self._server.ask("resolve", b"".join(each.to_bytes(8, "little") for each in digests))
        return [self._link(link, row) for link, row in zip(answer[::2], answer[1::2], strict=True)]

    def resolve_one(self, url: str) -> Link | None:
        """Return what is known of a URL, of which it may have been told already that this is nothing."""
        wanted = digest(url)
        return None if wanted in self.unknown else self.resolve([wanted])[0]

    def looking_up(self, url: int, buckets: int) -> Command:
        """Return the command that reads the bucket of a URL, given its hash, where there are so many buckets."""
        if not len(self._server):
            self.linked.clear()
        return ("HGET", f"{self._server.root}u", field(url & 0xFFFFFFFF, buckets))

    def keep_known(self, url: int, bucket: bytes) -> None:
        """Keep whether nothing is known of a URL, given its hash and its bucket."""
        if url not in self.linked and url.to_bytes(8, "little") not in bucket:
            self.unknown.add(url)

    def _link(self, link: bytes, row: bytes) -> Link | None:
        with sound(self._server.name):
            if not link or is_void(link):
                return None
            number = document_of(link)
            signature = None if number is None else self._told(number, row)
            return None if number is not None and signature is None else unpack_link(link, signature)

    def links(self, number: int) -> Iterator[Link]:
        """Yield the links to a document, oldest first."""
        for some in self._urls_of(number // PER_BLOCK, number % PER_BLOCK):
            yield from (link for link in self.resolve(some) if link and link.signature)

    def _urls_of(self, block: int, place: int | None = None) -> Iterator[list[int]]:
        """Yield, some at a time, the hashes of the URLs that lead to the documents of a block, or to one of them."""
        [linked] = self._server.run([("GET", self._server.root.encode() + b"o" + block.to_bytes(4, "big"))])
        with sound(self._server.name):
            rows = LINKED.iter_unpack(linked or b"")
        mine = (int.from_bytes(url, "little") for each, url in rows if place in (None, each))
        while some := list(islice(mine, CHUNK)):
            yield some

    def packed_links_of(self, block: int) -> Iterator[list[bytes]]:
        """Yield, some at a time, the links to the documents of a block as they are packed, oldest first."""
        for some in self._urls_of(block):
            urls = b"".join(each.to_bytes(8, "little") for each in some)
            yield [link for link in self._server.ask("resolve", urls)[::2] if link]

    def hot(self) -> Iterator[tuple[int, list[int]]]:
        """Yield the hashes that very many documents share, with the older ones of these."""
        [hashes] = self._server.run([("SMEMBERS", self._server.key("hot"))])
        for packed in hashes:
            [numbers] = self._server.run([("LRANGE", self._server.root.encode() + b"h" + packed, 0, -1)])
            yield int.from_bytes(packed, "big"), list(map(int, numbers))

    # All of them

    def all(self) -> Iterator[Signature]:
        """Yield all documents that are held, in the order of coming."""
        first = 0
        while first < self.next_number:
            numbers = range(first, min(first + CHUNK, self.next_number))
            yield from self.fetch(numbers).values()
            first = numbers.stop

    @property
    def next_number(self) -> int:
        """One more than the highest number, as far as is known."""
        return self.state()[0]

    def committed(self) -> int:
        """Return how many are committed."""
        gone, pending = (self._server.key(name) for name in ("gone", "pending"))
        forgotten, pending_now = self._server.run([("BITCOUNT", gone), ("HLEN", pending)])
        return max(0, self.next_number - int(forgotten) - int(pending_now))

    def state(self) -> Sequence[int]:
        """Return the number that comes next, then how many buckets and entries each table has: k, s, u."""
        [state] = self._server.run([("HGET", f"{self._server.root}k", "state")])
        return [int.from_bytes(state[at : at + 5], "big") for at in range(0, 35, 5)] if state else [0] * 7

    def all_repeats(self) -> Iterator[int]:
        """Yield how often each document is repeated."""
        last = self.next_number
        for first in range(0, last, CHUNK):
            numbers = range(first, min(first + CHUNK, last))
            rows = self._server.ask("fetch", pack_numbers(numbers), bytes(len(numbers)))
            told = (TOLD.unpack(row) for row in rows if row)
            yield from (repeats for run, repeats in told if run in (0, self.run))

    def buckets(self, kind: str) -> Iterator[tuple[int, int, bytes]]:
        """Yield the buckets of a table, each with how many there are and its place.

        What is written meanwhile may come twice, or not at all.
        """
        first, last = 0, 1
        while first < last:
            last, values = self._server.ask("scan", kind, first, BUCKETS)
            yield from ((last, place, value) for place, value in enumerate(values, first) if value)
            first += BUCKETS

    def packed_links(self) -> Iterator[bytes]:
        """Yield all links as they are packed, of which something is known."""
        for _, _, bucket in self.buckets("u"):
            with sound(self._server.name):
                links = [link for link in parts_of(bucket) if not is_void(link)]
            yield from links

    def places(self) -> Iterator[tuple[int, Key]]:
        """Yield the numbers of all documents, be they forgotten, and as what they were written."""
        last = self.next_number
        self.learn_runs()
        for first in range(0, -(-last // PER_BLOCK), BUCKETS):
            keys = [self._server.root.encode() + b"d" + n.to_bytes(4, "big") for n in range(first, first + BUCKETS)]
            [blocks] = self._server.run([("MGET", *keys)])
            for block, value in enumerate(blocks, first):
                for number, record in enumerate(parts_of(value or b""), block * PER_BLOCK):
                    with sound(self._server.name):
                        place = place_of(record)
                    yield number, self._key(place)

    def all_links(self) -> Iterator[Link]:
        packed = self.packed_links()
        while some := list(islice(packed, CHUNK)):
            documents = self.fetch(number for link in some if (number := document_of(link)) is not None)
            for packed_link in some:
                number = document_of(packed_link)
                signature = None if number is None else documents.get(number)
                if number is None or signature:
                    with sound(self._server.name):
                        link = unpack_link(packed_link, signature)
                    yield link


def parts_of(bucket: bytes) -> Iterator[bytes]:
    at = 0
    while at < len(bucket):
        end = at + 3 + int.from_bytes(bucket[at : at + 3], "little")
        yield bucket[at + 3 : end]
        at = end


def pack_numbers(numbers: Sequence[int]) -> bytes:
    return b"".join(number.to_bytes(4, "big") for number in numbers)


def pairs(rows: Any) -> Mapping[bytes, bytes]:
    """Return a hash as a server tells it, in whatever version of the protocol."""
    return rows if isinstance(rows, Mapping) else dict(zip(rows[::2], rows[1::2], strict=True))
