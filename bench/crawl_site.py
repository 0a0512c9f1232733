"""A web server of four news sites, whose pages are made from their numbers.

    python bench/crawl_site.py PAGES [--lang en|zh] [--long KB]

It listens on 127.0.0.1 to 127.0.0.4, and prints the port. Each site has a quarter of the articles, and lists of 40 that
lead to them. The fourth is a mirror of the first, in another frame; one in 150 articles of the first has gone. Of the
texts of each site 15 % fill in one form of 250 words; 5 % of the first site's and 45 % of the others' are copies of a
common stock, edited or cut or with a note added (the sizes of the clusters follow Zipf's law); the rest are its own.
`--long` adds one page of so many KB of text.
"""

from __future__ import annotations

import argparse
import asyncio
import re
from functools import cache
from itertools import accumulate
from random import Random
from typing import Protocol

from scrapy_neardup.text.lexicon import builtin

SITES, MIRROR = 4, 4
LISTED = 40
GONE = 150
LONG = "/long.html"
COMMON = {
    "en": "the of and to in a is that for it as was with be by on not he his but at are this have from or had an they",
    "zh": "的 了 在 是 和 有 也 就 不 人 都 一 上 中 大 为 这 个 我 到 说 们 要 他 会 着 没有 看 好 自己",
}
MARKS = {"en": (" ", ". "), "zh": ("", "。")}
FRAMES = {
    False: "<header><h1>{title}</h1></header><nav>{menu}</nav><article>{text}</article><aside class=related>{more}"
    "</aside><footer>All rights reserved. Contact the editors.</footer>",
    True: "<div id=masthead>Hosted by a friend</div><h1>{title}</h1><div class=menu>{menu}</div><div id=main>{text}"
    "</div><div class=sidebar>{more}</div>",
}


class Site(Protocol):
    """A source of pages that can be served."""

    def answer(self, site: int, path: str) -> str | None:
        """Return a page, None where there is none."""


