"""Crawls skip URLs that differ only in parameters that do not matter, and fetch them again if that was wrong."""

from __future__ import annotations

from pathlib import Path

import pytest
from site_server import Page, article, html, serving

ENOUGH = 41  # equal pages that bring a rule into force
COUNT = 50
SKIP = {"NEARDUP_REVISIT": "skip"}


@pytest.fixture(scope="module")
def server():
    """Serve one host under the same URL for all tests of this file, so that what one learned serves others."""
    with serving("127.0.0.1") as site:
        yield site


@pytest.fixture
def a(server):
    server.pages, server.requests, server.headers, server.dead_status = {}, [], [], 0
    for number in range(COUNT):
        for path in variants(number, range(4)):
            server.pages[path] = page(number)
    return server


def page(number):
    return Page(html(article(number), "a"))


def variants(number, sessions):
    return [f"/{number}.html?sid={number:04}abcd{session}" for session in sessions]


def urls(site, numbers, sessions):
    return [site.url + path for number in numbers for path in variants(number, sessions)]


def on(crawl, **settings):
    extensions = {"scrapy_neardup.contrib.variants.Variants": 0}
    return {"EXTENSIONS": extensions, "VARIANTS_FILE": str(crawl.folder / "variants.json"), **settings}


LEARNED: dict[str, tuple[bytes, bytes]] = {}
"""The store and the file of a crawl that learned a rule, by the URL of the host."""


def learn(crawl, a):
    """Crawl all pages, each with two session ids, so that a rule comes into force; return the crawl, if it is new."""
    files = Path(crawl.store), crawl.folder / "variants.json"
    if crawl.server is None and a.url in LEARNED:
        for file, content in zip(files, LEARNED[a.url], strict=True):
            file.write_bytes(content)
        return None
    result = crawl("OneAfterAnother", on(crawl), urls=urls(a, range(COUNT), range(2)))
    assert result.count("variants/learned") == 1
    if crawl.server is None:
        LEARNED[a.url] = files[0].read_bytes(), files[1].read_bytes()
    return result


def test_session_ids_are_learned_in_the_first_run_and_no_page_is_missed(crawl, a):
    LEARNED.clear()
    result = learn(crawl, a)
    assert {item["text"] for item in result.items} == {article(number) for number in range(COUNT)}
    assert result.count("requests/skipped") == 2 * COUNT - len(a.asked()) >= COUNT - ENOUGH - 2
    assert "/…?sid=… and the same URLs without these parameters differ in nothing that matters" in result.log
    skipped = next(url for url in urls(a, [COUNT - 1], [1]))
    held = next(url for url in urls(a, [COUNT - 1], [0]))
    assert f"Skipped <GET {skipped}>: its content is held as {held}, by the rule on variants of its URL" in result.log


@pytest.mark.slow
@pytest.mark.parametrize("args", [{"method": "POST"}, {"settings": {"NEARDUP_MIRROR_TTL": 0}}])
def test_what_the_user_wants_fetched_is_fetched(crawl, a, args):
    learn(crawl, a)
    before = len(a.requests)
    settings = on(crawl, **SKIP, **args.pop("settings", {}))
    crawl("ListSpider", settings, urls=urls(a, range(5), [3]), **args)
    assert len(a.asked(since=before)) == 5


def test_a_recheck_drops_a_rule_that_turned_wrong(crawl, a):
    learn(crawl, a)
    for number in range(10):
        a.pages[variants(number, [3])[0]] = page(1000 + number)
    asked = [*urls(a, range(10), [0]), *urls(a, range(10), [3])]
    result = crawl("OneAfterAnother", on(crawl, NEARDUP_RECHECK=1), urls=asked)
    assert (result.count("requests/rechecked"), result.count("requests/wrongly_skipped")) == (1, 1)
    assert result.count("variants/dropped") == 1
    assert "/…?sid=… and the same URLs without these parameters differ in content: they are fetched again" in result.log
    assert {item["text"] for item in result.items} == {article(n) for base in (0, 1000) for n in range(base, base + 10)}


def test_a_file_that_can_not_be_read_stops_the_crawl_and_is_left_as_it_is(crawl, a):
    file = crawl.folder / "variants.json"
    file.write_text('{"rules": [1]}')
    result = crawl.finish(crawl.start("OneAfterAnother", on(crawl), urls=urls(a, range(2), [3])))
    assert (result.code, a.asked()) == (1, [])
    assert f"VARIANTS_FILE = '{file}' can't be read" in result.log
    assert file.read_text() == '{"rules": [1]}'
