"""Advisers that the tests of advisers enable in EXTENSIONS."""

from __future__ import annotations

import gc
import logging

from scrapy import Request
from scrapy.crawler import Crawler
from scrapy.exceptions import IgnoreRequest

from scrapy_neardup import Claim
from scrapy_neardup.crawl import Adviser, item_judged, request_skipped
from scrapy_neardup.crawl.detours import detour
from scrapy_neardup.crawl.extension import NearDup
from scrapy_neardup.mirrors import REDIRECT, SKIP, STOP, Advice

logger = logging.getLogger(__name__)


class ByPath(Adviser):
    """Gives each kind of advice for one path, such as STOP for `/stop`, and logs the calls and signals that it gets."""

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> ByPath:
        o = cls()
        NearDup.from_crawler(crawler).advisers.append(o)
        crawler.signals.connect(o.judged, signal=item_judged)
        crawler.signals.connect(o.skipped, signal=request_skipped)
        return o

    async def advise(self, request: Request) -> Advice | None:
        advice = {
            "/stop": Advice(STOP, None, known_by="it is enough"),
            "/skip": Advice(SKIP, "http://held.example/", 7, known_by="a guess"),
            "/redirect": Advice(REDIRECT, request.url.replace("redirect", "target")),
            "/nowhere": Advice(REDIRECT, None),
        }
        if request.url.endswith("/original") and "127.0.0.1" in request.url:
            return Advice(SKIP, "http://held.example/", 7, known_by="a guess")
        if request.url.endswith("/break"):
            raise RuntimeError("broken")
        if request.url.endswith("/refuse"):  # as Scrapy does within a download of the adviser's own
            raise IgnoreRequest("forbidden by robots.txt")
        return advice.get(f"/{request.url.rpartition('/')[2]}")

    async def rescue(self, request: Request, dead: str, seen: float) -> Request | None:
        return detour(request, f"{dead}-elsewhere") if seen else None

    def visited(self, claim: Claim) -> None:
        logger.info("visited %s: %s", claim.document.url, claim.state)

    def judged(self, item: object, claim: Claim | None) -> None:
        logger.info("judged %s", claim and claim.verdict.status)

    def skipped(self, request: Request) -> None:
        logger.info("skipped %s", request.url)


class LeftAlone(ByPath):
    """Collects garbage at a moment when no component refers to the shared state, which must be there nevertheless."""

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> ByPath:
        made = super().from_crawler(crawler)
        gc.collect()
        return made
