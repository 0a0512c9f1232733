"""A TCP proxy on 127.0.0.1 that fails as networks do: it drops or holds back data, or closes connections."""

from __future__ import annotations

import socket
import threading
from contextlib import suppress
from types import TracebackType


class TcpProxy:
    """Passes data between its clients and a port, in both directions, until a method makes it fail."""

    def __init__(self, port: int) -> None:
        self._target = ("127.0.0.1", port)
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self.address = f"redis://127.0.0.1:{self.port}"
        self.answers_lost = 0
        """The number of connections that `cut_before_answer` closed."""
        self._flows = threading.Event()
        self._flows.set()
        self._drops = False
        self._cut_after: bytes | None = None
        self._open: list[socket.socket] = []
        threading.Thread(target=self._accept, daemon=True).start()

    # What is to happen

    def stall(self) -> None:
        """Hold back all data from now on. New connections are still accepted."""
        self._flows.clear()

    def drop(self) -> None:
        """Drop all data from now on, and what is held back."""
        self._drops = True
        self._flows.set()

    def flow(self) -> None:
        """Pass on what is held back, and all data from now on."""
        self._drops = False
        self._flows.set()

    def cut(self) -> None:
        """Close all open connections."""
        for each in self._open:
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
            each.close()
        self._open.clear()

    def cut_before_answer(self, asked: bytes) -> None:
        """Pass on the next request that contains the bytes `asked`, then close its connection instead of answering."""
        self._cut_after = asked

    # How

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                try:
                    server = socket.create_connection(self._target, 5)
                except OSError:
                    client.close()
                    continue
                server.settimeout(None)
                self._open += [client, server]
                lost = threading.Event()
                for source, target, is_client in ((client, server, True), (server, client, False)):
                    threading.Thread(target=self._pass, args=(source, target, is_client, lost), daemon=True).start()

    def _pass(self, source: socket.socket, target: socket.socket, is_client: bool, lost: threading.Event) -> None:
        with suppress(OSError):
            while data := source.recv(1 << 16):
                self._flows.wait()
                if is_client and self._cut_after is not None and self._cut_after in data:
                    self._cut_after = None
                    lost.set()
                if not is_client and lost.is_set():
                    self.answers_lost += 1
                    break
                if not self._drops:
                    target.sendall(data)
        for each in (source, target):
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        with suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self._flows.set()
        self.cut()

    def __enter__(self) -> TcpProxy:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
