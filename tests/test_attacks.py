"""Hostile sites: what they do, and what a crawl loses by it. docs/security.md says what is promised."""

from __future__ import annotations

import pytest
from life import publish
from site_server import Page, Site, article, html
from tiers import slow, some

FETCH_ALL = {"NEARDUP_SKIP_MIRRORS": False}


# Detours


@pytest.fixture
def internet(b: Site, monkeypatch: pytest.MonkeyPatch) -> Site:
    """Serve pages of public hosts: the crawl reaches them through a proxy, and private hosts directly."""
    monkeypatch.setenv("http_proxy", b.url)
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    return b


def test_no_dead_public_page_is_replaced_by_a_private_one(crawl, a, internet):
    a.pages["/1.html"] = Page(html(article(1)))
    crawl.hold("http://public.example/1.html", f"{a.url}/1.html")
    result = crawl(settings=FETCH_ALL, urls=["http://public.example/1.html"])
    assert (result.items, a.requests, result.count("dead_links/redirected")) == ([], [], 0)


@pytest.mark.parametrize("location", ["{private}/1.html", "http://2130706433:{port}/1.html"])
def test_no_dead_page_is_replaced_by_a_public_copy_that_redirects_to_a_private_one(crawl, a, internet, location):
    a.pages["/1.html"] = Page(html(article(1)))
    to = location.format(private=a.url, port=a.url.rpartition(":")[2])
    internet.pages["http://copy.example/1.html"] = Page(status=302, location=to)
    internet.pages["http://honest.example/1.html"] = Page(html(article(1)))
    urls = [f"http://{name}.example/1.html" for name in ("public", "copy", "honest")]
    crawl.hold(*urls)
    result = crawl(settings=FETCH_ALL, urls=urls[:1])
    assert (result.urls, a.requests) == (urls[2:], [])
    assert internet.asked() == urls


def test_no_dead_page_is_replaced_by_a_local_file(crawl, internet, tmp_path):
    (tmp_path / "secret.html").write_text(html(article(1)))
    file = (tmp_path / "secret.html").as_uri()
    internet.pages["http://copy.example/1.html"] = Page(status=302, location=file)
    crawl.hold("http://public.example/1.html", "http://copy.example/1.html", file)
    assert crawl(settings=FETCH_ALL, urls=["http://public.example/1.html"]).items == []


def test_a_copy_that_redirects_out_of_the_allowed_domains_is_not_followed(crawl, a, internet):
    internet.pages["http://copy.example/1.html"] = Page(status=301, location="http://elsewhere.example/1.html")
    internet.pages["http://elsewhere.example/1.html"] = Page(html(article(1)))
    crawl.hold("http://public.example/1.html", "http://copy.example/1.html")
    allowed = {"allowed_domains": ["public.example", "copy.example"]}
    result = crawl(settings=FETCH_ALL, urls=["http://public.example/1.html"], attributes=allowed)
    assert result.items == []
    assert "http://elsewhere.example/1.html" not in internet.requests


@pytest.mark.parametrize("meta", [{"dont_obey_robotstxt": True}, {}])
def test_the_robots_txt_of_the_other_host_is_asked_whatever_the_request_may_do_on_its_own(crawl, a, b, meta):
    a.pages |= {"/robots.txt": Page("User-agent: *\nDisallow: /"), "/1.html": Page(html(article(1)))}
    crawl.hold(f"{b.url}/1.html", f"{a.url}/1.html")
    result = crawl(settings=FETCH_ALL | {"ROBOTSTXT_OBEY": True}, urls=[f"{b.url}/1.html"], meta=meta)
    assert (result.items, a.requests) == ([], ["/robots.txt"])


# Values


def test_items_with_values_that_nobody_can_write_are_judged_like_others(crawl, a):
    a.pages["/"] = Page(html(article(1)))
    dropped = crawl.folder / "dropped.jsonl"
    settings = {"ITEM_PIPELINES": {"spiders.ForgetOddValue": 900}, "NEARDUP_DROPPED": str(dropped)}
    result = crawl("OddValues", settings, urls=[f"{a.url}/"])
    assert [item["text"] for item in result.items] == [article(number) for number in range(6)]
    assert result.count("duplicates") == 6
    assert result.log.count("Dropped items can't be written") == 1
    assert len(dropped.read_text().splitlines()) == 6 - result.count("errors")


# Copycats


@pytest.mark.parametrize("life", ["drop", *slow("keep")], indirect=True)
def test_what_a_copycat_had_first_comes_from_the_original_once_the_copycat_shows_something_else(life, a, b):
    original, copycat = publish(a, {"/1.html": 1, "/2.html": 2}), publish(b, {"/x.html": 1})
    starts, one = [copycat, original], {"CONCURRENT_REQUESTS": 1}
    first = life.day({1, 2}, starts, one)
    assert f"{b.url}/x.html" in first.urls
    life.day({1, 2}, starts, one)
    publish(b, {"/x.html": 66})
    then = life.day({1, 2, 66}, starts, one, gives={f"{b.url}/x.html": 66})
    assert life.revisit == "drop" or f"{a.url}/1.html" in then.urls
    for number in (67, 68):  # spam from then on
        publish(b, {"/x.html": number})
        life.day({1, 2, number}, starts, one, gives={f"{b.url}/x.html": number})
    b.dead_status = 404
    life.day({1, 2}, starts, one)


