import json
from pathlib import Path
from typing import Any

from scrapy import signals
from scrapy.crawler import Crawler
from scrapy.http import Request, Response


class Recorder:
    """Writes a run's stats, and what became of its pages, to the JSON file named by the setting RUN_RECORD."""

    def __init__(self, crawler: Crawler) -> None:
        self.stats = crawler.stats
        self.path = Path(crawler.settings["RUN_RECORD"])
        self.dropped: dict[str, str] = {}  # URL -> reason
        self.redirected: dict[str, str] = {}  # dead link -> the mirror that answered

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> "Recorder":
        recorder = cls(crawler)
        crawler.signals.connect(recorder.item_dropped, signals.item_dropped)
        crawler.signals.connect(recorder.response_received, signals.response_received)
        crawler.signals.connect(recorder.spider_closed, signals.spider_closed)
        return recorder

    def item_dropped(self, item: dict[str, Any], exception: Exception) -> None:
        self.dropped[item["url"]] = str(exception)

    def response_received(self, response: Response, request: Request) -> None:
        ticket = request.meta.get("neardup", {})
        if ticket.get("reason") == "dead link":
            self.redirected[ticket["instead_of"]] = response.url

    def spider_closed(self) -> None:
        numbers = {name: value for name, value in self.stats.get_stats().items() if isinstance(value, int | float)}
        record = {"stats": numbers, "dropped": self.dropped, "redirected": self.redirected}
        self.path.write_text(json.dumps(record, indent=1), encoding="utf-8")
