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
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeAlias
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
from ..store import StoreError
from ..text.html import canonical_links, elements, has_long_tag, parse
from ..text.urls import host
from .tickets import STAND_IN, Ticket, is_plain, redirects

if TYPE_CHECKING:
    from ..deduplicator import Claim
    from .extension import NearDup

logger = logging.getLogger(__name__)

MOST = 10_000  # the maximum number of items between spider and pipelines; spider middlewares may drop some of them
MOST_LATE = 20_000_000  # the maximum size of the texts of late documents together, in characters
AT_A_TIME = 20  # late documents
COPIES = 100_000  # the maximum number of remembered copies; the oldest are forgotten
RECENT = 2_000  # the maximum number of remembered pages with links, which may turn out to be copies
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
        assert request  # as Scrapy sets it before the callback
        self.ticket = Ticket.of(request)
        self.referer = _referer(request)
        self.gives_one = False  # exactly one item, so that the URL of the response is the item's own
        self.gives_many = False  # several documents, so that the URL is linked to none of them
        self.is_unheld = False  # had content that is not held, so that its URLs are fetched again
        self.given: set[Signature] = set()  # the documents so far
        self.fetched: Fetch | None = None  # the fetch of the items, once it is made
        before, reasons = redirects(request)
        # The URL of the response and the URLs that redirected to it, last redirect first.
        self.all_urls = (response.url, *reversed(before))
        self.urls = self.all_urls if is_plain(request) else ()  # which alone describe the request
        # A URL that returned a login page, an error page or a temporary redirect may return something else next time.
        is_lasting = all(reason in (301, 308) for reason in reasons)
        self._loose = self.urls if response.status >= 300 else () if is_lasting else self.urls[1:]

    def has(self, document: Document) -> bool:
        """Return whether a document has the URL of this page, or one that redirected to it."""
        return not {document.url, *document.aliases}.isdisjoint(self.all_urls)

    def fetch(self, response: Response) -> Fetch:
        """Return the fetch of the items."""
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

    def adapt(self, claim: Claim) -> None:
        """Change what a claim is about to record of URLs to what is known of the page by now."""
        document = claim.document
        if self.is_unheld:
            document = replace(document, loose=frozenset(filter(None, (document.url, *document.aliases))))
        if self.gives_many and self.has(document):
            claim.is_one_of_many = True
        if self.ticket.reason == STAND_IN:  # what stands in for a dead link is no visit of any URL
            document, claim.is_one_of_many = replace(document, url=None, aliases=()), True
        claim.document = document


def _tree(response: Response) -> Tree | None:
    """Return the tree of a response, which the callback may have parsed; None if it is not HTML."""
    if not isinstance(response, HtmlResponse) or not response.body:
        return None
    html = response.text
    root: Any = parse(html) if has_long_tag(response.body) else response.selector.root
    return Tree(html, root, layout(elements(html))) if isinstance(root, etree._Element) else None


@dataclass(eq=False, slots=True)
class ItemInHand:
    """An item on its way through the pipelines."""

    response: Response | None
    page: Page | None
    outer: ItemInHand | None
    """The item that a pipeline was processing when that pipeline sent this item."""
    lost: deque[Claim]
    """Collects claims without an outcome."""
    claim: Claim | None = None
    """The claim that is to be settled."""
    late: Document | None = None
    """The document that is to be claimed later, since the store did not answer."""
    is_judged: bool = False
    has_ended: bool = False

    def take_claim(self) -> Claim | None:
        """Return the claim, which the caller settles."""
        claim, self.claim = self.claim, None
        return claim

    def lose(self, _: object = None) -> None:
        """Add the claim of an item without an outcome to `lost`. Call this when no signal can arrive any more."""
        if claim := self.take_claim():
            self.lost.append(claim)

    __del__ = lose


_in_hand: ContextVar[ItemInHand | None] = ContextVar("neardup_item", default=None)


def _current() -> ItemInHand | None:
    """Return the innermost item of this context that has not ended; None if there is none."""
    item = _in_hand.get()
    while item and item.has_ended:
        item = item.outer
    return item


Late: TypeAlias = tuple[Document, Page | None]


