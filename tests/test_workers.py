"""Fingerprints that take long are made in processes of their own, and are the same there."""

from __future__ import annotations

import asyncio
import os
from dataclasses import replace
from typing import Any

import pytest
from helpers import text

from scrapy_neardup.config import Config
from scrapy_neardup.detectors import Exact, SimHash
from scrapy_neardup.detectors.build import build_detectors
from scrapy_neardup.document import Document
from scrapy_neardup.index.keys import KeyIndex
from scrapy_neardup.workers import Workers


class Heavy:
    """Says in which process it was asked; nothing of a text that begins with "fail", which ends that process."""

    name = "heavy"
    scheme = "1"
    heavy = True

    def fingerprints(self, document: Document) -> tuple[int, ...]:
        if document.text.startswith("fail"):
            raise ValueError("no fingerprint of this text")
        if document.text.startswith("die") and document.title != str(os.getpid()):
            os._exit(1)
        return (os.getpid(),)

    def index(self) -> KeyIndex[Any]:
        return KeyIndex()


def prepared(config: Config, *documents: Document) -> list[dict[str, tuple[int, ...]]]:
    async def prepare() -> None:
        await asyncio.gather(*(workers.prepare(document) for document in documents))

    workers = Workers.from_config(config, build_detectors(config))
    try:
        asyncio.run(prepare())
    finally:
        workers.close()
    return [document.ready for document in documents]


def test_only_heavy_detectors_are_asked_elsewhere() -> None:
    config = Config(detectors=[Exact(), SimHash(3), Heavy()])
    documents = [Document(text=text(seed)) for seed in range(5)]
    made = prepared(config, *documents)
    assert {tuple(each) for each in made} == {("heavy",)}
    assert os.getpid() not in {each["heavy"][0] for each in made}


@pytest.mark.parametrize("changes", [{"workers": 0}, {"detectors": [Exact()]}])
def test_nothing_is_started_where_nothing_is_to_be_done(changes: dict[str, Any]) -> None:
    config = replace(Config(detectors=[Heavy()]), **changes)
    assert prepared(config, Document(text=text(1))) == [{}]


def test_fingerprints_are_those_made_here() -> None:
    pytest.importorskip("snowballstemmer")
    config = Config(detectors=["dwswn"])
    document = Document(text=text(1, 400))
    (detector,) = build_detectors(config)
    assert prepared(config, document) == [{"dwswn": detector.fingerprints(Document(text=text(1, 400)))}]


def test_what_a_detector_raises_is_raised_here() -> None:
    with pytest.raises(ValueError, match="no fingerprint of this text"):
        prepared(Config(detectors=[Heavy()]), Document(text="fail"))


def test_when_a_worker_dies_the_work_is_done_here(caplog: pytest.LogCaptureFixture) -> None:
    deadly = [Document(text=f"die {n}", title=str(os.getpid())) for n in range(3)]
    assert prepared(Config(detectors=[Heavy()]), *deadly) == [{}, {}, {}]
    assert [record.levelname for record in caplog.records] == ["WARNING"]
    assert Heavy().fingerprints(deadly[0]) == (os.getpid(),)


@pytest.mark.parametrize("reactor", ["asyncioreactor.AsyncioSelectorReactor", "selectreactor.SelectReactor"])
def test_a_crawl_makes_them_elsewhere(crawl: Any, a: Any, b: Any, reactor: str) -> None:
    from site_server import Page, article, html

    a.pages["/0.html"], b.pages["/0.html"] = (Page(html(article(0), name)) for name in "ab")
    settings = {"NEARDUP_DETECTORS": ["spiders.NotHere"], "TWISTED_REACTOR": f"twisted.internet.{reactor}"}
    result = crawl("OneAfterAnother", settings, urls=[f"{site.url}/0.html" for site in (a, b)])
    assert result.count("duplicates/not_here") == result.count("duplicates") == 1
