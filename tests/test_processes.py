"""Processes that can't even begin: nobody waits for them, and nobody tries for ever."""

from __future__ import annotations

import asyncio
import os
from typing import Any

import pytest

from scrapy_neardup import Document
from scrapy_neardup.crawl.workers import Workers
from scrapy_neardup.detectors.detector import build_detectors
from scrapy_neardup.detectors.processes import ProcessError, Processes, Signer, signed
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


def arrived(given: bytes, size: int) -> int:
    return len(given) - size


def test_what_is_given_arrives_whatever_its_size() -> None:
    pool = Processes(2, LARGE)
    try:
        assert pool.submit(arrived, 1).result() == len(LARGE) - 1
    finally:
        pool.stop()


def test_nobody_waits_for_a_process_that_dies_at_its_start() -> None:
    pool = Processes(1, (LARGE, Deadly()))
    try:
        with pytest.raises(ProcessError, match="a process died with exit code 3"):
            pool.submit(arrived, 1).result()
    finally:
        pool.stop()


def end_at(given: object, number: int) -> int:
    if number == 2:
        os._exit(4)
    return number


def test_a_call_that_kills_its_process_harms_no_other_call() -> None:
    pool = Processes(1, None)
    try:
        calls = [pool.submit(end_at, number) for number in range(5)]
        assert [call.exception() is None for call in calls] == [True, True, False, True, True]
    finally:
        pool.stop()


def test_a_crawl_starts_no_more_of_them() -> None:
    workers = Workers([Deadly()], 1)

    async def prepare() -> list[Any]:
        documents = [Document(text=f"text {number}") for number in range(20)]
        return await asyncio.gather(*map(workers.prepare, documents), return_exceptions=True)

    try:
        made = asyncio.run(prepare())
    finally:
        workers.close()
    assert {type(each) for each in made} == {ProcessError}
    assert {str(each).partition(":")[0] for each in made} == {"a new process died at once"}


def test_a_feed_ends_with_a_word_of_it() -> None:
    config = Config()
    signer = Signer(config, [*build_detectors(config), Deadly()])
    with pytest.raises(ProcessError, match="--workers: a process died"):
        list(signed([[(1, {"text": "some"})]], signer, 2))
