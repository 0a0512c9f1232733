"""The feeds of crawls that are limited, stopped, cached, or run at once. Each test is one story."""

from __future__ import annotations

import signal
from itertools import pairwise

import pytest
from helpers import until
from life import number_of, publish
from site_server import Gate, Page, article, html
from tiers import slow

FIVE = {f"/{n}.html": n for n in range(5)}


@pytest.fixture
def starts(life, a, b):
    """Return the lists of a site and of its mirror, which is known to be one."""
    made = [publish(site, FIVE) for site in (a, b)]
    life.day(range(5), made[:1])
    life.day(range(5), made)
    asked = len(b.requests)
    assert life.day(range(5), made).count("requests/skipped") == 5
    assert b.asked(since=asked) == ["/"]
    return made


# Originals that may not be asked for


@pytest.mark.parametrize("life", ["keep", *slow("drop")], indirect=True)
def test_nothing_is_lost_when_robots_txt_forbids_the_original_later(life, a, b, starts):
    obey = {"ROBOTSTXT_OBEY": True}
    life.day(range(5), starts, obey)
    a.pages["/robots.txt"] = Page("User-agent: *\nDisallow: /")
    for _ in range(2):
        asked = len(a.requests)
        life.day(range(5), starts, obey)
        assert a.asked(since=asked) == []
    del a.pages["/robots.txt"]
    life.day(range(5), starts, obey)


@pytest.mark.slow
def test_nothing_is_lost_by_an_original_outside_allowed_domains(life, a, b, starts):
    only_b = {"attributes": {"allowed_domains": ["127.0.0.2"]}}
    for links in ((), (), ("/5.html",)):
        start = publish(b, FIVE | dict.fromkeys(links, 5), f"{a.url}/0.html")
        asked = len(a.requests)
        life.day(range(5 + len(links)), [start], **only_b)
        assert a.asked(since=asked) == []


@pytest.mark.slow
def test_nothing_is_lost_by_an_original_deeper_than_the_spider_goes(life, a):
    limit = {"DEPTH_LIMIT": 2}
    start = publish(a, {"/original": 0, "/copy": 0})
    life.day({0}, [start], limit)
    publish(a, {"/copy": 0, "/2": 2}, "/1")
    a.pages |= {"/1": Page(html(article(1), links=("/deep",))), "/deep": Page(html(article(3), links=("/original",)))}
    a.pages["/original"] = Page(html(article(0)))
    for _ in range(2):
        life.day(range(4), [start], limit)
        assert a.requests.count("/original") == 1
    life.day(range(4), [start])


# Redirects


@pytest.mark.slow
@pytest.mark.parametrize("status", [301, 302])
def test_a_chain_of_redirects_grows_and_shrinks(life, a, status):
    for chain in ("a", "ab", "abc", "abcd", "bd", "d"):
        start = publish(a, {f"/{chain[-1]}": 0, "/other": 1}, *(f"/{name}" for name in chain[:-1]))
        a.pages |= {f"/{name}": Page(status=status, location=f"/{then}") for name, then in pairwise(chain)}
        life.day({0, 1}, [start])


# Crawls that stop


@pytest.mark.parametrize("life", ["keep", *slow("drop")], indirect=True)
def test_a_crawl_that_is_paused_while_requests_wait_behind_originals(life, a, b, starts, tmp_path):
    """The copies come first; of the originals, which come after the pause, some are broken."""
    job = {
        "JOBDIR": str(tmp_path / "job"),
        "CONCURRENT_REQUESTS": 1,
        "NEARDUP_REVISIT": life.revisit,
        "SCHEDULER_PRIORITY_QUEUE": "scrapy.pqueues.ScrapyPriorityQueue",
    }
    gone = [path for path, number in FIVE.items() if number % 2]
    a.pages |= dict.fromkeys(gone, Page(status=500))
    gate = a.pages = Gate(a.pages, *FIVE)
    urls = [f"{site.url}{path}" for site in (b, a) for path in FIVE]
    asked = len(b.requests)
    process = life.crawl.start("ListSpider", job, urls=urls)
    assert gate.reached.wait(60)
    process.send_signal(signal.SIGINT)
    until(lambda: "Received SIGINT" in life.crawl.log())
    gate.opened.set()
    paused = life.crawl.finish(process)
    assert (b.asked(since=asked), paused.log.count("Skipped <")) == ([], 5)
    resumed = life.crawl("ListSpider", job, urls=urls)
    life.check(paused.items + resumed.items, {*range(5)}, {})
    assert sorted(b.asked(since=asked)) == gone
    assert paused.count("requests/skipped") + resumed.count("requests/skipped") == 3
    assert paused.count("requests/sent_after_all") == 0


