from typing import Any

from example.spiders.news import NewsSpider

from fleet.queue import FleetSpider


class FleetNewsSpider(FleetSpider, NewsSpider):
    """The spider of the example; its list pages come from Redis, where any worker may take them."""

    name = "fleet"

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(sites="", **kwargs)
