"""Known mirrors are not fetched."""

from __future__ import annotations

from pathlib import Path

import pytest
import scrapy
from helpers import text
from site_server import Page, article, html, mirror
from tiers import slow


@pytest.fixture
def urls(a, b):
    return mirror(a, b, 4)


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
    assert result.stats["test/failed/AdvisedAgainst"] == 4
    assert f"Skipped <GET {urls[4]}>: its content is held as {urls[0]}" in result.log


FETCHED = [
    ({"NEARDUP_SKIP_MIRRORS": False}, {}),
    ({"NEARDUP_MIRROR_TTL": 0}, {}),
    ({"NEARDUP_PREFERRED_HOSTS": ["127.0.0.2"]}, {}),
    ({"NEARDUP_RECHECK": 1}, {}),
    ({}, {"meta": {"dont_neardup": True}}),
    ({}, {"method": "POST"}),
    ({}, {"body": "which of them is what the URL does not say"}),
    ({}, {"start": True}),
]


def test_what_must_be_fetched_is_fetched_and_a_start_request_skipped_only_where_the_user_says_so(crawl, a, b, urls):
    crawl("OneAfterAnother", urls=urls)
    held = Path(crawl.store).read_bytes()
    for settings, args in FETCHED:
        Path(crawl.store).write_bytes(held)
        asked = len(b.requests)
        result = crawl("ListSpider", settings, urls=urls, **args)
        assert sorted(b.asked(since=asked)) == [f"/{n}.html" for n in range(4)], (settings, args)
        assert result.count("requests/skipped") == 0
    Path(crawl.store).write_bytes(held)
    asked = len(b.requests)
    result = crawl("ListSpider", {"NEARDUP_SKIP_START": True}, urls=urls, start=True)
    assert (b.asked(since=asked), result.count("requests/skipped")) == ([], 4)


@pytest.mark.parametrize("with_meta", [True, *slow(False)])
def test_what_a_callback_awaits_is_never_skipped(crawl, a, b, urls, with_meta):
    crawl("OneAfterAnother", urls=urls)
    a.pages["/new.html"] = Page(html(article(9)))
    result = crawl("InlineSpider", urls=[f"{a.url}/new.html"], inline=urls[4], with_meta=with_meta)
    assert (result.urls, result.count("requests/skipped")) == ([f"{a.url}/new.html"], 0)
    assert "ERROR" not in result.log


@pytest.mark.parametrize("anew", [True, *slow(False)])
def test_what_a_spider_asks_for_again_is_sent(crawl, a, b, urls, anew):
    result, asked = second_run(crawl, b, urls[:2] + urls[4:6])
    assert (asked, result.count("requests/skipped")) == ([], 2)
    result = crawl("AgainSpider", urls=urls[:2] + urls[4:6], anew=anew)
    assert (len(b.asked()), result.count("requests/skipped")) == (4, 2)


@pytest.mark.slow
def test_what_a_spider_asks_for_again_is_sent_though_it_redirects_to_another_copy(crawl, a, b, urls):
    crawl("OneAfterAnother", urls=urls)
    asked = len(b.requests)
    b.pages["/0.html"] = Page(status=301, location="/1.html")
    result = crawl("AgainSpider", urls=[urls[0], f"{b.url}/0.html"], anew=True)
    assert (b.asked(since=asked), result.count("requests/skipped")) == (["/0.html", "/1.html"], 1)


def test_rechecks_find_what_was_skipped_wrongly(crawl, a, b, urls):
    crawl("OneAfterAnother", urls=urls)
    b.pages["/1.html"] = Page(html(article(99), "b"))
    result = crawl("OneAfterAnother", {"NEARDUP_RECHECK": 1}, urls=urls)
    assert (result.count("requests/rechecked"), result.count("requests/wrongly_skipped")) == (4, 1)
    assert f"{b.url}/1.html" in result.urls
    asked = len(b.requests)
    crawl("OneAfterAnother", urls=urls)
    assert b.asked(since=asked) == ["/0.html", "/1.html"]  # the first is a copy, but led to the other


