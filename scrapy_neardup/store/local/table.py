"""Look up the sorted postings of a range of rows in a read-only table, in memory or in a file."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from ...index.key_table import Array, PackedTable
from ...index.near import NearTable
from ..damage import DAMAGE
from .arrays import read_arrays, write_arrays

FORMAT = 2
_KEYS = ("starts", "tags", "low", "high")
_NEAR = ("starts", "next", "numbers")
ARRAYS = 3 + len(_KEYS) + len(_NEAR)  # the number of arrays in a file


class Columns(NamedTuple):
    """The postings of rows, as NumPy columns."""

    keys: npt.NDArray[np.uint64]
    numbers: npt.NDArray[np.int64]
    """The row number of each key."""
    simhashes: npt.NDArray[np.uint64]
    places: npt.NDArray[np.int64]
    """The row number of each SimHash, ascending."""


class Table:
    """The postings of the rows with numbers `first` to `last`."""

    def __init__(
        self, first: int, last: int, keys: PackedTable, near: NearTable, places: Array, path: Path | None = None
    ) -> None:
        self.first = first
        self.last = last
        self.path = path
        self._keys = keys
        self._near = near
        self._places = places
        """The row number of each SimHash, relative to `first`."""

    def __len__(self) -> int:
        """Return the number of rows, including deleted ones."""
        return self.last - self.first + 1

    @classmethod
    def made(cls, first: int, last: int, columns: Columns) -> Table:
        """Build a table of the rows `first` to `last` from their postings."""
        keys = PackedTable.made(columns.keys, (columns.numbers - first).astype(np.uint64))
        places = (columns.places - first).astype(np.uint32)
        return cls(first, last, keys, NearTable(columns.simhashes), places)

    @classmethod
    def merged(cls, tables: Sequence[Table]) -> Table:
        """Merge tables with adjacent ranges of rows into one table."""
        first = tables[0].first
        shifts = [table.first - first for table in tables]
        keys = PackedTable.merged([(table._keys, shift) for table, shift in zip(tables, shifts, strict=True)])
        near = NearTable(np.concatenate([table._near.values for table in tables]))
        places = [table._places + np.uint32(shift) for table, shift in zip(tables, shifts, strict=True)]
        return cls(first, tables[-1].last, keys, near, np.concatenate(places))

    @classmethod
    def read(cls, path: Path, *, check: bool = False) -> Table:
        """Memory-map the table in a file. With `check`, compare its checksums.

        Raise ValueError for damage or another format, and OSError if the file can't be opened.
        """
        try:
            head, values, places, *arrays = read_arrays(path, ARRAYS, check=check)
            version, first, last = head.tolist()
            if version != FORMAT:
                raise ValueError(f"its format is {version}")
            keys = PackedTable(dict(zip(_KEYS, arrays, strict=False)))
            near = NearTable(values, dict(zip(_NEAR, arrays[len(_KEYS) :], strict=True)))
            return cls(first, last, keys, near, places, path)
        except DAMAGE as error:
            raise ValueError(f"{path.name} is damaged: {' '.join(str(error).split())}") from error

    def write(self, path: Path) -> Table:
        """Write the table to a file. Return a table that is memory-mapped from that file."""
        columns = [self._keys.columns[name] for name in _KEYS] + [self._near.columns[name] for name in _NEAR]
        head = np.array([FORMAT, self.first, self.last], np.int64)
        write_arrays(path, [head, self._near.values, self._places, *columns])
        return Table.read(path)

    def find(self, keys: Iterable[int], most: int) -> Iterator[tuple[int, list[int]]]:
        """Yield each key that is found, with the row numbers of its `most` newest rows, oldest first."""
        first = self.first
        for key, numbers in self._keys.find(keys, most):
            yield key, [first + number for number in numbers]

    def count(self, key: int) -> int:
        """Return the number of rows that the table has for a key."""
        return self._keys.count(key)

    def near(self, simhash: int, distance: int, most: int) -> list[tuple[int, int]]:
        """Return (distance, row number) of the `most` rows nearest to a SimHash.

        `distance` is the maximum Hamming distance.
        """
        found = self._near.find(simhash, distance, most)
        return [(far, self.first + int(self._places[number])) for number, far in found.items()]
