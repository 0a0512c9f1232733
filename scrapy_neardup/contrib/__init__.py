"""What most users never turn on: one component a file, by public doors only. docs/contrib.md tells how to enable each.

Nothing outside this package imports it. Each component reads its own settings.
"""

from __future__ import annotations

from scrapy.crawler import Crawler
from scrapy.exceptions import NotConfigured

from ..crawl.extension import NearDup
from ..matching.claim import Claim


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


def is_seen(claim: Claim | None) -> bool:
    """Return whether an item was seen before, given its claim; None for an item without a verdict."""
    return claim is not None and claim.verdict.status != "unique" and not claim.verdict.changed