def test_a_failed_recheck_ends_all_skips_for_that_document(crawl, a, b):
    a.pages["/"] = Page(html(article(1, 300), "a"))
    paths = [f"/{number}.html" for number in range(4)]
    b.pages = {path: Page(html(article(1, 300), "b")) for path in paths}
    urls = [f"{a.url}/", *(b.url + path for path in paths)]
    crawl("OneAfterAnother", urls=urls)
    b.pages = {path: Page(html(article(10 + number), "b")) for number, path in enumerate(paths)}
    result = crawl("OneAfterAnother", {"NEARDUP_RECHECK": 1}, urls=urls)
    assert (result.count("requests/rechecked"), result.count("requests/wrongly_skipped")) == (1, 1)
    assert sorted(result.urls) == sorted(urls)


def test_revisits_are_dropped_but_for_a_page_that_changed(crawl, a, b, urls):
    crawl("OneAfterAnother", urls=urls)
    a.pages["/2.html"] = Page(html(article(77), "a"))
    before = len(a.requests)
    result = crawl("ListSpider", {"NEARDUP_REVISIT": "drop"}, urls=urls)
    assert (result.urls, len(a.asked(since=before))) == ([f"{a.url}/2.html"], 4)
    evidence = f"is a revisit of {urls[0]} (found by exact, resemblance 1.0)"
    assert f"INFO: Dropped: {urls[0]} {evidence}\n" in result.log


def test_robots_txt_is_always_fetched(crawl, a, b, urls):
    result, asked = second_run(crawl, b, urls, {"ROBOTSTXT_OBEY": True})
    assert asked == []
    assert result.stats["robotstxt/request_count"] == 1  # of the first host: the other one's pages were all skipped


def test_a_page_that_was_never_fetched_is_never_skipped(crawl, a, b):
    for number, site in enumerate((a, b)):
        site.pages["/list"] = Page(html(article(1), "a", links=("/detail",)))
        site.pages["/detail"] = Page(html(article(10 + number), "a"))
    urls = [f"{a.url}/list", f"{b.url}/list"]
    for _ in range(2):
        before = len(b.requests)
        result = crawl("TeaserSpider", {"NEARDUP_REVISIT": "skip", "CONCURRENT_REQUESTS": 1}, urls=urls)
        assert "/detail" in b.asked(since=before) or f"{b.url}/detail" in result.log
    with_details = crawl("TeaserSpider", {"NEARDUP_REVISIT": "keep"}, urls=urls)
    assert article(11) in {item["text"] for item in with_details.items}


@pytest.mark.slow
def test_an_answer_to_a_form_says_nothing_of_the_pages_that_it_lists(crawl, a, b):
    crawl(urls=mirror(a, b, 1)[:1])
    b.pages["/search"], b.pages["/detail"] = Page(html(article(0), links=("/detail",))), Page(html(article(1)))
    result = crawl("TeaserSpider", {"NEARDUP_REVISIT": "drop"}, urls=[f"{b.url}/search"], method="POST")
    assert (b.asked(), result.count("duplicates"), result.urls) == (["/search", "/detail"], 1, [f"{b.url}/detail"])


def test_pages_behind_a_list_say_nothing_of_what_led_to_the_list(crawl, a):
    def publish(count):
        links = tuple(f"/{n}.html" for n in range(count))
        a.pages |= {link: Page(html(article(n))) for n, link in enumerate(links)} | {
            "/news/": Page(html("", links=links))
        }

    a.pages["/news"] = Page(status=301, location="/news/")
    for count in (3, 4):
        publish(count)
        asked = len(a.requests)
        result = crawl("IndexSpider", {"NEARDUP_REVISIT": "skip"}, urls=[f"{a.url}/news"])
    assert a.asked(since=asked) == ["/news", "/news/", "/3.html"]
    assert result.urls == [f"{a.url}/3.html"]


@pytest.mark.slow
def test_pages_behind_a_start_request_are_skipped_whatever_meta_they_get(crawl, a, b, urls):
    crawl("OneAfterAnother", urls=urls)
    b.pages["/list"] = Page(html("", links=tuple(f"/{n}.html" for n in range(4))))
    asked = len(b.requests)
    a.pages["/list"] = b.pages["/list"]
    result = crawl("IndexSpider", urls=[f"{a.url}/list", f"{b.url}/list"], start=True)
    assert b.asked(since=asked) == ["/list"]
    assert result.count("requests/skipped") == 4


