"""Fixtures: two hosts (`a`, `b`), crawls of them in other processes, places for stores, and a server for one test."""

from __future__ import annotations

import gc
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any, get_args

import pytest
import scrapy
from forks import CRAWLS, FORKS, PYTHON, Fork
from life import Life
from redis_server import Server
from scrapy.utils.reactor import install_reactor
from site_server import Site, article, serving
from store_kinds import KINDS, Place
from tcp_proxy import TcpProxy

from scrapy_neardup import Deduplicator, Document
from scrapy_neardup.stats import BY_DETECTOR, PREFIX, Stat

if scrapy.version_info < (2, 15):  # before this version, Scrapy needs an installed reactor
    install_reactor("twisted.internet.asyncioreactor.AsyncioSelectorReactor")

HERE = Path(__file__).parent

# A process in the background, or under nohup, ignores these signals, and so would each process that a test starts.
signal.signal(signal.SIGINT, signal.default_int_handler)
signal.signal(signal.SIGHUP, signal.SIG_DFL)

gc.disable()  # until the tests are collected, since modules and tests all stay in memory


def pytest_collection_finish() -> None:
    gc.freeze()
    gc.enable()


@dataclass
class Crawl:
    """The outcome of a crawl."""

    items: list[dict[str, Any]]
    stats: dict[str, Any]
    log: str
    code: int
    errors: str

    def count(self, name: str) -> int:
        return self.stats.get(f"neardup/{name}", 0)

    @property
    def urls(self) -> list[str]:
        return [item["url"] for item in self.items]


def unknown(stats: dict[str, Any]) -> list[str]:
    """Return the stats of the plugin that neither scrapy_neardup.stats nor docs/contrib.md names."""
    names = [name.removeprefix(PREFIX) for name in stats if name.startswith(PREFIX)]
    known = {*get_args(Stat), "variants/learned", "variants/dropped"}
    return [name for name in names if name not in known and not name.startswith(BY_DETECTOR)]


class Crawler:
    """Runs crawls that share a store. Each crawl has its own feed."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.store = str(folder / "store.sqlite")
        self.runs = 0
        self.server: Server | None = None

    def start(
        self, spider: str = "ListSpider", settings: dict[str, Any] | None = None, **args: Any
    ) -> Fork | subprocess.Popen[str]:
        """Start a crawl in another process, and return the process. `finish` waits until it ends."""
        path = str(self.specify(spider, settings, args))
        if sys.executable == PYTHON:
            return FORKS.start(HERE, ["crawl", path], dict(os.environ))
        # A test has replaced the interpreter.
        return subprocess.Popen(
            [sys.executable, str(HERE / "crawl.py"), path], cwd=HERE, stderr=subprocess.PIPE, text=True
        )

    def specify(self, spider: str, settings: dict[str, Any] | None, args: dict[str, Any]) -> Path:
        """Write the file that tells crawl.py what the next crawl does, and return its path."""
        self.runs += 1
        paths = {name: str(self.folder / f"{name}{self.runs}.txt") for name in ("log", "stats")}
        spec = {
            "spider": spider,
            "patch": args.pop("patch", {}),
            "args": args,
            "settings": settings or {},
            "store": self.store,
            "output": str(self.feed(self.runs)),
            **paths,
        }
        path = self.folder / f"spec{self.runs}.json"
        path.write_text(json.dumps(spec))
        return path

    def hold(self, *urls: str, number: int = 1, words: int = 150) -> None:
        """Add an article to the store as a document of the first URL, with the other URLs as copies."""
        with Deduplicator.open(self.store) as dedup:
            for url in urls:
                dedup.claim(Document(url, article(number, words))).commit()

    def feed(self, run: int) -> Path:
        return self.folder / f"items{run}.jsonl"

    def items(self, run: int) -> list[dict[str, Any]]:
        """Return the items in the feed of a run, without a last line that is incomplete since the crawl was killed."""
        lines = self.feed(run).read_text().split("\n")[:-1] if self.feed(run).exists() else []
        return [json.loads(line) for line in lines]

    def log(self) -> str:
        """Return the last crawl's log so far."""
        path = self.folder / f"log{self.runs}.txt"
        return path.read_text() if path.exists() else ""

    def finish(self, process: Fork | subprocess.Popen[str]) -> Crawl:
        _, errors = process.communicate(timeout=120)
        return self.outcome(process.returncode, errors)

    def outcome(self, code: int, errors: str) -> Crawl:
        stats = self.folder / f"stats{self.runs}.txt"
        read = json.loads(stats.read_text()) if stats.exists() else {}
        return Crawl(self.items(self.runs), read, self.log(), code, errors)

    def __call__(
        self, spider: str = "ListSpider", settings: dict[str, Any] | None = None, *, alone: bool = False, **args: Any
    ) -> Crawl:
        """Crawl, and check that the crawl succeeded.

        `alone`: crawl in a process of its own. Other crawls share one process, unless they set a reactor. `patch` maps
        full names of module variables, such as `scrapy_neardup.crawl.middleware.MOST`, to values during this crawl.
        """
        has_reactor = any(name.startswith("TWISTED_REACTOR") for name in settings or {})
        if alone or has_reactor or sys.executable != PYTHON:
            crawl = self.finish(self.start(spider, settings, **args))
        else:
            crawl = self.outcome(*CRAWLS.run(self.specify(spider, settings, args)))
        assert crawl.code == 0, crawl.errors + crawl.log[-3000:]
        assert "Deprecat" not in crawl.log + crawl.errors
        assert unknown(crawl.stats) == []
        return crawl


@pytest.fixture
def crawl(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Crawler]:
    """Return a `Crawler` with a new store: in a file or, if the test or NEARDUP_TEST_STORE says so, on a server."""
    crawler = Crawler(tmp_path)
    if getattr(request, "param", os.environ.get("NEARDUP_TEST_STORE", "file")) == "file":
        yield crawler
        return
    with closing(Server()) as crawler.server:
        crawler.store = crawler.server.address
        yield crawler


@pytest.fixture(params=["keep", "drop"])
def life(crawl: Crawler, request: pytest.FixtureRequest) -> Life:
    """Return a `Life`, once for each value of NEARDUP_REVISIT that promises something about the feeds."""
    return Life(crawl, request.param)


@pytest.fixture(params=KINDS)
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    """Return a place for an empty store. The test runs twice, on disk and on a server, unless it names one kind."""
    return KINDS[request.param](tmp_path)


@pytest.fixture
def path(tmp_path: Path) -> str:
    """Return the path of a store that does not exist yet. Its folder has no other file."""
    (tmp_path / "folder").mkdir()
    return str(tmp_path / "folder" / "store.sqlite")


@pytest.fixture
def a() -> Iterator[Site]:
    with serving("127.0.0.1") as site:
        yield site


@pytest.fixture
def b() -> Iterator[Site]:
    with serving("127.0.0.2") as site:
        yield site


@pytest.fixture
def server() -> Iterator[Server]:
    with closing(Server()) as started:
        yield started


@pytest.fixture
def proxy(server: Server) -> Iterator[TcpProxy]:
    with TcpProxy(server.port) as made:
        yield made


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make stores wait only two seconds for an answer of their server, and try again after a tenth of a second."""
    monkeypatch.setattr("scrapy_neardup.store.redis_server.SECONDS", 2.0)
    monkeypatch.setattr("scrapy_neardup.store.redis_server.PAUSES", (0.01, 0.1))
