"""The documentation as a web site, its Chinese pages, and what the README shows."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import first_job
import pytest
from forks import FORKS
from helpers import run
from test_docs import PAIRS
from test_report import chromium, in_browser  # noqa: F401 - a fixture
from transcript import BLOCK

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
LOADED = re.compile(r"<(?:script|img|iframe)[^>]*\ssrc=\"?([^\s\">]+)|<link[^>]*\shref=\"?([^\s\">]+)|url\(([^)]+)\)")


def read(path: Path) -> str:
    return path.read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build the site, with warnings as errors."""
    pytest.importorskip("material", reason="needs the extra docs")
    folder = tmp_path_factory.mktemp("site")
    made = run([sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(folder)], cwd=ROOT)
    assert made.returncode == 0, made.stderr
    return folder


@pytest.mark.slow
def test_every_page_is_in_the_site(site: Path) -> None:
    sources = {path for path in DOCS.rglob("*.md") if path.name not in ("README.md", "package.md")}
    pages = {path.relative_to(DOCS).with_suffix(".html") for path in sources}
    assert [page for page in sorted(pages) if not (site / page).is_file()] == []
    assert "scrapy-neardup" in read(site / "index.html")
    assert (site / "zh" / "index.html").is_file()


@pytest.mark.slow
def test_what_is_linked_to_outside_the_docs_comes_along(site: Path) -> None:
    assert read(site / "LICENSE") == read(ROOT / "LICENSE")
    queue = Path("example_project", "fleet", "queue.py")
    assert read(site / queue) == read(ROOT / queue)
    assert 'href="example_project/fleet/queue.py"' in read(site / "scaling.html")


@pytest.mark.slow
def test_nothing_is_loaded_from_elsewhere(site: Path) -> None:
    files = [*site.rglob("*.html"), *site.rglob("*.css")]
    loaded = {"".join(found).strip("'\"") for file in files for found in LOADED.findall(read(file))}
    assert "assets" in " ".join(loaded)
    assert [address for address in loaded if re.match(r"(https?:)?//", address)] == []


@pytest.mark.slow
@in_browser
@pytest.mark.parametrize(
    ("words", "page"), [("NEARDUP_UNCLEAN_RUN", "reference/settings"), ("增量", "zh/how-to/incremental")]
)
def test_the_search_finds_english_and_chinese_without_a_network(
    site: Path,
    chromium: Any,  # noqa: F811
    words: str,
    page: str,
) -> None:
    with served(site) as home, closing(chromium.new_context()) as context:
        tab = context.new_page()
        asked: list[str] = []
        tab.on("request", lambda request: asked.append(request.url))
        assert any(search(tab, home, words, page) for _ in range(10))
    assert [url for url in asked if not url.startswith((home, "data:", "blob:"))] == []


def search(tab: Any, home: str, words: str, page: str) -> bool:
    """Open the site and search. Return whether a page was found within a few seconds; the search may not be up yet."""
    tab.goto(f"{home}/index.html")
    tab.locator("input[name=query]").press_sequentially(words)
    link = tab.locator(f".md-search-result__link[href*='{page}']")
    with suppress(pytest.importorskip("playwright.sync_api").TimeoutError):
        link.first.wait_for(state="attached", timeout=5000)
    return bool(link.count())


class Server(ThreadingHTTPServer):
    request_queue_size = 100  # a browser asks for many files at once


@contextmanager
def served(folder: Path) -> Iterator[str]:
    """Serve a folder on a free port; return its address."""
    handler = partial(QuietHandler, directory=str(folder))
    with Server(("127.0.0.1", 0), handler) as server:
        thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()


class QuietHandler(SimpleHTTPRequestHandler):
    def log_message(self, *args: object) -> None: ...


# Chinese


@pytest.mark.parametrize(("english", "chinese"), PAIRS, ids=lambda path: str(path.relative_to(ROOT)))
def test_chinese_says_what_english_says(english: Path, chinese: Path) -> None:
    """Compare headings, code, settings and the number of links. test_docs.py compares what tables say."""
    one, other = read(english), read(chinese)
    assert BLOCK.findall(one) == BLOCK.findall(other)
    for what in (r"^(#+) ", r"\bNEARDUP_\w+", r"^ {4,}\S.*--.*$"):
        assert sorted(re.findall(what, one, re.MULTILINE)) == sorted(re.findall(what, other, re.MULTILINE)), what
    assert len(re.findall(r"\]\(", one)) == len(re.findall(r"\]\(", other))


def test_the_readmes_lead_to_each_other() -> None:
    assert "](README.zh-CN.md)" in read(ROOT / "README.md")
    assert "](README.md)" in read(ROOT / "README.zh-CN.md")


# What the README shows


@pytest.mark.slow
@pytest.mark.parametrize("late", [None, 8001, 8002], ids=["both alike", "the Courier is late", "the Echo is late"])
def test_the_first_job_gives_what_the_readme_shows(tmp_path: Path, late: int | None) -> None:
    log, rows = first_job.do(tmp_path, late)
    assert len(first_job.shown()) == 4
    assert [line for line in first_job.shown() if line not in log] == []
    assert rows == 4


def test_the_example_in_python_prints_what_it_says(tmp_path: Path) -> None:
    page = read(ROOT / "README.md")
    code = next(body for _, _, body in BLOCK.findall(page) if "Deduplicator" in body)
    said = page.partition(code)[2].partition("\n\n    ")[2].partition("\n")[0]
    assert FORKS.start(tmp_path, ["code", code], dict(os.environ)).communicate() == (f"{said}\n", "")
