"""Index the newest rows in dictionaries. No I/O."""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import Iterable
from typing import TypeAlias

import numpy as np

from ..interface import Postings
from .table import Columns

Place: TypeAlias = int | str
"""The number of a row, or its key until it has a number."""


class Tail:
    """The newest rows of an index in the order of arrival, with their postings."""

    def __init__(self) -> None:
        self.places: list[Place | None] = []
        """The place of the row in each slot; None if the row was removed."""
        self.removed = 0
        """The number of slots whose row was removed."""
        self._slots: dict[str, list[int]] = {}  # slots of rows without a number
        self._first: dict[int, int] = {}  # the first slot of each key
        self._others: dict[int, list[int]] = {}  # further slots of keys with several rows, which are few
        self._keys, self._ends = array("Q"), array("Q", [0])
        self._simhashes, self._of = np.zeros(64, np.uint64), array("Q")  # `_of` has the slot of each SimHash

    def __len__(self) -> int:
        return len(self.places)

    def add(self, place: Place, postings: Postings) -> None:
        """Add a row that is newer than all others, or further postings of a known row."""
        slot = len(self.places)
        self.places.append(place)
        if isinstance(place, str):
            self._slots.setdefault(place, []).append(slot)
        for key in postings.keys:
            first = self._first.setdefault(key, slot)
            if first != slot and (not (others := self._others.setdefault(key, [])) or others[-1] != slot):
                others.append(slot)
        self._keys.extend(postings.keys)
        self._ends.append(len(self._keys))
        if postings.simhash is not None:
            self._add_simhash(postings.simhash, slot)

    def _add_simhash(self, simhash: int, slot: int) -> None:
        if len(self._of) == len(self._simhashes):
            self._simhashes = np.concatenate([self._simhashes, np.zeros_like(self._simhashes)])
        self._simhashes[len(self._of)] = simhash
        self._of.append(slot)

    def number(self, key: str, number: int) -> bool:
        """Set the number of a row that has none yet. Return False if the tail has no such row with this key."""
        slots = self._slots.pop(key, ())
        for slot in slots:
            self.places[slot] = number
        return bool(slots)

    def has(self, key: str) -> bool:
        """Return whether the tail has a row with this key that has no number yet."""
        return key in self._slots

    def remove(self, key: str) -> None:
        """Remove the row with this key, if it has no number yet."""
        for slot in self._slots.pop(key, ()):
            self.places[slot] = None
            self.removed += 1

    def known(self, keys: Iterable[int]) -> list[int]:
        """Return those of the keys that have rows in the tail."""
        return [key for key in keys if key in self._first]

    def find(self, key: int, most: int) -> list[Place]:
        """Return the places of the `most` newest rows of a key, oldest first."""
        if (first := self._first.get(key)) is None:
            return []
        found = [p for slot in (first, *self._others.get(key, ())) if (p := self.places[slot]) is not None]
        return found[-most:]

    def near(self, simhash: int, distance: int) -> list[tuple[int, Place]]:
        """Return (distance, place) of all rows within a Hamming distance of a SimHash, oldest first."""
        far = np.bitwise_count(self._simhashes[: len(self._of)] ^ np.uint64(simhash))
        near = (far <= distance).nonzero()[0].tolist()
        return [(int(far[at]), p) for at in near if (p := self.places[self._of[at]]) is not None]

    def rest(self, *, numbered: bool) -> Tail:
        """Return a new tail with all rows that have no number yet and, if `numbered`, all rows that have one."""
        rest = Tail()
        for slot, place in enumerate(self.places):
            if isinstance(place, str) or (numbered and place is not None):
                rest.add(place, self._postings(slot))
        return rest

    def _postings(self, slot: int) -> Postings:
        at = bisect_left(self._of, slot)
        simhash = int(self._simhashes[at]) if at < len(self._of) and self._of[at] == slot else None
        return Postings(self._keys[self._ends[slot] : self._ends[slot + 1]], simhash)

    def columns(self) -> Columns:
        """Return the postings of all rows that have a number."""
        of = np.array([place if isinstance(place, int) else 0 for place in self.places], np.int64)
        ends = np.frombuffer(self._ends, np.int64)
        numbers = of.repeat(ends[1:] - ends[:-1])
        places = of[np.frombuffer(self._of, np.int64)]
        order = np.argsort(places, kind="stable")[np.count_nonzero(places == 0) :]
        keys = np.frombuffer(self._keys, np.uint64)[numbers > 0]
        return Columns(keys, numbers[numbers > 0], self._simhashes[: len(places)][order], places[order])
