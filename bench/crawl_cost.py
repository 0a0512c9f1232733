"""A real crawl of generated pages, without the plugin and with it: what it costs, and how long it holds the reactor.

    python bench/crawl_cost.py [PAGES=20000] [--lang en|zh] [--rounds 3] [--long KB] [--jieba] [-s NAME=VALUE…]

The pages come from `crawl_site.py`, in a process of its own. A spider follows all links and yields each article's HTML.
Each round crawls three times, each in a new process with an empty store: without the plugin, with it, and with it but
all pages fetched (NEARDUP_SKIP_MIRRORS = False), so that both crawls do the same work. Numbers are medians of the
rounds, "longest" and "peak" the largest of all. `--jieba`: jieba itself cuts Chinese.
`-s`: further settings of the crawls with the plugin. Linux only.

- CPU: of the crawl's process and its children, start included. RSS: of the crawl's process, at the end of the crawl.
- lag: how late the reactor calls what asked for a call in 5 ms; it shows what the spider and Scrapy take too.
- A stretch is the time for which one of our entry points keeps the reactor's thread, of coroutines each step between
  two awaits; what of it went to collecting garbage is left out of the columns so named, since that is the garbage of
  all. CPU: what of the longest was work; the rest went to other threads and processes. Entry points that contain one
  another are counted in each. Those "around" are called before the first request or after the last one.
"""

from __future__ import annotations

import argparse
import json
import resource
import tempfile
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from statistics import median
from typing import Any

import scrapy
from crawl_clock import Clock, high
from crawl_run import PLUGIN, crawled, in_new_process, numbers, serving
from crawl_site import MIRROR, SITES
from scrapy import signals
from scrapy.linkextractors import LinkExtractor

from scrapy_neardup.text import tokens
from scrapy_neardup.text.segmenter import by_jieba

KINDS = {"without": {}, "with": PLUGIN, "all fetched": {**PLUGIN, "NEARDUP_SKIP_MIRRORS": False}}
# Called before the first request or after the last one, so that nobody waits for them.
AROUND = ("from_crawler", "engine_started", "spider_opened", "spider_closed", "engine_stopped")
ENTRIES = {
    "pipeline.NearDupPipeline": ("process_item",),
    "middleware.MirrorMiddleware": (
        *("engine_started", "process_request", "process_response", "process_exception"),
        "_advice",  # before the fetch
    ),
    "extension.NearDup": (*AROUND[2:], "from_crawler", "sync", "log_summary"),
    "ending.Endings": ("_item_scraped", "_item_lost"),
}
MB = 1 << 20


