"""Find rows by their postings: in sorted arrays of integers, the newest rows in dictionaries. No I/O.

An entry of an array is one integer: a posting in its first 36 bits, and the slot of a row in the other 28. A posting is
35 bits of a key, or 33 bits of a SimHash turned to one of its four blocks, after a bit and the number of the block. So
a look-up is a range of integers: for a key, all entries that begin with its 35 bits; for a near SimHash, all that begin
with the 16 bits of a block. Among 10^8 entries, one look-up of a key in 300 finds a wrong row, which verification
rejects.

Each array is a level. A level is merged with the one before it, in a thread, if that one is at most `RATIO` times as
large. So there are few levels, and adding a row never takes long.
"""

from __future__ import annotations

import zlib
from array import array
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from functools import cache
from itertools import chain, combinations
from pathlib import Path
from typing import NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from .. import native
from .kinds import NEWEST

Integers: TypeAlias = npt.NDArray[np.uint64]
Place: TypeAlias = int | str
"""The number of a row, or its key until it has a number."""
Asked: TypeAlias = tuple[Mapping[int, int], int | None, int]
"""Keys, each with the maximum number of its rows; a SimHash or None, and the maximum Hamming distance from it."""

BLOCKS, BLOCK_BITS = 4, 16
SLOT_BITS, KEY_BITS, NEAR_BITS = 28, 35, 33
MOST = 1 << SLOT_BITS  # the maximum number of rows in a level
TAIL = 1024  # the number of rows in dictionaries after which they become a level, which takes some milliseconds
RATIO = 4  # a level is merged with an earlier one up to this many times as large
CROWD = 1024  # of a block, entries to look at on each side of the SimHash; more mean a common template
STEP = 1 << 17  # entries to merge at a time
_NEAR = 1 << 63
_ALL, _SLOTS, _REST = (1 << 64) - 1, MOST - 1, (1 << 45) - 1  # all bits; those of a slot; those after a block


class Level:
    """The sorted entries of the rows with numbers `first` to `last`, in memory or mapped from a file."""

    def __init__(
        self, first: int, last: int, numbers: npt.NDArray[np.int64], simhashes: Integers, entries: Integers
    ) -> None:
        self.first = first
        self.last = last
        self.numbers = numbers
        """The row number in each slot, ascending."""
        self.simhashes = simhashes
        """The SimHash in each slot; 0 for a row without SimHash."""
        self.entries = entries
        self.path: Path | None = None
        """The file that the level is mapped from."""
        self.checksum: int | None = None
        """The checksum that the arrays must have, if it has not been compared."""

    def __len__(self) -> int:
        """Return the number of rows, including deleted ones."""
        return len(self.numbers)

    @classmethod
    def made(
        cls, span: tuple[int, int], numbers: Sequence[int], keys: Integers, of: Integers, near: dict[int, int]
    ) -> Level:
        """Build a level of rows with numbers in `span`, which may have gaps.

        `numbers` has the row number in each slot, `of` the slot of each key, and `near` the SimHashes by slot.
        """
        slots, simhashes = np.array([*near], np.uint64), np.array([*near.values()], np.uint64)
        own = near_postings(simhashes, BLOCKS - 1) | slots[:, None]
        entries = np.append(keys >> np.uint64(64 - KEY_BITS) << np.uint64(SLOT_BITS) | of, own)
        entries.sort()
        is_new = np.append(True, entries[1:] != entries[:-1])[: len(entries)]
        by_slot = np.zeros(len(numbers), np.uint64)
        by_slot[slots.astype(np.intp)] = simhashes
        return cls(*span, np.array(numbers, np.int64), by_slot, entries[is_new])

    @classmethod
    def merged(cls, levels: Sequence[Level]) -> Level:
        """Merge levels with adjacent ranges of rows into one level in memory."""
        numbers = np.concatenate([level.numbers for level in levels])
        simhashes = np.concatenate([level.simhashes for level in levels])
        return cls(levels[0].first, levels[-1].last, numbers, simhashes, np.concatenate([*merged_entries(levels)]))

    def columns(self) -> Iterator[npt.NDArray[np.int64] | Integers]:
        """Yield the arrays in the order in which a file has them."""
        yield from (self.numbers, self.simhashes, self.entries)

    def is_intact(self) -> bool:
        """Return whether the arrays have the checksum that they must have, if any."""
        found = 0
        for column in self.columns() if self.checksum is not None else ():
            found = zlib.crc32(column.data, found)
        return found == (self.checksum or 0)

    def find(self, probes: array[int]) -> bytes:
        """Return triples of integers: the place of a probe, a row number, and its Hamming distance (see `_find`)."""
        find = native.compiled.find if native.compiled else _find
        return find(self.entries, self.numbers, self.simhashes, probes)

    def count(self, key: int) -> int:
        """Return the number of rows that have a key."""
        low = _posting(key)
        ends = np.searchsorted(self.entries, np.array([low, low + MOST], np.uint64))
        return int(ends[1] - ends[0])


