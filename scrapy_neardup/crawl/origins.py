"""Record the response of each item."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from scrapy.spidermiddlewares.base import BaseSpiderMiddleware

from .extension import NearDup

if TYPE_CHECKING:
    from scrapy import Request
    from scrapy.crawler import Crawler
    from scrapy.http import Response


class ItemOrigins(BaseSpiderMiddleware):
    """Records the response of each item as the spider middleware nearest to the engine.

    As the first item pipeline, it begins to follow the item.
    """

    def __init__(self, crawler: Crawler) -> None:
        super().__init__(crawler)
        neardup = NearDup.from_crawler(crawler)
        self._outcomes, self._streaks = neardup.outcomes, neardup.streaks

    def get_processed_request(self, request: Request, response: Response | None) -> Request:
        self._streaks.mark(request, response.request if response else None)
        return request

    def get_processed_item(self, item: Any, response: Response | None) -> Any:
        if response is not None:
            self._outcomes.note_origin(item, response)
        return item

    def process_item(self, item: Any) -> Any:
        self._outcomes.begin(item)
        return item
