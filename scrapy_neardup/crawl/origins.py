"""Record the response of each item, and whether it is the only one of its response.

The first item of a response is held back until the callback yields another one, or ends. So the pipeline knows in time
whether the URL of the page is the item's own. Requests pass at once.
"""

from __future__ import annotations

from asyncio import CancelledError
from collections.abc import AsyncIterator, Iterable, Iterator
from typing import TYPE_CHECKING, Any

from scrapy import Request
from scrapy.spidermiddlewares.base import BaseSpiderMiddleware

from .extension import NearDup

if TYPE_CHECKING:
    from scrapy.crawler import Crawler
    from scrapy.http import Response


class _OneBehind:
    """Holds back the first item of a response."""

    def __init__(self) -> None:
        self.first: list[Any] = []
        """The item that is held back, if any."""
        self._has_more = False

    def passed(self, output: Any) -> list[Any]:
        """Return the outputs that may pass, given the next one."""
        if self._has_more or output is None or isinstance(output, Request):
            return [output]
        if not self.first:
            self.first = [output]
            return []
        passed, self.first, self._has_more = [*self.first, output], [], True
        return passed


class ItemOrigins(BaseSpiderMiddleware):
    """Records the response of each item as the spider middleware nearest to the engine.

    As the first item pipeline, it begins to follow the item.
    """

    def __init__(self, crawler: Crawler) -> None:
        super().__init__(crawler)
        self._outcomes = NearDup.from_crawler(crawler).outcomes

    def process_spider_output(self, response: Response | None, result: Iterable[Any]) -> Iterator[Any]:  # type: ignore[override]
        behind = _OneBehind()
        try:
            for output in super().process_spider_output(response, result):
                yield from behind.passed(output)
        except Exception:
            yield from behind.first
            raise
        self._end(response, behind)
        yield from behind.first

    async def process_spider_output_async(  # type: ignore[override]
        self, response: Response | None, result: AsyncIterator[Any]
    ) -> AsyncIterator[Any]:
        behind = _OneBehind()
        try:
            async for output in super().process_spider_output_async(response, result):
                for each in behind.passed(output):
                    yield each
        except (Exception, CancelledError):
            for each in behind.first:
                yield each
            raise
        self._end(response, behind)
        for each in behind.first:
            yield each

    def _end(self, response: Response | None, behind: _OneBehind) -> None:
        if behind.first and response is not None:
            self._outcomes.note_only_item(response)

    def get_processed_item(self, item: Any, response: Response | None) -> Any:
        if response is not None:
            self._outcomes.note_origin(item, response)
        return item

    def process_item(self, item: Any) -> Any:
        self._outcomes.begin(item)
        return item