class Pages:
    """The pages of a crawl: follows each item, and commits or withdraws its claim."""

    def __init__(self, neardup: NearDup) -> None:
        self._neardup = neardup
        self._dedup = neardup.dedup
        self._pages: WeakKeyDictionary[Response, Page] = WeakKeyDictionary()
        # The response of each item by the `id()` of the item. The item is kept, so that no other item gets this id.
        self._origins: LocalCache[int, tuple[Any, ref[Response]]] = LocalCache(MOST)
        self._lost: deque[Claim] = deque()
        # Documents of items that passed while the store did not answer, with their pages.
        self.late: deque[Late] = deque()
        self._late_size = 0
        # URLs of copies, whose links may lead to new pages, and of pages with links; see `_note_link`.
        self._copies: LocalCache[tuple[str, bool], bool] = LocalCache(COPIES)
        self._linking: LocalCache[tuple[str, bool], bool] = LocalCache(RECENT)
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
        page, clock = item.page, Clock(self._dedup.deliveries.started, time.time())
        if page is None or item.response is None:
            return Fetch()
        page.fetched = page.fetched or page.fetch(item.response)
        return page.fetched._replace(gives_one=page.gives_one, clock=clock)

    # The outcome of an item

    def _item_scraped(self, response: Response | None) -> None:
        item = self._ended(response)
        if item is None:
            self._warn(_NO_OUTCOME)
        elif claim := item.take_claim():
            self.commit(claim, item.page)
        elif item.late:
            self._take_in_later(item.late, item.page)

    def _item_lost(self, response: Response | None) -> None:
        item = self._ended(response)
        if item and (claim := item.take_claim()):
            self._withdraw(claim)
            self.fetch_again(item.page)

    def _ended(self, response: Response | None) -> ItemInHand | None:
        """Return the state of a signal's item, and mark the item as ended; None if the item is not followed."""
        item = _current()
        if item is None or item.response not in (None, response):
            return None
        item.has_ended = True
        if item.response is None and isinstance(response, Response):
            self._warn(_NO_ORIGIN)
        item.response = None  # a context may outlive its item
        return item

    def _warn(self, message: str) -> None:
        if message in self._warnings:
            self._warnings.discard(message)
            logger.warning(message)

    def commit(self, claim: Claim, page: Page | None) -> None:
        """Commit the claim of an item."""
        if page:
            page.adapt(claim)
        self._neardup.later(self._commit, claim, page)
        self._note_commit(claim, page)

    def _commit(self, claim: Claim, page: Page | None) -> None:
        claim.commit()
        if claim.state != "committed":
            return
        document, deliveries = (claim.match or claim).signature, self._dedup.deliveries
        if page and page.ticket.reason == STAND_IN:
            deliveries.record_passing(document)
            return
        by_own_host = document.url in self._dedup.matcher.preference and _is_of_one_host(claim)
        deliveries.record(document, by_own_host=by_own_host)
        for adviser in self._neardup.advisers:
            with self._neardup.handled(adviser, claim.document.url):
                adviser.visited(claim)

    def withdraw_lost(self) -> None:
        """Withdraw the claims of lost items."""
        while self._lost:
            self._withdraw(self._lost.popleft())

    def _withdraw(self, claim: Claim) -> None:
        self._neardup.count("withdrawn")
        self._neardup.later(claim.withdraw)

    # Late documents, which passed while the store did not answer

    def _take_in_later(self, document: Document, page: Page | None) -> None:
        """Remember a document without a verdict, to claim it later. Drop the oldest if the texts exceed `MOST_LATE`."""
        if page:
            page.fetched = None  # the parsed page
        self.late.append((replace(document), page))  # a copy without the computed fields
        self._late_size += len(document.text)
        while self._late_size > MOST_LATE:
            self._late_size -= len(self.late.popleft()[0].text)

    async def catch_up(self) -> bool:
        """Claim and commit some late documents. Return whether at least one was claimed."""
        some = [self.late.popleft() for _ in range(min(AT_A_TIME, len(self.late)))]
        self._late_size -= sum(len(document.text) for document, _ in some)
        claimed: list[tuple[Claim, Page | None]] = []
        if some:
            with self._neardup.handled(self, some[0][0].url):
                await self._neardup.ask(self._claim_late, some, claimed)
        for late in some:
            self._take_in_later(*late)
        for claim, page in claimed:
            self._note_commit(claim, page)
        return bool(claimed)

    async def catch_up_all(self) -> None:
        """Claim late documents until none is left, or none can be claimed."""
        while any([await self.catch_up() for _ in range(0, len(self.late), AT_A_TIME)]):
            pass

    def _claim_late(self, some: list[Late], claimed: list[tuple[Claim, Page | None]]) -> None:
        """Claim and commit documents, and move them to `claimed`. Those that repeat a pending document stay."""
        for _ in range(len(some)):
            document, page = some.pop(0)
            try:
                claim = self._dedup.try_claim(document)
            except (StoreError, OSError):
                some.append((document, page))
                raise
            if claim.is_early:
                some.append((document, page))
                continue
            if page:
                page.adapt(claim)
            claimed.append((claim, page))
            self._commit(claim, page)

    # Fetching again

    def fetch_again(self, page: Page | None) -> None:
        """Note that a page had an item that is not held, so that its URLs are fetched again."""
        if page:
            page.is_unheld = True
            self._keep_fetching(*page.urls)

    def _keep_fetching(self, *urls: str) -> None:
        self._neardup.later(self._dedup.keep_fetching, Document(aliases=urls))

    def follow(self, request: Request) -> None:
        """Note that the page in the Referer header of a request has a link to a new page, as no dupefilter stopped it.

        If that page is a copy of one of its host, keep fetching it. List pages often share an introduction, but link to
        different pages. If copies among them were skipped, the crawl would miss the pages to which only these link.
        """
        if referer := _referer(request):
            self._note_link(referer, is_abroad=False)

    def _note_commit(self, claim: Claim, page: Page | None) -> None:
        """Drop the requests that waited for the document of a claim. Note a copy, or a link to an original.

        A copy of another host's page is fetched again if it links to an original without copies. Else who copies a page
        of links could hide all that only this page links to.
        """
        document, url = (claim.match or claim).signature, claim.document.url
        self._neardup.tickets.let_go(document)
        if claim.is_copy and url:
            copy = url, not _is_of_one_host(claim)
            if copy in self._linking:
                self._keep_fetching(url)
            else:
                self._copies[copy] = True
        elif page and page.referer and not claim.is_copy and not document.repeats:
            self._note_link(page.referer, is_abroad=True)

    def _note_link(self, url: str, *, is_abroad: bool) -> None:
        """Note that a page has a link. Keep fetching the page if it is a copy, `is_abroad`: of another host's page."""
        self._linking[url, is_abroad] = True
        if self._copies.pop((url, is_abroad), None):
            self._keep_fetching(url)


def _is_of_one_host(claim: Claim) -> bool:
    """Return whether a document has the host of its original, if it is a copy."""
    return host(claim.document.url or "") == host((claim.match or claim).signature.url or "")


def _referer(request: Request) -> str:
    return (request.headers.get("Referer") or b"").decode(errors="replace")
