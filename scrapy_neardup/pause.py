"""Waiting in a crawl, under any reactor or without one."""

from __future__ import annotations

from scrapy.utils.asyncio import call_later
from scrapy.utils.defer import maybe_deferred_to_future
from twisted.internet.defer import Deferred


async def pause(seconds: float) -> None:
    """Let the crawl go on for so long."""
    moment: Deferred[None] = Deferred()
    call_later(seconds, moment.callback, None)
    await maybe_deferred_to_future(moment)
