"""Trace items and requests through the package in a real crawl: function calls, files, and calls into another file.

    python bench/way.py

A spider fetches one page after another from a server on 127.0.0.1, on two hosts: first six new articles, then the same
articles under other URLs. A second crawl requests the copies again, which are then skipped. A profiler notes each call
of a Python function of the package, in all threads. The table has medians of the pages of each kind, without the first
two: for an item from its callback until it is committed, for a request from its callback to its answer.
"""

from __future__ import annotations

import asyncio
import random
import sys
import tempfile
import threading
from collections.abc import AsyncIterator, Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from itertools import pairwise
from pathlib import Path
from statistics import median
from types import FrameType
from typing import Any

import scrapy
from scrapy import signals
from scrapy.crawler import CrawlerProcess
from texts import made_up

import scrapy_neardup

PAGES, FIRST = 6, 2  # pages of a kind; the first ones load what is loaded once
PACKAGE = str(Path(scrapy_neardup.__file__).parent)
KINDS = ("new item", "copied item", "request of a new page", "request that is skipped")


class Trace:
    """The calls in the package, in order, cut into the ways of items and requests."""

    def __init__(self) -> None:
        self.ways: dict[str, list[list[str]]] = {kind: [] for kind in (*KINDS, "")}  # "": what lies between
        self._calls: list[str] = []

    def note(self, frame: FrameType, event: str, _: object) -> None:
        if event == "call" and frame.f_code.co_filename.startswith(PACKAGE):
            self._calls.append(frame.f_code.co_filename)

    def end(self, kind: str) -> None:
        self.ways[kind].append(self._calls)
        self._calls = []

    def row(self, kind: str) -> str:
        ways = self.ways[kind][FIRST:]
        calls = median(map(len, ways))
        files = median(len(set(way)) for way in ways)
        changes = median(sum(a != b for a, b in pairwise(way)) for way in ways)
        return f"{kind:24} {calls:6.0f} {files:6.0f} {changes:8.0f}"


class Articles(scrapy.Spider):
    """Requests one page after another, and ends a way in the trace after each item and request."""

    name = "articles"

    def __init__(self, urls: list[tuple[str, str]], trace: Trace, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self._urls, self._trace = urls, trace
        self._place = -1

    @classmethod
    def from_crawler(cls, crawler: Any, *args: Any, **kwargs: Any) -> Articles:
        spider = super().from_crawler(crawler, *args, **kwargs)
        for signal in (signals.item_scraped, signals.item_dropped):
            crawler.signals.connect(spider.end_item, signal=signal)
        return spider

    async def start(self) -> AsyncIterator[scrapy.Request]:
        for request in self._next():
            yield request

    def _next(self) -> Iterator[scrapy.Request]:
        self._place += 1
        if self._place < len(self._urls):
            self._trace.end("")
            yield scrapy.Request(self._urls[self._place][1], self.parse, errback=self.end_request)

    def parse(self, response: Any) -> Iterator[Any]:
        self._trace.end("request of a new page")
        yield {"url": response.url, "html": response.text}

    async def end_item(self) -> None:
        await asyncio.sleep(0)  # the plugin hears of it in the same turn, and commits
        if self._place == len(self._urls):
            return
        self._trace.end(self._urls[self._place][0])
        for request in self._next():
            self.crawler.engine.crawl(request)

    def end_request(self, failure: Any) -> Iterator[scrapy.Request]:
        self._trace.end("request that is skipped")
        yield from self._next()


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *args: object) -> None:
        pass


def serve(folder: Path) -> list[tuple[str, str]]:
    """Serve the pages from files; return the kind and the URL of each."""
    names = random.Random(1).sample(range(10**6), 2 * PAGES)
    for place, text in enumerate(made_up("English", PAGES, 700)):
        page = f"<html><title>{text[:30]}</title><article><p>{text}</p></article></html>"
        for name in names[place::PAGES]:
            (folder / f"{name}.html").write_text(page)
    server = ThreadingHTTPServer(("", 0), partial(Quiet, directory=str(folder)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return [
        (KINDS[place // PAGES], f"http://127.0.0.{1 + place // PAGES}:{server.server_port}/{name}.html")
        for place, name in enumerate(names)
    ]


def main() -> None:
    folder, trace = Path(tempfile.mkdtemp()), Trace()
    urls = serve(folder)
    settings = {"NEARDUP_FIELDS": ["html"], "NEARDUP_REVISIT": "drop", "NEARDUP_STORE": str(folder / "way.sqlite")}
    settings |= {"LOG_LEVEL": "ERROR", "TELNETCONSOLE_ENABLED": False}
    process = CrawlerProcess({"ADDONS": {"scrapy_neardup.Addon": 500}, **settings})
    first = process.crawl(Articles, urls=urls, trace=trace)
    first.addCallback(lambda _: process.crawl(Articles, urls=urls[PAGES:], trace=trace))
    threading.setprofile(trace.note)
    sys.setprofile(trace.note)
    process.start()
    sys.setprofile(None)
    print(f"{'':24} {'calls':>6} {'files':>6} {'changes':>8}")
    for kind in KINDS:
        print(trace.row(kind))


if __name__ == "__main__":
    main()
