"""Follow the pages of a crawl, and each item from its response to its outcome: scraped, dropped, failed or lost.

A *page* is one response with all that came of it. A pipeline gets an item without its response, and may return another
object. So `ItemOrigins` notes the response of each item as a spider middleware. As the first pipeline, it puts the item
with its page into a context variable, which the other pipelines and the handlers of the item's final signal share. An
item that ends without a signal is lost, which is noticed when its task ends or its context is collected.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import deque
from contextlib import suppress
from contextvars import ContextVar
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary, ref

from lxml import etree
from scrapy import signals
from scrapy.http import HtmlResponse, Response, TextResponse
from scrapy.utils.datatypes import LocalCache

from ..document import Document, Tree
from ..facts import Clock
from ..fingerprints.hashes import layout
from ..items import Fetch
from ..signature import Signature
from ..text.html import canonical_links, elements, has_long_tag, parse
from ..text.urls import host
from .tickets import STAND_IN, Ticket, is_plain, redirects, referer
from .workers import pause

if TYPE_CHECKING:
    from ..deduplicator import Claim
    from .extension import NearDup

logger = logging.getLogger(__name__)

MOST = 10_000  # the maximum number of items between spider and pipelines; spider middlewares may drop some of them
MOST_LATE = 20_000_000  # the maximum size of the texts of late documents together, in characters
LINKS = 100_000  # the maximum number of remembered copies, and of pages with links; the oldest are forgotten
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
    """The outcome of one response, to which it refers only weakly, so that the response is freed."""

    def __init__(self, response: Response) -> None:
        self.response = ref(response)
        request = response.request
        assert request  # as Scrapy sets it before the callback
        self.ticket = Ticket.of(request)
        self.referer = referer(request)
        self.gives_one = False  # exactly one item, so that the URL of the response is the item's own
        self.gives_many = False  # several documents, so that the URL is linked to none of them
        self.is_unheld = False  # had content that is not held, so that its URLs are fetched again
        self.given: set[Signature] = set()  # the documents so far
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
        """Return the fetch of the items, without the time."""
        fetch = Fetch(place=response.url, gives_one=self.gives_one, body=response.body)
        if isinstance(response, TextResponse):
            fetch = fetch._replace(encoding=response.encoding)
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
    return Tree(html, root, layout(elements(root))) if isinstance(root, etree._Element) else None


@dataclass(eq=False, slots=True)
class ItemInHand:
    """An item on its way through the pipelines."""

    page: Page | None
    """The page that gave the item; None if it is unknown."""
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


class Pages:
    """The pages of a crawl: follows each item, and commits or withdraws its claim."""

    def __init__(self, neardup: NearDup) -> None:
        self._neardup = neardup
        self._dedup = neardup.dedup
        self.pages: WeakKeyDictionary[Response, Page] = WeakKeyDictionary()
        # The page of each item by the `id()` of the item. The item is kept, so that no other item gets this id.
        self._origins: LocalCache[int, tuple[Any, Page]] = LocalCache(MOST)
        self._fetches: WeakKeyDictionary[Response, Fetch] = WeakKeyDictionary()
        self._lost: deque[Claim] = deque()
        # Documents of items that passed while the store did not answer, with their pages.
        self.late: deque[tuple[Document, Page | None]] = deque()
        self._late_size = 0
        # The URLs of copies, and of pages with links, since either may come first; the second part is `is_abroad`.
        self._copies: LocalCache[tuple[str, bool], bool] = LocalCache(LINKS)
        self._linking: LocalCache[tuple[str, bool], bool] = LocalCache(LINKS)
        self._warnings = {_NO_ORIGIN, _NO_OUTCOME}

    def connect(self) -> None:
        """Connect to the signals that end an item."""
        connect = self._neardup.crawler.signals.connect
        connect(self._item_scraped, signal=signals.item_scraped)
        connect(self._item_lost, signal=signals.item_dropped)
        connect(self._item_lost, signal=signals.item_error)

    # Following an item

    def note_origin(self, item: Any, page: Page) -> None:
        """Note the page of an item."""
        self._origins[id(item)] = item, page

    def begin(self, item: Any) -> ItemInHand:
        """Begin to follow an item in this context."""
        _, page = self._origins.pop(id(item), (None, None))
        begun = ItemInHand(page, _current(), self._lost)
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

    def fetch(self, page: Page | None) -> Fetch:
        """Return the fetch of a page's items; an empty one if the page is unknown."""
        if page is None or (response := page.response()) is None:
            return Fetch()
        if response not in self._fetches:
            self._fetches[response] = page.fetch(response)
        return self._fetches[response]._replace(clock=Clock(self._dedup.deliveries.started, time.time()))

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
        if item is None or (item.page and item.page.response() is not response):
            return None
        item.has_ended = True
        if item.page is None and isinstance(response, Response):
            self._warn(_NO_ORIGIN)
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
        own = document.url
        by_own_host = own in self._dedup.matcher.preference and host(own or "") == host(claim.document.url or "")
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
        self.late.append((replace(document), page))  # a copy without the computed fields
        self._late_size += len(document.text)
        while self._late_size > MOST_LATE:
            self._late_size -= len(self.late.popleft()[0].text)

    async def catch_up(self) -> bool:
        """Claim and commit late documents until the store fails. Return whether there are fewer of them now.

        Those that repeat a pending document stay.
        """
        late, self.late, self._late_size = self.late, deque(), 0
        count, is_answered = len(late), True
        while late and is_answered:
            document, page = late.popleft()
            with self._neardup.handled(self, document.url):
                claim = await self._neardup.ask(self._dedup.try_claim, document)
                is_answered = claim is not None
                if claim and not claim.is_early:
                    self.commit(claim, page)
                else:
                    self._take_in_later(document, page)
            await pause(0)
        for each in late:
            self._take_in_later(*each)
        return len(self.late) < count

    # Fetching again

    def fetch_again(self, page: Page | None) -> None:
        """Note that a page had an item that is not held, so that its URLs are fetched again."""
        if page:
            page.is_unheld = True
            self._keep_fetching(*page.urls)

    def _keep_fetching(self, *urls: str) -> None:
        self._neardup.later(self._dedup.keep_fetching, Document(aliases=urls))

    def note_link(self, url: str, *, is_abroad: bool = False) -> None:
        """Keep fetching a page that has a link to a new page if it is a copy; `is_abroad`: of another host's page.

        List pages often share an introduction, but link to different pages. If copies among them were skipped, the
        crawl would miss the pages to which only these link. A copy of another host's page is fetched again only for a
        link to an original without copies. Else who copies a page of links could hide all that only it links to.
        """
        if self._copies.pop((url, is_abroad), None):
            self._keep_fetching(url)
        self._linking[url, is_abroad] = True

    def _note_commit(self, claim: Claim, page: Page | None) -> None:
        """Drop the requests that waited for the document of a claim. Note a copy, or a link to an original."""
        document, url = (claim.match or claim).signature, claim.document.url
        self._neardup.tickets.let_go(document)
        if claim.is_copy and url:
            copy = url, host(url) != host(document.url or "")
            if copy in self._linking:
                self._keep_fetching(url)
            else:
                self._copies[copy] = True
        elif page and page.referer and not claim.is_copy and not document.repeats:
            self.note_link(page.referer, is_abroad=True)
