"""Find rows by their postings: older rows in read-only tables, the newest rows in dictionaries."""

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
    """An index that finds rows by key or SimHash."""

    def __init__(self) -> None:
        self.tables: list[Table] = []
        """Tables in ascending order of row numbers, without gaps between them."""
        self.tail = Tail()

    @property
    def last(self) -> int:
        """The highest row number that a table covers; 0 if there are no tables."""
        return self.tables[-1].last if self.tables else 0

    def find(self, keys: Mapping[int, int]) -> dict[int, list[Place]]:
        """Return the places of the newest rows of each key, oldest first.

        `keys` maps each key to the maximum number of its rows.
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
        """Return the number of rows that the index has for a key. Deleted rows may be counted too."""
        return len(self.tail.find(key, len(self.tail))) + sum([table.count(key) for table in self.tables])

    def near(self, simhash: int, distance: int, most: int = NEWEST) -> list[tuple[int, Place]]:
        """Return (distance, place) of the `most` rows nearest to a SimHash, oldest first.

        `distance` is the maximum Hamming distance.
        """
        found: list[tuple[int, Place]] = []
        for table in self.tables:
            found += table.near(simhash, distance, most)
        return nearest(found + self.tail.near(simhash, distance), most)

    def add(self, place: Place, postings: Postings) -> None:
        """Add a row that is newer than all rows in the index."""
        if postings.keys or postings.simhash is not None:
            self.tail.add(place, postings)

    def remove(self, key: str) -> None:
        """Remove a row if it has no number yet. Rebuild the tail once most of its rows are removed."""
        self.tail.remove(key)
        if self.tail.removed > max(TAIL, len(self.tail) // 2):
            self.tail = self.tail.rest(numbered=True)

    def seal(self, last: int) -> None:
        """Move all rows that have a number from the tail to a new table. `last` is the highest of these numbers."""
        if last <= self.last:
            return
        self.tables.append(Table.made(self.last + 1, last, self.tail.columns()))
        self.tail = self.tail.rest(numbered=False)

    def put(self, table: Table) -> None:
        """Add a table in place of the tables that cover the same rows."""
        self.tables = [*(each for each in self.tables if each.last < table.first), table,
                       *(each for each in self.tables if each.first > table.last)]  # fmt: skip


def nearest(found: list[tuple[int, Place]], most: int) -> list[tuple[int, Place]]:
    """Return the `most` nearest of these (distance, place) pairs, in their given order.

    Among equal distances, the first pairs are chosen.
    """
    if len(found) <= most:
        return found
    chosen = sorted(range(len(found)), key=lambda at: found[at][0])[:most]
    return [found[at] for at in sorted(chosen)]


def due(tables: Sequence[Table]) -> list[Table]:
    """Return the tables at the end of the list that are to be merged now; an empty list if no merge is due."""
    taken: list[Table] = []
    rows = 0
    for table in reversed(tables):
        if taken and (len(table) > RATIO * rows or rows + len(table) >= MOST):
            break
        taken.insert(0, table)
        rows += len(table)
    return taken if len(taken) > 1 else []
