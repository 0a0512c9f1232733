"""Wait for some seconds or for a future, with any Twisted reactor or with asyncio alone."""

from __future__ import annotations

import asyncio
from concurrent.futures import Future
from typing import TypeVar

from scrapy.utils.asyncio import call_later, is_asyncio_available
from scrapy.utils.defer import maybe_deferred_to_future
from twisted.internet.defer import Deferred

T = TypeVar("T")


async def pause(seconds: float) -> None:
    """Wait for `seconds` seconds while the crawl goes on."""
    moment: Deferred[None] = Deferred()
    call_later(seconds, moment.callback, None)
    await maybe_deferred_to_future(moment)


async def arrived(future: Future[T]) -> T:
    """Return the result of a future of another thread or process, or raise its error."""
    if is_asyncio_available():
        return await asyncio.wrap_future(future)
    from twisted.internet import reactor

    done: Deferred[None] = Deferred()
    future.add_done_callback(lambda _: reactor.callFromThread(done.callback, None))
    await done
    return future.result()
