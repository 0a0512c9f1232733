"""Crawlers that run at the same time in one process, on one store in a file: each sees the others' claims."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from forks import FORKS, Fork
from helpers import until
from site_server import Gate, Page, Site, article, html
from tiers import slow

from scrapy_neardup import Deduplicator

HERE = Path(__file__).parent
RUN = """
import asyncio, json, sys
import scrapy.crawler, spiders
from scrapy.utils.reactor import install_reactor

kind, settings, crawls = json.loads(sys.argv[1])


def made(each):
    base = getattr(spiders, each["spider"])
    return type(base.__name__, (base,), {"name": each["name"], "custom_settings": each["settings"]})


if kind == "AsyncCrawlerRunner":
    install_reactor("twisted.internet.asyncioreactor.AsyncioSelectorReactor")
    runner = scrapy.crawler.AsyncCrawlerRunner(settings)

    async def main():
        await asyncio.gather(*(runner.crawl(made(each), spec=each["args"]) for each in crawls))

    from twisted.internet import reactor
    from twisted.internet.defer import ensureDeferred, Deferred
    done = Deferred.fromFuture(asyncio.ensure_future(main(), loop=reactor._asyncioEventloop))
    done.addBoth(lambda result: (reactor.stop(), result)[1])
    reactor.run()
else:
    process = getattr(scrapy.crawler, kind)(settings)
    for each in crawls:
        process.crawl(made(each), spec=each["args"])
    process.start()
"""


class Together:
    """Runs several crawls in one process, each with a feed of its own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.store = str(folder / "store.sqlite")
        self.log = folder / "log.txt"

    def start(self, *crawls: dict[str, Any], kind: str = "AsyncCrawlerProcess", **settings: Any) -> Fork:
        """Start crawls, each given by its URLs, its spider and its settings."""
        named = [self._spec(number, **each) for number, each in enumerate(crawls)]
        common = {
            "ADDONS": {"scrapy_neardup.Addon": 500},
            "NEARDUP_STORE": self.store,
            "NEARDUP_RECHECK": 0,
            "TELNETCONSOLE_ENABLED": False,
            "LOG_FILE": str(self.log),
            **settings,
        }
        return FORKS.start(HERE, ["code", RUN, json.dumps([kind, common, named])], dict(os.environ))

    def _spec(self, number: int, urls: list[str], spider: str = "ListSpider", **settings: Any) -> dict[str, Any]:
        feed = {str(self.folder / f"{number}.jsonl"): {"format": "jsonlines", "overwrite": True}}
        return {
            "name": f"spider{number}",
            "spider": spider,
            "args": {"urls": urls},
            "settings": {"FEEDS": feed, **settings},
        }

    def feeds(self, process: Fork, count: int = 2) -> list[list[str]]:
        """Wait for the end, and return the texts in each feed."""
        _, errors = process.communicate(timeout=120)
        log = self.log.read_text() if self.log.exists() else ""
        assert process.returncode == 0, errors + log[-3000:]
        assert "Traceback" not in errors + log
        lines = [(self.folder / f"{number}.jsonl").read_text().splitlines() for number in range(count)]
        return [[json.loads(line)["text"] for line in each] for each in lines]


@pytest.fixture
def together(tmp_path: Path) -> Together:
    return Together(tmp_path)


@pytest.fixture
def urls(a: Site, b: Site) -> list[str]:
    """Serve six articles, each at two URLs."""
    for site in (a, b):
        site.pages = {f"/{n}.html": Page(html(article(n))) for n in range(6)}
    return [f"{site.url}/{n}.html" for site in (a, b) for n in range(6)]


ALL = sorted(map(article, range(6)))
KINDS = ["AsyncCrawlerProcess", *slow("CrawlerProcess", "AsyncCrawlerRunner")]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("revisit", ["drop", *slow("keep")])
def test_each_article_is_kept_once_by_two_crawlers(together, urls, kind, revisit):
    process = together.start({"urls": urls}, {"urls": urls}, kind=kind, NEARDUP_REVISIT=revisit)
    first, second = together.feeds(process)
    assert sorted(first + second) == ALL
    with Deduplicator.open(together.store) as dedup:
        runs = dedup.store.runs()[:-1]
        assert [(run.writer, run.closed is not None) for run in runs] == [("spider0", True), ("spider1", True)]
        assert [run.stats["documents"] for run in runs] == [12, 12]
        assert [run.stats.get("unique", 0) for run in runs] == [len(first), len(second)]
        assert len(dedup) == 6


@pytest.mark.slow
def test_three_crawlers_with_namespaces_meet_only_in_their_own(together, urls):
    crawls = [{"urls": urls, "NEARDUP_NAMESPACE": name} for name in ("one", "one", "other")]
    one, same, other = together.feeds(together.start(*crawls), 3)
    assert sorted(one + same) == sorted(other) == ALL


@pytest.fixture
def held(together, a, b):
    """Let the first crawler hold an item, and the second one meet its copy. Then answer to the first."""

    def run(**first: Any) -> list[list[str]]:
        a.pages = claimed = Gate({"/0": Page(html(article(0))), "/hold": Page()}, "/hold")
        b.pages = copy = Gate({f"/{n}": Page(html(article(n))) for n in (0, 1)}, "/0")
        hold = {"ITEM_PIPELINES": {"spiders.AskFirst": 900}, "ASK": f"{a.url}/hold"}
        urls = [f"{b.url}/{path}" for path in ("0", "1", "after")]
        process = together.start({"urls": [f"{a.url}/0"], **hold, **first}, {"urls": urls, "CONCURRENT_REQUESTS": 1})
        assert claimed.reached.wait(60)
        copy.opened.set()
        until(lambda: "/after" in b.requests)  # the item of /0 has come to the pipeline meanwhile
        claimed.opened.set()
        return together.feeds(process)

    return run


def test_a_copy_waits_for_the_item_of_the_other_crawler(held):
    assert held() == [[article(0)], [article(1)]]


def test_an_item_that_the_other_crawler_drops_is_kept_from_the_copy(held):
    first, second = held(ITEM_PIPELINES={"spiders.AskFirst": 900, "spiders.DropFirst": 950})
    assert (first, sorted(second)) == ([], sorted([article(0), article(1)]))


def test_a_crawler_that_ends_first(together, a, urls):
    """The second crawler goes on alone after the end of the first, whose documents it meets then."""
    a.pages = gate = Gate(a.pages, "/0.html")
    process = together.start({"urls": urls[6:]}, {"urls": urls[:6], "spider": "OneAfterAnother"})
    assert gate.reached.wait(60)
    until(lambda: "Spider closed (finished)" in together.log.read_text())
    gate.opened.set()
    assert [sorted(feed) for feed in together.feeds(process)] == [ALL, []]


def test_a_kill_while_both_crawlers_have_claims(together, a, b, urls):
    a.pages["/hold"] = Page()
    a.pages = gate = Gate(a.pages, "/hold")
    hold = {"ITEM_PIPELINES": {"spiders.AskFirst": 900}, "ASK": f"{a.url}/hold"}
    process = together.start({"urls": urls, **hold}, {"urls": urls, **hold})
    assert gate.reached.wait(60)
    process.kill()
    process.communicate(timeout=60)
    gate.opened.set()
    first, second = together.feeds(together.start({"urls": urls}, {"urls": urls}))
    assert sorted(first + second) == ALL
