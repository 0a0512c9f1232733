"""Find rows by their *postings*, which are keys and a SimHash. No I/O.

The *place* of a row is the integer under which the store has it. A detector names the kind of its lookup: `Equal` or
`Near`, by these postings, or an `Index` of its own. The postings of the newest rows are in dictionaries, all others in
sorted arrays. An entry of an array is one integer of 64 bits: a posting, and the *slot* of a row, which is the position
of its place in `Level.places`:

    of a key:      0 | 35 bits of the key | 28 bits of the slot
    of a SimHash:  1 | 2 bits: number of a block | 33 bits: the SimHash, rotated so that this block comes first | slot

So a lookup is a range of integers: for a key, all entries that begin with its 35 bits; for a near SimHash, all that
begin with the 16 bits of a block. Among 10^8 entries, one lookup of a key in 300 finds a wrong row, which verification
rejects.

Each array is a *level*. A level is merged with the level before it if that one is at most `RATIO` times as large. Both
together must have fewer than `MERGED` rows. So there are few levels. A thread merges them, one merge at a time. Lookups
use the old levels until the result is adopted. So a crawl waits for a merge only if its store is in memory, and rows
come faster than they are merged.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache
from itertools import combinations
from operator import itemgetter
from struct import Struct
from typing import Any, NamedTuple, Protocol, TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt

from . import native
from .fingerprints.hashes import distinct

Integers: TypeAlias = npt.NDArray[np.uint64]
Posted: TypeAlias = tuple[int, "array[int]", int | None]
"""The place of a row, its keys (0 is no key), and its SimHash or None."""
BLOCKS, BLOCK_BITS = 4, 16
SLOT_BITS, KEY_BITS, NEAR_BITS = 28, 35, 33
MOST = 1 << SLOT_BITS  # the maximum number of rows in a level
MERGED = 1 << 20  # the maximum number of rows to merge while a store is in use, so that closing it never takes long
TAIL = 1024  # the number of rows in dictionaries after which they become a level, which takes some milliseconds
RATIO = 4  # a level is merged with an earlier one up to this many times as large
CROWD = 1024  # entries with the same block to look at on each side of a SimHash; more mean a common template
STEP = 1 << 17  # entries to merge at a time
_NEAR = 1 << 63
_HIT = Struct("=4Q")
_SLOTS, _REST = MOST - 1, (1 << 45) - 1  # the bits of a slot; those after a block

NEWEST = 16  # the maximum number of documents for one fingerprint; one that more share is of a set phrase

T = TypeVar("T")


class Question(NamedTuple):
    """A lookup by keys and by SimHash distance."""

    keys: array[int]
    most: int = NEWEST
    """The maximum number of rows to return for each key. If more rows exist, the newest are returned."""
    simhash: int | None = None
    distance: int = 0
    """The maximum Hamming distance from `simhash`. If more than `NEWEST` rows exist, the nearest are returned."""


@dataclass(frozen=True)
class Equal:
    """A lookup that finds documents in the store by equal fingerprints."""

    newest: int = NEWEST
    """The maximum number of documents for one fingerprint: more would prove little. The newest are returned."""


@dataclass(frozen=True)
class Near:
    """A lookup that finds documents in the store by Hamming distance. Only the detector `simhash` may use it."""

    distance: int
    """The maximum number of differing bits."""


class Index(Protocol[T]):
    """A detector's own index in RAM. A store adds its documents to the index when it is opened.

    An index maps 64-bit fingerprints to documents, of which one may have several. It compares documents by identity.
    """

    def add(self, fingerprints: Sequence[int], document: T) -> None:
        """Add a document under its fingerprints. A document without fingerprints is never found."""

    def remove(self, fingerprints: Sequence[int], document: T) -> None:
        """Remove a document, given its fingerprints."""

    def find(self, fingerprints: Sequence[int]) -> Iterable[T]:
        """Return each document that has any of the fingerprints, once."""


@dataclass(eq=False)
class Level:
    """The rows with numbers `first` to `last`: their places, SimHashes and sorted entries."""

    first: int
    last: int
    places: npt.NDArray[np.int64]  # the place of the row in each slot, the oldest first
    simhashes: Integers  # the SimHash in each slot; 0 for a row without SimHash
    entries: Integers

    def __len__(self) -> int:
        return len(self.places)

    @classmethod
    def of(cls, first: int, last: int, rows: Sequence[Posted]) -> Level:
        """Build a level of the rows with numbers from `first` to `last`. `rows` are sorted oldest first."""
        keys = np.frombuffer(b"".join([keys for _, keys, _ in rows]), np.uint64)
        slots = np.arange(len(rows), dtype=np.uint64).repeat(np.array([len(keys) for _, keys, _ in rows], np.intp))
        entries = keys >> np.uint64(64 - KEY_BITS) << np.uint64(SLOT_BITS) | slots
        near = np.array([slot for slot, (_, _, simhash) in enumerate(rows) if simhash is not None], np.intp)
        simhashes = np.array([simhash or 0 for _, _, simhash in rows], np.uint64)
        own = near_postings(simhashes[near], BLOCKS - 1) | near.astype(np.uint64)[:, None]
        places = np.array([place for place, _, _ in rows], np.int64)
        return cls(first, last, places, simhashes, distinct(np.append(entries[keys > 0], own)))

    def has(self, row: Posted) -> bool:
        """Return whether a lookup of the row's rarest posting finds the row; True if the row has no postings."""
        low = Level.of(0, 0, [row]).entries
        if len(low) == 0:
            return True
        starts = np.searchsorted(self.entries, low)
        ends = np.searchsorted(self.entries, low | np.uint64(_SLOTS), "right")
        rarest = (ends - starts).argmin()
        slots = self.entries[starts[rarest] : ends[rarest]] & np.uint64(_SLOTS)
        return row[0] in self.places[slots[slots < len(self)]]

    def find(self, questions: list[Question], nearest: int) -> list[tuple[int, int, int, int]]:
        """Return hits, oldest row first: (position of the question, key or 0 for a near SimHash, place, distance)."""
        find = native.compiled.find if native.compiled else _find
        hits = sorted(_HIT.iter_unpack(find(self.entries, self.simhashes, questions, nearest)), key=itemgetter(2))
        return [(at, key, self.places.item(slot), far) for at, key, slot, far in hits]

    def count(self, key: int) -> int:
        low = _posting(key)
        ends = np.searchsorted(self.entries, np.array([low, low + MOST], np.uint64))
        return int(ends[1] - ends[0])


