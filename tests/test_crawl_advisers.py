"""A user's own adviser and the signals of the plugin, in real crawls."""

from __future__ import annotations

import re

import pytest
from site_server import Page, article, html

ON = {"EXTENSIONS": {"advisers.ByPath": 0}, "CONCURRENT_REQUESTS": 1}


@pytest.fixture
def urls(a) -> dict[str, str]:
    names = ("stop", "skip", "redirect", "target", "break", "refuse", "nowhere", "plain")
    a.pages = {f"/{name}": Page(html(article(number))) for number, name in enumerate(names)}
    return {name: f"{a.url}/{name}" for name in names}


def told(log: str, what: str) -> list[str]:
    return re.findall(rf"\[advisers\] INFO: {what} (.*)", log)


def test_requests_are_stopped_skipped_and_redirected(crawl, a, urls):
    settings = ON | {"EXTENSIONS": {"advisers.LeftAlone": 0}}
    result = crawl("OneAfterAnother", settings, urls=[urls[name] for name in ("stop", "skip", "redirect", "plain")])
    assert a.asked() == ["/target", "/plain"]
    assert [result.count(f"requests/{kind}") for kind in ("stopped", "skipped", "redirected")] == [1, 1, 1]
    assert result.count("bytes_saved") == 7
    assert told(result.log, "skipped") == [urls["skip"]]
    assert f"Skipped <GET {urls['skip']}>: its content is held as http://held.example/, by a guess" in result.log
    assert result.stats["test/failed/AdvisedAgainst"] == 2


def test_a_request_to_the_original_host_that_is_skipped_does_not_go_back_to_the_mirror(crawl, a, b):
    a.pages["/original"] = b.pages["/original"] = Page(html(article(0)))
    hosts = {b.url.partition("//")[2]: a.url.partition("//")[2]}
    settings = ON | {"NEARDUP_MIRROR_HOSTS": hosts, "NEARDUP_REDIRECT_MIRRORS": True}
    result = crawl("OneAfterAnother", settings, urls=[f"{b.url}/original"])
    assert a.asked() == b.asked() == result.items == []
    assert [result.count(f"requests/{kind}") for kind in ("skipped", "redirected")] == [1, 1]
    assert told(result.log, "skipped") == [f"{a.url}/original"]


def test_an_error_of_an_adviser_is_counted_and_harms_no_request(crawl, a, urls):
    result = crawl("OneAfterAnother", ON, urls=[urls[name] for name in ("break", "refuse", "nowhere", "plain")])
    assert (a.asked(), len(result.items)) == (["/break", "/refuse", "/nowhere", "/plain"], 4)
    assert result.count("errors") == 3
    assert result.log.count(f"ByPath failed on {urls['break']}") == 1
    assert result.log.count(f"ByPath failed on {urls['refuse']}") == 1
    assert result.log.count(f"ByPath failed on {urls['nowhere']}") == 1


def test_an_adviser_is_not_asked_in_an_audit_or_for_what_the_user_wants_fetched(crawl, a, urls):
    for settings, args in (
        ({}, {"meta": {"dont_neardup": True}}),
        ({}, {"start": True}),
        ({"NEARDUP_ACTION": "audit"}, {}),
    ):
        crawl(settings=ON | settings, urls=[urls["stop"]], **args)
    assert a.asked() == ["/stop"] * 3


def test_an_adviser_is_told_of_verdicts_and_of_committed_visits(crawl, a, urls):
    a.pages["/copy"] = a.pages["/plain"]
    a.pages["/empty"] = Page(html(""))
    result = crawl("OneAfterAnother", ON, urls=[urls["plain"], f"{a.url}/copy", f"{a.url}/empty"])
    assert told(result.log, "judged") == ["unique", "duplicate", "None"]
    assert told(result.log, "visited") == [f"{urls['plain']}: committed", f"{a.url}/copy: committed"]


def test_an_adviser_is_asked_for_a_dead_link_with_held_content(crawl, a, urls):
    crawl(settings=ON, urls=[urls["plain"]])
    a.pages["/plain-elsewhere"] = a.pages.pop("/plain")
    result = crawl(settings=ON, urls=[urls["plain"], f"{a.url}/unknown"])
    assert result.urls == [f"{urls['plain']}-elsewhere"]
    assert result.count("dead_links/rescued") == 1
