"""Send commands and queued writes for one namespace of a server, and renew the leases of runs."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from threading import Lock
from typing import Any
from urllib.parse import quote
from uuid import uuid4

import msgpack

from ..interface import StoreError
from ..records import DAMAGE
from .address import named
from .clients import connecting
from .connection import Argument, Command, Connection, info_fields
from .encoding import code
from .failures import ERRORS, TIMEOUT, explained
from .scripts import SCRIPTS
from .writes import Writes

VERSION = 3  # the version of the layout of keys and values
LEASE = 10.0  # seconds without renewal after which a process counts as dead
_ELSEWHERE, _KEPT, _FREE = range(3)  # the results of scripts/run.lua
logger = logging.getLogger(__name__)


class Server:
    """One namespace of a server, with the runs that this process holds there."""

    def __init__(self, address: str, namespace: str) -> None:
        self.name = named(address)
        # The braces keep all keys on one node of a cluster.
        self.root = f"{{neardup:{quote(namespace, safe='')}:{VERSION}}}"
        self.connection = Connection(connecting(address, self.root))
        self.writes = Writes()
        self.runs: set[str] = set()
        self._id = uuid4().hex
        self._token = b""
        self._process = ""
        self._resumed_on = 0
        self._lock = Lock()

    def key(self, suffix: str) -> str:
        """Return the Redis key with this suffix in the namespace."""
        return f"{self.root}:{suffix}"

    def script(self, name: str, *arguments: Argument) -> Command:
        """Return the command that runs a Lua script."""
        return ("EVALSHA", SCRIPTS[name].sha, 1, self.root, *arguments)

    def run(self, commands: Sequence[Command], *, checks: bool = True) -> list[Any]:
        """Send the queued writes, then these commands. Return the answers to the commands.

        Raise StoreError if the server fails or refuses a command. With `checks=False`, the answer to a refused command
        is the error.
        """
        with self._lock, self.store_errors():
            answers = self._tried(commands)
            return _checked(answers) if checks else answers

    def _tried(self, commands: Sequence[Command], *, again: bool = True) -> list[Any]:
        try:
            return self._sent(commands)
        except ERRORS as error:
            if again and not isinstance(error, TIMEOUT):
                return self._tried(commands, again=False)
            self.connection.leave(error)
            raise

    def _sent(self, commands: Sequence[Command]) -> list[Any]:
        self._resume()
        batches = self.writes.batches()
        writing = [self.script("write", msgpack.packb(batch, use_bin_type=False)) for batch in batches]
        answers = self._exchanged([*writing, *commands], self.runs)
        self.writes.settle(batches, answers)
        return answers[len(batches) :]

    def _exchanged(self, commands: Iterable[Command], runs: Iterable[str]) -> list[Any]:
        """Send commands and return their answers. The server refuses scripts unless this process holds `runs`."""
        fence = self._token + b"".join(map(code, runs))
        fenced = [(*each[:4], fence, *each[4:]) if each[0] == "EVALSHA" else each for each in commands]
        return self.connection.exchange(fenced) if fenced else []

    def flush(self, *, tells: bool) -> None:
        """Send all queued writes. Raise StoreError if a write fails.

        A write to a damaged key can never succeed. Its error is raised only with `tells=True`, and only once.
        """
        self.run([("PING",)])
        while self.writes and not self.writes.refused:
            self.run(())
        error = self.writes.refused
        if tells:
            error, self.writes.damage = error or self.writes.damage, None
        if error:
            raise explained(self.name, error) from error

    def reach(self) -> None:
        """If the server is down, wait some seconds for it to come back."""
        self.connection.wait(LEASE)

    def memory(self) -> dict[str, str]:
        """Return the server's figures on its memory, by name, as INFO reports them."""
        return info_fields(self.run([("INFO", "memory")])[0])

    # Runs. Each connection has its own token, so that the server refuses late commands of an old connection.

    def _resume(self) -> None:
        """After a reconnect, take the leases of the runs again. Requeue the writes that the server may have lost."""
        number = self.connection.open()
        if self._resumed_on == number:
            return
        before, self._process = self._process, ""  # stays unknown until all leases are taken
        self._token = f"{self._id}{number:08}".encode()
        states = self._take_all()
        if _ELSEWHERE in states:
            raise StoreError(
                f"store {self.name!r} gave this run to another process, since its lease of {LEASE:.0f} seconds expired"
            )
        if before != self.connection.process or _FREE in states:
            self.writes.repeat()
        if _FREE in states:
            logger.warning("Store %r lost this run or its lease; its last rows are written again", self.name)
        self._process, self._resumed_on = self.connection.process, number

    def _take_all(self) -> list[Any]:
        return _checked(self._exchanged([self._taking(run, LEASE) for run in self.runs], ()))

    def _taking(self, run: str, seconds: float) -> Command:
        return self.script("run", code(run), run, int(1000 * seconds))

    def take(self, run: str) -> bool:
        """Take the lease of a run. Return False if another living process has it."""
        if self.run([self._taking(run, LEASE)]) == [_ELSEWHERE]:
            return False
        self.runs = self.runs | {run}  # a new set, since the thread may be iterating over the old one
        self.writes.add(["add", "names", code(run), run])
        return True

    def release(self, run: str) -> None:
        """Release the lease of a run."""
        if run in self.runs:
            self.runs = self.runs - {run}
            self.run([self._taking(run, 0)])

    def keep(self) -> None:
        """Start the thread that renews the leases and reconnects."""
        self.connection.keep(self._renew, LEASE / 4)

    def _renew(self) -> None:
        with self._lock:
            if self._resumed_on == self.connection.number and any(each != _KEPT for each in self._take_all()):
                self._process, self._resumed_on = "", 0  # the next command calls `_resume`

    @contextmanager
    def store_errors(self) -> Iterator[None]:
        """Convert errors of the client library and of damaged bytes in a `with` block to StoreError."""
        try:
            yield
        except ERRORS as error:
            raise explained(self.name, error) from error
        except DAMAGE as error:
            why = " ".join(str(error).split())
            advice = "`scrapy neardup verify` says where, and what to do"
            raise StoreError(f"store {self.name!r} is damaged: {why}; {advice}") from error

    def close(self) -> None:
        """Close the connection. Queued writes are not sent, and the leases expire."""
        self.connection.close()


def _checked(answers: list[Any]) -> list[Any]:
    """Return the answers. If some of them are errors, raise the first error instead."""
    for answer in answers:
        if isinstance(answer, Exception):
            raise answer
    return answers
