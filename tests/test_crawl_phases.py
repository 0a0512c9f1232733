"""No item is lost: pending, committed and withdrawn items, copies of pending ones, runs that die."""

from __future__ import annotations

import os
import signal
import sqlite3
from contextlib import closing, suppress

import pytest
from helpers import until
from site_server import Gate, Page, article, put_articles
from tiers import slow

from scrapy_neardup import Deduplicator

KILLS = int(os.environ.get("NEARDUP_TEST_KILLS", "4"))
COUNT = 24


def paths(start, stop):
    return [f"/{n}.html" for n in range(start, stop)]


def committed(store):
    """Count the documents in a store's file that is being written."""
    with suppress(sqlite3.OperationalError), closing(sqlite3.connect(f"file:{store}?mode=ro", uri=True)) as file:
        [[count]] = file.execute("SELECT COUNT(*) FROM neardup WHERE typeof(key) = 'integer' AND key > 0")
        return count
    return 0


def texts(items):
    return {item["text"] for item in items}


def pipelines(*names, **settings):
    return {"ITEM_PIPELINES": {f"spiders.{name}": 500 + n for n, name in enumerate(names)}, **settings}


@pytest.mark.parametrize("loser", ["DropEverySecond", *slow("FailEverySecond")])
def test_what_a_later_pipeline_lost_is_stored_by_the_next_run(crawl, a, loser):
    urls = put_articles(a, 10)
    first = crawl("ListSpider", pipelines(loser, NEARDUP_REVISIT="drop"), urls=urls)
    assert (len(first.items), first.count("withdrawn"), first.count("store/documents")) == (5, 5, 5)
    second = crawl("ListSpider", {"NEARDUP_REVISIT": "drop"}, urls=urls)
    assert len(second.items) == 5
    assert texts(first.items) | texts(second.items) == {article(n) for n in range(10)}
    assert crawl("ListSpider", {"NEARDUP_REVISIT": "drop"}, urls=urls).items == []


def test_of_many_items_of_one_page_just_the_lost_ones_are_withdrawn(crawl, a):
    a.pages["/list"] = Page("".join(f"<p>{article(n)}</p>" for n in range(8)))
    first = crawl("ManySpider", pipelines("DropEverySecond", "ReplaceItem"), urls=[f"{a.url}/list"])
    second = crawl("ManySpider", {"NEARDUP_REVISIT": "drop"}, urls=[f"{a.url}/list"])
    assert (len(first.items), first.count("withdrawn")) == (4, 4)
    assert {len(text) for text in texts(second.items)} | {item["replaced"] for item in first.items} == {
        len(article(n)) for n in range(8)
    }
    assert (len(second.items), second.count("revisits")) == (4, 4)


@pytest.mark.slow
def test_an_item_that_waits_for_another_one_is_settled_like_any(crawl, a, b):
    urls = put_articles(a, 2) + put_articles(b, 2, "b")
    first = crawl("ListSpider", pipelines("AddItem"), urls=urls)
    assert (len(first.items), first.count("unique"), first.count("duplicates")) == (4, 4, 2)
    second = crawl("ListSpider", {"NEARDUP_REVISIT": "drop"}, urls=urls)
    assert (second.items, second.count("revisits"), second.count("requests/skipped")) == ([], 2, 2)


@pytest.mark.parametrize("lost", [False, True])
def test_a_twin_waits_for_what_becomes_of_the_first(crawl, a, b, lost):
    urls = put_articles(a, 1) + put_articles(b, 1, "b")
    settings = pipelines("Hold", HOLD_WAITING=1, HOLD_DROPS_FIRST=lost)
    result = crawl("ListSpider", settings, urls=urls, start=True)
    assert len(result.items) == 1
    assert result.count("withdrawn") == lost
    assert result.count("duplicates") == (not lost)
    assert result.count("store/documents") == 1


def kills():
    """Yield a policy for revisits, the requests before the kill, and whether their items are written by then."""
    for kill in range(KILLS):
        for revisit in ("keep", "drop"):
            is_quick = (kill, revisit) == (KILLS - 1, "keep")
            moment = 1 + (2 * COUNT - 1) * kill // KILLS, (KILLS - kill) % 2 == 1
            yield from [(revisit, *moment)] if is_quick else slow((revisit, *moment))


@pytest.mark.parametrize(("revisit", "before", "is_written"), [*kills()])
def test_a_run_that_was_killed_loses_nothing(crawl, a, b, revisit, before, is_written):
    urls = put_articles(a, COUNT) + put_articles(b, COUNT, "b")
    settings = {"NEARDUP_REVISIT": revisit, "CONCURRENT_REQUESTS": 4}
    site, number = (a, before) if before < COUNT else (b, before - COUNT)
    gate = site.pages = Gate(site.pages, *paths(number, COUNT))
    process = crawl.start("ListSpider", settings, urls=urls)
    assert gate.reached.wait(60)
    if is_written:
        until(lambda: committed(crawl.store))
    process.send_signal(signal.SIGKILL)
    crawl.finish(process)
    gate.opened.set()
    assert process.returncode == -signal.SIGKILL
    left = crawl.items(crawl.runs)
    then = crawl("ListSpider", settings, urls=urls)
    assert texts(left) | texts(then.items) == {article(n) for n in range(COUNT)}
    assert then.count("store/documents") == COUNT
    assert crawl("ListSpider", {"NEARDUP_REVISIT": "drop"}, urls=urls).items == []


