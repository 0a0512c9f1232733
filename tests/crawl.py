"""Runs one real crawl in a process of its own: `python crawl.py SPEC.json`. Deprecations of Scrapy are errors."""

from __future__ import annotations

import importlib
import json
import os
import sys
import warnings
from pathlib import Path

from scrapy.crawler import AsyncCrawlerProcess, CrawlerProcess
from scrapy.exceptions import ScrapyDeprecationWarning


def main(spec: dict) -> None:
    warnings.simplefilter("error", ScrapyDeprecationWarning)
    warnings.simplefilter("error", ResourceWarning)
    os.environ["NEARDUP_TEST_CRAWL"] = str(os.getpid())
    spider = getattr(importlib.import_module("spiders"), spec["spider"])
    settings = {
        "ADDONS": {"scrapy_neardup.Addon": 500},
        "FEEDS": {spec["output"]: {"format": "jsonlines"}},
        "NEARDUP_STORE": spec["store"],
        "NEARDUP_RECHECK": 0,
        "RETRY_ENABLED": False,
        "TELNETCONSOLE_ENABLED": False,
        "WARN_ON_GENERATOR_RETURN_VALUE": False,  # looks for the source of each callback
        "CONCURRENT_ITEMS": 8,  # for each response Scrapy makes so many tasks
        "LOG_FILE": spec["log"],
        "LOG_VERSIONS": [],  # looked up in files
        **spec["settings"],
    }
    asyncio = "Select" not in settings.get("TWISTED_REACTOR", "")
    process = (AsyncCrawlerProcess if asyncio else CrawlerProcess)(settings)
    crawler = process.create_crawler(spider)
    process.crawl(crawler, spec=spec["args"])
    process.start()
    stats = crawler.stats.get_stats() if crawler.stats else {}
    Path(spec["stats"]).write_text(json.dumps({k: v for k, v in stats.items() if isinstance(v, (int, float, str))}))
    sys.exit(bool(process.bootstrap_failed) or "finish_reason" not in stats)  # Scrapy 2.14 fails to say the first


if __name__ == "__main__":
    main(json.loads(Path(sys.argv[1]).read_text()))
