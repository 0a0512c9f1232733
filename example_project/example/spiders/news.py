from collections.abc import AsyncIterator, Iterator
from typing import Any

from scrapy import Request, Spider
from scrapy.http import HtmlResponse


class NewsSpider(Spider):
    """Reads every article that the list pages link to: scrapy crawl news -a sites=URL,URL"""

    name = "news"

    def __init__(self, sites: str, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.start_urls = sites.split(",")

    async def start(self) -> AsyncIterator[Request]:
        for rank, url in enumerate(self.start_urls):
            yield Request(url, priority=-rank)  # the first site's articles come before the second's

    def parse(self, response: HtmlResponse) -> Iterator[Request]:
        priority = response.request.priority
        yield from response.follow_all(css="#articles a", callback=self.parse_article, priority=priority)

    def parse_article(self, response: HtmlResponse) -> Iterator[dict[str, str | None]]:
        story = response.css("article, .story")
        yield {"url": response.url, "title": story.css("h1::text, h2::text").get(), "text": story.get()}