class Places(NamedTuple):
    """The places of rows that answer a lookup. Some of these rows may not exist any more."""

    keys: dict[int, list[int]]  # the places of each key that was found, oldest first
    near: dict[int, int]  # the Hamming distances of near SimHashes by place, oldest first


class RowIndex:
    """An index that finds rows by key or SimHash."""

    def __init__(self, lacks_number: Callable[[int], bool] = lambda place: False) -> None:
        """`lacks_number` tells whether the row at a place has no number yet."""
        self._lacks_number = lacks_number
        self.levels: list[Level] = []  # levels in ascending order of row numbers, without gaps between them
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="neardup-index")
        self._merging: Future[list[Level]] | None = None
        self._restart(())

    def _restart(self, newest: Iterable[Posted]) -> None:
        """Fill the dictionaries anew, with these rows."""
        self._rows: list[Posted] = []
        self._removed: set[int] = set()
        self._first: dict[int, int] = {}  # the place of each key; most keys have only one
        self._more: dict[int, list[int]] = {}  # the further places of a key
        self._simhashes, self._of_simhashes = array("Q"), array("q")  # SimHashes, and the place of each
        for row in newest:
            self.add(*row)

    @property
    def last(self) -> int:
        """The highest row number that a level covers; 0 if there are no levels."""
        return self.levels[-1].last if self.levels else 0

    # Lookups

    def find(self, questions: Sequence[Question], nearest: int = NEWEST) -> list[Places]:
        """Return the places of the newest rows of each key, and of at most `nearest` rows with a near SimHash.

        If more rows have a near SimHash, the nearest are returned and, of equally near ones, the oldest.
        """
        found = [Places({}, {}) for _ in questions]
        asked = [*questions]
        for level in self.levels:
            for at, key, place, far in level.find(asked, nearest):
                if key:
                    found[at].keys.setdefault(key, []).append(place)
                else:
                    found[at].near[place] = far
        near = native.compiled.near if native.compiled else _near
        for (keys, most, simhash, distance), places in zip(questions, found, strict=True):
            for row, far in () if simhash is None else near(self._simhashes, simhash, distance):
                places.near[self._of_simhashes[row]] = far
            for key in filter(self._first.__contains__, keys):
                places.keys[key] = [*places.keys.get(key, ()), self._first[key], *self._more.get(key, ())]
            for key in [key for key, some in places.keys.items() if len(some) > 1]:
                places.keys[key] = [*dict.fromkeys(places.keys[key])][-most:]
            if len(places.near) > nearest:
                keep_nearest(places.near, nearest)
        return found

    def count(self, key: int) -> int:
        """Return the number of rows that the index has for a key. Deleted rows may be counted too."""
        newest = (key in self._first) + len(self._more.get(key, ()))
        return newest + sum([level.count(key) for level in self.levels])

    # The newest rows

    def add(self, place: int, keys: array[int], simhash: int | None) -> None:
        """Add a row that is newer than all others, or further postings of an earlier row."""
        self._removed.discard(place)
        self._rows.append((place, keys, simhash))
        first = self._first
        for key in keys:
            if first.setdefault(key, place) != place:
                self._more.setdefault(key, []).append(place)
        if simhash is not None:
            self._simhashes.append(simhash)
            self._of_simhashes.append(place)

    def remove(self, place: int) -> None:
        """Forget a row, unless it is in a level. Lookups may still find it until many rows have been removed."""
        self._removed.add(place)
        if len(self._removed) > max(TAIL, len(self._rows) // 4):  # a removed place is in one or two rows
            self._restart(self._kept())

    def _kept(self) -> list[Posted]:
        return [row for row in self._rows if row[0] not in self._removed]

    # Levels

    def grow(self, last: int, *, wait: bool = True) -> None:
        """If `TAIL` rows up to number `last` are in no level, make a level of them. Start a merge if one is due.

        With `wait`, first wait until the running merge has ended, so that answers do not depend on its speed.
        """
        if last - self.last >= TAIL:
            self.adopt(wait=wait)
            self.seal(last)
            if not self._merging:
                self._start_merge(due(self._mergeable(), RATIO, MERGED))

    def seal(self, last: int) -> None:
        """Make a level of the newest rows, up to number `last`. Those that lack a number stay in the dictionaries."""
        newest, rows = self._kept(), dict[int, Posted]()
        later = {place for place, _, _ in newest if self._lacks_number(place)}
        for place, keys, simhash in newest:
            if place in rows:
                keys, simhash = rows[place][1] + keys, rows[place][2] if simhash is None else simhash
            if place not in later or place < 0:  # a visit that gets a new number may have an old one
                rows[place] = place, keys, simhash
        self.levels.append(Level.of(self.last + 1, last, [*rows.values()]))
        self._restart(row for row in newest if row[0] in later)

    def _start_merge(self, levels: Sequence[Level]) -> None:
        """Start to merge levels, if any. No other merge may be running."""
        if levels:
            self._merging = self._thread.submit(self._merge, levels)

    def adopt(self, *, wait: bool = True) -> None:
        """Put the result of a merge in place of the merged levels. Without `wait`, only if the merge has ended."""
        if self._merging and (wait or self._merging.done()):
            merging, self._merging = self._merging, None
            merged = merging.result()
            before = [level for level in self.levels if level.last < merged[0].first]
            self.levels = [*before, *merged, *(level for level in self.levels if level.first > merged[-1].last)]

    def end(self) -> None:
        """Wait for the running merge, if any, adopt its result, and end the thread."""
        try:
            self.adopt()
        finally:
            self._thread.shutdown()

    def _mergeable(self) -> list[Level]:
        return self.levels

    def _merge(self, levels: Sequence[Level]) -> list[Level]:
        """Merge adjacent levels in memory. Called in the thread."""
        pieces, count = [*merged_columns(levels)], len(levels)
        columns = pieces[:count], pieces[count : 2 * count], pieces[2 * count :]
        places, simhashes, entries = map(np.concatenate, columns)
        return [Level(levels[0].first, levels[-1].last, places, simhashes, entries)]


def sharing(questions: Sequence[Question]) -> set[int]:
    """Return the positions of the questions that have a key or a near SimHash in common with another question."""
    near = native.compiled.near if native.compiled else _near
    found, first = set[int](), dict[int, int]()
    simhashes, of_simhashes = array("Q"), list[int]()
    for at, (keys, _, simhash, distance) in enumerate(questions):
        others = {first.setdefault(key, at) for key in keys}
        if simhash is not None:
            others.update([of_simhashes[row] for row, _ in near(simhashes, simhash, distance)])
            simhashes.append(simhash)
            of_simhashes.append(at)
        if others - {at}:
            found |= {at, *others}
    return found


def due(levels: Sequence[Level], ratio: int, most: int) -> list[Level]:
    """Return the newest levels if they are to be merged now; else []. Together they have fewer than `most` rows."""
    taken: list[Level] = []
    rows = 0
    for level in reversed(levels):
        if taken and (len(level) > ratio * rows or rows + len(level) >= most):
            break
        taken.insert(0, level)
        rows += len(level)
    return taken if len(taken) > 1 else []


def merged_columns(levels: Sequence[Level]) -> Iterator[npt.NDArray[Any]]:
    """Yield the places of each level, the SimHashes of each level, and all entries in ascending pieces.

    The slots in the entries continue from level to level, as the places do.
    """
    yield from (level.places for level in levels)
    yield from (level.simhashes for level in levels)
    arrays = [level.entries for level in levels]
    most = max(arrays, key=len)
    step = max(1, STEP * len(most) // max(1, sum(map(len, arrays))))
    cuts = most[step::step] & ~np.uint64(_SLOTS)
    ends = [np.append(np.searchsorted(each, cuts), len(each)).tolist() for each in arrays]
    shifts = np.cumsum([0, *map(len, levels)])[:-1].astype(np.uint64)
    starts = [0] * len(arrays)
    for stops in zip(*ends, strict=True):
        parts = zip(arrays, starts, stops, shifts, strict=True)
        piece = np.concatenate([each[start:stop] + shift for each, start, stop, shift in parts])
        piece.sort(kind="stable")  # merges sorted parts
        yield piece
        starts = [*stops]


def _posting(key: int) -> int:
    return key >> 64 - KEY_BITS << SLOT_BITS


def near_postings(simhashes: Integers, distance: int) -> Integers:
    """Return the entries to look up, with slot 0: one row for each SimHash, one column for each of the `flips`."""
    own = np.empty((len(simhashes), BLOCKS), np.uint64)
    for block in range(BLOCKS):
        turned = simhashes << np.uint64(BLOCK_BITS * block)
        turned |= simhashes >> np.uint64(64 - BLOCK_BITS * block) if block else turned
        own[:, block] = np.uint64(_NEAR | block << 61) | turned >> np.uint64(64 - NEAR_BITS) << np.uint64(SLOT_BITS)
    blocks, bits = zip(*flips(distance), strict=True)
    return own[:, blocks] ^ np.array(bits, np.uint64) << np.uint64(45)


def keep_nearest(found: dict[int, int], most: int) -> None:
    """Remove all but the `most` nearest places from `found`. Of equally near places, keep the first."""
    for place in sorted(found, key=found.__getitem__)[most:]:
        del found[place]


def _find(entries: Integers, simhashes: Integers, questions: Sequence[Question], nearest: int) -> bytes:
    """Pack four integers for each hit: the position of a question, a key or 0 for a near SimHash, a slot, a distance.

    The newest rows of a key come oldest first, with distance 0. The rows found by one posting of a SimHash come nearest
    first and, if equally near, oldest first. Slots that do not exist, as in a damaged file, are passed over.
    """
    found: list[tuple[int, int, int, int]] = []
    crowd = max(CROWD, len(simhashes) >> 14)

    def slots_from(start: int, end: int) -> Integers:
        slots = entries[start:end] & np.uint64(_SLOTS)
        return slots[slots < len(simhashes)]

    for number, (keys, most, simhash, distance) in enumerate(questions):
        for key in keys:
            start, end = np.searchsorted(entries, np.array([_posting(key), _posting(key) | _SLOTS], np.uint64)).tolist()
            found += ((number, key, slot, 0) for slot in slots_from(max(start, end - most), end).tolist())
        asked = np.array([] if simhash is None else [simhash], np.uint64)
        for each in near_postings(asked, distance).ravel().tolist():
            edges = np.array([each & ~_REST, each | _SLOTS, each | _REST], np.uint64)
            start, at, end = np.searchsorted(entries, edges).tolist()
            slots = slots_from(max(start, at - crowd), min(end, at + crowd))
            far = np.bitwise_count(simhashes[slots] ^ asked)
            order = np.lexsort((slots, far))[: min(nearest, int(np.count_nonzero(far <= distance)))]
            found += ((number, 0, int(slots[one]), int(far[one])) for one in order)
    return b"".join(_HIT.pack(*hit) for hit in found)


def _near(simhashes: array[int], simhash: int, distance: int) -> list[tuple[int, int]]:
    """Return the positions of near SimHashes in an array, in ascending order, each with its Hamming distance."""
    far = np.bitwise_count(np.frombuffer(simhashes, np.uint64) ^ np.uint64(simhash))
    return [(at, int(far[at])) for at in (far <= distance).nonzero()[0].tolist()]


@cache
def flips(distance: int) -> list[tuple[int, int]]:
    """Return the lookups for near SimHashes, each as the number of a block and an integer with the bits to flip in it.

    Each block has a maximum number of flipped bits; a negative one means no lookup. The maxima add up to `distance`
    less `BLOCKS` - 1. If each block of two SimHashes differed in more bits than its maximum, the SimHashes would differ
    in more than `distance` bits. So a near SimHash is found by at least one block. At distance 6, the maxima are 1, 1,
    1, and 0. That makes 52 lookups, where 1 for each block would make 68.

    Qin et al. 2018 (GPH), the general pigeonhole principle with integer reduction.
    """
    least, more = divmod(distance - BLOCKS + 1, BLOCKS)
    found: list[tuple[int, int]] = []
    for block in range(BLOCKS):
        for count in range(least + (block < more) + 1):
            ways = combinations(range(BLOCK_BITS), count)
            found += ((block, bits) for bits in sorted(sum(1 << at for at in some) for some in ways))
    return found
