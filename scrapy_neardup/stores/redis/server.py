"""What is asked of a server: operations that wait for no answer are sent with the next that does, in one go.

They are done in order, each once, whatever fails in between: a key of the server's, that of the connection's session,
counts those that were done, and the scripts that write refuse what comes in another order, or in an older session.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from threading import RLock
from typing import Any

import msgpack

from ..base import StoreError
from ..writing import Writing
from .address import connecting, named
from .connection import Argument as Argument
from .connection import Command as Command
from .connection import Connection
from .failures import explained, is_fenced
from .operations import Operation, Operations
from .operations import Then as Then
from .scripts import FENCED, script


class BegunAnewError(StoreError):
    """What was asked goes by a run, or by numbers, that are no more: ask anew."""


class Server:
    """What is asked of one namespace. For several threads; one of them decides."""

    def __init__(self, address: str, root: str) -> None:
        self.name = named(address)
        self.root = root
        self.connection = Connection(connecting(address, root))
        self.resume: Callable[[], None] | None = None
        """What is to be done on a new connection before all else."""
        self.session = ""
        """The key that says which connection may write; "" where any may."""
        self.runs = 0
        """How many runs were begun: commands that were made in another are not sent."""
        self.operations = Operations()
        self._resumed_on = 1
        self._resuming = False
        self._lock = RLock()
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="neardup-redis")
        self._writing = Writing()

    def call(self, name: str, *arguments: Argument) -> Command:
        """Return the command that runs a script."""
        keys = (2, self.root, self.session) if self.session and name in FENCED else (1, self.root)
        return ("EVALSHA", script(name).sha, *keys, *arguments)

    def key(self, suffix: str) -> str:
        """Return the name of a key of this namespace."""
        return f"{self.root}:{suffix}"

    def queue(self, operation: str, *arguments: str | bytes, then: Then = bool, can_wait: bool = False) -> None:
        """Have an operation of `write` done before all that is asked later; `then` is called with its result.

        One that `can_wait` may come after claims. Raise StoreError where too many wait.
        """
        self.operations.add(Operation(operation, arguments, then, can_wait))

    def __len__(self) -> int:
        """How much is queued."""
        return len(self.operations)

    def ask(self, name: str, *arguments: Argument) -> Any:
        """Run a script, after all that is queued, and return its result. Raise StoreError."""
        return self.run([self.call(name, *arguments)])[0]

    def run(self, commands: Sequence[Command], *, first: bool = False) -> list[Any]:
        """Run commands, after all that is queued, in one round trip; return their results. Raise StoreError.

        `first`: before what can wait, if nothing else is queued.
        """
        with self._lock, self._told():
            made_in = self.runs, self.session
            try:
                return self._drained(commands, *made_in, first=first)
            except Exception as error:
                if not self._is_worth_another(error):
                    raise
            return self._drained(commands, *made_in)

    def alone(self, commands: Sequence[Command]) -> list[Any]:
        """Run commands before all that is queued, unless the run has yet to be resumed. Raise StoreError."""
        with self._lock, self._told():
            if self._is_new:
                raise StoreError(f"store {self.name!r} has yet to be reached again")
            return _checked(self.connection.exchange(commands))

    def check(self) -> None:
        """Have the run resumed if the connection was lost. Raise StoreError."""
        self.run(())
        self.run([("PING",)])

    def _drained(self, commands: Sequence[Command], runs: int, session: str, *, first: bool = False) -> list[Any]:
        """Run commands that were made in a run and a session, which may have been begun anew since."""
        self._resume()
        if runs != self.runs and any(command[2:3] == (2,) for command in commands):
            raise BegunAnewError(f"store {self.name!r} was reached again and this run begun anew: ask again")
        if session != self.session:
            commands = [(*c[:4], self.session, *c[5:]) if c[4:5] == (session,) else c for c in commands]
        if first and not self.operations.urgent:
            return _checked(self.connection.exchange(commands))
        return self._drain(commands)

    @property
    def _is_new(self) -> bool:
        """Whether the run has to be resumed on this connection."""
        return self.resume is not None and self._resumed_on != self.connection.made

    def _is_worth_another(self, error: Exception) -> bool:
        """Say whether the connection was just closed, or is not that of the run: it can be made anew at once."""
        if self.resume is None or self._resuming or isinstance(error, StoreError):
            return False
        if is_fenced(error):
            self.distrust()
            return True
        return self.connection.is_cut

    def _resume(self) -> None:
        self.connection.ready()
        if not self._is_new or self.resume is None or self._resuming:
            return
        before, self._resumed_on, self._resuming = self._resumed_on, self.connection.made, True
        try:
            self.resume()
        except BaseException:
            self._resumed_on = before
            raise
        finally:
            self._resuming = False

    def distrust(self) -> None:
        """Have the run resumed before the next command, as on a new connection."""
        self._resumed_on = -1

    def flush(self, *, wait: bool) -> None:
        """Send what is queued; without `wait`, a thread does. Raise StoreError for what failed by now."""
        failed = self._writing.failure()
        if self.operations and not wait and not self._writing.is_on:
            self._writing.begin(self._thread.submit(self._flush))
        if wait:
            failed = self._writing.failure(wait=True)
            if self.operations:
                self.run(())
        if failed:
            raise failed

    def _flush(self) -> None:
        with self._lock, self._told():
            if self.operations and not self._is_new:
                self._drain(())

    def _drain(self, more: Sequence[Command]) -> list[Any]:
        """Send what is queued and more in one go; of what is queued, what could not be done now stays."""
        batches = self.operations.batches()
        results = self.connection.exchange([*(self._write(*batch) for batch in batches), *more])
        for (_, batch), result in zip(batches, results, strict=False):
            if not self.operations.settle(batch, result):
                break
        written, answers = results[: len(batches)], results[len(batches) :]
        refused = next(filter(None, map(_refused, written)), None)
        if refused and (not more or is_fenced(refused)):  # else what was asked has its answer all the same
            raise refused
        return _checked(answers)

    def _write(self, first: int, batch: Sequence[Operation]) -> Command:
        named = [(operation.name, *operation.arguments) for operation in batch]
        return self.call("write", msgpack.packb(named, use_bin_type=False), first)

    @contextmanager
    def _told(self) -> Iterator[None]:
        """Raise StoreError in place of the client's errors."""
        from redis.exceptions import RedisError

        try:
            yield
        except (RedisError, OSError) as error:
            raise explained(self.name, error) from error

    def close(self) -> None:
        """Let go of the connection; what is queued is not sent."""
        self.connection.close()
        self._thread.shutdown()
        self.operations.clear()


def _refused(result: Any) -> Exception | None:
    """Return the error of a batch, or the first one of an operation in it."""
    results = [result] if isinstance(result, Exception) else result
    return next((each for each in results if isinstance(each, Exception)), None)


def _checked(results: list[Any]) -> list[Any]:
    """Return answers. Raise the first error among them."""
    for result in results:
        if isinstance(result, Exception):
            raise result
    return results
