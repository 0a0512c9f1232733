"""Objects are excluded from garbage collection only while a crawl or a command runs."""

from __future__ import annotations

import gc
import json
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest
from site_server import Page, Site, article, html

from scrapy_neardup.crawl.garbage import collecting_rarely, frozen

CRAWL = """
import gc, json, sys
import scrapy
from scrapy.crawler import AsyncCrawlerProcess

class Stories(scrapy.Spider):
    name = "stories"
    start_urls = [sys.argv[1]]

    def parse(self, response):
        yield {"url": response.url, "html": response.text}

    def closed(self, reason):
        print(json.dumps([self.crawler.stats.get_value("neardup/documents"), gc.get_freeze_count() > 0]))

process = AsyncCrawlerProcess({"ADDONS": {"scrapy_neardup.Addon": 500}, "NEARDUP_STORE": None, "LOG_ENABLED": False})
process.crawl(Stories)
process.start()
print(json.dumps(gc.get_freeze_count()))
"""


def test_a_crawl_freezes_objects_until_its_end(a: Site, tmp_path: Path) -> None:
    a.pages["/1"] = Page(html(article(1)))
    done = subprocess.run(
        [sys.executable, "-c", CRAWL, f"{a.url}/1"],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        text=True,
        check=True,
        timeout=60,
    )
    during, after = map(json.loads, done.stdout.splitlines())
    assert during == [1, True]
    assert after == 0


def failing() -> None:
    with frozen():
        assert gc.get_freeze_count() > 0
        raise RuntimeError


def test_an_error_ends_the_freeze() -> None:
    with pytest.raises(RuntimeError):
        failing()
    assert gc.get_freeze_count() == 0


def test_a_second_crawl_leaves_the_freeze_of_the_first_one_alone() -> None:
    with frozen():
        count = gc.get_freeze_count()
        with frozen():
            assert gc.get_freeze_count() == count
        assert gc.get_freeze_count() == count
    assert gc.get_freeze_count() == 0


def test_an_error_brings_the_usual_collections_back() -> None:
    before = gc.get_threshold()
    with suppress(RuntimeError), collecting_rarely():
        assert gc.get_threshold()[0] > before[0]
        raise RuntimeError
    assert gc.get_threshold() == before
