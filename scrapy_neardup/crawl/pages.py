"""Follow the pages of a crawl, and each item from its response to its outcome: scraped, dropped, failed or lost.

A *page* is one response with all that came of it. A pipeline gets an item without its response, and may return another
object. So `ItemOrigins` notes the response of each item as a spider middleware. As the first pipeline, it puts the item
with its page into a context variable. The other pipelines, and the handlers of the item's final signal, run in the same
context. An item that ends without a signal is lost, for example in a cancelled task. This is noticed when its task ends
or, without asyncio, when its context is collected.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import deque
from contextlib import suppress
from contextvars import ContextVar
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary, ref

from lxml import etree
from scrapy import Request, signals
from scrapy.http import HtmlResponse, Response, TextResponse
from scrapy.utils.datatypes import LocalCache

from ..document import Document, Tree
from ..facts import Clock
from ..fingerprints.simhash import layout
from ..items import Fetch
from ..signature import Signature
from ..text.html import canonical_links, elements, has_long_tag, parse
from ..text.urls import host
from .tickets import AFTER_ALL, RECHECK, STAND_IN, Ticket, is_plain, redirects

if TYPE_CHECKING:
    from ..deduplicator import Claim
    from .extension import NearDup

logger = logging.getLogger(__name__)

MOST = 10_000  # the maximum number of items between spider and pipelines; spider middlewares may drop some of them
COPIES = 100_000  # the maximum number of remembered copies; the oldest are forgotten
RECENT = 1_000  # the maximum number of remembered pages with links, which may turn out to be copies
_NO_ORIGIN = (
    "The responses of items are unknown, so items are identified by their own URLs only, and no request is skipped "
    "because of them. Enable scrapy_neardup.Addon, or enable scrapy_neardup.ItemOrigins in the same places as the "
    "add-on"
)
_NO_OUTCOME = (
    "No item is remembered, since the ITEM_PROCESSOR of this project runs the pipelines in tasks of its own, in which "
    "items can't be followed"
)


class Page:
    """The outcome of one response. It refers neither to the response nor to its request, so that all are freed."""

    def __init__(self, response: Response) -> None:
        request = response.request
        self.ticket = Ticket.of(request) if request else Ticket(response.url)
        self.gives_one = False  # exactly one item, so that the URL of the response is the item's own
        self.gives_many = False  # several documents, so that the URL is linked to none of them
        self.is_unheld = False  # had content that is not held, so that its URLs are fetched again
        self.given: set[Signature] = set()  # the documents so far
        before, reasons = redirects(request) if request else ([], [])
        # The URL of the response and the URLs that redirected to it, last redirect first.
        self.all_urls = (response.url, *reversed(before)) if request else ()
        self.urls = self.all_urls if request and is_plain(request) else ()  # which alone describe the request
        # A URL that returned a login page, an error page or a temporary redirect may return something else next time.
        is_lasting = all(reason in (301, 308) for reason in reasons)
        self._loose = self.urls if response.status >= 300 else () if is_lasting else self.urls[1:]
        self._fetch: Fetch | None = None

    def has(self, document: Document) -> bool:
        """Return whether a document has the URL of this page, or one that redirected to it."""
        return not {document.url, *document.aliases}.isdisjoint(self.all_urls)

    def fetch(self, response: Response, started: float) -> Fetch:
        """Return the fetch of an item, computed once for all items. `started` is the start of the run."""
        self._fetch = self._fetch or self._fetched(response)
        return self._fetch._replace(gives_one=self.gives_one, clock=Clock(started, time.time()))

    def _fetched(self, response: Response) -> Fetch:
        encoding = response.encoding if isinstance(response, TextResponse) else None
        fetch = Fetch(place=response.url, body=response.body, encoding=encoding)
        if not self.urls:
            return fetch
        tree, claimed = _tree(response), []
        for link in canonical_links(tree.root) if tree else ():
            with suppress(ValueError):  # not a URL
                claimed.append(response.urljoin(link))
        loose, size = frozenset(self._loose), len(response.body)
        return fetch._replace(urls=self.urls, loose=loose, size=size, tree=tree, claimed=tuple(claimed))


def _tree(response: Response) -> Tree | None:
    """Return the tree of a response, which the callback may have parsed; None if it is not HTML."""
    if not isinstance(response, HtmlResponse) or not response.body:
        return None
    html = response.text
    root: Any = parse(html) if has_long_tag(response.body) else response.selector.root
    return Tree(html, root, layout(elements(html))) if isinstance(root, etree._Element) else None


class ItemInHand:
    """An item on its way through the pipelines."""

    __slots__ = ("_lost", "claim", "has_ended", "is_judged", "outer", "page", "response")

    def __init__(
        self, response: Response | None, page: Page | None, outer: ItemInHand | None, lost: deque[Claim]
    ) -> None:
        """`outer` is the item that a pipeline was processing when that pipeline sent this item. `lost` collects claims
        without an outcome."""
        self.response = response
        self.page = page
        self.outer = outer
        # The claim, or the document if the store did not answer; None if there is nothing to settle.
        self.claim: Claim | Document | None = None
        self.is_judged = self.has_ended = False
        self._lost = lost

    def lose(self, _: object = None) -> None:
        """Add the claim of an item without an outcome to `lost`. Call this when no signal can arrive any more."""
        if self.claim and not isinstance(self.claim, Document):
            self._lost.append(self.claim)
            self.claim = None

    __del__ = lose

    def let_go(self) -> None:
        """Forget the response, since a context may outlive its item."""
        self.response = self.page = None


_in_hand: ContextVar[ItemInHand | None] = ContextVar("neardup_item", default=None)


def _current() -> ItemInHand | None:
    """Return the innermost item of this context that has not ended; None if there is none."""
    item = _in_hand.get()
    while item and item.has_ended:
        item = item.outer
    return item


class Pages:
    """The pages of a crawl: adjusts the verdict on each item, then commits or withdraws its claim."""

    def __init__(self, neardup: NearDup) -> None:
        self._neardup = neardup
        self._ask = neardup.access.ask
        self._deliveries = neardup.dedup.deliveries
        self._pages: WeakKeyDictionary[Response, Page] = WeakKeyDictionary()
        # The response of each item by the `id()` of the item. The item is kept, so that no other item gets this id.
        self._origins: LocalCache[int, tuple[Any, ref[Response]]] = LocalCache(MOST)
        self._lost: deque[Claim] = deque()
        # By held document: the pending claim of the first item of this run that repeats the document.
        self._delivering: dict[Signature, Claim] = {}
        self._copies: LocalCache[str, bool] = LocalCache(COPIES)  # URLs, whose links may lead to new pages
        self._abroad: LocalCache[str, bool] = LocalCache(COPIES)  # URLs of copies of pages of other hosts
        self._leading: LocalCache[str, bool] = LocalCache(RECENT)  # URLs of pages that linked to an original
        self._recent: LocalCache[str, bool] = LocalCache(RECENT)  # URLs of pages that linked to a new page
        self._warnings = {_NO_ORIGIN, _NO_OUTCOME}

    def connect(self) -> None:
        """Connect to the signals that end an item."""
        connect = self._neardup.crawler.signals.connect
        connect(self._item_scraped, signal=signals.item_scraped)
        connect(self._item_lost, signal=signals.item_dropped)
        connect(self._item_lost, signal=signals.item_error)

    # Following an item

    def page(self, response: Response) -> Page:
        """Return the page of a response."""
        page = self._pages.get(response)
        if page is None:
            page = self._pages[response] = Page(response)
        return page

    def note_origin(self, item: Any, response: Response) -> None:
        """Note the response of an item."""
        self._origins[id(item)] = item, ref(response)

    def begin(self, item: Any) -> ItemInHand:
        """Begin to follow an item in this context."""
        _, origin = self._origins.pop(id(item), (None, None))
        response = origin() if origin else None
        begun = ItemInHand(response, self.page(response) if response else None, _current(), self._lost)
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

    def fetch(self, item: ItemInHand) -> Fetch:
        """Return the fetch of an item; an empty one if it is unknown."""
        if item.page is None or item.response is None:
            return Fetch()
        return item.page.fetch(item.response, self._deliveries.started)

    # The verdict on an item

    async def adjust_by_run(self, claim: Claim) -> None:
        """Change the verdict on an item that repeats a held document.

        The first such item of the run becomes a revisit, and further ones become duplicates. This applies to
        NEARDUP_REVISIT = "keep" only. With the other values, verdicts do not depend on the run.
        """
        if claim.match is None or self._neardup.config.revisit != "keep":
            return
        document = claim.match.signature
        while other := self._delivering.get(document):
            await self._neardup.access.settled(other)
        self._delivering[document] = claim
        try:
            # An item of a preferred host is not dropped for an item of another host.
            by_own_host = claim.document.url in self._neardup.dedup.matcher.preference
            is_delivered = await self._ask(partial(self._deliveries.is_delivered, document, by_own_host=by_own_host))
        except BaseException:  # no other claim may wait for this one
            del self._delivering[document]
            raise
        if is_delivered:
            del self._delivering[document]
        else:
            claim.when_settled(partial(self._delivering.pop, document))
        claim.verdict = replace(claim.verdict, status="duplicate" if is_delivered else "revisit")

    async def adjust_by_page(self, claim: Claim, item: ItemInHand) -> None:
        """Adjust the verdict on an item whose page had earlier items, or was fetched in place of the original.

        Also count rescued dead links, and wrong skips that a recheck found.
        """
        if (page := item.page) is None:
            return
        ticket, signature = page.ticket, (claim.match or claim).signature
        if page.given:
            self._adjust_further(claim, page, is_again=signature in page.given)
            page.given.add(signature)
            return
        page.given.add(signature)
        if claim.match and (ticket.dead_link or ticket.reason == AFTER_ALL):
            await self._adjust_stand_in(claim, claim.match.signature)
        if ticket.dead_link:
            await self._count_rescue(claim, ticket.dead_link)
        if ticket.reason == RECHECK and claim.verdict.status == "unique":
            self._neardup.tickets.fail(ticket)

    def _adjust_further(self, claim: Claim, page: Page, *, is_again: bool) -> None:
        """Adjust the verdict on an item that is not the first of its page.

        If a text is twice on one page, the second item is a duplicate, not a revisit.
        """
        if is_again and self._neardup.config.revisit != "keep":
            claim.verdict = replace(claim.verdict, status="duplicate")
        if page.has(claim.document):
            claim.verdict = replace(claim.verdict, changed=False)
            page.gives_many = page.gives_many or not is_again

    async def _adjust_stand_in(self, claim: Claim, document: Signature) -> None:
        """Make a copy that was fetched in place of its original a revisit, unless the run has the content already.

        If the original's own URL was not the last to return the content, the copy takes the place of the original.
        """
        if not await self._ask(self._deliveries.is_delivered, document):
            claim.verdict = replace(claim.verdict, status="revisit")
            claim.is_successor = bool(await self._ask(self._deliveries.is_deserted, document))

    async def _count_rescue(self, claim: Claim, link: str) -> None:
        """Count a dead link as rescued if a copy has the content of the link's last fetch."""
        dead = await self._ask(self._neardup.dedup.store.resolve, link)
        if claim.match and dead and claim.match.signature is dead.signature:
            self._neardup.count("dead_links/rescued")

    # The outcome of an item

    def _item_scraped(self, response: Response | None) -> None:
        if (item := self._end(response)) is None:
            self._warn(_NO_OUTCOME)
            return
        if isinstance(item.claim, Document):
            self._neardup.access.take_in_later(item.claim)
        elif item.claim:
            self.commit(item)
        item.let_go()

    def _item_lost(self, response: Response | None) -> None:
        if (item := self._end(response)) is None:
            return
        claim, item.claim = item.claim, None
        if claim and not isinstance(claim, Document):
            self._withdraw(claim)
            if item.page:
                item.page.is_unheld = True
        item.let_go()

    def _end(self, response: Response | None) -> ItemInHand | None:
        """Return the state of a signal's item, and mark the item as ended; None if the item is not followed."""
        item = _current()
        if item is None or item.response not in (None, response):
            return None
        item.has_ended = True
        if item.response is None and isinstance(response, Response):
            self._warn(_NO_ORIGIN)
        return item

    def _warn(self, message: str) -> None:
        if message in self._warnings:
            self._warnings.discard(message)
            logger.warning(message)

    def commit(self, item: ItemInHand) -> None:
        """Commit the claim of an item."""
        claim, item.claim, page = item.claim, None, item.page
        assert claim
        assert not isinstance(claim, Document)
        is_passing = False
        if page:
            if page.is_unheld:
                urls = filter(None, (claim.document.url, *claim.document.aliases))
                claim.document = replace(claim.document, loose=frozenset(urls))
            if page.gives_many and page.has(claim.document):
                claim.is_one_of_many = True
            # What stands in for a dead link is no visit of any URL.
            if is_passing := page.ticket.reason == STAND_IN:
                claim.document, claim.is_one_of_many = replace(claim.document, url=None, aliases=()), True
        referer = _referer(item.response.request) if item.response else ""
        self._neardup.access.later(self._commit, claim, is_passing, referer)
        self._neardup.tickets.let_go((claim.match or claim).signature)
        self._note_copy(claim)

    def _commit(self, claim: Claim, is_passing: bool, referer: str) -> None:
        claim.commit()
        if claim.state != "committed":
            return
        document = (claim.match or claim).signature
        if is_passing:
            self._deliveries.record_passing(document)
            return
        by_own_host = host(claim.document.url or "") == host(document.url or "")
        self._note_lead(claim, claim.document.url if claim.is_copy and not by_own_host else None, referer)
        is_preferred = document.url in self._neardup.dedup.matcher.preference
        self._deliveries.record(document, by_own_host=is_preferred and by_own_host)
        for adviser in self._neardup.advisers:
            try:
                adviser.visited(claim)
            except Exception:
                self._neardup.note_failed(adviser, claim.document.url)

    def withdraw_lost(self) -> None:
        """Withdraw the claims of lost items."""
        while self._lost:
            self._withdraw(self._lost.popleft())

    def _withdraw(self, claim: Claim) -> None:
        self._neardup.count("withdrawn")
        self._neardup.access.later(claim.withdraw)

    # Fetching again

    def fetch_again(self, page: Page | None) -> None:
        """Note that a page had an item that is not held, so that its URLs are fetched again."""
        if page:
            page.is_unheld = True
            self._keep_fetching(*page.urls)

    def _keep_fetching(self, *urls: str) -> None:
        self._neardup.access.later(self._neardup.dedup.keep_fetching, Document(aliases=urls))

    def follow(self, request: Request) -> None:
        """Note that the page in the Referer header of a request has a link to a new page, as no dupefilter stopped it.

        If that page is a copy, keep fetching it. List pages often share an introduction, but link to different pages.
        If copies among them were skipped, the crawl would miss the pages to which only these copies link.
        """
        if referer := _referer(request):
            self._recent[referer] = True
            if self._copies.pop(referer, None):
                self._keep_fetching(referer)

    def _note_copy(self, claim: Claim) -> None:
        """If a page is a copy of a page on the same host, and has a link, keep fetching it."""
        url, original = claim.document.url, claim.match.signature.url if claim.match else None
        if claim.is_copy and url and host(url) == host(original or ""):
            if url in self._recent:
                self._keep_fetching(url)
            else:
                self._copies[url] = True

    def _note_lead(self, claim: Claim, copy: str | None, referer: str) -> None:
        """If a copy of another host's page links to an original without copies, keep fetching it.

        Else who copies a page of links could hide all that only this page links to.
        """
        if copy and copy not in self._leading:
            self._abroad[copy] = True
        elif copy:
            self._neardup.dedup.keep_fetching(Document(copy))
        elif referer and not claim.is_copy and not (claim.match or claim).signature.repeats:
            self._leading[referer] = True
            if self._abroad.pop(referer, None):
                self._neardup.dedup.keep_fetching(Document(referer))


def _referer(request: Request | None) -> str:
    return (request.headers.get("Referer") or b"").decode(errors="replace") if request else ""
