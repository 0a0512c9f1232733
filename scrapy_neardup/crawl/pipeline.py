"""The way of an item: follow it from its response to its outcome, and drop, tag or count it.

A *page* is one response with all that came of it. A pipeline gets an item without its response, and may return another
object. So `ItemOrigins` notes the response of each item as a spider middleware. As the first pipeline, it puts the item
with its page into a context variable. The other pipelines, and the handlers of the item's final signal, read it there.
An item that ends without a signal is lost. This is noticed when the item's task ends or its context is collected.
"""

from __future__ import annotations

import logging
import time
from asyncio import CancelledError, current_task
from collections import deque
from collections.abc import AsyncIterator
from contextlib import suppress
from contextvars import ContextVar
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from typing import Any
from weakref import WeakKeyDictionary, ref

from itemadapter import ItemAdapter
from lxml import etree
from scrapy import Request, signals
from scrapy.exceptions import DropItem
from scrapy.http import HtmlResponse, Response, TextResponse
from scrapy.settings import BaseSettings
from scrapy.utils.datatypes import LocalCache

from ..deduplicator import Claim
from ..document import Document, Tree
from ..facts import Clock
from ..items import Fetch, Record
from ..settings import TAG_FIELD
from ..signature import Signature
from ..stats import BY_DETECTOR, PREFIX, Stat
from ..text.html import canonical_links, has_long_tag, parse
from ..text.urls import host
from ..verdict import Verdict
from . import item_judged
from .detours import AFTER_ALL, RECHECK, STAND_IN, Ticket, disown, is_plain, referer
from .extension import FAILURES, PAUSE, Component, NearDup
from .middleware import MirrorMiddleware
from .observers import Observer
from .workers import pause

logger = logging.getLogger(__name__)

FIRST = -1_000_000  # before all other item pipelines, and nearer to the engine than all other spider middlewares
MOST = 10_000  # the maximum number of remembered items; some never arrive, since other spider middlewares drop them
NO_TICKET = Ticket("")
SHOWN = 3  # duplicates that are logged at INFO, so that a wrong role of a field is noticed
MOST_FIELDS = 200
_COUNTED: dict[str, Stat] = {"unique": "unique", "duplicate": "duplicates", "revisit": "revisits"}
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
    """One response with all that came of it. The reference to the response is weak, so that Python can free it."""

    def __init__(self, response: Response) -> None:
        self.response = ref(response)
        request = response.request
        assert request  # as Scrapy sets it before the callback
        self.ticket = Ticket.of(request)
        self.referer = referer(request)
        self.gives_one = False  # true after exactly one item: the URL of the response is the item's own
        self.gives_many = False  # true after several documents: the URL is recorded without a document
        self.is_unheld = False  # true after content that is not held: the page's URLs are fetched again
        self.given: dict[Signature, object] = {}  # the documents so far, each with what its first item says
        # The URL of the response and the URLs that redirected to it, last redirect first.
        self.all_urls = (response.url, *reversed(self.ticket.redirects(request)))
        self.urls = self.all_urls if is_plain(request) else ()  # empty if the URL does not describe the whole request
        # A URL that returned a login page, an error page or a temporary redirect may return something else next time.
        is_lasting = all(reason in (301, 308) for reason in self.ticket.redirects(request, "redirect_reasons"))
        self._loose = frozenset(self.urls if response.status >= 300 else () if is_lasting else self.urls[1:])

    def has(self, document: Document) -> bool:
        """Return whether a document has the URL of this page, or one that redirected to it."""
        return not {document.url, *document.aliases}.isdisjoint(self.all_urls)

    def fetch(self, response: Response) -> Fetch:
        """Return the `Fetch` of this page's items. Its clock is not set."""
        encoding = response.encoding if isinstance(response, TextResponse) else None
        tree, claimed = _tree(response), []
        for link in canonical_links(tree.root) if tree else ():
            with suppress(ValueError):  # not a URL
                claimed.append(response.urljoin(link))
        fetch = Fetch(self.urls, self._loose, tree, tuple(claimed), place=response.url, gives_one=self.gives_one)
        with suppress(ValueError):  # the page names no URL as its base
            if (base := response.urljoin("")).startswith("http"):
                fetch = fetch._replace(base=base)
        return fetch._replace(body=response.body, encoding=encoding)

    def adapt(self, claim: Claim) -> None:
        """Adapt the URLs that a claim will record to what is known of this page by now."""
        document = claim.document
        if self.is_unheld:
            document = replace(document, loose=frozenset(filter(None, (document.url, *document.aliases))))
        if self.gives_many and self.has(document):
            document = replace(document, has_own_url=False)
        if self.ticket.reason == STAND_IN:  # what stands in for a dead link is no visit of any URL
            document = replace(document, url=None, aliases=(), has_own_url=False)
        claim.document = document


