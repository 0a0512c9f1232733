"""Patience with hosts that look like mirrors: a few more pages will tell, so the others need not be fetched yet."""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING

from scrapy.utils.httpobj import urlparse_cached

from .pause import pause

if TYPE_CHECKING:
    from scrapy import Request
    from scrapy.crawler import Crawler

    from .mirrors import Mirrors

PROBES = 4  # pages of such a host that are on their way at once
PAUSE, PAUSES = 0.05, 100  # seconds; 5 in all


class Probes:
    """Has pages of a host that looks like a mirror fetched a few at a time, until it is known whether it is one.

    Else a host's pages are all on their way before the first ones were compared.
    """

    def __init__(self, crawler: Crawler, mirrors: Mirrors) -> None:
        self._crawler = crawler
        self._mirrors = mirrors
        self._sent: set[Request] = set()

    async def wait(self, request: Request) -> None:
        """Return when a page may be fetched: at once where its host is no such host."""
        for _ in range(PAUSES):
            if not self._mirrors.is_on_trial(request.url) or self._under_way(request) < PROBES:
                break
            await pause(PAUSE)
        self._sent.add(request)

    def _under_way(self, request: Request) -> int:
        """Count the pages of a request's host that were sent for, and are not yet dealt with."""
        engine = self._crawler.engine
        scraped = engine.scraper.slot.active if engine and engine.scraper.slot else ()
        self._sent &= set(chain(engine.downloader.active if engine else (), scraped))
        host = urlparse_cached(request).netloc
        return sum(urlparse_cached(sent).netloc == host for sent in self._sent)
