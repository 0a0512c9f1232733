"""Rows of an export into a store on a server, a chunk at a time.

A kill leaves the chunks that are in. To import the same rows again is harmless: what the store has, or has forgotten,
it does not take again, and of two links of one URL the one that was seen later holds.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import closing
from itertools import islice
from math import inf

import numpy as np

from ...detectors import SimHash
from ...signature import Key
from ..base import StoreError
from ..importing import Imported, merged, split_runs
from ..interchange import Content, End, Found, Led, Met, Record, Stored, read_head, read_row
from ..layered import digest
from .asking import Question
from .documents import pairs
from .packing import hash_rows, pack_document, pack_link, seen_of
from .server import Command, Server
from .store import RedisStore

CHUNK = 1000


def load(address: str, namespace: str, rows: Iterable[Record], *, chunk: int = CHUNK) -> Imported:
    """Take the rows of an export into a store, which need not exist.

    Raise ValueError for rows that are none, or were cut off; StoreError where the store does not fit.
    """
    rows = iter(rows)
    head = read_head(next(rows, {}))
    runs, content = split_runs(map(read_row, rows))
    with closing(RedisStore(address, (), namespace=namespace, run=None)) as store:
        try:
            store.agree_on(head.schemes, head.own)
        except StoreError as error:
            raise StoreError(str(error).replace("does not fit", "does not fit the export", 1)) from error
        _commit_left(store.server)
        for run in runs:
            number = store.server.ask("number", run.id, run.dump())
            if said := merged(run, store.runs_known.get(run.id), store.is_alive):
                store.runs_known.save(said)
                if said.closed is not None:  # what came of it while it was open holds now
                    store.server.run([("DEL", store.server.key(f"open.{number}"))])
        taking, some = _Taking(store), list[Content]()
        for some in iter(lambda: list(islice(content, chunk)), []):
            taking.take(some)
    if not some or not isinstance(some[-1], End):
        raise ValueError("it is cut off: there is no row of type 'end'; what came before was taken in")
    return Imported(taking.documents, taking.links, taking.known)


def _commit_left(server: Server) -> None:
    """Commit what an import had entered when it was killed, as it could be left before version 0.1.0."""
    [pending] = server.run([("HGETALL", server.key("pending"))])
    if left := [number for number, run in pairs(pending).items() if run == b"0"]:
        server.run([("HDEL", server.key("pending"), *left)])


class _Taking:
    """Puts rows into a store."""

    def __init__(self, store: RedisStore) -> None:
        self.documents = self.links = self.known = 0
        self._store = store
        self._numbers: dict[Key, int] = {key: number for number, key in store.documents.places()}
        self._runs = {run.id: run for run in store.runs()}
        self._numbered = {name: number for number, name in store.documents.runs.items()}
        self._trials, self._met = set(store.learned.all()), dict(store.hosts.met())

    def take(self, chunk: Iterable[Content]) -> None:
        """Take in some rows: documents before links."""
        some = list(chunk)
        self._take_documents([each for each in some if isinstance(each, Stored)])
        self._take_links([each for each in some if isinstance(each, Led)])
        for each in some:
            match each:
                case Found(run, trial) if (self._run(run), trial) not in self._trials:
                    self._store.learned.put(self._run(run), [trial], {})
                case Met(name, when) if when < self._met.get(name, inf):
                    self._store.learned.put(0, [], {name: when})
        self._store.server.flush(wait=True)

    def _run(self, name: str) -> int:
        """Return the number of a run, be it one of which there is no record."""
        if name not in self._numbered:
            self._numbered[name] = self._store.server.ask("number", name)
            self._store.documents.learn_runs()
        return self._numbered[name]

    def _to_undo(self, name: str, segment: int) -> int:
        """Return the number of the run that a segment is to be forgotten with, 0 where it holds for good."""
        run = self._runs.get(name)
        return self._run(name) if run and run.closed is None and segment >= run.sealed else 0

    def _take_documents(self, some: list[Stored]) -> None:
        new = [stored for stored in some if not self._is_known(stored.signature.key or ("", 0, 0))]
        self.known += len(some) - len(new)
        answers = self._store.server.run([self._entry(stored) for stored in new])
        for stored, (number, *_) in zip(new, answers, strict=True):
            self._numbers[stored.signature.key or ("", 0, 0)] = number
        self.documents += len(new)

    def _is_known(self, key: Key) -> bool:
        run = self._runs.get(key[0])
        return key in self._numbers or (run is not None and run.has_forgotten(key[1]))

    def _entry(self, stored: Stored) -> Command:
        signature, keys = stored
        run, segment, place = signature.key or ("", 0, 0)
        simhash = signature.fingerprints.get(SimHash.name, ())
        record = pack_document(signature, (self._run(run), segment, place), self._store.asking.whole)
        near = simhash[0].to_bytes(8, "little") if simhash else b""
        hashes = np.array(keys, np.uint64)
        question = Question((), hashes, hash_rows(hashes), bytes(len(keys)), hashes[:0], ())
        entry = near, record, self._to_undo(run, segment)
        return self._store.claims.command("import", 0, question, entry)

    def _take_links(self, some: list[Led]) -> None:
        server = self._store.server
        held = self._store.documents.fetch(self._numbers[led.document] for led in some if led.document in self._numbers)
        urls = b"".join(digest(led.link.url).to_bytes(8, "little") for led in some)
        known = server.ask("resolve", urls)[::2]
        seen: dict[int, float] = {}
        for led, packed in zip(some, known, strict=True):
            link, key, (run, segment) = led
            link.digest = digest(link.url)
            number = self._numbers.get(key) if key else None
            link.signature = held.get(number) if number is not None else None
            before = seen.get(link.digest, seen_of(packed) if packed else -inf)
            if (key and not link.signature) or before >= link.seen:
                continue
            seen[link.digest] = link.seen
            self.links += 1
            url = link.digest.to_bytes(8, "little")
            packed_link = pack_link(link, number, self._run(run), segment)
            server.queue("link", url, packed_link, str(self._to_undo(run, segment)))
        server.run([("DEL", server.key("open.0"))])
