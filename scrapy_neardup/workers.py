"""Processes that make the fingerprints which take long, so that the reactor never waits for one.

A document's other fingerprints are made where it is claimed: passing them around would cost more.

A document can be the end of the process that works on it. So none is ever worked on in the crawl's own process after
that: it gets another try in a process that nobody shares, and if that dies too, the item passes without being judged.
"""

from __future__ import annotations

import logging
import os
import signal
import threading
import time
from collections import deque
from collections.abc import Iterable
from concurrent.futures import BrokenExecutor, Future
from contextvars import ContextVar
from dataclasses import replace

import cloudpickle
from loky import ProcessPoolExecutor
from loky.backend import get_context
from scrapy.utils.defer import maybe_deferred_to_future
from twisted.internet.defer import Deferred

from .config import ConfigError
from .detectors import Detector
from .detectors.build import is_heavy
from .document import Document
from .waiting import arrived

Fingerprints = dict[str, tuple[int, ...]]

logger = logging.getLogger(__name__)

QUEUED = 2  # documents a process: more would only delay the end of a crawl that is stopped
WATCH = 2.0  # seconds between looks whether the crawl still lives

_detectors: ContextVar[list[Detector]] = ContextVar("neardup_detectors")  # of a worker


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
        for detector in self._detectors if count else ():
            _check(detector)

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
        pool = self._pool = self._pool or self._start(self._count)
        try:
            return await _result(pool.submit(_fingerprints, document))
        except BrokenExecutor as error:
            if pool is self._pool:
                self.restarts += 1
                self._pool = None
                logger.warning("A process that makes fingerprints has died; another one takes its place: %s", error)
            return await self._made_alone(document)

    async def _made_alone(self, document: Document) -> Fingerprints:
        pool = self._start(1)
        try:
            return await _result(pool.submit(_fingerprints, document))
        except BrokenExecutor as error:
            raise DetectorError(f"the process that made the fingerprints of {document.url} died twice") from error
        finally:
            pool.shutdown(wait=False, kill_workers=True)

    def _start(self, count: int) -> ProcessPoolExecutor:
        # Not multiprocessing's: it would run the script again that started the crawl.
        context, given = get_context("loky"), (self._detectors, os.getpid())
        return ProcessPoolExecutor(count, context=context, timeout=None, initializer=_begin, initargs=given)

    def close(self) -> None:
        """Stop the processes, whatever they are at."""
        if self._pool:
            self._pool.shutdown(wait=False, kill_workers=True)
        self._pool, self._count = None, 0


def _check(detector: Detector) -> None:
    try:
        cloudpickle.dumps(detector)
    except Exception as error:  # whatever its attributes do on being copied
        message = f"{detector.name!r} is heavy, so it has to be sent to another process, and can't: {error}"
        raise ConfigError(f"NEARDUP_DETECTORS: {message}") from error


def _begin(detectors: list[Detector], crawl: int) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the crawl, which then stops its workers
    threading.Thread(target=_end_with, args=(crawl,), daemon=True).start()
    _detectors.set(detectors)


def _end_with(crawl: int) -> None:
    """End this process when the crawl's has gone: one that was killed could not say so."""
    while os.getppid() == crawl:
        time.sleep(WATCH)
    os._exit(1)


def _fingerprints(document: Document) -> Fingerprints | str:
    """Return the fingerprints, or what went wrong: not every exception gets from one process to another."""
    try:
        return {detector.name: detector.fingerprints(document) for detector in _detectors.get()}
    except Exception as error:
        return repr(error)


async def _result(future: Future[Fingerprints | str]) -> Fingerprints:
    made = await arrived(future)
    if isinstance(made, str):
        raise DetectorError(made)
    return made
