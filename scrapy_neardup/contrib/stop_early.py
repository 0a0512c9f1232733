"""Stop after so many seen items in a row, as at the end of the news: the whole crawl, or one of its listings.

An item is seen if it is a revisit or a duplicate. A request that is skipped since its content is held counts as one.
"""

from __future__ import annotations

import logging

from scrapy import Request
from scrapy.crawler import Crawler
from scrapy.http import Response
from scrapy.spidermiddlewares.base import BaseSpiderMiddleware
from scrapy.utils.datatypes import LocalCache

from ..crawl import Adviser, item_judged, request_skipped
from ..crawl.extension import NearDup
from ..deduplicator import Claim
from ..mirrors.advice import STOP, Advice
from . import limit_of

logger = logging.getLogger(__name__)

REASON = "neardup_only_seen"
LISTING = "neardup_listing"  # the meta key with the URL of the start request that led to a request
MOST = 10_000  # listings that are remembered


class StopEarly:
    """An extension that closes the spider after STOP_EARLY_ITEMS seen items in a row."""

    def __init__(self, neardup: NearDup, limit: int) -> None:
        self._neardup = neardup
        self._limit = limit
        self._seen = 0

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> StopEarly:
        o = cls(*limit_of(crawler, "STOP_EARLY_ITEMS"))
        crawler.signals.connect(o.item_judged, signal=item_judged)
        crawler.signals.connect(o.count, signal=request_skipped)
        return o

    def item_judged(self, claim: Claim | None) -> None:
        if is_seen(claim):
            self.count()
        else:
            self._seen = 0

    def count(self) -> None:
        """Count a seen item."""
        self._seen += 1
        if self._seen == self._limit:
            logger.info("The spider is closed: the last %d items were seen before", self._seen)
            self._neardup.close_spider(REASON)


class StopListing(BaseSpiderMiddleware, Adviser):
    """A spider middleware that stops the requests from a start request after STOP_LISTING_ITEMS seen items in a row.

    So a crawl leaves a listing, such as a section of a news site, at its first page without anything new.
    """

    def __init__(self, crawler: Crawler) -> None:
        super().__init__(crawler)
        neardup, self._limit = limit_of(crawler, "STOP_LISTING_ITEMS")
        self._seen: LocalCache[str, int] = LocalCache(MOST)
        neardup.advisers.append(self)
        crawler.signals.connect(self.item_judged, signal=item_judged)
        crawler.signals.connect(self.request_skipped, signal=request_skipped)

    def get_processed_request(self, request: Request, response: Response | None) -> Request:
        origin = response.request if response else None
        request.meta[LISTING] = request.url if origin is None else origin.meta.get(LISTING, origin.url)
        return request

    def item_judged(self, claim: Claim | None, response: Response | None) -> None:
        if response and response.request:
            self._count(response.request, is_seen=is_seen(claim))

    def request_skipped(self, request: Request) -> None:
        self._count(request, is_seen=True)

    def _count(self, request: Request, *, is_seen: bool) -> None:
        listing = request.meta.get(LISTING)
        if listing is None or self._is_stopped(listing):  # a stopped listing stays stopped
            return
        self._seen[listing] = self._seen.get(listing, 0) + 1 if is_seen else 0
        if self._is_stopped(listing):
            logger.info("No more requests from %s: its last %d items were seen before", listing, self._limit)

    def _is_stopped(self, listing: str) -> bool:
        return self._seen.get(listing, 0) >= self._limit

    async def advise(self, request: Request) -> Advice | None:
        if self._is_stopped(request.meta.get(LISTING, "")):
            return Advice(STOP, None, known_by="its start request gave only seen items lately")
        return None


def is_seen(claim: Claim | None) -> bool:
    """Return whether an item was seen before, given its claim; None for an item without a verdict."""
    return claim is not None and claim.verdict.status != "unique" and not claim.verdict.changed
