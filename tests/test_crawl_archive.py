"""Dead links lead to a web archive if no copy is alive."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta, timezone

import pytest
from archive_server import WebArchive
from site_server import Page, article, html, serving
from tiers import slow

from scrapy_neardup import Deduplicator

NOW = datetime.now(timezone.utc)
DAY = timedelta(days=1)
ON = {"EXTENSIONS": {"scrapy_neardup.contrib.archive.Archive": 0}}


@pytest.fixture
def archive() -> Iterator[WebArchive]:
    with serving("127.0.0.3", WebArchive) as server:
        yield server


@pytest.fixture
def dead(crawl, a) -> str:
    """Hold an article under a URL that is dead now, and return it."""
    crawl.hold(url := f"{a.url}/1.html")
    return url


def gate(archive: WebArchive, **settings: object) -> dict[str, object]:
    return {**ON, "ARCHIVE_URL": f"{archive.url}/timegate/{{url}}", **settings}


def test_the_copy_nearest_to_the_last_visit_takes_the_place_of_a_dead_link(crawl, a, archive):
    dead = f"{a.url}/1.html?a=1&b=2"
    crawl.hold(dead)
    near = archive.keep(dead, NOW - 2 * DAY, article(1))
    archive.keep(dead, NOW - 90 * DAY, article(2))
    archive.keep(dead, NOW + 90 * DAY, article(3))
    result = crawl(urls=[dead], settings=gate(archive), with_meta=True, attributes={"allowed_domains": ["127.0.0.1"]})
    [item] = result.items
    assert (item["crawled_url"], item["text"]) == (near, article(1))
    ticket = item["crawl_meta"]["neardup"]
    assert (ticket["reason"], ticket["instead_of"], ticket["tried"]) == ("stand-in", dead, [dead])
    assert [result.count(f"dead_links/{name}") for name in ("redirected", "rescued")] == [1, 1]


def test_a_template_with_a_timestamp(crawl, dead, archive):
    settings = {**ON, "ARCHIVE_URL": f"{archive.url}/near/{{timestamp}}/{{url}}"}
    crawl(urls=[dead], settings=settings)
    [path] = archive.asked()
    assert path.startswith("/near/20")
    assert path.endswith(f"/{dead}")
    assert len(path.split("/")[2]) == 14


def test_a_copy_that_is_alive_comes_first_and_an_unknown_link_stays_dead(crawl, a, b, archive):
    dead, copy, unknown = f"{a.url}/1.html", f"{b.url}/1.html", f"{a.url}/2.html"
    crawl.hold(dead, copy)
    b.pages["/1.html"] = Page(html(article(1)))
    for number, url in enumerate((dead, unknown), 1):
        archive.keep(url, NOW, article(number))
    result = crawl(urls=[dead, unknown], settings=gate(archive))
    assert (result.urls, archive.asked()) == ([copy], [])


def test_the_archive_is_asked_after_all_copies_failed_and_another_text_is_kept_and_not_confirmed(crawl, a, archive):
    dead = [f"{a.url}/{number}.html" for number in range(6)]
    crawl.hold(*dead)
    archive.keep(dead[0], NOW, article(1))
    crawl.hold(other := f"{a.url}/other.html", number=2)
    archive.keep(other, NOW, article(3))
    result = crawl("OneAfterAnother", gate(archive), urls=[dead[0], other])
    assert [item["text"] for item in result.items] == [article(1), article(3)]
    assert [result.count(f"dead_links/{name}") for name in ("redirected", "rescued")] == [5, 1]


@pytest.mark.parametrize("what", ["circle", *slow("empty", "down")])
def test_an_archive_without_the_page_is_asked_once(crawl, dead, archive, what):
    archive.dead_status = 503 if what == "down" else 0
    if what == "circle":
        archive.pages[archive.keep(dead, NOW, "").removeprefix(archive.url)] = Page(
            status=302, location=f"{archive.url}/timegate/{dead}"
        )
    result = crawl(urls=[dead], settings=gate(archive, REDIRECT_MAX_TIMES=4))
    assert (result.items, result.count("dead_links/redirected")) == ([], 1)
    assert len([path for path in archive.asked() if path.startswith("/timegate/")]) <= 3
    assert result.stats["finish_reason"] == "finished"


def test_an_archive_is_not_asked_for_content_that_the_run_has_already(crawl, a, b, archive):
    dead, copy = f"{a.url}/1.html", f"{b.url}/copy.html"
    crawl.hold(dead, copy)
    b.pages["/copy.html"] = Page(html(article(1)))
    archive.keep(dead, NOW, article(1))
    result = crawl("OneAfterAnother", gate(archive, NEARDUP_SKIP_MIRRORS=False), urls=[copy, dead])
    assert (result.urls, archive.asked()) == ([copy], [])
    assert b.asked() == ["/copy.html"] * 2  # without skips, a dead link leads to its copy whatever the run has


@pytest.mark.parametrize(
    "settings", [{"NEARDUP_ACTION": "audit"}, *slow({"NEARDUP_DEAD_HTTP_CODES": []}, {"ARCHIVE_URL": None})]
)
def test_no_archive_is_asked_where_dead_links_stay_dead(crawl, dead, archive, settings):
    archive.keep(dead, NOW, article(1))
    assert crawl(urls=[dead], settings=gate(archive, **settings)).items == []
    assert archive.asked() == []


@pytest.mark.slow
@pytest.mark.parametrize(
    ("url", "where"),
    [
        ("http://user:secret@127.0.0.1:{}/1.html", "http://archive.example/{url}"),
        ("http://user:secret@127.0.0.1:{}/1.html", "archive_server.broken"),
        ("http://127.0.0.1:{}/1.html", "http://archive.example/{url}"),
    ],
)
def test_secret_and_private_urls_do_not_reach_a_public_archive(crawl, a, url, where):
    dead = url.format(a.url.rpartition(":")[2])
    crawl.hold(dead)
    result = crawl(urls=[dead], settings={**ON, "ARCHIVE_URL": where})
    assert result.count("dead_links/redirected") == 0
    assert "ARCHIVE_URL failed" not in result.log


@pytest.mark.parametrize("revisit", ["drop", *slow("keep")])
def test_an_item_with_the_dead_url_is_no_visit_of_it(crawl, a, archive, revisit):
    dead = f"{a.url}/1.html"
    a.pages["/1.html"] = Page(html(article(1)))
    settings = gate(archive, NEARDUP_REVISIT=revisit)
    crawl(urls=[dead], settings=settings)
    with Deduplicator.open(crawl.store) as dedup:
        before = dedup.store.resolve(dead)
    del a.pages["/1.html"]
    archive.keep(dead, NOW, article(1))
    result = crawl(urls=[dead], settings=settings, item_url=dead)
    assert (len(result.items), result.count("dead_links/rescued")) == (int(revisit == "keep"), 1)
    assert result.count("changes/gone") == 1
    with Deduplicator.open(crawl.store) as dedup:
        after = dedup.store.resolve(dead)
    assert before is not None
    assert after is not None
    assert (after.seen, after.is_copy, after.loose) == (before.seen, False, False)


@pytest.mark.parametrize("revisit", ["keep", *slow("drop")])
def test_later_runs_ask_again_for_each_run_without_the_content(crawl, a, archive, revisit):
    pages = {"/1.html": 1, "/2.html": 2}
    a.pages = {path: Page(html(article(number))) for path, number in pages.items()}
    urls = [a.url + path for path in pages]
    settings = gate(archive, NEARDUP_REVISIT=revisit)
    assert len(crawl(urls=urls, settings=settings).items) == 2
    del a.pages["/1.html"]
    memento = archive.keep(urls[0], NOW, article(1))
    for _ in range(2):
        result = crawl(urls=urls, settings=settings)
        # A feed of "keep" has all content of the day; the feeds of "drop" have it already.
        assert sorted(result.urls) == (sorted([memento, urls[1]]) if revisit == "keep" else [])
        assert [result.count(f"dead_links/{name}") for name in ("redirected", "rescued")] == [1, 1]
        assert [result.count(f"changes/{kind}") for kind in ("new", "moved", "changed")] == [0, 0, 0]
    with Deduplicator.open(crawl.store) as dedup:
        link = dedup.store.resolve(memento)
        assert link is None or link.signature is None
    a.pages["/1.html"] = Page(html(article(3)))
    assert article(3) in [item["text"] for item in crawl(urls=urls, settings=settings).items]


@pytest.mark.parametrize("name", ["cdx", *slow("plain")])
def test_a_function_of_the_user(crawl, a, archive, name):
    dead = f"{a.url}/page-{archive.url.rpartition(':')[2]}.html"
    crawl.hold(dead)
    archive.keep(dead, NOW - 90 * DAY, article(2))
    near = archive.keep(dead, NOW, article(1))
    result = crawl(urls=[dead], settings={**ON, "ARCHIVE_URL": f"archive_server.{name}"})
    assert (result.urls, result.count("dead_links/rescued")) == ([near], 1)


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("broken", "the archive is closed"),
        *slow(("nothing", "")),
        ("wrong", "it returned 'ftp://127.0.0.3/a'; allowed is "),
    ],
)
def test_a_function_without_a_url(crawl, dead, name, told):
    result = crawl(urls=[dead], settings={**ON, "ARCHIVE_URL": f"archive_server.{name}"})
    assert (result.items, result.count("dead_links/redirected")) == ([], 0)
    assert result.stats["test/failed/HttpError"] == 1
    assert told in result.log
    assert ("ARCHIVE_URL failed for " + dead in result.log) == bool(told)


@pytest.mark.parametrize("wrong", ["http://archive.example/", "archive.example/{url}", "no.module", "os.nothing"])
def test_a_wrong_template_stops_the_crawl_at_its_start(crawl, a, wrong):
    settings = {**ON, "ARCHIVE_URL": wrong}
    result = crawl.finish(crawl.start(settings=settings, urls=[f"{a.url}/1.html"]))
    assert (result.code, a.asked()) == (1, [])
    assert f"ARCHIVE_URL = {wrong!r} is not allowed" in result.log
    assert "; allowed is a URL with {url}, or a function" in result.log
