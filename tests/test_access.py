"""Calls to a store on a server, in a thread: they keep their order, are joined if they come at once, and never hang."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Callable, Coroutine, Iterator
from pathlib import Path
from typing import Any, TypeVar
from weakref import ref

import pytest
from helpers import edited, text
from redis_server import Server
from scrapy import signals
from scrapy.utils.spider import DefaultSpider
from scrapy.utils.test import get_crawler

from scrapy_neardup import Claim, Deduplicator, Document
from scrapy_neardup.crawl import Adviser
from scrapy_neardup.crawl.extension import AT_ONCE, NearDup
from scrapy_neardup.crawl.pipeline import ItemOrigins

T = TypeVar("T")

COUNT = 40


@pytest.fixture
def neardup(server: Server) -> Iterator[NearDup]:
    """Return the state of a crawl that is not started."""
    crawler = get_crawler(settings_dict={"NEARDUP_STORE": server.address})
    crawler.spider = DefaultSpider.from_crawler(crawler)
    neardup = NearDup.from_crawler(crawler)
    neardup.component(ItemOrigins)
    yield neardup
    asyncio.run(neardup.engine_stopped())


def test_nothing_holds_the_state_of_a_crawl_that_has_ended(tmp_path: Path) -> None:
    crawler = get_crawler(settings_dict={"NEARDUP_STORE": str(tmp_path / "store.sqlite")})
    crawler.spider = DefaultSpider.from_crawler(crawler)
    held = ref(NearDup.from_crawler(crawler))
    asyncio.run(NearDup.from_crawler(crawler).engine_stopped())
    gc.collect()
    assert held() is None


def run(work: Callable[[], Coroutine[Any, Any, T]]) -> T:
    return asyncio.run(asyncio.wait_for(work(), 30))


def documents() -> list[Document]:
    """Return originals, each followed at once by a copy."""
    texts = [each for n in range(COUNT) for each in (text(n), edited(text(n), 50))]
    return [Document(f"http://a.example/{n}", each) for n, each in enumerate(texts)]


def test_claims_that_come_together_are_decided_as_one_after_another(neardup: NearDup, server: Server) -> None:
    async def work() -> list[str]:
        claims = await asyncio.gather(*map(neardup.claim, documents()))
        assert [claim.is_early for claim in claims] == COUNT * [False, True]
        assert [claim.rival for claim in claims[1::2]] == claims[::2]
        return [claim.verdict.status for claim in claims]

    before = server.tell("INFO", "commandstats")["cmdstat_evalsha"]["calls"]
    assert run(work) == COUNT * ["unique", "duplicate"]
    calls = server.tell("INFO", "commandstats")["cmdstat_evalsha"]["calls"] - before
    assert calls < 6 * COUNT


def test_a_claim_that_is_cancelled_leaves_the_others_their_answers(neardup: NearDup) -> None:
    async def work() -> list[str]:
        tasks = [asyncio.ensure_future(neardup.claim(each)) for each in documents()[::2]]
        await asyncio.sleep(0)
        for task in tasks[1::2]:
            task.cancel()
        claims = await asyncio.gather(*tasks, return_exceptions=True)
        return [claim.verdict.status for claim in claims if not isinstance(claim, BaseException)]

    assert run(work)[: COUNT // 2] == COUNT // 2 * ["unique"]


def test_a_claim_that_is_cancelled_while_it_is_made_holds_up_no_copy(neardup: NearDup, server: Server) -> None:
    async def work() -> str:
        document, copy = documents()[:2]
        with server.hung():
            made = asyncio.ensure_future(neardup.claim(document))
            await asyncio.sleep(0.1)
            made.cancel()
            await asyncio.wait([made])
        await neardup.call(bool)  # after it was made
        return (await neardup.claim(copy)).verdict.status

    assert run(work) == "unique"


class Told(Adviser):
    """Notes the visits that it is told of."""

    def __init__(self) -> None:
        self.urls: list[str | None] = []

    def visited(self, claim: Claim) -> None:
        self.urls.append(claim.document.url)


def passes(neardup: NearDup, document: Document) -> None:
    """Have an item pass that the store could not judge."""
    neardup.component(ItemOrigins).take({}).late = document
    neardup.crawler.signals.send_catch_log(signals.item_scraped, item={}, response=None)


def test_what_came_while_the_server_was_away_is_taken_in_later(neardup: NearDup, server: Server) -> None:
    async def work() -> None:
        server.kill()
        for each in documents()[:30]:
            passes(neardup, each)
        assert not await neardup.catch_up()
        server.start()
        while neardup.late:
            await neardup.catch_up()
            await asyncio.sleep(0.05)

    neardup.advisers.append(told := Told())
    run(work)
    assert neardup.stats.get_value("neardup/store/errors") > 0
    assert len(neardup.dedup) == 15
    assert sorted(told.urls, key=str) == sorted((each.url for each in documents()[:30]), key=str)
    held = list(neardup.dedup.store.signatures())
    assert all(map(neardup.dedup.deliveries.is_delivered, held))


def test_late_documents_for_which_the_time_has_not_come_hold_up_no_others(neardup: NearDup, server: Server) -> None:
    async def work() -> None:
        with Deduplicator.open(server.address) as other:
            for each in documents()[: 2 * AT_ONCE : 2]:
                other.claim(each)
            for each in documents()[::2]:
                passes(neardup, each)
            while await neardup.catch_up():
                pass

    run(work)
    assert len(neardup.late) == AT_ONCE
