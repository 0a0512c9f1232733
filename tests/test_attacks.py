"""Hostile sites: what they do, and what a crawl loses by it. docs/security.md says what is promised."""

from __future__ import annotations

import pytest
from site_server import Page, Site, article, html

from scrapy_neardup import Deduplicator, Document

FETCH_ALL = {"NEARDUP_SKIP_MIRRORS": False}


def hold(crawl, *urls, number=1):
    """Hold an article as a document of the first URL, with the other URLs as copies."""
    with Deduplicator.open(crawl.store) as dedup:
        for url in urls:
            dedup.claim(Document(url=url, text=article(number))).commit()


# Detours


@pytest.fixture
def internet(b: Site, monkeypatch: pytest.MonkeyPatch) -> Site:
    """Serve pages of public hosts: the crawl reaches them through a proxy, and private hosts directly."""
    monkeypatch.setenv("http_proxy", b.url)
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    return b


def test_no_dead_public_page_is_replaced_by_a_private_one(crawl, a, internet):
    a.pages["/1.html"] = Page(html(article(1)))
    hold(crawl, "http://public.example/1.html", f"{a.url}/1.html")
    result = crawl(settings=FETCH_ALL, urls=["http://public.example/1.html"])
    assert (result.items, a.requests, result.count("dead_links/seen")) == ([], [], 1)


@pytest.mark.parametrize("location", ["{private}/1.html", "http://2130706433:{port}/1.html"])
def test_nor_by_a_public_copy_that_redirects_to_a_private_one(crawl, a, internet, location):
    a.pages["/1.html"] = Page(html(article(1)))
    to = location.format(private=a.url, port=a.url.rpartition(":")[2])
    internet.pages["http://copy.example/1.html"] = Page(status=302, location=to)
    internet.pages["http://honest.example/1.html"] = Page(html(article(1)))
    urls = [f"http://{name}.example/1.html" for name in ("public", "copy", "honest")]
    hold(crawl, *urls)
    result = crawl(settings=FETCH_ALL, urls=urls[:1])
    assert (result.urls, a.requests) == (urls[2:], [])
    assert internet.asked() == urls


def test_nor_by_a_file(crawl, internet, tmp_path):
    (tmp_path / "secret.html").write_text(html(article(1)))
    file = (tmp_path / "secret.html").as_uri()
    internet.pages["http://copy.example/1.html"] = Page(status=302, location=file)
    hold(crawl, "http://public.example/1.html", "http://copy.example/1.html", file)
    assert crawl(settings=FETCH_ALL, urls=["http://public.example/1.html"]).items == []


def test_a_crawl_that_began_in_a_private_network_stays_free_there(crawl, a, internet):
    a.pages["/1.html"] = Page(html(article(1)))
    hold(crawl, f"{a.url}/0.html", f"{a.url}/1.html")
    assert crawl(settings=FETCH_ALL, urls=[f"{a.url}/0.html"]).urls == [f"{a.url}/1.html"]


def test_a_copy_that_redirects_out_of_the_allowed_domains_is_not_followed(crawl, a, internet):
    internet.pages["http://copy.example/1.html"] = Page(status=301, location="http://elsewhere.example/1.html")
    internet.pages["http://elsewhere.example/1.html"] = Page(html(article(1)))
    hold(crawl, "http://public.example/1.html", "http://copy.example/1.html")
    allowed = {"allowed_domains": ["public.example", "copy.example"]}
    result = crawl(settings=FETCH_ALL, urls=["http://public.example/1.html"], attributes=allowed)
    assert result.items == []
    assert "http://elsewhere.example/1.html" not in internet.requests


@pytest.mark.parametrize("meta", [{}, {"dont_obey_robotstxt": True}])
def test_the_robots_txt_of_the_other_host_is_asked_whatever_the_request_may_do_on_its_own(crawl, a, b, meta):
    a.pages |= {"/robots.txt": Page("User-agent: *\nDisallow: /"), "/1.html": Page(html(article(1)))}
    hold(crawl, f"{b.url}/1.html", f"{a.url}/1.html")
    result = crawl(settings=FETCH_ALL | {"ROBOTSTXT_OBEY": True}, urls=[f"{b.url}/1.html"], meta=meta)
    assert (result.items, a.requests) == ([], ["/robots.txt"])
