"""Crawls that ask for held pages on the condition that they have changed."""

from __future__ import annotations

import pytest
from cli import succeeded
from site_server import Page, article, html

from scrapy_neardup import Deduplicator

ON = {"NEARDUP_CONDITIONAL": True, "NEARDUP_REVISIT": "drop"}
CONDITIONS = {"If-None-Match", "If-Modified-Since"}


def page(number: int, *links: str, tag: str = "", time: str = "") -> Page:
    headers = {"ETag": f'"{tag or number}"'} if not time else {"Last-Modified": time}
    return Page(html(article(number), links=links), headers=headers)


def chain(site) -> list[str]:
    """Serve three pages, each of which has the only link to the next one. Return the first URL."""
    site.pages = {"/1": page(1, "/2"), "/2": page(2, "/3"), "/3": page(3)}
    return [f"{site.url}/1"]


def conditions(site, since: int = 0) -> list[str]:
    """Return the paths that were asked for on a condition."""
    headers = site.headers[since:]
    return [path for path, given in zip(site.requests[since:], headers, strict=True) if CONDITIONS & given.keys()]


@pytest.mark.parametrize("crawl", ["file", "server"], indirect=True)
def test_unchanged_pages_are_revisits_and_their_links_are_followed(crawl, a):
    urls = chain(a)
    first = crawl("SiteSpider", ON, urls=urls)
    assert (len(first.items), conditions(a), first.count("requests/not_modified")) == (3, [], 0)
    for _ in range(2):
        since = len(a.requests)
        result = crawl("SiteSpider", ON, urls=urls)
        assert conditions(a, since) == a.asked(since=since) == ["/1", "/2", "/3"]
        assert (result.items, result.count("requests/not_modified")) == ([], 3)
        assert [result.count(name) for name in ("documents", "revisits", "requests/skipped")] == [3, 3, 0]
        assert result.count("bytes_saved") > 1000


@pytest.mark.parametrize("time", ["", "Mon, 23 Nov 2026 10:00:00 GMT"])
def test_a_changed_page_behind_an_unchanged_one_gives_an_item(crawl, a, time):
    a.pages = {"/1": page(1, "/2", time=time), "/2": page(2, time=time)}
    urls = [f"{a.url}/1"]
    crawl("SiteSpider", ON, urls=urls)
    a.pages["/2"] = page(5, "/3", time=time and "Tue, 24 Nov 2026 10:00:00 GMT")
    a.pages["/3"] = page(6, time=time)
    result = crawl("SiteSpider", ON, urls=urls)
    assert sorted(item["text"] for item in result.items) == sorted([article(5), article(6)])
    again = crawl("SiteSpider", ON, urls=urls)
    assert (again.items, again.count("requests/not_modified")) == ([], 3)


def test_without_the_setting_nothing_is_sent_or_stored(crawl, a):
    urls = chain(a)
    for _ in range(2):
        crawl("SiteSpider", {"NEARDUP_REVISIT": "drop"}, urls=urls)
    assert conditions(a) == []
    with Deduplicator.open(crawl.store) as dedup:
        assert not any(link.page for link in dedup.store.all_links())


def test_a_crawl_with_keep_is_refused(crawl, a):
    result = crawl.finish(crawl.start("SiteSpider", {"NEARDUP_CONDITIONAL": True}, urls=chain(a)))
    assert "NEARDUP_CONDITIONAL = True is not allowed with NEARDUP_REVISIT = 'keep'" in result.log + result.errors
    assert a.asked() == []


@pytest.mark.parametrize("policy", ["DummyPolicy", "RFC2616Policy"])
def test_with_an_http_cache(crawl, a, tmp_path, policy):
    urls = chain(a)
    cache = {"HTTPCACHE_ENABLED": True, "HTTPCACHE_POLICY": f"scrapy.extensions.httpcache.{policy}"}
    cached = {**ON, **cache, "HTTPCACHE_DIR": str(tmp_path / "cache"), "HTTPCACHE_EXPIRATION_SECS": 1}
    texts = []
    for run in range(3):
        # The second run has no cache, and the third one has that of the first.
        result = crawl("SiteSpider", ON if run == 1 else cached, urls=urls)
        texts += [item["text"] for item in result.items]
        assert result.count("errors") == 0
    assert sorted(texts) == sorted(map(article, (1, 2, 3)))
    a.pages["/3"] = page(7)
    crawl("SiteSpider", ON, urls=urls)
    assert not any(b" 304" in path.read_bytes() for path in (tmp_path / "cache").rglob("response_headers"))