def pause(crawl, site, urls, settings):
    """Crawl, and stop by Ctrl+C after ten pages."""
    gate = site.pages = Gate(site.pages, *paths(10, 20))
    process = crawl.start("ListSpider", settings, urls=urls, start=True)
    assert gate.reached.wait(60)
    process.send_signal(signal.SIGINT)
    until(lambda: "Received SIGINT" in crawl.log())
    gate.opened.set()
    return crawl.finish(process)


CHANGES = [
    {"NEARDUP_STORE": "other.sqlite"},
    {"NEARDUP_DETECTORS": ["exact"]},
    {"NEARDUP_REVISIT": "skip"},
    {"NEARDUP_REVISIT": "drop"},
    {"NEARDUP_NAMESPACE": "other"},
    {"NEARDUP_ACTION": "tag"},
    {"NEARDUP_DETECTORS": ["imatch", "shingle"]},
]


@pytest.mark.slow
@pytest.mark.parametrize("change", CHANGES, ids=lambda change: "-".join(map(str, *change.items())))
def test_a_paused_crawl_goes_on_with_other_settings(crawl, a, b, tmp_path, change):
    urls = put_articles(a, 20) + put_articles(b, 20, "b")
    settings = {"JOBDIR": str(tmp_path / "job"), "CONCURRENT_REQUESTS": 2}
    paused = pause(crawl, a, urls, settings)
    if "NEARDUP_STORE" in change:
        change = {"NEARDUP_STORE": str(tmp_path / change["NEARDUP_STORE"])}
    resumed = crawl("ListSpider", {**settings, **change}, urls=urls, start=True)
    assert paused.count("unique") > 0
    assert texts(paused.items) | texts(resumed.items) == {article(n) for n in range(20)}
    assert resumed.count("store/errors") == resumed.count("errors") == 0
    with Deduplicator.open(crawl.store, run=None) as dedup:  # what was held at the pause still is
        assert {item["url"] for item in paused.items} <= {s.url for s in dedup.store.signatures()}


def test_a_paused_crawl_that_can_not_go_on_so_says_it_and_goes_on_as_the_same_run(crawl, a, b, tmp_path):
    urls = put_articles(a, 20) + put_articles(b, 20, "b")
    settings = {"JOBDIR": str(tmp_path / "job"), "CONCURRENT_REQUESTS": 2}
    paused = pause(crawl, a, urls, settings)
    run = (tmp_path / "job" / "neardup.run").read_text()
    other = {**settings, "NEARDUP_DETECTORS": [{"name": "imatch", "randomized": 3}]}
    refused = crawl.finish(crawl.start("ListSpider", other, urls=urls, start=True))
    assert (refused.code, refused.items) == (1, [])
    assert refused.log.count("The crawl was not started: ") == 1
    assert "'imatch' was made as" in refused.log
    assert "Traceback" not in refused.log + refused.errors
    resumed = crawl("ListSpider", settings, urls=urls, start=True)
    assert paused.count("unique") > 0
    assert texts(paused.items) | texts(resumed.items) == {article(n) for n in range(20)}
    assert len(paused.items) + len(resumed.items) == 20
    assert not (tmp_path / "job" / "neardup.run").exists()
    with Deduplicator.open(crawl.store) as dedup:
        assert {dedup.store.run_of(s) for s in dedup.store.signatures()} == {run}


@pytest.mark.slow
def test_items_pass_while_the_store_can_not_be_written(crawl, a):
    urls = put_articles(a, 40)
    first = a.pages = Gate(a.pages, "/3.html")
    waits = {"scrapy_neardup.store.database.LOCK_SECONDS": 2}
    process = crawl.start("ListSpider", {"CONCURRENT_REQUESTS": 1}, urls=urls, patch=waits)
    assert first.reached.wait(60)
    last = a.pages = Gate(a.pages, "/39.html")
    with closing(sqlite3.connect(crawl.store, isolation_level=None)) as other:
        other.execute("BEGIN EXCLUSIVE")  # longer than the store waits, which on a busy machine may be long
        first.opened.set()
        until(lambda: "Items pass" in crawl.log(), 50)
        last.opened.set()
        process.wait(timeout=60)
        other.execute("ROLLBACK")
    result = crawl.finish(process)
    assert len(result.items) == 40
    assert result.count("store/errors") > 0
    assert result.log.count("Items pass") == 1


@pytest.mark.parametrize("first", [(), ("Pool",)], ids=["", "pool"])
def test_a_twin_does_not_wait_for_what_was_cancelled(crawl, a, b, first):
    urls = put_articles(a, 1) + put_articles(b, 1, "b")
    settings = pipelines(*first, "CancelFirst", HOLD_WAITING=1, HOLD_DROPS_FIRST=True)
    result = crawl.finish(crawl.start("ListSpider", settings, urls=urls, start=True))
    assert len(result.items) == 1
    assert result.count("store/documents") == 1


@pytest.mark.parametrize("detector", ["spiders.Failing", "spiders.Refusing"])
def test_an_item_passes_where_a_detector_fails(crawl, a, detector):
    result = crawl("ListSpider", {"NEARDUP_DETECTORS": ["exact", detector]}, urls=put_articles(a, 3))
    assert (len(result.items), result.count("errors")) == (3, 3)
