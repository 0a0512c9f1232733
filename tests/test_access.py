"""Asking a store on a server beside the loop: in order, together where questions come together, and none for ever."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterator
from typing import Any

import pytest
from helpers import edited, text
from redis_server import Server

from scrapy_neardup import Deduplicator, Document
from scrapy_neardup.crawl.workers import AT_ONCE, Access

COUNT = 40


Work = Callable[[Access], Coroutine[Any, Any, Any]]


@pytest.fixture
def ask(server: Server) -> Iterator[Callable[[Work], Any]]:
    """Run what asks a store; the errors of the store are what it is given as `failed`."""
    dedup = Deduplicator.open(server.address)
    errors: list[Exception] = []
    access = Access(dedup, errors.append)

    def run(work: Work) -> Any:
        return asyncio.run(asyncio.wait_for(work(access), 30))

    run.errors, run.dedup = errors, dedup  # type: ignore[attr-defined]
    yield run
    access.close()
    dedup.close()


def documents() -> list[Document]:
    """Return originals, each followed at once by a copy."""
    texts = [each for n in range(COUNT) for each in (text(n), edited(text(n), 50))]
    return [Document(f"http://a.example/{n}", each) for n, each in enumerate(texts)]


def test_claims_that_come_together_are_decided_as_one_after_another(ask, server) -> None:
    async def work(access: Access) -> list[str]:
        claims = await asyncio.gather(*map(access.claim, documents()))
        assert [claim.is_early for claim in claims] == COUNT * [False, True]
        assert [claim.rival for claim in claims[1::2]] == claims[::2]
        return [claim.verdict.status for claim in claims]

    before = server.tell("INFO", "commandstats")["cmdstat_evalsha"]["calls"]
    assert ask(work) == COUNT * ["unique", "duplicate"]
    calls = server.tell("INFO", "commandstats")["cmdstat_evalsha"]["calls"] - before
    assert calls < 6 * COUNT


def test_a_claim_that_is_cancelled_leaves_the_others_their_answers(ask) -> None:
    async def work(access: Access) -> list[str]:
        tasks = [asyncio.ensure_future(access.claim(each)) for each in documents()[::2]]
        await asyncio.sleep(0)
        for task in tasks[1::2]:
            task.cancel()
        claims = await asyncio.gather(*tasks, return_exceptions=True)
        return [claim.verdict.status for claim in claims if not isinstance(claim, BaseException)]

    assert ask(work)[: COUNT // 2] == COUNT // 2 * ["unique"]


def test_a_claim_that_is_cancelled_while_it_is_made_holds_up_no_copy(ask, server) -> None:
    async def work(access: Access) -> str:
        document, copy = documents()[:2]
        with server.hung():
            made = asyncio.ensure_future(access.claim(document))
            await asyncio.sleep(0.1)
            made.cancel()
            await asyncio.wait([made])
        await access.run(bool)  # after it was made
        return (await access.claim(copy)).verdict.status

    assert ask(work) == "unique"


def test_who_waits_for_a_claim_hears_of_its_end(ask) -> None:
    async def work(access: Access) -> str:
        claim = await access.claim(documents()[0])
        waiting = [asyncio.ensure_future(access.settled(claim)) for _ in range(3)]
        await asyncio.sleep(0.05)
        waiting[0].cancel()
        access.later(claim.commit)
        await asyncio.gather(*waiting[1:])
        await access.settled(claim)
        return claim.state

    assert ask(work) == "committed"


def test_what_came_while_the_server_was_away_is_taken_in_later(ask, server) -> None:
    async def work(access: Access) -> int:
        server.kill()
        assert await access.ask(ask.dedup.store.resolve, "http://a.example/1") is None
        for each in documents()[:30]:
            access.take_in_later(each)
        assert not await access.catch_up()
        server.start()
        while access.late:
            await access.catch_up()
            await asyncio.sleep(0.05)
        return len(ask.dedup)

    assert ask(work) == 15
    assert ask.errors


def test_late_documents_for_which_the_time_has_not_come_hold_up_no_others(ask, server) -> None:
    async def work(access: Access) -> int:
        with Deduplicator.open(server.address) as other:
            for each in documents()[: 2 * AT_ONCE : 2]:
                other.claim(each)
            for each in documents()[::2]:
                access.take_in_later(each)
            await access.catch_up_all()
        return len(access.late)

    assert ask(work) == AT_ONCE
