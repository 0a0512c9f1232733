"""The downloader middleware: every reason to skip a request, and the redirection of dead links."""

from __future__ import annotations

import logging
from collections.abc import Iterable

from scrapy import Request, exceptions
from scrapy.crawler import Crawler
from scrapy.downloadermiddlewares.offsite import OffsiteMiddleware
from scrapy.exceptions import IgnoreRequest
from scrapy.http import HtmlResponse, Response
from scrapy.utils.response import get_meta_refresh
from twisted.internet import error as twisted_error

from ..mirrors.advice import REDIRECT, STOP, Advice, Alternative, Mirrors
from . import request_skipped
from .extension import NearDup
from .tickets import (
    AFTER_ALL,
    DEAD_LINK,
    RECHECK,
    RESTORED,
    STAND_IN,
    Ticket,
    detour,
    drop_conditions,
    is_of_spider,
    is_plain,
    is_safe,
    is_start,
    redirects,
    to_original,
)

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

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> MirrorMiddleware:
        return cls(NearDup.from_crawler(crawler))

    # Before the fetch

    async def process_request(self, request: Request) -> Request | None:
        with self.neardup.handled(self, request.url):
            ticket, before = Ticket.of(request), redirects(request)[0]
            if before and self._has_cache:
                drop_conditions(request)
            self.neardup.pages.follow(request)
            if before and ticket.reason == DEAD_LINK and not self._may_follow(request, str(ticket.dead_link)):
                raise IgnoreRequest("a copy of a dead link redirects to a URL to which no detour may lead")
            if self._is_asked_about(request, ticket) and (advice := await self._advice(request, before)):
                return self._follow(request, ticket, advice)
        return None

    def _is_asked_about(self, request: Request, ticket: Ticket) -> bool:
        if self.config.action == "audit" or not is_of_spider(request):  # an audit changes nothing
            return False
        if ticket.reason == AFTER_ALL or ticket.dead_link or ticket[:2] == (request.url, RECHECK):
            return False
        return self.config.skip_start or not is_start(request)

    async def _advice(self, request: Request, before: list[str]) -> Advice | None:
        """Return the advice of the first adviser that has any, or of the store; None to send the request."""
        advice = None
        for adviser in self.neardup.advisers:
            with self.neardup.handled(adviser, request.url):
                if advice := await adviser.advise(request):
                    break
        if not advice and is_plain(request):
            advice = await self.neardup.ask(self._mirrors.advise, request.url, before)
        return None if advice and self._tickets.is_doubted(request, advice) else advice

    def _follow(self, request: Request, ticket: Ticket, advice: Advice) -> Request | None:
        if advice.action == STOP:
            self.neardup.count("requests/stopped")
            raise AdvisedAgainst(advice.known_by)
        if advice.action == REDIRECT and advice.url:
            return None if ticket[:2] == (request.url, RESTORED) else self._redirect(request, advice.url)
        self.neardup.count("requests/skipped")
        self.neardup.count("bytes_saved", advice.size)
        self._crawler.signals.send_catch_log(request_skipped, request=request)
        if advice.document:
            self._tickets.hold(request, advice.document, advice.size)
        by = BY.get(advice.known_by, f", by {advice.known_by}")
        self._log(f"Skipped %(request)s: its content is held as %(url)s{by}", request=request, url=advice.url)
        raise AdvisedAgainst(f"content is held as {advice.url}")

    def _redirect(self, request: Request, url: str) -> Request | None:
        """Return a request to the original host for a page that is not held; None to send the given request."""
        made = None if self._tickets.is_gone(url) else to_original(request, url)
        if made is None or not self._may_follow(made, request.url):
            return None
        self.neardup.count("requests/redirected")
        self._log("%(made)s instead of %(request)s, whose host mirrors it", made=made, request=request)
        return made

    # After a failed fetch

    async def process_response(self, request: Request, response: Response) -> Request | Response:
        with self.neardup.handled(self, request.url):
            asked, status = Ticket.of(request).mirror_of, response.status
            if asked and (status != 200 or (isinstance(response, HtmlResponse) and get_meta_refresh(response)[1])):
                return self._restored(request, asked)
            if status in self.config.dead_http_codes and not self._is_wanted(request, status):
                return await self._rescue(request, f"status {status}") or response
        return response

    async def process_exception(self, request: Request, exception: Exception) -> Request | None:
        if isinstance(exception, AdvisedAgainst):
            return None
        with self.neardup.handled(self, request.url):
            # The proxy itself may be dead.
            is_dead = isinstance(exception, DEAD) and not request.meta.get("proxy")
            ticket = Ticket.of(request)
            if is_dead and (ticket.mirror_of or ticket.reason == STAND_IN):
                self._tickets.note_gone(request.url, with_host=True)
            if ticket.mirror_of:
                return self._restored(request, ticket.mirror_of)
            if is_dead or ticket.dead_link:  # a detour to a copy may fail with any error: try the next copy
                return await self._rescue(request, type(exception).__name__)
        return None

    def _restored(self, request: Request, asked: str) -> Request:
        """Return the request that was replaced by a rule on hosts."""
        self._tickets.note_gone(request.url)
        return detour(request, asked, RESTORED)

    def _is_wanted(self, request: Request, status: int) -> bool:
        """Return whether the spider handles this status itself, by any of Scrapy's options."""
        return (
            request.meta.get("handle_httpstatus_all", False)
            or status in (request.meta.get("handle_httpstatus_list") or ())
            or status in (getattr(self._crawler.spider, "handle_httpstatus_list", None) or ())
            or self._crawler.settings.getbool("HTTPERROR_ALLOW_ALL")
            or str(status) in map(str, self._crawler.settings.getlist("HTTPERROR_ALLOWED_CODES"))
        )

    async def _rescue(self, request: Request, reason: str) -> Request | None:
        """Return a request in place of a dead link; None without any."""
        is_off = self.config.action == "audit" or not self.config.dead_http_codes
        if is_off or not is_plain(request) or not is_of_spider(request):
            return None
        if made := await self._in_place_of(request):
            self.neardup.count("dead_links/redirected")
            message = "Dead link (%(reason)s): %(made)s instead of %(request)s"
            self._log(message, reason=reason, made=made, request=request)
        return made

    async def _in_place_of(self, request: Request) -> Request | None:
        self._tickets.note_gone(request.url)
        ticket = Ticket.of(request)
        if ticket.reason == STAND_IN:  # the last resort
            return None
        dead, tried = ticket.dead_link or request.url, [*ticket.tried, ticket.url]
        seen, others = await self.neardup.ask(self._others, dead, tried) or (0.0, [])
        for other in others if len(tried) <= MOST_TRIED else ():
            made = None if self._tickets.is_gone(other.url) else detour(request, other.url, DEAD_LINK, dead, tried)
            if made and self._may_follow(made, dead):
                return made
        for adviser in self.neardup.advisers if seen else ():
            made = None
            with self.neardup.handled(adviser, dead):
                made = await adviser.rescue(request, dead, seen)
            if made and not self._tickets.is_gone(made.url):
                Ticket(made.url, STAND_IN, dead, tried).put(made)
                return made
        return None

    def _others(self, url: str, tried: list[str]) -> tuple[float, Iterable[Alternative]]:
        """Return the time of the last visit of a dead URL with held content, else 0, and other URLs with its content.

        Return nothing if this run has the content already.
        """
        dedup = self.neardup.dedup
        link = dedup.store.resolve(url)
        if link and link.signature and dedup.deliveries.is_delivered(link.signature):
            return 0.0, ()
        return link.seen if link and link.signature else 0.0, list(self._mirrors.alternatives(url, tried))

    def _may_follow(self, request: Request, origin: str) -> bool:
        """Return whether a redirect is safe and not offsite. Scrapy's own check ignores requests with dont_filter."""
        if not is_safe(request.url, origin) or request.meta.get("allow_offsite"):
            return is_safe(request.url, origin)
        offsite, spider = self._crawler.get_downloader_middleware(OffsiteMiddleware), self._crawler.spider
        return not (offsite and spider) or offsite.should_follow(request, spider)

    def _log(self, message: str, **arguments: object) -> None:
        logger.debug(message, arguments, extra={"spider": self._crawler.spider})
