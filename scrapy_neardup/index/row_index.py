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
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache
from itertools import chain, combinations
from operator import itemgetter
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from .kinds import NEWEST

Integers: TypeAlias = npt.NDArray[np.uint64]
Place: TypeAlias = int | str
"""The number of a row, or its key until it has a number."""
Asked: TypeAlias = tuple[Mapping[int, int], int | None, int]
"""Keys, each with the maximum number of its rows; a SimHash or None, and the maximum Hamming distance from it."""
Posted: TypeAlias = tuple[int, "array[int]", int | None]
"""The number of a row, its keys, of which 0 is none, and its SimHash or None."""

BLOCKS, BLOCK_BITS = 4, 16
SLOT_BITS, KEY_BITS, NEAR_BITS = 28, 35, 33
MOST = 1 << SLOT_BITS  # the maximum number of rows in a level
TAIL = 1024  # the number of rows in dictionaries after which they become a level, which takes some milliseconds
RATIO = 4  # a level is merged with an earlier one up to this many times as large
CROWD = 1024  # of a block, entries to look at on each side of the SimHash; more mean a common template
STEP = 1 << 17  # entries to merge at a time
_NEAR = 1 << 63
_SLOTS, _REST = np.uint64(MOST - 1), np.uint64((1 << 45) - 1)  # the bits of a slot; those after a block


class Probes(NamedTuple):
    """What to look up in each level, with an item for each key and for each posting of a near SimHash."""

    asked: list[tuple[int, int | None]]
    """The place of the question, and its key or None."""
    columns: Integers
    """Eight rows: the posting of the key, or that of the SimHash in a block; the lowest entry that may answer; the one
    around which to look for near ones; the highest that may answer; the SimHash; its maximum distance; the maximum
    number of rows; 1 for a near SimHash and 0 for a key."""

    @classmethod
    def of(cls, questions: Sequence[Asked], nearest: int) -> Probes:
        """Return the probes of questions."""
        asked: list[tuple[int, int | None]] = [(at, key) for at, (keys, _, _) in enumerate(questions) for key in keys]
        own = np.array([key for _, key in asked], np.uint64) >> np.uint64(64 - KEY_BITS) << np.uint64(SLOT_BITS)
        most = np.array([each for keys, _, _ in questions for each in keys.values()], np.uint64)
        parts = [_columns(own, own, _SLOTS, 0, 0, most, 0)]
        for distance in {distance for _, simhash, distance in questions if simhash is not None}:
            near = {at: each for at, (_, each, far) in enumerate(questions) if each is not None and far == distance}
            simhashes, (blocks, bits) = np.array([*near.values()], np.uint64), _block_flips(distance)
            own = block_postings(simhashes)[:, blocks]
            parts.append(_columns(own, own ^ bits, _REST, simhashes[:, None], distance, nearest, 1))
            asked += [(at, None) for at in near for _ in bits]
        return cls(asked, np.concatenate(parts, axis=1))


def _columns(own: Integers, looked_up: Integers, rest: np.uint64, *more: Integers | int) -> Integers:
    """Return the columns of probes, given the bits in which the entries that answer may differ."""
    made = np.empty((8, *own.shape), np.uint64)
    for row, column in zip(made, (own, looked_up & ~rest, looked_up | _SLOTS, looked_up | rest, *more), strict=True):
        row[...] = column
    return made.reshape(8, -1)


