"""Two crawls at the same time on one store: both meet the same content before either sees the other's claim."""

from __future__ import annotations

import json

import pytest
from site_server import Gate, Page, article, html
from tiers import slow


@pytest.fixture
def both(crawl, a, b):
    """Crawl from two lists of URLs, so that both hold the first item of each before either is stored."""

    def run(first, second, settings):
        a.pages, b.pages = gates = [Gate({**site.pages, "/hold": Page()}, "/hold") for site in (a, b)]
        started = []
        for urls, site, gate in zip((first, second), (a, b), gates, strict=True):
            hold = {**settings, "ITEM_PIPELINES": {"spiders.AskFirst": 900}, "ASK": f"{site.url}/hold"}
            started.append(crawl.start("OneAfterAnother", hold, urls=urls))
            assert gate.reached.wait(60)
        gates[0].opened.set()
        started[0].communicate(timeout=60)
        gates[1].opened.set()
        result = crawl.finish(started[1])
        assert result.code == started[0].returncode == 0
        return crawl.items(1), result.items

    for site in (a, b):
        site.pages = {path: Page(html(article(0))) for path in ("/0", "/1", "/2")}
    return run


@pytest.mark.parametrize("crawl", ["file"], indirect=True)  # on a server the second one waits for the first
@pytest.mark.parametrize(
    ("twin", "revisit", "later"),
    [("same", "keep", 1), *slow(("other", "drop", 0), ("same", "drop", 0), ("other", "keep", 1))],
)
def test_each_feed_has_once_what_both_met_at_the_same_time(crawl, a, b, both, twin, revisit, later):
    copies, settings = [f"{a.url}/1", f"{a.url}/2", f"{b.url}/1"], {"NEARDUP_REVISIT": revisit}
    feeds = both([f"{(a if twin == 'same' else b).url}/0", *copies], [f"{a.url}/0", *copies], settings)
    assert [len(feed) for feed in feeds] == [1, 1]
    for urls in ([f"{a.url}/0", f"{b.url}/0", *copies], [*copies, f"{b.url}/0", f"{a.url}/0"]):
        assert len(crawl("ListSpider", settings, urls=urls).items) == later


def test_a_url_that_gives_another_process_something_else(crawl, a):
    """The first process gave the text of /0 before, and meets it again later."""
    a.pages = gate = Gate({f"/{n}": Page(html(article(n % 2))) for n in range(3)}, "/1")
    first = crawl.start("OneAfterAnother", urls=[f"{a.url}/{n}" for n in range(3)])
    assert gate.reached.wait(60)
    gate["/0"] = Page(html(article(9)))
    second = crawl(urls=[f"{a.url}/0"])
    gate.opened.set()
    first.communicate(timeout=60)
    assert (second.urls, [item["url"][-1] for item in crawl.items(1)]) == ([f"{a.url}/0"], ["0", "1"])


def test_an_item_url_that_gives_something_else_later_in_the_crawl(crawl, a):
    """The first text is held since the day before."""
    items = [(0, 0), (0, 1), (1, 0)]
    rows = [[{"url": f"{a.url}/item/{url}", "text": article(number)}] for url, number in items]
    a.pages = {f"/{n}": Page(json.dumps(row)) for n, row in enumerate(rows)}
    urls, one = [f"{a.url}/{n}" for n in range(3)], {"CONCURRENT_REQUESTS": 1}
    crawl("JsonSpider", urls=urls[:1])
    given = crawl("JsonSpider", one, urls=urls).items
    assert given == rows[0] + rows[1]
