"""Follow each item from its response to its outcome: scraped, dropped, failed or lost.

A pipeline gets an item without its response, and may return another object. So `ItemOrigins` records the response of
each item as a spider middleware. As the first pipeline, it puts the item with its response into a context variable. The
other pipelines, and the handlers of the item's final signal, run in the same context.

An item that ends without a signal is lost, for example in a cancelled task. This is noticed when its task ends or,
without asyncio, when its context is collected.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from contextlib import suppress
from contextvars import ContextVar
from dataclasses import replace
from typing import TYPE_CHECKING, Any
from weakref import WeakSet, ref

from scrapy import signals
from scrapy.http import Response
from scrapy.utils.datatypes import LocalCache

from ..document import Document
from ..matching.claim import Claim
from ..text.urls import host
from .detours import is_stand_in, redirects

if TYPE_CHECKING:
    from .extension import NearDup

logger = logging.getLogger(__name__)

MOST = 10_000  # the maximum number of items between spider and pipelines; spider middlewares may drop some of them

_NO_ORIGIN = (
    "The responses of items are unknown, so items are identified by their own URLs only, and no request is skipped "
    "because of them. Enable scrapy_neardup.Addon, or enable scrapy_neardup.ItemOrigins in the same places as the "
    "add-on"
)
_NO_OUTCOME = (
    "No item is remembered, since the ITEM_PROCESSOR of this project runs the pipelines in tasks of its own, in which "
    "items can't be followed"
)


class ItemInHand:
    """An item on its way through the pipelines."""

    __slots__ = ("_lost", "claim", "has_ended", "is_judged", "outer", "response")

    def __init__(self, response: Response | None, outer: ItemInHand | None, lost: deque[Claim]) -> None:
        """`outer` is the item that a pipeline was processing when that pipeline sent this item. `lost` collects claims
        without an outcome."""
        self.response = response
        self.outer = outer
        self.claim: Claim | Document | None = None
        """The claim, or the document if the store did not answer; None if there is nothing to settle."""
        self.is_judged = self.has_ended = False
        self._lost = lost

    def lose(self, _: object = None) -> None:
        """Add the claim of an item without an outcome to `lost`. Call this when no signal can arrive any more."""
        if isinstance(self.claim, Claim):
            self._lost.append(self.claim)
            self.claim = None

    __del__ = lose


_in_hand: ContextVar[ItemInHand | None] = ContextVar("neardup_item", default=None)


def _current() -> ItemInHand | None:
    """Return the innermost item of this context that has not ended; None if there is none."""
    item = _in_hand.get()
    while item and item.has_ended:
        item = item.outer
    return item


class Outcomes:
    """Commits or withdraws the claim of each item, depending on the outcome of the item."""

    def __init__(self, neardup: NearDup) -> None:
        self._neardup = neardup
        self._access = neardup.access
        self._origins: LocalCache[int, tuple[Any, ref[Response]]] = LocalCache(MOST)
        """The response of each item by the `id()` of the item. The item is kept, so that no other item gets this id."""
        self._lost: deque[Claim] = deque()
        self._giving_more: WeakSet[Response] = WeakSet()
        self._giving_many: WeakSet[Response] = WeakSet()
        self._giving_one: WeakSet[Response] = WeakSet()
        self._warnings = {_NO_ORIGIN, _NO_OUTCOME}

    def connect(self) -> None:
        """Connect to the signals that end an item."""
        connect = self._neardup.crawler.signals.connect
        connect(self._item_scraped, signal=signals.item_scraped)
        connect(self._item_lost, signal=signals.item_dropped)
        connect(self._item_lost, signal=signals.item_error)

    # Following an item

    def note_origin(self, item: Any, response: Response) -> None:
        """Record the response of an item."""
        self._origins[id(item)] = item, ref(response)

    def begin(self, item: Any) -> ItemInHand:
        """Begin to follow an item in this context."""
        _, response = self._origins.pop(id(item), (None, None))
        begun = ItemInHand(response() if response else None, _current(), self._lost)
        _in_hand.set(begun)
        # The context can outlive the item, if a pipeline started something in it, such as a connection pool.
        with suppress(RuntimeError):  # no asyncio
            if task := asyncio.current_task():
                task.add_done_callback(begun.lose)
        return begun

    def take(self, item: Any) -> ItemInHand:
        """Return the state of an item that is to be judged. Begin to follow the item if necessary."""
        taken = _current()
        if taken is None or taken.is_judged:
            taken = self.begin(item)
        taken.is_judged = True
        return taken

    def _end(self, response: Response | None) -> ItemInHand | None:
        """Return the state of a signal's item, and mark the item as ended; None if the item is not followed."""
        item = _current()
        if item is None or item.response not in (None, response):
            return None
        item.has_ended = True
        if item.response is None and isinstance(response, Response):
            self._warn(_NO_ORIGIN)
        return item

    def _item_scraped(self, response: Response | None) -> None:
        item = self._end(response)
        if item is None:
            self._warn(_NO_OUTCOME)
        elif isinstance(item.claim, Claim):
            self.commit(item)
        elif item.claim:
            self._access.take_in_later(item.claim)

    def _item_lost(self, response: Response | None) -> None:
        item = self._end(response)
        if item is None:
            return
        claim, item.claim = item.claim, None
        if isinstance(claim, Claim):
            self._withdraw(claim)
            self.note_unheld_item(item.response)

    def _warn(self, message: str) -> None:
        if message in self._warnings:
            self._warnings.discard(message)
            logger.warning(message)

    # Claims

    def commit(self, item: ItemInHand) -> None:
        """Commit the claim of an item."""
        claim, item.claim = item.claim, None
        assert isinstance(claim, Claim)
        if item.response in self._giving_more:
            document = claim.document
            claim.document = replace(document, loose=frozenset(filter(None, (document.url, *document.aliases))))
        if item.response in self._giving_many and is_of_page(claim.document, item.response):
            claim.is_one_of_many = True
        request = item.response.request if item.response else None
        if is_passing := request is not None and is_stand_in(request):
            claim.document, claim.is_one_of_many = replace(claim.document, url=None, aliases=()), True
        self._access.later(self._commit, claim, is_passing)
        self._neardup.waitlist.let_go((claim.match or claim).signature)
        self._neardup.leads.note_verdict(claim)

    def _commit(self, claim: Claim, is_passing: bool) -> None:
        claim.commit()
        if claim.state != "committed":
            return
        document, dedup = (claim.match or claim).signature, self._neardup.dedup
        if is_passing:
            dedup.deliveries.record_passing(document)
            return
        by_own_host = host(claim.document.url or "") == host(document.url or "")
        is_preferred = document.url in dedup.matcher.preference
        dedup.deliveries.record(document, by_own_host=is_preferred and by_own_host)
        for adviser in self._neardup.advisers:
            with self._neardup.guarded(adviser, claim.document.url):
                adviser.visited(claim)

    def withdraw_lost(self) -> None:
        """Withdraw the claims of lost items."""
        while self._lost:
            self._withdraw(self._lost.popleft())

    def _withdraw(self, claim: Claim) -> None:
        self._neardup.count("withdrawn")
        self._access.later(claim.withdraw)

    # Responses

    def note_unheld_item(self, response: Response | None) -> None:
        """Note that a response had content that is not held, so that its URLs are fetched again."""
        if response:
            self._giving_more.add(response)

    def note_only_item(self, response: Response) -> None:
        """Note that a response gives exactly one item, so that its URL is the item's own."""
        self._giving_one.add(response)

    def gives_one_item(self, response: Response) -> bool:
        """Return whether a response gives exactly one item."""
        return response in self._giving_one

    def note_several_items(self, response: Response) -> None:
        """Note that a response had several documents, so that its URL is linked to none of them."""
        self._giving_many.add(response)


def is_of_page(document: Document, response: Response | None) -> bool:
    """Return whether a document has the URL of its response, or a URL that redirected to the response."""
    if response is None or response.request is None:
        return False
    return not {document.url, *document.aliases}.isdisjoint((response.url, *redirects(response.request)[0]))
