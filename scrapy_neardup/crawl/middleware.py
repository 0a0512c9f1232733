"""The downloader middleware: every reason to skip a request, and the redirection of dead links."""

from __future__ import annotations

import logging

from scrapy import Request, exceptions
from scrapy.crawler import Crawler
from scrapy.downloadermiddlewares.offsite import OffsiteMiddleware
from scrapy.exceptions import IgnoreRequest
from scrapy.http import Response
from twisted.internet import error as twisted_error

from ..mirrors import REDIRECT, STOP, Advice, Mirrors
from . import request_skipped, tickets
from .extension import NearDup

logger = logging.getLogger(__name__)

MOST_TRIED = 3  # the maximum number of copies that are tried for a dead link
BY = {"page": "", "rule": ", by the rule of its host", "setting": ", by NEARDUP_MIRROR_HOSTS"}
LATER = ("CannotResolveHostError", "DownloadConnectionRefusedError", "DownloadTimeoutError")  # Scrapy 2.15 and newer
DEAD = (
    *(getattr(exceptions, name) for name in LATER if hasattr(exceptions, name)),
    # Scrapy 2.14, and download handlers other than Scrapy's own, raise these.
    *(twisted_error.DNSLookupError, twisted_error.ConnectionRefusedError, twisted_error.TimeoutError),
)


class AdvisedAgainst(IgnoreRequest):
    """A request is skipped or stopped on advice, so that nothing is sent in its place."""


