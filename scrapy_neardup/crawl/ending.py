"""The end of each item: what becomes of it decides of its claim."""

from __future__ import annotations

from contextvars import ContextVar
from dataclasses import replace
from typing import TYPE_CHECKING, Any
from weakref import WeakSet

from scrapy import signals
from scrapy.http import Response
from scrapy.pipelines import ItemPipelineManager

from ..document import Document
from ..matching.claim import Claim
from .detours import redirects

if TYPE_CHECKING:
    from scrapy.crawler import Crawler

    from .extension import NearDup


class _InHand:
    """An item on its way through the pipelines: where it came from, and what its end decides of."""

    __slots__ = ("claim", "response")

    def __init__(self, response: Response | None) -> None:
        self.response = response
        self.claim: Claim | Document | None = None
        """A document where the store did not answer; None once it is settled, or where there is nothing to settle."""


# An item goes through all pipelines, and on to its signal, in one context: this says what belongs to it even where a
# later pipeline returned another object, and where one response gave many items.
_in_hand: ContextVar[_InHand | None] = ContextVar("neardup_item", default=None)


class Endings:
    """Follows each item through the pipelines, and settles its claim when it is through, or lost."""

    def __init__(self, crawler: Crawler, neardup: NearDup) -> None:
        self._crawler = crawler
        self._neardup = neardup
        self._access = neardup.access
        self._giving_more: WeakSet[Response] = WeakSet()
        self._giving_many: WeakSet[Response] = WeakSet()

    def watch_items(self) -> None:
        """Have each item's response at hand in the pipeline, where Scrapy passes only the item, and see its end."""
        if self._crawler.engine is None:
            return
        scraper = self._crawler.engine.scraper
        start = scraper.start_itemproc_async

        async def start_itemproc_async(item: Any, *, response: Any) -> None:
            outer = _in_hand.get()  # of a pipeline that has another item go through, and waits for it
            _in_hand.set(_InHand(response if isinstance(response, Response) else None))
            try:
                await start(item, response=response)
            finally:
                self._item_lost()  # if it was not scraped
                _in_hand.set(outer)

        scraper.start_itemproc_async = start_itemproc_async  # type: ignore[method-assign]
        if type(scraper.itemproc) is ItemPipelineManager:
            self._watch_pipelines(scraper.itemproc)
        else:  # an ITEM_PROCESSOR of the user's own, which may go on after that; to be told by a signal takes longer
            self._crawler.signals.connect(self._item_scraped, signal=signals.item_scraped)

    def _watch_pipelines(self, pipelines: ItemPipelineManager) -> None:
        process = pipelines.process_item_async

        async def process_item_async(item: Any) -> Any:
            output = await process(item)
            self._item_scraped()
            return output

        pipelines.process_item_async = process_item_async  # type: ignore[method-assign]

    @property
    def response(self) -> Response | None:
        """The response that the item in hand came from, if any."""
        item = _in_hand.get()
        return item.response if item else None

    def follow(self, claim: Claim | Document) -> None:
        """Settle a claim by what becomes of the item in hand."""
        if item := _in_hand.get():
            item.claim = claim

    def note_unheld_item(self) -> None:
        """Note that the response in hand gave what is held nowhere, so that its URL is no mirror."""
        if response := self.response:
            self._giving_more.add(response)

    def note_several_items(self) -> None:
        """Note that the response in hand gave several documents, so that its URL is the URL of none of them."""
        if response := self.response:
            self._giving_many.add(response)

    def commit(self, claim: Claim) -> None:
        """Commit the claim of the item in hand."""
        self._settled()
        if self.response in self._giving_more:
            document = claim.document
            claim.document = replace(document, loose=frozenset(filter(None, (document.url, *document.aliases))))
        claim.is_one_of_many = self.response in self._giving_many and is_of_page(claim.document, self.response)
        self._access.later(self._commit, claim)
        self._neardup.waitlist.let_go((claim.match or claim).signature)
        self._neardup.leads.judge(claim)

    def _commit(self, claim: Claim) -> None:
        claim.commit()
        if claim.state == "committed":
            self._neardup.dedup.deliveries.record((claim.match or claim).signature)

    def _settled(self) -> Claim | Document | None:
        """Return what was to be settled of the item in hand, once."""
        item = _in_hand.get()
        if item is None:
            return None
        claim, item.claim = item.claim, None
        return claim

    def _item_scraped(self) -> None:
        claim = self._settled()
        if isinstance(claim, Claim):
            self.commit(claim)
        elif claim:
            self._access.take_in_later(claim)

    def _item_lost(self) -> None:
        if isinstance(claim := self._settled(), Claim):
            self._neardup.count("withdrawn")
            self._access.later(claim.withdraw)
            self.note_unheld_item()


def is_of_page(document: Document, response: Response | None) -> bool:
    """Return whether a document has a URL of the response that it came from, and not one of its own."""
    if response is None or response.request is None:
        return False
    return not {document.url, *document.aliases}.isdisjoint((response.url, *redirects(response.request)[0]))
