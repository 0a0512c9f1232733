"""Crawls with Scrapy's HTTP cache, which asks the server whether a page has changed (RFC2616Policy)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from site_server import Page, article, html
from tiers import slow
from transcript import BLOCK

HOWTO = Path(__file__).parents[1] / "docs" / "how-to" / "incremental.md"
ON: dict[str, Any] = {}  # the settings that the how-to names
exec(next(body for _, _, body in BLOCK.findall(HOWTO.read_text(encoding="utf-8")) if "HTTPCACHE" in body), ON)
del ON["__builtins__"], ON["NEARDUP_REVISIT"]
CONDITIONS = {"If-None-Match", "If-Modified-Since"}
DAY = "Mon, 23 Nov 2026 10:00:00 GMT"


@pytest.fixture
def cached(crawl, tmp_path):
    """Crawl with the HTTP cache."""

    def crawled(urls, spider="SiteSpider", **settings):
        cache = {**ON, "HTTPCACHE_DIR": str(tmp_path / "cache")}
        return crawl(spider, {**cache, **settings}, urls=urls)

    return crawled


def page(number: int, *links: str, time: str = "", tag: int = 0) -> Page:
    headers = {"Last-Modified": time} if time else {"ETag": f'"{tag or number}"'}
    return Page(html(article(number), links=links), headers=headers)


def chain(site, time: str = "") -> list[str]:
    """Serve three pages, each of which has the only link to the next one. Return the first URL."""
    site.pages = {"/1": page(1, "/2", time=time), "/2": page(2, "/3", time=time), "/3": page(3, time=time)}
    return [f"{site.url}/1"]


def conditions(site, since: int) -> list[str]:
    """Return the paths that were asked for on a condition."""
    headers = site.headers[since:]
    return [path for path, given in zip(site.requests[since:], headers, strict=True) if CONDITIONS & given.keys()]


def texts(result) -> list[str]:
    return sorted(item["text"] for item in result.items)


def articles(*numbers: int) -> list[str]:
    return sorted(map(article, numbers))


@pytest.mark.parametrize(("revisit", "time"), [("keep", ""), *slow(("drop", DAY), ("keep", DAY), ("drop", ""))])
def test_a_page_from_the_cache_is_a_revisit(cached, a, revisit, time):
    urls = chain(a, time)
    assert texts(cached(urls, NEARDUP_REVISIT=revisit)) == articles(1, 2, 3)
    for _ in range(2):
        since = len(a.requests)
        result = cached(urls, NEARDUP_REVISIT=revisit)
        assert conditions(a, since) == a.asked(since=since) == ["/1", "/2", "/3"]
        assert result.stats["httpcache/revalidate"] == 3
        assert (result.count("documents"), result.count("revisits")) == (3, 3)
        assert texts(result) == (articles(1, 2, 3) if revisit == "keep" else [])


def test_a_changed_page_behind_an_unchanged_one_gives_an_item(cached, a):
    urls = chain(a)
    cached(urls, NEARDUP_REVISIT="drop")
    a.pages |= {"/2": page(5, "/4"), "/4": page(6)}
    assert texts(cached(urls, NEARDUP_REVISIT="drop")) == articles(5, 6)
    assert texts(cached(urls, NEARDUP_REVISIT="drop")) == []


def test_a_copy_is_skipped_and_its_original_comes_from_the_cache(cached, a, b):
    a.pages, b.pages = {"/1": page(1), "/2": page(2)}, {"/1": page(1)}
    urls = [f"{a.url}/1", f"{a.url}/2", f"{b.url}/1"]
    cached(urls, CONCURRENT_REQUESTS=1)
    asked = len(b.requests)
    result = cached(urls, CONCURRENT_REQUESTS=1)
    assert (texts(result), len(b.requests), result.count("requests/skipped")) == (articles(1, 2), asked, 1)


def test_a_dead_link_is_noticed_and_leads_to_the_copy_on_another_host_or_its_own(cached, a, b):
    """All copies have the validator of their original."""
    a.pages = {"/1": page(1, time=DAY), "/2": page(2, time=DAY), "/3": page(2, time=DAY)}
    b.pages = {"/1": page(1, time=DAY)}
    urls = [f"{site.url}{path}" for site in (a, b) for path in site.pages]
    cached(urls, CONCURRENT_REQUESTS=1)
    del a.pages["/1"], a.pages["/2"]
    result = cached(urls, CONCURRENT_REQUESTS=1)
    assert (texts(result), result.count("dead_links/rescued")) == (articles(1, 2), 2)


def test_a_page_that_moved_with_its_validator(cached, a):
    moved = {"/1": page(1), "/2": page(2, time=DAY)}
    urls, a.pages = [a.url + path for path in moved], moved
    cached(urls)
    a.pages = {path: Page(status=301, location=f"/new{path}") for path in moved}
    a.pages |= {f"/new{path}": each for path, each in moved.items()}
    assert texts(cached(urls)) == articles(1, 2)


def test_a_page_that_fails_comes_from_the_cache(cached, a):
    urls = chain(a)
    cached(urls)
    a.dead_status = 503
    result = cached(urls)
    assert (texts(result), result.count("dead_links/redirected")) == (articles(1, 2, 3), 0)


def test_without_max_age_a_page_with_a_date_is_not_asked_for(cached, a):
    urls = chain(a, "Mon, 23 Nov 2020 10:00:00 GMT")
    cached(urls)
    asked = len(a.requests)
    result = cached(urls, DEFAULT_REQUEST_HEADERS={})
    assert (texts(result), len(a.requests) - asked) == (articles(1, 2, 3), 0)


def test_a_page_that_the_store_does_not_hold_is_judged_anew(cached, a):
    urls = chain(a)
    cached(urls, NEARDUP_REVISIT="drop")
    result = cached(urls, NEARDUP_REVISIT="drop", NEARDUP_NAMESPACE="other")
    assert (texts(result), result.stats["httpcache/revalidate"]) == (articles(1, 2, 3), 3)
