"""Stop requests to traps, directories of a host where many URLs have the same content."""

from __future__ import annotations

import logging
import re
from urllib.parse import parse_qsl, unquote, urlsplit

from scrapy import Request
from scrapy.crawler import Crawler
from scrapy.http import Response
from scrapy.utils.datatypes import LocalCache

from ..crawl import Adviser, item_judged
from ..crawl.tickets import Ticket, is_plain
from ..deduplicator import Claim
from ..mirrors.advice import STOP, Advice
from ..text.urls import canonical_url
from . import limit_of

logger = logging.getLogger(__name__)

MOST = 10_000  # directories, and pairs of a directory and a document, that are remembered


class Traps(Adviser):
    """An extension that closes a directory after TRAPS_COPIES of its URLs gave a copy of the same document."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._copies: LocalCache[tuple[str, str], set[str]] = LocalCache(MOST)
        """URLs by directory and document."""
        self._closed: LocalCache[str, bool] = LocalCache(MOST)

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Traps:
        neardup, limit = limit_of(crawler, "TRAPS_COPIES")
        o = cls(limit)
        neardup.advisers.append(o)
        crawler.signals.connect(o.item_judged, signal=item_judged)
        return o

    def item_judged(self, claim: Claim | None, response: Response | None) -> None:
        """Count the URL of a copy."""
        if not (claim and claim.match and claim.is_copy and response and response.request):
            return
        original, url = claim.match.signature, _url(response.request)
        place = _place(url)
        urls = self._copies[place, original.id] = self._copies.get((place, original.id), set()) | {url}
        if len(urls) >= self._limit and place not in self._closed:
            self._closed[place] = True
            logger.warning(
                "%d URLs such as %s have the content of %s. No more URLs of this directory are requested until the "
                "crawl ends or is paused (TRAPS_COPIES)", len(urls), url, original.url,
            )  # fmt: skip

    async def advise(self, request: Request) -> Advice | None:
        if self._closed and is_plain(request) and _place(_url(request)) in self._closed:
            return Advice(STOP, None, known_by="its directory has too many URLs with the same content")
        return None


def _url(request: Request) -> str:
    """Return the canonical URL of a request; for a detour, of the request that it replaces."""
    return canonical_url(Ticket.of(request).instead_of or request.url)


def _place(url: str) -> str:
    """Return the host and the path up to its last slash, with each number as 0, and the names of the parameters."""
    parts = urlsplit(url)
    folder = re.sub(r"\d+", "0", unquote(parts.path.rpartition("/")[0]))
    return f"{parts.netloc}{folder}/?{'&'.join(sorted({name for name, _ in parse_qsl(parts.query)}))}"
