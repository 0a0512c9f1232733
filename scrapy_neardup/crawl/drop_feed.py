"""Write the feed of dropped items, with Scrapy's feed exporter."""

from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

from itemadapter import ItemAdapter
from scrapy.crawler import Crawler
from scrapy.extensions.feedexport import FeedExporter
from scrapy.settings import BaseSettings
from scrapy.signalmanager import SignalManager

from ..settings import TAG_FIELD, ConfigError
from ..stats import Stat
from ..verdict import Verdict

logger = logging.getLogger(__name__)


class DroppedFeed:
    """Writes dropped items with their verdicts to the feed URI in NEARDUP_DROPPED."""

    def __init__(self, crawler: Crawler, uri: str, count: Callable[[Stat], object]) -> None:
        """Open the feed. Raise ConfigError if Scrapy has no storage or format for its URI."""
        assert crawler.spider
        self._spider, self._count = crawler.spider, count
        self._is_failing = False
        try:
            self._exporter = FeedExporter(cast("Crawler", _CrawlerOfOneFeed(crawler, uri)))
            self._exporter.open_spider(self._spider)
        except Exception as error:  # a storage may raise anything for an invalid URI
            allowed = "a feed URI with a scheme in FEED_STORAGES and a file extension in FEED_EXPORTERS"
            raise ConfigError(f"NEARDUP_DROPPED = {uri!r} is not allowed: {error!r}; allowed is {allowed}") from error

    def write(self, item: Any, url: str | None, verdict: Verdict) -> None:
        """Write a dropped item. Items that can't be written are counted, and the first error is logged."""
        try:
            self._exporter.item_scraped(self._row(item, url, verdict), self._spider)
        except Exception as error:  # neither a full disk nor a value in the item may harm the crawl
            self._count("errors")
            if not self._is_failing:
                self._is_failing = True
                logger.error("Dropped items can't be written to NEARDUP_DROPPED: %r", error)

    async def close(self) -> None:
        """Finish the feed, and store it at its URI."""
        await self._exporter.close_spider(self._spider)

    def _row(self, item: Any, url: str | None, verdict: Verdict) -> dict[str, Any]:
        """Return the fields of an item, as in the feed of items, and the tag with the URL."""
        adapter = ItemAdapter(item)
        row = {
            name: adapter.get_field_meta(name).get("serializer", lambda each: each)(adapter[name]) for name in adapter
        }
        return {**row, TAG_FIELD: {"url": url, **verdict.tag()}}


class _CrawlerOfOneFeed:
    """Imitates a crawler with the feed of dropped items as its only feed.

    It has signals of its own, so that signal handlers for the crawl's feeds do not see this feed.
    """

    def __init__(self, crawler: Crawler, uri: str) -> None:
        self._crawler = crawler
        format_ = Path(uri).suffix.removeprefix(".") or "jsonlines"
        feed = {"format": format_, "fields": None, "batch_item_count": 0}  # all fields, one file
        self.settings = BaseSettings({**crawler.settings, "FEEDS": {uri: feed}, "FEED_URI": None})
        self.signals = SignalManager(self)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._crawler, name)