@dataclass(eq=False)
class Level:
    """The sorted entries of the rows with numbers `first` to `last`, in memory or mapped from a file."""

    first: int
    last: int
    numbers: npt.NDArray[np.int64]
    """The row number in each slot, ascending."""
    simhashes: Integers
    """The SimHash in each slot; 0 for a row without SimHash."""
    entries: Integers
    path: Path | None = None
    """The file that the level is mapped from."""
    checksum: int | None = None
    """The checksum of the arrays in that file."""

    def __len__(self) -> int:
        """Return the number of rows, including deleted ones."""
        return len(self.numbers)

    @classmethod
    def of(cls, first: int, last: int, rows: Sequence[Posted]) -> Level:
        """Build a level of rows with ascending numbers from `first` to `last`, which may have gaps."""
        keys = np.frombuffer(b"".join([keys for _, keys, _ in rows]), np.uint64)
        slots = np.arange(len(rows), dtype=np.uint64).repeat(np.array([len(keys) for _, keys, _ in rows], np.intp))
        entries = keys >> np.uint64(64 - KEY_BITS) << np.uint64(SLOT_BITS) | slots
        near = np.array([slot for slot, (_, _, simhash) in enumerate(rows) if simhash is not None], np.intp)
        simhashes = np.array([simhash or 0 for _, _, simhash in rows], np.uint64)
        own = block_postings(simhashes[near]) | near.astype(np.uint64)[:, None]
        entries = np.sort(np.append(entries[keys > 0], own))
        is_new = np.append(True, entries[1:] != entries[:-1])[: len(entries)]
        numbers = np.array([number for number, _, _ in rows], np.int64)
        return cls(first, last, numbers, simhashes, entries[is_new])

    def has(self, rows: Sequence[Posted], slots: Sequence[int]) -> bool:
        """Return whether the level has all entries of these rows in these slots."""
        entries = Level.of(0, 0, rows).entries
        wanted = entries & ~_SLOTS | np.array(slots, np.uint64)[entries & _SLOTS]
        places = np.searchsorted(self.entries, wanted)
        return len(wanted) == 0 or bool(np.array_equal(self.entries[places.clip(max=len(self.entries) - 1)], wanted))

    def is_intact(self) -> bool:
        """Return whether the arrays have the checksum of the file, if the level is of one."""
        found = 0
        for column in (self.numbers, self.simhashes, self.entries) if self.checksum is not None else ():
            found = zlib.crc32(column.data, found)
        return found == (self.checksum or 0)

    def find(self, probes: Integers) -> list[list[int]]:
        """Return triples of integers: the place of a probe, a row number, and its Hamming distance.

        The rows of a probe come nearest first, and the oldest first among equal distances.
        """
        if not len(self.entries):
            return []
        starts = self.entries.searchsorted(probes[1])
        nearest = self.entries.take(starts, mode="clip")
        of = ((probes[1] <= nearest) & (nearest <= probes[3])).nonzero()[0]
        if not len(of):
            return []  # most keys are not found
        _, _, middle, last, _, _, most, is_near = probes[:, of]
        middles, ends = (self.entries.searchsorted(each, "right") for each in (middle, last))
        widths = np.where(is_near, max(CROWD, len(self) >> 14), most).astype(np.intp)
        starts, ends = np.maximum(starts[of], middles - widths), np.minimum(ends, middles + widths)
        counts = np.maximum(ends - starts, 0)  # below 0 in a damaged file
        found: list[list[int]] = []
        for part in np.array_split(np.arange(len(of)), 1 + counts.sum() // STEP):
            found += self._rows(probes, of[part].repeat(counts[part]), _ranges(starts[part], counts[part])).tolist()
        return found

    def _rows(self, probes: Integers, of: npt.NDArray[np.intp], at: npt.NDArray[np.intp]) -> npt.NDArray[np.int64]:
        """Return those triples of entries that answer their probes. `of` has the place of the probe of each entry."""
        entries = self.entries[at]
        slots = entries & _SLOTS
        # Most entries fail here, without a look at the whole SimHash. Slots beyond are of a damaged file.
        is_like = np.bitwise_count((entries ^ probes[0, of]) >> np.uint64(SLOT_BITS)) <= probes[5, of]
        kept = is_like & (slots < len(self.numbers))
        of, slots = of[kept], slots[kept]
        far = np.bitwise_count(self.simhashes[slots] ^ probes[4, of]) * probes[7, of]
        triples = np.stack([of, self.numbers[slots], far], axis=1, dtype=np.int64, casting="unsafe")
        triples = triples[far <= probes[5, of]]
        triples = triples[np.lexsort(triples.T[[1, 2, 0]])]
        rank = np.arange(len(triples)) - triples[:, 0].searchsorted(triples[:, 0])
        found: npt.NDArray[np.int64] = triples[rank < probes[6, triples[:, 0]]]
        return found

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


class RowIndex:
    """An index that finds rows by key or SimHash."""

    def __init__(self) -> None:
        self.levels: list[Level] = []
        """Levels in ascending order of row numbers, without gaps between them."""
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="neardup-index")
        self._merging: Future[list[Level]] | None = None
        self._clear()

    def _clear(self) -> None:
        """Forget the newest rows, which are in no level."""
        self._rows: list[tuple[Place | None, array[int], int | None]] = []
        """The place of each row by slot, None for a removed one, with its postings."""
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
        return len(self._rows)

    # Look-ups

    def find(self, questions: Sequence[Asked], nearest: int = NEWEST) -> list[Places]:
        """Return the places of the newest rows of each key, and of the `nearest` rows near to a SimHash.

        If more rows have a near SimHash, the nearest are chosen; among equal distances, the oldest.
        """
        found = [Places({}, {}) for _ in questions]
        asked, columns = Probes.of(questions if self.levels else (), nearest)
        for level in self.levels:
            for probe, number, far in level.find(columns):
                at, key = asked[probe]
                if key is None:
                    found[at].near[number] = far
                else:
                    found[at].keys.setdefault(key, []).append(number)
        return [self._answer(*each, nearest) for each in zip(questions, found, strict=True)]

    def _answer(self, question: Asked, found: Places, nearest: int) -> Places:
        """Add the newest rows to what the levels have for a question. Keep at most as many as it asks for."""
        newest = self.newest(question)
        for key, places in newest.keys.items():
            found.keys.setdefault(key, []).extend(places)
        for key, places in found.keys.items():
            del places[: -question[0][key]]
        if not (found.near or newest.near):
            return found
        return Places(found.keys, nearest_of(dict(sorted(found.near.items())) | newest.near, nearest))

    def newest(self, question: Asked) -> Places:
        """Return the places of all rows outside the levels that answer a question."""
        keys, simhash, distance = question
        near: dict[Place, int] = {}
        if simhash is not None and self._near:
            far = np.bitwise_count(np.frombuffer(self._simhashes, np.uint64) ^ np.uint64(simhash))
            some = (far <= distance).nonzero()[0].tolist()
            near = {place: int(far[at]) for at in some if (place := self._rows[self._near[at]][0]) is not None}
        known = keys.keys() & self._first.keys()
        return Places({key: places for key in known if (places := self._in_tail(key))}, near)

    def _in_tail(self, key: int) -> list[Place]:
        slots = (self._first[key], *self._others.get(key, ())) if key in self._first else ()
        return [place for slot in slots if (place := self._rows[slot][0]) is not None]

    def count(self, key: int) -> int:
        """Return the number of rows that the index has for a key. Deleted rows may be counted too."""
        return len(self._in_tail(key)) + sum([level.count(key) for level in self.levels])

    # The newest rows

    def add(self, place: Place, keys: Sequence[int], simhash: int | None) -> None:
        """Add a row that is newer than all others, or further postings of a known row."""
        if not keys and simhash is None:
            return
        slot = len(self._rows)
        self._rows.append((place, array("Q", keys), simhash))
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
            self._rows[slot] = (number, *self._rows[slot][1:])
        return bool(slots)

    def remove(self, key: str) -> None:
        """Remove a row if it has no number yet."""
        for slot in self._slots.pop(key, ()):
            self._rows[slot] = (None, *self._rows[slot][1:])
            self._removed += 1
        if self._removed > max(TAIL, self.tail // 2):
            self._keep(object)

    def _keep(self, kind: type) -> None:
        """Forget removed rows, and those whose place is of another kind."""
        rows = self._rows
        self._clear()
        for place, keys, simhash in rows:
            if place is not None and isinstance(place, kind):
                self.add(place, keys, simhash)

    # Levels

    def grow(self, last: int) -> None:
        """If `TAIL` rows up to number `last` are in no level, make a level of them. Start a merge if one is due."""
        if last - self.last >= TAIL:
            self.adopt()  # of the merge before, at a fixed number of rows, so that answers do not depend on the time
            self.seal(last)
            self.start_merge()

    def start_merge(self) -> None:
        """Start to merge the last levels if that is due and no merge is running."""
        if not self._merging and (taken := due(self._mergeable())):
            self._merging = self._thread.submit(self._merge, taken)

    def seal(self, last: int) -> None:
        """Make a level of all rows that have a number. `last` is the highest of these numbers."""
        if last > self.last:
            rows: dict[int, Posted] = {}
            for place, keys, simhash in self._rows:
                if isinstance(place, int) and (known := rows.setdefault(place, (place, keys, simhash)))[1] is not keys:
                    rows[place] = place, known[1] + keys, known[2] if simhash is None else simhash
            self.levels.append(Level.of(self.last + 1, last, sorted(rows.values(), key=itemgetter(0))))
            self._keep(str)

    def _mergeable(self) -> list[Level]:
        return self.levels

    def _merge(self, levels: Sequence[Level]) -> list[Level]:
        """Merge levels with adjacent ranges of rows in memory. Called in a thread."""
        pieces, count = [*merged_columns(levels)], len(levels)
        columns = pieces[:count], pieces[count : 2 * count], pieces[2 * count :]
        numbers, simhashes, entries = map(np.concatenate, columns)
        return [Level(levels[0].first, levels[-1].last, numbers, simhashes, entries)]

    @property
    def has_merged(self) -> bool:
        """True if a merge has ended and waits for `adopt`."""
        return self._merging is not None and self._merging.done()

    def adopt(self) -> None:
        """Wait for the running merge, if any, and put its result in place of the merged levels."""
        merging, self._merging = self._merging, None
        if merging:
            self.put(merging.result())

    def put(self, levels: Sequence[Level]) -> None:
        """Add adjacent levels in place of those that cover the same rows."""
        first, last = levels[0].first, levels[-1].last
        before = [level for level in self.levels if level.last < first]
        self.levels = [*before, *levels, *(level for level in self.levels if level.first > last)]

    def end(self) -> None:
        """Wait for the running merge, if any, and stop the thread."""
        self._thread.shutdown()
        self.adopt()


def sharing(questions: Sequence[Asked], names: Sequence[int]) -> set[int]:
    """Return the places of those questions that share a key or a name with another one, or whose SimHashes are near.

    A name of 0 is none.
    """
    counts = [len(keys) for keys, _, _ in questions]
    keys = np.array([*chain.from_iterable(keys for keys, _, _ in questions), *names], np.uint64)
    of = np.append(np.arange(len(questions)).repeat(counts), np.arange(len(names)))
    order = keys.argsort()
    keys, of = keys[order], of[order]
    is_same = (keys[1:] == keys[:-1]) & (keys[1:] > 0)
    places = [place for place, (_, simhash, _) in enumerate(questions) if simhash is not None]
    simhashes = np.array([questions[place][1] for place in places], np.uint64)
    distances = np.array([questions[place][2] for place in places])
    is_near = np.bitwise_count(simhashes[:, None] ^ simhashes) <= distances
    near = np.array(places, np.intp)[is_near.sum(axis=1) > 1]  # each is near to itself
    return {*of[1:][is_same].tolist(), *of[:-1][is_same].tolist(), *near.tolist()}


def due(levels: Sequence[Level], ratio: int = RATIO) -> list[Level]:
    """Return the levels at the end of the list that are to be merged now; an empty list if no merge is due."""
    taken: list[Level] = []
    rows = 0
    for level in reversed(levels):
        if taken and (len(level) > ratio * rows or rows + len(level) >= MOST):
            break
        taken.insert(0, level)
        rows += len(level)
    return taken if len(taken) > 1 else []


def merged_columns(levels: Sequence[Level]) -> Iterator[npt.NDArray[Any]]:
    """Yield the numbers of levels, their SimHashes, and their entries in ascending pieces.

    The slots in entries are counted on from level to level.
    """
    yield from (level.numbers for level in levels)
    yield from (level.simhashes for level in levels)
    arrays = [level.entries for level in levels]
    most = max(arrays, key=len)
    step = max(1, STEP * len(most) // max(1, sum(map(len, arrays))))
    cuts = most[step::step] & ~_SLOTS
    ends = [np.append(np.searchsorted(each, cuts), len(each)).tolist() for each in arrays]
    shifts = np.cumsum([0, *map(len, levels)])[:-1].astype(np.uint64)
    starts = [0] * len(arrays)
    for stops in zip(*ends, strict=True):
        parts = zip(arrays, starts, stops, shifts, strict=True)
        piece = np.concatenate([each[start:stop] + shift for each, start, stop, shift in parts])
        piece.sort(kind="stable")  # merges sorted parts
        yield piece
        starts = [*stops]


def _ranges(starts: npt.NDArray[np.intp], counts: npt.NDArray[np.intp]) -> npt.NDArray[np.intp]:
    """Return the integers of ranges, one range after another."""
    found: npt.NDArray[np.intp] = np.arange(counts.sum()) + (starts - counts.cumsum() + counts).repeat(counts)
    return found


def _posting(key: int) -> int:
    return key >> 64 - KEY_BITS << SLOT_BITS


def block_postings(simhashes: Integers) -> Integers:
    """Return the postings of SimHashes: one row for each, one column for each block."""
    own = np.empty((len(simhashes), BLOCKS), np.uint64)
    for block in range(BLOCKS):
        turned = simhashes << np.uint64(BLOCK_BITS * block)
        turned |= simhashes >> np.uint64(64 - BLOCK_BITS * block) if block else turned
        own[:, block] = np.uint64(_NEAR | block << 61) | turned >> np.uint64(64 - NEAR_BITS) << np.uint64(SLOT_BITS)
    return own


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
