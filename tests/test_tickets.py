"""Requests that lead to another host: what they carry, and where they never go."""

from __future__ import annotations

import marshal

import pytest
from scrapy import Request
from scrapy.utils.request import request_from_dict

from scrapy_neardup.crawl.detours import (
    DEAD_LINK,
    MIRROR,
    Ticket,
    detour,
    disown,
    is_of_spider,
    is_open,
    is_plain,
    is_safe,
    is_start,
)
from scrapy_neardup.text.urls import is_private

PRIVATE_HOSTS = [
    *("127.0.0.1", "127.1", "0x7f.1", "2130706433", "0.0.0.0", "user:password@127.0.0.1"),
    *("10.0.0.8:8080", "192.168.1.1", "172.16.3.4", "169.254.169.254", "100.64.0.1", "224.0.0.1"),
    *("[::1]", "[fd00::1]", "[fe80::1]", "[ff02::1]"),
    # IPv4 within IPv6
    *("[::ffff:127.0.0.1]", "[64:ff9b::7f00:1]", "[64:ff9b:1::7f00:1]", "[2002:7f00:1::]"),
    *("[::127.0.0.1]", "[::ffff:0:7f00:1]"),
    *("localhost", "LOCALHOST.", "db.localhost", "localhost.localdomain", "router", "printer.local"),
    *("wiki.corp", "x.home.arpa", "x.onion"),
]
PRIVATE = [*(f"http://{host}/" for host in PRIVATE_HOSTS), "file:///etc/passwd", ""]
PUBLIC_HOSTS = ["example.com", "8.8.8.8", "[2606:4700::1111]", "例子.中国", "1.example.com"]
PUBLIC = [f"{scheme}://{host}/" for host in PUBLIC_HOSTS for scheme in ("http", "https")]


@pytest.mark.parametrize("url", PRIVATE)
def test_private_hosts_are_reached_from_no_public_page(url):
    assert is_private(url)
    assert not is_safe(url, "http://example.com/")


@pytest.mark.parametrize("url", PUBLIC)
def test_public_hosts_are_reached_from_everywhere(url):
    assert not is_private(url)
    assert is_safe(url, "http://example.org/")
    assert is_safe(url, "http://127.0.0.1/")


def test_within_private_networks_pages_may_lead_to_each_other():
    assert is_safe("http://127.0.0.2/", "http://wiki.corp/")


@pytest.mark.parametrize(
    "url", ["ftp://example.com/", "file:///etc/passwd", "data:,x", "javascript:alert(1)", "s3://a/b"]
)
def test_only_the_web(url):
    assert not is_safe(url, "http://127.0.0.1/")


SECRETS = {
    "Cookie": "a=1",
    "Referer": "http://a.example/?token=1",
    "Authorization": "Basic x",
    "Proxy-Authorization": "Basic y",
    "X-Api-Key": "z",
}
HARMLESS = {"Accept-Language": "zh", "User-Agent": "bot"}
META = {
    "proxy": "http://user:secret@10.0.0.1:3128",
    "cookiejar": 7,
    "bindaddress": "10.0.0.2",
    "download_slot": "a",
    "http_user": "joe",
    "http_pass": "secret",
    "http_auth_domain": None,
    "dont_obey_robotstxt": True,
}
FETCH = {
    "redirect_urls": ["x"],
    "redirect_reasons": [301],
    "retry_times": 2,
    "neardup": {"url": "http://a.example/1", "reason": "recheck", "inherited": 1},
}


@pytest.mark.parametrize(
    "url", ["http://b.example/", "http://a.example:8080/", "https://a.example/", "http://sub.a.example/"]
)
def test_another_host_gets_no_secret(url):
    meta = {**META, **FETCH, "depth": 3}
    request = Request("http://a.example/1", headers=SECRETS | HARMLESS, cookies={"a": "1"}, meta=meta)
    made = detour(request, url, DEAD_LINK, request.url, [request.url])
    assert (made.url, made.cookies, made.dont_filter) == (url, {}, True)
    assert dict(made.headers.to_unicode_dict()) == HARMLESS | {"Proxy-Authorization": SECRETS["Proxy-Authorization"]}
    ticket = {"url": url, "reason": "dead link", "instead_of": request.url, "tried": [request.url]}
    assert made.meta == {"depth": 3, "neardup": ticket, "proxy": META["proxy"]}
    assert request.headers["Cookie"] == b"a=1"  # the first request is as it was
    assert request.meta["cookiejar"] == 7


