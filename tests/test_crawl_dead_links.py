"""Dead links lead to a live mirror."""

from __future__ import annotations

import pytest
from site_server import Gate, Page, article, html, serving
from tiers import slow

FETCH = {"NEARDUP_SKIP_MIRRORS": False}


def live(site, path="/1.html", number=1):
    site.pages[path] = Page(html(article(number)))
    return f"{site.url}{path}"


@pytest.fixture
def pair(crawl, a, b):
    """Hold a page as that of a live URL and of a dead copy; return both URLs."""
    original, copy = live(a), f"{b.url}/copy.html"
    crawl.hold(original, copy)
    return original, copy


def rescued(result):
    return [(item["crawl_meta"].get("neardup", {}).get("instead_of"), item["crawled_url"]) for item in result.items]


@pytest.mark.parametrize("status", [404, 410])
def test_a_page_that_is_gone_comes_from_its_mirror(crawl, b, status, pair):
    original, copy = pair
    b.dead_status = status
    urls = [copy, original, f"{b.url}/nobody-knows-it.html"]
    result = crawl("OneAfterAnother", FETCH, urls=urls, with_meta=True)
    assert rescued(result) == [(copy, original)]  # and not once more from its own page
    ticket = {"url": original, "reason": "dead link", "instead_of": copy, "tried": [copy]}
    assert result.items[0]["crawl_meta"]["neardup"] == ticket
    assert [result.count(f"dead_links/{name}") for name in ("redirected", "rescued")] == [1, 1]


def test_of_many_dead_links_to_content_that_the_run_has_one_leads_to_it(crawl, a, b):
    original, dead = live(a), [f"{b.url}/gone-{number}.html" for number in range(4)]
    crawl.hold(original, *dead)
    result = crawl("OneAfterAnother", FETCH, urls=[original, *dead])
    assert (result.urls, a.asked()) == ([original], ["/1.html"] * 2)
    assert result.count("dead_links/redirected") == 1


def test_hosts_that_refuse_connections_or_do_not_answer_or_have_no_address(crawl, a, b):
    with serving("127.0.0.3") as refusing:
        pass
    copies = [f"{refusing.url}/1.html", f"{b.url}/2.html", "http://gone.invalid/3.html"]
    originals = [live(a, f"/{number}.html", number) for number in (1, 2, 3)]
    for number, (original, copy) in enumerate(zip(originals, copies, strict=True), 1):
        crawl.hold(original, copy, number=number)
    gate = b.pages = Gate({}, "/2.html")
    settings = {"DOWNLOAD_TIMEOUT": 0.5, "RETRY_ENABLED": True, "RETRY_TIMES": 1, **FETCH}
    result = crawl(urls=copies, settings=settings, with_meta=True)
    gate.opened.set()
    assert sorted(rescued(result)) == sorted(zip(copies, originals, strict=True))
    assert (result.stats["retry/max_reached"], result.count("dead_links/redirected")) == (3, 3)


def test_of_a_host_behind_a_proxy_that_is_dead_nothing_is_known(crawl, a, b):
    with serving("127.0.0.3") as proxy:
        pass
    copy = live(b, "/copy.html")
    crawl.hold(live(a), copy)
    result = crawl(urls=[copy], settings=FETCH, meta={"proxy": proxy.url})
    assert (result.items, a.asked()) == ([], [])


def test_a_canonical_that_is_gone_comes_from_a_mirror_past_others_that_are_gone_too(crawl, a, b):
    original, copy = f"{a.url}/original.html", live(b)
    crawl.hold(original, f"{a.url}/gone-too.html", copy)
    result = crawl(urls=[original], with_meta=True)
    assert rescued(result) == [(original, copy)]
    assert result.count("dead_links/redirected") in (1, 2)


def test_three_hops_and_no_more(crawl, a, b):
    gone = [f"{a.url}/gone-{n}.html" for n in range(6)]
    crawl.hold(*gone)
    result = crawl(urls=gone[:1])
    assert len(a.asked()) == 4
    assert (result.count("dead_links/redirected"), result.count("dead_links/rescued"), result.items) == (3, 0, [])
    assert result.stats["test/failed/HttpError"] == 1


def test_a_mirror_with_other_content_is_not_counted_as_rescue(crawl, a, b):
    original, copy = live(a, number=2), f"{b.url}/copy.html"
    crawl.hold(original, copy)
    result = crawl(urls=[copy], settings=FETCH, with_meta=True)
    assert len(result.items) == 1
    assert (result.count("dead_links/redirected"), result.count("dead_links/rescued")) == (1, 0)


def test_cookie_and_authorization_stay_with_their_host(crawl, a, b, pair):
    _, copy = pair
    headers = {"Authorization": "Basic c2VjcmV0", "X-Api-Key": "secret", "Accept-Language": "zh"}
    crawl(urls=[copy], settings=FETCH, headers=headers, cookies={"secret": "1"})
    assert {"Authorization", "Cookie", "X-Api-Key"} <= set(b.headers[0])
    assert a.headers[0].get("Accept-Language") == "zh"
    assert not {"Authorization", "Cookie", "X-Api-Key"} & set(a.headers[0])


@pytest.mark.parametrize(
    ("attributes", "meta", "found"),
    [
        ({"allowed_domains": ["127.0.0.2"]}, {}, 0),
        ({"allowed_domains": ["127.0.0.2", "127.0.0.1"]}, {}, 1),
        ({"allowed_domains": ["127.0.0.2"]}, {"allow_offsite": True}, 1),
    ],
)
def test_offsite_rules_hold(crawl, a, attributes, meta, found, pair):
    _, copy = pair
    result = crawl(urls=[copy], settings=FETCH, attributes=attributes, meta=meta)
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
def test_what_the_user_wants_to_see_dead_stays_dead(crawl, a, settings, args, pair):
    _, copy = pair
    result = crawl(urls=[copy], settings={**FETCH, **settings}, **args)
    assert a.asked() == []
    assert result.count("dead_links/redirected") == 0


def test_what_was_noted_of_a_rescue_is_not_of_other_requests_if_the_mirror_redirected(crawl, a, b):
    copies = [live(a), live(b, "/copy.html")]
    crawl.hold(*copies)
    a.pages["/new.html"] = Page(html(article(1), links=("/gone.html",)))
    a.pages["/1.html"], b.pages["/copy.html"] = Page(status=301, location="/new.html"), Page(status=404)
    result = crawl("MetaSpider", {**FETCH, "NEARDUP_ACTION": "tag"}, urls=copies[1:])
    assert result.urls == [f"{a.url}/new.html"]
    assert [result.count(f"dead_links/{name}") for name in ("redirected", "rescued")] == [1, 1]
