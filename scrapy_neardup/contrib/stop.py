"""Stop where only known content comes: the whole crawl, one of its listings, or a directory that is a trap.

A *listing* is a start request with all requests that it leads to. A *trap* has endless URLs with one content. An item
is *seen* if it is a revisit or a duplicate, unless its URL last returned another document. So is a skipped request.
"""

from __future__ import annotations

import logging
import re
from urllib.parse import parse_qsl, unquote, urlsplit

from scrapy import Request
from scrapy.crawler import Crawler
from scrapy.exceptions import NotConfigured
from scrapy.http import Response
from scrapy.spidermiddlewares.base import BaseSpiderMiddleware
from scrapy.utils.datatypes import LocalCache

from ..crawl import Adviser, item_judged, request_skipped
from ..crawl.detours import Ticket, is_plain
from ..crawl.extension import NearDup
from ..deduplicator import Claim
from ..mirrors import STOP, Advice
from ..text.urls import canonical_url

logger = logging.getLogger(__name__)

REASON = "neardup_only_seen"
LISTING = "neardup_listing"  # the meta key with the URL of the start request that led to a request
MOST = 10_000  # the maximum of remembered listings, of closed directories, and of directories with an original


def limit_of(crawler: Crawler, name: str) -> tuple[NearDup, int]:
    """Return the plugin's shared state in a crawl, and the limit that the setting `name` gives.

    Raise NotConfigured if the limit is below 1, or in an audit, since an audit stops nothing.
    """
    if (limit := crawler.settings.getint(name)) < 1:
        raise NotConfigured(f"{name} is not a number above 0")
    neardup = NearDup.from_crawler(crawler)
    if neardup.config.action == "audit":
        raise NotConfigured("an audit stops nothing")
    return neardup, limit


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
        self._seen += 1
        if self._seen == self._limit:
            logger.info("The spider is closed: the last %d items were seen before", self._seen)
            self._neardup.close_spider(REASON)


class StopListing(BaseSpiderMiddleware, Adviser):
    """A spider middleware that stops following a start request after STOP_LISTING_ITEMS seen items in a row.

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
    """Return whether the item of a claim was seen before. The claim is None for an item without a verdict."""
    return claim is not None and claim.verdict.status != "unique" and not claim.verdict.changed


class Traps(Adviser):
    """An extension that stops the requests to a directory when TRAPS_COPIES of its URLs gave copies of one document."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._copies: LocalCache[tuple[str, int], set[str]] = LocalCache(MOST)
        """The URLs that gave a copy, by their directory and the original."""
        self._closed: LocalCache[str, bool] = LocalCache(MOST)

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Traps:
        neardup, limit = limit_of(crawler, "TRAPS_COPIES")
        o = cls(limit)
        neardup.advisers.append(o)
        crawler.signals.connect(o.item_judged, signal=item_judged)
        return o

    def item_judged(self, claim: Claim | None, response: Response | None) -> None:
        if not (claim and claim.match and claim.is_copy and response and response.request):
            return
        original, url = claim.match.signature, _url(response.request)
        place = _place(url)
        urls = self._copies[place, original.id] = self._copies.get((place, original.id), set()) | {url}
        if len(urls) >= self._limit and place not in self._closed:
            self._closed[place] = True
            logger.warning(
                "%d URLs such as %s have the content of %s. No more URLs of this directory are requested until the "
                "crawl ends or is paused (TRAPS_COPIES)", len(urls), url, original.url,
            )  # fmt: skip

    async def advise(self, request: Request) -> Advice | None:
        if self._closed and is_plain(request) and _place(_url(request)) in self._closed:
            return Advice(STOP, None, known_by="its directory has too many URLs with the same content")
        return None


def _url(request: Request) -> str:
    """Return the canonical URL of a request; for a detour, that of the replaced request."""
    return canonical_url(Ticket.of(request).instead_of or request.url)


def _place(url: str) -> str:
    """Return the host and the path up to its last slash, with each number as 0, and the names of the parameters."""
    parts = urlsplit(url)
    folder = re.sub(r"\d+", "0", unquote(parts.path.rpartition("/")[0]))
    return f"{parts.netloc}{folder}/?{'&'.join(sorted({name for name, _ in parse_qsl(parts.query)}))}"
