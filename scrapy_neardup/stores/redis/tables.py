"""Reading the documents of a server and what leads to them, and comparing the two."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from ...detectors import Exact, SimHash
from ...watching import watched
from ..damage import DAMAGE
from ..layered import digest
from ..search import salt
from .asking import NEAR, fields
from .documents import BUCKETS, CHUNK, LINKED, PER_BLOCK, TOLD, Documents, pack_numbers, parts_of
from .exporting import read
from .noting import Notes
from .packing import document_of, hashed, is_void, origin_of, place_of, unpack_document, unpack_link
from .scanning import Namespace
from .server import Server

_UNKNOWN = "they are unknown: their pages are stored once more"
_UNFOUND = "copies of their documents are not found by equal fingerprints, and may be stored once more"
_NOT_NEAR = "copies of their documents that are near in SimHash are not found, and may be stored once more"
_UNLED = "what their URLs led to is unknown: mirrors are fetched again"
_UNLISTED = "not all URLs of their documents are known, and go with them when they are forgotten"
_MISCOUNTED = "it is not known how often documents are repeated"


class Numbered:
    """What was read of the documents, by number. `ids`: of runs by number."""

    def __init__(self, server: Server, ids: Mapping[int, str], keys: Namespace) -> None:
        self.server, self.ids, self.keys = server, ids, keys
        self.reader = Documents(server)
        self.state = list(self.reader.state())
        """As `Documents.state` tells it."""
        self.next = self.state[0]
        self.gone = self._gone()
        self.held = np.zeros(self.next, bool)
        """Those that could be read, and are not forgotten."""
        self.exact, self.simhash, self.url = (np.zeros(self.next, np.uint64) for _ in range(3))
        """Hashes that find them; 0 for none."""
        self.mirrors = np.zeros(self.next, np.uint32)
        """How many URLs lead to each that are not its own."""
        self.highest = -1
        """The highest number that anything led to."""
        self.links = 0

    def __len__(self) -> int:
        """How many there are."""
        return int(self.held.sum())

    def _gone(self) -> npt.NDArray[np.bool_]:
        [bits] = self.server.run([("GET", self.server.key("gone"))])
        result = np.zeros(self.next, bool)
        some = np.unpackbits(np.frombuffer(bits or b"", np.uint8))[: self.next]
        result[: len(some)] = some
        return result

    def is_gone_now(self, number: int) -> bool:
        [bit] = self.server.run([("GETBIT", self.server.key("gone"), number)])
        return bool(bit)

    def strings(self, kind: str, count: int) -> Iterator[tuple[int, bytes]]:
        """Yield the first so many strings of a kind, empty where there is none."""
        for first in watched(range(0, count, BUCKETS), "steps", -(-count // BUCKETS)):
            places = range(first, min(first + BUCKETS, count))
            names = [self.server.root.encode() + kind.encode() + place.to_bytes(4, "big") for place in places]
            [values] = self.server.run([("MGET", *names)])
            yield from zip(places, (value or b"" for value in values), strict=True)

    def among(self, numbers: npt.NDArray[Any]) -> npt.NDArray[np.bool_]:
        """Say which numbers are those of documents there were at first."""
        self.highest = max(self.highest, int(numbers.max()) if len(numbers) else -1)
        found: npt.NDArray[np.bool_] = numbers < self.next
        return found


def check_tables(seen: Numbered, notes: Notes, is_quiet: Callable[[], bool]) -> None:
    """Read all documents, what finds them, and all links; compare how many there are where nobody has written since."""
    counted: Counter[str] = Counter()
    _check_documents(seen, notes)
    _check_keys(seen, notes, counted)
    _check_near(seen, notes, counted)
    _check_links(seen, notes, counted)
    _check_urls(seen, notes, counted)
    if seen.highest >= seen.reader.next_number:
        notes.add("some entries lead to documents that do not exist", _UNKNOWN, f"document {seen.highest}")
    if is_quiet() and list(seen.reader.state()) == seen.state:
        _compare(seen, notes, counted)
        _compare_repeats(seen, notes)


def _check_documents(seen: Numbered, notes: Notes) -> None:
    blocks = -(-seen.next // PER_BLOCK)
    for kind, last in (("d", blocks), ("r", seen.next), ("o", blocks)):
        if seen.keys.most.get(kind, -1) >= max(last, -(-seen.reader.next_number // PER_BLOCK)):
            notes.add("# kinds of keys are there for documents that do not exist", _UNKNOWN, f"{kind!r}")
    for block, value in seen.strings("d", blocks):
        numbers = range(block * PER_BLOCK, min((block + 1) * PER_BLOCK, seen.next))
        records = list(parts_of(value))
        if len(records) < len(numbers) or sum(map(len, records)) + 3 * len(records) != len(value):
            shown = f"document {numbers[0]} and those after it"
            notes.add("# strings of up to 16 documents are missing or damaged", _UNKNOWN, shown)
            continue
        for number, record in zip(numbers, records, strict=False):
            with notes.reading("# documents", _UNKNOWN, f"document {number}"):
                try:
                    _take(seen, number, record)
                except DAMAGE:
                    if not seen.is_gone_now(number):  # else it was forgotten meanwhile
                        raise


def _take(seen: Numbered, number: int, record: bytes) -> None:
    if (run := place_of(record)[0]) not in seen.ids:
        raise ValueError(f"there is no run {run}")
    if seen.gone[number]:
        return
    signature, _ = unpack_document(record)
    seen.held[number] = True
    if exact := signature.fingerprints.get(Exact.name):
        seen.exact[number] = hashed([exact[0] ^ salt(Exact.name)])[0]
    seen.simhash[number] = sum(signature.fingerprints.get(SimHash.name, ())[:1])
    seen.url[number] = digest(signature.url) if signature.url else 0


def _check_keys(seen: Numbered, notes: Notes, counted: Counter[str]) -> None:
    found = np.zeros(seen.next, bool)

    def take(hashes: npt.NDArray[Any], numbers: npt.NDArray[Any]) -> None:
        known = seen.among(numbers)
        hashes, numbers = hashes[known], numbers[known].astype(np.int64)
        found[numbers[seen.exact[numbers] == hashes]] = True

    for buckets, place, value in seen.reader.buckets("k"):
        with notes.reading("# buckets of equal fingerprints", _UNFOUND, f"bucket {place}"):
            hashes, numbers = read(buckets, place, value)
            counted["k"] += len(numbers)
            take(hashes, numbers)
    for shared, older in seen.reader.hot():
        take(np.full(len(older), shared, np.uint64), np.array(older, np.uint64))
    lost = (seen.held & (seen.exact > 0) & ~found).nonzero()[0]
    lost = lost[~seen._gone()[lost]] if len(lost) else lost  # else they were forgotten meanwhile
    shown = f"document {lost[0]}" if len(lost) else ""
    notes.add("# documents are not found by equal text", _UNFOUND, shown, count=len(lost))


def _check_near(seen: Numbered, notes: Notes, counted: Counter[str]) -> None:
    for _, place, value in seen.reader.buckets("s"):
        with notes.reading("# buckets of SimHashes", _NOT_NEAR, f"bucket {place}"):
            rows = np.frombuffer(value, NEAR)
            counted["s"] += len(rows)
            rows = rows[seen.among(rows["number"])]
            other = seen.held[rows["number"]] & (seen.simhash[rows["number"]] != rows["simhash"])
            notes.add("# SimHashes are not those of their documents", _NOT_NEAR, f"bucket {place}", count=other.sum())


def _check_links(seen: Numbered, notes: Notes, counted: Counter[str]) -> None:
    for buckets, place, value in seen.reader.buckets("u"):
        links = list(parts_of(value))
        if sum(map(len, links)) + 3 * len(links) != len(value):
            notes.add("# buckets of URLs are damaged", _UNLED, f"bucket {place}")
        for link in links:
            counted["u"] += 1
            with notes.reading("# URLs", _UNLED, f"bucket {place}"):
                _take_link(seen, notes, link, counted)
                low = np.array([int.from_bytes(link[:4], "little")], np.uint64)
                if fields(low, buckets) != place.to_bytes(4, "little"):
                    raise ValueError("one is in a bucket that is not its")


def _take_link(seen: Numbered, notes: Notes, packed_link: bytes, counted: Counter[str]) -> None:
    link, number, (run, _) = unpack_link(packed_link, None), document_of(packed_link), origin_of(packed_link)
    if run and run not in seen.ids:
        raise ValueError(f"there is no run {run}")
    seen.links += not is_void(packed_link)
    is_known = number is not None and seen.among(np.array([number]))[0]
    if number is not None and is_known:
        counted["leading"] += 1
        counted["leading sum"] += hash((number, link.digest))
        seen.mirrors[number] += link.mirror
        notes.add("# URLs lead to documents that are forgotten", _UNLED, count=int(seen.gone[number]))
    expected = digest(link.url) if link.url else int(seen.url[number]) if is_known and seen.held[number] else 0
    if expected and expected != link.digest:
        raise ValueError(f"{link.url!r} is not the URL that it was found by")


def _check_urls(seen: Numbered, notes: Notes, counted: Counter[str]) -> None:
    for block, value in seen.strings("o", -(-seen.next // PER_BLOCK)):
        with notes.reading("# strings of the URLs of 16 documents", _UNLISTED, f"documents from {block * PER_BLOCK}"):
            for place, url in LINKED.iter_unpack(value):
                number = block * PER_BLOCK + place
                counted["listed"] += 1
                counted["listed sum"] += hash((number, int.from_bytes(url, "little")))


# How many there are of each


def _compare(seen: Numbered, notes: Notes, counted: Counter[str]) -> None:
    kinds = {
        "k": ("entries of equal fingerprints", _UNFOUND),
        "s": ("entries of SimHashes", _NOT_NEAR),
        "u": ("URLs", _UNLED),
    }
    for (kind, (name, costs)), expected in zip(kinds.items(), seen.state[2::2], strict=True):
        if counted[kind] != expected:
            notes.add(f"there are {counted[kind]} {name}, and should be {expected}", costs)
    if (counted["listed"], counted["listed sum"]) != (counted["leading"], counted["leading sum"]):
        what = f"{counted['leading']} URLs lead to documents, and documents know {counted['listed']}"
        notes.add(f"{what}, or others", _UNLISTED)


def _compare_repeats(seen: Numbered, notes: Notes) -> None:
    for first in range(0, seen.next, CHUNK):
        numbers = range(first, min(first + CHUNK, seen.next))
        rows = seen.server.ask("fetch", pack_numbers(numbers), bytes(len(numbers)))
        for number, row in zip(numbers, rows, strict=True):
            if row and TOLD.unpack(row)[1] < seen.mirrors[number]:
                notes.add("# documents are repeated more often than is counted", _MISCOUNTED, f"document {number}")
