"""Heavy fingerprints and texts are computed in worker processes, with the same results as in the crawl's process."""

from __future__ import annotations

import asyncio
import os
import threading
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from heavy import Heavy, Hindered, failing, reader
from helpers import python, text, until
from site_server import Page, article, html
from tiers import slow

from scrapy_neardup.crawl.workers import Workers
from scrapy_neardup.detectors import Exact, SimHash, build_detectors
from scrapy_neardup.document import Document
from scrapy_neardup.processes import ProcessError
from scrapy_neardup.settings import Config, ConfigError
from scrapy_neardup.text.html import read_page


def prepared(detectors: list[Any], *documents: Document, count: int = 1) -> list[Any]:
    """Return each document's fingerprints, or what went wrong."""

    async def prepare() -> list[Any]:
        results = await asyncio.gather(*(workers.prepare(d) for d in documents), return_exceptions=True)
        return [result or document.ready for result, document in zip(results, documents, strict=True)]

    with closing(Workers(detectors, count)) as workers:
        return asyncio.run(prepare())


def documents(count: int) -> list[Document]:
    return [Document(text=text(seed)) for seed in range(count)]


def test_heavy_detectors_and_extractors_are_asked_elsewhere_and_say_what_they_say_here() -> None:
    pytest.importorskip("snowballstemmer")
    (dwswn,) = build_detectors(Config(detectors=["dwswn"]))
    given = [Document(text=text(seed, 400)) for seed in range(3)]
    htmls = [f"<title>T</title><p>{'x' * number}" for number in range(9)]

    async def prepare_and_read() -> list[Any]:
        await asyncio.gather(*map(workers.prepare, given))
        return await asyncio.gather(*map(workers.read, htmls))

    with closing(Workers([Exact(), SimHash(3), Heavy(), dwswn], 1, reader)) as workers:
        assert workers.signs
        assert workers.reads
        pages = asyncio.run(prepare_and_read())
    made = [document.ready for document in given]
    assert {tuple(each) for each in made} == {("heavy", "dwswn")}
    assert os.getpid() not in {each["heavy"][0] for each in made}
    assert [each["dwswn"] for each in made] == [dwswn.fingerprints(document) for document in given]
    assert [page.text.split()[0] for page in pages] == [str(number + 19) for number in range(9)]
    assert {page.title for page in pages} == {"T"}
    assert str(os.getpid()) not in {page.text.split()[-1] for page in pages}


@pytest.mark.parametrize(("detectors", "count"), [([Heavy()], 0), *slow(([Exact()], 1))])
def test_nothing_is_made_where_nothing_is_to_be_done(detectors: list[Any], count: int) -> None:
    assert not Workers(detectors, count).signs
    assert prepared(detectors, *documents(1), count=count) == [{}]


@pytest.mark.slow
def test_what_a_detector_raises_is_told_and_harms_no_other() -> None:
    wrong, right = prepared([Heavy()], Document(text="fail"), *documents(1))
    assert (type(wrong), str(wrong)) == (ProcessError, "OddError('no fingerprint of this text')")
    assert "heavy" in right


def test_a_document_that_kills_its_process_harms_no_other(caplog: pytest.LogCaptureFixture) -> None:
    deadly = Document(url="http://a.example/", text="die")
    made = prepared([Heavy()], *documents(1), deadly, *documents(2))
    assert [type(each) for each in made] == [dict, ProcessError, dict, dict]
    assert "died twice on http://a.example/" in str(made[1])
    assert all(each["heavy"][0] != os.getpid() for each in made if isinstance(each, dict))
    assert {record.levelname for record in caplog.records} == {"WARNING"}


