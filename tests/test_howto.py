"""What the how-tos promise, in real crawls of projects that consist of the code blocks of the pages."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest
from cli import rows, succeeded
from helpers import run
from site_server import Page, Site, article, html
from transcript import BLOCK

HOWTO = Path(__file__).parents[1] / "docs" / "how-to"
pytestmark = pytest.mark.slow

SETTINGS = """
import warnings

from scrapy.exceptions import ScrapyDeprecationWarning

warnings.simplefilter("error", ScrapyDeprecationWarning)
SPIDER_MODULES = ["spiders"]
TELNETCONSOLE_ENABLED = HTTPPROXY_ENABLED = False
NEARDUP_RECHECK = 0
ADDONS = {"scrapy_neardup.Addon": 500}
"""
SPIDER = """
class NewsSpider(scrapy.Spider):
    name = "news"

    async def start(self):
        yield scrapy.Request("data:,go", self.list)

    def list(self, response):
        for number, url in enumerate(self.urls.split(",")):
            yield scrapy.Request(url, priority=-number)

    def parse(self, response):
        yield {"url": response.url, "html": response.text}
"""


def blocks(page: str) -> list[tuple[str, str]]:
    """Return title and body of a page's blocks of code."""
    found = BLOCK.findall((HOWTO / page).read_text(encoding="utf-8"))
    return [(title, body) for _, title, body in found]


def project(folder: Path, settings: str, *files: tuple[str, str], spider: str = SPIDER) -> None:
    """Lay out a project in a folder."""
    written = [("settings.py", SETTINGS + settings), ("spiders.py", "import scrapy\n" + spider), *files]
    for name, body in [*written, ("scrapy.cfg", "[settings]\ndefault = settings\n")]:
        (folder / name).write_text(body, encoding="utf-8")


def crawl(folder: Path, urls: list[str]) -> str:
    """Crawl, and return the log."""
    command = [sys.executable, "-m", "scrapy", "crawl", "news", "-a", f"urls={','.join(urls)}", "-O", "items.jsonl"]
    made = run(command, cwd=folder)
    assert made.returncode == 0, made.stderr
    assert "Deprecat" not in made.stderr
    return made.stderr


def stat(log: str, name: str) -> str:
    """Return a stat from the log's end; "" where nothing was counted."""
    found = re.search(rf"'{name}': ([^,}}]+)", log)
    return found[1].strip("'") if found else ""


def serve(site: Site, count: int, same: int = 0) -> list[str]:
    """Put so many articles on a site; `same` of them, from the second on, are the first one."""
    for n in range(count):
        site.pages[f"/{n}"] = Page(html(article(0 if 0 < n <= same else n)))
    return [f"{site.url}/{n}" for n in range(count)]


# Incremental crawls


@pytest.mark.parametrize("block", [0, 1], ids=["drop", "skip"])
def test_an_incremental_crawl_brings_what_is_new(tmp_path: Path, a: Site, block: int) -> None:
    project(tmp_path, blocks("incremental.md")[block][1])
    urls = serve(a, 3)
    crawl(tmp_path, urls)
    before = len(a.asked())
    a.pages["/3"] = Page(html(article(3)))
    crawl(tmp_path, [*urls, f"{a.url}/3"])
    assert [row["url"] for row in rows(tmp_path / "items.jsonl")] == [f"{a.url}/3"]
    assert len(a.asked()) - before == (4, 1)[block]


# From scrapy-deltafetch


def test_feeds_of_earlier_runs_have_their_urls_skipped(tmp_path: Path, a: Site) -> None:
    project(tmp_path, "")
    urls = serve(a, 4)
    crawl(tmp_path, urls[:3])
    (tmp_path / "items.jsonl").rename(tmp_path / "old.jsonl")
    before = len(a.asked())
    project(tmp_path, blocks("deltafetch.md")[0][1] + "NEARDUP_STORE = 'new.sqlite'\n")
    succeeded(tmp_path, "dedupe", "old.jsonl", "-o", "unique.jsonl", "--store", "new.sqlite")
    log = crawl(tmp_path, urls)
    assert [row["url"] for row in rows(tmp_path / "items.jsonl")] == urls[3:]
    assert (len(a.asked()) - before, stat(log, "neardup/requests/skipped")) == (1, "3")
    succeeded(tmp_path, "forget", "--before", "0 days", "--store", "new.sqlite")
    crawl(tmp_path, urls)
    assert len(rows(tmp_path / "items.jsonl")) == 4


# Watching crawls


def test_a_monitor_fails_a_crawl_whose_duplicate_share_jumps(tmp_path: Path, a: Site) -> None:
    pytest.importorskip("spidermon")
    code, settings = blocks("monitoring.md")[:2]
    spider = SPIDER.replace("scrapy.Spider", "LogsForSpidermon, scrapy.Spider")
    project(tmp_path, settings[1], code, spider=f"from monitors import LogsForSpidermon\n{spider}")
    urls = serve(a, 40, same=6)
    first = crawl(tmp_path, urls)
    assert "too few documents to compare" in first
    usual = crawl(tmp_path, urls)
    assert "their share has not jumped... OK" in usual
    serve(a, 40, same=36)
    jumped = crawl(tmp_path, urls)
    assert "FAIL: Duplicates/their share has not jumped" in jumped
    assert "all items were judged... OK" in jumped
    assert "] ERROR: [Spidermon]" in jumped
