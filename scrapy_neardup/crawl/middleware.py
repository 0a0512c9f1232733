"""The downloader middleware: every reason to skip a request, and the redirection of dead links."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from typing import TYPE_CHECKING, NoReturn

from scrapy import Request, signals
from scrapy.downloadermiddlewares.offsite import OffsiteMiddleware
from scrapy.exceptions import (
    CannotResolveHostError,
    DownloadConnectionRefusedError,
    DownloadTimeoutError,
    IgnoreRequest,
)
from scrapy.http import HtmlResponse, Response
from scrapy.utils.datatypes import LocalCache
from scrapy.utils.response import get_meta_refresh
from twisted.internet import error as twisted_error

from ..mirrors.advice import REDIRECT, SKIP, STOP, Advice, Alternative, Mirrors
from ..text.urls import canonical_url, host
from .detours import (
    DETOUR,
    FOR_DETOUR,
    detour,
    disown,
    drop_conditions,
    is_of_spider,
    is_open,
    is_plain,
    is_safe,
    is_stand_in,
    is_start,
    mark,
    redirects,
)
from .doors import Adviser, request_skipped
from .extension import NearDup
from .waitlist import is_sent_after_all

if TYPE_CHECKING:
    from scrapy.crawler import Crawler
    from typing_extensions import Self

logger = logging.getLogger(__name__)

MAX_MIRROR_TIMES = 3
MAX_GONE = 100_000
BY = {
    "page": "",
    "rule": ", by the rule of its host",
    "setting": ", by NEARDUP_MIRROR_HOSTS",
}
DEAD = (
    CannotResolveHostError,
    DownloadConnectionRefusedError,
    DownloadTimeoutError,
    # Download handlers other than Scrapy's own raise these.
    twisted_error.DNSLookupError,
    twisted_error.ConnectionRefusedError,
    twisted_error.TimeoutError,
)


class KnownPages(Adviser):
    """The built-in adviser: on URLs whose content is known, or follows from a rule on hosts."""

    def __init__(self, neardup: NearDup, mirrors: Mirrors) -> None:
        self._access = neardup.access
        self._mirrors = mirrors

    async def advise(self, request: Request) -> Advice | None:
        if not is_plain(request):
            return None
        return await self._access.ask(self._mirrors.advise, request.url, redirects(request)[0])


class MirrorMiddleware:
    """Skips URLs whose content is held, and redirects dead links to a copy."""

    def __init__(self, neardup: NearDup, crawler: Crawler) -> None:
        self.neardup = neardup
        self.config = neardup.config
        # An audit changes nothing, so it skips nothing.
        self._skips = self.config.action != "audit"
        self._rescues = self.config.dead_links and self.config.action != "audit"
        self.mirrors = Mirrors(
            neardup.dedup.store, neardup.config, neardup.dedup.matcher.reviews, neardup.dedup.deliveries
        )
        self._known = KnownPages(neardup, self.mirrors)
        self._crawler = crawler
        self._has_cache = crawler.settings.getbool("HTTPCACHE_ENABLED")
        self._offsite: OffsiteMiddleware | None = None
        self._gone: LocalCache[str, bool] = LocalCache(MAX_GONE)
        """URLs and hosts that failed in this crawl. The oldest are forgotten."""

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        o = cls(NearDup.from_crawler(crawler), crawler)
        crawler.signals.connect(o.engine_started, signal=signals.engine_started)
        return o

    def engine_started(self) -> None:
        self._offsite = self._crawler.get_downloader_middleware(OffsiteMiddleware)

    # Before the fetch

    async def process_request(self, request: Request) -> Request | None:
        disown(request)
        if self._has_cache and redirects(request)[0]:
            drop_conditions(request)
        self.neardup.leads.follow(request)
        advice = await self._advice(request) if self._is_asked_about(request) else None
        if advice is None:
            return None
        if advice.action == STOP:
            self.neardup.count("requests/stopped")
            raise IgnoreRequest(advice.known_by)
        if advice.action == REDIRECT and advice.url:
            return self._redirect(request, advice.url)
        return self._skip(request, advice)

    def _is_asked_about(self, request: Request) -> bool:
        if not self._skips or not is_of_spider(request) or is_sent_after_all(request):
            return False
        if mark(request, "neardup_dead_link") or request.meta.get("neardup_recheck") == request.url:
            return False
        return self.config.skip_start or not is_start(request)

    async def _advice(self, request: Request) -> Advice | None:
        """Return the advice of the first adviser that has any; None to send the request."""
        for adviser in (*self.neardup.advisers, self._known):
            advice = None
            with self.neardup.guarded(adviser, request.url):
                advice = await adviser.advise(request)
            if advice:
                is_wrong = self.neardup.rechecks.have_failed(advice) or self._is_rechecked(request, advice)
                return None if is_wrong else advice
        return None

    def _is_rechecked(self, request: Request, advice: Advice) -> bool:
        if advice.action != SKIP or not self.mirrors.rechecks(request.url, advice.recheck):
            return False
        self.neardup.count("requests/rechecked")
        self.neardup.rechecks.add(request.url, advice)
        # The value is the URL, so that the mark does not count in requests that copy this meta.
        request.meta["neardup_recheck"] = request.url
        return True

    def _skip(self, request: Request, advice: Advice) -> NoReturn:
        self.neardup.count("requests/skipped")
        self._crawler.signals.send_catch_log(request_skipped, request=request)
        self.neardup.count("bytes_saved", advice.size)
        if advice.document:
            self.neardup.waitlist.add(request, advice.document, advice.size)
        by = BY.get(advice.known_by, f", by {advice.known_by}")
        self._log(f"Skipped %(request)s: its content is held as %(url)s{by}", request=request, url=advice.url)
        raise IgnoreRequest(f"content is held as {advice.url}")

    def _redirect(self, request: Request, url: str) -> Request | None:
        """Return a request to the original host for a page that is not held; None to send the given request."""
        # If the original host does not return the page, but a redirect or an error, the requested URL is fetched.
        marks = {"neardup_mirror_of": request.url, **dict.fromkeys(FOR_DETOUR, True)}
        made = detour(request, url, marks)
        if request.meta.get("neardup_restored") == request.url or self._is_gone(url) or not is_open(request):
            return None
        if marks.keys() & request.meta.keys() - {"neardup_mirror_of"}:
            return None  # the user's own settings for redirects and retries would be lost
        if not self._may_follow(made, request.url):
            return None
        self.neardup.count("requests/redirected")
        self._log("%(made)s instead of %(request)s, whose host mirrors it", made=made, request=request)
        return made

    # After a failed fetch

    async def process_response(self, request: Request, response: Response) -> Request | Response:
        if mark(request, "neardup_mirror_of") and not _is_page(response) and (restored := self._restored(request)):
            return restored
        if response.status not in self.config.dead_http_codes or self._is_wanted(request, response.status):
            return response
        return await self._rescue(request, f"status {response.status}") or response

    async def process_exception(self, request: Request, exception: Exception) -> Request | None:
        if restored := self._restored(request):
            if isinstance(exception, DEAD) and not request.meta.get("proxy"):
                self._gone[_place(request.url)] = True
            return restored
        # A detour to a copy may fail with any error. Then the next copy is tried.
        is_dead = isinstance(exception, DEAD) and not request.meta.get("proxy")  # the proxy itself may be dead
        if is_dead and is_stand_in(request):
            self._gone[_place(request.url)] = True
        if not is_dead and not mark(request, "neardup_dead_link"):
            return None
        return await self._rescue(request, type(exception).__name__)

    def _restored(self, request: Request) -> Request | None:
        """Return the request that was replaced by a rule on hosts; None if there is none."""
        original = mark(request, "neardup_mirror_of")
        if original is None:
            return None
        self._gone[canonical_url(request.url)] = True
        made = detour(request, original, {})
        for name in FOR_DETOUR:
            made.meta.pop(name, None)
        made.meta["neardup_restored"] = made.url
        return made

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
        if not self._rescues or not is_plain(request) or not is_of_spider(request):
            return None
        self.neardup.count("dead_links/seen")
        self._gone[canonical_url(request.url)] = True
        if is_stand_in(request):  # the last resort
            return None
        dead = mark(request, "neardup_dead_link") or request.url
        tried = [*(mark(request, "neardup_tried") or ()), request.url]
        seen, others = await self.neardup.access.ask(self._others, dead, tried) or (0.0, [])
        made = self._to_copy(request, dead, tried, others)
        if made is None and seen:
            made = await self._to_stand_in(request, dead, seen)
        if made:
            self.neardup.count("dead_links/redirected")
            message = "Dead link (%(reason)s): %(made)s instead of %(request)s"
            self._log(message, reason=reason, made=made, request=request)
        return made

    def _to_copy(self, request: Request, dead: str, tried: list[str], others: Iterable[Alternative]) -> Request | None:
        """Return a request for a copy of a dead link. Return None if all known copies failed."""
        for other in others if len(tried) <= MAX_MIRROR_TIMES else ():
            if self._is_gone(other.url):
                continue
            marks = {"neardup_dead_link": dead, "neardup_mirror_times": len(tried), "neardup_tried": tried}
            mirror = detour(request, other.url, marks)
            if self._may_follow(mirror, dead):
                return mirror
        return None

    async def _to_stand_in(self, request: Request, dead: str, seen: float) -> Request | None:
        """Return the request of the first adviser that names a page in place of a dead link; None without any."""
        for adviser in self.neardup.advisers:
            made = None
            with self.neardup.guarded(adviser, dead):
                made = await adviser.rescue(request, dead, seen)
            if made and not self._is_gone(made.url):
                made.meta.update({DETOUR: made.url, "neardup_dead_link": dead, "neardup_stand_in": True})
                return made
        return None

    def _others(self, url: str, tried: list[str]) -> tuple[float, list[Alternative]]:
        """Return the time of the last visit of a dead URL with held content, else 0, and other URLs with its content.

        Return nothing if this run has the content already.
        """
        dedup = self.neardup.dedup
        link = dedup.store.resolve(url)
        document = link.signature if link else None
        if document and dedup.deliveries.is_delivered(document):
            return 0.0, []
        return link.seen if link and document else 0.0, list(self.mirrors.alternatives(url, tried))

    def _is_gone(self, url: str) -> bool:
        return canonical_url(url) in self._gone or _place(url) in self._gone

    def _may_follow(self, request: Request, origin: str) -> bool:
        """Return whether a redirect is safe and not offsite. Scrapy's own check ignores requests with dont_filter."""
        spider = self._crawler.spider
        if not is_safe(request.url, origin):
            return False
        if self._offsite is None or spider is None or request.meta.get("allow_offsite"):
            return True
        return self._offsite.should_follow(request, spider)

    def _log(self, message: str, **arguments: object) -> None:
        logger.debug(message, arguments, extra={"spider": self._crawler.spider})


def _is_page(response: Response) -> bool:
    """Return whether a response is a page: no error, no redirect, no meta refresh."""
    return response.status == 200 and not (isinstance(response, HtmlResponse) and get_meta_refresh(response)[1])


def _place(url: str) -> str:
    return f"//{host(url)}"
