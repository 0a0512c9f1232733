"""The connection to a server. Where it fails a thread makes a new one, with pauses; until then all fails at once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random
from threading import Event, Thread
from typing import Any
from uuid import uuid4

from .address import Connect
from .failures import is_elsewhere, lacks_script
from .scripts import NAMES, script

Argument = str | bytes | int | float
Command = Sequence[Argument]
PAUSES = (0.1, 10.0)  # seconds between two attempts, at first and at most
_LOADING: Sequence[Command] = [("SCRIPT", "LOAD", script(name).text) for name in NAMES]


class Connection:
    """Sends commands and returns the answers, errors of the server being answers. For one thread at a time."""

    def __init__(self, connect: Connect) -> None:
        self.made = 0
        """How many connections there were: each is to be told anew which runs this process has."""
        self.process = ""
        """Tells the server's process from others; it may have forgotten what an earlier one was told."""
        self._connect = connect
        self._wire: Any = None
        self._worked = False
        self._failures = 0
        self._away: BaseException | None = None
        self._back = Event()
        self._closed = Event()
        self._jitter = Random()

    @property
    def is_cut(self) -> bool:
        """Whether the connection was closed, and may be made anew at once."""
        return self._wire is None and self._away is None

    def wait(self, seconds: float) -> None:
        """Wait until the server is reached again, if it is away."""
        if self._away:
            self._back.wait(seconds)

    def ready(self) -> None:
        """Connect. Raise the client's errors: the last one, at once, while the server is away."""
        if self._away:
            raise self._away.with_traceback(None)
        if self._closed.is_set():
            raise ConnectionError("it was closed")
        if self._wire is None:
            try:
                self._dial()
            except BaseException as error:
                self._fail(error)
                raise

    def exchange(self, commands: Sequence[Command]) -> list[Any]:
        """Return the answers to commands. Raise the client's errors."""
        self.ready()
        try:
            results = _exchanged(self._wire, commands)
            if any(map(lacks_script, results)):  # someone had the server forget them
                results = _exchanged(self._wire, [*_LOADING, *commands])[len(_LOADING) :]
        except BaseException as error:
            self._fail(error)
            raise
        self._worked, self._failures = True, 0
        if elsewhere := next(filter(is_elsewhere, results), None):
            self._leave(elsewhere)
        return results

    def _fail(self, error: BaseException) -> None:
        """Let go of the connection. One that worked and was closed is made anew at once, others later."""
        from redis.exceptions import TimeoutError as TimedOut

        worked, self._worked = self._worked, False
        self._drop()  # it may be in the midst of an answer
        if not worked or isinstance(error, TimedOut):
            self._leave(error)

    def _leave(self, error: BaseException) -> None:
        """Take the server for away, and have a thread try it."""
        self._drop()
        self._back.clear()
        self._away = error if isinstance(error, Exception) else ConnectionError(str(error))
        if self.made and not self._closed.is_set():
            Thread(target=self._try, name="neardup-redis-reconnect", daemon=True).start()

    def _try(self) -> None:
        while not self._closed.wait(self._pause()):
            try:
                self._dial()
            except Exception as error:  # whatever it is, the next attempt may succeed
                self._away = error
            else:
                self._away = None
                self._back.set()
                break
        if self._closed.is_set():
            self.close()

    def _pause(self) -> float:
        """Return for how long to wait, and wait longer the next time; not all workers at once."""
        pause = min(PAUSES[1], PAUSES[0] * 2.0**self._failures)
        self._failures = min(self._failures + 1, 30)
        return pause * self._jitter.uniform(0.5, 1)

    def _dial(self) -> None:
        """Make a connection on which the server answers and knows the scripts."""
        wire = self._connect()
        try:
            told = _exchanged(wire, [("INFO", "server"), *_LOADING])[0]
        except BaseException:
            wire.disconnect()
            raise
        self.process = told_in(told).get("run_id") or uuid4().hex
        self._wire = wire
        self.made += 1

    def _drop(self) -> None:
        wire, self._wire = self._wire, None
        if wire:
            wire.disconnect()

    def close(self) -> None:
        """Disconnect, for good."""
        self._closed.set()
        self._drop()


def told_in(info: Any) -> dict[str, str]:
    """Return what the server says in answer to INFO; nothing where it may not be asked."""
    lines = info.decode().splitlines() if isinstance(info, bytes) else []
    return dict(line.partition(":")[::2] for line in lines if ":" in line)


def _exchanged(wire: Any, commands: Sequence[Command]) -> list[Any]:
    wire.send_packed_command([b"".join(map(_packer(wire), commands))])
    return [_answer(wire) for _ in commands]


def _answer(wire: Any) -> Any:
    from redis.exceptions import ResponseError

    try:
        return wire.read_response(disable_decoding=True)
    except ResponseError as error:
        return error


def _packer(wire: Any) -> Callable[[Command], bytes]:
    """Return what packs a command: that of hiredis takes a tenth of the time."""
    try:
        from hiredis import pack_command
    except ImportError:
        return lambda command: b"".join(wire.pack_command(*command))
    pack: Any = pack_command
    return lambda command: bytes(pack(command))
