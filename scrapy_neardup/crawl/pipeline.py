"""The item pipeline, which claims the document of each item, and drops, tags or counts the item."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterable, Iterator
from contextlib import suppress
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from itemadapter import ItemAdapter
from lxml import etree
from scrapy.exceptions import DropItem
from scrapy.http import HtmlResponse, Response, TextResponse

from ..deduplicator import PAUSES
from ..document import Document, Tree
from ..facts import Clock
from ..fingerprints.layout import layout
from ..items import Fetch, Record
from ..matching.claim import Claim
from ..stats import Stat
from ..text.html import Page, canonical_links, elements, has_long_tag, parse
from ..verdict import Verdict
from .access import FAILURES
from .detours import is_plain, redirects
from .doors import item_judged
from .extension import NearDup
from .judge import Judge
from .outcome import ItemInHand
from .reactor import pause
from .warnings import Warnings

if TYPE_CHECKING:
    from scrapy.crawler import Crawler
    from typing_extensions import Self


logger = logging.getLogger(__name__)

SHOWN = 3  # drops that are logged at INFO, so that a wrong role of a field is noticed
_COUNTED: dict[str, Stat] = {"unique": "unique", "duplicate": "duplicates", "revisit": "revisits"}


class DuplicateItem(DropItem):
    """The item at `url` repeats a held document. `verdict` has the original and the evidence."""

    def __init__(self, url: str | None, verdict: Verdict, label: str = "", log_level: str = "DEBUG") -> None:
        super().__init__(verdict.sentence(url, label), log_level=log_level)
        self.url = url
        self.verdict = verdict


class NearDupPipeline:
    """Drops, tags or counts items whose text repeats a held document."""

    def __init__(self, neardup: NearDup) -> None:
        self.neardup = neardup
        self._judge = Judge(neardup)
        self._fetches: WeakKeyDictionary[Response, Fetch] = WeakKeyDictionary()
        self._untaggable: set[type] = set()
        self._told: set[type] = set()
        self._shown = 0
        self._send = neardup.crawler.signals.send_catch_log
        self._warnings = Warnings(neardup.config, neardup.crawler.signals)

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        neardup = NearDup.from_crawler(crawler)
        neardup.outcomes.connect()
        return cls(neardup)

    def close_spider(self) -> None:
        """Put waiting requests back if the crawl stops early. Scrapy closes the queue of requests after this."""
        self.neardup.waitlist.put_back()
        self._warnings.end()

    async def process_item(self, item: Any) -> Any:
        in_hand = self.neardup.outcomes.take(item)
        try:
            document = await self._document(item, in_hand)
            claim = await self._claim(document, in_hand)
        except Exception:  # no error of ours or of a detector may lose the item
            self.neardup.count("errors")
            self._keep_fetching(in_hand.response)
            logger.exception("An item passes without a verdict", extra={"item": item})
            return item
        if claim:
            await self._judge.judge_by_response(claim, in_hand.response)
            self._count(claim)
        self._send(item_judged, item=item, document=document, claim=claim, response=in_hand.response)
        return self._act(item, in_hand, claim) if claim else item

    async def _document(self, item: Any, in_hand: ItemInHand) -> Document | None:
        record = Record.of(item, self.neardup.config, self._fetch(in_hand.response))
        if record is None:
            return None
        self._tell_of_roles(type(item), record)
        return record.document(await self._pages(record))

    async def _claim(self, document: Document | None, in_hand: ItemInHand) -> Claim | None:
        """Claim the document of an item. If it repeats a pending document, wait for the outcome of the pending one."""
        if document is None or not (document.lines or document.site):
            self.neardup.count("no_text")
            self._keep_fetching(in_hand.response)
            return None
        await self.neardup.workers.prepare(document)
        try:
            in_hand.claim = claim = await self._claim_settled(document)
            await self._judge.judge_by_run(claim)
        except FAILURES as error:
            in_hand.claim = document  # claimed late, if the item is kept
            self.neardup.pass_unjudged(error)
            return None
        return claim

    def _tell_of_roles(self, kind: type, record: Record) -> None:
        """Log the role of each field of the first item of each type."""
        if kind not in self._told:
            self._told.add(kind)
            logger.info("Items of type %s: %s", kind.__name__, record.roles_in_words())

    async def _pages(self, record: Record) -> dict[str, Page]:
        """Extract the main text of an item's HTML in a worker, if the extractor is heavy."""
        workers = self.neardup.workers
        return {html: await workers.read(html) for html in record.pages()} if workers.reads else {}

    def _keep_fetching(self, response: Response | None) -> None:
        """Note that a response had an item that is not held, so that its URLs are fetched again."""
        self.neardup.outcomes.note_unheld_item(response)
        self.neardup.access.later(self.neardup.dedup.visits.keep_fetching, Document(aliases=_urls(response)))

    async def _claim_settled(self, document: Document) -> Claim:
        claim = await self.neardup.access.claim(document)
        moment = PAUSES[0]
        while claim.is_early:
            if claim.rival:
                await self.neardup.access.settled(claim.rival)
            else:
                await pause(moment)
                moment = min(2 * moment, PAUSES[1])
            claim = await self.neardup.access.claim(document)
        return claim

    def _fetch(self, response: Response | None) -> Fetch:
        """Return the fetch of an item, computed once for all items of a response."""
        if response is None:
            return Fetch()
        if response not in self._fetches:
            self._fetches[response] = _fetch(response)
        return self._fetches[response]._replace(
            place=response.url,
            gives_one=self.neardup.outcomes.gives_one_item(response),
            clock=Clock(self.neardup.dedup.deliveries.started, time.time()),
            body=response.body,
            encoding=response.encoding if isinstance(response, TextResponse) else None,
        )

    def _count(self, claim: Claim) -> None:
        verdict = claim.verdict
        self.neardup.count("documents")
        if claim.document.thin:
            self.neardup.count("thin")
        if claim.document.scripted:
            self.neardup.count("scripted")
        self.neardup.count(_COUNTED[verdict.status])
        if verdict.changed and self.neardup.config.revisit != "keep":
            self.neardup.count("changed")
        if verdict.status == "duplicate":
            self.neardup.count_detector(str(verdict.detector))

    def _act(self, item: Any, in_hand: ItemInHand, claim: Claim) -> Any:
        config, verdict = self.neardup.config, claim.verdict
        if self._judge.is_dropped(verdict):
            if config.action == "drop":
                self.neardup.outcomes.commit(in_hand)
                if self.neardup.dropped:
                    self.neardup.dropped.write(item, claim.document.url, verdict)
                self._shown += 1
                level = "INFO" if self._shown <= SHOWN else "DEBUG"
                raise DuplicateItem(claim.document.url, verdict, claim.document.label, level)
            logger.debug("Passes, though %s", verdict.sentence(claim.document.url, claim.document.label))
        if config.action == "tag":
            self._tag(item, verdict)
        return item

    def _tag(self, item: Any, verdict: Verdict) -> None:
        try:
            ItemAdapter(item)[self.neardup.config.tag_field] = verdict.tag()
        except (KeyError, ValueError, TypeError, AttributeError) as error:
            if type(item) not in self._untaggable:
                self._untaggable.add(type(item))
                logger.warning("Items of %(type)s pass without tag: %(error)s", {"type": type(item), "error": error})


