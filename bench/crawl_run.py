"""Crawls of a site on this machine, each in a process of its own: what the benches of crawls share."""

from __future__ import annotations

import json
import resource
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from scrapy.crawler import AsyncCrawlerProcess, Crawler

PLUGIN = {"ADDONS": {"scrapy_neardup.Addon": 500}}
QUIET = {"LOG_LEVEL": "ERROR", "TELNETCONSOLE_ENABLED": False}


@contextmanager
def serving(script: str, *arguments: object) -> Iterator[str]:
    """Run a web server that stands beside this file, and give the port that it prints."""
    command = [sys.executable, str(Path(__file__).with_name(script)), *map(str, arguments)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout
        try:
            yield server.stdout.readline().strip()
        finally:
            server.kill()


def crawled(spider: type[Any], settings: dict[str, Any], **arguments: Any) -> Crawler:
    """Crawl in this process, once; return what crawled."""
    process = AsyncCrawlerProcess({**QUIET, **settings})
    crawler = process.create_crawler(spider)
    process.crawl(crawler, **arguments)
    process.start()
    return crawler


def numbers(crawler: Crawler) -> dict[str, float]:
    """Return the stats of a crawl that are numbers."""
    assert crawler.stats
    return {name: value for name, value in crawler.stats.get_stats().items() if isinstance(value, (int, float))}


def in_new_process(script: str, *arguments: object) -> dict[str, Any]:
    """Return the JSON that a script prints, with the CPU of its process and its children, in seconds."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    command = [sys.executable, script, *map(str, arguments)]
    made: dict[str, Any] = json.loads(subprocess.run(command, stdout=subprocess.PIPE, check=True, text=True).stdout)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return {**made, "cpu": after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime}
