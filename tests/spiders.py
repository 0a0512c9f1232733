"""Spiders and pipelines of the crawl tests. The process that crawls imports them."""

from __future__ import annotations

import asyncio
import os
import sqlite3
import time
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import scrapy
from item_kinds import kinds
from pydispatch import dispatcher
from record_spiders import EventSpider, OtherEventSpider  # noqa: F401 - found here by their names
from scrapy.core.downloader.handlers.http11 import HTTP11DownloadHandler
from scrapy.exceptions import DropItem
from scrapy.pipelines import ItemPipelineManager
from site_server import article

from scrapy_neardup.crawl import extension
from scrapy_neardup.crawl.extension import NearDup
from scrapy_neardup.crawl.workers import pause


class SerializedItem(scrapy.Item):
    url = scrapy.Field()
    title = scrapy.Field(serializer=lambda title: f"<{title.upper()}>")
    text = scrapy.Field()


KINDS = {**kinds("url", "title", "text"), "serialized": SerializedItem}


class ListSpider(scrapy.Spider):
    """Requests the URLs that the test lists, and yields an item for each page.

    `spec`: `urls`, and optionally `kind` (of item), `with_url`, `item_url`, `field` (text, html or body), `start`
    (request them as start requests), `meta`, `method`, `body`, `headers`, `errback`, `attributes`.
    """

    name = "list"

    def __init__(self, spec: dict, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.spec = spec
        for name, value in spec.get("attributes", {}).items():
            setattr(self, name, value)

    async def start(self):
        if self.spec.get("start"):
            for url in self.spec["urls"]:
                yield self.request(url)
        else:
            yield scrapy.Request("data:,go", self.list, dont_filter=True)

    def list(self, response):
        for number, url in enumerate(self.spec["urls"]):
            yield self.request(url, priority=-number)

    def request(self, url: str, priority: int = 0) -> scrapy.Request:
        return scrapy.Request(
            url,
            self.page,
            method=self.spec.get("method", "GET"),
            body=self.spec.get("body"),
            errback=self.failed,
            priority=priority,
            dont_filter=self.spec.get("dont_filter", False),
            headers=self.spec.get("headers"),
            cookies=self.spec.get("cookies"),
            meta=dict(self.spec.get("meta", {})),
        )

    def page(self, response):
        field = self.spec.get("field", "text")
        whole = {"html": response.text, "body": response.body}
        text = whole.get(field) or " ".join(response.css("p::text, #content div::text").getall())
        values = {"title": response.css("title::text").get(""), field: text}
        if self.spec.get("with_url", True):
            values["url"] = response.urljoin(self.spec.get("item_url", response.url))
        if self.spec.get("with_meta"):
            values["crawl_meta"] = {k: v for k, v in response.meta.items() if k.startswith("neardup")}
            values["crawled_url"] = response.url
        yield KINDS[self.spec.get("kind", "dict")](**values)

    def failed(self, failure):
        self.crawler.stats.inc_value(f"test/failed/{failure.type.__name__}")


class OtherSpider(ListSpider):
    """Does the same as ListSpider under another name."""

    name = "other"


class ManySpider(ListSpider):
    """Yields an item for each paragraph of a page."""

    def page(self, response):
        for text in response.css("p::text").getall():
            assert text != "broken"
            yield {"text": text}
        if self.spec.get("bare_item"):
            yield {"price": 3}


class RowSpider(ListSpider):
    """Yields an item for each paragraph of a page, with its own URL or the URL of the page."""

    def page(self, response):
        for number, text in enumerate(response.css("p::text").getall()):
            yield {"url": response.urljoin(f"/p/{number}") if self.spec.get("own") else response.url, "text": text}


@dataclass
class Record:
    name: str = ""
    sku: str = ""
    price: float | None = None
    description: str = ""


class RecordSpider(ListSpider):
    """Yields two records of different types for each paragraph of a page. The <b> elements have their SKUs."""

    def page(self, response):
        for description, sku in zip(response.css("p::text").getall(), response.css("b::text").getall(), strict=True):
            yield {"name": "Boot", "sku": sku, "description": description}
            yield Record(name="Shoe", sku=sku, description=description)


class JsonSpider(ListSpider):
    """Yields the items that a page lists as JSON."""

    def page(self, response):
        yield from response.json()


class OneSiteAfterAnother(ListSpider):
    """Requests the URLs of `urls` and, when the spider is idle, those of `then` together."""

    @classmethod
    def from_crawler(cls, crawler, *args, **kwargs):
        spider = super().from_crawler(crawler, *args, **kwargs)
        crawler.signals.connect(spider.idle, signal=scrapy.signals.spider_idle)
        return spider

    def idle(self):
        then, self.spec["then"] = self.spec["then"], []
        for number, url in enumerate(then):
            self.crawler.engine.crawl(self.request(url, priority=-number))
        if then:
            raise scrapy.exceptions.DontCloseSpider


class OneAfterAnother(ListSpider):
    """Requests each URL when the page of the previous one has been parsed or has failed."""

    def list(self, response):
        self.left = list(self.spec["urls"])
        yield self.next()

    def next(self):
        return self.request(self.left.pop(0)) if self.left else None

    def page(self, response):
        yield from super().page(response)
        yield self.next()

    def failed(self, failure):
        super().failed(failure)
        return self.next()


class InlineSpider(ListSpider):
    """Awaits another page in the callback of each page, and yields both as one item."""

    async def page(self, response):
        meta = response.meta if self.spec.get("with_meta") else None
        other = await self.crawler.engine.download_async(scrapy.Request(self.spec["inline"], meta=meta))
        texts = [each.css("p::text").get("") for each in (response, other)]
        yield {"url": response.url, "text": " ".join(texts)}


class AgainSpider(ListSpider):
    """Requests a failed page again: by the same request or, with `anew`, by a new one."""

    def failed(self, failure):
        super().failed(failure)
        if self.spec.get("anew"):
            yield self.request(failure.request.url).replace(dont_filter=True)
        else:
            yield failure.request.replace(dont_filter=True)


class TeaserSpider(ListSpider):
    """Yields a teaser with a URL of its own from each page, then follows that URL."""

    def page(self, response):
        if detail := response.css("a::attr(href)").get():
            url = detail if self.spec.get("raw") else response.urljoin(detail)
            yield {"url": url, "text": response.css("p::text").get()}
            yield response.follow(detail, self.page, errback=self.failed)
        else:
            yield from super().page(response)


class MetaSpider(ListSpider):
    """Follows links with the meta of the page that they are on, as many spiders do."""

    def page(self, response):
        yield from super().page(response)
        yield from response.follow_all(css="a", callback=super().page, meta=response.meta)


class IndexSpider(ListSpider):
    """Follows links with the meta of the page that they are on. A page with links gives no item."""

    def page(self, response):
        yield from response.follow_all(css="a", callback=super().page, errback=self.failed, meta=response.meta)


class SiteSpider(ListSpider):
    """Yields an item for each page with text, and follows all links, the first links first."""

    def page(self, response):
        if response.css("p::text, #content div::text"):
            yield from super().page(response)
        for number, link in enumerate(response.xpath("//a[not(ancestor::ul)]/@href").getall()):
            yield response.follow(link, self.page, errback=self.failed, priority=-number)


class Stream(ListSpider):
    """Yields three items with the time of each. The last one comes late."""

    async def page(self, response):
        for number in range(3):
            if number == 2:  # until the first two have a verdict
                await asyncio.sleep(0.2)
            yield {"url": response.urljoin(f"/{number}"), "text": article(number), "as_of": time.time()}


class GivesUp(ListSpider):
    """Raises an error after the first item of a page."""

    def page(self, response):
        yield {"text": article(1)}
        raise ValueError("no more items")


class Replacement:
    """Yields another item if a callback fails."""

    def process_spider_exception(self, response, exception):
        return [{"text": article(2)}]


class OddSpider(ListSpider):
    """Yields items with invalid URLs and texts, after a normal item."""

    def page(self, response):
        yield from super().page(response)
        yield {"url": "http://[bad", "text": " ".join(f"odd{n}" for n in range(100))}
        yield {"url": 7, "text": ["", None, 3]}


def nested(value: Any, depth: int) -> Any:
    for _ in range(depth):
        value = [value]
    return value


class OddValues(ListSpider):
    """Yields two items with equal articles on two hosts for each odd value of a field."""

    def page(self, response):
        cyclic: list[Any] = []
        cyclic.append(cyclic)
        values = [Decimal("1e100000000"), Decimal("sNaN"), -(10**5000), nested("x", 100_000), cyclic, {"self": cyclic}]
        for number, value in enumerate(values):
            for host in ("a", "b"):
                yield {"url": f"http://{host}{number}.example/", "text": article(number), "odd": value}


class ForgetOddValue:
    """Removes the field that no feed can write."""

    def process_item(self, item):
        del item["odd"]
        return item


class OfCrawler:
    """A component whose constructor takes the crawler."""

    @classmethod
    def from_crawler(cls, crawler):
        return cls(crawler)


class Hold(OfCrawler):
    """A pipeline that holds items until HOLD_RESPONSES responses have come. HOLD_DROPS_FIRST: drop the first item then.

    The first item is also held until HOLD_WAITING documents wait for the outcome of pending ones.
    """

    def __init__(self, crawler) -> None:
        self.crawler, self.responses = crawler, crawler.settings.getint("HOLD_RESPONSES")
        self.waiting = crawler.settings.getint("HOLD_WAITING")
        self.drop_first = crawler.settings.getbool("HOLD_DROPS_FIRST")

    async def process_item(self, item):
        waiting, self.waiting = self.waiting, 0
        await until(lambda: self.crawler.stats.get_value("response_received_count", 0) >= self.responses)
        await until(lambda: self.count_waiting() >= waiting)
        if self.drop_first:
            self.drop_first = False
            self.drop()
        return item

    def count_waiting(self):
        return sum(len(claim._observers) for claim in NearDup.from_crawler(self.crawler).dedup.pending.values())

    def drop(self):
        raise DropItem("the first")


class CancelFirst(Hold):
    """Works as Hold does, but cancels the first item instead of dropping it. So Scrapy sends no signal for the item."""

    def drop(self):
        raise asyncio.CancelledError


class AskFirst:
    """A pipeline that holds the first item until the test answers a request to the URL in the setting ASK."""

    def __init__(self, url: str) -> None:
        self.url = url

    @classmethod
    def from_crawler(cls, crawler):
        return cls(crawler.settings["ASK"])

    async def process_item(self, item):
        url, self.url = self.url, ""
        if url:
            await asyncio.to_thread(urlopen, url)
        return item


class DropFirst:
    def __init__(self) -> None:
        self.count = 0

    def process_item(self, item):
        self.count += 1
        if self.count == 1:
            raise DropItem("the first one")
        return item


class DropEverySecond:
    def __init__(self) -> None:
        self.count = 0

    def process_item(self, item):
        self.count += 1
        if self.count % 2 == 0:
            raise DropItem("every second")
        return item


class FailEverySecond(DropEverySecond):
    def process_item(self, item):
        try:
            return super().process_item(item)
        except DropItem:
            raise RuntimeError("every second") from None


class AddItem(OfCrawler):
    """A pipeline that, for each item of a page, sends a second item through all pipelines and waits for its end."""

    def __init__(self, crawler) -> None:
        self.crawler = crawler

    async def process_item(self, item):
        if "url" in item:
            added = {"text": " ".join(reversed(item["text"].split()))}
            await self.crawler.engine.scraper.start_itemproc_async(added, response=None)
        return item


class AddOddValue:
    """Adds to one copy a value that JSON can't represent."""

    def process_item(self, item):
        return {**item, "odd": object()} if "127.0.0.2" in item["url"] and "/1.html" in item["url"] else item


class CountFeeds(OfCrawler):
    """Counts the signals that Scrapy sends when it closes feeds."""

    def __init__(self, crawler) -> None:
        self.stats = crawler.stats
        crawler.signals.connect(self.slot_closed, signal=scrapy.signals.feed_slot_closed)
        crawler.signals.connect(self.exporter_closed, signal=scrapy.signals.feed_exporter_closed)

    def slot_closed(self):
        self.stats.inc_value("test/slots_closed")

    def exporter_closed(self):
        self.stats.inc_value("test/exporters_closed")


class ReplaceItem:
    """Returns another item, without the fields that could identify the original item."""

    def process_item(self, item):
        return {"replaced": len(item.get("text", ""))}


class CopyItem:
    """Returns an equal item that is another object."""

    def process_item(self, item):
        return dict(item)


class SameObject(ListSpider):
    """Yields one object several times, with another text each time."""

    def page(self, response):
        item = {}
        for text in response.css("p::text").getall():
            item["text"] = text
            yield item


class ProcessorInTasks(ItemPipelineManager):
    """Runs the pipelines for each item in a new task, as a timeout would."""

    async def process_item_async(self, item):
        return await asyncio.create_task(super().process_item_async(item))


class OwnHandler(HTTP11DownloadHandler):
    """Downloads, and counts the downloads."""

    async def download_request(self, request):
        self.crawler.stats.inc_value("test/downloaded")
        return await super().download_request(request)


class Pool:
    """Starts a task at the first item that lasts as long as the crawl, as a pool of connections does."""

    def __init__(self) -> None:
        self.task = None

    async def process_item(self, item):
        self.task = self.task or asyncio.create_task(asyncio.Event().wait())
        return item


class AnySignal:
    """Receives all signals, as a logger of signals does."""

    @classmethod
    def from_crawler(cls, crawler):
        made = cls()
        crawler.signals.connect(made.hear, signal=dispatcher.Any)
        return made

    def hear(self, **_):
        return None


async def until(true: Callable[[], bool]) -> None:
    """Wait until `true()` is true. After 60 seconds, end the process, so that the test fails in any case."""
    end = time.monotonic() + 60
    while not true():
        if time.monotonic() > end:
            os._exit(70)
        await pause(0.01)


class FullDisk(OfCrawler):
    """A pipeline that fills the store's disk, twice, and makes room when the store has failed."""

    def __init__(self, crawler):
        from faulty import fill_up  # which imports pytest

        extension.FLUSH_INTERVAL = 0.05  # in the process of this crawl
        self.fill_up = fill_up
        self.disk = Path(crawler.settings["NEARDUP_STORE"]).parent
        self.stats = crawler.stats
        self.log = Path(crawler.settings["LOG_FILE"])
        self.items = 0
        self.turn = asyncio.Lock()

    async def process_item(self, item):
        async with self.turn:
            self.items += 1
            if self.items in (2, 6):
                self.errors = self.failed()
                self.filler = self.fill_up(self.disk)
            if self.items in (4, 8):
                await until(lambda: self.failed() > self.errors)
                self.filler.unlink()
                await until(lambda: self.log.read_text().count("The store answers again") == self.items // 4)
        return item

    def failed(self):
        return self.stats.get_value("neardup/store/errors", 0)


class DamagedRows(OfCrawler):
    """A pipeline that damages all rows of a kind in the store once an item has come: documents, or visits."""

    def __init__(self, crawler):
        self.store = crawler.settings["NEARDUP_STORE"]
        self.kind = crawler.settings.get("DAMAGED", "key > 0")  # those of visits are below
        self.done = False

    def process_item(self, item):
        if not self.done:
            with closing(sqlite3.connect(self.store)) as db, db:
                of_kind = f"typeof(key) = 'integer' AND {self.kind}"
                db.execute(f"UPDATE neardup SET value = zeroblob(50) WHERE {of_kind}")
            self.done = True
        return item


class Failing:
    """A detector with a bug."""

    name = "failing"
    scheme = "failing/1"

    def fingerprints(self, document):
        raise ZeroDivisionError("a bug")

    def index(self):
        from scrapy_neardup.row_index import Equal

        return Equal()


class Refusing(Failing):
    """A detector that raises IgnoreRequest, by which Scrapy's middlewares drop a request."""

    def fingerprints(self, document):
        raise scrapy.exceptions.IgnoreRequest("no such word here")


class Choosy(Failing):
    """A detector that fails only on texts with the word "impossible"."""

    name = scheme = "choosy"

    def fingerprints(self, document):
        return super().fingerprints(document) if "impossible" in document.text else ()


class Patient(ListSpider):
    """Creates the file for which `wait_until_told` waits, when some pages have come and no more come.

    The stat `received_before` is their number. So a test sees that the crawl went on while a worker waited.
    """

    @classmethod
    def from_crawler(cls, crawler, *args, **kwargs):
        spider = super().from_crawler(crawler, *args, **kwargs)
        os.environ["NEARDUP_TEST_GATE"] = spider.spec["gate"]
        crawler.signals.connect(spider.opened, signal=scrapy.signals.spider_opened)
        return spider

    async def opened(self):
        self.watching = asyncio.ensure_future(self.watch())

    async def watch(self):
        stats, before, still = self.crawler.stats, 0, 0
        while still < 20:
            await asyncio.sleep(0.05)
            received = stats.get_value("response_received_count", 0)
            still = still + 1 if received == before and received > 3 else 0
            before = received
        stats.set_value("received_before", before)
        Path(self.spec["gate"]).touch()


class PagedSpider(ListSpider):
    """Reads paged lists: follows the links to pages with an item, and then the link to the next list."""

    async def start(self):
        for url in self.spec["urls"]:
            yield scrapy.Request(url, self.listing)

    def listing(self, response):
        yield from response.follow_all(css="li a", callback=self.page, errback=self.failed, priority=1)
        yield from response.follow_all(css="a.next", callback=self.listing, errback=self.failed)
