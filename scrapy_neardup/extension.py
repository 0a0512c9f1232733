"""What the pipeline and the middleware of one crawl share: the store, the counting, the end of each item."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any
from weakref import WeakSet

from scrapy import signals
from scrapy.exceptions import NotConfigured
from scrapy.http import Response
from scrapy.utils.asyncio import call_later, create_looping_call
from scrapy.utils.httpobj import urlparse_cached
from scrapy.utils.job import job_dir
from scrapy.utils.project import data_path

from .config import STORE_NAME, Config
from .dedup import Claim, Deduplicator
from .document import Document
from .stores import StoreError
from .workers import Workers

if TYPE_CHECKING:
    from scrapy import Request
    from scrapy.crawler import Crawler
    from scrapy.utils.asyncio import AsyncioLoopingCall, CallLaterResult
    from twisted.internet.task import LoopingCall
    from typing_extensions import Self

logger = logging.getLogger(__name__)

PREFIX = "neardup/"  # of our stats
FLUSH_INTERVAL = 0.5  # seconds: what is committed is durable within one
SUMMARY_INTERVAL = 60.0
PAUSE = 0.05  # seconds between two turns at what other processes wrote, where it is much

# An item goes through all pipelines, and on to its signal, in one context: these say what belongs to it even where a
# later pipeline returned another object, and where one response gave many items.
_response: ContextVar[Response | None] = ContextVar("neardup_response", default=None)
_claim: ContextVar[Claim | None] = ContextVar("neardup_claim", default=None)


class NearDup:
    """Owns the store for a crawl: made by the first component that asks for it, closed when the engine has stopped."""

    def __init__(self, crawler: Crawler, config: Config) -> None:
        assert crawler.stats
        self.config = config
        self.stats = crawler.stats
        self._crawler = crawler
        self._run_file = _run_file(crawler)
        run = self._run_file.read_text() if self._run_file and self._run_file.exists() else ""
        self.dedup = Deduplicator.from_config(config, run=run)
        if self._run_file:
            self._run_file.write_text(self.dedup.store.run)
        self.workers = Workers(self.dedup.detectors, config.workers)
        # The first document has the segmenter of Chinese and parts of numpy loaded: up to a second, not in mid-crawl.
        _ = Document(text="预热").sketch
        self._store_failed = False
        self._giving_more: WeakSet[Response] = WeakSet()
        self._tasks: list[AsyncioLoopingCall | LoopingCall] = []
        self._later: CallLaterResult | None = None

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        """Return the one of this crawl. Raise NotConfigured where NEARDUP_ENABLED is off."""
        shared: Self | None = crawler.__dict__.get("neardup")
        if shared is None:
            shared = cls(crawler, crawl_config(crawler))
            crawler.__dict__["neardup"] = shared
            shared._connect()
        return shared

    def _connect(self) -> None:
        connect = self._crawler.signals.connect
        connect(self.spider_opened, signal=signals.spider_opened)
        connect(self.item_scraped, signal=signals.item_scraped)
        connect(self.item_lost, signal=signals.item_dropped)
        connect(self.item_lost, signal=signals.item_error)
        connect(self.spider_closed, signal=signals.spider_closed)
        connect(self.engine_stopped, signal=signals.engine_stopped)

    # The life of the crawl

    def spider_opened(self) -> None:
        self._remember_responses()
        self._tasks = [create_looping_call(self.sync), create_looping_call(self.log_summary)]
        self._tasks[0].start(FLUSH_INTERVAL, now=False)
        self._tasks[1].start(SUMMARY_INTERVAL, now=False)

    def spider_closed(self, reason: str) -> None:
        for task in self._tasks:
            if task.running:
                task.stop()
        if self._later:
            self._later.cancel()
        self.stats.set_value("neardup/workers/restarted", self.workers.restarts)
        if rechecked := self.stats.get_value("neardup/requests/rechecked", 0):
            wrong = self.stats.get_value("neardup/requests/wrongly_skipped", 0)
            self.stats.set_value("neardup/requests/wrongly_skipped_share", round(wrong / rechecked, 4))
        self._tell_of_hosts()
        self.stats.set_value("neardup/store/documents", len(self.dedup))
        self.log_summary()
        if self._run_file and reason == "finished":
            self._run_file.unlink(missing_ok=True)

    def engine_stopped(self) -> None:
        # Not at spider_closed: until every handler of that is done, feeds may still be on their way.
        counted = {name: value for name, value in self.stats.get_stats().items() if name.startswith(PREFIX)}
        self.dedup.store.stats = {
            name.removeprefix(PREFIX): value for name, value in counted.items() if isinstance(value, int)
        }
        try:
            self.dedup.close()
        except (StoreError, OSError) as error:
            self.count("store/errors")
            logger.error("The store was not closed well, so the next run forgets this one: %s", error)
        finally:
            self.workers.close()

    def sync(self) -> None:
        """Write what was committed and read what others did; a store that fails loses no item."""
        self.stats.set_value("neardup/store/documents", len(self.dedup))
        self._tell_of_hosts()
        if self._later:
            self._later.cancel()
        with self._surviving():
            self.dedup.store.flush(wait=False)
        self._refresh()

    def _refresh(self) -> None:
        with self._surviving():
            if self.dedup.store.refresh():
                self._later = call_later(PAUSE, self._refresh)

    @contextmanager
    def _surviving(self) -> Iterator[None]:
        """Count an error of the store, or of its disk, and go on; tell of the first."""
        try:
            yield
        except (StoreError, OSError) as error:
            self.count("store/errors")
            if not self._store_failed:
                self._store_failed = True
                logger.warning("Items pass; what can't be written is kept in memory and tried again: %s", error)

    def _tell_of_hosts(self) -> None:
        changes, self.dedup.changes = self.dedup.changes, []
        for relation, in_force in changes:
            first, second = relation.sites
            if in_force:
                self.count("mirror_hosts/learned")
                logger.info("%(first)s and %(second)s mirror each other", {"first": first, "second": second})
            else:
                self.count("mirror_hosts/dropped")
                logger.warning(
                    "%(first)s and %(second)s no longer mirror each other: pages are fetched from both again",
                    {"first": first, "second": second},
                )

    def _remember_responses(self) -> None:
        """Have each item's response at hand in the pipeline, where Scrapy passes only the item."""
        if self._crawler.engine is None:
            return
        scraper = self._crawler.engine.scraper
        start = scraper.start_itemproc_async

        async def start_itemproc_async(item: Any, *, response: Any) -> None:
            _response.set(response if isinstance(response, Response) else None)
            _claim.set(None)
            try:
                await start(item, response=response)
            finally:
                self.item_lost()  # where it ended without a signal, such as by being cancelled

        scraper.start_itemproc_async = start_itemproc_async  # type: ignore[method-assign]

    # The end of each item

    @property
    def response(self) -> Response | None:
        """The response that the item in hand came from, if any."""
        return _response.get()

    def outranking(self, response: Response | None) -> list[Request]:
        """Return the requests to other hosts, of a higher priority than the response's, that are under way."""
        engine = self._crawler.engine
        if response is None or response.request is None or engine is None:
            return []
        scraped = engine.scraper.slot.active if engine.scraper.slot else ()
        priority, host = response.request.priority, urlparse_cached(response).netloc
        return [
            request
            for request in chain(engine.downloader.active, scraped)
            if request.priority > priority and urlparse_cached(request).netloc != host
        ]

    def follow(self, claim: Claim) -> None:
        """Settle a claim by what becomes of the item in hand."""
        _claim.set(claim)

    def give_more(self) -> None:
        """Note that the response in hand gave what is held nowhere, so that its URL is no mirror."""
        if response := _response.get():
            self._giving_more.add(response)

    def commit(self, claim: Claim) -> None:
        """Commit the claim of the item in hand."""
        if _response.get() in self._giving_more:
            document = claim.document
            claim.document = replace(document, loose=frozenset(filter(None, (document.url, *document.aliases))))
        with self._surviving():
            claim.commit()

    def item_scraped(self) -> None:
        claim = _claim.get()
        if claim:
            self.commit(claim)

    def item_lost(self) -> None:
        claim = _claim.get()
        if claim and claim.state == "pending":
            self.count("withdrawn")
            with self._surviving():
                claim.withdraw()
            self.give_more()

    # Counting

    def count(self, name: str, by: int = 1) -> None:
        """Count in Scrapy's stats."""
        self.stats.inc_value(f"{PREFIX}{name}", by)

    def log_summary(self) -> None:
        """Log one line that sums the crawl up."""
        number = {name: self.stats.get_value(f"neardup/{name}", 0) for name in _SUMMED}
        logger.info(
            "%(documents)d documents, %(duplicates)d duplicates (%(share).1f %%), %(requests/skipped)d requests saved,"
            " %(dead_links/rescued)d dead links rescued, about %(megabytes).1f MB saved",
            {
                **number,
                "share": 100 * number["duplicates"] / (number["documents"] or 1),
                "megabytes": number["bytes_saved"] / 1e6,
            },
            extra={"spider": self._crawler.spider},
        )


_SUMMED = ("documents", "duplicates", "requests/skipped", "dead_links/rescued", "bytes_saved")


def crawl_config(crawler: Crawler) -> Config:
    """Read the settings of a crawl: the store's default place, `{spider}` in the namespace."""
    config = Config.from_settings(crawler.settings)
    if not config.enabled:
        raise NotConfigured("NEARDUP_ENABLED is off")
    name = crawler.spider.name if crawler.spider else ""
    return replace(
        config,
        store=config.store or str(Path(data_path("", createdir=True), STORE_NAME)),
        namespace=config.namespace.replace("{spider}", name),
    )


def _run_file(crawler: Crawler) -> Path | None:
    """Return where a crawl that can be paused keeps the id of its run."""
    folder = job_dir(crawler.settings)
    return Path(folder, "neardup.run") if folder else None
