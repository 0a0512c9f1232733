"""The connection to a server: scripts that wait for no answer are sent with the next that does, in one go."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from threading import Lock
from typing import Any

import msgpack

from ..base import StoreError
from .address import connecting, named
from .scripts import NAMES, script

Argument = str | bytes | int | float
Command = Sequence[Argument]
Then = Callable[[Any], object]
MOST = 200  # operations that are done at once: others wait as long
_ADVICE = {  # by what the server says, of which the client leaves out the first word
    "used memory": "it is full: give it more memory, or forget what is old",
    "authenticat": "it wants a password",
    "username-password": "the user or the password is wrong",
    "permissions": "this user may not do that",
    "user executing the script": "this user may not do that",
    "wrong kind of value": "a key is damaged, or somebody else's: `scrapy neardup verify` says which",
    "bad argument": "it is damaged: `scrapy neardup verify` says what to do",
    "read only replica": "it is a replica; name the master",
    "persist": "it can't write its disk",
    "loading": "it is still loading its data; try again",
}
_LOADING = [("SCRIPT", "LOAD", script(name).text) for name in NAMES]
_TRIED_AGAIN = ("used memory", "read only replica", "persist", "loading")


class Server:
    """What is asked of one namespace. For several threads."""

    def __init__(self, address: str, root: str) -> None:
        self.name = named(address)
        self.root = root
        self._connect = connecting(address, root)
        self._connection: Any = None
        self._queue: deque[tuple[Command, Then]] = deque()
        self._lock = Lock()
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="neardup-redis")
        self._writing: Future[None] | None = None

    def call(self, name: str, *arguments: Argument) -> Command:
        """Return the command that runs a script."""
        return ("EVALSHA", script(name).sha, 1, self.root, *arguments)

    def key(self, suffix: str) -> str:
        """Return the name of a key of this namespace."""
        return f"{self.root}:{suffix}"

    def queue(self, operation: str, *arguments: str | bytes, then: Then = bool) -> None:
        """Have an operation of `write` done before all that is asked later; `then` is called with its result."""
        self._queue.append(((operation, *arguments), then))

    def __len__(self) -> int:
        """How much is queued."""
        return len(self._queue)

    def ask(self, name: str, *arguments: Argument) -> Any:
        """Run a script, after all that is queued, and return its result. Raise StoreError."""
        return self.run([self.call(name, *arguments)])[0]

    def run(self, commands: Sequence[Command]) -> list[Any]:
        """Run commands, after all that is queued, in one round trip; return their results. Raise StoreError."""
        with self._lock, self._told():
            return self._drain(commands)

    def flush(self, *, wait: bool) -> None:
        """Send what is queued; without `wait`, a thread does. Raise StoreError for what failed by now."""
        failed = self._failure()
        if self._queue and not wait and self._writing is None:
            self._writing = self._thread.submit(self._flush)
        if wait:
            failed = self._failure(wait=True)
            self._flush()
        if failed:
            raise failed

    def _failure(self, *, wait: bool = False) -> BaseException | None:
        if self._writing is None or not (wait or self._writing.done()):
            return None
        writing, self._writing = self._writing, None
        return writing.exception()

    def _flush(self) -> None:
        with self._lock, self._told():
            if self._queue:
                self._drain(())

    def _drain(self, more: Sequence[Command]) -> list[Any]:
        """Send what is queued and more in one go; of what is queued, what could not be done now stays."""
        queued = list(self._queue)
        batches = [queued[first : first + MOST] for first in range(0, len(queued), MOST)]
        results = self._exchange([*map(self._write, batches), *more])
        for batch, result in zip(batches, results, strict=False):
            self._done(batch, result)
        for result in results:
            if isinstance(result, Exception):
                raise result
        return results[len(batches) :]

    def _write(self, batch: Sequence[tuple[Command, Then]]) -> Command:
        return self.call("write", msgpack.packb([operation for operation, _ in batch], use_bin_type=False))

    def _done(self, batch: Sequence[tuple[Command, Then]], result: Any) -> None:
        """Let go of what was done, and put what could not be done now at the end."""
        for _ in batch:
            self._queue.popleft()
        if not isinstance(result, Exception):
            for (_, then), each in zip(batch, result, strict=True):
                then(each)
        elif any(sign in str(result).lower() for sign in _TRIED_AGAIN):
            self._queue.extend(batch)

    def _exchange(self, commands: Sequence[Command]) -> list[Any]:
        results = self._sent(commands)
        lacking = [at for at, result in enumerate(results) if _lacks_script(result)]
        if lacking:  # of a server that is new; what was done is not to be done again
            again = self._sent([*_LOADING, *(commands[at] for at in lacking)])[len(_LOADING) :]
            for at, result in zip(lacking, again, strict=True):
                results[at] = result
        return results

    def _sent(self, commands: Sequence[Command]) -> list[Any]:
        """Send commands and return the answers, errors of the server being answers."""
        if self._connection is None:
            self._connection = self._connect()
        try:
            self._connection.send_packed_command([b"".join(map(_packer(self._connection), commands))])
            return [self._answer(self._connection) for _ in commands]
        except BaseException:
            self._connection.disconnect()  # it may be in the midst of an answer
            raise

    def _answer(self, connection: Any) -> Any:
        from redis.exceptions import ResponseError

        try:
            return connection.read_response(disable_decoding=True)
        except ResponseError as error:
            return error

    @contextmanager
    def _told(self) -> Iterator[None]:
        """Raise StoreError in place of the client's errors: what is wrong, and what to do."""
        from redis.exceptions import RedisError

        try:
            yield
        except (RedisError, OSError) as error:
            why = " ".join(str(error).split()) or type(error).__name__
            advice = next((f"; {text}" for sign, text in _ADVICE.items() if sign in why.lower()), "")
            raise StoreError(f"store {self.name!r} can't be asked: {why}{advice}") from error

    def close(self) -> None:
        """Let go of the connection; what is queued is not sent."""
        self._thread.shutdown()
        self._queue.clear()
        if self._connection:
            self._connection.disconnect()


def _packer(connection: Any) -> Callable[[Command], bytes]:
    """Return what packs a command: that of hiredis takes a tenth of the time."""
    try:
        from hiredis import pack_command
    except ImportError:
        return lambda command: b"".join(connection.pack_command(*command))
    pack: Any = pack_command
    return lambda command: bytes(pack(command))


def _lacks_script(result: Any) -> bool:
    return isinstance(result, Exception) and "NOSCRIPT" in f"{type(result).__name__} {result}".upper()
