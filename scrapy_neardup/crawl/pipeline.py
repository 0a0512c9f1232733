"""The item pipelines: the first one notes what each item comes from, the second one drops, tags or counts it."""

from __future__ import annotations

import logging
from asyncio import CancelledError
from collections.abc import AsyncIterator
from dataclasses import replace
from functools import partial
from typing import Any

from itemadapter import ItemAdapter
from scrapy import Request
from scrapy.crawler import Crawler
from scrapy.exceptions import DropItem
from scrapy.http import Response

from ..deduplicator import Claim
from ..document import Document
from ..items import Record
from ..settings import TAG_FIELD
from ..signature import Signature
from ..stats import BY_DETECTOR, PREFIX, Stat
from ..verdict import Verdict
from . import item_judged
from .extension import FAILURES, PAUSE, NearDup
from .observers import Warnings
from .pages import ItemInHand, Page, Pages
from .tickets import AFTER_ALL, RECHECK, Ticket, disown
from .workers import pause

logger = logging.getLogger(__name__)

NO_TICKET = Ticket("")
SHOWN = 3  # drops that are logged at INFO, so that a wrong role of a field is noticed
MOST_FIELDS = 200
_COUNTED: dict[str, Stat] = {"unique": "unique", "duplicate": "duplicates", "revisit": "revisits"}


class DuplicateItem(DropItem):
    """The item at `url` repeats a held document. `verdict` has the original and the evidence."""

    def __init__(self, url: str | None, verdict: Verdict, label: str = "", log_level: str = "DEBUG") -> None:
        super().__init__(verdict.sentence(url, label), log_level=log_level)
        self.url = url
        self.verdict = verdict


class ItemOrigins:
    """Notes the response of each item as the spider middleware nearest to the engine.

    The first item of a response is held back until the callback yields another one, or ends. So the pipeline knows in
    time whether the URL of the page is the item's own. Requests pass at once. As the first item pipeline, it begins to
    follow the item.
    """

    def __init__(self, pages: Pages) -> None:
        self._pages = pages

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> ItemOrigins:
        return cls(NearDup.from_crawler(crawler).pages)

    async def process_spider_output(self, response: Response, result: AsyncIterator[Any]) -> AsyncIterator[Any]:
        page, first, count = self._pages.pages.setdefault(response, Page(response)), None, 0
        try:
            async for output in result:
                if isinstance(output, Request):
                    disown(output)
                elif output is not None:
                    self._pages.note_origin(output, page)
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

    def process_item(self, item: Any) -> Any:
        self._pages.begin(item)
        return item