class Pages:
    """Pages of all sites, made from the numbers in their paths."""

    def __init__(self, count: int, language: str, long: int = 0) -> None:
        self.each = count // SITES
        self.lists = -(-self.each // LISTED)
        self._blank, self._stop = MARKS[language]
        terms = sorted(term for term in builtin().terms if term.isascii() == (language == "en"))
        self._words = [*COMMON[language].split(), *Random(1).sample(terms, len(terms))]
        self._weights = list(accumulate(1 / (rank + 5) for rank in range(len(self._words))))
        self._long = long

    def answer(self, site: int, path: str) -> str | None:
        """Return a page, None where there is none."""
        if found := re.fullmatch(r"/list/(\d+)", path):
            return self._list(site, int(found[1]))
        if found := re.fullmatch(r"/2026/story-(\d+)\.html", path):
            number = int(found[1])
            return None if site == 1 and number % GONE == GONE - 1 else self._article(site, number)
        return self._framed(1, 0, self._words_of("long", self._long * 150)) if path == LONG else None

    def _list(self, site: int, number: int) -> str:
        numbers = range(number * LISTED, min((number + 1) * LISTED, self.each))
        further = f"<a href={LONG}>Long read</a>" if self._long and (site, number) == (2, 1) else ""
        return f"<html><title>List {number}</title>{self._links(numbers)}{self._menu(number)}{further}</html>"

    def _article(self, site: int, number: int) -> str:
        return self._framed(site, number, self._text(1 if site == MIRROR else site, number))

    def _framed(self, site: int, number: int, words: list[str]) -> str:
        source = Random(f"frame {site} {number}")
        paragraphs = [self._paragraph(words[place : place + 80]) for place in range(0, len(words), 80)]
        frame = FRAMES[site == MIRROR].format(
            title=self._title(site, number),
            menu=self._menu(number // LISTED),
            text="".join(paragraphs),
            more=self._links(source.randrange(self.each) for _ in range(8)),
        )
        script = "".join(f"t({source.random()});" for _ in range(source.randrange(600)))
        return f"<!doctype html><html><title>{self._title(site, number)}</title><body>{frame}<script>{script}</script>"

    def _title(self, site: int, number: int) -> str:
        return self._blank.join(self._words_of(f"title {1 if site == MIRROR else site} {number}", 8))

    def _links(self, numbers: object) -> str:
        return "".join(f"<li><a href=/2026/story-{n}.html>Story number {n}</a></li>" for n in numbers)

    def _menu(self, around: int) -> str:
        lists = range(max(around - 5, 0), min(around + 25, self.lists))
        return "".join(
            f'<li class="menu-item"><a href=/list/{n} title="Go to list {n}">Page {n}</a></li>' for n in lists
        )

    def _paragraph(self, words: list[str]) -> str:
        sentences = [self._blank.join(words[place : place + 12]) for place in range(0, len(words), 12)]
        return f"<p>{self._stop.join(sentences)}{self._stop}</p>\n"

    def _text(self, site: int, number: int) -> list[str]:
        source = Random(f"{site} {number}")
        kind = source.random()
        if kind < 0.15:
            return [*self._stock(f"form {site}", 250), *self._words_of(f"own {site} {number}", 120)]
        if kind > (0.2 if site == 1 else 0.6):
            return self._words_of(f"own {site} {number}", source.randint(300, 900))
        rank = min(int(source.paretovariate(0.5)), 10**6)
        return self._edited(self._stock(f"stock {rank}", 300 + rank % 600), source)

    def _edited(self, words: list[str], source: Random) -> list[str]:
        edited = list(words)
        for place in source.sample(range(len(edited)), int(len(edited) * source.uniform(0, 0.05))):
            edited[place] = source.choice(self._words)
        if source.random() < 0.2:
            return edited[: len(edited) * 7 // 10]
        return edited + source.choices(self._words, k=25) if source.random() < 0.2 else edited

    @cache  # noqa: B019 - there is one of these
    def _stock(self, seed: str, count: int) -> list[str]:
        return self._words_of(seed, count)

    def _words_of(self, seed: str, count: int) -> list[str]:
        return Random(seed).choices(self._words, cum_weights=self._weights, k=count)


class Connection(asyncio.Protocol):
    """Answers GET requests, one after another."""

    def __init__(self, pages: Site, site: int, latency: float) -> None:
        self._pages, self._site, self._latency, self._data = pages, site, latency, b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        *requests, self._data = (self._data + data).split(b"\r\n\r\n")
        for request in requests:
            path = request.split(b" ", 2)[1].decode()
            asyncio.get_running_loop().call_later(self._latency, self._answer, path, b"\r\nIf-None-Match: " in request)

    def _answer(self, path: str, is_held: bool) -> None:
        body = self._pages.answer(self._site, path)
        status, content = ("404 Not Found", b"gone") if body is None else ("200 OK", body.encode())
        if is_held and body is not None:
            status, content = "304 Not Modified", b""
        head = f'HTTP/1.1 {status}\r\nETag: "1"\r\n'
        head += f"Content-Type: text/html; charset=utf-8\r\nContent-Length: {len(content)}\r\n\r\n"
        self._transport.write(head.encode() + content)


async def serve(pages: Site, latency: float = 0.0) -> None:
    """Serve on 127.0.0.1 and on, each answer so many seconds late; print the port."""
    loop, port = asyncio.get_running_loop(), 0
    for site in range(1, SITES + 1):
        server = await loop.create_server(lambda site=site: Connection(pages, site, latency), f"127.0.0.{site}", port)
        port = server.sockets[0].getsockname()[1]
    print(port, flush=True)
    await asyncio.Event().wait()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("pages", type=int)
    parser.add_argument("--lang", choices=("en", "zh"), default="en")
    parser.add_argument("--long", type=int, default=0, metavar="KB")
    options = parser.parse_args()
    asyncio.run(serve(Pages(options.pages, options.lang, options.long)))


if __name__ == "__main__":
    main()