@pytest.mark.slow
def test_what_a_process_was_at_when_it_died_is_tried_again(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    made = prepared([Heavy()], Document(text="once", title=str(tmp_path / "died")), *documents(2))
    assert [list(each) for each in made] == [["heavy"]] * 3
    assert [record.levelname for record in caplog.records] == ["WARNING"]


@pytest.mark.slow
def test_a_process_that_can_not_begin_is_started_again_for_the_next_document(tmp_path: Path) -> None:
    (file := tmp_path / "hindrance").touch()
    first, second = documents(2)

    async def prepare() -> None:
        with pytest.raises(ProcessError, match="a process died with exit code 1"):
            await workers.prepare(first)
        file.unlink()
        await workers.prepare(second)

    with closing(Workers([Hindered(file)], 1)) as workers:
        asyncio.run(prepare())
    assert (list(first.ready), list(second.ready)) == ([], ["heavy"])


@pytest.mark.slow
def test_after_failed_starts_in_a_row_no_process_is_started(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("scrapy_neardup.crawl.workers.STARTS", 2)
    (file := tmp_path / "hindrance").touch()

    async def prepare() -> None:
        for document in documents(2):
            with pytest.raises(ProcessError, match="a process died"):
                await workers.prepare(document)
        file.unlink()
        with pytest.raises(ProcessError, match="no worker process starts: a process died"):
            await workers.prepare(*documents(1))

    with closing(Workers([Hindered(file)], 1)) as workers:
        asyncio.run(prepare())


def test_after_the_end_nothing_is_made_here_either() -> None:
    workers, (document,) = Workers([Heavy()], 1), documents(1)
    workers.close()
    with pytest.raises(RuntimeError):
        asyncio.run(workers.prepare(document))
    assert document.ready == {}


def test_a_detector_that_can_not_be_sent_is_refused() -> None:
    detector = Heavy()
    detector.lock = threading.Lock()  # type: ignore[attr-defined]
    with pytest.raises(ConfigError, match="'heavy' has to be sent to another process, but pickling"):
        Workers([detector], 1)


@pytest.mark.slow
@pytest.mark.parametrize("reactor", ["asyncioreactor.AsyncioSelectorReactor", "selectreactor.SelectReactor"])
def test_a_crawl_makes_them_elsewhere(crawl: Any, a: Any, b: Any, reactor: str) -> None:
    a.pages["/0.html"], b.pages["/0.html"] = (Page(html(article(0), name)) for name in "ab")
    settings = {"NEARDUP_DETECTORS": ["heavy.NotHere"], "TWISTED_REACTOR": f"twisted.internet.{reactor}"}
    result = crawl("OneAfterAnother", settings, urls=[f"{site.url}/0.html" for site in (a, b)])
    assert result.count("duplicates/not_here") == result.count("duplicates") == 1


@pytest.mark.parametrize(
    "settings",
    [{"NEARDUP_DETECTORS": ["heavy.WhenTold"]}, *slow({"NEARDUP_EXTRACTOR": "heavy.read_when_told"})],
)
def test_the_crawl_goes_on_meanwhile_but_takes_in_no_more_than_it_has_room_for(
    crawl: Any, a: Any, tmp_path: Path, settings: dict[str, Any]
) -> None:
    padding = f"<!-- {'x' * 100_000} -->"
    for number in range(35):
        a.pages[f"/{number}.html"] = Page(html(article(number)) + padding)
    urls = [f"{a.url}/{number}.html" for number in range(35)]
    settings = {"SCRAPER_SLOT_MAX_ACTIVE_SIZE": 500_000, "CONCURRENT_REQUESTS": 8, **settings}
    result = crawl("Patient", settings, urls=urls, together=True, field="html", gate=str(tmp_path / "gate"))
    assert result.count("documents") == len(result.items) == 35
    assert 5 <= result.stats["received_before"] <= 20


def pages(extractor: Any, *htmls: str, count: int = 1) -> list[Any]:
    """Return each page as a process of its own reads it, or what went wrong."""

    async def read() -> list[Any]:
        return await asyncio.gather(*(workers.read(html) for html in htmls), return_exceptions=True)

    with closing(Workers([], count, extractor)) as workers:
        assert workers.reads
        return asyncio.run(read())


@pytest.mark.slow
def test_trafilatura_reads_elsewhere_what_it_reads_here() -> None:
    pytest.importorskip("trafilatura")
    html = f"<!doctype html><html><title>T</title><body><article><p>{text(1)}</p><p>{text(2)}</p></article></html>"
    assert pages("trafilatura", html) == [read_page(html, "trafilatura")]


@pytest.mark.slow
def test_what_an_extractor_raises_is_told() -> None:
    (wrong,) = pages(failing, "<p>x")
    assert isinstance(wrong, ProcessError)
    assert "no text in this page" in str(wrong)


@pytest.mark.parametrize(("extractor", "count"), [("builtin", 1), (len, 1), (reader, 0), ("trafilatura", 0)])
def test_no_page_is_read_elsewhere_where_that_is_quick_or_not_wanted(extractor: Any, count: int) -> None:
    assert not Workers([], count, extractor).reads


def test_an_extractor_that_can_not_be_sent_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"NEARDUP_EXTRACTOR: .* has to be sent to another process"):
        Workers([], 1, Locked())


class Locked:
    """An extractor that holds what is of this process."""

    heavy = True

    def __init__(self) -> None:
        self.lock = threading.Lock()

    def __call__(self, html: str) -> str:
        return html


KILLED = """
import asyncio, os, signal
from heavy import Heavy
from test_workers import documents
from scrapy_neardup.crawl.workers import Workers

(document,) = documents(1)
asyncio.run(Workers([Heavy()], 1).prepare(document))
print(document.ready["heavy"][0], flush=True)
os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.mark.slow
def test_a_crawl_that_is_killed_leaves_no_process_behind() -> None:
    worker = int(python(KILLED).stdout)
    until(lambda: not is_alive(worker))


def is_alive(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    return True
