"""Processes that can't even begin: nobody waits for them, and nobody tries for ever."""

from __future__ import annotations

import asyncio
import os
from concurrent.futures import BrokenExecutor
from pathlib import Path
from typing import Any

import pytest

from scrapy_neardup import Document
from scrapy_neardup.crawl.workers import WorkerError, Workers
from scrapy_neardup.detectors.processes import given, start, stop
from scrapy_neardup.detectors.registry import build_detectors
from scrapy_neardup.feeds import FeedError, Feeds
from scrapy_neardup.feeds.signing import Signer, ready_rows
from scrapy_neardup.settings import Config

LARGE = b"x" * (1 << 20)  # more than a pipe holds


class Deadly:
    """Ends each process to which it is sent; heavy, so that it is."""

    name = scheme = "deadly"
    heavy = True

    def __reduce__(self) -> Any:
        return os._exit, (3,)

    def fingerprints(self, document: Document) -> tuple[int, ...]:
        return (len(LARGE),)

    def index(self) -> None:
        raise AssertionError


def arrived(size: int) -> int:
    return len(given()) - size


def test_what_is_given_arrives_whatever_its_size() -> None:
    pool = start(2, LARGE)
    try:
        assert pool.submit(arrived, 1).result() == len(LARGE) - 1
    finally:
        stop(pool)


def test_nobody_waits_for_a_process_that_dies_at_its_start() -> None:
    pool = start(1, (LARGE, Deadly()))
    try:
        with pytest.raises(BrokenExecutor):
            pool.submit(arrived, 1).result()
    finally:
        stop(pool)


def test_a_crawl_starts_no_more_of_them(caplog: pytest.LogCaptureFixture) -> None:
    workers = Workers([Deadly()], 1)

    async def prepare() -> list[Any]:
        documents = [Document(text=f"text {number}") for number in range(20)]
        return await asyncio.gather(*map(workers.prepare, documents), return_exceptions=True)

    try:
        made = asyncio.run(prepare())
    finally:
        workers.close()
    assert {type(each) for each in made} == {WorkerError}
    assert {str(each).partition(":")[0] for each in made} == {"a new process died at once"}
    assert workers.restarts == 1


def test_a_feed_ends_with_a_word_of_it(tmp_path: Path) -> None:
    config = Config()
    signer = Signer(config, [*build_detectors(config), Deadly()], None)
    feed = tmp_path / "in.jsonl"
    feed.write_text('{"text": "some"}\n')
    with pytest.raises(FeedError, match="--workers: a new process died at once"):
        list(ready_rows(Feeds([str(feed)]).lines(), signer, 2))
