"""Known mirrors are not fetched."""

from __future__ import annotations

import pytest
from site_server import Page, article, html


@pytest.fixture
def urls(a, b):
    for n in range(4):
        a.pages[f"/{n}.html"] = Page(html(article(n), "a"))
        b.pages[f"/{n}.html"] = Page(html(article(n), "b"))
    return [f"{site.url}/{n}.html" for site in (a, b) for n in range(4)]


def second_run(crawl, b, urls, settings=None, **args):
    """Crawl twice, the second time with other settings; return that crawl and what it asked of the mirror host."""
    crawl("OneAfterAnother", urls=urls)
    asked = len(b.requests)
    result = crawl("ListSpider", settings, urls=urls, **args)
    return result, b.asked(since=asked)


def test_mirrors_found_by_the_first_run_are_not_fetched_by_the_second(crawl, a, b, urls):
    result, asked = second_run(crawl, b, urls)
    assert asked == []
    assert sorted(result.urls) == sorted(urls[:4])
    assert (result.count("requests/skipped"), result.count("revisits")) == (4, 4)
    assert result.count("bytes_saved") == sum(len(page.body) for page in b.pages.values())
    assert result.stats["test/failed/IgnoreRequest"] == 4
    assert f"Skipped <GET {urls[4]}>: its content is held as {urls[0]}" in result.log


def test_other_spellings_of_a_mirrors_url_are_skipped_too(crawl, a, b, urls):
    crawl("OneAfterAnother", urls=urls)
    b.pages["/0.html?utm_source=feed"] = b.pages["/0.html"]
    asked = len(b.requests)
    crawl(urls=[f"{b.url}/0.html?utm_source=feed"])
    assert b.asked(since=asked) == []


@pytest.mark.parametrize(
    ("settings", "args"),
    [
        ({"NEARDUP_SKIP_MIRRORS": False}, {}),
        ({"NEARDUP_MIRROR_TTL": 0}, {}),
        ({"NEARDUP_TRUSTED_HOSTS": ["127.0.0.2"]}, {}),
        ({"NEARDUP_RECHECK": 1}, {}),
        ({}, {"meta": {"dont_neardup": True}}),
        ({}, {"method": "POST"}),
        ({}, {"start": True}),
    ],
)
def test_what_must_be_fetched_is_fetched(crawl, a, b, urls, settings, args):
    result, asked = second_run(crawl, b, urls, settings, **args)
    assert sorted(asked) == [f"/{n}.html" for n in range(4)]
    assert result.count("requests/skipped") == 0


def test_start_requests_are_skipped_where_the_user_says_so(crawl, a, b, urls):
    result, asked = second_run(crawl, b, urls, {"NEARDUP_SKIP_START": True}, start=True)
    assert (asked, result.count("requests/skipped")) == ([], 4)


def test_rechecks_find_what_was_skipped_wrongly(crawl, a, b, urls):
    crawl("OneAfterAnother", urls=urls)
    b.pages["/1.html"] = Page(html(article(99), "b"))
    result = crawl("OneAfterAnother", {"NEARDUP_RECHECK": 1}, urls=urls)
    assert (result.count("requests/rechecked"), result.count("requests/wrongly_skipped")) == (4, 1)
    assert f"{b.url}/1.html" in result.urls
    asked = len(b.requests)
    crawl("OneAfterAnother", urls=urls)
    assert b.asked(since=asked) == ["/1.html"]


@pytest.mark.parametrize(("revisit", "items", "asked"), [("keep", 4, 4), ("drop", 0, 4), ("skip", 0, 0)])
def test_revisits_are_kept_dropped_or_not_even_fetched(crawl, a, b, urls, revisit, items, asked):
    crawl("OneAfterAnother", urls=urls)
    before = len(a.requests)
    result = crawl("ListSpider", {"NEARDUP_REVISIT": revisit}, urls=urls)
    assert (len(result.items), len(a.asked(since=before))) == (items, asked)


def test_a_page_that_changed_is_stored_again(crawl, a, b, urls):
    crawl("OneAfterAnother", urls=urls)
    a.pages["/2.html"] = Page(html(article(77), "a"))
    result = crawl("ListSpider", {"NEARDUP_REVISIT": "drop"}, urls=urls)
    assert result.urls == [f"{a.url}/2.html"]


def test_robots_txt_is_always_fetched(crawl, a, b, urls):
    result, asked = second_run(crawl, b, urls, {"ROBOTSTXT_OBEY": True})
    assert asked == []
    assert result.stats["robotstxt/request_count"] == 1  # of the first host: the other one's pages were all skipped


def test_a_rule_of_the_users_skips_what_the_counterpart_holds(crawl, a, b, urls):
    crawl("OneAfterAnother", urls=urls[:3])
    hosts = {b.url.removeprefix("http://"): a.url.removeprefix("http://")}
    result = crawl("ListSpider", {"NEARDUP_MIRROR_HOSTS": hosts}, urls=urls[4:])
    assert b.asked() == ["/3.html"]
    assert result.count("requests/skipped") == 3