class Places(NamedTuple):
    """The places of rows that answer a look-up."""

    keys: dict[int, list[Place]]
    """The places of each key that was found, oldest first."""
    near: dict[Place, int]
    """The Hamming distances of near SimHashes by place, oldest first."""


NOTHING = Places({}, {})


class RowIndex:
    """An index that finds rows by key or SimHash."""

    def __init__(self) -> None:
        self.levels: list[Level] = []
        """Levels in ascending order of row numbers, without gaps between them."""
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="neardup-index")
        self._merging: Future[Level] | None = None
        self._clear()

    def _clear(self) -> None:
        """Forget the newest rows, which are in no level."""
        self._places: list[Place | None] = []  # by slot; None for a row that was removed
        self._postings: list[tuple[array[int], int | None]] = []
        self._slots: dict[str, list[int]] = {}  # slots of rows without a number
        self._first: dict[int, int] = {}  # the first slot of each key, and others, which are few
        self._others: dict[int, list[int]] = {}
        self._simhashes, self._near = array("Q"), array("Q")  # SimHashes, and the slot of each
        self._removed = 0

    @property
    def last(self) -> int:
        """The highest row number that a level covers; 0 if there are no levels."""
        return self.levels[-1].last if self.levels else 0

    @property
    def tail(self) -> int:
        """The number of slots outside the levels."""
        return len(self._places)

    # Look-ups

    def find(self, questions: Sequence[Asked], nearest: int = NEWEST) -> list[Places]:
        """Return the places of the newest rows of each key, and of the `nearest` rows near to a SimHash.

        If more rows have a near SimHash, the nearest are chosen; among equal distances, the oldest.
        """
        found = self._in_levels(questions, nearest)
        for at, question in enumerate(questions) if self._places else ():
            newest = self.newest(question)
            if newest != NOTHING:
                keys, near = found.get(at, NOTHING)
                merged = {key: [*keys.get(key, ()), *newest.keys.get(key, ())] for key in {**keys, **newest.keys}}
                found[at] = Places(merged, near | newest.near)
        nothing = Places({}, {})
        return [_cut(question, found.get(at, nothing), nearest) for at, question in enumerate(questions)]

    def newest(self, question: Asked) -> Places:
        """Return the places of all rows outside the levels that answer a question."""
        keys, simhash, distance = question
        near: dict[Place, int] = {} if simhash is None else self._near_in_tail(simhash, distance)
        return Places({key: self._in_tail(key) for key in keys.keys() & self._first.keys()}, near)

    def _in_levels(self, questions: Sequence[Asked], nearest: int) -> dict[int, Places]:
        """Return what the levels have for questions, by the place of the question, without those that find nothing."""
        found: dict[int, Places] = {}
        if not self.levels:
            return found
        probes, of = probes_of(questions, nearest)
        for level in self.levels:
            for probe, number, far in _triples(level.find(probes)):
                at, key = of[probe]
                keys, near = found.setdefault(at, Places({}, {}))
                if key is None:
                    near[number] = far
                else:
                    keys.setdefault(key, []).append(number)
        return {at: Places(keys, dict(sorted(near.items()))) for at, (keys, near) in found.items()}

    def _in_tail(self, key: int) -> list[Place]:
        slots = (self._first[key], *self._others.get(key, ())) if key in self._first else ()
        return [place for slot in slots if (place := self._places[slot]) is not None]

    def _near_in_tail(self, simhash: int, distance: int) -> dict[Place, int]:
        if not self._near:
            return {}
        far = np.bitwise_count(np.frombuffer(self._simhashes, np.uint64) ^ np.uint64(simhash))
        near = (far <= distance).nonzero()[0].tolist()
        return {p: int(far[at]) for at in near if (p := self._places[self._near[at]]) is not None}

    def count(self, key: int) -> int:
        """Return the number of rows that the index has for a key. Deleted rows may be counted too."""
        return len(self._in_tail(key)) + sum([level.count(key) for level in self.levels])

    # The newest rows

    def add(self, place: Place, keys: Sequence[int], simhash: int | None) -> None:
        """Add a row that is newer than all others, or further postings of a known row."""
        if not keys and simhash is None:
            return
        slot = len(self._places)
        self._places.append(place)
        self._postings.append((array("Q", keys), simhash))
        if isinstance(place, str):
            self._slots.setdefault(place, []).append(slot)
        for key in keys:
            if self._first.setdefault(key, slot) != slot and slot not in self._others.setdefault(key, [])[-1:]:
                self._others[key].append(slot)
        if simhash is not None:
            self._simhashes.append(simhash)
            self._near.append(slot)

    def number(self, key: str, number: int) -> bool:
        """Set the number of a row that has none yet. Return False if the index has no such row with this key."""
        slots = self._slots.pop(key, ())
        for slot in slots:
            self._places[slot] = number
        return bool(slots)

    def has(self, key: str) -> bool:
        """Return whether the index has a row with this key that has no number yet."""
        return key in self._slots

    def remove(self, key: str) -> None:
        """Remove a row if it has no number yet."""
        for slot in self._slots.pop(key, ()):
            self._places[slot] = None
            self._removed += 1
        if self._removed > max(TAIL, self.tail // 2):
            self._keep(object)

    def _keep(self, kind: type) -> None:
        """Forget removed rows, and those whose place is of another kind."""
        rows = zip(self._places, self._postings, strict=True)
        kept = [(place, postings) for place, postings in rows if place is not None and isinstance(place, kind)]
        self._clear()
        for place, postings in kept:
            self.add(place, *postings)

    # Levels

    def grow(self, last: int) -> None:
        """If `TAIL` rows up to number `last` are in no level, make a level of them. Start a merge if one is due."""
        if last - self.last >= TAIL:
            self.adopt()  # of the merge before, at a fixed number of rows, so that answers do not depend on the time
            self.seal(last)
            self.start_merge(self.levels)

    def start_merge(self, levels: Sequence[Level]) -> None:
        """Start to merge the last of these levels if a merge is due and none is running."""
        if not self._merging and (taken := due(levels)):
            self._merging = self._thread.submit(self._merge(taken))

    def seal(self, last: int) -> None:
        """Make a level of all rows that have a number. `last` is the highest of these numbers."""
        if last <= self.last:
            return
        numbered = [(place, slot) for slot, place in enumerate(self._places) if isinstance(place, int)]
        numbered.sort()
        postings = [self._postings[slot] for _, slot in numbered]
        keys = np.frombuffer(b"".join([keys for keys, _ in postings]), np.uint64)
        of = np.arange(len(postings), dtype=np.uint64).repeat([len(keys) for keys, _ in postings])
        near = {at: simhash for at, (_, simhash) in enumerate(postings) if simhash is not None}
        self.levels.append(Level.made((self.last + 1, last), [number for number, _ in numbered], keys, of, near))
        self._keep(str)

    def _merge(self, levels: Sequence[Level]) -> Callable[[], Level]:
        """Return a function that merges levels. It is called in a thread."""
        return lambda: Level.merged(levels)

    @property
    def is_merging(self) -> bool:
        """True if a merge is running, or has ended and waits for `adopt`."""
        return self._merging is not None

    @property
    def has_merged(self) -> bool:
        """True if a merge has ended and waits for `adopt`."""
        return self._merging is not None and self._merging.done()

    def adopt(self) -> None:
        """Wait for the running merge, if any, and put its result in place of the merged levels."""
        merging, self._merging = self._merging, None
        if merging:
            self.put(merging.result())

    def put(self, level: Level) -> None:
        """Add a level in place of those that cover the same rows."""
        self.levels = [*(each for each in self.levels if each.last < level.first), level,
                       *(each for each in self.levels if each.first > level.last)]  # fmt: skip

    def end(self) -> None:
        """Wait for the running merge, if any, and stop the thread."""
        self._thread.shutdown()
        self.adopt()


def sharing(questions: Sequence[Asked], names: Sequence[int]) -> set[int]:
    """Return the places of those questions that share a key or a name with another one, or whose SimHashes are near.

    A name of 0 is none.
    """
    keys, of = _keys_of(questions)
    keys, of = np.append(keys, np.array(names, np.uint64)), np.append(of, np.arange(len(names)))
    order = keys.argsort()
    keys, of = keys[order], of[order]
    is_same = (keys[1:] == keys[:-1]) & (keys[1:] > 0)
    places = [place for place, (_, simhash, _) in enumerate(questions) if simhash is not None]
    simhashes = np.array([questions[place][1] for place in places], np.uint64)
    distances = np.array([questions[place][2] for place in places])
    is_near = np.bitwise_count(simhashes[:, None] ^ simhashes) <= distances
    near = np.array(places, np.intp)[is_near.sum(axis=1) > 1]  # each is near to itself
    return {*of[1:][is_same].tolist(), *of[:-1][is_same].tolist(), *near.tolist()}


def _keys_of(questions: Sequence[Asked]) -> tuple[Integers, npt.NDArray[np.intp]]:
    """Return the keys of all questions, and the place of the question of each."""
    counts = [len(keys) for keys, _, _ in questions]
    keys = np.fromiter(chain.from_iterable(keys for keys, _, _ in questions), np.uint64, sum(counts))
    return keys, np.arange(len(questions)).repeat(counts)


def _triples(found: bytes) -> list[list[int]]:
    triples: list[list[int]] = np.frombuffer(found, np.int64).reshape(-1, 3).tolist() if found else []
    return triples


def _cut(question: Asked, found: Places, nearest: int) -> Places:
    """Return at most as many places as a question asks for."""
    most = question[0]
    keys = {key: places[-most[key] :] for key, places in found.keys.items() if places}
    return Places(keys, nearest_of(found.near, nearest))


def due(levels: Sequence[Level]) -> list[Level]:
    """Return the levels at the end of the list that are to be merged now; an empty list if no merge is due."""
    taken: list[Level] = []
    rows = 0
    for level in reversed(levels):
        if taken and (len(level) > RATIO * rows or rows + len(level) >= MOST):
            break
        taken.insert(0, level)
        rows += len(level)
    return taken if len(taken) > 1 else []


def merged_entries(levels: Sequence[Level]) -> Iterator[Integers]:
    """Yield the entries of levels, whose slots are counted on from level to level, in ascending pieces."""
    arrays = [level.entries for level in levels]
    most = max(arrays, key=len)
    step = max(1, STEP * len(most) // max(1, sum(map(len, arrays))))
    cuts = most[step::step] & np.uint64(_ALL ^ _SLOTS)
    ends = [np.append(np.searchsorted(each, cuts), len(each)).tolist() for each in arrays]
    shifts = np.cumsum([0, *map(len, levels)])[:-1].astype(np.uint64)
    starts = [0] * len(arrays)
    for stops in zip(*ends, strict=True):
        parts = zip(arrays, starts, stops, shifts, strict=True)
        piece = np.concatenate([each[start:stop] + shift for each, start, stop, shift in parts])
        piece.sort(kind="stable")  # merges sorted parts
        yield piece
        starts = [*stops]


def probes_of(questions: Sequence[Asked], nearest: int) -> tuple[array[int], list[tuple[int, int | None]]]:
    """Return the probes of questions, and for each probe the place of its question, with the key or None."""
    probes: list[int] = []
    of: list[tuple[int, int | None]] = []
    for at, (keys, simhash, distance) in enumerate(questions):
        for key, most in keys.items():
            probes += (_posting(key), most, 0, 0)
            of.append((at, key))
        if simhash is not None:
            probes += (_NEAR, nearest, simhash, distance)
            of.append((at, None))
    return array("Q", probes), of


def _posting(key: int) -> int:
    return key >> 64 - KEY_BITS << SLOT_BITS


def near_postings(simhashes: Integers, distance: int) -> Integers:
    """Return the postings to look up for near SimHashes: one row for each, one column for each block or near block."""
    own = np.empty((len(simhashes), BLOCKS), np.uint64)
    for block in range(BLOCKS):
        turned = simhashes << np.uint64(BLOCK_BITS * block)
        turned |= simhashes >> np.uint64(64 - BLOCK_BITS * block) if block else turned
        own[:, block] = np.uint64(_NEAR | block << 61) | turned >> np.uint64(64 - NEAR_BITS) << np.uint64(SLOT_BITS)
    if distance == BLOCKS - 1:
        return own
    blocks, bits = _block_flips(distance)
    return own[:, blocks] ^ bits


@cache
def _block_flips(distance: int) -> tuple[npt.NDArray[np.intp], Integers]:
    """Return numbers of blocks, and for each the bits to flip in its posting."""
    pairs = [(block, flip << 45) for block, most in enumerate(most_flips(distance)) for flip in flips(most)]
    blocks, bits = zip(*pairs, strict=True)
    return np.array(blocks, np.intp), np.array(bits, np.uint64)


def nearest_of(found: dict[Place, int], most: int) -> dict[Place, int]:
    """Return the `most` nearest of places with their distances, in their order. The first of equal ones are chosen."""
    if len(found) <= most:
        return found
    kept = {*sorted(found, key=found.__getitem__)[:most]}
    return {place: far for place, far in found.items() if place in kept}


def _find(entries: Integers, numbers: npt.NDArray[np.int64], simhashes: Integers, probes: array[int]) -> bytes:
    """Find what probes ask for. Return triples of integers: the place of the probe, a row number, and its distance.

    A probe is four integers: a posting, the maximum number of rows, a SimHash and the maximum Hamming distance from it.
    The newest rows of a key come in ascending order, with distance 0. The posting of a near SimHash has only its first
    bit. The nearest rows of each of its postings come nearest first, and the oldest first among equal distances. Slots
    that do not exist, as in a damaged file, are passed over.
    """
    found = [np.zeros((0, 3), np.int64)]
    for probe, (posting, most, simhash, distance) in enumerate(
        np.frombuffer(probes, np.uint64).reshape(-1, 4).tolist()
    ):
        if posting < _NEAR:
            start, end = np.searchsorted(entries, np.array([posting, posting | _SLOTS], np.uint64)).tolist()
            slots = entries[max(start, end - most) : end] & np.uint64(_SLOTS)
            parts = [(slots[slots < len(numbers)], np.zeros(1, np.uint8))]
        else:
            near = near_postings(np.array([simhash], np.uint64), distance)[0]
            parts = [_nearest(entries, numbers, simhashes, each, most, simhash, distance) for each in near.tolist()]
        found += [np.stack([np.full(len(s), probe), numbers[s], np.resize(far, len(s))], axis=1) for s, far in parts]
    return np.concatenate(found).astype(np.int64).tobytes()


def _nearest(
    entries: Integers,
    numbers: npt.NDArray[np.int64],
    simhashes: Integers,
    posting: int,
    most: int,
    simhash: int,
    distance: int,
) -> tuple[Integers, npt.NDArray[np.uint8]]:
    """Return the slots of the nearest rows of a posting, and their distances."""
    places = np.searchsorted(entries, np.array([posting & ~_REST, posting | _SLOTS, posting | _REST], np.uint64))
    start, at, end = places.tolist()
    crowd = max(CROWD, len(numbers) >> 14)
    slots = entries[max(start, at - crowd) : min(end, at + crowd)] & np.uint64(_SLOTS)
    slots = slots[slots < len(numbers)]
    far = np.bitwise_count(simhashes[slots] ^ np.uint64(simhash))
    order = np.lexsort((numbers[slots], far))[: min(most, int(np.count_nonzero(far <= distance)))]
    return slots[order], far[order]


def most_flips(distance: int) -> list[int]:
    """Return, for each block, the maximum number of bits to flip in lookups. A negative maximum means no lookup.

    The maxima add up to `distance` less `BLOCKS` - 1. If each block of two SimHashes differed in more bits than its
    maximum, the SimHashes would differ in more than `distance` bits. So a near SimHash is found by at least one block.
    At distance 6, one block needs no flips, so 52 lookups suffice instead of 68.

    Qin et al. 2018 (GPH), the general pigeonhole principle with integer reduction.
    """
    least, more = divmod(distance - BLOCKS + 1, BLOCKS)
    return [least + (block < more) for block in range(BLOCKS)]


def flips(bits: int) -> Iterator[int]:
    """Yield all ways to flip up to `bits` bits of a block. Each is an integer with the bits to flip."""
    for count in range(bits + 1):
        yield from sorted(sum(1 << place for place in places) for places in combinations(range(BLOCK_BITS), count))
