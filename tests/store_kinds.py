"""Stores that outlive their process: one interface to fill, kill and inspect a store in a file or on a server."""

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
"""What the URLs of `signature` begin with."""
ROOT = "{neardup::5}"
"""What a server's keys of the namespace "" begin with."""

KILLED = """
import os, sys
from store_kinds import Place, commit, signature
store = Place(sys.argv[1]).open()
commit(store, *map(signature, sys.argv[2:]))
print(store.run, flush=True)
os.kill(os.getpid(), 9)
"""


class Place:
    """Where a test has its store: a file, or a database of a server."""

    def __init__(self, address: str) -> None:
        self.address = address
        self.is_on_server = is_server(address)

    def tell(self, *command: str) -> Any:
        """Have the server do a command, over a connection of its own."""
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
        """Commit documents of these names in a run that ends well; return its id."""
        with self.opened(**options) as store:
            commit(store, *map(signature, documents))
            return store.run

    def held(self, name: str = "", **options: Any) -> list[str]:
        """Return the names of what the next run holds."""
        with self.opened(name, **options) as store:
            return held(store)

    # Kills

    def die(self, store: Store) -> None:
        """End a run as a kill does: nothing more is written, and nobody takes it for alive."""
        store.backend.close()
        self.let_lapse(store.run)

    def fill_and_die(self, *documents: str, **options: Any) -> str:
        """Commit documents of these names in a run that dies; return its id."""
        store = self.open(**options)
        commit(store, *map(signature, documents))
        self.die(store)
        return store.run

    def fill_and_kill(self, *documents: str) -> str:
        """Commit documents of these names in a process that is killed; return the id of its run."""
        killed = python(KILLED, self.address, *documents)
        assert killed.returncode == -9, killed.stderr
        self.let_lapse(run := killed.stdout.strip())
        return run

    def let_lapse(self, run: str) -> None:
        """Have the lease of a run be out; the locks of files end with their process."""
        if self.is_on_server:
            self.tell("DEL", f"{ROOT}:lease.".encode() + code(run))

    # What is there

    def is_whole(self) -> bool:
        from scrapy_neardup.store.verification import verify

        return not verify(self.address).findings

    def content(self) -> dict[Any, bytes]:
        """Return all keys with their values, whatever they mean."""
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
    """Keep a document for good, with its own URL and those of mirrors; `flush` is left to the store."""
    store.add(each)
    store.commit(each)
    for url in (each.url, *mirrors):
        if url:
            store.record(link(url, each, is_copy=url != each.url))


def commit(store: Store, *given: Signature) -> None:
    """Keep documents for good, each with its own URL."""
    for each in given:
        put(store, each)
    store.flush()


def numbered(number: int) -> Signature:
    """Return one that is found by fingerprints of its own, with a title and facts of its own."""
    name = str(number)
    return signature(name, number + 1000, number << 30, title=f"Page {name}", facts=named(name))


def fill_numbered(place: Place, first: int, count: int, **options: Any) -> str:
    """Commit documents of these numbers, each under fingerprints of its own and with a mirror; return the run."""
    with place.opened(**options) as store:
        for number in range(first, first + count):
            put(store, numbered(number), f"http://m.example/{number}")
        return store.run


def held(store: Store) -> list[str]:
    return sorted(names(store.signatures()))


def wait_for(store: Store, *expected: str) -> None:
    """Wait until a store shows that documents of these names are held."""

    def shows() -> bool:
        store.refresh()
        return held(store) == list(expected)

    until(shows)
