"""The shared state of a crawl's components, with the store, the workers and the stats."""

from __future__ import annotations

import gc
import logging
from collections import deque
from collections.abc import Awaitable, Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from scrapy import signals
from scrapy.crawler import Crawler
from scrapy.exceptions import NotConfigured
from scrapy.utils.asyncio import AsyncioLoopingCall, create_looping_call
from scrapy.utils.defer import deferred_from_coro
from scrapy.utils.job import job_dir
from twisted.internet.task import LoopingCall

from ..deduplicator import Claim, Deduplicator
from ..document import Document
from ..report import FULL, NOT_FULL, changes, counted, in_words, kinds_of
from ..settings import Config, ConfigError
from ..stats import CHANGES, PREFIX, Stat, plural, summary
from ..store import StoreError
from . import Adviser, default_store
from .observers import DroppedFeed
from .workers import Workers, arrived, pause

T = TypeVar("T")
P = TypeVar("P", bound="Component")

FAILURES = (StoreError, OSError)
AUDIT = "audit"  # the action, and the mark of its runs
logger = logging.getLogger(__name__)

FLUSH_INTERVAL = 0.5  # seconds: a committed row is durable within one second
SUMMARY_INTERVAL = 60.0
CALM = 20  # a store on disk counts as working again after so many syncs without an error, since a write fails late
_PASSING = "Items pass. Writes are kept in memory and tried again"
_SHARED = object()  # the signal by which components find the shared state: its handler returns the state
AT_ONCE = 20  # the maximum number of documents that are claimed in one call to a server
MOST_COUNTED = 100_000  # in a store with more documents, a crawl counts no changes: it takes over 3 seconds
MOST_LATE = 1_000  # the maximum number of late documents; the first ones are dropped
MOST_UNNOTED = 10_000  # the maximum number of URLs to keep fetching that wait for the store; the last ones are dropped
PAUSE = 0.05  # seconds between two reads of other processes' rows, if there are many, or two tries to claim a document


