"""Serve pages that are made beforehand, on four addresses of this machine."""

from __future__ import annotations

import asyncio
from typing import Protocol

SITES = 4
COMMON = "the of and to in a is that for it as was with be by on not he his but at are this have from or had an they"
FRAMES = {
    False: "<header><h1>{title}</h1></header><nav>{menu}</nav><article>{text}</article><aside class=related>{more}"
    "</aside><footer>All rights reserved. Contact the editors.</footer>",
    True: "<div id=masthead>Hosted by a friend</div><h1>{title}</h1><div class=menu>{menu}</div><div id=main>{text}"
    "</div><div class=sidebar>{more}</div>",
}


class Site(Protocol):
    """A source of pages that can be served."""

    def answer(self, site: int, path: str) -> str | None:
        """Return a page; None if there is none."""


class Connection(asyncio.Protocol):
    """Answers GET requests, one after another."""

    def __init__(self, pages: Site, site: int) -> None:
        self._pages, self._site, self._data = pages, site, b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        *requests, self._data = (self._data + data).split(b"\r\n\r\n")
        for request in requests:
            self._answer(request.split(b" ", 2)[1].decode())

    def _answer(self, path: str) -> None:
        body = self._pages.answer(self._site, path)
        status, content = ("404 Not Found", b"gone") if body is None else ("200 OK", body.encode())
        head = f"HTTP/1.1 {status}\r\nContent-Type: text/html; charset=utf-8\r\nContent-Length: {len(content)}\r\n\r\n"
        self._transport.write(head.encode() + content)


async def serve(pages: Site) -> None:
    """Serve on 127.0.0.1 to 127.0.0.4, and print the port."""
    loop, port = asyncio.get_running_loop(), 0
    for site in range(1, SITES + 1):
        server = await loop.create_server(lambda site=site: Connection(pages, site), f"127.0.0.{site}", port)
        port = server.sockets[0].getsockname()[1]
    print(port, flush=True)
    await asyncio.Event().wait()
