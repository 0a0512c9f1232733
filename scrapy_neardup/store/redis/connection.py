"""Send commands over one connection to a server, and reconnect in a thread if the server was down."""

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
    """One connection to a server, with a thread that reconnects. Only one other thread at a time may use it."""

    def __init__(self, connect: Connect) -> None:
        self.process = ""
        """The id of the server's process. If it changes, the server was restarted and may have lost writes."""
        self.number = 0
        """The number of connections opened so far."""
        self._connect = connect
        self._wire: Any = None
        self._away: Exception | None = None
        self._failures = 0
        self._changed = Condition()
        self._is_closed = False

    def open(self) -> int:
        """Connect if there is no connection. Return the number of the connection.

        Raise the client's error if that fails. While the server is marked as down, raise the last error at once.
        """
        if self._away:
            raise self._away.with_traceback(None)
        if self._wire is None:
            self._dial()
        return self.number

    def exchange(self, commands: Sequence[Command]) -> list[Any]:
        """Send commands and return their answers. If the server refuses a command, its answer is the error.

        Raise errors of the client, and refusals that require a new connection. Close the connection before raising.
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
        """Open a connection, and load the Lua scripts."""
        if self._is_closed:
            raise ConnectionError("it was closed")
        wire = self._connect()
        try:
            told = _exchanged(wire, [("INFO", "server"), *_LOADING])[0]
        except BaseException:
            wire.disconnect()
            raise
        self.process = info_fields(told).get("run_id") or uuid4().hex
        self.number += 1
        self._wire = wire
        self.leave(None)

    def _drop(self) -> None:
        wire, self._wire = self._wire, None
        if wire:
            wire.disconnect()

    def leave(self, error: Exception | None) -> None:
        """Mark the server as down because of `error`, or as up if `error` is None."""
        with self._changed:
            self._away = error
            self._changed.notify_all()

    def wait(self, seconds: float) -> None:
        """Wait until the server is up, but no longer than this many seconds."""
        self._wait(lambda: not self._away, seconds)

    def _wait(self, holds: Callable[[], object], seconds: float) -> bool:
        with self._changed:
            return bool(self._changed.wait_for(holds, seconds))

    def close(self) -> None:
        """Close the connection, and stop reconnecting."""
        self._is_closed = True
        self.leave(ConnectionError("it was closed"))
        self._drop()

    # The thread

    def keep(self, renew: Callable[[], object], seconds: float) -> None:
        """Start a thread that calls `renew` every `seconds` seconds, and reconnects while the server is down."""
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
        """Return the seconds to wait before reconnecting, with jitter. They double with each call, up to a maximum."""
        pause = min(PAUSES[1], PAUSES[0] * 2.0**self._failures)
        self._failures = min(self._failures + 1, 30)
        return pause * Random().uniform(0.5, 1)


def info_fields(info: Any) -> dict[str, str]:
    """Return the fields of the server's answer to INFO. If the server refused INFO, return none."""
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
