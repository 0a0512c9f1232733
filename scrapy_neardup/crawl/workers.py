"""Do the work of a crawl that would keep the reactor waiting: in the thread of the store, and in worker processes.

A store on a server is called in a thread, one call at a time, which keeps the calls in order. If a call fails, the
error is logged, and no item is lost.

Slow fingerprints are computed, and main texts extracted, in worker processes. Fast fingerprints are computed at the
claim, since passing documents between processes would take longer. A document can kill its worker process. It is then
tried once more, in a new process of its own, and never in the process of the crawl. If the new process dies too, the
item passes without a verdict.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import deque
from collections.abc import Awaitable, Callable, Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from scrapy.utils.asyncio import call_later, is_asyncio_available
from scrapy.utils.defer import deferred_from_coro, maybe_deferred_to_future
from twisted.internet.defer import Deferred, DeferredSemaphore

from ..detectors import Detector
from ..detectors.detector import is_heavy
from ..detectors.processes import ProcessError, Processes, check_can_be_sent
from ..document import Document
from ..store import StoreError
from ..text.html import BUILTIN, Extract, Page, build_reader
from ..text.html import is_heavy as is_heavy_extractor

if TYPE_CHECKING:
    from ..deduplicator import Claim, Deduplicator

T = TypeVar("T")

logger = logging.getLogger(__name__)

FAILURES = (StoreError, OSError)
AT_ONCE = 20  # the maximum number of documents that are claimed in one call
RETRY = 30.0  # seconds until processes are started again after one failed to start
QUEUED = 2  # documents queued for each process; more of them would try to start processes that can't start


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


class Access:
    """Calls the store of a crawl. `ask` and `later` pass an error of the store to `failed`, the others raise it."""

    def __init__(self, dedup: Deduplicator, failed: Callable[[Exception], object]) -> None:
        self._dedup = dedup
        self._failed = failed
        self._thread = ThreadPoolExecutor(1, "neardup-store") if dedup.store.is_remote else None
        self._claims: deque[tuple[Document, Future[Claim]]] = deque()
        self._asked = 0

    async def run(self, function: Callable[..., T], *arguments: Any) -> T:
        """Call a function on the store, and return its result. Raise the errors of the function."""
        if self._thread is None:
            return function(*arguments)
        return await arrived(self._submit(function, *arguments))

    def _submit(self, function: Callable[..., T], *arguments: Any) -> Future[T]:
        assert self._thread
        self._asked += 1
        return self._thread.submit(self._do, self._asked, function, *arguments)

    def _do(self, number: int, function: Callable[..., T], *arguments: Any) -> T:
        """Call a function. Then flush the store if no more calls wait, since other processes may wait for the rows."""
        try:
            return function(*arguments)
        finally:
            if number == self._asked:
                with suppress(*FAILURES):  # the rows stay queued, and `flush` raises
                    self._dedup.store.flush(wait=False)

    async def ask(self, function: Callable[..., T], *arguments: Any) -> T | None:
        """Call a function on the store, and return its result. Return None if the store fails."""
        return await self._reported(self.run(function, *arguments))

    async def _reported(self, called: Awaitable[T]) -> T | None:
        try:
            return await called
        except FAILURES as error:
            self._failed(error)
            return None

    def later(self, function: Callable[..., object], *arguments: Any) -> None:
        """Call a function on the store after all pending calls. If the store is on a server, do not wait."""
        if self._thread:
            deferred_from_coro(self._reported(arrived(self._submit(function, *arguments))))
            return
        try:
            function(*arguments)
        except FAILURES as error:
            self._failed(error)

    async def claim(self, document: Document) -> Claim:
        """Claim a document as `Deduplicator.try_claim` does.

        Documents that arrive during a round trip to a server are claimed together in the next one.
        """
        if self._thread is None:
            return self._dedup.try_claim(document)
        future: Future[Claim] = Future()
        self._claims.append((document, future))
        self._submit(self._claim_all)
        try:
            return await arrived(future)
        except BaseException:
            future.add_done_callback(self._give_up)  # the thread may still claim the document
            raise

    def _give_up(self, future: Future[Claim]) -> None:
        if not future.cancelled() and future.exception() is None:
            self._submit(future.result().withdraw)

    def _claim_all(self) -> None:
        some = [self._claims.popleft() for _ in range(min(AT_ONCE, len(self._claims)))]
        some = [(document, future) for document, future in some if future.set_running_or_notify_cancel()]
        if len(some) > 1:
            with suppress(Exception):  # `try_claim` raises the error again
                self._dedup.foresee([document for document, _ in some])
        for document, future in some:
            try:
                claim = self._dedup.try_claim(document)
            except Exception as error:  # including any error of a detector
                future.set_exception(error)
            else:
                future.set_result(claim)
        if len(some) > 1:
            self._dedup.foresee(())  # discard the prefetched lookups of failed claims

    async def settled(self, claim: Claim) -> None:
        """Wait until a claim of this crawl is committed or withdrawn."""
        future: Future[None] = Future()
        future.set_running_or_notify_cancel()  # the claim calls back even if the waiting task is cancelled
        await self.run(claim.when_settled, partial(future.set_result, None))
        if not future.done():
            await arrived(future)

    def close(self) -> None:
        """End the thread after the pending calls."""
        if self._thread:
            self._thread.shutdown(wait=False)


class Workers:
    """Computes the fingerprints of heavy detectors, and extracts main texts if the extractor is heavy.

    Both are done in `count` processes. If `count` is 0, or if nothing is heavy, no process is started.
    """

    def __init__(self, detectors: Iterable[Detector], count: int, extractor: str | Extract = BUILTIN) -> None:
        heavy = list(filter(is_heavy, detectors)) if count else []
        self.signs = bool(heavy)  # whether processes compute fingerprints
        self.reads = bool(count) and is_heavy_extractor(extractor)  # whether processes extract main texts
        reason = "is heavy, so it has to be"
        check_can_be_sent("NEARDUP_DETECTORS", reason, {each.name: each for each in heavy})
        if self.reads:
            check_can_be_sent("NEARDUP_EXTRACTOR", reason, {str(extractor): extractor})
        self._processes = Processes(count, (heavy, extractor if self.reads else BUILTIN))
        self._turns = DeferredSemaphore(max(1, count * QUEUED))
        self._broken, self._broken_until = "", 0.0

    async def prepare(self, document: Document) -> None:
        """Compute the heavy fingerprints of a document, and put them into `document.ready`. Raise ProcessError."""
        if self.signs:
            document.ready.update(await self._made(_fingerprints, document, str(document.url)))

    async def read(self, html: str) -> Page:
        """Return the page that is extracted from HTML. Raise ProcessError."""
        return await self._made(_page, html, f"a page of {len(html)} characters")

    async def _made(self, function: Callable[[Any, Any], T], of: Document | str, name: str) -> T:
        await maybe_deferred_to_future(self._turns.acquire())
        try:
            for _ in range(2):
                if time.monotonic() < self._broken_until:
                    raise ProcessError(self._broken)
                try:
                    return await arrived(self._processes.submit(function, of))
                except ProcessError as error:
                    if error.at_start:
                        self._broken_until = time.monotonic() + RETRY
                        self._broken = f"a new process died at once: {error}"
                        raise ProcessError(self._broken) from error
                    if not error.died:
                        raise
                    logger.warning("A worker process died and is replaced: %s", error)
        finally:
            self._turns.release()
        raise ProcessError(f"the worker process died twice on {name}")

    def close(self) -> None:
        """Stop the processes at once. RuntimeError is raised for what is asked for later."""
        self._processes.stop()


def _fingerprints(given: Any, document: Document) -> dict[str, tuple[int, ...]]:
    detectors, _ = given
    return {detector.name: detector.fingerprints(document) for detector in detectors}


def _page(given: Any, html: str) -> Page:
    _, extractor = given
    return build_reader(extractor)(html)
