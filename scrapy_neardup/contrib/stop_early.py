"""Close the spider after so many seen items in a row, as at the end of the news in an incremental crawl.

An item is seen if it is a revisit or a duplicate. A request that is skipped since its content is held counts as one.
"""

from __future__ import annotations

import logging

from scrapy.crawler import Crawler

from ..crawl.doors import item_judged, request_skipped
from ..crawl.extension import NearDup
from ..matching.claim import Claim
from . import is_seen, limit_of

logger = logging.getLogger(__name__)

REASON = "neardup_only_seen"


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
