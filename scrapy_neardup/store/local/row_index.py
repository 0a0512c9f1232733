"""An index from postings to rows, with read-only tables for older rows and RAM for the newest."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ...index.key_table import MOST
from ...index.kinds import NEWEST
from ..interface import Postings
from .table import Table
from .tail import Place, Tail

TAIL = 1024  # the number of rows in RAM after which they become a table, which takes some milliseconds
RATIO = 8  # a table is merged with an earlier one up to this many times as large


class Index:
    """An index from postings to rows."""

    def __init__(self) -> None:
        self.tables: list[Table] = []
        """Tables in ascending order of their rows, without gaps."""
        self.tail = Tail()

    @property
    def last(self) -> int:
        """The highest row number in a table; 0 without tables."""
        return self.tables[-1].last if self.tables else 0

    def find(self, keys: Mapping[int, int]) -> dict[int, list[Place]]:
        """Return the places of rows by key, oldest first.

        `keys` has the maximum number of rows for each key. The newest rows are returned.
        """
        found: dict[int, list[Place]] = {}
        left = dict(keys)
        for key in self.tail.known(keys):
            if places := self.tail.find(key, keys[key]):
                found[key] = places
                left[key] -= len(places)
        for table in reversed(self.tables):
            if not (asked := [key for key, most in left.items() if most > 0]):
                break
            for key, numbers in table.find(asked, max(left.values())):
                numbers = numbers[-left[key] :]
                found[key] = [*numbers, *found.get(key, ())]
                left[key] -= len(numbers)
        return found

    def count(self, key: int) -> int:
        """Return the number of postings of a key. Postings of deleted rows may be included."""
        return len(self.tail.find(key, len(self.tail))) + sum([table.count(key) for table in self.tables])

    def near(self, simhash: int, distance: int, most: int = NEWEST) -> list[tuple[int, Place]]:
        """Return (distance, place) of the `most` nearest rows within a Hamming distance, oldest first."""
        found: list[tuple[int, Place]] = []
        for table in self.tables:
            found += table.near(simhash, distance, most)
        return nearest(found + self.tail.near(simhash, distance), most)

    def add(self, place: Place, postings: Postings) -> None:
        """Add the newest row."""
        if postings.keys or postings.simhash is not None:
            self.tail.add(place, postings)

    def remove(self, key: str) -> None:
        """Remove a row without a number. Rebuild the tail if most of its rows are removed."""
        self.tail.remove(key)
        if self.tail.removed > max(TAIL, len(self.tail) // 2):
            self.tail = self.tail.rest(numbered=True)

    def seal(self, last: int) -> None:
        """Move the numbered rows of the tail to a table. `last` is their highest number."""
        if last <= self.last:
            return
        self.tables.append(Table.made(self.last + 1, last, self.tail.columns()))
        self.tail = self.tail.rest(numbered=False)

    def put(self, table: Table) -> None:
        """Replace the tables of the same rows by one table."""
        self.tables = [*(each for each in self.tables if each.last < table.first), table,
                       *(each for each in self.tables if each.first > table.last)]  # fmt: skip


def nearest(found: list[tuple[int, Place]], most: int) -> list[tuple[int, Place]]:
    """Return the `most` nearest places in their given order. Ties go to the first."""
    if len(found) <= most:
        return found
    chosen = sorted(range(len(found)), key=lambda at: found[at][0])[:most]
    return [found[at] for at in sorted(chosen)]


def due(tables: Sequence[Table]) -> list[Table]:
    """Return the last tables that are due to be merged, or an empty list."""
    taken: list[Table] = []
    rows = 0
    for table in reversed(tables):
        if taken and (len(table) > RATIO * rows or rows + len(table) >= MOST):
            break
        taken.insert(0, table)
        rows += len(table)
    return taken if len(taken) > 1 else []
