"""Crawls that stop when only seen items come."""

from __future__ import annotations

import pytest
from site_server import Page, article, html
from tiers import slow

ONE_BY_ONE = {
    "CONCURRENT_REQUESTS": 1,
    "CONCURRENT_ITEMS": 1,
    "EXTENSIONS": {"scrapy_neardup.contrib.stop.StopEarly": 0},
    "SPIDER_MIDDLEWARES": {"scrapy_neardup.contrib.stop.StopListing": 0},
}


def listed(site, name: str, numbers: list[int], size: int = 2) -> str:
    """Put pages and a paged list of links to them on a site, `size` a page; return the URL of its first page."""
    pages = [numbers[at : at + size] for at in range(0, len(numbers), size)]
    for number, page in enumerate(pages):
        links = "".join(f'<li><a href="/{name}/{each}.html">{each}</a></li>' for each in page)
        following = f'<a class="next" href="/{name}/list{number + 1}">Next</a>' if number + 1 < len(pages) else ""
        site.pages[f"/{name}/list{number}"] = Page(f"<html><ul>{links}</ul>{following}</html>")
    for each in numbers:
        site.pages[f"/{name}/{each}.html"] = Page(html(article(each)))
    return f"{site.url}/{name}/list0"


@pytest.mark.parametrize("revisit", ["keep", *slow("drop", "skip")])
def test_the_spider_is_closed_after_so_many_seen_items_in_a_row(crawl, a, revisit):
    settings = {**ONE_BY_ONE, "NEARDUP_REVISIT": revisit, "STOP_EARLY_ITEMS": 3, "NEARDUP_RECHECK": 0}
    first = crawl("PagedSpider", settings, urls=[listed(a, "news", list(range(10, 22)))])
    assert (first.count("unique"), first.stats["finish_reason"]) == (12, "finished")
    later = crawl("PagedSpider", settings, urls=[listed(a, "news", [30, 31, *range(10, 22)])])
    assert (later.count("unique"), later.stats["finish_reason"]) == (2, "neardup_only_seen")
    assert a.asked().count("/news/list6") < a.asked().count("/news/list0")
    assert "The spider is closed: the last 3 items were seen before" in later.log


@pytest.mark.slow
def test_a_new_item_between_ends_the_streak(crawl, a):
    settings = {**ONE_BY_ONE, "STOP_EARLY_ITEMS": 3}
    crawl("PagedSpider", settings, urls=[listed(a, "news", [1, 2, 3, 4])])
    later = crawl("PagedSpider", settings, urls=[listed(a, "news", [1, 6, 2, 7, 3, 8, 4])])
    assert (later.count("unique"), later.stats["finish_reason"]) == (3, "finished")


def test_a_listing_with_seen_items_only_is_left_and_others_go_on(crawl, a):
    settings = {**ONE_BY_ONE, "STOP_LISTING_ITEMS": 3, "NEARDUP_REVISIT": "drop"}
    old, new = listed(a, "old", list(range(10, 20))), listed(a, "new", list(range(40, 50)))
    crawl("PagedSpider", settings, urls=[old])
    later = crawl("PagedSpider", settings, urls=[old, new])
    assert (later.count("unique"), later.stats["finish_reason"]) == (10, "finished")
    assert later.count("requests/stopped") >= 1
    assert a.asked().count("/old/list4") == 1
    assert f"No more requests from {old}: its last 3 items were seen before" in later.log


@pytest.mark.parametrize(
    ("request_", "is_stopped"), [({"method": "POST"}, True), ({"meta": {"dont_neardup": True}}, False)]
)
def test_requests_of_any_method_are_stopped_unless_they_opt_out(crawl, a, request_, is_stopped):
    a.pages = {f"/{number}.html": Page(html(article(1))) for number in range(9)}
    settings = {**ONE_BY_ONE, "STOP_LISTING_ITEMS": 2}
    made = crawl("OneAfterAnother", settings, urls=[a.url + path for path in a.pages], **request_)
    assert (made.count("requests/stopped") > 0, len(a.asked()) < 9) == (is_stopped, is_stopped)
