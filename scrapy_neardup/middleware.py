"""The downloader middleware: known mirrors are not fetched, dead links lead to a live mirror."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from scrapy import Request, signals
from scrapy.downloadermiddlewares.offsite import OffsiteMiddleware
from scrapy.exceptions import (
    CannotResolveHostError,
    DownloadConnectionRefusedError,
    DownloadTimeoutError,
    IgnoreRequest,
)
from scrapy.http import Response
from scrapy.http.request import NO_CALLBACK
from twisted.internet import error as twisted_error

from .extension import NearDup
from .mirrors import Mirrors

if TYPE_CHECKING:
    from scrapy.crawler import Crawler
    from typing_extensions import Self

logger = logging.getLogger(__name__)

MAX_MIRROR_TIMES = 3
DEAD = (
    CannotResolveHostError,
    DownloadConnectionRefusedError,
    DownloadTimeoutError,
    # Raised by download handlers other than Scrapy's own.
    twisted_error.DNSLookupError,
    twisted_error.ConnectionRefusedError,
    twisted_error.TimeoutError,
)


class MirrorMiddleware:
    """Skips URLs whose content is held, and sends dead links to a mirror."""

    def __init__(self, neardup: NearDup, crawler: Crawler) -> None:
        self.neardup = neardup
        self.config = neardup.config
        # An audit changes nothing, so it fetches what there is.
        self._skips = self.config.action != "audit"
        self._rescues = self.config.dead_links and self.config.action != "audit"
        self.mirrors = Mirrors.from_config(neardup.dedup.store, neardup.config)
        self._crawler = crawler
        self._offsite: OffsiteMiddleware | None = None

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        o = cls(NearDup.from_crawler(crawler), crawler)
        crawler.signals.connect(o.engine_started, signal=signals.engine_started)
        return o

    def engine_started(self) -> None:
        self._offsite = self._crawler.get_downloader_middleware(OffsiteMiddleware)

    # Before the fetch

    def process_request(self, request: Request) -> None:
        if not self._skips or not _is_ours(request) or "neardup_dead_link" in request.meta:
            return
        if request.meta.get("is_start_request") and not self.config.skip_start:
            return
        link = self.mirrors.held_by(request.url)
        if link is None or link.signature is None:
            return
        if self.mirrors.rechecks(request.url):
            self.neardup.count("requests/rechecked")
            request.meta["neardup_recheck"] = True
            return
        self.neardup.count("requests/skipped")
        self.neardup.count("bytes_saved", link.size)
        logger.debug(
            "Skipped %(request)s: its content is held as %(url)s",
            {"request": request, "url": link.signature.url},
            extra={"spider": self._crawler.spider},
        )
        raise IgnoreRequest(f"content is held as {link.signature.url}")

    # After a failed fetch

    def process_response(self, request: Request, response: Response) -> Request | Response:
        if response.status not in self.config.dead_http_codes or self._is_wanted(request, response.status):
            return response
        return self._rescue(request, f"status {response.status}") or response

    def process_exception(self, request: Request, exception: Exception) -> Request | None:
        return self._rescue(request, type(exception).__name__) if isinstance(exception, DEAD) else None

    def _is_wanted(self, request: Request, status: int) -> bool:
        """Say whether the spider asked to see this status itself, in the ways that Scrapy knows."""
        return (
            request.meta.get("handle_httpstatus_all", False)
            or status in (request.meta.get("handle_httpstatus_list") or ())
            or status in (getattr(self._crawler.spider, "handle_httpstatus_list", None) or ())
            or self._crawler.settings.getbool("HTTPERROR_ALLOW_ALL")
            or str(status) in map(str, self._crawler.settings.getlist("HTTPERROR_ALLOWED_CODES"))
        )

    def _rescue(self, request: Request, reason: str) -> Request | None:
        if not self._rescues or not _is_ours(request):
            return None
        self.neardup.count("dead_links/seen")
        dead = request.meta.get("neardup_dead_link", request.url)
        tried = [*request.meta.get("neardup_tried", ()), request.url]
        if len(tried) > MAX_MIRROR_TIMES:
            return None
        for url in self.mirrors.alternatives(dead, tried):
            mirror = _redirected(request, url, dead, tried)
            if self._may_follow(mirror):
                self.neardup.count("dead_links/redirected")
                logger.debug(
                    "Dead link (%(reason)s): %(mirror)s instead of %(request)s",
                    {"reason": reason, "mirror": mirror, "request": request},
                    extra={"spider": self._crawler.spider},
                )
                return mirror
        return None

    def _may_follow(self, request: Request) -> bool:
        """Apply the offsite rules here: that middleware lets requests with dont_filter through."""
        spider = self._crawler.spider
        if self._offsite is None or spider is None or request.meta.get("allow_offsite"):
            return True
        return self._offsite.should_follow(request, spider)


def _is_ours(request: Request) -> bool:
    """Say whether a request is one that a URL alone describes, and that nobody asked us to leave alone."""
    return request.method == "GET" and request.callback is not NO_CALLBACK and not request.meta.get("dont_neardup")


def _origin(url: str) -> tuple[str, str]:
    parts = urlsplit(url)
    return parts.scheme, parts.netloc


def _redirected(request: Request, url: str, dead: str, tried: list[str]) -> Request:
    """Return the request for a mirror: past the dupefilter, since the mirror may have been fetched for itself."""
    mirror = request.replace(url=url, dont_filter=True, cookies=None)
    mirror.meta.update(neardup_dead_link=dead, neardup_mirror_times=len(tried), neardup_tried=tried)
    for key in ("redirect_urls", "redirect_reasons", "retry_times", "neardup_recheck", "download_slot"):
        mirror.meta.pop(key, None)
    if _origin(url) != _origin(request.url):
        for name in ("Cookie", "Authorization"):
            mirror.headers.pop(name, None)
    return mirror
