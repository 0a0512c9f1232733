"""Processes that make the fingerprints which take long, so that the reactor never waits for one.

A document's other fingerprints are made where it is claimed: passing them around would cost more.
"""

from __future__ import annotations

import asyncio
import logging
import signal
from collections.abc import Iterable
from concurrent.futures import BrokenExecutor, Future
from contextvars import ContextVar
from dataclasses import replace
from typing import TypeVar

from loky import ProcessPoolExecutor
from loky.backend import get_context
from scrapy.utils.asyncio import is_asyncio_available
from twisted.internet.defer import Deferred

from .config import Config
from .detectors import Detector
from .detectors.build import build_detectors, is_heavy
from .document import Document

T = TypeVar("T")
Fingerprints = dict[str, tuple[int, ...]]

logger = logging.getLogger(__name__)

_detectors: ContextVar[list[Detector]] = ContextVar("neardup_detectors")  # of a worker


class Workers:
    """Makes the fingerprints of heavy detectors in processes of their own; without `count` in this one."""

    def __init__(self, config: Config, count: int) -> None:
        self._executor: ProcessPoolExecutor | None = None
        if count:
            # Not multiprocessing's: it would run the script again that started the crawl.
            self._executor = ProcessPoolExecutor(
                count, context=get_context("loky"), timeout=None, initializer=_start, initargs=(config,)
            )

    @classmethod
    def from_config(cls, config: Config, detectors: Iterable[Detector]) -> Workers:
        """Start as many as NEARDUP_WORKERS says, none where no detector is heavy."""
        return cls(config, config.workers if any(map(is_heavy, detectors)) else 0)

    async def prepare(self, document: Document) -> None:
        """Make a document's heavy fingerprints, for the signature that it will have."""
        if self._executor is None:
            return
        try:
            bare = replace(document, ready={})  # without what was made of it so far
            document.ready.update(await _result(self._executor.submit(_fingerprints, bare)))
        except BrokenExecutor as error:
            if self._executor:
                logger.warning("A worker has died, so heavy detectors go on in the crawl's own process: %s", error)
            self.close()

    def close(self) -> None:
        """Stop the processes, whatever they are at."""
        if self._executor:
            self._executor.shutdown(wait=False, kill_workers=True)
        self._executor = None


def _start(config: Config) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the crawl, which then stops its workers
    _detectors.set([detector for detector in build_detectors(config) if is_heavy(detector)])


def _fingerprints(document: Document) -> Fingerprints:
    return {detector.name: detector.fingerprints(document) for detector in _detectors.get()}


async def _result(future: Future[T]) -> T:
    """Wait for what another process does, under any reactor, or without one."""
    if is_asyncio_available():
        return await asyncio.wrap_future(future)
    from twisted.internet import reactor

    done: Deferred[None] = Deferred()
    future.add_done_callback(lambda _: reactor.callFromThread(done.callback, None))
    await done
    return future.result()
