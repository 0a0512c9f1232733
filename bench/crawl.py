"""Measure what the plugin costs a crawl of pages of 19 KB, by kind of spider.

    python bench/crawl.py [--pages 1000] [--rounds 3] [--kinds links,css,bare] [-s NAME=VALUE…]

- links: follows the links that a LinkExtractor finds, and yields the page's title and HTML.
- css: yields four fields that CSS selectors find. One of them is the text.
- bare: yields the HTML, and parses nothing itself.

`crawl_pages.py` serves the pages in another process. No page repeats another, so none should be dropped. In each round,
each kind of spider crawls without the plugin, then with it and an empty store on disk, each time in a new process. CPU
a page: the CPU time of the process and its children from the 100th page to the end, with the closing of the store.
start: the CPU time before that, less the time of 100 such pages. Figures are medians of the rounds; a ratio compares
two crawls of one round. Linux only.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from typing import Any

import scrapy
from crawl_pages import LIST
from options import positive, some_of
from scrapy import signals
from scrapy.crawler import AsyncCrawlerProcess
from scrapy.linkextractors import LinkExtractor

FIRST = 100  # pages, after which everything is imported and loaded
PLUGIN = {"ADDONS": {"scrapy_neardup.Addon": 500}}
QUIET = {"LOG_LEVEL": "ERROR", "TELNETCONSOLE_ENABLED": False}
WITHOUT, WITH = "without", "with"


class Spider(scrapy.Spider):
    """Requests the pages that the site lists, and notes the CPU time used after the first `FIRST` pages."""

    name = "stories"

    def __init__(self, port: str, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.site = f"http://127.0.0.1:{port}"
        self.pages, self.at_first = 0, 0.0

    @classmethod
    def from_crawler(cls, crawler: Any, *args: Any, **kwargs: Any) -> Spider:
        spider = super().from_crawler(crawler, *args, **kwargs)
        crawler.signals.connect(spider.count, signal=signals.response_received)
        return spider

    def count(self) -> None:
        self.pages += 1
        if self.pages == FIRST:
            self.at_first = cpu()

    async def start(self) -> AsyncIterator[scrapy.Request]:
        yield scrapy.Request(self.site + LIST, self.list)

    def list(self, response: Any) -> Iterator[scrapy.Request]:
        for path in response.text.split():
            yield scrapy.Request(self.site + path)


class Links(Spider):
    extractor = LinkExtractor(allow="/story/")

    def list(self, response: Any) -> Iterator[scrapy.Request]:
        yield response.follow(response.text.split()[0])

    def parse(self, response: Any) -> Iterator[Any]:
        for link in self.extractor.extract_links(response):
            yield response.follow(link)
        yield {"url": response.url, "title": response.css("title::text").get(), "html": response.text}


class Css(Spider):
    def parse(self, response: Any) -> Iterator[Any]:
        yield {
            "url": response.url,
            "title": response.css("h1::text").get(),
            "site": response.css("title::text").get(),
            "section": response.css("nav a::text").get(),
            "text": "\n".join(response.css("article p::text").getall()),
        }


class Bare(Spider):
    def parse(self, response: Any) -> Iterator[Any]:
        yield {"url": response.url, "html": response.text}


KINDS: dict[str, type[Spider]] = {"links": Links, "css": Css, "bare": Bare}


def kinds(value: str) -> list[str]:
    return some_of(value, frozenset(KINDS))


def cpu() -> float:
    """Return the CPU time of this process and its children, in seconds."""
    used = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(usage.ru_utime + usage.ru_stime for usage in used)


def crawl(port: str, kind: str, settings: dict[str, Any]) -> dict[str, Any]:
    """Crawl once, in this process."""
    process = AsyncCrawlerProcess({**QUIET, **settings})
    crawler: Any = process.create_crawler(KINDS[kind])
    process.crawl(crawler, port=port)
    process.start()
    spider = crawler.spider
    stats = {name: value for name, value in crawler.stats.get_stats().items() if isinstance(value, (int, float))}
    errors = ("log_count/ERROR", "neardup/errors", "neardup/store/errors", "neardup/no_text")
    if any(stats.get(name) for name in errors) or spider.pages <= FIRST:
        raise SystemExit(f"the crawl went wrong: {spider.pages} pages, {stats}")
    a_page = (cpu() - spider.at_first) / (spider.pages - FIRST)
    return {"page": a_page, "start": spider.at_first - FIRST * a_page, "stats": stats}


def measured(port: str, kind: str, what: str, settings: dict[str, Any]) -> dict[str, Any]:
    """Crawl once, in a new process."""
    with tempfile.TemporaryDirectory() as folder:
        ours = {**PLUGIN, "NEARDUP_STORE": f"{folder}/store.sqlite", **settings}
        command = [sys.executable, __file__, "--one", json.dumps([port, kind, ours if what == WITH else {}])]
        env = {**os.environ, "PYTHONDONTWRITEBYTECODE": ""}  # with bytecode, as an installed plugin
        ran = subprocess.run(command, stdout=subprocess.PIPE, check=True, text=True, env=env)
        return dict(json.loads(ran.stdout))


@contextmanager
def serving(pages: int) -> Iterator[str]:
    """Run the web server in a `with` block, and yield the port that it prints."""
    command = [sys.executable, str(Path(__file__).with_name("crawl_pages.py")), str(pages)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout
        try:
            yield server.stdout.readline().strip()
        finally:
            server.kill()


def rows(made: dict[str, list[dict[str, Any]]]) -> Iterator[str]:
    """Yield the lines of the table for one kind of spider."""
    for what, crawls in made.items():
        page, start = (median(crawl[name] for crawl in crawls) for name in ("page", "start"))
        ratio = median(crawl["page"] / base["page"] for crawl, base in zip(crawls, made[WITHOUT], strict=True))
        dropped = median(crawl["stats"].get("item_dropped_count", 0) for crawl in crawls)
        yield f"  {what:24}{1e3 * page:12.3f}{ratio:8.2f}{start:10.2f}{dropped:9.0f}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pages", type=positive, default=1000, metavar="N", help="default: 1000")
    parser.add_argument("--rounds", type=positive, default=3, metavar="N", help="default: 3")
    parser.add_argument("--kinds", type=kinds, default=list(KINDS), help="of spider (default: all)")
    parser.add_argument("-s", dest="settings", action="append", default=[], metavar="NAME=VALUE", help="of the plugin")
    parser.add_argument("--one", type=json.loads, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        print(json.dumps(crawl(*options.one)))
        return
    if options.pages <= FIRST:
        parser.error(f"--pages {options.pages} is not allowed; allowed are more than {FIRST}, which are not measured")
    settings = dict(setting.split("=", 1) for setting in options.settings)
    found: dict[str, Any] = {kind: {what: [] for what in (WITHOUT, WITH)} for kind in options.kinds}
    with serving(options.pages) as port:
        for _ in range(options.rounds):
            for kind, made in found.items():
                for what, crawls in made.items():
                    crawls.append(measured(port, kind, what, settings))
    print(f"{options.pages} pages{'':16}CPU, ms a page   ratio  start, s  dropped")
    for kind, made in found.items():
        print(kind, *rows(made), sep="\n")


if __name__ == "__main__":
    main()
