"""Crawls on a store on a server that fails: every item passes, and what came meanwhile is known afterwards."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import pytest
from site_server import Page, article, html

COUNT = 100
SLOW = {"CONCURRENT_REQUESTS": 2}

pytestmark = pytest.mark.parametrize("crawl", ["redis"], indirect=True)


def pages(site, template="a"):
    for n in range(COUNT):
        site.pages[f"/{n}.html"] = Page(html(article(n), template), delay=0.1)
    return [f"{site.url}/{n}.html" for n in range(COUNT)]


def crawl_with(crawl, site, failure: Callable[[Any], None], settings: dict[str, Any] | None = None):
    """Crawl a site, and have the server fail when some of it is done."""
    urls = pages(site)
    process = crawl.start(urls=urls, settings={**SLOW, **(settings or {})})
    end = time.monotonic() + 30
    while len(crawl.items(crawl.runs)) < COUNT // 4 and len(site.asked()) < COUNT // 4 and time.monotonic() < end:
        time.sleep(0.02)
    failure(crawl.server)
    return urls, crawl.finish(process)


def restart(server) -> None:
    server.kill()
    time.sleep(1)
    server.start()


def hang(server) -> None:
    with server.hung():
        time.sleep(5)


@pytest.mark.parametrize("failure", [restart, hang])
def test_items_pass_while_the_server_fails_and_are_known_afterwards(crawl, a, b, failure):
    urls, result = crawl_with(crawl, a, failure)
    assert (result.code, sorted(result.urls)) == (0, sorted(urls)), result.log[-3000:]
    assert result.log.count("WARNING: Items pass") == (result.count("store/errors") > 0)
    assert result.count("store/unjudged") == result.count("store/caught_up")
    assert result.count("store/unjudged") > 0 or failure is hang  # whose end may come before the time-out
    copies = crawl(urls=pages(b, "b"))
    assert (copies.urls, copies.count("duplicates") + copies.count("requests/skipped")) == ([], COUNT)


def test_items_pass_when_the_server_does_not_come_back(crawl, a):
    urls, result = crawl_with(crawl, a, lambda server: server.kill())
    assert (result.code, sorted(result.urls)) == (0, sorted(urls)), result.log[-3000:]
    assert result.log.count("WARNING: Items pass") == 1
    assert "The store was not closed well" in result.log


def test_a_store_that_is_required_stops_the_crawl(crawl, a):
    _, result = crawl_with(crawl, a, lambda server: server.kill(), {"NEARDUP_STORE_REQUIRED": True})
    assert result.stats["finish_reason"] == "neardup_store_failed"
    assert 0 < len(a.asked()) < COUNT
    assert len(result.urls) >= len(a.asked()) - 2 * SLOW["CONCURRENT_REQUESTS"]  # what had arrived passes