@pytest.mark.parametrize("life", ["drop", *slow("keep")], indirect=True)
def test_links_of_an_original_are_followed_though_a_copycat_came_first(life, a, b):
    starts = [publish(b, {"/x.html": 1}), f"{a.url}/"]
    a.pages = {"/": Page(html("", links=("/1.html",))), "/2.html": Page(html(article(2)))}
    settings = {"CONCURRENT_REQUESTS": 1}
    for links in (("/2.html",), ("/2.html",), ("/2.html", "/3.html")):
        a.pages |= {"/1.html": Page(html(article(1), links=links)), "/3.html": Page(html(article(3)))}
        life.day({1, *range(2, 2 + len(links))}, starts, settings)


# Rules against an innocent host

ENOUGH, ALL = range(23), range(26)  # as many pages as make a rule, and all pages of the innocent host


def canonical(url):
    return f'<link rel="canonical" href="{url}">'


def as_copies(innocent, evil, number):
    return f"/{number}.html", Page(html(article(number), "b"))


def under_a_prefix(innocent, evil, number):
    return f"/{innocent.partition('//')[2]}/{number}.html", Page(html(article(number), "b"))


def as_other_files(innocent, evil, number):
    return f"/{number}.htm", Page(html(article(number), "b"))


def as_its_own_canonical_pages(innocent, evil, number):
    return f"/{number}.html", Page(canonical(f"{evil}/{number}.html") + html(article(number), "b"))


def as_redirects(innocent, evil, number):
    return f"/{number}.html", Page(status=301, location=f"{innocent}/{number}.html")


def with_an_innocent_name(innocent, evil, number):
    there = evil.replace("//", f"//{innocent.partition('//')[2].replace(':', '%3A')}@")
    return f"/{number}.html", Page(canonical(f"{there}/{number}.html") + html(article(number), "b"))


SHOWS = as_copies, under_a_prefix, as_other_files, as_its_own_canonical_pages, as_redirects, with_an_innocent_name


@pytest.mark.parametrize("shows", some(SHOWS, as_copies))
def test_no_host_that_comes_later_hides_pages_of_an_innocent_one(crawl, a, b, shows):
    a.pages = {f"/{number}.html": Page(html(article(number))) for number in ALL}
    innocent = [f"{a.url}/{number}.html" for number in ALL]
    b.pages = dict(shows(a.url, b.url, number) for number in ENOUGH)
    evil = [f"{b.url}{path}" for path in b.pages]
    crawl("OneAfterAnother", urls=[*innocent[: len(ENOUGH)], *evil])
    for number, url in zip(ALL, innocent, strict=True):  # where copies were, and where the innocent host has new pages
        path, _ = shows(a.url, b.url, number)
        b.pages[path] = Page(canonical(url) + html(article(number + 100), "b"))
    spam = crawl("OneAfterAnother", {"NEARDUP_RECHECK": 1}, urls=[f"{b.url}{path}" for path in b.pages])
    assert len(spam.items) == len(ALL)
    each_kind = innocent[len(ENOUGH) - 5 :]
    for settings in ({}, {"NEARDUP_REDIRECT_MIRRORS": True}, {"NEARDUP_REVISIT": "drop"}):
        before = len(a.requests)
        result = crawl("OneAfterAnother", settings, urls=each_kind)
        assert len(a.asked(since=before)) == len(each_kind)
        assert settings.get("NEARDUP_REVISIT") or sorted(result.urls) == sorted(each_kind)


@pytest.mark.slow
def test_who_came_first_hides_new_pages_only_until_a_recheck(crawl, a, b):
    """What is not promised, and what limits it: a copycat of a whole site that is crawled before the site."""
    for number in ALL:
        a.pages[f"/{number}.html"], b.pages[f"/{number}.html"] = (Page(html(article(number), kind)) for kind in "ab")
    innocent, evil = ([f"{site.url}/{number}.html" for number in ALL] for site in (a, b))
    known, hidden = len(ENOUGH), innocent[len(ENOUGH) :]
    crawl("OneAfterAnother", urls=[*evil[:known], *innocent[:known]])
    for number in ALL[known:]:
        b.pages[f"/{number}.html"] = Page(html(article(number + 100), "b"))
    crawl(urls=evil[known:])
    assert crawl(urls=[*evil, *hidden], settings={"NEARDUP_REVISIT": "skip"}).urls == []
    assert crawl("OneAfterAnother", {"NEARDUP_RECHECK": 1}, urls=hidden).count("mirror_hosts/dropped") == 1
    assert sorted(crawl(urls=hidden).urls) == hidden
