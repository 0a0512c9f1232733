"""Fill, kill and inspect a store by one interface, whether it is in a file or on a server."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Iterable, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import redis
from helpers import detectors, link, named, names, python, signature, until
from redis_server import server

from scrapy_neardup import Deduplicator
from scrapy_neardup.detectors import Detector
from scrapy_neardup.signature import Signature
from scrapy_neardup.store import Store, is_server, open_store
from scrapy_neardup.store.redis_server import code
from scrapy_neardup.store.transfer import Imported, export_rows, import_rows

URL = "http://site.example/"
"""The beginning of the URLs of `signature`."""
ROOT = "{neardup::5}"
"""The beginning of a server's keys in the namespace ""."""

KILLED = """
import os, sys
from store_kinds import Place, commit, signature
store = Place(sys.argv[1]).open()
commit(store, *map(signature, sys.argv[2:]))
print(store.run, flush=True)
os.kill(os.getpid(), 9)
"""


class Place:
    """The place of a test's store: a file, or a database of a server."""

    def __init__(self, address: str) -> None:
        self.address = address
        self.is_on_server = is_server(address)

    def tell(self, *command: str) -> Any:
        """Send a command to the server over a new connection, and return the answer."""
        with closing(redis.Redis.from_url(self.address)) as client:
            return client.execute_command(*command)

    def open(self, name: str = "", made_with: Sequence[Detector] | None = None, **options: Any) -> Store:
        made_with = detectors() if made_with is None else made_with
        return open_store(self.address, made_with, namespace=name, **options)

    def opened(self, name: str = "", made_with: Sequence[Detector] | None = None, **options: Any) -> closing[Store]:
        return closing(self.open(name, made_with, **options))

    def dedup(self, **settings: Any) -> Deduplicator:
        return Deduplicator.open(self.address, **settings)

    def fill(self, *documents: str, **options: Any) -> str:
        """Commit documents with these names in a run that is closed. Return the id of the run."""
        with self.opened(**options) as store:
            commit(store, *map(signature, documents))
            return store.run

    def held(self, name: str = "", **options: Any) -> list[str]:
        """Open a new run, and return the names of the held documents."""
        with self.opened(name, **options) as store:
            return held(store)

    # Kills

    def die(self, store: Store) -> None:
        """End a run as a kill does: it is not closed, nothing more is written, and its lease or lock is gone."""
        store.backend.close()
        self.let_lapse(store.run)

    def fill_and_die(self, *documents: str, **options: Any) -> str:
        """Commit documents with these names in a run that dies, see `die`. Return the id of the run."""
        store = self.open(**options)
        commit(store, *map(signature, documents))
        self.die(store)
        return store.run

    def fill_and_kill(self, *documents: str) -> str:
        """Commit documents with these names in another process, which is then killed. Return the id of its run."""
        killed = python(KILLED, self.address, *documents)
        assert killed.returncode == -9, killed.stderr
        self.let_lapse(run := killed.stdout.strip())
        return run

    def let_lapse(self, run: str) -> None:
        """End the lease of a run on a server, as if its time were over. The lock of a file ends with its process."""
        if self.is_on_server:
            self.tell("DEL", f"{ROOT}:lease.".encode() + code(run))

    # What is there

    def is_whole(self) -> bool:
        from scrapy_neardup.store.verification import verify

        return not verify(self.address).findings

    def content(self) -> dict[Any, bytes]:
        """Return the raw values of all keys or rows of the store."""
        if self.is_on_server:
            return {key: self.tell("DUMP", key) for key in self.tell("KEYS", "*")}
        with closing(sqlite3.connect(self.address)) as connection:
            return dict(connection.execute("SELECT key, value FROM neardup"))

    def exported(self, name: str = "") -> list[dict[str, Any]]:
        with closing(export_rows(self.address, name)) as rows:
            return [json.loads(json.dumps(row)) for row in rows]

    def sorted_rows(self) -> list[str]:
        return sorted(json.dumps(row, sort_keys=True) for row in self.exported())

    def load(self, rows: Iterable[dict[str, Any]], name: str = "", **options: Any) -> Imported:
        return import_rows(self.address, name, rows, **options)


def on_disk(folder: Path, name: str = "store") -> Place:
    return Place(str(folder / f"{name}.sqlite"))


def on_server(folder: Path, name: str = "store") -> Place:
    place = Place(f"{server().address}/{DATABASES[name]}")
    place.tell("FLUSHDB")  # what earlier tests left there
    return place


DATABASES = {"store": 1, "copy": 2}
KINDS: dict[str, Callable[..., Place]] = {"disk": on_disk, "server": on_server}


def put(store: Store, each: Signature, *mirrors: str) -> None:
    """Add and commit a document, and record visits of its own URL and of mirrors. Do not flush the store."""
    store.add(each)
    store.commit(each)
    for url in (each.url, *mirrors):
        if url:
            store.record(link(url, each, is_copy=url != each.url))


def commit(store: Store, *given: Signature) -> None:
    """Add and commit documents, each with a visit of its own URL, and flush the store."""
    for each in given:
        put(store, each)
    store.flush()


def numbered(number: int) -> Signature:
    """Return the signature of the document with a number: no other number has its fingerprints, title or facts."""
    name = str(number)
    return signature(name, number + 1000, number << 30, title=f"Page {name}", facts=named(name))


def fill_numbered(place: Place, first: int, count: int, **options: Any) -> str:
    """Commit `count` documents from number `first` on, see `numbered`, each with a copy on a mirror. Return the run."""
    with place.opened(**options) as store:
        for number in range(first, first + count):
            put(store, numbered(number), f"http://m.example/{number}")
        return store.run


def held(store: Store) -> list[str]:
    return sorted(names(store.signatures()))


def wait_for(store: Store, *expected: str) -> None:
    """Refresh a store until it holds the documents with these names, and no others."""

    def shows() -> bool:
        store.refresh()
        return held(store) == list(expected)

    until(shows)
