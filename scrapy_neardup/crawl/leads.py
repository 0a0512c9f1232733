"""Copies that link to further pages first, and so must not be skipped.

Such a copy is no page to skip: lists often share an introduction, and each leads to pages of its own.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from scrapy.utils.datatypes import LocalCache

from ..matching.claim import Claim
from ..text.urls import host

if TYPE_CHECKING:
    from scrapy import Request

COPIES = 100_000  # pages that are remembered; of more, the oldest are forgotten
RECENT = 1_000  # pages that led on, which may yet turn out to be copies


class Leads:
    """Tells by the Referer of requests which copies lead on. A request comes here only if no other page led to it."""

    def __init__(self, keep_fetching: Callable[[str], object]) -> None:
        """`keep_fetching`: called with the URL of each copy that leads on."""
        self._keep_fetching = keep_fetching
        self._copies: LocalCache[str, bool] = LocalCache(COPIES)
        self._recent: LocalCache[str, bool] = LocalCache(RECENT)

    def follow(self, request: Request) -> None:
        """Note that a page led to a request."""
        if referer := (request.headers.get("Referer") or b"").decode(errors="replace"):
            self._recent[referer] = True
            if self._copies.pop(referer, None):
                self._keep_fetching(referer)

    def judge(self, claim: Claim) -> None:
        """Note what a page turned out to be."""
        url, original = claim.document.url, claim.match.signature.url if claim.match else None
        if claim.is_copy and url and host(url) == host(original or ""):
            if url in self._recent:
                self._keep_fetching(url)
            else:
                self._copies[url] = True
