"""Scrapy's own commands in a project folder, or with only SCRAPY_SETTINGS_MODULE, as on scrapyd."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from subprocess import CompletedProcess

import pytest
import scrapy
from cli import FORKS, TIMEOUT, environment
from site_server import Site, article, mirror
from tiers import slow

from scrapy_neardup import Deduplicator, Document

SPIDER = """
import scrapy

class Pages(scrapy.Spider):
    name = "pages"

    async def start(self):
        yield scrapy.Request("data:,go", self.go, dont_filter=True)

    def go(self, response):
        for number, url in enumerate(self.urls.split()):
            yield scrapy.Request(url, priority=-number)

    def parse(self, response):
        '''
        @url {copy}
        @returns items 1 1
        '''
        yield {{"url": response.url, "text": " ".join(response.css("p::text, #content ::text").getall())}}
"""
SETTINGS = """
BOT_NAME = "shop"
SPIDER_MODULES = ["shop.spiders"]
ADDONS = {"scrapy_neardup.Addon": 500}
ROBOTSTXT_OBEY = False
TELNETCONSOLE_ENABLED = False
CONCURRENT_REQUESTS = 1
NEARDUP_RECHECK = 0  # else one copy in a hundred is fetched, and the port in its URL is another in each test
"""
LOOKS = {
    "fetch": ["fetch", "--nolog", "{}"],
    "parse": ["parse", "--nolog", "--pipelines", "--spider=pages", "{}"],
    "shell": ["shell", "--nolog", "-c", "response.text", "{}"],
    "shell of a spider": ["shell", "--nolog", "--spider=pages", "-c", "response.text", "{}"],
    "shell without a reactor": ["shell", "--nolog", "-s", "TWISTED_REACTOR_ENABLED=0", "-c", "response.text", "{}"],
    "fetch by a spider": ["fetch", "--nolog", "--spider=pages", "{}"],
}


@dataclass
class Project:
    """A project with one spider and the add-on, on a site of a page and its copy."""

    folder: Path
    original: str
    copy: str
    env: dict[str, str]

    @property
    def data(self) -> Path:
        return self.folder / ".scrapy"

    def call(self, *arguments: str) -> CompletedProcess[str]:
        """Call `scrapy` as in a shell."""
        fork = FORKS.start(self.folder, arguments, {**environment(), **self.env})
        try:
            said = fork.communicate(TIMEOUT)
        finally:
            fork.kill()
        return CompletedProcess(arguments, fork.wait(TIMEOUT), *said)

    def crawl(self, *arguments: str) -> CompletedProcess[str]:
        urls = f"urls={self.original} {self.copy}"
        return self.call("--loglevel=INFO", "crawl", "pages", "-O", "out.jsonl", "-a", urls, *arguments)

    def items(self) -> list[str]:
        return [json.loads(line)["url"] for line in (self.folder / "out.jsonl").read_text().splitlines()]

    def hold(self) -> None:
        """Have a store know the page, and the copy's URL, which a crawl does not fetch then."""
        self.data.mkdir()
        with Deduplicator.open(self.data / "neardup.sqlite") as dedup:
            for url in (self.original, self.copy):
                dedup.claim(Document(url=url, text=article(0))).commit()

    def contents(self) -> dict[str, bytes]:
        files = (file for file in self.folder.rglob("*") if file.is_file() and file.suffix not in (".py", ".pyc"))
        return {str(file.relative_to(self.folder)): file.read_bytes() for file in files}


def made(folder: Path, a: Site, b: Site, env: dict[str, str]) -> Project:
    original, copy = mirror(a, b, 1)
    (folder / "shop" / "spiders").mkdir(parents=True)
    (folder / "shop" / "__init__.py").touch()
    (folder / "shop" / "settings.py").write_text(SETTINGS)
    (folder / "shop" / "spiders" / "__init__.py").write_text(SPIDER.format(copy=copy))
    return Project(folder, original, copy, env)


@pytest.fixture
def project(tmp_path: Path, a: Site, b: Site) -> Project:
    (tmp_path / "scrapy.cfg").write_text("[settings]\ndefault = shop.settings\n")
    return made(tmp_path, a, b, {})