def test_a_page_of_which_an_item_was_not_judged_is_never_skipped(crawl, a, b):
    for site, paragraphs in ((a, [text(1)]), (b, [text(1), "impossible " + text(2)])):
        site.pages["/1"] = Page("".join(f"<p>{paragraph}</p>" for paragraph in paragraphs))
    settings = {"NEARDUP_DETECTORS": ["exact", "spiders.Choosy"]}
    urls = [f"{a.url}/1", f"{b.url}/1"]
    result = crawl("ManySpider", settings, urls=urls)
    assert (result.count("duplicates"), result.count("errors")) == (1, 1)
    crawl("ManySpider", settings, urls=urls)
    assert b.asked() == ["/1", "/1"]


@pytest.mark.skipif(scrapy.version_info[:2] == (2, 14), reason="Scrapy 2.14 loses what a middleware gives instead")
def test_a_page_whose_second_item_came_from_a_middleware_is_not_skipped(crawl, a):
    a.pages["/1"] = Page(html(article(1)))
    settings = {"SPIDER_MIDDLEWARES": {"spiders.Replacement": 700}, "NEARDUP_REVISIT": "skip"}
    assert [len(crawl("GivesUp", settings, urls=[f"{a.url}/1"]).items) for _ in range(2)] == [2, 0]
    assert a.asked() == ["/1", "/1"]


def test_a_copy_is_fetched_for_its_late_link_however_many_links_came_before(crawl, a):
    listed = html(article(0))
    a.pages = {"/list": Page(listed), "/copy": Page(html(article(0), links=("/list",) * 9 + ("/late",)))}
    for number in range(1, 6):
        a.pages[f"/{number}"] = Page(html(article(number), links=(f"/of{number}",)))
    for number, path in enumerate(["/late", *(f"/of{number}" for number in range(1, 6))], 10):
        a.pages[path] = Page(html(article(number)))
    urls = [f"{a.url}/{path}" for path in ("list", "copy", 1, 2, 3, 4, 5)]
    for _ in range(2):
        asked = len(a.requests)
        few = {"scrapy_neardup.crawl.middleware.LINKS": 3}
        crawl("SiteSpider", {"CONCURRENT_REQUESTS": 1}, urls=urls, patch=few)
        assert "/copy" in a.asked(since=asked)


def test_what_a_temporary_redirect_or_an_error_gave_is_no_reason_to_skip(crawl, a, b):
    for site in (a, b):
        site.pages = {"/0": Page(status=302, location="/login"), "/login": Page(html(article(50)))}
        site.pages["/1"] = Page(html(article(51)), status=503)
    urls = [f"{site.url}/{number}" for site in (a, b) for number in range(2)]
    assert len(crawl("OneAfterAnother", urls=urls, meta={"handle_httpstatus_list": [503]}).items) == 2
    for number, site in enumerate((a, b)):
        site.pages = {f"/{page}": Page(html(article(10 * number + page))) for page in range(2)}
    result = crawl("OneAfterAnother", urls=urls)
    waiting = [result.count(f"requests/{name}") for name in ("skipped", "sent_after_all")]
    assert [len(result.items), *waiting] == [4, 0, 0]


@pytest.mark.parametrize(("words", "paths"), [(45, ["/0", "/1"]), *slow((110, ["/0", "/1", "/2", "/3"]))])
def test_pages_behind_a_notice_are_fetched_though_one_of_them_still_has_it(crawl, a, b, words, paths):
    a.pages = {path: Page(html(article(50, words))) for path in paths}
    b.pages = {**a.pages}
    urls = [site.url + path for site in (a, b) for path in paths]
    assert crawl("OneAfterAnother", urls=urls).urls == urls[:1]
    a.pages |= {path: Page(html(article(number))) for number, path in enumerate(paths[1:])}
    b.pages = {path: Page(html(article(10 + number))) for number, path in enumerate(paths)}
    assert crawl("OneAfterAnother", urls=urls).urls == urls


def test_revisits_are_skipped_though_mirrors_are_not(crawl, a, b, urls):
    crawl("OneAfterAnother", urls=urls)
    before = len(a.requests), len(b.requests)
    result = crawl("ListSpider", {"NEARDUP_REVISIT": "skip", "NEARDUP_SKIP_MIRRORS": False}, urls=urls)
    assert (len(a.asked(since=before[0])), len(b.asked(since=before[1])), result.items) == (0, 4, [])
