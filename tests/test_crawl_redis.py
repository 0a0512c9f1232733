"""Crawls on a store on a server, also one that fails: every item passes, and the store gets it afterwards."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Callable
from contextlib import suppress

import pytest
from helpers import until
from redis_server import Server
from site_server import Gate, Page, Site, article, html, put_articles
from tiers import slow

from scrapy_neardup.crawl import extension
from scrapy_neardup.store import redis_server as servers

COUNT = 40
FIRST, LAST = 10, 30  # pages that are asked for before the server fails, and before it is back
PAIRS = {"CONCURRENT_REQUESTS": 2}

pytestmark = pytest.mark.parametrize("crawl", ["redis"], indirect=True)


def gate(site: Site, start: int) -> Gate:
    """Hold back all pages from this one on."""
    made = site.pages = Gate(site.pages, *(f"/{n}.html" for n in range(start, COUNT)))
    return made


def crawl_with(crawl, site, failure: Callable[[Server, Callable[[], None]], None], sign: str, **settings: object):
    """Crawl a site; the server fails after FIRST pages. It stays so until this sign is in the log."""
    urls = put_articles(site, COUNT)
    first = gate(site, FIRST)
    process = crawl.start(urls=urls, settings={**PAIRS, **settings})
    assert first.reached.wait(60)
    last = gate(site, LAST)

    def go_on() -> None:
        first.opened.set()
        until(lambda: sign in crawl.log(), 60)
        if sign == PASSING:  # the first error may be that of a flush, before any item
            until(lambda: crawl.log().count("Scraped from") > FIRST, 60)

    failure(crawl.server, go_on)
    if crawl.server.process.poll() is None:
        until(lambda: BACK in crawl.log(), 60)
    last.opened.set()
    return urls, crawl.finish(process)


BACK = "The store answers again"
PASSING = "Items pass"


def restart(server: Server, go_on: Callable[[], None]) -> None:
    server.kill()
    go_on()
    server.start()


def hang(server: Server, go_on: Callable[[], None]) -> None:
    with server.hung():
        go_on()


def end(server: Server, go_on: Callable[[], None]) -> None:
    server.kill()
    go_on()


@pytest.mark.parametrize("failure", [restart, *slow(hang)])
def test_items_pass_while_the_server_fails_and_are_known_afterwards(crawl, a, b, failure):
    urls, result = crawl_with(crawl, a, failure, PASSING)
    assert (result.code, sorted(result.urls)) == (0, sorted(urls)), result.log[-3000:]
    assert result.count("store/errors") > 0
    assert result.log.count("WARNING: Items pass") == 1
    assert result.count("store/unjudged") > 0
    assert "were lost to the store" not in result.log
    copies = crawl(urls=put_articles(b, COUNT, "b"), settings={"NEARDUP_REVISIT": "drop"})
    judged = sum(map(copies.count, ("duplicates", "revisits", "requests/skipped")))
    assert (copies.urls, judged) == ([], COUNT)


class Outage:
    """A pipeline that ends the server when it has the item of a page."""

    def __init__(self, server: int) -> None:
        self.server = server

    @classmethod
    def from_crawler(cls, crawler):
        return cls(crawler.settings.getint("TEST_SERVER"))

    def process_item(self, item):
        with suppress(ProcessLookupError):  # once the test has seen its end
            while item["url"].endswith("/behind.html"):
                os.kill(self.server, signal.SIGKILL)
        return item


@pytest.mark.slow
def test_a_page_to_which_only_a_copy_links_is_found_again_after_an_outage(crawl, a, b):
    a.pages["/1.html"] = Page(html(article(1)))
    b.pages["/1.html"] = Page(html(article(1), "b", links=("/behind.html",)))
    b.pages["/behind.html"] = Page(html(article(2), "b"))
    urls = [f"{site.url}/1.html" for site in (a, b)]
    outage = {"ITEM_PIPELINES": {"test_crawl_redis.Outage": 900}, "TEST_SERVER": crawl.server.process.pid}
    process = crawl.start("SiteSpider", urls=urls, settings={"CONCURRENT_REQUESTS": 1, **outage})
    until(lambda: crawl.server.process.poll() is not None, 60)
    crawl.server.start()
    assert "Error caught on signal handler" not in crawl.finish(process).log
    assert f"{b.url}/behind.html" in crawl("SiteSpider", urls=urls, settings={"CONCURRENT_REQUESTS": 1}).urls


class Patient:
    """A pipeline that makes whoever waits for the server wait for an hour, until the spider closes."""

    def __init__(self) -> None:
        extension.FLUSH_INTERVAL, servers.LEASE = 0.01, 3600.0  # in the process of this crawl

    def process_item(self, item):
        return item

    def close_spider(self) -> None:
        servers.LEASE = 0.1


def test_items_pass_when_the_server_does_not_come_back(crawl, a):
    urls, result = crawl_with(crawl, a, end, PASSING, ITEM_PIPELINES={"test_crawl_redis.Patient": 600})
    assert (result.code, sorted(result.urls)) == (0, sorted(urls)), result.log[-3000:]
    assert COUNT - FIRST <= result.count("store/unjudged") <= COUNT
    assert result.log.count("WARNING: Items pass") == 1
    assert "The run could not be closed" in result.log


@pytest.mark.slow
def test_a_store_that_is_required_stops_the_crawl(crawl, a):
    _, result = crawl_with(crawl, a, end, "Closing spider (neardup_store_failed)", NEARDUP_STORE_REQUIRED=True)
    assert result.stats["finish_reason"] == "neardup_store_failed"
    assert 0 < len(a.asked()) < COUNT
    assert len(result.urls) >= len(a.asked()) - 2 * PAIRS["CONCURRENT_REQUESTS"]  # items that had arrived pass


def test_each_content_passes_once_though_a_page_gives_it_three_times(crawl, a):
    rows = [{"url": f"{a.url}/{n}/{m}", "text": article(n)} for n in range(10) for m in "abc"]
    a.pages["/list"] = Page(json.dumps(rows))
    for _ in range(3):
        items = crawl("JsonSpider", urls=[f"{a.url}/list"]).items
        assert len(items) == len({item["text"] for item in items}) == 10
