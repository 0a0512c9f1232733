"""What skipping mirrors saves: the wall time of a crawl of which half the pages are copies on another host.

    python bench/mirrors.py [--stories 2500] [--latency 0.05] [--rounds 1] [--json FILE]

Two hosts have the same stories, each in a frame of its own (`crawl_pages.py`, in a process of its own); every answer
comes so many seconds late. A spider asks for all pages of both, with Scrapy's default concurrency, and yields each
page's HTML. "one after the other": the first host's requests have the higher priority, and Scrapy's queue goes by that
alone (`ScrapyPriorityQueue`). "side by side": none has, and hosts take turns, as they do by default. Each crawl is a
process of its own, timed from its start to its end:

- without: without the plugin.
- run 1: with it, and an empty store: it learns.
- run 2: the same again, on that store.
- run 2, revisits skipped: on a copy of that store, with NEARDUP_REVISIT = "skip".

A copy that is dropped in run 1 is skipped in run 2; a page that is held is a revisit there, fetched and stored again
unless NEARDUP_REVISIT says otherwise. Medians of the rounds.
"""

from __future__ import annotations

import argparse
import json
import shutil
import tempfile
import time
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from statistics import median
from typing import Any

import scrapy
from crawl_pages import LIST
from crawl_run import PLUGIN, crawled, in_new_process, numbers, serving
from options import new_file, positive

BY_PRIORITY = {"SCHEDULER_PRIORITY_QUEUE": "scrapy.pqueues.ScrapyPriorityQueue"}
ORDERS: dict[str, tuple[int, dict[str, Any]]] = {"one after the other": (-1, BY_PRIORITY), "side by side": (0, {})}
"""The priority of the second host's requests, and settings."""
CRAWLS: dict[str, dict[str, Any]] = {
    "without": {},
    "run 1": PLUGIN,
    "run 2": PLUGIN,
    "run 2, revisits skipped": {**PLUGIN, "NEARDUP_REVISIT": "skip"},
}
COLUMNS = {
    "requests": "downloader/request_count",
    "skipped": "neardup/requests/skipped",
    "rechecked": "neardup/requests/rechecked",
    "items kept": "item_scraped_count",
    "dropped": "item_dropped_count",
    "revisits": "neardup/revisits",
    "errors": "log_count/ERROR",
}


class Both(scrapy.Spider):
    """Asks for all pages of both hosts, by turns."""

    name = "both"

    def __init__(self, port: str, priority: int, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.hosts = {f"http://127.0.0.1:{port}": 0, f"http://127.0.0.2:{port}": priority}

    async def start(self) -> AsyncIterator[scrapy.Request]:
        yield scrapy.Request(next(iter(self.hosts)) + LIST, self.list)

    def list(self, response: Any) -> Iterator[scrapy.Request]:
        for path in response.text.split():
            for host, priority in self.hosts.items():
                yield scrapy.Request(host + path, priority=priority)

    def parse(self, response: Any) -> Iterator[Any]:
        yield {"url": response.url, "html": response.text}


def crawl(port: str, priority: int, settings: dict[str, Any]) -> dict[str, Any]:
    """Crawl once, in this process."""
    return {"stats": numbers(crawled(Both, settings, port=port, priority=priority))}


def measured(port: str, order: str, folder: Path) -> dict[str, dict[str, Any]]:
    """Crawl in each way, each in a new process."""
    made = {}
    priority, queue = ORDERS[order]
    for name, settings in CRAWLS.items():
        store = folder / ("skip.sqlite" if "NEARDUP_REVISIT" in settings else "store.sqlite")
        given = {**queue, **settings, **({"NEARDUP_STORE": str(store)} if settings else {})}
        start = time.perf_counter()
        made[name] = in_new_process(__file__, "--one", json.dumps([port, priority, given]))
        made[name]["wall"] = time.perf_counter() - start
        if name == "run 1":
            shutil.copytree(folder, folder / "copy")
            for part in (folder / "copy").iterdir():
                part.rename(folder / part.name.replace("store", "skip", 1))
    return made


def rows(rounds: list[dict[str, dict[str, Any]]]) -> Iterator[str]:
    """Yield the table's lines of one order."""
    for name in CRAWLS:
        wall, cpu = (median(made[name][what] for made in rounds) for what in ("wall", "cpu"))
        ratio = median(made[name]["wall"] / made["without"]["wall"] for made in rounds)
        counted = (median(made[name]["stats"].get(stat, 0) for made in rounds) for stat in COLUMNS.values())
        yield f"  {name:25}{wall:8.1f}{ratio:7.2f}{cpu:8.1f}" + "".join(f"{count:11.0f}" for count in counted)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--stories", type=positive, default=2500, metavar="N", help="of each host (default: 2500)")
    parser.add_argument("--latency", type=float, default=0.05, metavar="SECONDS", help="default: 0.05")
    parser.add_argument("--rounds", type=positive, default=1, metavar="N", help="default: 1")
    parser.add_argument("--json", type=new_file, metavar="FILE", help="write all figures to this file")
    parser.add_argument("--one", type=json.loads, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        print(json.dumps(crawl(*options.one)))
        return
    found: dict[str, list[dict[str, dict[str, Any]]]] = {order: [] for order in ORDERS}
    with serving("crawl_pages.py", options.stories, "--latency", options.latency) as port:
        for _ in range(options.rounds):
            for order in ORDERS:
                with tempfile.TemporaryDirectory() as folder:
                    found[order].append(measured(port, order, Path(folder)))
    print(f"{2 * options.stories} pages{'':18}wall, s  ratio  CPU, s" + "".join(f"{name:>11}" for name in COLUMNS))
    for order, rounds in found.items():
        print(order, *rows(rounds), sep="\n")
    if options.json:
        options.json.write_text(json.dumps({"stories": options.stories, "crawls": found}, indent=1) + "\n")


if __name__ == "__main__":
    main()
