"""scrapy-redis 0.9.1 on today's Scrapy: what does not run there is done anew here; docs/scaling.md says why."""

import json
import time
from collections.abc import AsyncIterator
from typing import Any

from scrapy import Request, Spider, signals
from scrapy.crawler import Crawler
from scrapy.utils.misc import load_object
from scrapy_redis.scheduler import Scheduler
from scrapy_redis.spiders import RedisMixin


class FleetScheduler(Scheduler):
    """The queue that all workers share; its methods pass no spider to the stats, and call no Spider.log()."""

    def open(self, spider: Spider) -> None:
        self.spider = spider
        key = self.queue_key % {"spider": spider.name}
        self.queue = load_object(self.queue_cls)(self.server, spider, key, self.serializer)
        self.df = self.df or load_object(self.dupefilter_cls).from_spider(spider)
        if self.flush_on_start:
            self.flush()

    def enqueue_request(self, request: Request) -> bool:
        if not request.dont_filter and self.df.request_seen(request):
            self.df.log(request, self.spider)
            return False
        self.stats.inc_value("scheduler/enqueued/redis")
        self.queue.push(request)
        return True

    def next_request(self) -> Request | None:
        request = self.queue.pop(self.idle_before_close)
        if request:
            self.stats.inc_value("scheduler/dequeued/redis")
        return request


class FleetSpider(RedisMixin):
    """To be put before a spider's own class: its start requests come from the list `NAME:start_urls` in Redis.

    Each entry is JSON: the arguments of a Request. A worker ends MAX_IDLE_TIME_BEFORE_CLOSE seconds after its last
    page, or a few later.
    """

    @classmethod
    def from_crawler(cls, crawler: Crawler, *args: Any, **kwargs: Any) -> "FleetSpider":
        spider = super().from_crawler(crawler, *args, **kwargs)
        spider.setup_redis(crawler)
        crawler.signals.connect(spider.has_work, signals.response_received)
        return spider

    async def start(self) -> AsyncIterator[Request]:
        self.has_work()
        for request in self.next_requests():
            yield request

    def has_work(self) -> None:
        self.spider_idle_start_time = int(time.time())

    def make_request_from_data(self, data: bytes) -> Request:
        return Request(**json.loads(data))
