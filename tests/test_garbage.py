"""Objects are excluded from garbage collection only while a crawl runs."""

from __future__ import annotations

import json
from pathlib import Path

from helpers import python
from site_server import Page, Site, article, html

CRAWL = """
import gc, json, sys
import scrapy
from scrapy.crawler import AsyncCrawlerProcess

gc.unfreeze()  # what the process that forks has frozen

class Stories(scrapy.Spider):
    name = "stories"
    start_urls = [sys.argv[1]]

    def parse(self, response):
        yield {"url": response.url, "html": response.text}

    def closed(self, reason):
        print(json.dumps([self.crawler.stats.get_value("neardup/documents"), gc.get_freeze_count() > 0]))

settings = {"NEARDUP_STORE": sys.argv[2], "LOG_ENABLED": False}
process = AsyncCrawlerProcess({"ADDONS": {"scrapy_neardup.Addon": 500}, **settings})
process.crawl(Stories)
process.start()
print(json.dumps(gc.get_freeze_count()))
"""


def test_a_crawl_freezes_objects_until_its_end(a: Site, tmp_path: Path) -> None:
    a.pages["/1"] = Page(html(article(1)))
    done = python(CRAWL, f"{a.url}/1", str(tmp_path / "store.sqlite"))
    assert done.returncode == 0, done.stderr
    during, after = map(json.loads, done.stdout.splitlines())
    assert during == [1, True]
    assert after == 0
