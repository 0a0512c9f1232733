"""Dead links lead to a live mirror."""

from __future__ import annotations

import pytest
from site_server import Gate, Page, article, html, serving
from tiers import slow

from scrapy_neardup import Deduplicator, Document


def hold(crawl, *copies, words=150):
    """Enter an article in the store under several URLs, the first of which is the canonical."""
    with Deduplicator.open(crawl.store) as dedup:
        for url in copies:
            dedup.claim(Document(url=url, text=article(1, words))).commit()


def live(site, path="/1.html", number=1):
    site.pages[path] = Page(html(article(number)))
    return f"{site.url}{path}"


def rescued(result):
    return [(item["crawl_meta"].get("neardup", {}).get("instead_of"), item["crawled_url"]) for item in result.items]


@pytest.mark.parametrize("status", [404, 410])
def test_a_page_that_is_gone_comes_from_its_mirror(crawl, a, b, status):
    original, copy = live(a), f"{b.url}/copy.html"
    hold(crawl, original, copy)
    b.dead_status = status
    settings = {"NEARDUP_SKIP_MIRRORS": False}
    result = crawl("OneAfterAnother", settings, urls=[copy, original], with_meta=True)
    assert rescued(result) == [(copy, original)]  # and not once more from its own page
    ticket = {"url": original, "reason": "dead link", "instead_of": copy, "tried": [copy]}
    assert result.items[0]["crawl_meta"]["neardup"] == ticket
    assert [result.count(f"dead_links/{name}") for name in ("redirected", "rescued")] == [1, 1]


def test_a_host_that_refuses_connections(crawl, a):
    with serving("127.0.0.2") as b:
        copy = f"{b.url}/copy.html"
    original = live(a)
    hold(crawl, original, copy)
    retries = {"RETRY_ENABLED": True, "RETRY_TIMES": 1, "NEARDUP_SKIP_MIRRORS": False}
    result = crawl(urls=[copy], settings=retries, with_meta=True)
    assert rescued(result) == [(copy, original)]
    assert (result.stats["retry/max_reached"], result.count("dead_links/redirected")) == (1, 1)


def test_of_a_host_behind_a_proxy_that_is_dead_nothing_is_known(crawl, a, b):
    with serving("127.0.0.3") as proxy:
        pass
    copy = live(b, "/copy.html")
    hold(crawl, live(a), copy)
    result = crawl(urls=[copy], settings={"NEARDUP_SKIP_MIRRORS": False}, meta={"proxy": proxy.url})
    assert (result.items, a.asked()) == ([], [])


def test_a_host_without_address(crawl, a):
    original, copy = live(a), "http://gone.invalid/copy.html"
    hold(crawl, original, copy)
    assert rescued(crawl(urls=[copy], settings={"NEARDUP_SKIP_MIRRORS": False}, with_meta=True)) == [(copy, original)]


def test_a_host_that_does_not_answer(crawl, a, b):
    original, copy = live(a), f"{b.url}/copy.html"
    gate = b.pages = Gate({}, "/copy.html")
    hold(crawl, original, copy)
    settings = {"DOWNLOAD_TIMEOUT": 0.5, "NEARDUP_SKIP_MIRRORS": False}
    assert rescued(crawl(urls=[copy], settings=settings, with_meta=True)) == [(copy, original)]
    gate.opened.set()


def test_a_canonical_that_is_gone_comes_from_a_mirror_past_others_that_are_gone_too(crawl, a, b):
    original, copy = f"{a.url}/original.html", live(b)
    hold(crawl, original, f"{a.url}/gone-too.html", copy)
    result = crawl(urls=[original], with_meta=True)
    assert rescued(result) == [(original, copy)]
    assert result.count("dead_links/redirected") in (1, 2)


def test_three_hops_and_no_more(crawl, a, b):
    gone = [f"{a.url}/gone-{n}.html" for n in range(6)]
    hold(crawl, *gone)
    result = crawl(urls=gone[:1])
    assert len(a.asked()) == 4
    assert (result.count("dead_links/redirected"), result.count("dead_links/rescued"), result.items) == (3, 0, [])
    assert result.stats["test/failed/HttpError"] == 1


def test_a_mirror_with_other_content_is_not_counted_as_rescue(crawl, a, b):
    original, copy = live(a, number=2), f"{b.url}/copy.html"
    hold(crawl, original, copy)
    result = crawl(urls=[copy], settings={"NEARDUP_SKIP_MIRRORS": False}, with_meta=True)
    assert len(result.items) == 1
    assert (result.count("dead_links/redirected"), result.count("dead_links/rescued")) == (1, 0)