class NearDup:
    """The shared state of a crawl's components. It owns the store, which closes after the engine has stopped."""

    def __init__(self, crawler: Crawler, config: Config) -> None:
        assert crawler.stats
        assert crawler.spider
        self.config = config
        self.stats = crawler.stats
        self.crawler = crawler
        self.dropped: DroppedFeed | None = None
        if config.dropped is not None:  # before the store, so that a bad URI opens none
            self.dropped = DroppedFeed(crawler, config.dropped, self.count)
        jobs = job_dir(crawler.settings)
        self._run_file = Path(jobs, "neardup.run") if jobs else None  # with the id of a run that can be paused
        run = self._run_file.read_text() if self._run_file and self._run_file.exists() else ""
        self.dedup = Deduplicator.from_config(config, run=run, writer=crawler.spider.name)
        self.dedup.store.backend.meet()
        # A store on a server is called in a thread, one call at a time, which keeps the calls in order.
        self._thread = ThreadPoolExecutor(1, "neardup-store") if self.dedup.store.is_remote else None
        self._waiting: deque[tuple[Document, Future[Claim]]] = deque()  # to be claimed
        self.lost: deque[Claim] = deque()  # claims of items that ended without an outcome
        # Documents that passed while the store did not answer, with what is to be called with their claims.
        self.late: deque[tuple[Document, Callable[[Claim], object]]] = deque(maxlen=MOST_LATE)
        self._unnoted: list[str] = []  # URLs to keep fetching, once the store answers
        self.advisers: list[Adviser] = []  # in the order in which they are asked
        self._components: list[Component] = []
        if self._run_file:
            self._run_file.write_text(self.dedup.store.run)
        self.workers = Workers(self.dedup.detectors, config.workers, config.extractor)
        self._is_away = self._is_syncing = self._is_closing = self._is_full = self._freezes = False
        self._calm = 0
        self._loops: list[AsyncioLoopingCall | LoopingCall] = []
        connect = crawler.signals.connect
        self._itself = lambda: self
        connect(self._itself, signal=_SHARED, weak=False)  # else Python may free it before the last component is made
        for name in ("spider_opened", "spider_closed", "engine_stopped"):
            connect(getattr(self, name), signal=getattr(signals, name))

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> NearDup:
        """Return the shared state of a crawl. Raise the errors of `crawl_config` and of the store."""
        for _, shared in crawler.signals.send_catch_log(_SHARED):
            if isinstance(shared, NearDup):  # receivers of all signals answer too
                return shared
        try:
            return cls(crawler, crawl_config(crawler))
        except (ConfigError, *FAILURES) as error:
            _log_briefly(error)
            raise

    def component(self, kind: type[P]) -> P:
        """Return the only instance of a class or its subclass in this crawl. Make the instance in the first call."""
        for each in self._components:
            if isinstance(each, kind):
                return each
        self._components.append(made := kind(self))
        return made

    # The life of the crawl

    def spider_opened(self) -> None:
        audits = [run for run in self.dedup.store.runs() if run.stats.get(AUDIT) and not run.forgotten]
        if audits and self.config.action != AUDIT:
            stored = "" if self.config.revisit == "keep" else ", and their items count as stored"
            logger.log(
                logging.WARNING if stored else logging.INFO,
                "The store holds what %s recorded, so known copies are skipped%s. Set another NEARDUP_NAMESPACE to"
                " start with an empty store", plural(len(audits), "earlier audit"), stored,
            )  # fmt: skip
        for function, interval in ((self.sync, FLUSH_INTERVAL), (self.log_summary, SUMMARY_INTERVAL)):
            self._loops.append(create_looping_call(function))
            self._loops[-1].start(interval, now=False)
        # Otherwise, each garbage collection visits all objects of all imported modules: a tenth of the time of a crawl.
        # If the calling program or another crawl has frozen its objects, leave that as it is.
        self._freezes = not gc.get_freeze_count()
        if self._freezes:
            gc.freeze()

    async def spider_closed(self, reason: str) -> None:
        self._is_closing = True
        for loop in self._loops:
            if loop.running:  # else an error has ended it
                loop.stop()
        while self._is_syncing:
            await pause(PAUSE)
        self._withdraw_lost()
        if self.late or self._unnoted:
            await self.ask(self.dedup.store.backend.reach)
        while await self.catch_up():
            pass
        await self._tell()
        is_finished = reason == "finished"
        is_answered = self.stats.get_value("response_received_count")  # else the site was down, or nothing was sent
        self._is_full = bool(is_finished and is_answered and self.config.revisit != "skip")
        with self.handled(self, "the changes"):
            await self._count_held(with_changes=is_finished or not self._run_file)
        if left := len(self.late):
            logger.warning("The store lacks %s, since it did not answer until the end", plural(left, "document"))
        self.log_summary()
        if self._run_file and is_finished:
            self._run_file.unlink(missing_ok=True)

    async def engine_stopped(self) -> None:
        # Not at spider_closed: feeds may be open until all its handlers are done.
        self.dedup.store.stats = self._run_stats()
        try:
            await self.call(self.dedup.close)
        except FAILURES as error:
            self.count("store/errors")
            logger.error("The run could not be closed, so the next run counts it as dead: %s", error)
        finally:
            self.crawler.signals.disconnect(self._itself, signal=_SHARED, weak=False)
            if self._thread:
                self._thread.shutdown(wait=False)
            self.workers.close()
            if self._freezes:
                gc.unfreeze()

    def _run_stats(self) -> dict[str, int]:
        """Return this package's stats without their prefix. An audit also has `audit` = 1, a full crawl `full` = 1."""
        stats = {name: value for name, value in self.stats.get_stats().items() if isinstance(value, int)}
        ours = {name.removeprefix(PREFIX): value for name, value in stats.items() if name.startswith(PREFIX)}
        marks = {AUDIT: self.config.action == AUDIT, FULL: self._is_full}
        return ours | {mark: 1 for mark in marks if marks[mark]}

    def sync(self) -> None:
        """Flush the store and read the rows of other processes. Do nothing while an earlier sync is running."""
        if not self._is_syncing:
            deferred_from_coro(self._sync())

    async def _sync(self) -> None:
        self._is_syncing = True
        self._calm += 1
        store = self.dedup.store
        try:
            more = await self.ask(store.refresh)  # before the flush, whose thread would slow this down
            # On a server, wait for the write, so that an error is reported at once.
            await self.ask(partial(store.flush, wait=store.is_remote))
            while more and not self._is_closing:
                await pause(PAUSE)
                more = await self.ask(store.refresh)
            self._withdraw_lost()
            if not self._is_closing:
                await self._tell()
                await self.catch_up()
        finally:
            self._is_syncing = False
        if self._is_away and self._calm >= (1 if store.is_remote else CALM):
            self._is_away = False
            passed = self.stats.get_value(f"{PREFIX}store/unjudged", 0)
            logger.info("The store answers again; %d items passed without a verdict so far", passed)

    async def _tell(self) -> None:
        """Count and log the rules on mirror hosts that came into force, or that ended."""
        for relation in await self.ask(self.dedup.take_changes) or ():
            if relation.in_force:
                self.count("mirror_hosts/learned")
                logger.info("%s and %s mirror each other", *relation.sites)
            else:
                self.count("mirror_hosts/dropped")
                said = "%s and %s no longer mirror each other: pages that are new are fetched from both again"
                logger.warning(said, *relation.sites)

    async def _count_held(self, *, with_changes: bool) -> None:
        """Set the stats of the held documents and of the changes that this run found, and log the changes."""
        count = await self.ask(len, self.dedup)  # at the end only, since a large file takes a second to count
        if count is None:
            return
        self.stats.set_value(f"{PREFIX}store/documents", count)
        is_counted = with_changes and count <= MOST_COUNTED and not self._is_away
        if counts := await self.ask(self._changes) if is_counted else None:
            for kind, number in counts.items():
                self.stats.set_value(f"{PREFIX}{CHANGES}{kind}", number)
            logger.info("Changes: %s%s", in_words(counts), "" if "gone" in counts else f". {NOT_FULL}")

    def _changes(self) -> dict[str, int]:
        store = self.dedup.store
        store.flush()
        run = next(run for run in store.runs() if run.id == store.run).with_stats(self._run_stats())
        return counted(changes(store, run), kinds_of(run))

    # Asking the store

    async def call(self, function: Callable[..., T], *arguments: Any) -> T:
        """Call a function on the store, and return its result. Raise the errors of the function."""
        if self._thread is None:
            return function(*arguments)
        return await arrived(self._submit(function, *arguments))

    async def ask(self, function: Callable[..., T], *arguments: Any) -> T | None:
        """Call a function on the store, and return its result. Return None if the store fails."""
        return await self._reported(self.call(function, *arguments))

    def later(self, function: Callable[..., object], *arguments: Any) -> None:
        """Call a function on the store, and count errors of the store. On a server, do not wait for the call."""
        if self._thread:
            deferred_from_coro(self._reported(arrived(self._submit(function, *arguments))))
            return
        try:
            function(*arguments)
        except FAILURES as error:
            self.note_failure(error)

    async def _reported(self, called: Awaitable[T]) -> T | None:
        try:
            return await called
        except FAILURES as error:
            self.note_failure(error)
            return None

    def _submit(self, function: Callable[..., T], *arguments: Any) -> Future[T]:
        assert self._thread
        return self._thread.submit(function, *arguments)

    async def claim(self, document: Document) -> Claim:
        """Claim a document as `Deduplicator.try_claim` does. Raise the errors of the store and of detectors.

        Documents that arrive while a server answers are claimed together, in one round trip, once it has answered.
        """
        if self._thread is None:
            return self.dedup.try_claim(document)
        claimed: Future[Claim] = Future()
        self._waiting.append((document, claimed))
        self._submit(self._claim_waiting)
        try:
            return await arrived(claimed)
        except BaseException:  # nobody waits for the claim any more
            claimed.add_done_callback(self._withdraw)
            raise

    def _claim_waiting(self) -> None:
        some = [self._waiting.popleft() for _ in range(min(AT_ONCE, len(self._waiting)))]
        some = [(document, claimed) for document, claimed in some if claimed.set_running_or_notify_cancel()]
        if len(some) > 1:
            with suppress(Exception):  # `try_claim` raises the error again
                self.dedup.foresee([document for document, _ in some])
        for document, claimed in some:
            try:
                claimed.set_result(self.dedup.try_claim(document))
            except Exception as error:  # including any error of a detector
                claimed.set_exception(error)
        self.dedup.foresee(())  # discard the prefetched lookups of failed claims

    def _withdraw(self, claimed: Future[Claim]) -> None:
        if not claimed.cancelled() and not claimed.exception():
            self._submit(claimed.result().withdraw)

    def withdraw(self, claim: Claim) -> None:
        """Withdraw the claim of an item that did not get through the pipelines."""
        self.count("withdrawn")
        self.later(claim.withdraw)

    def _withdraw_lost(self) -> None:
        while self.lost:
            self.withdraw(self.lost.popleft())

    async def settled(self, claim: Claim) -> None:
        """Wait until a claim of this crawl is committed or withdrawn."""
        future: Future[None] = Future()
        future.set_running_or_notify_cancel()  # the claim calls back even if the waiting task is cancelled
        await self.call(claim.when_settled, partial(future.set_result, None))
        await arrived(future)

    def keep_fetching(self, *urls: str) -> None:
        """Keep fetching URLs that are known as copies, since they also return other content."""
        self._unnoted += urls
        del self._unnoted[MOST_UNNOTED:]
        self.later(self._note_unheld)

    def _note_unheld(self) -> None:
        urls = tuple(self._unnoted)
        self.dedup.keep_fetching(Document(aliases=urls))
        del self._unnoted[: len(urls)]  # others may have come meanwhile

    # A failing store loses no item

    async def catch_up(self) -> bool:
        """Claim the documents in `late`, until the store fails. Return whether fewer of them are left.

        A document that repeats a pending one stays in `late`.
        """
        if self._unnoted:
            self.keep_fetching()
        late, self.late = self.late, deque(maxlen=MOST_LATE)
        is_answered = True
        for document, then in late:
            with self.handled(self, document.url):
                claim = await self.ask(self.dedup.try_claim, document) if is_answered else None
                is_answered = claim is not None
                if claim and not claim.is_early:
                    then(claim)
                else:
                    self.late.append((replace(document), then))  # without its computed fields
                if claim:
                    await pause(0)
        return len(self.late) < len(late)

    def note_failure(self, error: Exception) -> None:
        """Count an error of the store or its disk, log the first one, and stop the crawl if NEARDUP_STORE_REQUIRED."""
        self.count("store/errors")
        if not self._is_away:
            what = "The crawl stops because of NEARDUP_STORE_REQUIRED" if self.config.store_required else _PASSING
            logger.warning("%s: %s", what, error)
        self._is_away, self._calm = True, 0
        if self.config.store_required:
            self.close_spider("neardup_store_failed")

    def close_spider(self, reason: str) -> None:
        """Close the spider if it is open and not closing already."""
        engine = self.crawler.engine
        if not self._is_closing and engine and engine.spider:
            self._is_closing = True
            deferred_from_coro(engine.close_spider_async(reason=reason))

    @contextmanager
    def handled(self, component: object, what: str | None, *, but: type[Exception] | tuple[()] = ()) -> Iterator[None]:
        """Log and count an error in the block. The log names the component, and `what` it worked on, such as a URL.

        So no error of this package, an adviser or a detector loses a request or an item. Errors of class `but` pass.
        """
        try:
            yield
        except but:
            raise
        except Exception:
            self.count("errors")
            logger.exception("%s failed on %s", type(component).__name__, what)

    def count(self, name: Stat, by: int = 1) -> None:
        self.stats.inc_value(PREFIX + name, by)

    def log_summary(self) -> None:
        logger.info(summary(self.stats.get_stats()), extra={"spider": self.crawler.spider})


