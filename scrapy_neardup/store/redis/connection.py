"""One connection to a server. While the server is down, commands fail at once, and a thread reconnects."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random
from threading import Condition, Thread
from typing import Any
from uuid import uuid4

from redis.exceptions import ResponseError

from .clients import Connect
from .failures import TIMEOUT, is_void
from .scripts import SCRIPTS

Argument = str | bytes | int | float
Command = Sequence[Argument]
PAUSES = (0.1, 10.0)  # the first and the maximum number of seconds between two attempts to reconnect
_LOADING: Sequence[Command] = [("SCRIPT", "LOAD", each.text) for each in SCRIPTS.values()]


class Connection:
    """Sends commands and returns the answers. Use it in one thread at a time, besides its own thread."""

    def __init__(self, connect: Connect) -> None:
        self.process = ""
        """The id of the server's process. A restarted server may have lost earlier writes."""
        self.number = 0
        """The number of connections opened so far."""
        self._connect = connect
        self._wire: Any = None
        self._away: Exception | None = None
        self._failures = 0
        self._changed = Condition()
        self._is_closed = False

    def open(self) -> int:
        """Connect if necessary, and return the number of the connection.

        Raise the client's errors. While the server is down, raise the last one at once.
        """
        if self._away:
            raise self._away.with_traceback(None)
        if self._wire is None:
            self._dial()
        return self.number

    def exchange(self, commands: Sequence[Command]) -> list[Any]:
        """Send commands and return the answers. The error of a single command is returned as its answer.

        Raise the client's errors, and errors that require a new connection. The connection is closed then.
        """
        try:
            self.open()
            answers = _exchanged(self._wire, commands)
            if void := next(filter(is_void, answers), None):
                raise void
        except BaseException:
            self._drop()  # an answer may be partly read
            raise
        self._failures = 0
        return answers

    def _dial(self) -> None:
        """Open a connection, and load the scripts."""
        if self._is_closed:
            raise ConnectionError("it was closed")
        wire = self._connect()
        try:
            told = _exchanged(wire, [("INFO", "server"), *_LOADING])[0]
        except BaseException:
            wire.disconnect()
            raise
        self.process = told_in(told).get("run_id") or uuid4().hex
        self.number += 1
        self._wire = wire
        self.leave(None)

    def _drop(self) -> None:
        wire, self._wire = self._wire, None
        if wire:
            wire.disconnect()

    def leave(self, error: Exception | None) -> None:
        """Mark the server as down with this error, or as up with None."""
        with self._changed:
            self._away = error
            self._changed.notify_all()

    def wait(self, seconds: float) -> None:
        """Wait until the server is up, at most this many seconds."""
        self._wait(lambda: not self._away, seconds)

    def _wait(self, holds: Callable[[], object], seconds: float) -> bool:
        with self._changed:
            return bool(self._changed.wait_for(holds, seconds))

    def close(self) -> None:
        """Close the connection for good."""
        self._is_closed = True
        self.leave(ConnectionError("it was closed"))
        self._drop()

    # The thread

    def keep(self, renew: Callable[[], object], seconds: float) -> None:
        """Start the thread. It calls `renew` every `seconds` seconds, and reconnects while the server is down."""
        Thread(target=self._keep, args=(renew, seconds), name="neardup-redis", daemon=True).start()

    def _keep(self, renew: Callable[[], object], seconds: float) -> None:
        while not self._is_closed:
            try:
                if not self._away and not self._wait(lambda: self._away, seconds):
                    renew()
                elif self._away and not self._wait(lambda: self._is_closed, self._pause()):
                    self._dial()
            except Exception as error:  # of any kind, since the next attempt may succeed
                if self._away or isinstance(error, TIMEOUT):
                    self.leave(error)

    def _pause(self) -> float:
        """Return the seconds to wait, with jitter. They double with each call."""
        pause = min(PAUSES[1], PAUSES[0] * 2.0**self._failures)
        self._failures = min(self._failures + 1, 30)
        return pause * Random().uniform(0.5, 1)


def told_in(info: Any) -> dict[str, str]:
    """Return the fields of an answer to INFO. If INFO is forbidden, there are none."""
    lines = info.decode().splitlines() if isinstance(info, bytes) else []
    return dict(line.partition(":")[::2] for line in lines if ":" in line)


def _exchanged(wire: Any, commands: Sequence[Command]) -> list[Any]:
    wire.send_packed_command(wire.pack_commands(commands))
    return [_answer(wire) for _ in commands]


def _answer(wire: Any) -> Any:
    try:
        return wire.read_response(disable_decoding=True)
    except ResponseError as error:
        return error
