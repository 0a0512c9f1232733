"""Crawls of a site with a trap: a directory with the same content at any number of URLs."""

from __future__ import annotations

from urllib.parse import quote

import pytest
from site_server import Page, article, html
from tiers import slow

TRAPS = {"EXTENSIONS": {"scrapy_neardup.contrib.stop.Traps": 0}, "TRAPS_COPIES": 4}
ONE_BY_ONE = {"CONCURRENT_REQUESTS": 1, "CONCURRENT_ITEMS": 1, **TRAPS}
STOP_LISTING = {
    "SPIDER_MIDDLEWARES": {"scrapy_neardup.contrib.stop.StopListing": 0},
    "STOP_LISTING_ITEMS": 4,
}


def trapped(site) -> list[str]:
    """Put a trap, and pages in and beside its directory, on a site. Return their URLs."""
    pages = {f"/cal/month?m={number}&s=a": 1 for number in range(12)}
    pages |= {"/cal/month?day=3": 2, "/cal/notes.html": 3, "/news/one.html": 4}
    site.pages = {path: Page(html(article(seed))) for path, seed in pages.items()}
    return [site.url + path for path in pages]


def test_no_more_urls_of_a_trap_are_asked_for(crawl, a):
    made = crawl("OneAfterAnother", ONE_BY_ONE, urls=trapped(a))
    copies, stopped = made.count("duplicates"), made.count("requests/stopped")
    assert (made.count("unique"), copies + stopped) == (4, 11)
    assert 4 <= copies <= 6  # the next request may be sent before an item has passed
    assert len([path for path in a.asked() if path.startswith("/cal/month?m=")]) == 1 + copies
    assert made.log.count("WARNING: 4 URLs such as ") == 1


def test_numbers_tracking_and_repeated_parameters_and_spellings_make_no_directory(crawl, a):
    forms = ("/a/2026-{0}/month.html", "/b?m={0}&utm_{0}=a", "/c/2026/{0}/", "/d/?2026-{0}", f"/{'x' * 2000}/?m={{0}}")
    traps = [[form.format(number) for number in range(12)] for form in forms]
    traps += [[f"/{'~' if number % 2 else '%7E'}a/?m={number}{'&m=0' * (number % 3)}" for number in range(12)]]
    a.pages = {path: Page(html(article(seed))) for seed, trap in enumerate(traps) for path in trap}
    crawl("OneAfterAnother", ONE_BY_ONE, urls=[a.url + path for path in a.pages])
    assert [len({*trap} & {*a.asked()}) <= 7 for trap in traps] == [True] * 6


def test_directories_with_other_letters_and_other_hosts_have_budgets_of_their_own(crawl, a, b):
    names = [*"\u4e00\u4e01\u4e02\u4e03\u4e07\u4e08", "jan", "feb"]  # the Chinese ones differ in digits of escapes
    for site in (a, b):
        site.pages = {f"/cal/{quote(name)}/1": Page(html(article(1))) for name in names}
        site.pages |= {f"/cal/{number}": Page(html(article(1))) for number in range(3)}
    made = crawl("OneAfterAnother", ONE_BY_ONE, urls=[site.url + path for site in (a, b) for path in site.pages])
    assert (made.count("duplicates"), made.count("requests/stopped")) == (21, 0)


def test_several_copies_of_one_page_count_once(crawl, a):
    a.pages = {"/cal/list.html": Page(html("</p><p>".join([article(1)] * 9)))}
    a.pages |= {f"/cal/{number}.html": Page(html(article(number))) for number in range(5, 9)}
    made = crawl("RowSpider", ONE_BY_ONE, urls=[a.url + path for path in a.pages], own=True)
    assert (made.count("duplicates"), made.count("requests/stopped")) == (8, 0)


def test_copies_of_several_documents_are_counted_apart(crawl, a):
    a.pages = {f"/cal/month?m={number}": Page(html(article(number % 3))) for number in range(12)}
    urls = [a.url + path for path in a.pages]
    assert crawl("OneAfterAnother", ONE_BY_ONE, urls=urls).count("requests/stopped") == 0


def test_start_requests_and_audits_are_not_stopped(crawl, a):
    urls = trapped(a)
    started = crawl(settings=ONE_BY_ONE, urls=urls, start=True)
    audited = crawl(settings={**ONE_BY_ONE, "NEARDUP_ACTION": "audit", "NEARDUP_NAMESPACE": "audit"}, urls=urls)
    assert [each.count("requests/stopped") for each in (started, audited)] == [0, 0]
    assert [each.count("duplicates") for each in (started, audited)] == [11, 11]
    assert [each.log.count(" URLs such as ") for each in (started, audited)] == [1, 0]


def closing(site) -> list[str]:
    """Put pages on a site that close `/cal/`, and return their URLs."""
    site.pages |= {"/doc": Page(html(article(2)))}
    site.pages |= {f"/cal/{number}": Page(html(article(2))) for number in range(10, 20)}
    return [f"{site.url}/doc", *(f"{site.url}/cal/{number}" for number in range(10, 20))]


@pytest.fixture
def copied(crawl, a) -> tuple[str, str]:
    """Crawl a page and its copy in `/cal/`, and delete the page. Return both URLs."""
    a.pages = {"/original": Page(html(article(1))), "/cal/copy": Page(html(article(1)))}
    urls = [a.url + path for path in a.pages]
    crawl("OneAfterAnother", ONE_BY_ONE, urls=urls)
    del a.pages["/original"]
    return urls[0], urls[1]


@pytest.mark.slow
def test_a_dead_link_leads_into_a_closed_directory(crawl, a, copied):
    original, copy = copied
    made = crawl("OneAfterAnother", ONE_BY_ONE, urls=[*closing(a), original])
    assert made.count("requests/stopped") >= 3
    assert (made.count("dead_links/rescued"), made.urls[-1]) == (1, copy)


@pytest.mark.parametrize("limit", [TRAPS, *slow(STOP_LISTING)], ids=["traps", "listing"])
def test_a_skipped_request_is_sent_after_all_whatever_is_stopped(crawl, a, copied, limit):
    _, copy = copied
    settings = {"CONCURRENT_REQUESTS": 1, "CONCURRENT_ITEMS": 1, **limit}
    made = crawl("OneAfterAnother", settings, urls=[copy, *closing(a)])
    assert made.count("requests/stopped") >= 1
    assert (made.count("requests/sent_after_all"), made.urls[-1]) == (1, copy)


def test_a_page_from_the_original_host_counts_for_the_directory_of_its_mirror(crawl, a, b):
    urls = closing(a)
    a.pages |= {f"/cal/{number}": Page(html(article(3))) for number in range(20, 32)}
    hosts = {b.url.removeprefix("http://"): a.url.removeprefix("http://")}
    settings = {**ONE_BY_ONE, "NEARDUP_MIRROR_HOSTS": hosts, "NEARDUP_REDIRECT_MIRRORS": True}
    made = crawl("OneAfterAnother", settings, urls=[*urls, *(f"{b.url}/cal/{number}" for number in range(20, 32))])
    assert (made.count("unique"), made.log.count("WARNING: 4 URLs such as ")) == (2, 2)
    assert 5 <= len([path for path in a.asked() if path in (f"/cal/{number}" for number in range(20, 32))]) <= 7
    assert b.asked() == []