class NewsSpider(scrapy.Spider):
    """Follows all links, and yields each article; the mirror's pages come after those of the other sites."""

    name = "news"

    def __init__(self, port: str, clock: Clock, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self._port, self._extractor, self._clock = port, LinkExtractor(), clock
        self.size = 0

    @classmethod
    def from_crawler(cls, crawler: Any, *args: Any, **kwargs: Any) -> NewsSpider:
        spider = super().from_crawler(crawler, *args, **kwargs)
        crawler.signals.connect(spider._clock.tick, signal=signals.spider_opened)
        crawler.signals.connect(spider.measure, signal=signals.spider_closed)
        return spider

    async def start(self) -> AsyncIterator[scrapy.Request]:
        for site in range(1, SITES + 1):
            yield scrapy.Request(f"http://127.0.0.{site}:{self._port}/list/0", priority=-(site == MIRROR))

    def parse(self, response: Any) -> Iterator[Any]:
        for link in self._extractor.extract_links(response):
            yield response.follow(link, priority=response.request.priority)
        if response.url.endswith(".html"):
            yield {"url": response.url, "title": response.css("title::text").get(), "html": response.text}

    def measure(self) -> None:
        self.size = int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()


def crawl(port: str, settings: dict[str, Any]) -> dict[str, Any]:
    """Crawl once, in this process."""
    clock = Clock()
    if "ADDONS" in settings:
        from scrapy_neardup.crawl import ending, extension, middleware, pipeline  # noqa: F401 - named by ENTRIES

        for place, methods in ENTRIES.items():
            module, name = place.split(".")
            for method in methods:
                clock.watch(getattr(locals()[module], name), method)
    crawler: Any = crawled(NewsSpider, settings, port=port, clock=clock)
    return {
        "stats": numbers(crawler),
        "rss": crawler.spider.size,
        "peak": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
        "entries": {name: entry(clock, name) for name in clock.longest},
        "lag": [max(clock.lags), high(clock.lags)],
        "collections": [max(clock.collections, default=0), sum(clock.collections), len(clock.collections)],
    }


def entry(clock: Clock, name: str) -> dict[str, Any]:
    """Return what was measured of an entry point."""
    times = clock.times[name]
    of_all = {"times": len(times), "sum": sum(times), "longest": max(times), "high": high(clock.own[name])}
    return {**of_all, **clock.longest[name]}


# Several crawls, side by side


def measured(port: str, kind: str, options: argparse.Namespace) -> dict[str, Any]:
    """Crawl once, in a new process."""
    with tempfile.TemporaryDirectory() as folder:
        settings = dict(KINDS[kind])
        if settings:
            settings |= {"NEARDUP_STORE": f"{folder}/store.sqlite", **dict(s.split("=", 1) for s in options.settings)}
        arguments = ["--one", json.dumps([port, settings]), *["--jieba"] * options.jieba]
        return in_new_process(__file__, *arguments)


def summary(crawls: list[dict[str, Any]], base: list[dict[str, Any]]) -> dict[str, str]:
    """Return the lines of the first table for one kind of crawl; `base`: the crawls without the plugin."""

    def middle(value: Callable[[dict[str, Any]], float], of: list[dict[str, Any]] = crawls) -> float:
        return median(map(value, of))

    def stat(name: str) -> float:
        return middle(lambda crawl: crawl["stats"].get(name, 0))

    held = stat("neardup/store/documents")
    more = middle(lambda crawl: crawl["rss"]) - middle(lambda crawl: crawl["rss"], base)
    pages = stat("response_received_count")
    cpu, plain = middle(lambda crawl: crawl["cpu"]), middle(lambda crawl: crawl["cpu"], base)
    return {
        "pages fetched": f"{pages:.0f}",
        "requests skipped": f"{stat('neardup/requests/skipped'):.0f}",
        "hosts that mirror": f"{stat('neardup/mirror_hosts/learned') - stat('neardup/mirror_hosts/dropped'):.0f}",
        "items kept": f"{stat('item_scraped_count'):.0f}",
        "items dropped": f"{stat('item_dropped_count'):.0f}",
        "documents held": f"{held:.0f}",
        "pages a second": f"{pages / stat('elapsed_time_seconds'):.0f}",
        "CPU, s": f"{cpu:.1f}",
        "CPU, ratio": f"{cpu / plain:.2f}",
        "RSS at the end, MB": f"{middle(lambda crawl: crawl['rss']) / MB:.0f}",
        "peak RSS, MB": f"{max(crawl['peak'] for crawl in crawls) / MB:.0f}",
        "RSS more, KB a document": f"{more / held / 1024:.2f}" if held else "",
        "lag, 99.9 %, ms": f"{1e3 * middle(lambda crawl: crawl['lag'][1]):.1f}",
        "lag, longest, ms": f"{1e3 * max(crawl['lag'][0] for crawl in crawls):.1f}",
        "garbage, times": f"{middle(lambda crawl: crawl['collections'][2]):.0f}",
        "garbage, s in all": f"{middle(lambda crawl: crawl['collections'][1]):.2f}",
        "garbage, longest, ms": f"{1e3 * max(crawl['collections'][0] for crawl in crawls):.1f}",
        "errors": f"{stat('log_count/ERROR') + stat('neardup/errors') + stat('neardup/store/errors'):.0f}",
    }


def entries(kind: str, crawls: list[dict[str, Any]]) -> Iterator[str]:
    """Yield the lines of the table of entry points."""
    heads = ("times", "s in all", "longest", "99.9 %", "longest", "CPU", "at, s")
    yield f"{kind:35}{'less garbage':>42}"
    yield f"{'':35}" + "".join(f"{head:>9}" for head in heads) + "  page"
    for name in sorted(
        {name for crawl in crawls for name in crawl["entries"]}, key=lambda name: (is_around(name), name)
    ):
        found = [crawl["entries"][name] for crawl in crawls if name in crawl["entries"]]
        worst = max(found, key=lambda entry: entry["own"])
        numbers = [
            f"{median(entry['times'] for entry in found):9.0f}{median(entry['sum'] for entry in found):9.2f}",
            f"{1e3 * max(entry['longest'] for entry in found):9.1f}{1e3 * median(e['high'] for e in found):9.1f}",
            f"{1e3 * worst['own']:9.1f}{1e3 * worst['cpu']:9.1f}{worst['at']:9.1f}  {worst['page']}",
        ]
        yield f"{name + ' (around)' * is_around(name):35}" + "".join(numbers)


def is_around(name: str) -> bool:
    return name.split(".")[1] in AROUND


def longest(kind: str, crawls: list[dict[str, Any]]) -> str:
    """Name the longest stretch between the first request and the last answer, less what garbage took."""
    found = ((entry["own"], name, entry) for crawl in crawls for name, entry in crawl["entries"].items())
    own, name, entry = max((row for row in found if not is_around(row[1])), key=lambda row: row[0])
    return f"{kind}: longest is {name}, {1e3 * own:.1f} ms, {entry['at']:.1f} s after the start, {entry['page']}"


def tables(made: dict[str, list[dict[str, Any]]]) -> Iterator[str]:
    columns = [summary(crawls, made["without"]) for crawls in made.values()]
    yield f"{'':25}" + "".join(f"{kind:>13}" for kind in made)
    for name in columns[0]:
        yield f"{name:25}" + "".join(f"{column[name]:>13}" for column in columns)
    for kind in list(made)[1:]:
        yield ""
        yield from entries(kind, made[kind])
        yield longest(kind, made[kind])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("pages", type=int, nargs="?", default=20_000)
    parser.add_argument("--lang", choices=("en", "zh"), default="en")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--long", type=int, default=0, metavar="KB", help="one page of so much text besides")
    parser.add_argument("--jieba", action="store_true")
    parser.add_argument("-s", dest="settings", action="append", default=[], metavar="NAME=VALUE")
    parser.add_argument("--one", type=json.loads, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.jieba:
        tokens.segmenter = by_jieba
    if options.one:
        print(json.dumps(crawl(*options.one)))
        return
    made: dict[str, list[dict[str, Any]]] = {kind: [] for kind in KINDS}
    site = (options.pages, "--lang", options.lang, "--long", options.long)
    with serving("crawl_site.py", *site) as port:
        for _ in range(options.rounds):
            for kind, crawls in made.items():
                crawls.append(measured(port, kind, options))
    print(*tables(made), sep="\n")


if __name__ == "__main__":
    main()
