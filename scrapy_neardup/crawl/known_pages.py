"""The built-in adviser of a crawl: on URLs whose content is known, or follows from a rule on hosts."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from scrapy.utils.httpobj import urlparse_cached

from .detours import is_plain, redirects
from .doors import Adviser
from .reactor import pause

if TYPE_CHECKING:
    from scrapy import Request
    from scrapy.crawler import Crawler

    from ..mirrors.advice import Advice, Mirrors
    from .access import Access

PROBES = 2  # pages of a possible mirror that may be in flight at once
PAUSE = 0.05  # seconds of a pause
PAUSES = 10_000  # the maximum number of pauses of all pages of a host: about a minute if eight pages wait at once


class KnownPages(Adviser):
    """Advises by what the store knows.

    A request to a host that may be a mirror waits until a few of its pages were compared. Otherwise all pages of the
    host would be in flight before the first ones were compared.
    """

    def __init__(self, crawler: Crawler, access: Access, mirrors: Mirrors) -> None:
        self._crawler = crawler
        self._access = access
        self._mirrors = mirrors
        self._waiting: set[Request] = set()
        self._pauses: Counter[str] = Counter()

    async def advise(self, request: Request) -> Advice | None:
        if not is_plain(request):
            return None
        await self._probe(request)
        return await self._access.ask(self._mirrors.advise, request.url, redirects(request)[0])

    async def _probe(self, request: Request) -> None:
        """Wait until a request may be sent. Only a request to a host that may be a mirror has to wait."""
        host = urlparse_cached(request).netloc
        self._waiting.add(request)
        try:
            while self._pauses[host] < PAUSES:
                others = await self._access.ask(self._mirrors.suspects, request.url)
                if not others:
                    break
                # If this host waited for pages of the other hosts, it would fall behind, and look like the mirror.
                if self._under_way({host}) < PROBES or self._under_way(others):
                    break
                self._pauses[host] += 1
                await pause(PAUSE)
        finally:
            self._waiting.discard(request)

    def _under_way(self, hosts: set[str]) -> int:
        """Return the number of requests to these hosts that were sent and are not yet handled."""
        engine = self._crawler.engine
        if engine is None:
            return 0
        scraped = engine.scraper.slot.active if engine.scraper.slot else ()
        sent = {*engine.downloader.active, *scraped} - self._waiting
        return sum(urlparse_cached(request).netloc in hosts for request in sent)
