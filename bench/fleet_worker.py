"""Run one worker of `bench/fleet.py`: a real crawl in a process of its own.

    python bench/fleet_worker.py SPEC

SPEC is a JSON file. `order`: same, random or shared. `seed`: that of this worker's own order. `pages`: the file with
the port of the site and all places. `feed`, `result`: the files to write. `settings`: the settings of the crawl.
"""

from __future__ import annotations

import json
import random
import sys
import time
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import scrapy
from scrapy import signals
from scrapy.crawler import AsyncCrawlerProcess

# Before this folder, which has a module `fleet` too.
sys.path.insert(0, str(Path(__file__).parents[1] / "example_project"))


class PageSpider(scrapy.Spider):
    """Requests all pages, in the common order or in an order of its own, and yields the HTML of each."""

    name = "fleet"

    def __init__(self, spec: dict[str, Any], **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.spec = spec
        self.times: list[float] = []

    @classmethod
    def from_crawler(cls, crawler: Any, *args: Any, **kwargs: Any) -> PageSpider:
        spider = super().from_crawler(crawler, *args, **kwargs)
        crawler.signals.connect(spider.tick, signals.request_reached_downloader)
        crawler.signals.connect(spider.tick, signals.item_scraped)
        crawler.signals.connect(spider.tick, signals.item_dropped)
        return spider

    def tick(self) -> None:
        self.times = [*self.times[:1], time.time()]

    async def start(self) -> AsyncIterator[scrapy.Request]:
        port, places = json.loads(Path(self.spec["pages"]).read_text())
        if self.spec["order"] == "random":
            random.Random(self.spec["seed"]).shuffle(places)
        for site, path in places:
            yield self.request(site, port, path)

    def request(self, site: int, port: str, path: str) -> scrapy.Request:
        return scrapy.Request(f"http://127.0.0.{site}:{port}{path}", self.page)

    def page(self, response: Any) -> Iterator[dict[str, str]]:
        yield {"url": response.url, "html": response.text}

    def parse(self, response: Any) -> Iterator[scrapy.Request]:
        """Request the next list, then the pages of this one. So the queue never runs dry."""
        listed, port = response.json(), response.url.split(":")[2].split("/")[0]
        if listed["next"]:
            yield response.follow(listed["next"], priority=1)
        for site, path in listed["pages"]:
            yield self.request(site, port, path)


def spider_class(order: str) -> type[PageSpider]:
    if order != "shared":
        return PageSpider
    from fleet.queue import FleetSpider

    class FromQueue(FleetSpider, PageSpider):
        """Requests the pages in the queue."""

    return FromQueue


def main(spec: dict[str, Any]) -> None:
    settings = {
        "ADDONS": {"scrapy_neardup.Addon": 500},
        "FEEDS": {spec["feed"]: {"format": "jsonlines", "fields": ["url"]}},
        "CONCURRENT_REQUESTS_PER_DOMAIN": 16,
        "DOWNLOAD_DELAY": 0,
        "LOG_LEVEL": "WARNING",
        "TELNETCONSOLE_ENABLED": False,
    }
    process = AsyncCrawlerProcess({**settings, **spec["settings"]})
    crawler = process.create_crawler(spider_class(spec["order"]))
    process.crawl(crawler, spec=spec)
    process.start()
    assert crawler.stats
    stats = {k: v for k, v in crawler.stats.get_stats().items() if isinstance(v, (int, float))}
    cpu = time.process_time()
    Path(spec["result"]).write_text(json.dumps({"times": crawler.spider.times, "stats": stats, "cpu": cpu}))


if __name__ == "__main__":
    main(json.loads(Path(sys.argv[1]).read_text()))
