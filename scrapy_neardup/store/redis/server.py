"""What is asked of one namespace of a server: after all that is queued, over a connection that knows this process."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from threading import RLock
from typing import Any
from urllib.parse import quote

import msgpack

from ..base import StoreError
from ..damage import DAMAGE
from .address import connecting, named
from .connection import Argument, Command, Connection, told_in
from .failures import explained, is_unheld
from .leases import Leases
from .scripts import script
from .writes import Writes

VERSION = 2  # of the keys and of what is in them
_FENCE = "FENCE"
logger = logging.getLogger(__name__)


class Server:
    """One namespace of a server. The thread that renews leases may ask too."""

    def __init__(self, address: str, namespace: str) -> None:
        self.name = named(address)
        self.root = f"{{neardup:{quote(namespace, safe='')}:{VERSION}}}"  # the braces keep keys together in a cluster
        self.connection = Connection(connecting(address, self.root))
        self.leases = Leases(self.name)
        self.writes = Writes()
        self.reconnects = 0
        """How often the run went on over a new connection."""
        self._resumed_on = 0
        self._lock = RLock()

    def key(self, suffix: str) -> str:
        """Return the name of a key of this namespace."""
        return f"{self.root}:{suffix}"

    def call(self, name: str, *arguments: Argument, fenced: bool = False) -> Command:
        """Return the command that runs a script; `fenced`: only while this process has its runs."""
        fence = _FENCE if fenced else msgpack.packb([])
        return ("EVALSHA", script(name).sha, 1, self.root, fence, *arguments)

    def ask(self, name: str, arguments: Sequence[Any]) -> Any:
        """Run a script, and return its answer. Raise StoreError."""
        return self.run([self.call(name, *arguments)])[0]

    def run(self, commands: Sequence[Command], *, checks: bool = True) -> list[Any]:
        """Return the answers to commands, which are sent after all that is queued. Raise StoreError.

        Without `checks` what the server refuses is an answer too.
        """
        with self._lock, self.told():
            try:
                answers = self._sent(commands)
            except (OSError, self._errors()):
                if not self.connection.is_cut:
                    raise
                answers = self._sent(commands)
            if any(map(is_unheld, answers)) or is_unheld(self.writes.failure):
                self._resumed_on = -1
                self.writes.failure = None
                answers = self._sent(commands)
            return _checked(answers) if checks else answers

    def _sent(self, commands: Sequence[Command]) -> list[Any]:
        self._resume()
        batches = self.writes.batches()
        writing = [self.call("write", msgpack.packb(batch, use_bin_type=False), fenced=True) for batch in batches]
        fence = msgpack.packb(self.leases.fence, use_bin_type=False)
        filled = [(*each[:4], fence, *each[5:]) if each[4:5] == (_FENCE,) else each for each in (*writing, *commands)]
        answers = self.connection.exchange(filled) if filled else []
        self.writes.settle(batches, answers[: len(batches)])
        if self.writes.lost:
            logger.warning(
                "Store %r has lost what this run wrote, or took it for dead: %d rows are written again",
                self.name, self.writes.lost,
            )  # fmt: skip
            self.writes.lost = 0
        return answers[len(batches) :]

    def _resume(self) -> None:
        """Take the runs over a new connection; what the server may have lost is queued again."""
        connection, leases = self.connection, self.leases
        connection.ready()
        if self._resumed_on != connection.made:
            ordinals = leases.retake(self._answers, connection.process)
            if ordinals is not None:
                self.writes.repeat(ordinals)
            self.reconnects += self._resumed_on != 0
            self._resumed_on = connection.made

    def _answers(self, arguments: Sequence[Sequence[Any]]) -> list[Any]:
        commands = [self.call("run", *each) for each in arguments]
        return _checked(self.connection.exchange(commands)) if commands else []

    def renew(self) -> None:
        """Renew the leases, unless the runs have yet to be taken again. Raise StoreError."""
        with self._lock, self.told():
            if self._resumed_on == self.connection.made and not all(self._answers(self.leases.renewals())):
                self._resumed_on = -1

    def flush(self) -> None:
        """Send what is queued. Raise StoreError for what was not written."""
        self.run([("PING",)])
        while self.writes and not self.writes.failure:
            self.run(())
        if error := self.writes.failure:
            self.writes.failure = None
            raise explained(self.name, error) from error

    def memory(self) -> dict[str, str]:
        """Return what the server says of its memory."""
        return told_in(self.run([("INFO", "memory")])[0])

    @contextmanager
    def told(self) -> Iterator[None]:
        """Raise StoreError in place of the client's errors, and of what damaged bytes raise."""
        try:
            yield
        except (OSError, self._errors()) as error:
            raise explained(self.name, error) from error
        except DAMAGE as error:
            why = " ".join(str(error).split())
            advice = "`scrapy neardup verify` says where, and what to do"
            raise StoreError(f"store {self.name!r} is damaged: {why}; {advice}") from error

    @staticmethod
    def _errors() -> type[Exception]:
        from redis.exceptions import RedisError

        return RedisError

    def close(self) -> None:
        """Let go of the connection, and let the leases run out; what is queued is not sent."""
        self.leases.stop()
        self.connection.close()


def _checked(answers: list[Any]) -> list[Any]:
    """Return answers. Raise the first error among them."""
    for answer in answers:
        if isinstance(answer, Exception):
            raise answer
    return answers
