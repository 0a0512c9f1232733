"""Request the archived copy of a dead link, by a TimeGate or another URL template, or by the user's function."""

from __future__ import annotations

import inspect
import logging
from collections.abc import Awaitable, Callable
from datetime import datetime, timezone
from email.utils import format_datetime
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from scrapy import Request
from scrapy.http.request import NO_CALLBACK

from .detours import detour, is_safe, mark

if TYPE_CHECKING:
    from scrapy.crawler import Crawler
    from scrapy.http import Response

logger = logging.getLogger(__name__)


class Archive:
    """The archive of NEARDUP_DEAD_LINKS_ARCHIVE. It has copies of pages as they were at a time."""

    def __init__(self, where: str | Callable[..., Any], crawler: Crawler) -> None:
        """`where` is a URL template with `{url}`, or a function; see docs/reference/settings.md."""
        self._where = where
        self._crawler = crawler

    async def detour(self, request: Request, dead: str, seen: float) -> Request | None:
        """Return the request for the archived copy of a URL nearest to its last visit. Return None if there is none.

        `request` is the failed request, `dead` the URL of the page, and `seen` the time of its last visit in seconds
        since the epoch. The header Accept-Datetime is that of RFC 7089, section 2.1.1. A URL with a user name is not
        sent to an archive, and a URL in a private network is not sent to a public one.
        """
        time = datetime.fromtimestamp(int(seen), timezone.utc)
        url = await self._url(dead, time)
        if url is None or "@" in urlsplit(dead).netloc or not is_safe(dead, url):
            return None
        made = detour(request, url, {"neardup_dead_link": dead, "neardup_archived": True})
        made.headers["Accept-Datetime"] = format_datetime(time, usegmt=True)
        return made

    async def _url(self, dead: str, time: datetime) -> str | None:
        if isinstance(self._where, str):
            return self._where.replace("{timestamp}", f"{time:%Y%m%d%H%M%S}").replace("{url}", dead)
        try:
            url = self._where(dead, time, self._download)
            url = await url if inspect.isawaitable(url) else url
            if url is not None and not str(url).startswith(("http://", "https://")):
                raise ValueError(f"it returned {url!r}; allowed is a URL that begins with http:// or https://, or None")
        except Exception as error:  # including any error of the user's function
            logger.error("NEARDUP_DEAD_LINKS_ARCHIVE failed for %s: %s", dead, error or type(error).__name__)
            return None
        return url and str(url)

    def _download(self, url: str) -> Awaitable[Response]:
        """Download a page for the user's function."""
        assert self._crawler.engine
        return self._crawler.engine.download_async(Request(url, NO_CALLBACK, meta={"dont_neardup": True}))


def is_archived(request: Request) -> bool:
    """Return whether a request was sent to the archive, or was redirected from such a request."""
    return bool(mark(request, "neardup_archived"))
