"""Build a table of an index from stored rows."""

from __future__ import annotations

import sqlite3
from array import array
from collections.abc import Sequence
from contextlib import suppress

import msgpack
import numpy as np

from ...fingerprints.hashes import MULTIPLIER
from ...signature import SIMHASH, Signature
from ..damage import DAMAGE
from ..postings import postings, salt
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
    """Collects postings in growing arrays. Stored fingerprints are copied as bytes, without decoding documents."""

    def __init__(self) -> None:
        self._prints: dict[str, list[bytes]] = {}
        self._of: dict[str, tuple[array[int], array[int]]] = {}
        self._keys, self._numbers = array("Q"), array("q")

    def add(self, number: int, key: str, value: bytes) -> None:
        """Add the postings of a row. Skip a damaged row; the command `verify` reports it."""
        with suppress(*DAMAGE):
            if key.startswith("document/"):
                self._add_document(number, value)
            elif key.startswith("link/"):
                self._extend(number, postings(load(key, value)).keys)

    def _add_document(self, number: int, value: bytes) -> None:
        url, _, _, prints, *_, label, own, sample = msgpack.unpackb(value[4:], unicode_errors="surrogatepass")
        for name, packed in prints.items():
            self._prints.setdefault(name, []).append(packed)
            of, counts = self._of.setdefault(name, (array("q"), array("q")))
            of.append(number)
            counts.append(len(packed) // 8)
        bare = Signature(url, {}, None, 0.0, label=label, own=own, sample=sample)  # type: ignore[arg-type]
        self._extend(number, postings(bare).keys)

    def _extend(self, number: int, keys: Sequence[int]) -> None:
        self._keys.extend(keys)
        self._numbers.extend([number] * len(keys))

    def columns(self) -> Columns:
        """Return the postings of all added rows."""
        keys, numbers = [np.frombuffer(self._keys, np.uint64)], [np.frombuffer(self._numbers, np.int64)]
        simhashes, places = np.zeros(0, np.uint64), np.zeros(0, np.int64)
        for name, packed in self._prints.items():
            values = np.frombuffer(b"".join(packed), "<u8").astype(np.uint64)
            of, counts = (np.frombuffer(each, np.int64) for each in self._of[name])
            if name == SIMHASH:
                simhashes, places = values[np.cumsum(counts) - counts], of
            else:
                keys.append((values ^ np.uint64(salt(name))) * MULTIPLIER)
                numbers.append(np.repeat(of, counts))
        return Columns(np.concatenate(keys), np.concatenate(numbers), simhashes, places)
