"""The feeds of a site that moves, changes, breaks and comes back. Each test is one story."""

from __future__ import annotations

import json

import pytest
from life import publish
from site_server import Page, article, html, serving
from tiers import slow

FIVE = {f"/{n}.html": n for n in range(5)}
WALL = "<html><h1>Closed</h1><p>" + article(199, 40) + "</p></html>"


# An original and its copy on one host


@pytest.mark.parametrize("life", ["keep", *slow("drop")], indirect=True)
@pytest.mark.parametrize(
    ("then", "there", "sent"),
    [
        (Page(html(article(1))), {0, 1}, 1),
        *slow(
            (Page(status=404), {0}, 0),  # the dead link leads to the copy
            (Page(status=500), {0}, 1),
            (Page(status=302, location="/login"), {0}, 1),
        ),
    ],
    ids=["changes", "is gone", "breaks", "asks to log in"],
)
def test_a_copy_takes_the_place_of_an_original_that_does_not_deliver(life, a, then, there, sent):
    start = publish(a, {"/original": 0, "/copy": 0})
    life.day({0}, [start], {"CONCURRENT_REQUESTS": 1})
    a.pages |= {"/original": then, "/login": Page("<html><h1>Log in</h1></html>")}
    result = life.day(there, [start])
    assert (result.count("requests/skipped"), result.count("requests/sent_after_all")) == (1 - sent, sent)
    life.day(there, [start])


