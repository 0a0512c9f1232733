"""The end of each item: what becomes of it decides of its claim."""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar
from dataclasses import replace
from typing import TYPE_CHECKING, Any
from weakref import WeakSet

from scrapy import signals
from scrapy.http import Response

from .access import Access
from .dedup import Claim
from .document import Document
from .stats import Stat

if TYPE_CHECKING:
    from scrapy.crawler import Crawler

# An item goes through all pipelines, and on to its signal, in one context: these say what belongs to it even where a
# later pipeline returned another object, and where one response gave many items.
_response: ContextVar[Response | None] = ContextVar("neardup_response", default=None)
_claim: ContextVar[Claim | Document | None] = ContextVar("neardup_claim", default=None)
"""A document where the store did not answer."""


class Endings:
    """Follows each item through the pipelines, and settles its claim when it is through, or lost."""

    def __init__(self, crawler: Crawler, access: Access, count: Callable[[Stat], object]) -> None:
        self._crawler = crawler
        self._access = access
        self._count = count
        self._giving_more: WeakSet[Response] = WeakSet()
        self._open: WeakSet[Claim] = WeakSet()
        connect = crawler.signals.connect
        connect(self.item_scraped, signal=signals.item_scraped)
        connect(self.item_lost, signal=signals.item_dropped)
        connect(self.item_lost, signal=signals.item_error)

    def remember_responses(self) -> None:
        """Have each item's response at hand in the pipeline, where Scrapy passes only the item."""
        if self._crawler.engine is None:
            return
        scraper = self._crawler.engine.scraper
        start = scraper.start_itemproc_async

        async def start_itemproc_async(item: Any, *, response: Any) -> None:
            _response.set(response if isinstance(response, Response) else None)
            _claim.set(None)
            try:
                await start(item, response=response)
            finally:
                self.item_lost()  # where it ended without a signal, such as by being cancelled

        scraper.start_itemproc_async = start_itemproc_async  # type: ignore[method-assign]

    @property
    def response(self) -> Response | None:
        """The response that the item in hand came from, if any."""
        return _response.get()

    def follow(self, claim: Claim | Document) -> None:
        """Settle a claim by what becomes of the item in hand."""
        if isinstance(claim, Claim):
            self._open.add(claim)
        _claim.set(claim)

    def give_more(self) -> None:
        """Note that the response in hand gave what is held nowhere, so that its URL is no mirror."""
        if response := _response.get():
            self._giving_more.add(response)

    def commit(self, claim: Claim) -> None:
        """Commit the claim of the item in hand."""
        self._open.discard(claim)
        if _response.get() in self._giving_more:
            document = claim.document
            claim.document = replace(document, loose=frozenset(filter(None, (document.url, *document.aliases))))
        self._access.later(claim.commit)

    def item_scraped(self) -> None:
        claim = _claim.get()
        if isinstance(claim, Document):
            self._access.take_in_later(claim)
        elif claim:
            self.commit(claim)

    def item_lost(self) -> None:
        claim = _claim.get()
        if isinstance(claim, Claim) and claim in self._open:
            self._open.discard(claim)
            self._count("withdrawn")
            self._access.later(claim.withdraw)
            self.give_more()
