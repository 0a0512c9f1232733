"""Stop requests to traps, directories of a host where many URLs have the same content."""

from __future__ import annotations

import logging
import re
from typing import TYPE_CHECKING
from urllib.parse import parse_qsl, unquote, urlsplit

from scrapy.utils.datatypes import LocalCache

from ..settings import Config
from ..text.urls import canonical_url
from .detours import mark

if TYPE_CHECKING:
    from scrapy import Request

    from ..matching.claim import Claim

logger = logging.getLogger(__name__)

MOST = 10_000  # directories, and pairs of a directory and a document, that are remembered


class Traps:
    """Counts the URLs with a copy of each document by directory, and closes a directory with too many of them."""

    def __init__(self, config: Config) -> None:
        self._max_copies = config.max_copies if config.action != "audit" else 0
        self._copies: LocalCache[tuple[str, str], set[int]] = LocalCache(MOST)
        """Hashes of URLs."""
        self._closed: LocalCache[str, bool] = LocalCache(MOST)

    def judge(self, request: Request, claim: Claim) -> None:
        """Count the URL of a request, if its item is a copy."""
        if not self._max_copies or not claim.is_copy or claim.match is None or self.has(request):
            return
        original, url = claim.match.signature, _url(request)
        place = _place(url)
        if (place, original.id) not in self._copies:
            self._copies[place, original.id] = set()
        urls = self._copies[place, original.id]
        urls.add(hash(url))
        if len(urls) >= self._max_copies:
            self._closed[place] = True
            logger.warning(
                "%d URLs such as %s have the content of %s. No more URLs of this directory are requested until the "
                "crawl ends or is paused (NEARDUP_MAX_COPIES)", len(urls), url, original.url,
            )  # fmt: skip

    def has(self, request: Request) -> bool:
        """Return whether the directory of a request is closed."""
        return bool(self._closed) and _place(_url(request)) in self._closed


def _url(request: Request) -> str:
    """Return the canonical URL of a request; for a detour, of the request that it replaces."""
    return canonical_url(mark(request, "neardup_dead_link") or mark(request, "neardup_mirror_of") or request.url)


def _place(url: str) -> str:
    """Return the host and the path up to its last slash, with each number as 0, and the names of the parameters."""
    parts = urlsplit(url)
    folder = re.sub(r"\d+", "0", unquote(parts.path.rpartition("/")[0]))
    return f"{parts.netloc}{folder}/?{'&'.join(sorted({name for name, _ in parse_qsl(parts.query)}))}"
