"""Request held pages on the condition that they have changed (NEARDUP_CONDITIONAL).

A page is asked for on a condition if its last full fetch gave exactly one item, which was stored under the URL of the
page. The validators of the page, and the requests that the spider made from it, are in the link of the URL. If the
server answers 304, these requests are sent again, and the page counts as a revisit.
"""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Iterable, Iterator
from typing import TYPE_CHECKING, Any, NamedTuple
from weakref import WeakKeyDictionary

from scrapy import Request
from scrapy.exceptions import IgnoreRequest, NotConfigured
from scrapy.http import Response

from ..signature import Link
from .detours import is_ours
from .extension import NearDup
from .validators import CONDITIONS, carried, rebuilt, unpack

if TYPE_CHECKING:
    from scrapy import Spider
    from scrapy.crawler import Crawler
    from typing_extensions import Self

logger = logging.getLogger(__name__)

_OTHERS = ("If-Match", "If-Unmodified-Since", "Range", *CONDITIONS.values())  # headers that rule out a condition
_MARKS = {"neardup_detour", "neardup_recheck", "neardup_restored", "neardup_sent_after_all"}  # requested in full


class _Asked(NamedTuple):
    """A held page that was requested on a condition."""

    link: Link
    requests: list[Request]


class ConditionalMiddleware:
    """Requests held pages on the condition that they have changed.

    As a downloader middleware nearer to the downloader than the HTTP cache, it sends the conditions. So the cache never
    holds an answer 304. As a spider middleware, it collects the requests that the spider makes from a page.
    """

    def __init__(self, neardup: NearDup, crawler: Crawler) -> None:
        self._neardup = neardup
        self._crawler = crawler
        self._asked: WeakKeyDictionary[Request, _Asked] = WeakKeyDictionary()

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        neardup = NearDup.from_crawler(crawler)
        if not neardup.pages.is_active:
            raise NotConfigured  # without a message, for which Scrapy would log a warning
        return cls(neardup, crawler)

    @property
    def _spider(self) -> Spider:
        assert self._crawler.spider
        return self._crawler.spider

    # As a downloader middleware

    async def process_request(self, request: Request) -> None:
        if not is_ours(request) or request.meta.keys() & _MARKS or any(name in request.headers for name in _OTHERS):
            return
        link = await self._neardup.access.ask(self._neardup.pages.held, request.url)
        if link is None or link.page is None:
            return
        try:
            page = unpack(link.page)
            if page.carried == carried(request, self._spider):
                self._asked[request] = _Asked(link, rebuilt(page, self._spider))
                request.headers.update(page.conditions)
        except (TypeError, ValueError, OverflowError) as error:
            logger.debug("%s is requested without a condition: %s", request, error)

    async def process_response(self, request: Request, response: Response) -> Response:
        asked = self._take(request)
        if asked is None or response.status != 304:
            return response
        neardup = self._neardup
        for name in ("requests/not_modified", "documents", "revisits"):
            neardup.count(name)
        neardup.count("bytes_saved", asked.link.size)
        neardup.streaks.note(request, is_seen=True)
        neardup.access.later(neardup.dedup.visits.renew, asked.link)
        if document := asked.link.signature:
            neardup.access.later(neardup.dedup.deliveries.record, document)
            neardup.waitlist.let_go(document)
        assert self._crawler.engine
        for made in asked.requests:
            neardup.streaks.mark(made, request)
            self._crawler.engine.crawl(made)
        raise IgnoreRequest("not modified since its last fetch")

    async def process_exception(self, request: Request, exception: Exception) -> None:
        self._take(request)

    def _take(self, request: Request) -> _Asked | None:
        """Remove the conditions from a request, since redirects and retries copy its headers."""
        asked = self._asked.pop(request, None)
        for name in CONDITIONS.values() if asked else ():
            request.headers.pop(name, None)
        return asked

    # As a spider middleware

    def process_spider_output(self, response: Response, result: Iterable[Any]) -> Iterator[Any]:
        for each in result:
            self._neardup.pages.collect(response, each)
            yield each

    async def process_spider_output_async(self, response: Response, result: AsyncIterator[Any]) -> AsyncIterator[Any]:
        async for each in result:
            self._neardup.pages.collect(response, each)
            yield each