def _tree(response: Response) -> Tree | None:
    """Return the parsed tree of a response; None if the response is empty or not HTML."""
    if not isinstance(response, HtmlResponse) or not response.body:
        return None
    html = response.text
    root: Any = parse(html) if has_long_tag(response.body) else response.selector.root
    return Tree(html, root) if isinstance(root, etree._Element) else None


@dataclass(eq=False, slots=True)
class ItemInHand:
    """An item on its way through the pipelines."""

    page: Page | None  # the page that gave the item; None if it is unknown
    outer: ItemInHand | None  # the item that a pipeline was processing when it sent this one; mostly None
    lost: deque[Claim]  # the claims of items that ended without an outcome; `lose` adds to them
    claim: Claim | None = None  # the claim that is to be settled
    late: Document | None = None  # what is to be claimed later, if the store did not answer
    is_judged: bool = False
    has_ended: bool = False

    def take_claim(self) -> Claim | None:
        """Remove and return the claim, which the caller must settle; None if there is none."""
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


class ItemOrigins(Component):
    """Notes the page of each item, and commits or withdraws the item's claim.

    It is the spider middleware nearest to the engine, and the first item pipeline. The first item of a response is held
    back until the callback yields another item, or ends. So the pipelines know in time whether the URL of the page is
    the item's own. Requests pass at once.
    """

    def __init__(self, neardup: NearDup) -> None:
        super().__init__(neardup)
        self._requests = neardup.component(MirrorMiddleware)
        self._pages: WeakKeyDictionary[Response, Page] = WeakKeyDictionary()
        # The page of each item by the `id()` of the item. The item is kept, so that no other item gets this id.
        self._origins: LocalCache[int, tuple[Any, Page]] = LocalCache(MOST)
        self._fetches: WeakKeyDictionary[Response, Fetch] = WeakKeyDictionary()
        self._sees_start = False
        self._warn = lru_cache(logger.warning)  # each message once
        connect = self.crawler.signals.connect
        connect(self._item_scraped, signal=signals.item_scraped)
        connect(self._item_lost, signal=signals.item_dropped)
        connect(self._item_lost, signal=signals.item_error)

    async def process_start(self, start: AsyncIterator[Any]) -> AsyncIterator[Any]:
        """Note that this spider middleware is enabled. So an item without a page must come from `start`."""
        self._sees_start = True
        async for output in start:
            yield output

    async def process_spider_output(self, response: Response, result: AsyncIterator[Any]) -> AsyncIterator[Any]:
        page, first, count, is_blank = self._pages.setdefault(response, Page(response)), None, 0, True
        try:
            async for output in result:
                is_blank &= output is None
                if isinstance(output, Request):
                    disown(output)
                elif output is not None:
                    self._origins[id(output)] = output, page
                    count += 1
                    if count == 1:
                        first = output
                        continue
                    if count == 2:
                        yield first
                yield output
        except (Exception, CancelledError):
            if count == 1:
                yield first
            raise
        if count == 1:
            page.gives_one = True
            yield first
        elif is_blank:  # such as an error page with status 200
            self._go_back(page, response)

    def process_spider_exception(self, response: Response, exception: Exception) -> None:
        self._go_back(Page(response), response)

    def _go_back(self, page: Page, response: Response) -> None:
        """Fetch the mirror's page after all, if this page was fetched in its place."""
        if page.ticket.mirror_of and response.request and self.crawler.engine:
            self.crawler.engine.crawl(self._requests.back(response.request))

    def process_item(self, item: Any) -> Any:
        self._begin(item)
        return item

    # Following an item

    def _begin(self, item: Any) -> ItemInHand:
        _, page = self._origins.pop(id(item), (None, None))
        begun = ItemInHand(page, _current(), self.neardup.lost)
        _in_hand.set(begun)
        # The context can outlive the item, if a pipeline started something in it, such as a connection pool.
        with suppress(RuntimeError):  # no asyncio
            if task := current_task():
                task.add_done_callback(begun.lose)
        return begun

    def take(self, item: Any) -> ItemInHand:
        """Return the `ItemInHand` of an item that is to be judged. Begin to follow the item if necessary."""
        taken = _current()
        if taken is None or taken.is_judged:
            taken = self._begin(item)
        taken.is_judged = True
        return taken

    def fetch(self, page: Page | None) -> Fetch:
        """Return the `Fetch` of a page's items; empty if the response is freed. Items of `start()` share a place."""
        if page is None and self._sees_start:
            return Fetch(place=f"start://crawl/{getattr(self.crawler.spider, 'name', '')}")
        if page is None or (response := page.response()) is None:
            return Fetch()
        if response not in self._fetches:
            self._fetches[response] = page.fetch(response)
        return self._fetches[response]._replace(clock=Clock(self.dedup.deliveries.started, time.time()))

    # The outcome of an item

    def _item_scraped(self, response: Response | None) -> None:
        item = self._ended(response)
        if item is None:
            self._warn(_NO_OUTCOME)
        elif claim := item.take_claim():
            self.commit(claim, item.page)
        elif item.late:
            # A copy, without the computed fields, which take more memory.
            self.neardup.late.append((replace(item.late), partial(self.commit, page=item.page)))

    def _item_lost(self, response: Response | None) -> None:
        item = self._ended(response)
        if item and (claim := item.take_claim()):
            self.neardup.withdraw(claim)
            self.fetch_again(item.page)

    def _ended(self, response: Response | None) -> ItemInHand | None:
        """Mark the current item as ended, and return it; None if no item of `response` is followed."""
        item = _current()
        if item is None or (item.page and item.page.response() is not response):
            return None
        item.has_ended = True
        if item.page is None and isinstance(response, Response):
            self._warn(_NO_ORIGIN)
        return item

    def commit(self, claim: Claim, page: Page | None) -> None:
        if page:
            page.adapt(claim)
        self.neardup.later(self._commit, claim, page)
        self._requests.note_commit(claim, page.referer if page else "")

    def _commit(self, claim: Claim, page: Page | None) -> None:
        claim.commit()
        if claim.state != "committed":
            return
        document, deliveries = (claim.match or claim).signature, self.dedup.deliveries
        if page and page.ticket.reason == STAND_IN:
            deliveries.passing.add(document)
            return
        own = document.url
        by_own_host = own in self.dedup.matcher.preference and host(own or "") == host(claim.document.url or "")
        deliveries.record(document, by_own_host=by_own_host)
        for adviser in self.neardup.advisers:
            with self.neardup.handled(adviser, claim.document.url):
                adviser.visited(claim)

    def fetch_again(self, page: Page | None) -> None:
        """Note that a page had an item that is not held, so that the page's URLs are fetched again."""
        if page:
            page.is_unheld = True
            self.neardup.keep_fetching(*page.urls)


