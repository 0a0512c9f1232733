"""Run real crawls: `python crawl.py SPEC.json` runs one and ends. Scrapy's deprecation warnings are errors here."""

from __future__ import annotations

import asyncio
import importlib
import json
import logging
import os
import sys
import warnings
from contextlib import ExitStack
from pathlib import Path
from typing import Any
from unittest.mock import patch

from scrapy.crawler import AsyncCrawlerProcess, Crawler, CrawlerProcess
from scrapy.exceptions import ScrapyDeprecationWarning
from scrapy.settings import Settings
from scrapy.utils.log import configure_logging, install_scrapy_root_handler
from scrapy.utils.reactor import install_reactor


def main(spec: dict[str, Any]) -> None:
    filter_warnings()
    os.environ["NEARDUP_TEST_CRAWL"] = str(os.getpid())
    patch_modules(spec)
    settings = settings_of(spec)
    asyncio = "Select" not in settings.get("TWISTED_REACTOR", "")
    process = (AsyncCrawlerProcess if asyncio else CrawlerProcess)(settings)
    crawler = process.create_crawler(spider_of(spec))
    process.crawl(crawler, spec=spec["args"])
    process.start()
    write_stats(crawler, spec)
    sys.exit(bool(process.bootstrap_failed) or not has_ended(crawler))  # Scrapy 2.14 fails to say the first


def filter_warnings() -> None:
    warnings.simplefilter("error", ScrapyDeprecationWarning)
    warnings.simplefilter("error", ResourceWarning)


def settings_of(spec: dict[str, Any]) -> dict[str, Any]:
    return {
        "ADDONS": {"scrapy_neardup.Addon": 500},
        "FEEDS": {spec["output"]: {"format": "jsonlines"}},
        "NEARDUP_STORE": spec["store"],
        "NEARDUP_RECHECK": 0,
        "RETRY_ENABLED": False,
        "TELNETCONSOLE_ENABLED": False,
        "REMOTE_CONTROL_ENABLED": False,
        "WARN_ON_GENERATOR_RETURN_VALUE": False,  # looks for the source of each callback
        "CONCURRENT_ITEMS": 8,  # for each response Scrapy makes so many tasks
        "LOG_FILE": spec["log"],
        "LOG_VERSIONS": [],  # looked up in files
        **spec["settings"],
    }


def patch_modules(spec: dict[str, Any]) -> ExitStack:
    """Set the module variables that `patch` in the spec names. To close the returned object restores them."""
    patches = ExitStack()
    for name, value in spec["patch"].items():
        patches.enter_context(patch(name, value))
    return patches


def spider_of(spec: dict[str, Any]) -> type:
    return getattr(importlib.import_module("spiders"), spec["spider"])


def has_ended(crawler: Crawler) -> bool:
    return bool(crawler.stats) and "finish_reason" in crawler.stats.get_stats()


def write_stats(crawler: Crawler, spec: dict[str, Any]) -> None:
    stats = crawler.stats.get_stats() if crawler.stats else {}
    Path(spec["stats"]).write_text(json.dumps({k: v for k, v in stats.items() if isinstance(v, (int, float, str))}))


def serve() -> None:
    """Run a crawl for each line of JSON on stdin, one after another, and print the exit code of each."""
    filter_warnings()
    install_reactor("twisted.internet.asyncioreactor.AsyncioSelectorReactor")
    from twisted.internet import reactor

    configure_logging({"LOG_ENABLED": False})
    reactor.callWhenRunning(lambda: tasks.append(asyncio.ensure_future(crawl_each())))
    tasks: list[asyncio.Future[None]] = []  # an event loop holds its tasks weakly
    reactor.run(installSignalHandlers=False)


async def crawl_each() -> None:
    from twisted.internet import reactor

    loop = asyncio.get_running_loop()
    while line := await loop.run_in_executor(None, sys.stdin.readline):
        path, environment = json.loads(line)
        os.environ.clear()
        os.environ.update(environment, NEARDUP_TEST_CRAWL=str(os.getpid()))
        print(int(not await crawl(json.loads(Path(path).read_text()))), flush=True)
    reactor.stop()


class OwnSettings(Settings):
    """Settings that Scrapy need not copy, since only one crawl uses them. To copy takes a tenth of a small crawl."""

    def copy(self) -> OwnSettings:
        return self


async def crawl(spec: dict[str, Any]) -> bool:
    """Crawl, and return whether the crawl ended with a reason."""
    settings = OwnSettings(settings_of(spec))
    install_scrapy_root_handler(settings)
    crawler = Crawler(spider_of(spec), settings)
    with patch_modules(spec):
        try:
            await crawler.crawl_async(spec=spec["args"])
        except Exception:
            logging.exception("The crawl failed")
    write_stats(crawler, spec)
    return has_ended(crawler)


if __name__ == "__main__":
    main(json.loads(Path(sys.argv[1]).read_text()))
