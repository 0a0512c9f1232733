"""Delay requests to a host that may be a mirror, until a few of its pages have told."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from scrapy.utils.httpobj import urlparse_cached

from .reactor import pause

if TYPE_CHECKING:
    from scrapy import Request
    from scrapy.crawler import Crawler

    from ..mirrors.advice import Mirrors
    from .access import Access

PROBES = 2  # pages of such a host that are on their way at once
PAUSE, PAUSES = 0.05, 10_000  # seconds, and how many for the pages of a host, which wait side by side: a minute or so


class Probes:
    """Has pages of a host that looks like a mirror fetched a few at a time, until it is known whether it is one.

    Else a host's pages are all on their way before the first ones were compared.
    """

    def __init__(self, crawler: Crawler, access: Access, mirrors: Mirrors) -> None:
        self._crawler = crawler
        self._access = access
        self._mirrors = mirrors
        self._waiting: set[Request] = set()
        self._pauses: Counter[str] = Counter()

    async def wait(self, request: Request) -> None:
        """Return when a page may be fetched: at once where its host is no such host."""
        host = urlparse_cached(request).netloc
        self._waiting.add(request)
        try:
            while self._pauses[host] < PAUSES:
                others = await self._access.ask(self._mirrors.suspects, request.url)
                if not others:
                    break
                # Side by side with the other host it would fall back, and be taken for the mirror for that alone.
                if self._under_way({host}) < PROBES or self._under_way(others):
                    break
                self._pauses[host] += 1
                await pause(PAUSE)
        finally:
            self._waiting.discard(request)

    def _under_way(self, hosts: set[str]) -> int:
        """Count the requests to some hosts that need not wait any longer, and are not yet dealt with."""
        engine = self._crawler.engine
        if engine is None:
            return 0
        scraped = engine.scraper.slot.active if engine.scraper.slot else ()
        sent = {*engine.downloader.active, *scraped} - self._waiting
        return sum(urlparse_cached(request).netloc in hosts for request in sent)