def test_the_same_host_gets_its_own():
    request = Request("http://a.example/1", headers=SECRETS, meta={**META, **FETCH})
    made = detour(request, "http://a.example/2")
    assert (made.meta, len(made.headers)) == (META, 5)


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, True),
        ({"headers": {"user-agent": "bot", "Referer": "http://b.example/"}}, True),
        ({"headers": {"X-Api-Key": "1"}}, False),
        ({"url": "http://user:secret@a.example/"}, False),
        ({"headers": {"authorization": "Basic x"}}, False),
        ({"cookies": {"a": "1"}}, False),
        ({"meta": {"proxy": "http://p"}}, False),
        ({"meta": {"cookiejar": 0}}, False),
        ({"meta": {"http_user": "joe"}}, False),
    ],
)
def test_open_is_what_anybody_may_ask_for(options, expected):
    assert is_open(Request(**{"url": "http://a.example/", **options})) is expected


def to_copy(url: str, dead: str) -> Request:
    return detour(Request(dead), url, DEAD_LINK, dead, [dead])


def test_a_ticket_is_of_one_request_and_its_redirects():
    made = to_copy("http://b.example/1", "http://a.example/1")
    assert Ticket.of(made).dead_link == "http://a.example/1"
    redirected = made.replace(url="http://b.example/2", meta={**made.meta, "redirect_urls": [made.url]})
    assert Ticket.of(redirected).dead_link == "http://a.example/1"
    child = Request("http://b.example/child", meta=made.meta)
    assert Ticket.of(child) == Ticket(child.url)


@pytest.mark.parametrize("value", [None, True, "of a user", {}, {"mine": 1}])
def test_what_a_user_keeps_under_the_key_is_no_ticket(value):
    request = Request("http://a.example/1", meta={"neardup": value})
    assert Ticket.of(request) == Ticket(request.url)
    disown(request)
    assert Ticket.of(request) == Ticket(request.url)


def test_a_ticket_survives_a_disk_queue():
    made = to_copy("http://b.example/1", "http://a.example/1")
    again = request_from_dict(marshal.loads(marshal.dumps({**made.to_dict(), "headers": {}})))
    assert Ticket.of(again) == Ticket.of(made)


def test_what_a_body_asks_for_no_url_says():
    assert is_plain(Request("http://a.example/"))
    assert not is_plain(Request("http://a.example/", body="q=1"))
    assert is_of_spider(Request("http://a.example/", body="q=1"))
    assert not is_of_spider(Request("http://a.example/", meta={"dont_neardup": True}))


def made_of(request, url, **meta):
    """Return the request that a spider makes with the meta of another one's response."""
    made = Request(url, meta={**request.meta, "depth": request.meta.get("depth", 0) + 1, **meta})
    disown(made)
    return made


def redirects(request):
    """Return the URLs that redirected to a request, and the reasons."""
    return Ticket.of(request).redirects(request), Ticket.of(request).redirects(request, "redirect_reasons")


def test_of_the_meta_of_another_request_nothing_counts():
    asked = Request("http://b.example/1", meta={"is_start_request": True})
    first = detour(asked, "http://a.example/1", MIRROR, asked.url)
    first.meta["dont_retry"] = True
    first.meta.update(redirect_urls=["http://a.example/1"], redirect_reasons=[301])
    moved = first.replace(url="http://a.example/2")
    assert (Ticket.of(moved).mirror_of, is_start(moved)) == ("http://b.example/1", True)
    assert redirects(moved) == (["http://a.example/1"], [301])
    child = made_of(moved, "http://a.example/3", mine=1)
    assert (Ticket.of(child).instead_of, is_start(child), redirects(child)) == (None, False, ([], []))
    assert "dont_retry" not in child.meta
    assert child.meta["mine"] == 1
    child.meta.update(redirect_urls=["http://a.example/1", child.url], redirect_reasons=[301, 302])
    again = child.replace(url="http://a.example/4")
    assert redirects(again) == (["http://a.example/3"], [302])


def test_what_the_spider_has_tried_again_is_the_same_detour():
    first = to_copy("http://a.example/1", "http://b.example/1")
    assert Ticket.of(made_of(first, first.url)).dead_link == "http://b.example/1"
