"""Run detectors and extractors marked as heavy in worker processes, and wait for the results while the crawl goes on.

A document can kill its worker process. The document is then tried once more in another process, and never in the
process of the crawl. If the other process dies too, the item passes without a verdict.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable
from concurrent.futures import Future
from typing import Any, TypeVar

from scrapy.utils.asyncio import call_later, is_asyncio_available
from scrapy.utils.defer import maybe_deferred_to_future
from twisted.internet.defer import Deferred

from ..detectors import Detector, is_heavy
from ..document import Document
from ..processes import ProcessError, Processes, check_can_be_sent
from ..text.html import BUILTIN, Extract, PageText, read_page
from ..text.html import is_heavy as is_heavy_extractor

T = TypeVar("T")

logger = logging.getLogger(__name__)

STARTS = 10  # after so many failed starts of processes in a row, of a second each, no more are tried


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


class Workers:
    """Computes heavy fingerprints in `count` processes (NEARDUP_WORKERS), and main texts if the extractor is heavy."""

    def __init__(self, detectors: Iterable[Detector], count: int, extractor: str | Extract = BUILTIN) -> None:
        heavy = list(filter(is_heavy, detectors)) if count else []
        self.signs = bool(heavy)  # whether processes compute fingerprints
        self.reads = bool(count) and is_heavy_extractor(extractor)  # whether processes extract main texts
        check_can_be_sent("NEARDUP_DETECTORS", {each.name: each for each in heavy})
        if self.reads:
            check_can_be_sent("NEARDUP_EXTRACTOR", {str(extractor): extractor})
        self._processes = Processes(count, (heavy, extractor if self.reads else BUILTIN))
        self._failed: list[ProcessError] = []  # failed starts in a row

    async def prepare(self, document: Document) -> None:
        """Put the fingerprints of the heavy detectors into `document.ready`. Raise ProcessError if that fails."""
        document.ready.update(await self._in_process(_fingerprints, document, str(document.url)))

    async def read(self, html: str) -> PageText:
        """Return the title and main text of HTML, extracted in a worker. Raise ProcessError if that fails."""
        return await self._in_process(_page, html, f"a page of {len(html)} characters")

    async def _in_process(self, function: Callable[[Any, Any], T], of: Document | str, name: str) -> T:
        for _ in range(2):
            if len(self._failed) >= STARTS:
                raise ProcessError(f"no worker process starts: {self._failed[-1]}")
            try:
                made = await arrived(self._processes.submit(function, of))
                self._failed.clear()
                return made
            except ProcessError as error:
                if error.at_start:
                    self._failed.append(error)
                if error.at_start or not error.died:
                    raise
                logger.warning("A worker process died and is replaced: %s", error)
        raise ProcessError(f"the worker process died twice on {name}")

    def close(self) -> None:
        """Stop the processes at once. Later calls of `prepare` and `read` raise RuntimeError."""
        self._processes.stop()


def _fingerprints(given: Any, document: Document) -> dict[str, tuple[int, ...]]:
    detectors, _ = given
    return {detector.name: detector.fingerprints(document) for detector in detectors}


def _page(given: Any, html: str) -> PageText:
    _, extractor = given
    return read_page(html, extractor)
