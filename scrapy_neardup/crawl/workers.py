"""Compute slow fingerprints and extract main texts in worker processes, so that the reactor never waits.

Fast fingerprints are computed at the claim, since passing documents between processes would take longer.

A document can kill its worker process. The document is then tried once more, in a new process of its own, and never in
the process of the crawl. If the new process dies too, the item passes without a verdict.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable
from concurrent.futures import BrokenExecutor
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from scrapy.utils.defer import maybe_deferred_to_future
from twisted.internet.defer import DeferredSemaphore

from ..detectors import Detector
from ..detectors.processes import check, check_can_be_sent, given, start, stop
from ..detectors.registry import is_heavy
from ..document import Document
from ..text.extractors import BUILTIN, Extract, build_reader
from ..text.extractors import is_heavy as is_heavy_extractor
from ..text.html import Page
from .reactor import arrived

if TYPE_CHECKING:
    from loky import ProcessPoolExecutor

Fingerprints = dict[str, tuple[int, ...]]
T = TypeVar("T")

logger = logging.getLogger(__name__)

RETRY = 30.0  # seconds until processes are started again after one failed to start
QUEUED = 2  # documents queued for each process; more of them would delay the end of a stopped crawl


class WorkerError(Exception):
    """A worker process could not do its work. The message gives the reason."""


class _Failure(NamedTuple):
    """The message of an error in a worker process. The exception itself may be impossible to pickle."""

    message: str


class Workers:
    """Computes the fingerprints of heavy detectors, and extracts main texts if the extractor is heavy.

    Both are done in `count` processes. If `count` is 0, or if nothing is heavy, no process is started.
    """

    def __init__(self, detectors: Iterable[Detector], count: int, extractor: str | Extract = BUILTIN) -> None:
        self._detectors = list(filter(is_heavy, detectors))
        self.reads = bool(count) and is_heavy_extractor(extractor)
        """True if worker processes extract main texts."""
        self._given = (self._detectors, extractor if self.reads else BUILTIN)
        self._count = count if self._detectors or self.reads else 0
        self._pool: ProcessPoolExecutor | None = None
        self._turns = DeferredSemaphore(max(1, self._count * QUEUED))
        self._broken, self._broken_until = "", 0.0
        self.restarts = 0
        """The number of times that a process died and was replaced."""
        reason = "is heavy, so it has to be"
        if count:
            check_can_be_sent(self._detectors, reason)
        if self.reads:
            check("NEARDUP_EXTRACTOR", extractor, repr(extractor), reason)

    async def prepare(self, document: Document) -> None:
        """Compute the heavy fingerprints of a document, and put them into `document.ready`. Raise WorkerError."""
        if self._count and self._detectors:
            document.ready.update(await self._made(_fingerprints, document))

    async def read(self, html: str) -> Page:
        """Return the page that is extracted from HTML. Raise WorkerError."""
        return await self._made(_page, html)

    async def _made(self, function: Callable[[Any], T | _Failure], of: Document | str) -> T:
        await maybe_deferred_to_future(self._turns.acquire())
        try:
            made = await self._tried(function, of)
        finally:
            self._turns.release()
        if isinstance(made, _Failure):
            raise WorkerError(made.message)
        return made

    async def _tried(self, function: Callable[[Any], T], of: Document | str) -> T:
        if not self._count:
            raise WorkerError("the crawl is at its end")
        if time.monotonic() < self._broken_until:
            raise WorkerError(self._broken)
        pool = self._pool = self._pool or start(self._count, self._given)
        try:
            return await arrived(pool.submit(function, of))
        except BrokenExecutor as error:
            if pool is self._pool:
                self.restarts += 1
                self._pool = None
                logger.warning("A worker process died and is replaced: %s", error)
            return await self._tried_alone(function, of)

    async def _tried_alone(self, function: Callable[[Any], T], of: Document | str) -> T:
        pool = start(1, self._given)
        try:
            await self._begun(pool)
            return await arrived(pool.submit(function, of))
        except BrokenExecutor as error:
            name = of.url if isinstance(of, Document) else f"a page of {len(of)} characters"
            raise WorkerError(f"the worker process died twice on {name}") from error
        finally:
            stop(pool)

    async def _begun(self, pool: ProcessPoolExecutor) -> None:
        """Wait until a new process has started. If it can't start, start no others for `RETRY` seconds."""
        try:
            await arrived(pool.submit(int))
        except BrokenExecutor as error:
            self._broken = f"a new process died at once: {error}"
            self._broken_until = time.monotonic() + RETRY
            raise WorkerError(self._broken) from error

    def close(self) -> None:
        """Stop the processes at once."""
        if self._pool:
            stop(self._pool)
        self._pool, self._count = None, 0


def _fingerprints(document: Document) -> Fingerprints | _Failure:
    detectors, _ = given()
    try:
        return {detector.name: detector.fingerprints(document) for detector in detectors}
    except Exception as error:
        return _Failure(repr(error))


def _page(html: str) -> Page | _Failure:
    _, extractor = given()
    try:
        return build_reader(extractor)(html)
    except Exception as error:
        return _Failure(repr(error))