class NearDupPipeline:
    """Drops, tags or counts items whose text repeats a held document."""

    def __init__(self, neardup: NearDup) -> None:
        self.neardup = neardup
        self._config = neardup.config
        self._pages = neardup.pages
        self._untaggable: set[type] = set()
        self._told: set[type] = set()  # whose roles were logged
        self._shown = 0
        # By held document: the pending claim of the first item of this run that repeats the document.
        self._delivering: dict[Signature, Claim] = {}
        self._send = neardup.crawler.signals.send_catch_log
        self._warnings = Warnings(neardup.config)

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> NearDupPipeline:
        neardup = NearDup.from_crawler(crawler)
        neardup.pages.connect()
        return cls(neardup)

    def close_spider(self) -> None:
        """Put waiting requests back if the crawl stops early. Scrapy closes the queue of requests after this."""
        self.neardup.tickets.put_back()
        self._warnings.end()

    async def process_item(self, item: Any) -> Any:
        in_hand, claim = self._pages.take(item), None
        try:
            document = await self._document(item, in_hand.page)
            if document and (document.has_tokens or document.site):
                claim = await self._claim(document, in_hand)
            else:
                self.neardup.count("no_text")
                self._pages.fetch_again(in_hand.page)
            self._warnings.note(item, document, claim)
        except Exception:  # no error of ours or of a detector may lose the item
            self.neardup.count("errors")
            self._pages.fetch_again(in_hand.page)
            logger.exception("An item passes without a verdict", extra={"item": item})
            return item
        response = in_hand.page and in_hand.page.response()
        self._send(item_judged, item=item, document=document, claim=claim, response=response)
        if claim:
            self._count(claim)
            self._act(item, in_hand, claim)
        return item

    async def _document(self, item: Any, page: Page | None) -> Document | None:
        record = Record.of(item, self._config, self._pages.fetch(page))
        if record is None:
            return None
        if type(item) not in self._told:
            self._told.add(type(item))
            logger.info("Items of type %s: %s", type(item).__name__, record.roles_in_words())
        if len(self.neardup.dedup.store.fields) < MOST_FIELDS:
            self.neardup.dedup.store.fields.update(record.facts)
        workers = self.neardup.workers
        return record.document({html: await workers.read(html) for html in record.pages()} if workers.reads else {})

    async def _claim(self, document: Document, in_hand: ItemInHand) -> Claim | None:
        """Claim a document. If it repeats a pending document, wait for the outcome of the pending one."""
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
        """Adjust the verdict on an item to the earlier items of the run and of its page.

        Also count rescued dead links, and wrong skips that a recheck found.
        """
        document = (claim.match or claim).signature
        is_further, is_again = bool(page and page.given), bool(page and document in page.given)
        ticket = page.ticket if page and not is_further else NO_TICKET  # which concerns the first item
        if page:
            page.given.add(document)
        if claim.match:
            await self._adjust_to_run(claim, document, ticket)
        if claim.match and ticket.dead_link:
            dead = await self.neardup.ask(self.neardup.dedup.store.resolve, ticket.dead_link)
            if dead and dead.signature is document:
                self.neardup.count("dead_links/rescued")
        if ticket.reason == RECHECK and claim.verdict.status == "unique":
            self.neardup.tickets.fail(ticket)
        if is_again and self._config.revisit != "keep":  # a text twice on one page is no revisit
            claim.verdict = replace(claim.verdict, status="duplicate")
        if page and is_further and page.has(claim.document):
            claim.verdict = replace(claim.verdict, changed=False)
            page.gives_many = page.gives_many or not is_again

    async def _adjust_to_run(self, claim: Claim, document: Signature, ticket: Ticket) -> None:
        """Make the first item of the run that repeats a held document a revisit, and further ones duplicates.

        With another NEARDUP_REVISIT than "keep", only what was fetched in place of an original becomes a revisit. It
        takes the place of the original if the original's own URL was not the last to return the content.
        """
        deliveries, is_by_run = self.neardup.dedup.deliveries, self._config.revisit == "keep"
        is_stand_in = ticket.reason == AFTER_ALL or ticket.dead_link is not None
        if not (is_by_run or is_stand_in):
            return
        # An item of a preferred host is not dropped for an item of another host.
        by_own_host = is_by_run and claim.document.url in self.neardup.dedup.matcher.preference
        ask = partial(self.neardup.ask, partial(deliveries.is_delivered, document, by_own_host=by_own_host))
        while not (is_delivered := await ask()) and document in self._delivering:
            await self.neardup.settled(self._delivering[document])
        if not is_delivered:
            self._delivering[document] = claim
            claim.when_settled(partial(self._delivering.pop, document))
        if is_by_run or not is_delivered:
            claim.verdict = replace(claim.verdict, status="duplicate" if is_delivered else "revisit")
        if is_stand_in and not is_delivered:
            claim.is_successor = bool(await self.neardup.ask(deliveries.is_deserted, document))

    # What is done with the item

    def _count(self, claim: Claim) -> None:
        document, verdict = claim.document, claim.verdict
        counted: dict[str, bool] = {
            "documents": True,
            _COUNTED[verdict.status]: True,
            f"{BY_DETECTOR}{verdict.detector}": verdict.status == "duplicate",
            "thin": document.thin,
            "scripted": document.scripted,
            "changed": verdict.changed and self._config.revisit != "keep",
        }
        for name in filter(counted.get, counted):
            self.neardup.stats.inc_value(PREFIX + name)

    def _act(self, item: Any, in_hand: ItemInHand, claim: Claim) -> None:
        document, verdict = claim.document, claim.verdict
        if self._is_dropped(verdict):
            if self._config.action == "drop":
                in_hand.claim = None
                self._pages.commit(claim, in_hand.page)
                if self.neardup.dropped:
                    self.neardup.dropped.write(item, document.url, verdict)
                self._shown += 1
                level = "INFO" if self._shown <= SHOWN else "DEBUG"
                raise DuplicateItem(document.url, verdict, document.label, level)
            logger.debug("Passes, though %s", verdict.sentence(document.url, document.label))
        if self._config.action == "tag":
            self._tag(item, verdict)

    def _is_dropped(self, verdict: Verdict) -> bool:
        """Return whether an item repeats an item that is in the feeds already.

        With NEARDUP_REVISIT = "keep" only the feed of this run counts. Otherwise the feeds of earlier runs count too,
        unless the content of the URL has changed.
        """
        if self._config.revisit == "keep":
            return verdict.status == "duplicate"
        return verdict.status != "unique" and not verdict.changed

    def _tag(self, item: Any, verdict: Verdict) -> None:
        try:
            ItemAdapter(item)[TAG_FIELD] = verdict.tag()
        except (KeyError, ValueError, TypeError, AttributeError) as error:
            if type(item) not in self._untaggable:
                self._untaggable.add(type(item))
                logger.warning("Items of %(type)s pass without tag: %(error)s", {"type": type(item), "error": error})
