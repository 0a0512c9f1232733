"""Pages of a preferred host are fetched and kept, even if another host has them too."""

from __future__ import annotations

import random

import pytest
from site_server import Page, article, html, mirror, serving
from tiers import slow

PREFERRED = {"NEARDUP_PREFERRED_HOSTS": ["127.0.0.2"]}
COUNT = 6


@pytest.fixture
def urls(a, b):
    return mirror(a, b, COUNT)


def of(site):
    return [f"{site.url}/{n}.html" for n in range(COUNT)]


@pytest.mark.parametrize("revisit", ["keep", *slow("drop", "skip")])
def test_every_page_of_a_preferred_host_is_kept(crawl, a, b, urls, revisit):
    settings = {**PREFERRED, "NEARDUP_REVISIT": revisit}
    first = crawl(settings=settings, urls=urls)
    assert {*of(b)} <= {*first.urls}
    second = crawl(settings=settings, urls=urls)
    assert sorted(second.urls) == (sorted(of(b)) if revisit == "keep" else [])
    assert second.count("requests/skipped") == (2 * COUNT if revisit == "skip" else COUNT)


@pytest.mark.slow
def test_a_page_of_a_preferred_host_is_kept_in_each_run_though_a_copy_is_fetched_first(crawl, a, b, urls):
    for _ in range(3):
        result = crawl("OneAfterAnother", {**PREFERRED, "NEARDUP_SKIP_MIRRORS": False}, urls=urls)
        assert {*of(b)} <= {*result.urls}
    result = crawl("OneAfterAnother", {**PREFERRED, "NEARDUP_SKIP_MIRRORS": False}, urls=urls[::-1])
    assert sorted(result.urls) == sorted(of(b))


def test_what_was_a_copy_before_is_fetched_and_becomes_the_original(crawl, a, b, urls):
    crawl("OneAfterAnother", urls=urls)
    second = crawl("OneAfterAnother", PREFERRED, urls=urls[::-1])
    assert sorted(second.urls) == sorted(of(b))
    third = crawl("OneAfterAnother", PREFERRED, urls=urls)
    assert (sorted(third.urls), third.count("requests/skipped")) == (sorted(of(b)), COUNT)


@pytest.mark.parametrize(
    ("action", "mode"), [("tag", "drop"), *slow(("drop", "keep"), ("drop", "drop"), ("tag", "keep"))]
)
def test_further_near_copies_repeat_it(crawl, a, b, action, mode):
    with serving("127.0.0.3") as c:
        versions = [(a, ""), (b, ""), (c, ""), (a, "x")]
        for version, (site, more) in enumerate(versions):
            site.pages |= {f"/{n}{more}": Page(html(edited(n, version))) for n in range(COUNT)}
        urls = [f"{site.url}/{n}{more}" for site, more in versions for n in range(COUNT)]
        result = crawl("OneAfterAnother", {**PREFERRED, "NEARDUP_ACTION": action, "NEARDUP_REVISIT": mode}, urls=urls)
        new = [item["url"] for item in result.items if item.get("neardup", {}).get("status", "unique") == "unique"]
        assert new == urls[: 2 * COUNT]
        again = crawl("OneAfterAnother", {**PREFERRED, "NEARDUP_REVISIT": mode}, urls=urls)
        assert sorted(again.urls) == (sorted(urls[COUNT : 2 * COUNT]) if mode == "keep" else [])


def edited(number: int, version: int) -> str:
    words = article(number).split(" ")
    for place in random.Random(100 * version + number).sample(range(len(words)), 3):
        words[place] = f"edited{version}"
    return " ".join(words)


def test_where_it_does_not_deliver_the_other_does(crawl, a, b, urls):
    crawl("OneAfterAnother", PREFERRED, urls=urls)
    b.dead_status = 500
    for _ in range(3):
        result = crawl("OneAfterAnother", PREFERRED, urls=urls)
        assert {item["text"] for item in result.items} == {article(n) for n in range(COUNT)}


def test_several_items_of_its_pages(crawl, a, b):
    for site in (a, b):
        for page in range(2):
            site.pages[f"/{page}"] = Page("".join(f"<p>{article(n)}</p>" for n in (0, page + 1)))
    urls = [f"{site.url}/{page}" for site in (a, b) for page in range(2)]
    for _ in range(2):
        result = crawl("RowSpider", {**PREFERRED, "CONCURRENT_REQUESTS": 1}, urls=urls)
        assert sorted(item["text"] for item in result.items if b.url in item["url"]) == sorted(map(article, range(3)))
