"""Compute slow fingerprints and extract main texts in worker processes, so that the reactor never waits.

Fast fingerprints are computed at the claim, since passing documents between processes would take longer.

A document can kill its worker process. The document is then tried once more, in a new process of its own, and never in
the process of the crawl. If the new process dies too, the item passes without a verdict.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable
from typing import Any, TypeVar

from scrapy.utils.defer import maybe_deferred_to_future
from twisted.internet.defer import DeferredSemaphore

from ..detectors import Detector
from ..detectors.processes import ProcessError, Processes, check_can_be_sent
from ..detectors.registry import is_heavy
from ..document import Document
from ..text.extractors import BUILTIN, Extract, build_reader
from ..text.extractors import is_heavy as is_heavy_extractor
from ..text.html import Page
from .access import arrived

Fingerprints = dict[str, tuple[int, ...]]
T = TypeVar("T")

logger = logging.getLogger(__name__)

RETRY = 30.0  # seconds until processes are started again after one failed to start
QUEUED = 2  # documents queued for each process; more of them would delay the end of a stopped crawl


class WorkerError(Exception):
    """A worker process could not do its work. The message gives the reason."""


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
        self._processes: Processes | None = None
        self._turns = DeferredSemaphore(max(1, self._count * QUEUED))
        self._broken, self._broken_until = "", 0.0
        self.restarts = 0
        """The number of times that a process died and was replaced."""
        reason = "is heavy, so it has to be"
        if count:
            check_can_be_sent("NEARDUP_DETECTORS", reason, {each.name: each for each in self._detectors})
        if self.reads:
            check_can_be_sent("NEARDUP_EXTRACTOR", reason, {str(extractor): extractor})

    async def prepare(self, document: Document) -> None:
        """Compute the heavy fingerprints of a document, and put them into `document.ready`. Raise WorkerError."""
        if self._count and self._detectors:
            document.ready.update(await self._made(_fingerprints, document))

    async def read(self, html: str) -> Page:
        """Return the page that is extracted from HTML. Raise WorkerError."""
        return await self._made(_page, html)

    async def _made(self, function: Callable[[Any, Any], T], of: Document | str) -> T:
        await maybe_deferred_to_future(self._turns.acquire())
        try:
            return await self._tried(function, of)
        finally:
            self._turns.release()

    async def _tried(self, function: Callable[[Any, Any], T], of: Document | str, attempts: int = 2) -> T:
        if not self._count:
            raise WorkerError("the crawl is at its end")
        if time.monotonic() < self._broken_until:
            raise WorkerError(self._broken)
        self._processes = self._processes or Processes(self._count, self._given)
        try:
            return await arrived(self._processes.submit(function, of))
        except ProcessError as error:
            if not error.died:
                raise WorkerError(str(error)) from error
            self.restarts += 1
            self._check_start(error)
            logger.warning("A worker process died and is replaced: %s", error)
        if attempts > 1:
            return await self._tried(function, of, attempts - 1)
        name = of.url if isinstance(of, Document) else f"a page of {len(of)} characters"
        raise WorkerError(f"the worker process died twice on {name}")

    def _check_start(self, error: ProcessError) -> None:
        """If a process could not start, start no others for `RETRY` seconds."""
        if error.at_start:
            self._broken, self._broken_until = f"a new process died at once: {error}", time.monotonic() + RETRY
            raise WorkerError(self._broken) from error

    def close(self) -> None:
        """Stop the processes at once."""
        processes, self._processes, self._count = self._processes, None, 0
        if processes:
            processes.stop()


def _fingerprints(given: Any, document: Document) -> Fingerprints:
    detectors, _ = given
    return {detector.name: detector.fingerprints(document) for detector in detectors}


def _page(given: Any, html: str) -> Page:
    _, extractor = given
    return build_reader(extractor)(html)
