"""Hold skipped requests, and send them if no URL returns their content in this run."""

from __future__ import annotations

import logging
from collections import OrderedDict
from collections.abc import Iterable
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING

from scrapy import Request, signals
from scrapy.exceptions import DontCloseSpider
from scrapy.utils.defer import deferred_from_coro
from scrapy.utils.job import job_dir

from ..signature import Signature
from .detours import redirects

if TYPE_CHECKING:
    from scrapy.crawler import Crawler

    from .extension import NearDup

logger = logging.getLogger(__name__)

MOST = 10_000  # the maximum number of held requests; if there are more, the oldest are sent


class _Waiting:
    """The requests that were skipped for one document."""

    __slots__ = ("is_tried", "requests")

    def __init__(self) -> None:
        self.requests: list[tuple[Request, int]] = []
        """Each request, with the size of its URL's last response in bytes."""
        self.is_tried = False

    def take(self) -> list[tuple[Request, int]]:
        """Remove and return the first request. At later calls, remove and return all other requests.

        A second call means that the first request did not return the document.
        """
        count = len(self.requests) if self.is_tried else 1
        taken, self.requests = self.requests[:count], self.requests[count:]
        self.is_tried = True
        return taken


class Waitlist:
    """Sends skipped requests if no URL returned their content in this run.

    A request is dropped once a URL has returned its content. When the spider is idle, one request is sent for each
    document that is still missing. When the spider is idle again, the other requests are sent.
    """

    def __init__(self, crawler: Crawler, neardup: NearDup) -> None:
        self._crawler = crawler
        self._neardup = neardup
        self._waiting: OrderedDict[Signature, _Waiting] = OrderedDict()
        self._count = 0
        self._is_asking = False
        crawler.signals.connect(self._spider_idle, signal=signals.spider_idle)

    def add(self, request: Request, document: Signature, size: int) -> None:
        """Hold a request that was skipped for a document. `size` is the number of bytes saved."""
        self._waiting.setdefault(document, _Waiting()).requests.append((request, size))
        self._count += 1
        while self._count > MOST:
            self._send(self._waiting.popitem(last=False)[1].requests)

    def let_go(self, document: Signature) -> None:
        """Drop the requests that were skipped for a document, after the document was delivered."""
        if waiting := self._waiting.pop(document, None):
            self._count -= len(waiting.requests)

    def put_back(self) -> None:
        """Put all requests back into the queue of a paused job, to hold them again in the next session.

        Without JOBDIR, drop them.
        """
        if job_dir(self._crawler.settings):
            for request, size in chain.from_iterable(waiting.requests for waiting in self._waiting.values()):
                self._crawl(request, size)
        self._waiting.clear()

    def _spider_idle(self) -> None:
        if self._is_asking:
            raise DontCloseSpider
        if self._waiting:
            self._is_asking = True
            deferred_from_coro(self._release())
            raise DontCloseSpider

    async def _release(self) -> None:
        """Send a request for each missing document, unless another process has delivered the document meanwhile."""
        try:
            for document in await self._neardup.access.ask(partial(self._come, list(self._waiting))) or ():
                self.let_go(document)
        except Exception:  # no error of the plugin may lose the requests
            logger.exception("Skipped requests are sent after all, since an error prevents the check for their content")
        finally:
            self._is_asking = False
        for document, waiting in list(self._waiting.items()):
            self._send(waiting.take())
            if not waiting.requests:
                del self._waiting[document]

    def _come(self, documents: Iterable[Signature]) -> list[Signature]:
        dedup = self._neardup.dedup
        while dedup.store.refresh():
            pass
        return list(filter(dedup.deliveries.is_delivered, documents))

    def _send(self, requests: Iterable[tuple[Request, int]]) -> None:
        for request, size in requests:
            self._count -= 1
            self._neardup.count("requests/sent_after_all")
            request.meta["neardup_sent_after_all"] = request.url
            self._crawl(request, size)

    def _crawl(self, request: Request, size: int) -> None:
        self._neardup.count("requests/skipped", -1)
        self._neardup.count("bytes_saved", -size)
        assert self._crawler.engine
        self._crawler.engine.crawl(request.replace(dont_filter=True))


def is_sent_after_all(request: Request) -> bool:
    """Return whether a request was skipped first and is sent after all, or was redirected from such a request."""
    return request.meta.get("neardup_sent_after_all") in (request.url, *redirects(request)[0][:1])