@pytest.mark.slow
@pytest.mark.parametrize("count", [1, 3])
def test_a_crawl_that_stops_after_some_items(life, a, b, starts, count):
    a.dead_status = 503
    stops = {"CLOSESPIDER_ITEMCOUNT": count, "CONCURRENT_REQUESTS": 1, "NEARDUP_REVISIT": life.revisit}
    publish(b, {f"/{n}.html": n for n in range(8)})
    for _ in range(2):
        stopped = life.crawl("SiteSpider", stops, urls=starts, start=True)
        assert stopped.stats["finish_reason"] in ("closespider_itemcount", "finished")
        for item in stopped.items:
            life.known.add(number_of(item))
    life.day(range(8), starts)
    a.dead_status = 0
    life.day(range(8), starts)


# Not alone


@pytest.mark.slow
def test_of_two_crawls_at_the_same_time_one_asks_for_originals_the_other_for_copies(life, a, b, starts):
    """The second one goes on when the first one, with which it shares a store, has got what it can."""
    a.pages |= dict.fromkeys(("/0.html", "/1.html"), Page(status=500))
    settings = {"NEARDUP_REVISIT": life.revisit}
    a.pages, b.pages = gates = Gate(a.pages, "/"), Gate(b.pages, "/")
    originals, copies = (life.crawl.start("SiteSpider", settings, urls=[url], start=True) for url in starts)
    assert all(gate.reached.wait(60) for gate in gates)
    asked = len(b.requests)
    gates[0].opened.set()
    originals.communicate(timeout=60)
    gates[1].opened.set()
    result = life.crawl.finish(copies)
    assert result.code == originals.returncode == 0
    assert {"/0.html", "/1.html"} <= {*b.asked(since=asked)}
    # What the first one gave last may not be known to the second one yet.
    given = {number_of(item) for run in (1, 0) for item in life.crawl.items(life.crawl.runs - run)}
    assert given == ({*range(5)} if life.revisit == "keep" else set())


# Requests that wait


@pytest.mark.parametrize("life", ["drop", *slow("keep")], indirect=True)
def test_of_too_many_requests_that_wait_the_oldest_are_sent(life, a, b, starts):
    settings = {"SCHEDULER_PRIORITY_QUEUE": "scrapy.pqueues.ScrapyPriorityQueue", "CONCURRENT_REQUESTS": 1}
    urls = [f"{site.url}{path}" for site in (b, a) for path in FIVE]
    asked = len(b.requests)
    most = {"scrapy_neardup.crawl.middleware.MOST": 3}
    result = life.crawl("ListSpider", {"NEARDUP_REVISIT": life.revisit} | settings, urls=urls, patch=most)
    life.check(result.items, {*range(5)}, {})
    assert b.asked(since=asked) == ["/0.html", "/1.html"]
    assert (result.count("requests/skipped"), result.count("requests/sent_after_all")) == (3, 2)


@pytest.mark.slow
@pytest.mark.parametrize("life", ["keep", *slow("drop")], indirect=True)
def test_a_copy_that_was_sent_after_all_in_two_runs_is_fetched_like_an_original(life, a, b, starts):
    a.dead_status = 500
    for _ in range(2):
        assert life.day(range(5), starts).count("requests/sent_after_all") == 5
    result = life.day(range(5), starts)
    assert (result.count("requests/skipped"), result.count("requests/sent_after_all")) == (0, 0)
    assert result.count("revisits") == 5


@pytest.mark.parametrize("life", ["drop", *slow("keep")], indirect=True)
def test_after_an_outage_copies_are_skipped_again(life, a, b, starts):
    for status in (503, 0, 0):
        a.dead_status = status
        before = len(b.requests)
        life.day(range(5), starts)
    assert b.asked(since=before) == ["/"]


# A cache


@pytest.mark.slow
def test_a_crawl_of_what_lies_in_the_http_cache(life, a, b, starts):
    cache = {"HTTPCACHE_ENABLED": True, "HTTPCACHE_DIR": str(life.crawl.folder / "cache")}
    life.day(range(5), starts, cache)
    asked = len(a.requests) + len(b.requests)
    life.day(range(5), starts, cache)
    assert len(a.requests) + len(b.requests) == asked
    del a.pages["/0.html"]
    a.pages["/1.html"] = Page(html(article(9)))
    life.day(range(5), starts, cache)
    life.day({*range(5), 9}, starts)
