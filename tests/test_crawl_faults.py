"""Crawls on stores that fail: at the start, a crawl stops with the reason; later, items pass and errors are counted."""

from __future__ import annotations

import os
import re
import sqlite3
from contextlib import closing

import pytest
from faulty import common_user, small_disk  # noqa: F401 - fixtures
from site_server import Page, article, html, put_articles

from scrapy_neardup import Deduplicator
from scrapy_neardup.store.records import FORMAT, MADE, dump, load

COUNT = 10
BACK = "The store answers again"  # as spiders.FullDisk waits for it
ONE_AT_A_TIME = {"CONCURRENT_REQUESTS": 1}


def held(store):
    with Deduplicator.open(str(store)) as dedup:
        return {s.url for s in dedup.store.signatures()}


def refused(crawl, urls):
    """Crawl on a store that can't be used; return the reason that the log gives."""
    result = crawl.finish(crawl.start(urls=urls))
    assert result.code == 1
    assert result.items == []
    reasons = [line for line in result.log.splitlines() if "The crawl was not started: " in line]
    assert len(reasons) == 1, result.log
    assert "interface.StoreError" not in result.log + result.errors  # as a traceback ends
    assert crawl.store in reasons[0]
    return reasons[0]


@pytest.mark.parametrize(
    ("spoil", "reason"),
    [
        (lambda store: store.write_bytes(b"some notes\n" * 500), "not a store"),
        (lambda store: store.parent.rmdir(), "no directory"),
        (lambda store: other_version(store, FORMAT - 1), f"its format is {FORMAT - 1}, of another version"),
        (lambda store: other_version(store, FORMAT + 1), f"its format is {FORMAT + 1}, of another version"),
        (lambda store: cut_off(store), "is damaged"),
    ],
    ids=["text", "no directory", "older", "newer", "cut off"],
)
def test_a_store_that_can_not_be_used_stops_the_crawl(crawl, a, tmp_path, spoil, reason):
    store = tmp_path / "folder" / "store.sqlite"
    store.parent.mkdir()
    crawl.store = str(store)
    spoil(store)
    whole = store.read_bytes() if store.exists() else None
    assert reason in refused(crawl, put_articles(a, 2))
    assert (store.read_bytes() if store.exists() else None) == whole
    assert a.asked() == []


def other_version(store, format):
    Deduplicator.open(store).close()
    with closing(sqlite3.connect(store)) as db, db:
        [[made]] = db.execute("SELECT value FROM neardup WHERE key = ?", (MADE,))
        other = dump(MADE, {**load(MADE, made), "format": format})
        db.execute("UPDATE neardup SET value = ? WHERE key = ?", (other, MADE))


def cut_off(store):
    Deduplicator.open(store).close()
    os.truncate(store, store.stat().st_size // 2)


@pytest.mark.slow
@pytest.mark.usefixtures("common_user")
def test_store_that_may_not_be_written_stops_the_crawl(crawl, a):
    urls = put_articles(a, 2)
    crawl(urls=urls)
    os.chmod(crawl.store, 0o400)
    assert "may not write it" in refused(crawl, urls)


def test_items_pass_while_the_disk_is_full_and_are_kept_once_there_is_room(crawl, a, small_disk):  # noqa: F811
    crawl.store = str(small_disk.path / "store.sqlite")
    urls = put_articles(a, COUNT)
    settings = {**ONE_AT_A_TIME, "ITEM_PIPELINES": {"spiders.FullDisk": 600}}
    result = crawl(settings=settings, urls=urls, alone=True)
    assert len(result.items) == COUNT
    assert result.count("store/errors") > 0
    assert re.findall(f"Items pass|{BACK}", result.log) == ["Items pass", BACK] * 2
    assert "full" in result.log
    assert "could not be closed" not in result.log
    assert held(small_disk.kept / "store.sqlite") == set(urls)


def test_items_pass_whose_originals_are_damaged(crawl, a, b):
    crawl(urls=put_articles(a, 10))
    copies = put_articles(b, 10)
    b.pages["/new.html"] = Page(html(article(50)))  # of b, since the first page of a host reads its sample
    settings = {**ONE_AT_A_TIME, "ITEM_PIPELINES": {"spiders.DamagedRows": 600}}
    result = crawl(settings=settings, urls=[f"{b.url}/new.html", *copies])
    assert sorted(result.urls) == sorted([f"{b.url}/new.html", *copies])
    assert result.count("store/unjudged") == 10
    assert result.log.count("Items pass") == 1
    assert "is damaged: its checksum does not match" in result.log
    assert "Traceback" not in result.log


@pytest.mark.parametrize("kind", ["key < 0", "key > 0"], ids=["visits", "documents"])
def test_pages_are_fetched_whose_rows_are_damaged(crawl, a, b, kind):
    urls, first = put_articles(a, 10), []
    crawl(urls=urls)
    for n in range(50, 53):  # which come while nothing is damaged yet
        b.pages[f"/{n}.html"] = Page(html(article(n)))
        first.append(f"{b.url}/{n}.html")
    a.pages["/9.html"] = Page(status=404)  # so that the store is asked about a copy, too
    since = len(a.requests)
    settings = {"ITEM_PIPELINES": {"spiders.DamagedRows": 600}, "DAMAGED": kind, "NEARDUP_REVISIT": "skip"}
    result = crawl("OneAfterAnother", settings={**ONE_AT_A_TIME, **settings}, urls=[*first, *urls])
    assert a.asked(since=since) == [f"/{n}.html" for n in range(10)]
    assert sorted(result.urls) == sorted([*first, *urls[:9]])
    assert (result.count("requests/skipped"), result.stats["test/failed/HttpError"]) == (0, 1)
    assert result.count("store/errors") > 0
    assert result.log.count("Items pass") == 1
    assert "Traceback" not in result.log


def test_an_error_of_our_own_loses_no_request(crawl, a, b):
    """It fails where it ranks the copies of a dead link, and counts paths of a copy."""
    urls = put_articles(a, 2) + put_articles(b, 2)
    crawl("OneAfterAnother", urls=urls)
    a.pages["/0.html"] = Page(status=404)
    broken = dict.fromkeys(("scrapy_neardup.mirrors.DAY", "scrapy_neardup.mirrors.MANY"))
    result = crawl("OneAfterAnother", urls=urls, patch=broken)
    assert result.stats["test/failed/HttpError"] == 1
    assert len(result.items) == 2
    assert result.count("errors") == 3
    assert result.log.count("MirrorMiddleware failed on ") == 3
