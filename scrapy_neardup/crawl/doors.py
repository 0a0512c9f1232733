"""The doors of a crawl, by which other components take part in it: advisers, and signals.

docs/contrib.md shows how to use them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from scrapy import Request

    from ..deduplicator import Claim
    from ..mirrors.advice import Advice

item_judged = object()
"""The signal of each item, sent before the item is dropped or passes on. Its arguments are `item`, `document` (None
without text), `claim` (None without a verdict) and `response` (None if unknown)."""

request_skipped = object()
"""The signal of each request that is skipped since its content is held. Its argument is `request`."""


class Adviser:
    """Is asked before each fetch and for each dead link, and told of each visit. Subclasses override what they need.

    To take part in a crawl, an adviser adds itself to `NearDup.advisers`. They are asked in this order, and at last
    the middleware, for what the store knows. The first advice counts. An audit asks none.
    """

    async def advise(self, request: Request) -> Advice | None:
        """Return advice on a request that is about to be sent; None to ask the next adviser.

        Not asked about start requests (but see NEARDUP_SKIP_START), requests that are sent after all or in place of a
        dead link, and those with `dont_neardup`.
        """
        return None

    async def rescue(self, request: Request, dead: str, seen: float) -> Request | None:
        """Return the request for a page that stands in for a dead link in this run only; None to ask the next adviser.

        Asked after all known copies of the URL `dead` failed, if it has content that this run lacks. `request` is the
        failed request. `seen` is the time of the last visit in seconds since the epoch. Make the request with
        `crawl.tickets.detour`, so that it carries no secrets.
        """
        return None

    def visited(self, claim: Claim) -> None:
        """Note what a URL returned. Called after the claim was committed, in the thread that uses the store."""
