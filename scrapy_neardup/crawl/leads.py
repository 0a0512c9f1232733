"""Find copies that were the first to link to another page, and keep fetching these copies.

List pages often share an introduction, but link to different pages. If copies among them were skipped, the crawl would
miss the pages to which only these copies link.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from scrapy.utils.datatypes import LocalCache

from ..matching.claim import Claim
from ..text.urls import host

if TYPE_CHECKING:
    from scrapy import Request

COPIES = 100_000  # the maximum number of remembered copies; the oldest are forgotten
RECENT = 1_000  # the maximum number of remembered pages with links, which may turn out to be copies


class Leads:
    """Finds copies with links to new pages, by the Referer header of requests.

    Scrapy filters repeated requests before they arrive here, so each request is for a new page.
    """

    def __init__(self, keep_fetching: Callable[[str], object]) -> None:
        """`keep_fetching` is called with the URL of each copy that has such links."""
        self._keep_fetching = keep_fetching
        self._copies: LocalCache[str, bool] = LocalCache(COPIES)
        self._recent: LocalCache[str, bool] = LocalCache(RECENT)

    def follow(self, request: Request) -> None:
        """Note that the page in the Referer header of a request has a link. If the page is a copy, keep fetching it."""
        if referer := (request.headers.get("Referer") or b"").decode(errors="replace"):
            self._recent[referer] = True
            if self._copies.pop(referer, None):
                self._keep_fetching(referer)

    def note_verdict(self, claim: Claim) -> None:
        """Note the verdict on a page. If it is a copy of a page on the same host, and has a link, keep fetching it."""
        url, original = claim.document.url, claim.match.signature.url if claim.match else None
        if claim.is_copy and url and host(url) == host(original or ""):
            if url in self._recent:
                self._keep_fetching(url)
            else:
                self._copies[url] = True