@pytest.fixture
def egg(tmp_path: Path, a: Site, b: Site) -> Project:
    """Return a project that is on the path of Python, with no scrapy.cfg."""
    return made(tmp_path, a, b, {"SCRAPY_SETTINGS_MODULE": "shop.settings", "PYTHONPATH": str(tmp_path)})


def one_line(text: str) -> bool:
    return text.count("\n") == 1 and "NEARDUP_STORE" in text and "JOBDIR" in text


# Commands of Scrapy's that look at a page


@pytest.mark.parametrize("look", [*list(LOOKS)[:3], *slow(*list(LOOKS)[3:])])
def test_looks_fetch_what_a_crawl_skips_and_leave_no_trace(project: Project, b: Site, look: str) -> None:
    project.hold()
    before = project.contents()
    made = project.call(*(part.format(project.copy) for part in LOOKS[look]))
    assert (made.returncode, made.stderr) == (0, "")
    assert article(0)[:50] in made.stdout
    assert b.asked() == ["/0.html"]
    assert project.contents() == before


def test_a_crawl_of_the_same_project_skips_it(project: Project, b: Site) -> None:
    project.hold()
    assert project.crawl().returncode == 0
    assert (b.asked(), project.items()) == ([], [project.original])


@pytest.mark.parametrize("look", [*list(LOOKS)[:1], *slow(*list(LOOKS)[1:])])
def test_looks_need_no_store(egg: Project, b: Site, look: str) -> None:
    made = egg.call(*(part.format(egg.copy) for part in LOOKS[look]))
    assert (made.returncode, made.stderr) == (0, "")
    assert article(0)[:50] in made.stdout
    assert egg.contents() == {}


def test_contracts_are_checked_on_the_page(project: Project, b: Site) -> None:
    project.hold()
    made = project.call("check")
    assert made.returncode == 0, made.stderr
    assert "Ran 1 contract" in made.stderr
    assert b.asked() == ["/0.html"]


# Where nothing tells the folder of the project


def test_a_crawl_without_a_place_for_its_store_stops_at_its_start(egg: Project, a: Site, b: Site) -> None:
    made = egg.crawl()
    assert made.returncode == (scrapy.version_info >= (2, 15))  # 2.14 says that all is well
    assert one_line(made.stderr.splitlines(keepends=True)[-1])
    assert (a.asked(), b.asked()) == ([], [])


def test_a_crawl_with_a_store_of_its_own_needs_no_project(egg: Project) -> None:
    assert egg.crawl("-s", "NEARDUP_STORE=held.sqlite").returncode == 0
    assert egg.items() == [egg.original]
    assert (egg.folder / "held.sqlite").exists()


@pytest.mark.parametrize("verb", ["stats", "mirrors", "stats --runs", "stats --check", "import rows.jsonl"])
def test_commands_without_a_place_for_the_store_say_so(egg: Project, verb: str) -> None:
    (egg.folder / "rows.jsonl").touch()
    made = egg.call("neardup", *verb.split())
    assert (made.returncode, made.stdout) == (2, "")
    assert one_line(made.stderr)
    assert list(egg.contents()) == ["rows.jsonl"]


def test_a_crawl_with_a_job_has_its_store_there_and_commands_find_it(egg: Project, b: Site) -> None:
    with (egg.folder / "shop" / "settings.py").open("a") as file:
        file.write('JOBDIR = "jobs/1"\n')
    assert "does not exist" in egg.call("neardup", "stats").stderr
    assert egg.contents() == {}
    assert egg.crawl().returncode == 0
    assert egg.items() == [egg.original]
    assert (egg.folder / "jobs/1/neardup.sqlite").exists()
    assert egg.crawl().returncode == 0
    assert b.asked() == ["/0.html"]  # in the first run
    assert json.loads(egg.call("neardup", "stats", "--json").stdout)["documents"] == 1


def test_doctor_names_the_setting(egg: Project) -> None:
    made = egg.call("neardup", "doctor")
    assert "error: NEARDUP_STORE = None is not allowed" in made.stdout
