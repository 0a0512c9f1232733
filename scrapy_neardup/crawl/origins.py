"""Record the response of each item."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from scrapy.spidermiddlewares.base import BaseSpiderMiddleware

from .extension import NearDup

if TYPE_CHECKING:
    from scrapy.crawler import Crawler
    from scrapy.http import Response


class ItemOrigins(BaseSpiderMiddleware):
    """Records the response of each item: a spider middleware, nearest to the engine, and the first item pipeline."""

    def __init__(self, crawler: Crawler) -> None:
        super().__init__(crawler)
        self._outcomes = NearDup.from_crawler(crawler).outcomes

    def get_processed_item(self, item: Any, response: Response | None) -> Any:
        if response is not None:
            self._outcomes.note_origin(item, response)
        return item

    def process_item(self, item: Any) -> Any:
        self._outcomes.begin(item)
        return item
