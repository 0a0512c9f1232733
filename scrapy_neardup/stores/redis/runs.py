"""Runs on a server: who lives is known by a lease that its process renews; what the dead left is undone."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from threading import Event, Thread
from uuid import uuid4

from ..base import StoreError
from ..runs import Run, new_id
from .damage import sound
from .documents import TOLD, pairs
from .packing import place_of
from .server import Command, Server

LEASE = 10.0  # seconds for which a process is taken for alive that renews nothing
GRACE = 30.0  # seconds after which one who reached the server ends runs of those that did not
LEASE_MS = int(LEASE * 1000)
AT_ONCE = 500  # documents and links that are undone at a time
_PLACES = 1 << 16  # of documents in a segment


class Runs:
    """The runs of one namespace, of which this process has one if it asks for it."""

    def __init__(self, server: Server, *, forgets: bool) -> None:
        self._server = server
        self._forgets = forgets
        self._token = uuid4().hex
        self._stop = Event()
        self._session = self._next = ""
        self._renewing: Thread | None = None
        self._look_at = time.monotonic() + GRACE
        self.number = 0
        self.held_number = 0
        """Of the run that is held to be forgotten."""

    def all(self) -> list[Run]:
        """Return what is known of all runs, oldest first."""
        [rows] = self._server.run([("HGETALL", self._server.key("runs"))])
        return sorted(map(self._loaded, pairs(rows).values()), key=lambda run: run.started)

    def _loaded(self, record: bytes) -> Run:
        try:
            return Run.load(record)
        except ValueError as error:
            raise StoreError(f"store {self._server.name!r} can't be read: {error}; it was left as it is") from error

    def get(self, name: str) -> Run | None:
        [record] = self._server.run([("HGET", self._server.key("runs"), name)])
        return self._loaded(record) if record else None

    def save(self, run: Run) -> None:
        self._server.run([("HSET", self._server.key("runs"), run.id, run.dump())])

    def is_alive(self, name: str) -> bool:
        [number] = self._server.run([("HGET", self._server.key("numbers"), name)])
        return bool(number) and bool(self._server.run([("EXISTS", self._server.key(f"lease.{int(number)}"))])[0])

    # This process's own

    def begin(self, wanted: str) -> Run:
        """Take the run wanted, or a new one, and end the dead. Raise StoreError where there is no free name.

        A run that this process had before is not ended: it goes on.
        """
        name, is_first = wanted or new_id(), not self.number
        for each in (name, *(f"{name}-{n}" for n in range(1, 1000))):
            known = self.get(each)
            if (each == wanted or not known) and (number := self._take(each)):
                self.number = number
                self._write_as(self._session, 0)
                self._renew_on()
                for run in self.all():
                    if run.closed is None and (run.id != each or (is_first and known)):
                        self._end(run.id)
                mine = self.get(each) or Run(each, time.time())
                self.save(replace(mine, closed=None))
                return mine
        raise StoreError(f"store {self._server.name!r}: no free name for a run")

    def _take(self, name: str) -> int:
        """Return the number of a run that nobody holds, 0 of others."""
        self._session, record = self._new_session(), Run(name, time.time()).dump()
        number: int = self._server.ask("begin", name, self._token, LEASE_MS, self._session, record)
        return number

    def _new_session(self) -> str:
        return self._server.key(f"session.{uuid4().hex}")

    def _write_as(self, session: str, done: int) -> None:
        self._server.session = session
        self._server.operations.begin(done)

    def retake(self, documents: int) -> bool:
        """Go on with the run over a new connection; False where that can't be.

        That is where others took it for dead, or the server lost some of what was written: it counts fewer operations
        than it did, or has fewer than that many documents.
        """
        server = self._server
        self._next = self._next or self._new_session()  # the same one until an answer comes
        arguments = self.number, self._token, LEASE_MS, server.session, self._next, server.operations.done, documents
        [done] = server.alone([server.call("retake", *arguments)])
        session, self._next = self._next, ""
        if done >= 0:
            self._write_as(session, done)
        return bool(done >= 0)

    def _renew_on(self) -> None:
        if self._renewing is None:
            self._renewing = Thread(target=self._renew, name="neardup-lease", daemon=True)
            self._renewing.start()

    def _renew(self) -> None:
        while not self._stop.wait(LEASE / 4):
            with suppress(StoreError):  # it is tried again
                self.renew()
                if self.held_number:
                    self._server.alone([self._renewing_of(self.held_number)])

    def renew(self) -> None:
        """Renew the lease; where others took this process for dead, have it begin anew. Raise StoreError."""
        if not self._server.alone([self._renewing_of(self.number)])[0]:
            self._server.distrust()

    def _renewing_of(self, number: int) -> Command:
        return self._server.call("renew", number, self._token, LEASE_MS)

    def close(self, run: Run) -> None:
        """End this process's run with that record. Raise StoreError where others took it for dead."""
        self._stop.set()
        self._server.resume = None
        release = self._server.call("release", self.number, self._token, run.dump())
        try:
            [done] = self._server.run([release])
        except StoreError:  # its answer may be what was lost
            self._server.connection.wait(LEASE)
            [done] = self._server.run([release])
        if not done:
            raise self._lost()

    def _lost(self) -> StoreError:
        return StoreError(
            f"store {self._server.name!r} heard nothing of this run for {LEASE:.0f} seconds, so another one took it for"
            " dead: what it committed is forgotten or kept as NEARDUP_UNCLEAN_RUN says"
        )

    def abandon(self) -> None:
        """Let the lease run out."""
        self._stop.set()

    # One that is ended, to be forgotten

    @contextmanager
    def held(self, name: str) -> Iterator[Run | None]:
        """Keep others from going on with a run, which is ended if it died; yield its record, None where it lives."""
        if (run := self.get(name)) and run.closed is None:
            self._end(name)
        number = self._take(name)
        now = self.get(name)
        is_ended = bool(number and now and now.closed is not None)
        self.held_number = number if is_ended else 0
        try:
            yield now if is_ended else None
        finally:  # where it was not let go of, the lease runs out
            self.held_number = 0

    def check_held(self) -> None:
        """Raise StoreError where others have gone on with the run that is held."""
        if not self._server.run([self._renewing_of(self.held_number)])[0]:
            raise self._gone_on()

    def let_go(self, run: Run) -> None:
        """Hold a run no more, which has that record now. Raise StoreError where others have gone on with it."""
        if not self._server.ask("release", self.held_number, self._token, run.dump()):
            raise self._gone_on()

    def _gone_on(self) -> StoreError:
        return StoreError(f"store {self._server.name!r}: the run was resumed meanwhile, so it is alive; end it first")

    # The dead

    def reached(self) -> None:
        """Give the others time, who may not have reached the server for as long as this process."""
        self._look_at = time.monotonic() + GRACE

    def end_dead(self) -> None:
        """End the runs that died since, now and then: what they kept is held no more, before others drop copies."""
        if time.monotonic() < self._look_at or not self.number:
            return
        self._look_at = time.monotonic() + LEASE
        [holders] = self._server.run([("HKEYS", self._server.key("holders"))])
        others = [number for number in map(int, holders) if number != self.number]
        alive = self._server.run([("EXISTS", self._server.key(f"lease.{number}")) for number in others])
        for number in (number for number, lives in zip(others, alive, strict=True) if not lives):
            [name] = self._server.run([("HGET", self._server.key("ids"), number)])
            if name:
                self._end(name.decode())

    def _end(self, name: str) -> None:
        """End a run that died: what it did since it was opened is forgotten, or holds if it is to be kept."""
        [number] = self._server.run([("HGET", self._server.key("numbers"), name)])
        [token] = self._server.run([("HGET", self._server.key("holders"), number or 0)])
        mine = int(number or 0) == self.number
        if number := self.number if mine else self._take(name):
            now = self.get(name)
            if now and now.closed is None:
                self._undo(now, number, None if mine else token)
            elif not mine:
                self._server.ask("release", number, self._token, "")

    def _undo(self, run: Run, number: int, token: bytes | None) -> None:
        [count] = self._server.run([("LLEN", self._server.key(f"open.{number}"))])
        segments = run.sealed + bool(count) + count // _PLACES
        for left in (*range(count, 0, -AT_ONCE), 0):  # not counted from the end: that would not bear being done twice
            arguments = number, self._token, LEASE_MS, left, AT_ONCE, int(self._forgets)
            numbers = self._server.ask("undo", *arguments)
            if numbers is None:
                return  # it took so long that others went on with the run: what is there now is theirs
            segments = max(segments, self._segments(numbers))
            self._server.queue("drop", numbers, b"", "" if self._forgets else str(number))
        if self._forgets:
            self._drop_news(number, token)
        ended = run.ended(segments, forget=self._forgets)
        if number == self.number:
            self.save(ended)
        else:
            self._server.ask("release", number, self._token, ended.dump())

    def _segments(self, numbers: bytes) -> int:
        """Return how many segments a run has with these documents: of one that was imported they may be any."""
        rows = self._server.ask("fetch", numbers, b"\1" * (len(numbers) // 4))
        with sound(self._server.name):
            return max((place_of(row[TOLD.size :])[1] + 1 for row in rows if row), default=0)

    def _drop_news(self, number: int, token: bytes | None) -> None:
        """Forget the evidence that a run found under that token, None for any but this process's."""
        for name, fields in news(self._server):
            theirs = int(fields[b"run"]) == number and fields[b"token"] != self.token
            if theirs and (token is None or fields[b"token"] == token):
                self._server.run([("XDEL", self._server.key("news"), name)])

    @property
    def token(self) -> bytes:
        """What tells this opening of the run from others."""
        return self._token.encode()


def news(server: Server, after: str = "-") -> Iterator[tuple[bytes, dict[bytes, bytes]]]:
    """Yield what was learned of hosts after a point, each with its name."""
    start: str | bytes = after if after == "-" else f"({after}"
    while rows := server.run([("XRANGE", server.key("news"), start, "+", "COUNT", AT_ONCE)])[0]:
        for name, fields in rows:
            yield name, dict(pairs(fields))
        start = b"(" + name
