"""No item is lost if a user has replaced a part of Scrapy with a component of his own."""

from __future__ import annotations

import pytest
from site_server import Page, article, mirror
from tiers import slow

PIPELINE = {"scrapy_neardup.NearDupPipeline": 300}
COMPONENTS = {
    "ADDONS": {},
    "DOWNLOADER_MIDDLEWARES": {"scrapy_neardup.MirrorMiddleware": 75},
    "SPIDER_MIDDLEWARES": {"scrapy_neardup.ItemOrigins": 0},
    "ITEM_PIPELINES": PIPELINE,
}
SELECT = {"TWISTED_REACTOR": "twisted.internet.selectreactor.SelectReactor"}
on_reactors = pytest.mark.parametrize("reactor", [{}, *slow(SELECT)], ids=["asyncio", "select"])


def warnings(result):
    return [
        line.partition("WARNING: ")[2]
        for line in result.log.splitlines()
        if "[scrapy_neardup" in line and "WARNING: " in line
    ]


def test_by_hand_it_works_as_with_the_add_on(crawl, a, b):
    first = crawl("OneAfterAnother", COMPONENTS, urls=mirror(a, b))
    second = crawl("OneAfterAnother", COMPONENTS, urls=mirror(a, b))
    assert (first.count("duplicates"), len(first.items), len(second.items)) == (3, 3, 3)
    assert second.count("requests/skipped") == 3
    assert warnings(first) == []


@on_reactors
def test_without_their_responses_items_are_compared_and_nothing_is_skipped(crawl, a, b, reactor):
    settings = {**COMPONENTS, "SPIDER_MIDDLEWARES": {}, **reactor}
    for _ in range(2):
        result = crawl("OneAfterAnother", settings, urls=mirror(a, b))
        assert (result.count("duplicates"), len(result.items), result.count("requests/skipped")) == (3, 3, 0)
        [warning] = warnings(result)
        assert warning.startswith("The responses of items are unknown")


@on_reactors
def test_a_pipeline_before_ours_may_replace_items(crawl, a, b, reactor):
    settings = {"ITEM_PIPELINES": {"spiders.CopyItem": 100, "spiders.ReplaceItem": 500}, **reactor}
    urls = mirror(a, b)
    first = crawl("OneAfterAnother", settings, urls=urls)
    second = crawl("OneAfterAnother", settings, urls=urls)
    assert (len(first.items), len(second.items), second.count("requests/skipped")) == (3, 3, 3)
    assert warnings(first) == []


@on_reactors
def test_one_object_for_all_items(crawl, a, reactor):
    a.pages["/list"] = Page("".join(f"<p>{article(n)}</p>" for n in (1, 2, 1)))
    result = crawl("SameObject", reactor, urls=[f"{a.url}/list"])
    assert len(result.items) + result.count("duplicates") == 3  # whatever the spider made of them meanwhile
    assert result.count("errors") == 0


@pytest.mark.parametrize("pool", [{}, *slow({"spiders.Pool": 500})], ids=["", "pool"])
@pytest.mark.parametrize("together", [True, *slow(False)])
def test_an_item_processor_that_runs_pipelines_elsewhere_loses_no_item(crawl, a, b, together, pool):
    """Nothing is committed either, since nobody can tell what became of an item."""
    urls = mirror(a, b)
    crawl("OneAfterAnother", urls=urls[:1])
    spider = "ListSpider" if together else "OneAfterAnother"
    settings = {"ITEM_PROCESSOR": "spiders.ProcessorInTasks", "ITEM_PIPELINES": pool}
    result = crawl(spider, settings, urls=urls, dont_filter=True)
    assert {item["text"] for item in result.items} == {article(n) for n in range(3)}
    assert result.count("store/documents") == 1
    [warning] = warnings(result)
    assert warning.startswith("No item is remembered")


def test_a_receiver_of_all_signals(crawl, a, b):
    result = crawl("OneAfterAnother", {"EXTENSIONS": {"spiders.AnySignal": 1}}, urls=mirror(a, b))
    assert (len(result.items), result.count("duplicates")) == (3, 3)


def test_a_download_handler_of_a_spider_s_own(crawl, a, b):
    urls = mirror(a, b)
    crawl("OneAfterAnother", urls=urls)
    asked = len(b.requests)
    settings = {"DOWNLOAD_HANDLERS": {"http": "spiders.OwnHandler"}}
    again = crawl("OneAfterAnother", settings, urls=urls)
    assert (again.count("requests/skipped"), b.asked(since=asked)) == (3, [])
    assert again.stats["test/downloaded"] == len(again.items) == 3
