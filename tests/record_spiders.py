"""Spiders whose items are records of several fields. `spiders.py` imports them, so that crawls find them there."""

from __future__ import annotations

from typing import Any

import scrapy
from item_kinds import kinds
from itemloaders import ItemLoader


def loaded(**values: Any) -> dict[str, list[Any]]:
    """Return an item that an item loader made: each value is in a list."""
    loader = ItemLoader(item={})
    for name, value in values.items():
        loader.add_value(name, value)
    item: dict[str, list[Any]] = loader.load_item()
    return item


EVENTS = {**kinds("title", "date", "location", "description"), "loader": loaded}


class EventSpider(scrapy.Spider):
    """Requests URLs one after another. Each page is a JSON list of rows; each row becomes an item.

    `spec`: `urls`, and optionally the `kind` of items, the HTTP `method`, `own` (the field that gets the URL of the
    page), and `rows` that `start` yields.
    """

    name = "events"
    custom_settings = {"CONCURRENT_REQUESTS": 1}  # noqa: RUF012 - in the order of the URLs

    def __init__(self, spec: dict[str, Any], **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.spec = spec

    async def start(self):
        for row in self.spec.get("rows", ()):
            yield row
        for number, url in enumerate(self.spec["urls"]):
            yield scrapy.Request(url, method=self.spec.get("method", "GET"), priority=-number)

    def parse(self, response):
        for row in response.json():
            if own := self.spec.get("own"):
                row[own] = response.url
            yield EVENTS[self.spec.get("kind", "dict")](**row)


class OtherEventSpider(EventSpider):
    """Does the same as EventSpider under another name."""

    name = "other_events"