class MirrorMiddleware:
    """Skips URLs whose content is held, and redirects dead links to a copy."""

    def __init__(self, neardup: NearDup) -> None:
        self.neardup = neardup
        self.config = neardup.config
        self._tickets = neardup.tickets
        dedup = neardup.dedup
        self._mirrors = Mirrors(dedup.store, self.config, dedup.matcher.reviews, dedup.deliveries)
        self._crawler = neardup.crawler
        self._has_cache = self._crawler.settings.getbool("HTTPCACHE_ENABLED")
        # With 0, Scrapy drops a request that is redirected, and tells nobody, so the mirror's page would be missed.
        self._may_move = self._crawler.settings.getint("REDIRECT_MAX_TIMES") > 0

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> MirrorMiddleware:
        return cls(NearDup.from_crawler(crawler))

    # Before the fetch

    async def process_request(self, request: Request) -> Request | None:
        with self.neardup.handled(self, request.url):
            ticket, before = tickets.Ticket.of(request), tickets.redirects(request)[0]
            if before and self._has_cache:
                tickets.drop_conditions(request)
            if page := tickets.referer(request):
                self.neardup.pages.note_link(page)
            if before and ticket.mirror_of:  # the original host has moved the page
                return await self._in_place_of(request, "redirect")
            if before and ticket.reason == tickets.DEAD_LINK and not self._may_follow(request, str(ticket.dead_link)):
                raise IgnoreRequest("a copy of a dead link redirects to a URL to which no detour may lead")
            is_new = not ticket.is_final(request) and (self.config.skip_start or not tickets.is_start(request))
            if is_new and tickets.is_of_spider(request) and (advice := await self._advice(request, before)):
                return self._follow(request, advice)
        return None

    async def _advice(self, request: Request, before: list[str]) -> Advice | None:
        """Return the advice of the first adviser that has any, or of the store; None to send the request."""
        advice = None
        if self.config.action == "audit":  # which changes nothing
            return None
        for adviser in self.neardup.advisers:
            with self.neardup.handled(adviser, request.url):
                if advice := await adviser.advise(request):
                    break
        if not advice and tickets.is_plain(request):
            advice = await self.neardup.ask(self._mirrors.advise, request.url, before)
        return None if advice and self._tickets.is_doubted(request, advice) else advice

    def _follow(self, request: Request, advice: Advice) -> Request | None:
        if advice.action == STOP:
            self.neardup.count("requests/stopped")
            raise AdvisedAgainst(advice.known_by)
        if advice.action == REDIRECT and advice.url:
            return self._redirect(request, advice.url)
        self.neardup.count("requests/skipped")
        self.neardup.count("bytes_saved", advice.size)
        self._crawler.signals.send_catch_log(request_skipped, request=request)
        if advice.document:
            self._tickets.hold(request, advice.document, advice.size)
        by = BY.get(advice.known_by, f", by {advice.known_by}")
        logger.debug("Skipped %s: its content is held as %s%s", request, advice.url, by)
        raise AdvisedAgainst(f"content is held as {advice.url}")

    def _redirect(self, request: Request, url: str) -> Request | None:
        """Return a request to the original host for a page that is not held; None to send the given request."""
        made = tickets.detour(request, url, tickets.MIRROR, request.url)
        is_plain = tickets.is_open(request) and "dont_retry" not in request.meta
        if not self._may_move or not is_plain or self._tickets.is_gone(url) or not self._may_follow(made, request.url):
            return None
        made.meta["dont_retry"] = True  # the mirror has the page too
        self.neardup.count("requests/redirected")
        logger.debug("%s instead of %s, whose host mirrors it", made, request)
        return made

    # After a failed fetch

    async def process_response(self, request: Request, response: Response) -> Request | Response:
        with self.neardup.handled(self, request.url):
            status = response.status
            is_dead = status in self.config.dead_http_codes and not self._is_wanted(request, status)
            if is_dead or (status != 200 and tickets.Ticket.of(request).mirror_of):
                return await self._in_place_of(request, f"status {status}") or response
        return response

    async def process_exception(self, request: Request, exception: Exception) -> Request | None:
        if isinstance(exception, AdvisedAgainst):
            return None
        with self.neardup.handled(self, request.url):
            # The proxy itself may be dead.
            is_dead, ticket = isinstance(exception, DEAD) and not request.meta.get("proxy"), tickets.Ticket.of(request)
            if is_dead and (ticket.mirror_of or ticket.reason == tickets.STAND_IN):
                self._tickets.note_gone(request.url, with_host=True)
            if is_dead or ticket.instead_of:  # a detour may fail with any error
                return await self._in_place_of(request, type(exception).__name__)
        return None

    def _is_wanted(self, request: Request, status: int) -> bool:
        """Return whether the spider handles this status itself, by any of Scrapy's options."""
        return (
            request.meta.get("handle_httpstatus_all", False)
            or status in (request.meta.get("handle_httpstatus_list") or ())
            or status in (getattr(self._crawler.spider, "handle_httpstatus_list", None) or ())
            or self._crawler.settings.getbool("HTTPERROR_ALLOW_ALL")
            or str(status) in map(str, self._crawler.settings.getlist("HTTPERROR_ALLOWED_CODES"))
        )

    async def _in_place_of(self, request: Request, reason: str) -> Request | None:
        """Return the request to send in place of one that failed; None without any."""
        ticket = tickets.Ticket.of(request)
        is_off = self.config.action == "audit" or not self.config.dead_http_codes
        if not ticket.mirror_of and (is_off or not tickets.is_plain(request) or not tickets.is_of_spider(request)):
            return None
        if ticket.mirror_of:
            self._tickets.note_gone(ticket.url)
            made = tickets.detour(request, ticket.mirror_of)
            made.meta.pop("dont_retry", None)
            return made
        self._tickets.note_gone(request.url)
        if copy := None if ticket.reason == tickets.STAND_IN else await self._rescued(request, ticket):
            self.neardup.count("dead_links/redirected")
            logger.debug("Dead link (%s): %s instead of %s", reason, copy, request)
        return copy

    async def _rescued(self, request: Request, ticket: tickets.Ticket) -> Request | None:
        dead, tried = ticket.dead_link or request.url, [*ticket.tried, ticket.url]
        seen, others = await self.neardup.ask(self._others, dead, tried) or (0.0, [])
        for url in others if len(tried) <= MOST_TRIED else ():
            copy = tickets.detour(request, url, tickets.DEAD_LINK, dead, tried)
            if not self._tickets.is_gone(url) and self._may_follow(copy, dead):
                return copy
        for adviser in self.neardup.advisers if seen else ():
            made = None
            with self.neardup.handled(adviser, dead):
                made = await adviser.rescue(request, dead, seen)
            if made and not self._tickets.is_gone(made.url):
                tickets.Ticket(made.url, tickets.STAND_IN, dead, tried).put(made)
                return made
        return None

    def _others(self, url: str, tried: list[str]) -> tuple[float, list[str]]:
        """Return the time of the last visit of a dead URL with held content, else 0, and other URLs with its content.

        Return nothing if this run has the content already.
        """
        dedup = self.neardup.dedup
        link = dedup.store.resolve(url)
        if link and link.signature and dedup.deliveries.is_delivered(link.signature):
            return 0.0, []
        others = [other.url for other in self._mirrors.alternatives(url, tried)]
        return link.seen if link and link.signature else 0.0, others

    def _may_follow(self, request: Request, origin: str) -> bool:
        """Return whether a redirect is safe and not offsite. Scrapy's own check ignores requests with dont_filter."""
        if not tickets.is_safe(request.url, origin) or request.meta.get("allow_offsite"):
            return tickets.is_safe(request.url, origin)
        offsite, spider = self._crawler.get_downloader_middleware(OffsiteMiddleware), self._crawler.spider
        return not (offsite and spider) or offsite.should_follow(request, spider)
