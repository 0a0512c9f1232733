"""Stop a crawl, or the requests from one start request, when only seen items come.

An item is seen if it is a revisit or a duplicate. A request that is skipped because its content is held counts as one
seen item.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import TYPE_CHECKING

from scrapy.utils.datatypes import LocalCache

from ..settings import Config
from ..verdict import Verdict

if TYPE_CHECKING:
    from scrapy import Request

logger = logging.getLogger(__name__)

REASON = "neardup_only_seen"
LISTING = "neardup_listing"  # the meta key with the URL of the start request that led to a request
MOST = 10_000  # start requests whose streaks are remembered


class Streaks:
    """Counts seen items in a row, in the whole crawl and for each start request."""

    def __init__(self, config: Config, close: Callable[[str], object]) -> None:
        """`close` is called with the reason to close the spider."""
        is_active = config.action != "audit"
        self._close_after = config.close_after_seen if is_active else 0
        self._stop_after = config.stop_listing if is_active else 0
        self._close = close
        self._all = 0
        self._by_listing: LocalCache[str, int] = LocalCache(MOST)

    def mark(self, request: Request, origin: Request | None) -> None:
        """Mark a request with the start request that led to it.

        `origin` is the request from whose response it was made; None for a start request.
        """
        if self._stop_after:
            request.meta[LISTING] = request.url if origin is None else origin.meta.get(LISTING, origin.url)

    def judge(self, request: Request | None, verdict: Verdict) -> None:
        """Count an item by its verdict. `request` is the request of its response."""
        self.note(request, is_seen=verdict.status != "unique" and not verdict.changed)

    def note(self, request: Request | None, *, is_seen: bool) -> None:
        """Count an item; a new one ends the streaks."""
        self._all = self._all + 1 if is_seen else 0
        if self._close_after and self._all == self._close_after:
            logger.info("The spider is closed: the last %d items were seen before", self._all)
            self._close(REASON)
        if self._stop_after and request and (listing := request.meta.get(LISTING)):
            streak = self._by_listing.get(listing, 0)
            if streak < self._stop_after:  # a stopped listing stays stopped
                self._by_listing[listing] = streak + 1 if is_seen else 0
                if streak + 1 == self._stop_after and is_seen:
                    logger.info("No more requests from %s: its last %d items were seen before", listing, streak + 1)

    def is_stopped(self, request: Request) -> bool:
        """Return whether the start request that led to a request has led to too many seen items in a row."""
        listing = request.meta.get(LISTING, "")
        return bool(self._stop_after) and self._by_listing.get(listing, 0) >= self._stop_after
