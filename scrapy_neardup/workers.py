"""Processes that make the fingerprints which take long, so that the reactor never waits for one.

A document's other fingerprints are made where it is claimed: passing them around would cost more.

A document can be the end of the process that works on it. So none is ever worked on in the crawl's own process after
that: it gets another try in a process that nobody shares, and if that dies too, the item passes without being judged.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Iterable
from concurrent.futures import BrokenExecutor, Future
from dataclasses import replace

from loky import ProcessPoolExecutor
from scrapy.utils.defer import maybe_deferred_to_future
from twisted.internet.defer import Deferred

from .detectors import Detector
from .detectors.build import is_heavy
from .document import Document
from .processes import check_can_be_sent, given, start, stop
from .waiting import arrived

Fingerprints = dict[str, tuple[int, ...]]

logger = logging.getLogger(__name__)

QUEUED = 2  # documents a process: more would only delay the end of a crawl that is stopped


class DetectorError(Exception):
    """A detector failed in another process; the message says how."""


class Workers:
    """Makes the fingerprints of heavy detectors in `count` processes of their own; with 0 in this one."""

    def __init__(self, detectors: Iterable[Detector], count: int) -> None:
        self._detectors = list(filter(is_heavy, detectors))
        self._count = count if self._detectors else 0
        self._pool: ProcessPoolExecutor | None = None
        self._free = self._count * QUEUED
        self._waiting: deque[Deferred[None]] = deque()
        self.restarts = 0
        """How often a process has died."""
        if count:
            check_can_be_sent(self._detectors, "is heavy, so it has to be")

    async def prepare(self, document: Document) -> None:
        """Make a document's heavy fingerprints, for the signature that it will have. Raise DetectorError."""
        if not self._count:
            return
        await self._turn()
        try:
            document.ready.update(await self._made(replace(document, ready={})))  # without what was made of it so far
        finally:
            self._free += 1
            if self._waiting:
                self._waiting.popleft().callback(None)

    async def _turn(self) -> None:
        while not self._free:
            turn: Deferred[None] = Deferred()
            self._waiting.append(turn)
            await maybe_deferred_to_future(turn)
        self._free -= 1

    async def _made(self, document: Document) -> Fingerprints:
        pool = self._pool = self._pool or start(self._count, self._detectors)
        try:
            return await _result(pool.submit(_fingerprints, document))
        except BrokenExecutor as error:
            if pool is self._pool:
                self.restarts += 1
                self._pool = None
                logger.warning("A process that makes fingerprints has died; another one takes its place: %s", error)
            return await self._made_alone(document)

    async def _made_alone(self, document: Document) -> Fingerprints:
        pool = start(1, self._detectors)
        try:
            return await _result(pool.submit(_fingerprints, document))
        except BrokenExecutor as error:
            raise DetectorError(f"the process that made the fingerprints of {document.url} died twice") from error
        finally:
            stop(pool)

    def close(self) -> None:
        """Stop the processes, whatever they are at."""
        if self._pool:
            stop(self._pool)
        self._pool, self._count = None, 0


def _fingerprints(document: Document) -> Fingerprints | str:
    """Return the fingerprints, or what went wrong: not every exception gets from one process to another."""
    try:
        return {detector.name: detector.fingerprints(document) for detector in given()}
    except Exception as error:
        return repr(error)


async def _result(future: Future[Fingerprints | str]) -> Fingerprints:
    made = await arrived(future)
    if isinstance(made, str):
        raise DetectorError(made)
    return made
