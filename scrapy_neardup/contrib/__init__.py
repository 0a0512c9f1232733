"""Components that most users never turn on, by public doors only. docs/contrib.md tells how to enable each.

Nothing outside this package imports it. Each component reads its own settings.
"""

from __future__ import annotations

from scrapy.crawler import Crawler
from scrapy.exceptions import NotConfigured

from ..crawl.extension import NearDup


def limit_of(crawler: Crawler, name: str) -> tuple[NearDup, int]:
    """Return the plugin's state in a crawl, and a setting that limits a number.

    Raise NotConfigured without a limit, and in an audit, which stops nothing.
    """
    if (limit := crawler.settings.getint(name)) < 1:
        raise NotConfigured(f"{name} is not a number above 0")
    neardup = NearDup.from_crawler(crawler)
    if neardup.config.action == "audit":
        raise NotConfigured("an audit stops nothing")
    return neardup, limit
