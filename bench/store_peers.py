"""The peers of bench/store.py: each holds the documents that the store holds, with what it has for fingerprints."""

from __future__ import annotations

import logging
import resource
import sqlite3
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from store_made import NEW, OF_FORM, signature
from store_ours import QUERIES, Result, Times, grown, memory, summary, timed

FEW = 50  # look-ups of one form, which may take seconds
MOST_RAM = 12 << 30


class DataSketch:
    """MinHash-LSH in RAM, 128 minima; of a near-copy a quarter differs; those of one form share three of 25 bands."""

    def __init__(self, folder: Path) -> None:
        from datasketch import MinHash, MinHashLSH

        self._minhash, self._index = MinHash, MinHashLSH(threshold=0.5, num_perm=128)

    def prepared(self, label: int, changed: bool = False) -> Any:
        values = np.random.default_rng(label).integers(0, 2**32, 128, dtype=np.uint64)
        if label >= OF_FORM:
            values[: 3 * self._index.r] = 1
        if changed:
            values[::4] = np.random.default_rng(label + NEW).integers(0, 2**32, 32, dtype=np.uint64)
        return self._minhash(128, hashvalues=values, scheme="legacy")

    def add(self, number: int, each: Any) -> None:
        self._index.insert(number, each, check_duplication=False)

    def find(self, each: Any) -> Any:
        return self._index.query(each)


class SimhashPackage:
    """The index of the simhash package in RAM, at distance 3."""

    def __init__(self, folder: Path) -> None:
        from simhash import Simhash, SimhashIndex

        logging.disable()  # of each large bucket it tells
        self._simhash, self._index = Simhash, SimhashIndex([], k=3)

    def prepared(self, label: int, changed: bool = False) -> Any:
        return self._simhash(signature(label, 0, 2 * changed).fingerprints["simhash"][0])

    def add(self, number: int, each: Any) -> None:
        self._index.add(str(number), each)

    def find(self, each: Any) -> Any:
        return self._index.get_near_dups(each)


class PlainSqlite:
    """A table of keys, 24 a document, and one of sketches; a commit for each thousand. No SimHashes, no URLs."""

    def __init__(self, folder: Path) -> None:
        self._db = sqlite3.connect(folder / "plain.sqlite", isolation_level=None)
        self._db.execute("PRAGMA journal_mode=WAL")
        self._db.execute("CREATE TABLE keys (key INTEGER, document INTEGER, PRIMARY KEY (key, document)) WITHOUT ROWID")
        self._db.execute("CREATE TABLE documents (number INTEGER PRIMARY KEY, sketch BLOB)")
        self._db.execute("BEGIN")

    def prepared(self, label: int, changed: bool = False) -> Any:
        each = signature(label, 0, 2 * changed)
        keys = [key - 2**63 for name in ("exact", "imatch", "shingle") for key in each.fingerprints[name]]
        return keys, each.sketch.codes

    def add(self, number: int, each: Any) -> None:
        self._db.executemany("INSERT OR IGNORE INTO keys VALUES (?, ?)", [(key, number) for key in each[0]])
        self._db.execute("INSERT INTO documents VALUES (?, ?)", (number, each[1]))
        if number % 1000 == 0:
            self._db.execute("COMMIT")
            self._db.execute("BEGIN")

    def find(self, each: Any) -> Any:
        marks = ",".join("?" * len(each[0]))
        found = f"SELECT document FROM keys WHERE key IN ({marks}) LIMIT 50"
        return self._db.execute(f"SELECT sketch FROM documents WHERE number IN ({found})", each[0]).fetchall()


PEERS: dict[str, Callable[[Path], Any]] = {
    "datasketch MinHashLSH(.5, 128)": DataSketch,
    "simhash SimhashIndex(k=3)": SimhashPackage,
    "plain SQLite table": PlainSqlite,
}


def measure_peer(make: Callable[[Path], Any], folder: Path, labels: list[int]) -> Result:
    """Fill a peer, and ask it for the same as the store; it may take so much RAM and no more."""
    resource.setrlimit(resource.RLIMIT_AS, (MOST_RAM, MOST_RAM))
    peer = make(folder)
    before = memory()
    inserts: Times = []
    for number, label in enumerate(labels):
        inserts += timed(partial(peer.add, number), [peer.prepared(label)])
    own, mapped = grown(before)
    result: Result = {"held": len(labels), "insertion": summary(inserts), "ram": own, "mapped": mapped}
    result |= {"disk": sum(file.stat().st_size for file in folder.iterdir())}
    some = [label for label in labels[: 2 * QUERIES] if label < OF_FORM][:QUERIES]
    asked = {
        "new": [peer.prepared(2 * NEW + n) for n in range(QUERIES)],
        "near-copy": list(map(partial(peer.prepared, changed=True), some)),
        "of one form": [peer.prepared(OF_FORM + NEW + n) for n in range(FEW)],
    }
    return result | {kind: summary(timed(peer.find, each)) for kind, each in asked.items()}
