"""All parts of a store together: documents by number, URLs by hash. For reading; no I/O but the mapped memory."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from weakref import WeakValueDictionary

import numpy as np

from ..detectors import SimHash
from ..detectors.base import Detector
from ..fingerprints.hashing import hash_text
from ..index.hamming import HammingIndex
from ..index.keys import KeyIndex
from ..index.packed import Array
from ..signature import Key, Link, Signature
from .part import Part, spread
from .records import NOWHERE, document, link
from .runs import Run

NEWEST = 16  # documents found by one key, or near one SimHash, in one part: no more are compared


class Parts:
    """What the parts hold, given which detectors ask for it."""

    def __init__(self, detectors: Sequence[Detector]) -> None:
        indexes = {d.name: d.index() for d in detectors}
        self._newest = {n: i.newest or NEWEST for n, i in indexes.items() if isinstance(i, KeyIndex)}
        self._distance = {
            n: i.distance for n, i in indexes.items() if isinstance(i, HammingIndex) and n == SimHash.name
        }
        self._salts = {name: salt(name) for name in self._newest}
        self._own = {n: i for n, i in indexes.items() if n not in self._newest and n not in self._distance}
        """In RAM, since how they find is known to nobody else."""
        self.all: tuple[Part, ...] = ()
        """In the order of their documents' numbers."""
        self._held: WeakValueDictionary[int, Signature] = WeakValueDictionary()  # so that each is one object
        self._repeats: dict[int, int] = {}  # where they changed since the parts were made
        self._withdrawn: set[int] = set()  # numbers of documents forgotten since the parts were made
        self._gone: list[bytearray | None] = []  # by part: a byte for each document, 1 where it is forgotten
        self._forgotten: list[bytearray | None] = []  # by part, the same of its segments

    def show(self, parts: Iterable[Part], runs: Mapping[str, Run]) -> None:
        """Show these parts from now on. Documents keep their numbers, unless the epoch changed."""
        parts = tuple(sorted(parts, key=lambda part: part.first))
        if self.all and parts and parts[0].epoch != self.epoch:
            self._number_anew(parts)
        self.all = parts
        self._gone = [None] * len(self.all)
        stored = {number for part in self.all for number in part.columns["gone"].tolist()}
        self._withdrawn -= stored
        for number in stored | self._withdrawn:
            self._mark(number)
        self.forget_runs(runs)

    def _number_anew(self, parts: tuple[Part, ...]) -> None:
        """Have all that goes by number go by the numbers that the documents have in these parts."""
        held = [(self.key(signature), signature) for signature in self._held.values()]
        withdrawn = [self._key_of(number) for number in self._withdrawn]
        self.all, self._held = parts, WeakValueDictionary()
        self._withdrawn = {number for key in withdrawn if (number := self.number_of(key)) is not None}
        for key, signature in held:
            signature.number = self.number_of(key) if key else None
            if signature.number is not None:
                self._held[signature.number] = signature

    def _key_of(self, number: int) -> Key:
        part = self.all[bisect_right(self.all, number, key=lambda part: part.first) - 1]
        return part.key(number - part.first)

    @property
    def own(self) -> Iterable[str]:
        """The names of detectors with indexes of their own."""
        return self._own

    @property
    def last(self) -> int:
        """One more than the highest number."""
        return self.all[-1].last if self.all else 0

    @property
    def epoch(self) -> int:
        return self.all[0].epoch if self.all else 0

    # What is found

    def find(self, name: str, wanted: tuple[int, ...]) -> Iterator[Signature]:
        """Yield the documents that a detector proposes."""
        if name in self._own:
            yield from self._own[name].find(wanted)
            return
        for at, part in enumerate(self.all if wanted else ()):
            gone = self._gone[at]
            for place in dict.fromkeys(self._places(part, name, wanted)):
                if not (gone and gone[place]):
                    yield self._signature(part, place)

    def _places(self, part: Part, name: str, wanted: tuple[int, ...]) -> Iterator[int]:
        if name in self._newest:
            keys = [spread(key ^ self._salts[name]) for key in wanted]
            for places in part.tables["keys"].find(keys, self._newest[name]):
                yield from places
        elif name in self._distance:
            for value in wanted:
                yield from part.near_to(value, self._distance[name], NEWEST)

    def enter_own(self, first: int) -> None:
        """Enter the documents from a number on into the indexes that detectors have of their own."""
        for signature in map(self.numbered, range(first, self.last) if self._own else ()):
            for name, index in self._own.items():
                if signature:
                    index.add(signature.fingerprints.get(name, ()), signature)

    def segments_of(self, run: str) -> int:
        """Return one more than the highest number of a run's segments in the parts."""
        highest = -1
        for part in self.all:
            rows = part.columns["segments"]
            mine = rows["run"] == part.runs.index(run) if run in part.runs else np.zeros(len(rows), bool)
            highest = max(highest, int(rows["number"][mine].max(initial=0)) if mine.any() else -1)
        return highest + 1

    def has_segment(self, run: str, number: int) -> bool:
        """Say whether what was written as that segment is in a part."""
        return any(part.segment_place(run, number) is not None for part in self.all)

    # Documents by number

    def _signature(self, part: Part, place: int) -> Signature:
        number = part.first + place
        signature = self._held.get(number)
        if signature is None:
            signature = document(part.columns, place)
            signature.number, signature.repeats = number, self.repeats(number)
            self._held[number] = signature
        return signature

    def numbered(self, number: int) -> Signature | None:
        """Return a document by its number; None for one that is forgotten."""
        at = self._at(number)
        if at is None or self.is_gone(number):
            return None
        return self._signature(self.all[at], number - self.all[at].first)

    def _at(self, number: int) -> int | None:
        """Return which part has a document."""
        at = bisect_right(self.all, number, key=lambda part: part.first) - 1
        return at if at >= 0 and number < self.all[at].last else None

    def hold(self, signature: Signature, number: int) -> None:
        """Let a document that was only in RAM be the one of that number."""
        signature.number = number
        self._held[number] = signature

    def number_of(self, key: Key) -> int | None:
        """Return the number of a document, given as what it was written; None where no part has it."""
        for part in self.all:
            place = part.place_of(key)
            if place is not None:
                return part.first + place
        return None

    def key(self, signature: Signature) -> Key | None:
        """Return as what a document was written."""
        at = self._at(signature.number) if signature.key is None and signature.number is not None else None
        if at is not None and signature.number is not None:
            signature.key = self.all[at].key(signature.number - self.all[at].first)
        return signature.key

    def signatures(self) -> Iterator[Signature]:
        for at, part in enumerate(self.all):
            gone = self._gone[at]
            yield from (self._signature(part, place) for place in range(len(part)) if not (gone and gone[place]))

    def __len__(self) -> int:
        return sum(map(len, self.all)) - sum(gone.count(1) for gone in self._gone if gone)

    # Repeats

    def repeats(self, number: int) -> int:
        """Return how many documents repeat one, as far as is known."""
        known = self._repeats.get(number)
        return self._stored_repeats(number) if known is None else known

    def _stored_repeats(self, number: int) -> int:
        for part in reversed(self.all):
            if part.first <= number:
                return int(part.columns["repeats"][number - part.first])
            changed = part.columns["changed"]
            at = bisect_left(changed["document"], number)
            if at < len(changed) and changed["document"][at] == number:
                return int(changed["repeats"][at])
        return 0

    def recount(self, changes: Iterable[tuple[Signature, int]]) -> None:
        """Count anew: what the parts say, and what the links in RAM change of it."""
        self._repeats = {}
        for signature, more in changes:
            if signature.number is not None:
                self._repeats[signature.number] = self.repeats(signature.number) + more
        for number, signature in self._held.items():
            signature.repeats = self.repeats(number)

    def repeat(self, signature: Signature) -> None:
        """Take note of how often a document is repeated now."""
        if signature.number is not None:
            self._repeats[signature.number] = signature.repeats

    def changed_repeats(self, first: int) -> dict[int, int]:
        """Return the counts by number that RAM and the parts from number `first` on have of earlier documents."""
        found: dict[int, int] = {}
        for part in self.all:
            if part.last > first:
                changed = part.columns["changed"]
                found.update(zip(changed["document"].tolist(), changed["repeats"].tolist(), strict=True))
        return {**found, **self._repeats}

    # Links

    def resolve(self, url: int) -> Link | None:
        """Return what is known of a URL, given its hash."""
        found = self._last(url)
        return self._link(*found) if found else None

    def _last(self, url: int) -> tuple[int, int] | None:
        for at in range(len(self.all) - 1, -1, -1):
            place = self.all[at].link_of(url)
            if place is not None:
                return at, place
        return None

    def _link(self, at: int, place: int) -> Link | None:
        """Return a link; None where its document, or the link itself, is forgotten."""
        part, forgotten = self.all[at], self._forgotten[at]
        row = part.columns["link_rows"][place]
        if forgotten and forgotten[row["segment"]]:
            return None
        number = int(row["document"])
        signature = self.numbered(number) if number < self.last else None
        found = link(part.columns, place, signature, part.names)
        return None if found.void or (signature is None and number != NOWHERE) else found

    def links(self, signature: Signature) -> Iterator[tuple[int, Link]]:
        """Yield the links to a document, each with the hash of its URL, oldest first."""
        for at, part in enumerate(self.all if signature.number is not None else ()):
            for place in part.links_of(signature.number or 0):
                url = int(part.columns["link_rows"]["url"][place])
                if self._last(url) == (at, place) and (found := self._link(at, place)):
                    yield url, found

    def current_links(self, at: int) -> Array:
        """Return which links of a part hold: those that no later one replaced, and that are not forgotten."""
        urls = self.all[at].columns["link_rows"]["url"]
        _, last = np.unique(urls[::-1], return_index=True)
        current = np.zeros(len(urls), bool)
        current[len(urls) - 1 - last] = True
        for later in self.all[at + 1 :]:
            current &= ~np.isin(urls, later.columns["link_rows"]["url"])
        return current & ~self._lost_links(at)

    def all_links(self) -> Iterator[Link]:
        for at in range(len(self.all)):
            yield from filter(None, (self._link(at, place) for place in self.current_links(at).nonzero()[0].tolist()))

    def seen_before(self, when: float, since: Mapping[int, float], replaced: Sequence[int]) -> Iterator[Signature]:
        """Yield the documents that no URL gave since then.

        `since`: by number, when links in RAM saw them; `replaced`: the hashes of URLs that RAM knows more of.
        """
        last = np.full(self.last, -np.inf)
        for at, part in enumerate(self.all):
            rows = part.columns["link_rows"][self.current_links(at)]
            rows = rows[(rows["document"] < self.last) & ~np.isin(rows["url"], np.array(replaced, np.uint64))]
            np.maximum.at(last, rows["document"], rows["seen"])
            last[part.first : part.last] = np.maximum(
                last[part.first : part.last], part.columns["documents"]["first_seen"]
            )
        for number, seen in since.items():
            last[number] = max(last[number], seen)
        yield from filter(None, map(self.numbered, (last < when).nonzero()[0].tolist()))

    # What is forgotten

    def is_gone(self, number: int) -> bool:
        at = self._at(number)
        gone = self._gone[at] if at is not None else None
        return bool(gone and at is not None and gone[number - self.all[at].first])

    def withdraw(self, signature: Signature) -> None:
        """Forget a document."""
        if signature.number is not None:
            self.forget(signature.number)
            for index_name, index in self._own.items():
                index.remove(signature.fingerprints.get(index_name, ()), signature)

    def forget(self, number: int) -> None:
        """Forget the document of a number."""
        self._withdrawn.add(number)
        self._mark(number)

    def _mark(self, number: int) -> None:
        at = self._at(number)
        if at is not None:
            gone = self._gone[at]
            if gone is None:
                gone = self._gone[at] = bytearray(len(self.all[at]))
            gone[number - self.all[at].first] = 1

    def withdrawn(self) -> set[int]:
        """Return the numbers of documents that were forgotten one by one."""
        return self._withdrawn | {number for part in self.all for number in part.columns["gone"].tolist()}

    def forget_runs(self, runs: Mapping[str, Run]) -> None:
        """Forget what was written in segments that runs have forgotten."""
        self._forgotten = [_segments_forgotten(part, runs) for part in self.all]
        for at, (part, segments) in enumerate(zip(self.all, self._forgotten, strict=True)):
            if segments:
                lost = np.frombuffer(segments, np.uint8)[part.columns["documents"]["segment"]]
                gone = self._gone[at] or bytearray(len(part))
                self._gone[at] = bytearray((np.frombuffer(gone, np.uint8) | lost).tobytes())

    def degrees(self) -> Array:
        """Return how often each document is repeated."""
        counts = np.zeros(self.last, np.uint32)
        for part in self.all:
            counts[part.first : part.last] = part.columns["repeats"]
            counts[part.columns["changed"]["document"]] = part.columns["changed"]["repeats"]
        counts[list(self._repeats)] = list(self._repeats.values())
        return counts[~np.concatenate([self.gone(at) for at in range(len(self.all))])] if self.all else counts

    def gone(self, at: int) -> Array:
        """Return which documents of a part are forgotten."""
        return np.frombuffer(self._gone[at] or bytes(len(self.all[at])), np.uint8).astype(bool)

    def _lost_links(self, at: int) -> Array:
        """Return which links of a part are forgotten with their segments."""
        segments = np.frombuffer(self._forgotten[at] or bytes(len(self.all[at].columns["segments"]) or 1), np.uint8)
        lost: Array = segments[self.all[at].columns["link_rows"]["segment"]].astype(bool)
        return lost


def salt(name: str) -> int:
    """Return what the keys of a detector are mixed with, so that those of all lie in one table."""
    return hash_text(name)


def _segments_forgotten(part: Part, runs: Mapping[str, Run]) -> bytearray | None:
    rows = part.columns["segments"]
    lost = np.zeros(len(rows), bool)
    for at, name in enumerate(part.runs):
        for start, end in runs[name].forgotten if name in runs else ():
            lost |= (rows["run"] == at) & (rows["number"] >= start) & (rows["number"] < end)
    return bytearray(lost.tobytes()) if lost.any() else None