class DuplicateItem(DropItem):
    """The item repeats a held document. Scrapy's stats name this class as the reason."""


class NearDupPipeline(Component):
    """Drops, tags or counts items whose text repeats a held document."""

    def __init__(self, neardup: NearDup) -> None:
        super().__init__(neardup)
        self._origins = neardup.component(ItemOrigins)
        self._requests = neardup.component(MirrorMiddleware)
        self._untaggable: set[type] = set()
        self._shown = 0
        # By held document: the pending claim of the first item of this run that repeats the document.
        self._delivering: dict[Signature, Claim] = {}
        self._observer = Observer(self.config)

    def close_spider(self) -> None:
        """Put waiting requests back if the crawl stops early. Scrapy closes the queue of requests after this."""
        self._requests.put_back()
        self._observer.end()

    async def process_item(self, item: Any) -> Any:
        in_hand, document, claim = self._origins.take(item), None, None
        with self.neardup.handled(self, "an item, which passes without a verdict"):
            record = Record.of(item, self.config, self._origins.fetch(in_hand.page))
            document = await self._document(record) if record else None
            if document and (document.has_tokens or document.home):
                claim = await self._claim(document, in_hand)
            else:
                self.neardup.count("no_text")
            self._observer.note(type(item), record, document, claim)
        if not (claim or in_hand.late):
            self._origins.fetch_again(in_hand.page)
        response = in_hand.page and in_hand.page.response()
        self.crawler.signals.send_catch_log(item_judged, item=item, document=document, claim=claim, response=response)
        if claim:
            self._count(claim)
            self._act(item, in_hand, claim)
        return item

    async def _document(self, record: Record) -> Document | None:
        if len(self.dedup.store.fields) < MOST_FIELDS:
            self.dedup.store.fields.update(record.facts)
        workers = self.neardup.workers
        return record.document({html: await workers.read(html) for html in record.pages()} if workers.reads else {})

    async def _claim(self, document: Document, in_hand: ItemInHand) -> Claim | None:
        """Claim a document; None if the store fails. If it repeats a pending document, wait for that one's outcome."""
        if self.neardup.workers.signs:
            await self.neardup.workers.prepare(document)
        try:
            while (claim := await self.neardup.claim(document)).is_early:
                await (self.neardup.settled(claim.rival) if claim.rival else pause(PAUSE))
            in_hand.claim = claim
            await self._adjust(claim, in_hand.page)
        except FAILURES as error:
            in_hand.claim, in_hand.late = None, document
            self.neardup.note_failure(error)
            self.neardup.count("store/unjudged")
            return None
        return claim

    # The verdict in the light of the run and of the page

    async def _adjust(self, claim: Claim, page: Page | None) -> None:
        """Change the verdict on an item where earlier items of the run or of the same page require it.

        Also count rescued dead links, and wrong skips that a recheck found.
        """
        document = (claim.match or claim).signature
        is_further, is_again = bool(page and page.given), bool(page and document in page.given)
        ticket = page.ticket if page and not is_further else NO_TICKET  # a ticket concerns only the first item
        said = claim.document.url, claim.signature.sketch, claim.signature.facts
        is_same = bool(page and page.given.setdefault(document, said) == said)
        if claim.match:
            await self._adjust_to_run(claim, document, ticket)
        if claim.match and ticket.dead_link:
            dead = await self.neardup.ask(self.dedup.store.resolve, ticket.dead_link)
            if dead and dead.signature is document:
                self.neardup.count("dead_links/rescued")
        if ticket.reason == RECHECK and claim.verdict.status == "unique":
            self._requests.fail(ticket)
        if is_again and self.config.revisit != "keep":  # a text twice on one page is no revisit
            claim.verdict = replace(claim.verdict, status="duplicate", changed=False)
        if page and is_further and page.has(claim.document):
            is_changed = claim.verdict.changed and claim.document.is_one_of_several
            claim.verdict = replace(claim.verdict, changed=is_changed)
            page.gives_many = page.gives_many or not (is_again and is_same)

    async def _adjust_to_run(self, claim: Claim, document: Signature, ticket: Ticket) -> None:
        """Make a claim a revisit if its item is the first of this run with the content, else a duplicate.

        Without NEARDUP_REVISIT = "keep", do this only for a page that was fetched because the original was dead or did
        not deliver, and never make its claim a duplicate.
        """
        is_by_run = self.config.revisit == "keep"
        is_stand_in = ticket.reason == AFTER_ALL or ticket.dead_link is not None
        if not (is_by_run or is_stand_in):
            await self._succeed(claim, document)
            return
        # An item of a preferred host is not dropped for an item of another host.
        by_own_host = is_by_run and claim.document.url in self.dedup.matcher.preference
        while isinstance(found := await self.neardup.ask(self._first, claim, document, by_own_host), Claim):
            await self.neardup.settled(found)
        is_delivered = bool(found)
        if is_by_run or not is_delivered:
            claim.verdict = replace(claim.verdict, status="duplicate" if is_delivered else "revisit")
        if is_stand_in:
            await self._succeed(claim, document)

    def _first(self, claim: Claim, document: Signature, by_own_host: bool) -> Claim | bool:
        """Return the pending claim of the first item of this run with a document; True if the item was delivered.

        Return False if `claim` is the first. Call this in the thread that settles claims: none is settled meanwhile.
        """
        if self.dedup.deliveries.is_delivered(document, by_own_host=by_own_host):
            return True
        if (first := self._delivering.setdefault(document, claim)) is not claim:
            return first
        claim.when_settled(partial(self._delivering.pop, document))
        return False

    async def _succeed(self, claim: Claim, document: Signature) -> None:
        """Mark a copy as the successor of an original that was last returned in an earlier run, by another URL."""
        if claim.is_copy:
            claim.is_successor = bool(await self.neardup.ask(self.dedup.deliveries.is_deserted, document))

    # What is done with the item

    def _count(self, claim: Claim) -> None:
        document, verdict = claim.document, claim.verdict
        counted: dict[str, bool] = {
            "documents": True,
            _COUNTED[verdict.status]: True,
            f"{BY_DETECTOR}{verdict.detector}": verdict.status == "duplicate",
            "thin": document.thin,
            "scripted": document.scripted,
            "changed": verdict.changed and self.config.revisit != "keep",
        }
        for name in filter(counted.get, counted):
            self.neardup.stats.inc_value(PREFIX + name)

    def _act(self, item: Any, in_hand: ItemInHand, claim: Claim) -> None:
        document, verdict = claim.document, claim.verdict
        if verdict.is_dropped(self.config.revisit):
            sentence = verdict.sentence(document.url, document.label)
            self._shown += 1
            level = logging.INFO if self._shown <= SHOWN else logging.DEBUG
            if self.neardup.dropped:
                self.neardup.dropped.write(item, document.url, verdict)
            if self.config.action == "drop":
                in_hand.claim = None
                self._origins.commit(claim, in_hand.page)
                raise DuplicateItem(sentence, log_level=logging.getLevelName(level))
            logger.log(level, "Passes, though %s", sentence)
        if self.config.action == "tag":
            self._tag(item, verdict)

    def _tag(self, item: Any, verdict: Verdict) -> None:
        try:
            ItemAdapter(item)[TAG_FIELD] = verdict.tag()
        except (KeyError, ValueError, TypeError, AttributeError) as error:
            if type(item) not in self._untaggable:
                self._untaggable.add(type(item))
                logger.warning("Items of %s pass without tag, as %r can't be set: %s", type(item), TAG_FIELD, error)


class Addon:
    """Enables the middlewares and item pipelines, unless the settings already place them."""

    def update_settings(self, settings: BaseSettings) -> None:
        place = settings.setdefault_in_component_priority_dict
        # After Offsite and before RobotsTxt. Responses reach it last, after Retry and Redirect.
        place("DOWNLOADER_MIDDLEWARES", MirrorMiddleware, 75)
        place("SPIDER_MIDDLEWARES", ItemOrigins, FIRST)
        place("ITEM_PIPELINES", ItemOrigins, FIRST)
        place("ITEM_PIPELINES", NearDupPipeline, 200)  # before 300, the number in Scrapy's project template
