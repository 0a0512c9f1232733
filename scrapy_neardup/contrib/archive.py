"""Fetch a dead link from a web archive if no known copy of it is left. A URL template or a function finds the page."""

from __future__ import annotations

import inspect
import logging
import re
from collections.abc import Awaitable, Callable
from datetime import datetime, timezone
from email.utils import format_datetime
from typing import Any
from urllib.parse import urlsplit

from scrapy import Request
from scrapy.crawler import Crawler
from scrapy.exceptions import NotConfigured
from scrapy.http import Response
from scrapy.http.request import NO_CALLBACK
from scrapy.utils.misc import load_object

from ..crawl import Adviser
from ..crawl.detours import detour, is_safe
from ..crawl.extension import NearDup
from ..settings import ConfigError

logger = logging.getLogger(__name__)


class Archive(Adviser):
    """An extension that sends dead links to the archive in ARCHIVE_URL: a URL template with `{url}`, or a function."""

    def __init__(self, where: str | Callable[..., Any], crawler: Crawler) -> None:
        self._where = where
        self._crawler = crawler

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Archive:
        if not (where := crawler.settings.get("ARCHIVE_URL")):
            raise NotConfigured("ARCHIVE_URL is not set")
        why = ""
        if not callable(where) and "://" not in str(where):
            try:
                where = load_object(where)
            except (ImportError, NameError, TypeError, ValueError) as error:
                why = f": {error}"
        if not callable(where) and not re.match("https?://.*{url}", str(where)):
            allowed = "allowed is a URL with {url}, or a function"
            raise ConfigError(f"ARCHIVE_URL = {where!r} is not allowed{why}; {allowed}")
        o = cls(where, crawler)
        NearDup.from_crawler(crawler).advisers.append(o)
        return o

    async def rescue(self, request: Request, dead: str, seen: float) -> Request | None:
        """Return the request for the archived copy of `dead` that is nearest to the time `seen`; None if there is none.

        The header Accept-Datetime, of RFC 7089, section 2.1.1, asks for that time. No archive is sent a URL with a user
        name, and no public archive is sent a URL in a private network.
        """
        time = datetime.fromtimestamp(int(seen), timezone.utc)
        url = None if "@" in urlsplit(dead).netloc else await self._url(dead, time)
        if url is None or not is_safe(dead, url):
            return None
        made = detour(request, url)
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
            logger.error("ARCHIVE_URL failed for %s: %s", dead, error or type(error).__name__)
            return None
        return url and str(url)

    def _download(self, url: str) -> Awaitable[Response]:
        assert self._crawler.engine
        return self._crawler.engine.download_async(Request(url, NO_CALLBACK, meta={"dont_neardup": True}))