def test_an_http_cache_never_holds_an_answer_304(crawl, a, tmp_path):
    urls = chain(a)
    crawl("SiteSpider", ON, urls=urls)
    cached = {**ON, "HTTPCACHE_ENABLED": True, "HTTPCACHE_DIR": str(tmp_path / "cache")}
    assert crawl("SiteSpider", cached, urls=urls).count("requests/not_modified") == 3
    a.pages["/1"] = page(8, "/2")
    assert [item["text"] for item in crawl("SiteSpider", cached, urls=urls).items] == [article(8)]


@pytest.mark.parametrize("meta", [{"download_price": 3}, {"download_price": "4"}, {}])
def test_a_request_with_other_data_is_sent_without_a_condition(crawl, a, meta):
    urls = chain(a)
    crawl("SiteSpider", ON, urls=urls, meta={"download_price": 4})
    crawl("SiteSpider", ON, urls=urls, meta=meta)
    assert conditions(a) == ["/2", "/3"]  # these requests carry no data


@pytest.mark.parametrize("spider", ["LambdaSpider", "FailingSpider", "TwoItemsSpider"])
def test_a_page_is_asked_for_in_full_if_its_output_can_not_be_repeated(crawl, a, spider):
    urls = chain(a)
    for _ in range(2):
        crawl(spider, ON, urls=urls)
    assert "/1" not in conditions(a)


def test_a_redirect_does_not_carry_a_condition(crawl, a):
    urls = chain(a)
    crawl("SiteSpider", ON, urls=urls)
    a.pages["/1"] = Page(status=302, location="/new")
    a.pages["/new"] = page(9, tag="1")
    result = crawl("SiteSpider", ON, urls=urls)
    assert conditions(a) == ["/1"]
    assert [item["text"] for item in result.items] == [article(9)]


@pytest.mark.parametrize(
    ("settings", "args"),
    [
        ({"NEARDUP_ACTION": "audit"}, {}),
        ({"NEARDUP_RECHECK": 1}, {}),
        ({}, {"meta": {"dont_neardup": True}}),
        ({}, {"headers": {"Range": "bytes=0-99999"}}),
    ],
)
def test_some_requests_are_sent_in_full(crawl, a, settings, args):
    a.pages = {"/1": page(1)}
    urls = [f"{a.url}/1"]
    crawl("SiteSpider", ON, urls=urls)
    crawl("SiteSpider", {**ON, **settings}, urls=urls, **args)
    assert conditions(a) == []


def test_a_copy_is_skipped_and_the_original_asked_for_on_a_condition(crawl, a):
    a.pages = {"/": Page(html("", links=("/1", "/copy"))), "/1": page(1), "/copy": page(1)}
    urls = [f"{a.url}/"]
    crawl("SiteSpider", {**ON, "CONCURRENT_REQUESTS": 1}, urls=urls)
    since = len(a.requests)
    result = crawl("SiteSpider", {**ON, "CONCURRENT_REQUESTS": 1}, urls=urls)
    assert (conditions(a, since), result.count("requests/skipped")) == (["/1"], 1)


def test_changes_of_crawls_on_conditions(crawl, a):
    settings, urls = {**ON, "NEARDUP_COUNT_CHANGES": True}, chain(a)

    def counts(result):
        return {kind: result.count(f"changes/{kind}") for kind in ("new", "changed", "back", "moved", "gone")}

    nothing = dict.fromkeys(("new", "changed", "back", "moved", "gone"), 0)
    assert counts(crawl("SiteSpider", settings, urls=urls)) == {**nothing, "new": 3}
    assert counts(crawl("SiteSpider", settings, urls=urls)) == nothing
    a.pages["/2"] = page(5, "/4")
    a.pages["/4"] = page(6)
    assert counts(crawl("SiteSpider", settings, urls=urls)) == {**nothing, "changed": 1, "new": 1, "gone": 1}
    assert counts(crawl("SiteSpider", settings, urls=urls)) == nothing


def test_an_export_keeps_what_conditions_need(crawl, a, tmp_path):
    urls = chain(a)
    crawl("SiteSpider", ON, urls=urls)
    succeeded(tmp_path, "export", "-o", "export.jsonl", "--store", crawl.store)
    crawl.store = str(tmp_path / "imported.sqlite")
    succeeded(tmp_path, "import", "export.jsonl", "--store", crawl.store)
    assert crawl("SiteSpider", ON, urls=urls).count("requests/not_modified") == 3


def test_a_crawl_spider(crawl, a):
    urls = chain(a)
    for _ in range(2):
        since = len(a.requests)
        crawl("RuleSpider", {**ON, "RETRY_ENABLED": True}, urls=urls)
    assert conditions(a, since) == a.asked(since=since) == ["/1", "/2", "/3"]
