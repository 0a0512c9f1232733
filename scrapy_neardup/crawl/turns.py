"""Whose turn it is: of copies that are crawled side by side the spider says which is kept, not the network."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, field
from itertools import chain, count
from urllib.parse import urlsplit

from scrapy import Request
from scrapy.http import Response
from scrapy.utils.httpobj import urlparse_cached

from ..document import Document
from ..matching.claim import Claim
from .extension import NearDup
from .reactor import pause

TURN = 0.5  # seconds
MAX_TURNS = 10


@dataclass(order=True)
class _Waiting:
    """A document that waits for its turn."""

    rank: int
    number: int
    document: Document = field(compare=False)
    response: Response | None = field(compare=False)
    claim: Claim | None = field(compare=False, default=None)


class Turns:
    """Lets documents that come at about the same time be claimed in the order of their requests' priority."""

    def __init__(self, neardup: NearDup) -> None:
        self._neardup = neardup
        self._access = neardup.access
        self._waiting: list[_Waiting] = []
        self._number = count()

    async def claim(self, document: Document, response: Response | None) -> Claim:
        """Claim a document; while pages of higher priority are under way elsewhere, a moment later and after them."""
        if not self._outranking(response):
            return await self._access.claim(document)
        rank = -response.request.priority if response and response.request else 0
        entry = _Waiting(rank, next(self._number), document, response)
        self._waiting.append(entry)
        try:
            for _ in range(MAX_TURNS):
                await pause(TURN)
                if not self._is_preceded(entry):
                    break
        except BaseException:
            if entry.claim:
                self._access.later(entry.claim.withdraw)
            raise
        finally:
            self._waiting.remove(entry)
        others = [other for other in sorted(self._waiting) if other < entry and not self._is_preceded(other)]
        return await self._access.run(self._claim_waiting, others, entry)

    def _claim_waiting(self, others: list[_Waiting], entry: _Waiting) -> Claim:
        """Claim a document that waited, after those of higher priority that need not wait any longer."""
        for other in others:
            if other.claim is None:
                with suppress(Exception):  # which it will meet itself when its turn ends
                    other.claim = self._neardup.dedup.try_claim(other.document)
        return entry.claim or self._neardup.dedup.try_claim(entry.document)

    def _outranking(self, response: Response | None) -> list[Request]:
        """Return the requests to other hosts, of a higher priority than the response's, that are under way."""
        engine = self._neardup.crawler.engine
        if response is None or response.request is None or engine is None:
            return []
        scraped = engine.scraper.slot.active if engine.scraper.slot else ()
        priority, host = response.request.priority, urlparse_cached(response).netloc
        return [
            request
            for request in chain(engine.downloader.active, scraped)
            if request.priority > priority and urlparse_cached(request).netloc != host
        ]

    def _is_preceded(self, entry: _Waiting) -> bool:
        """Say whether a likely copy of higher priority is still on its way: the same path and query on another host."""
        place = _place(entry.response.url) if entry.response else ""
        return any(_place(request.url) == place for request in self._outranking(entry.response))


def _place(url: str) -> tuple[str, str]:
    parts = urlsplit(url)
    return parts.path, parts.query