@pytest.mark.parametrize(
    ("days", "expected"),
    [
        (("whole", "cut", "whole"), (["whole"], ["cut", "whole"], ["whole"])),
        (("whole", None), (["whole"], ["whole"])),
    ],
    ids=["for some days", "and the original is gone, beside another copy behind it"],
)
def test_a_text_behind_a_paywall_does_not_stand_for_the_whole_one(crawl, a, days, expected):
    whole = article(0)
    texts = {"whole": whole, "cut": whole[: len(whole) * 3 // 5]}
    start = publish(a, {"/original": 0, "/z": 0}, *(() if "cut" in days else ("/b",)))
    a.pages["/b"] = Page(html(texts["cut"]))
    for day, there in zip(("whole", *days), (["whole"], *expected), strict=True):
        a.pages["/original"] = Page(html(texts[day])) if day else Page(status=404)
        result = crawl("SiteSpider", {"NEARDUP_REVISIT": "keep", "CONCURRENT_REQUESTS": 1}, urls=[start], start=True)
        assert sorted(item["text"] for item in result.items if len(item["text"]) > 900) == [whole]
        assert sorted(len(item["text"]) for item in result.items) >= sorted(len(texts[each]) for each in there)


@pytest.mark.parametrize("life", ["drop", *slow("keep")], indirect=True)
def test_a_page_changes_and_changes_back(life, a):
    for number in (0, 1, 0, 0, 1):
        life.day({number}, [publish(a, {"/page": number})], gives={f"{a.url}/page": number})


# Hosts


@pytest.mark.parametrize("life", ["drop", *slow("keep")], indirect=True)
def test_a_site_moves_to_another_host_and_grows_there(life, a, b):
    life.day(range(5), [publish(a, FIVE)])
    a.stop()
    for count in (5, 7, 7):
        pages = {f"/new/{n}": n for n in range(count)}
        life.day(range(count), [publish(b, pages)])


@pytest.mark.slow
def test_of_three_hosts_two_die_in_turn(life, a, b):
    with serving("127.0.0.3") as c:
        hosts = (a, b, c)
        starts = [publish(site, FIVE) for site in hosts]
        life.day(range(5), starts[:1])
        life.day(range(5), starts)
        before = len(b.requests) + len(c.requests)
        result = life.day(range(5), starts)
        assert (len(b.requests) + len(c.requests) - before, result.count("requests/skipped")) == (2, 10)
        for day, dead in enumerate([[a], [a, b], [b], [a, c], []]):
            new = {f"/{n}.html": n for n in range(6 + day)}
            for site in hosts:
                site.dead_status = 503 if site in dead else 0
                publish(site, new)
            life.day(range(6 + day), starts)


@pytest.mark.slow
def test_a_mirror_becomes_the_original_and_back(life, a, b):
    starts = [publish(site, FIVE) for site in (a, b)]
    life.day(range(5), starts[:1])
    life.day(range(5), starts)
    for dead, alive in ((a, b), (b, a), (a, b)):
        dead.dead_status, alive.dead_status = 404, 0
        for _ in range(2):
            asked = len(alive.requests)
            life.day(range(5), starts)
            assert sorted(set(alive.asked(since=asked))) == ["/", *FIVE]
        dead.dead_status = 0
        life.day(range(5), starts)


# Placeholders


@pytest.mark.slow
def test_a_first_run_behind_a_wall(life, a):
    pages = {f"/{n}.html": n for n in range(20)}
    start = publish(a, pages)
    open_pages = a.pages
    a.pages = {path: Page(WALL) for path in pages} | {"/": open_pages["/"]}
    life.crawl("SiteSpider", {"NEARDUP_REVISIT": life.revisit}, urls=[start], start=True)
    a.pages = open_pages
    for _ in range(2):
        life.day(range(20), [start])


@pytest.mark.slow
def test_a_calendar_whose_pages_are_empty_but_for_a_few(life, a):
    for events in ({}, {3: 0, 7: 1}, {3: 0, 7: 1, 11: 2}):
        a.pages = {
            f"/{n}": Page(html(article(events.get(n, 199)), links=(f"/{n + 1}",) if n < 15 else ())) for n in range(16)
        }
        life.day({*events.values(), 199}, [f"{a.url}/0"])


# Lists


@pytest.mark.parametrize("life", ["drop", *slow("keep")], indirect=True)
def test_a_list_of_items_without_url_that_grows_at_its_head(life, a):
    for day in range(3):
        there = [*range(100 + 3 * day, 100, -1), *range(12), *range(50, 50 + 2 * day)]
        parts = [there[place : place + 4] for place in range(0, len(there), 4)]
        urls = [f"{a.url}/api?page={number}" for number in range(len(parts))]
        a.pages = {
            url.removeprefix(a.url): Page(json.dumps([{"text": article(number)} for number in part]))
            for url, part in zip(urls, parts, strict=True)
        }
        life.day(there, urls, spider="JsonSpider")


def test_a_page_with_several_items_changes_only_where_its_items_do(crawl, a):
    counts = []
    for there in ((0, 1, 2), (0, 1, 2), (3, 0, 1, 2), (3, 0, 1, 2)):
        a.pages["/list"] = Page("".join(f"<p>{article(number)}</p>" for number in there))
        result = crawl("ManySpider", {"NEARDUP_REVISIT": "drop"}, urls=[f"{a.url}/list"])
        counts.append((len(result.items), result.count("changed")))
    assert counts == [(3, 0), (0, 0), (1, 0), (0, 0)]


def test_a_teaser_with_the_url_of_its_detail_page_is_no_change_of_it(crawl, a):
    """The teaser has another text than the page that it leads to, and both come again in each run."""
    a.pages["/list"] = Page(html(article(0), links=("/detail",)))
    a.pages["/detail"] = Page(html(article(1)))
    drop = {"NEARDUP_REVISIT": "drop"}
    results = [crawl("TeaserSpider", drop, urls=[f"{a.url}/list"]) for _ in range(3)]
    assert [(len(result.items), result.count("changed")) for result in results] == [(2, 0), (0, 0), (0, 0)]
    for number, items in ((2, 1), (1, 1), (1, 0)):
        a.pages["/detail"] = Page(html(article(number)))
        assert len(crawl("TeaserSpider", drop, urls=[f"{a.url}/list"]).items) == items


# Aliases and lists


@pytest.mark.parametrize("life", ["drop", *slow("keep")], indirect=True)
def test_a_redirect_leads_elsewhere(life, a):
    for day, there in enumerate(({0, 1}, {0, 1, 2}, {0, 1, 2})):
        start = publish(a, {f"/{n}.html": n for n in (0, 1)}, "/latest")
        a.pages["/2.html"] = Page(html(article(2)))
        a.pages["/latest"] = Page(status=301, location="/2.html" if day else "/1.html")
        life.day(there, [start], {"CONCURRENT_REQUESTS": 1})


def test_a_text_that_is_twice_on_a_page_is_not_lost_with_the_first_item(life, a):
    a.pages["/"] = Page(f"<p>{article(0)}</p><p>{article(0)}</p>")
    settings = {"ITEM_PIPELINES": {"spiders.DropFirst": 500}, "NEARDUP_REVISIT": life.revisit}
    counts = [len(life.crawl("RowSpider", settings, urls=[f"{a.url}/"]).items) for _ in range(3)]
    assert counts == ([1, 1, 1] if life.revisit == "keep" else [1, 0, 0])


@pytest.mark.parametrize("life", ["drop", *slow("keep")], indirect=True)
def test_items_of_a_list_change_back(life, a):
    for numbers in ((0, 1, 2), (0, 3, 4), (0, 1, 2)):
        a.pages["/"] = Page("".join(f"<p>{article(number)}</p>" for number in numbers))
        gives = {f"{a.url}/p/{place}": number for place, number in enumerate(numbers)}
        life.day({*numbers}, [f"{a.url}/"], spider="RowSpider", own=True, gives=gives)


@pytest.mark.parametrize("life", ["keep", *slow("drop")], indirect=True)
def test_lists_with_one_introduction_lead_to_pages_of_their_own(life, a):
    for last in (4, 4, 5):  # at last there is one more page, behind the second list
        lists = {f"/list{n}": Page(html(article(100), links=(f"/{n}.html",))) for n in range(4)}
        publish(a, {f"/{n}.html": n for n in range(last)})
        a.pages["/"] = Page(html("", links=tuple(lists)))
        a.pages |= lists | {
            "/list1": Page(html(article(100), links=("/1.html", *(f"/{n}.html" for n in range(4, last)))))
        }
        life.day({*range(last), 100}, [f"{a.url}/"])
