"""Build a table of an index from stored rows."""

from __future__ import annotations

import sqlite3
from array import array
from contextlib import suppress

import numpy as np

from ..damage import DAMAGE
from ..postings import postings
from ..records import load
from .table import Columns, Table


def table_of_rows(db: sqlite3.Connection, name: str, first: int, last: int) -> Table:
    """Build a table from the stored rows with numbers `first` to `last`. Some of these rows may be deleted."""
    builder = _Builder()
    query = f'SELECT number, key, value FROM "{name}" WHERE number BETWEEN ? AND ? ORDER BY number'
    for number, key, value in db.execute(query, (first, last)):
        builder.add(number, key, value)
    return Table.made(first, last, builder.columns())


class _Builder:
    """Collects postings in growing arrays."""

    def __init__(self) -> None:
        self._keys, self._numbers = array("Q"), array("q")
        self._simhashes, self._places = array("Q"), array("q")

    def add(self, number: int, key: str, value: bytes) -> None:
        """Add the postings of a row. Skip a damaged row; the command `verify` reports it."""
        with suppress(*DAMAGE):
            if key.startswith(("document/", "link/")):
                keys, simhash = postings(load(key, value))
                self._keys.extend(keys)
                self._numbers.extend([number] * len(keys))
                if simhash is not None:
                    self._simhashes.append(simhash)
                    self._places.append(number)

    def columns(self) -> Columns:
        """Return the postings of all added rows."""
        return Columns(
            np.frombuffer(self._keys, np.uint64),
            np.frombuffer(self._numbers, np.int64),
            np.frombuffer(self._simhashes, np.uint64),
            np.frombuffer(self._places, np.int64),
        )
