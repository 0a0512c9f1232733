"""Real HTTP servers on loopback addresses, and pages of generated text for them."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

SYLLABLES = [c + v for c in "bdfgklmnprstvz" for v in "aeiou"]


def article(seed: int, words: int = 150) -> str:
    """Return a text of random words. Texts of different seeds do not resemble each other."""
    source = random.Random(seed)
    made = ["".join(source.choices(SYLLABLES, k=source.randint(2, 4))) for _ in range(words)]
    return " ".join(f"{word}." if place % 12 == 11 else word for place, word in enumerate(made))


def html(text: str, template: str = "a", title: str = "A page", links: tuple[str, ...] = ()) -> str:
    """Return a page with a text, in one of two templates, `a` or `b`."""
    anchors = "".join(f'<a href="{link}">{link}</a> ' for link in links)
    if template == "a":
        return f"<html><title>{title}</title><nav>Home News</nav><article><p>{text}</p></article>{anchors}</html>"
    menu = "<ul class=menu><li><a href=/>Start</a><li><a href=/about>About us</a></ul>"
    return f"<html><title>{title} | B</title><body>{menu}<div id=content><div>{text}</div></div>{anchors}</body></html>"


@dataclass
class Page:
    """The response for one path of a site."""

    body: str = ""
    status: int = 200
    location: str = ""
    delay: float = 0.0
    headers: dict[str, str] = field(default_factory=dict)
    charset: str = "utf-8"


class Gate(dict[str, Page]):
    """The pages of a site by path. The responses for some paths wait until the test sets `opened`."""

    def __init__(self, pages: dict[str, Page], *paths: str) -> None:
        super().__init__(pages)
        self.paths, self.reached, self.opened = paths, threading.Event(), threading.Event()

    def get(self, path: str, default: Any = None) -> Any:
        if path in self.paths:
            self.reached.set()
            self.opened.wait(60)
        return super().get(path, default)


@dataclass
class Site:
    """A running site: its pages by path, and the paths and headers of the requests that it got."""

    url: str
    server: ThreadingHTTPServer
    pages: dict[str, Page] = field(default_factory=dict)
    requests: list[str] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)
    dead_status: int = 0

    def answer(self, path: str, headers: dict[str, str]) -> Page:
        """Return the page for a request. Subclasses may make it from the headers."""
        return self.pages.get(path, Page(status=404))

    def unless_modified(self, page: Page, headers: dict[str, str]) -> Page:
        """Return a page or, if the request shows that its client has it, status 304 (RFC 9110, section 13.2)."""
        tag, time = page.headers.get("ETag"), page.headers.get("Last-Modified")
        asked = headers.get("If-None-Match"), headers.get("If-Modified-Since")
        is_same = asked[0] == tag if asked[0] else asked[1] == time
        return Page(status=304, headers=page.headers) if any(asked) and is_same else page

    def stop(self) -> None:
        """Stop the server: later connections are refused."""
        self.server.shutdown()
        self.server.server_close()

    def asked(self, *, since: int = 0) -> list[str]:
        """Return the requested paths without robots.txt; with `since`, without the first so many requests."""
        return [path for path in self.requests[since:] if path != "/robots.txt"]


def put_articles(site: Site, count: int, template: str = "a") -> list[str]:
    """Add articles number 0 to `count` - 1 to a site. Return their URLs."""
    site.pages |= {f"/{n}.html": Page(html(article(n), template)) for n in range(count)}
    return [f"{site.url}/{n}.html" for n in range(count)]


def mirror(a: Site, b: Site, count: int = 3) -> list[str]:
    """Add the same articles to two sites, in two templates. Return the URLs of the first site, then of the second."""
    return put_articles(a, count) + put_articles(b, count, "b")


@contextmanager
def serving(address: str = "127.0.0.1", kind: type[Site] = Site) -> Iterator[Site]:
    """Serve an empty site on a free port during the `with` block, and yield it."""
    server = ThreadingHTTPServer((address, 0), _Handler)
    server.daemon_threads = True
    site = kind(f"http://{address}:{server.server_port}", server)
    server.site = site  # type: ignore[attr-defined]
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    try:
        yield site
    finally:
        site.stop()
        thread.join()


class _Handler(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        site: Site = self.server.site  # type: ignore[attr-defined]
        site.requests.append(self.path)
        site.headers.append(dict(self.headers))
        page = site.unless_modified(site.answer(self.path, dict(self.headers)), dict(self.headers))
        if site.dead_status:
            page = Page(status=site.dead_status)
        time.sleep(page.delay)
        with suppress(ConnectionError):  # the crawl may have ended
            self._answer(page)

    do_POST = do_GET  # noqa: N815 - http.server looks for this name

    def _answer(self, page: Page) -> None:
        body = page.body.encode(page.charset)
        self.send_response(page.status)
        for name, value in page.headers.items():
            self.send_header(name, value)
        if page.location:
            self.send_header("Location", page.location)
        self.send_header("Content-Type", f"text/html; charset={page.charset}")
        self.send_header("Content-Length", str(len(body)))
        # Else Scrapy may send the next request here at the moment when the server closes. It does not repeat a POST.
        self.send_header("Connection", "close")
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args: object) -> None:
        pass
