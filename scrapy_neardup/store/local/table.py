"""A finished part of an index: sorted arrays of the postings of a range of rows, in memory or in a mapped file."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt

from ...index.near import NearTable
from ...index.packed import Array, PackedTable, entries, merge
from ..damage import DAMAGE
from .columns import read_columns, write_columns

FORMAT = 1
_KEYS = ("starts", "tags", "low", "high")
_NEAR = ("starts", "next", "numbers")


class Table:
    """The postings of rows `first` to `last`."""

    def __init__(self, first: int, last: int, columns: Mapping[str, Array], path: Path | None = None) -> None:
        self.first = first
        self.last = last
        self.path = path
        self._keys = PackedTable({name: columns[f"keys.{name}"] for name in _KEYS})
        self._places = columns["places"]
        """Of each SimHash the row, counted from `first`."""
        self._near = NearTable(columns["simhashes"], {name: columns[f"near.{name}"] for name in _NEAR})

    def __len__(self) -> int:
        """How many rows it covers, be they there or not."""
        return self.last - self.first + 1

    @classmethod
    def made(
        cls,
        first: int,
        last: int,
        keys: npt.NDArray[np.uint64],
        numbers: npt.NDArray[np.int64],
        simhashes: npt.NDArray[np.uint64],
        places: npt.NDArray[np.int64],
    ) -> Table:
        """Make one of the keys of rows, each with its row's number, and of SimHashes, ascending by the same."""
        packed = entries(keys, (numbers - first).astype(np.uint64))
        table = PackedTable.merged(len(packed), [packed])
        return cls(first, last, _columns(table, simhashes, (places - first).astype(np.uint32)))

    @classmethod
    def merged(cls, tables: Sequence[Table]) -> Table:
        """Make one of several that follow one another."""
        first = tables[0].first
        shifts = [table.first - first for table in tables]
        keys = merge([(table._keys, shift) for table, shift in zip(tables, shifts, strict=True)])
        simhashes = np.concatenate([table._near.values for table in tables])
        places = [table._places + np.uint32(shift) for table, shift in zip(tables, shifts, strict=True)]
        return cls(first, tables[-1].last, _columns(keys, simhashes, np.concatenate(places)))

    @classmethod
    def read(cls, path: Path, *, check: bool = False) -> Table:
        """Map a file; `check` reads all of it. Raise ValueError, OSError where it is not of this format, or damaged."""
        columns, about = read_columns(path, check=check)
        if about.get("format") != FORMAT:
            raise ValueError(f"{path.name} is of another format")
        try:
            return cls(int(about["first"]), int(about["last"]), columns, path)
        except DAMAGE as error:
            raise ValueError(f"{path.name} is damaged: {error!r}") from error

    def write(self, path: Path) -> Table:
        """Write it to a file, and return that mapped."""
        columns = {f"keys.{name}": column for name, column in self._keys.columns.items()}
        columns |= {f"near.{name}": column for name, column in self._near.columns.items()}
        columns |= {"simhashes": self._near.values, "places": self._places}
        write_columns(path, columns, {"format": FORMAT, "first": self.first, "last": self.last})
        return Table.read(path)

    def find(self, keys: Iterable[int], most: int) -> Iterator[tuple[int, list[int]]]:
        """Yield each key that leads anywhere with the rows, oldest first; of more than `most` the newest."""
        first = self.first
        for key, numbers in self._keys.find(keys, most):
            yield key, [first + number for number in numbers]

    def count(self, key: int) -> int:
        """Return how many rows a key leads to."""
        return self._keys.count(key)

    def near(self, simhash: int, distance: int, most: int) -> list[tuple[int, int]]:
        """Return the rows within a distance, each after its distance; of more than `most` the nearest."""
        found = self._near.find(simhash, distance, most)
        return [(far, self.first + int(self._places[number])) for number, far in found.items()]


def _columns(keys: PackedTable, simhashes: npt.NDArray[np.uint64], places: npt.NDArray[np.uint32]) -> dict[str, Array]:
    near = NearTable(simhashes)
    named = {f"keys.{name}": column for name, column in keys.columns.items()}
    named |= {f"near.{name}": column for name, column in near.columns.items()}
    return {**named, "simhashes": simhashes, "places": places}