def _fetch(response: Response) -> Fetch:
    """Return the fetch of a response; empty if the URL alone does not describe the request."""
    if not (urls := _urls(response)) or response.request is None:
        return Fetch()
    before = urls[1:]
    lasting = all(reason in (301, 308) for reason in redirects(response.request)[1])
    # A URL that returned a login page, an error page or a temporary redirect may return something else next time.
    loose = urls if response.status >= 300 else () if lasting else before
    tree = _tree(response)
    claimed = tuple(_joined(response, canonical_links(tree.root))) if tree else ()
    return Fetch(urls, frozenset(loose), len(response.body), tree, claimed)


def _joined(response: Response, links: Iterable[str]) -> Iterator[str]:
    for link in links:
        with suppress(ValueError):  # not a URL
            yield response.urljoin(link)


def _urls(response: Response | None) -> tuple[str, ...]:
    """Return the URL of a response and the URLs that redirected to it, last redirect first.

    Return () if the URL alone does not describe the request.
    """
    if response is None or response.request is None or not is_plain(response.request):
        return ()
    return response.url, *reversed(redirects(response.request)[0])


def _tree(response: Response) -> Tree | None:
    """Return the tree of a response, which the callback may have parsed; None if it is not HTML."""
    if not isinstance(response, HtmlResponse) or not response.body:
        return None
    html = response.text
    root: Any = parse(html) if has_long_tag(response.body) else response.selector.root
    return Tree(html, root, layout(elements(html))) if isinstance(root, etree._Element) else None