class Component:
    """A part of the plugin. A crawl has one instance of each, however often Scrapy and other parts ask for it."""

    def __init__(self, neardup: NearDup) -> None:
        self.neardup = neardup
        self.config, self.crawler, self.dedup = neardup.config, neardup.crawler, neardup.dedup

    @classmethod
    def from_crawler(cls: type[P], crawler: Crawler) -> P:
        return NearDup.from_crawler(crawler).component(cls)


def crawl_config(crawler: Crawler) -> Config:
    """Return the settings of a crawl, with the address of the store, and with the spider's name in the namespace.

    Raise ConfigError for a bad setting, and NotConfigured if NEARDUP_ENABLED is off or a command fetches single pages.
    """
    # Scrapy does not tell its components which command runs. `shell` creates them before it has a spider. The others,
    # `fetch`, `view`, `parse` and `check`, replace the spider's `start`.
    start = getattr(crawler.spider, "start", None)
    if crawler.spider is None or getattr(start, "__module__", "").startswith("scrapy.commands."):
        raise NotConfigured  # without a message, for which Scrapy would log a warning
    config = Config.from_settings(crawler.settings)
    if not config.enabled:
        raise NotConfigured("NEARDUP_ENABLED is off")
    if not config.store:
        store = default_store(crawler.settings)
        with suppress(OSError):  # then the store tells of the missing folder
            store.parent.mkdir(parents=True, exist_ok=True)
        config = replace(config, store=str(store))
    return replace(config, namespace=config.namespace.replace("{spider}", crawler.spider.name))


def _log_briefly(error: Exception) -> None:
    """Log an error that stops the start of a crawl in one line, without its traceback.

    Scrapy does not handle an error of a component's `from_crawler`, so asyncio or Twisted logs fifty lines or more. A
    filter drops these. It keeps no reference to the error, since Twisted logs an error only when there is none left.
    """
    message = str(error) or repr(error)

    def is_other(record: logging.LogRecord) -> bool:
        if not record.exc_info:  # Twisted logs the error as text first
            return message not in record.getMessage()
        return str(record.exc_info[1]) != message

    logger.error("The crawl was not started: %s", message)
    for name in ("asyncio", "twisted"):
        logging.getLogger(name).addFilter(is_other)
