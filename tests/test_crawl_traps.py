"""Crawls of a site with a trap: a directory with the same content at any number of URLs."""

from __future__ import annotations

from site_server import Page, article, html

ONE_BY_ONE = {"CONCURRENT_REQUESTS": 1, "CONCURRENT_ITEMS": 1, "NEARDUP_MAX_COPIES": 4}


def trapped(site) -> list[str]:
    """Put a trap, and pages in and beside its directory, on a site. Return their URLs."""
    pages = {f"/cal/month?m={number}&s=a": 1 for number in range(12)}
    pages |= {"/cal/month?day=3": 2, "/cal/notes.html": 3, "/news/one.html": 4}
    site.pages = {path: Page(html(article(seed))) for path, seed in pages.items()}
    return [site.url + path for path in pages]


def test_no_more_urls_of_a_trap_are_asked_for(crawl, a):
    made = crawl(settings=ONE_BY_ONE, urls=trapped(a))
    copies, stopped = made.count("duplicates"), made.count("requests/over_budget")
    assert (made.count("unique"), copies + stopped) == (4, 11)
    assert 4 <= copies <= 6  # Scrapy sends the next request before an item has passed
    assert len([path for path in a.asked() if path.startswith("/cal/month?m=")]) == 1 + copies
    assert made.log.count("WARNING: 4 URLs such as ") == 1


def test_a_later_run_asks_again(crawl, a):
    settings = {**ONE_BY_ONE, "NEARDUP_SKIP_MIRRORS": False}
    urls = trapped(a)
    for _ in range(2):
        assert 5 <= crawl(settings=settings, urls=urls).count("requests/over_budget") <= 7


def test_copies_of_several_documents_are_counted_apart(crawl, a):
    a.pages = {f"/cal/month?m={number}": Page(html(article(number % 3))) for number in range(12)}
    urls = [a.url + path for path in a.pages]
    assert crawl(settings=ONE_BY_ONE, urls=urls).count("requests/over_budget") == 0


def test_start_requests_and_audits_are_not_stopped(crawl, a):
    urls = trapped(a)
    started = crawl(settings=ONE_BY_ONE, urls=urls, start=True)
    audited = crawl(settings={**ONE_BY_ONE, "NEARDUP_ACTION": "audit", "NEARDUP_NAMESPACE": "audit"}, urls=urls)
    assert [each.count("requests/over_budget") for each in (started, audited)] == [0, 0]
    assert audited.count("duplicates") == 11
