"""The way of a request: skip it, send it to another URL, hold it back, send it after all."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from itertools import chain
from weakref import WeakKeyDictionary, WeakSet

from scrapy import Request, exceptions, signals
from scrapy.downloadermiddlewares.offsite import OffsiteMiddleware
from scrapy.exceptions import DontCloseSpider, IgnoreRequest
from scrapy.http import Response
from scrapy.spidermiddlewares.httperror import HttpError, HttpErrorMiddleware
from scrapy.utils.datatypes import LocalCache
from scrapy.utils.defer import deferred_from_coro
from scrapy.utils.job import job_dir
from twisted.internet import error as twisted_error

from ..deduplicator import Claim
from ..mirrors import REDIRECT, SKIP, STOP, Advice, Mirrors, is_in_share
from ..signature import Signature
from ..text.urls import canonical_url, host
from . import request_skipped
from .detours import (
    AFTER_ALL,
    DEAD_LINK,
    MIRROR,
    RECHECK,
    STAND_IN,
    Ticket,
    detour,
    drop_conditions,
    is_of_spider,
    is_open,
    is_plain,
    is_queued,
    is_safe,
    is_start,
    note_queued,
    referer,
)
from .extension import Component, NearDup

logger = logging.getLogger(__name__)

MOST = 10_000  # the maximum number of waiting requests; if there are more, the oldest are sent
MOST_FAILED = 100_000  # the maximum number of remembered URLs, hosts and reasons that failed; the oldest are forgotten
LINKS = 100_000  # the maximum number of remembered copies, and of pages with links; the oldest are forgotten
MOST_TRIED = 3  # the maximum number of copies that are tried for a dead link
LATER = ("CannotResolveHostError", "DownloadConnectionRefusedError", "DownloadTimeoutError")  # Scrapy 2.15 and newer
DEAD = (
    *(getattr(exceptions, name) for name in LATER if hasattr(exceptions, name)),
    # Scrapy 2.14, and some other download handlers, raise these.
    *(twisted_error.DNSLookupError, twisted_error.ConnectionRefusedError, twisted_error.TimeoutError),
)


class AdvisedAgainst(IgnoreRequest):
    """A request was skipped or stopped on advice, and no other request is sent instead."""


class MirrorMiddleware(Component):
    """Skips URLs whose content is held, and redirects dead links to a copy.

    A skipped request waits until any URL has returned the content in this run. When the spider is idle, one waiting
    request is sent for each document that no URL has returned. When the spider is idle again, the others are sent.
    """

    def __init__(self, neardup: NearDup) -> None:
        super().__init__(neardup)
        self._mirrors = Mirrors(self.dedup.store, self.config, self.dedup.matcher.reviews, self.dedup.deliveries)
        # The requests that were skipped for a document, with the size of each URL's last response in bytes.
        self._waiting: dict[Signature, list[tuple[Request, int]]] = {}
        # Documents for which a request was sent after all. The response may not have had the document.
        self._tried: WeakSet[Signature] = WeakSet()
        self._is_asking = False
        # By document that this run had already: the only dead link that was still redirected to a copy of it.
        self._led: WeakKeyDictionary[Signature, str] = WeakKeyDictionary()
        self._failed: LocalCache[str, bool] = LocalCache(MOST_FAILED)  # canonical URLs, hosts, and reasons for skips
        self._skipped: LocalCache[str, bool] = LocalCache(LINKS)  # URLs; if a spider requests one again, it is sent
        # By URL and `is_abroad`, see `_note_link`: copies, and pages with links; apart, so that links displace no copy.
        self._copies: LocalCache[tuple[str, bool], bool] = LocalCache(LINKS)
        self._linking: LocalCache[tuple[str, bool], bool] = LocalCache(LINKS)
        self.crawler.signals.connect(self._spider_idle, signal=signals.spider_idle)
        self.crawler.signals.connect(note_queued, signal=signals.request_scheduled)

    # Before the fetch

    async def process_request(self, request: Request) -> Request | None:
        with self.neardup.handled(self, request.url, but=IgnoreRequest):
            ticket = Ticket.of(request)
            before = ticket.redirects(request)
            if before and self.crawler.settings.getbool("HTTPCACHE_ENABLED"):
                drop_conditions(request)
            if page := referer(request):
                self._note_link(page)
            if before and ticket.mirror_of:  # the original host has moved the page
                return await self._in_place_of(request, "redirect")
            if before and ticket.reason == DEAD_LINK and not self._may_follow(request, str(ticket.dead_link)):
                raise IgnoreRequest("a copy of a dead link redirects to a URL to which no detour may lead")
            may_ask = is_of_spider(request) and is_queued(request) and (self.config.skip_start or not is_start(request))
            must_send = ticket.is_final or ticket.url in self._skipped or self.config.action == "audit"
            if may_ask and not must_send and (advice := await self._advice(request, before)):
                return self._follow(request, advice)
        return None

    async def _advice(self, request: Request, before: list[str]) -> Advice | None:
        """Return the advice to follow; None to send the request. `before`: the URLs that redirected to the request."""
        advice = None
        for adviser in self.neardup.advisers:
            with self.neardup.handled(adviser, request.url):
                if advice := _checked(await adviser.advise(request)):
                    break
        if not advice and is_plain(request):
            advice = await self.neardup.ask(self._mirrors.advise, request.url, before)
        return None if advice and self._is_doubted(request, advice) else advice

    def _follow(self, request: Request, advice: Advice) -> Request | None:
        if advice.action == REDIRECT and advice.url:
            return self._redirect(request, advice.url)
        self._skipped[Ticket.of(request).url] = True
        if advice.action == STOP:
            self.neardup.count("requests/stopped")
            raise AdvisedAgainst(advice.known_by)
        self._skip(request, advice)
        by = f", by {advice.known_by}" if advice.known_by else ""
        logger.debug("Skipped %s: its content is held as %s%s", request, advice.url, by)
        raise AdvisedAgainst(f"content is held as {advice.url}")

    def _redirect(self, request: Request, url: str) -> Request | None:
        """Return a detour to `url`, on the original host; None if the request itself is to be sent."""
        made = detour(request, url, MIRROR, request.url)
        # With REDIRECT_MAX_TIMES = 0, Scrapy silently drops a redirected request, so the page would be missed.
        is_redirectable = self.crawler.settings.getint("REDIRECT_MAX_TIMES") > 0 and "dont_retry" not in request.meta
        if not (is_redirectable and is_open(request)) or self._is_gone(url) or not self._may_follow(made, request.url):
            return None
        made.meta["dont_retry"] = True  # since the page can be fetched from the mirror instead
        self.neardup.count("requests/redirected")
        logger.debug("%s instead of %s, whose host mirrors it", made, request)
        return made

    # After a failed fetch

    async def process_response(self, request: Request, response: Response) -> Request | Response:
        if response.status == 200:
            return response
        with self.neardup.handled(self, request.url):
            is_dead = response.status in self.config.dead_http_codes and not self._is_wanted(request, response)
            if is_dead or Ticket.of(request).mirror_of:
                return await self._in_place_of(request, f"status {response.status}") or response
        return response

    async def process_exception(self, request: Request, exception: Exception) -> Request | None:
        if isinstance(exception, AdvisedAgainst):
            return None
        with self.neardup.handled(self, request.url):
            # The proxy itself may be dead.
            is_dead, ticket = isinstance(exception, DEAD) and not request.meta.get("proxy"), Ticket.of(request)
            if is_dead and (ticket.mirror_of or ticket.reason == STAND_IN):
                self._failed[host(request.url)] = True
            if is_dead or ticket.instead_of:  # a detour may fail with any error
                return await self._in_place_of(request, type(exception).__name__)
        return None

    def _is_wanted(self, request: Request, response: Response) -> bool:
        """Return whether the spider handles the status of a response itself, by any of Scrapy's options."""
        try:
            if middleware := self.crawler.get_spider_middleware(HttpErrorMiddleware):
                middleware.process_spider_input(response.replace(request=request))
        except HttpError:
            return False
        return True

    def back(self, request: Request) -> Request:
        """Return the request for the page on the mirror, after `request` to the original host has failed."""
        ticket = Ticket.of(request)
        self._failed[canonical_url(ticket.url)] = True
        made = detour(request, str(ticket.mirror_of))
        made.meta.pop("dont_retry", None)
        return made

    async def _in_place_of(self, request: Request, reason: str) -> Request | None:
        """Return the request to send instead of a failed one; None if there is none. `reason`: for the log."""
        ticket = Ticket.of(request)
        if ticket.mirror_of:
            return self.back(request)
        is_off = self.config.action == "audit" or not self.config.dead_http_codes
        if is_off or not is_plain(request) or not is_of_spider(request):
            return None
        self._failed[canonical_url(request.url)] = True
        if copy := None if ticket.reason == STAND_IN else await self._rescued(request, ticket):
            self.neardup.count("dead_links/redirected")
            logger.debug("Dead link (%s): %s instead of %s", reason, copy, request)
        return copy

    async def _rescued(self, request: Request, ticket: Ticket) -> Request | None:
        dead, tried = ticket.dead_link or request.url, [*ticket.tried, ticket.url]
        seen, others = await self.neardup.ask(self._others, dead, tried) or (0.0, [])
        for url in others if len(tried) <= MOST_TRIED else ():
            copy = detour(request, url, DEAD_LINK, dead, tried)
            if not self._is_gone(url) and self._may_follow(copy, dead):
                return copy
        for adviser in self.neardup.advisers if seen else ():
            made = None
            with self.neardup.handled(adviser, dead):
                made = await adviser.rescue(request, dead, seen)
            if made and not self._is_gone(made.url):
                Ticket(made.url, STAND_IN, dead, tried).put(made)
                return made
        return None

    def _others(self, url: str, tried: list[str]) -> tuple[float, list[str]]:
        """Return when a dead URL was last visited, and the other URLs that may have its content.

        The time is 0 if no content of the URL is held, or this run has delivered it. Delivered content needs no other
        URLs, and gets none. Without NEARDUP_SKIP_MIRRORS, only the first dead link with this content still gets them.
        """
        link = self.dedup.store.resolve(url)
        document = link and link.signature
        is_wanted = bool(document and not self.dedup.deliveries.is_delivered(document))
        if document and not is_wanted and (self.config.skip_mirrors or self._led.setdefault(document, url) != url):
            return 0.0, []
        others = [other.url for other in self._mirrors.alternatives(url, tried)]
        return link.seen if link and is_wanted else 0.0, others

    def _may_follow(self, request: Request, origin: str) -> bool:
        """Return whether a detour from `origin` is safe and not offsite. Scrapy does not check detours."""
        offsite, spider = self.crawler.get_downloader_middleware(OffsiteMiddleware), self.crawler.spider
        may_leave = not (offsite and spider) or offsite.should_follow(request, spider)
        return is_safe(request.url, origin) and (may_leave or bool(request.meta.get("allow_offsite")))

    # Waiting requests

    def _skip(self, request: Request, advice: Advice) -> None:
        """Count and signal a skipped request. Keep it waiting if its document must still be delivered in this run."""
        self._count_skipped(1, advice.size)
        self.crawler.signals.send_catch_log(request_skipped, request=request)
        if advice.document:
            self._waiting.setdefault(advice.document, []).append((request, advice.size))
        while sum(map(len, self._waiting.values())) > MOST:
            self._send(next(iter(self._waiting)))

    def _count_skipped(self, number: int, size: int) -> None:
        self.neardup.count("requests/skipped", number)
        self.neardup.count("bytes_saved", size)

    def put_back(self) -> None:
        """Put the waiting requests back into the queue. With JOBDIR, the next crawl decides on them again."""
        for request, size in chain.from_iterable(self._waiting.values()):
            self._queue(request, "")
            if job_dir(self.crawler.settings):  # else the queue, and so the request, is probably lost
                self._count_skipped(-1, -size)
        self._waiting.clear()

    def _spider_idle(self) -> None:
        if self._waiting and not self._is_asking:
            self._is_asking = True
            deferred_from_coro(self._release())
        if self._is_asking:
            raise DontCloseSpider

    async def _release(self) -> None:
        """Send a waiting request for each document that no process has delivered. In a later call, send the others."""
        asked = list(self._waiting)
        with self.neardup.handled(self, "skipped requests, which are sent after all"):
            for document in await self.neardup.ask(self._delivered, asked) or ():
                self._waiting.pop(document, None)
        self._is_asking = False
        for document in filter(self._waiting.__contains__, asked):
            self._send(document, None if document in self._tried else 1)
            self._tried.add(document)

    def _delivered(self, documents: Iterable[Signature]) -> list[Signature]:
        self.dedup.store.catch_up()
        return list(filter(self.dedup.deliveries.is_delivered, documents))

    def _send(self, document: Signature, most: int | None = None) -> None:
        """Send the requests that were skipped for a document; no more than `most` of them."""
        requests = self._waiting.pop(document)
        if later := requests[len(requests) if most is None else most :]:
            self._waiting[document] = later
        for request, size in requests[:most]:
            self.neardup.count("requests/sent_after_all")
            self._count_skipped(-1, -size)
            self._queue(request, AFTER_ALL)

    def _queue(self, request: Request, reason: str) -> None:
        assert self.crawler.engine
        Ticket.again(request, reason).put(request)
        self.crawler.engine.crawl(request.replace(dont_filter=True))

    # Links

    def _note_link(self, url: str, *, is_abroad: bool = False) -> None:
        """Note that `url` links to a new page. If `url` is a known copy, keep fetching it.

        List pages may share their text, but not their links. So any link counts for a copy of a page of the same host.
        For a copy of another host's page (`is_abroad`), only a link to an original without copies counts. If it did not
        count, a host that copies a list page and is crawled first could hide what only the copied page links to.
        """
        if self._copies.pop((url, is_abroad), None):
            self.neardup.keep_fetching(url)
        self._linking[url, is_abroad] = True

    def note_commit(self, claim: Claim, page: str) -> None:
        """Drop the requests that waited for a committed document. Note a copy, or that `page` links to an original."""
        document, url = (claim.match or claim).signature, claim.document.url
        self._waiting.pop(document, None)  # it was delivered
        if claim.is_copy and url:
            copy = url, host(url) != host(document.url or "")
            if copy in self._linking:
                self.neardup.keep_fetching(url)
            else:
                self._copies[copy] = True
        elif page and not claim.is_copy and not claim.verdict.copies:
            self._note_link(page, is_abroad=True)

    # Rechecks

    def _is_doubted(self, request: Request, advice: Advice) -> bool:
        """Return whether to send a request against advice: if a recheck proved such advice wrong, or as a recheck.

        The share of rechecks is the larger of NEARDUP_RECHECK and that of the rule; 0 if NEARDUP_RECHECK is 0.
        """
        relation = advice.rule and advice.rule.relation
        reason = repr((relation.sites, relation.shape) if relation else advice.url)  # the rule, or the original
        if reason in self._failed:
            return True
        share = self.config.recheck and max(self.config.recheck, advice.rule.recheck if advice.rule else 0.0)
        if advice.action != SKIP or not is_in_share(request.url, self.dedup.store.run, share):
            return False
        self.neardup.count("requests/rechecked")
        Ticket.again(request, RECHECK)._replace(tested=reason if advice.url else "").put(request)
        return True

    def fail(self, ticket: Ticket) -> None:
        """Note that a recheck found new content. What it tested, a rule or an original, causes no more skips."""
        self.neardup.count("requests/wrongly_skipped")
        if ticket.tested:
            self._failed[ticket.tested] = True

    def _is_gone(self, url: str) -> bool:
        return canonical_url(url) in self._failed or host(url) in self._failed


def _checked(advice: Advice | None) -> Advice | None:
    """Raise ValueError for advice of an unknown kind, such as to redirect to no URL."""
    if advice and not (advice.action in (SKIP, STOP) or (advice.action == REDIRECT and advice.url)):
        raise ValueError(f"{advice.action!r} to {advice.url} is no advice")
    return advice