def test_cookie_and_authorization_stay_with_their_host(crawl, a, b):
    original, copy = live(a), f"{b.url}/copy.html"
    hold(crawl, original, copy)
    secrets = {"Authorization": "Basic c2VjcmV0", "Cookie": "secret=1", "X-Api-Key": "secret", "Accept-Language": "zh"}
    crawl(
        urls=[copy],
        settings={"NEARDUP_SKIP_MIRRORS": False, "COOKIES_ENABLED": False},
        headers=secrets,
    )
    assert {"Authorization", "Cookie", "X-Api-Key"} <= set(b.headers[0])
    assert a.headers[0].get("Accept-Language") == "zh"
    assert not {"Authorization", "Cookie", "X-Api-Key"} & set(a.headers[0])


def test_cookies_of_the_request_stay_with_their_host(crawl, a, b):
    original, copy = live(a), f"{b.url}/copy.html"
    hold(crawl, original, copy)
    crawl(urls=[copy], settings={"NEARDUP_SKIP_MIRRORS": False}, cookies={"secret": "1"})
    assert "Cookie" in b.headers[0]
    assert "Cookie" not in a.headers[0]


def test_on_the_same_host_authorization_goes_along(crawl, a):
    original, copy = live(a), f"{a.url}/copy.html"
    hold(crawl, original, copy)
    crawl(urls=[copy], settings={"NEARDUP_SKIP_MIRRORS": False}, headers={"Authorization": "Basic c2VjcmV0"})
    assert [headers.get("Authorization") for headers in a.headers] == ["Basic c2VjcmV0"] * 2


@pytest.mark.parametrize(
    ("attributes", "meta", "found"),
    [
        ({"allowed_domains": ["127.0.0.2"]}, {}, 0),
        ({"allowed_domains": ["127.0.0.2", "127.0.0.1"]}, {}, 1),
        ({"allowed_domains": ["127.0.0.2"]}, {"allow_offsite": True}, 1),
    ],
)
def test_offsite_rules_hold(crawl, a, b, attributes, meta, found):
    original, copy = live(a), f"{b.url}/copy.html"
    hold(crawl, original, copy)
    result = crawl(urls=[copy], settings={"NEARDUP_SKIP_MIRRORS": False}, attributes=attributes, meta=meta)
    assert (len(result.items), len(a.asked())) == (found, found)


@pytest.mark.parametrize(
    ("settings", "args"),
    [
        ({"NEARDUP_DEAD_HTTP_CODES": []}, {}),
        ({}, {"meta": {"dont_neardup": True}}),
        ({}, {"meta": {"handle_httpstatus_list": [404]}}),
        *slow(
            ({"NEARDUP_DEAD_HTTP_CODES": [410]}, {}),
            ({}, {"meta": {"handle_httpstatus_all": True}}),
            ({}, {"attributes": {"handle_httpstatus_list": [404]}}),
            ({}, {"method": "POST"}),
        ),
    ],
)
def test_what_the_user_wants_to_see_dead_stays_dead(crawl, a, b, settings, args):
    original, copy = live(a), f"{b.url}/copy.html"
    hold(crawl, original, copy)
    result = crawl(urls=[copy], settings={"NEARDUP_SKIP_MIRRORS": False, **settings}, **args)
    assert a.asked() == []
    assert result.count("dead_links/redirected") == 0


def test_the_robots_txt_of_the_mirror_applies(crawl, a, b):
    original, copy = live(a), f"{b.url}/copy.html"
    a.pages["/robots.txt"] = Page("User-agent: *\nDisallow: /")
    hold(crawl, original, copy)
    crawl(urls=[copy], settings={"NEARDUP_SKIP_MIRRORS": False, "ROBOTSTXT_OBEY": True})
    assert a.asked() == []


def test_a_dead_link_nobody_knows_stays_dead(crawl, a):
    result = crawl(urls=[f"{a.url}/nowhere.html"])
    assert result.count("dead_links/redirected") == 0


def test_what_was_noted_of_a_rescue_is_not_of_requests_that_get_its_meta(crawl, a, b):
    original, copy = live(a), f"{b.url}/copy.html"
    a.pages["/1.html"] = Page(html(article(1), links=("/gone-1.html", "/gone-2.html")))
    hold(crawl, original, copy)
    result = crawl("MetaSpider", {"NEARDUP_SKIP_MIRRORS": False}, urls=[copy])
    assert [result.count(f"dead_links/{name}") for name in ("redirected", "rescued")] == [1, 1]
    assert len(result.items) == 1


def test_nor_where_the_mirror_led_elsewhere(crawl, a, b):
    copies = [live(a), live(b, "/copy.html")]
    hold(crawl, *copies)
    a.pages["/new.html"] = Page(html(article(1), links=("/gone.html",)))
    a.pages["/1.html"], b.pages["/copy.html"] = Page(status=301, location="/new.html"), Page(status=404)
    result = crawl("MetaSpider", {"NEARDUP_SKIP_MIRRORS": False, "NEARDUP_ACTION": "tag"}, urls=copies[1:])
    assert result.urls == [f"{a.url}/new.html"]
    assert [result.count(f"dead_links/{name}") for name in ("redirected", "rescued")] == [1, 1]
