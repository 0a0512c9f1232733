"""The report: its content, hostile values, its length, and what a real browser makes of it.

The tests with a browser need playwright and a Chromium on the PATH. Without these, they are skipped.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from cli import neardup, succeeded, told
from helpers import built, edited, signature, text
from lxml import html
from test_crawl_changes import crawled
from tiers import slow

from scrapy_neardup import Deduplicator, Document
from scrapy_neardup.report import COPIES, MOST, Report
from scrapy_neardup.signature import Evidence, Visit
from scrapy_neardup.store import Store, open_store

NOW = 1_795_000_000.0
NEAR = Evidence("simhash", 5, 0.8125, 0.9, 1.25, "layout")
EQUAL = Evidence("exact", 0, 1.0, 1.0, 1.0, "full")
HOSTILE = (
    "http://evil.example/</script><script>alert(1)</script>",
    "javascript:alert(1)",
    'http://evil.example/"><img src=x onerror=alert(1)>',
    "data:text/html,<script>alert(1)</script>",
    "http://[broken",
    "http://evil.example/\ud800",
    "http://evil.example/\u202egnp.exe",
    "HTTP://evil.example/$name'onmouseover='alert(1)",
    "",
)
RULES: tuple[Mapping[str, Any], ...] = (
    {
        **{"mirror": "x.example", "original": "y.example", "in_force": False, "known_by": "pages"},
        **{"confidence": 0.5, "same": 2, "near": 1, "different": 2},
    },
    {
        **{"mirror": "m.a.example/m/…", "original": "a.example", "in_force": True, "known_by": "pages"},
        **{"confidence": 0.9123, "same": 31, "near": 0, "different": 1},
    },
)
SMALL: tuple[tuple[str, dict[str, Evidence | None]], ...] = (
    ("http://a.example/1", {"http://m.a.example/1": NEAR}),
    ("http://a.example/2", {}),
    (
        "https://a.example/3?q=1",
        {"http://m.a.example/3": EQUAL, "http://b.example/": None, "http://a.example/print/3": NEAR},
    ),
)


def store(*clusters: tuple[str, Mapping[str, Evidence | None]]) -> Store:
    """Return a store of originals, each with the URLs of its copies and their evidence."""
    made = open_store(None, [])
    for url, copies in clusters:
        held = signature("", url=url)
        made.add(held)
        made.record(Visit(url, held, False, NOW - 60))
        for copy, evidence in copies.items():
            made.record(Visit(copy, held, True, NOW - 60, 1500, evidence))
    return made


def write(
    path: Path, held: Store, rules: Sequence[Mapping[str, Any]] = (), texts: Mapping[str, str] | None = None
) -> Path:
    path.write_bytes(Report(held, rules, NOW).page(texts or {}))
    return path


class Page:
    """A report as it is read: its text, its links, and its tables by the heading above them."""

    def __init__(self, path: Path) -> None:
        self.source = path.read_text(encoding="utf-8")
        self.tree = html.document_fromstring(self.source)

    def texts(self, path: str) -> list[str]:
        return [" ".join(found.text_content().split()) for found in self.tree.xpath(path)]

    def links(self) -> list[str]:
        return [href for href in self.tree.xpath("//a/@href") if not href.startswith("#")]

    def totals(self) -> dict[str, str]:
        return dict(zip(self.texts("//dt"), self.texts("//dd"), strict=True))

    def clusters(self, part: str = "clusters") -> dict[str, list[list[str]]]:
        """Return the rows of the copies by the heading of their cluster."""
        after = f"//details[h3 or summary/h3][preceding-sibling::h2[1]/@id='{part}']"
        found = self.tree.xpath(after)
        return {_said(each.find("summary")): _rows(each) for each in found}

    def rows(self, part: str) -> list[list[str]]:
        """Return the rows of the only table of a part."""
        (found,) = self.tree.xpath(f"//div[table][preceding-sibling::h2[1]/@id='{part}'][not(parent::details)]")
        return _rows(found)


def _said(element: Any) -> str:
    return " ".join(element.text_content().split())


def _rows(element: Any) -> list[list[str]]:
    return [[_said(cell) for cell in row.iter("td")] for row in element.iter("tr") if row.find("td") is not None]


# What is on the page


def test_clusters_come_largest_first_with_the_evidence_on_each_copy(tmp_path: Path) -> None:
    page = Page(write(tmp_path / "r.html", store(*SMALL)))
    clusters = page.clusters()
    assert list(clusters) == ["https://a.example/3?q=1", "http://a.example/1"]
    assert [copy for copy, *_ in clusters["https://a.example/3?q=1"]] == [
        *("http://a.example/print/3", "http://m.a.example/3", "http://b.example/")
    ]
    ((url, kind, detector, _, *measures),) = clusters["http://a.example/1"]
    assert (url, kind, detector) == ("http://m.a.example/1", "layout", "simhash")
    assert measures == ["0.812", "0.900", "1.250", "5", "1.5 kB"]
    assert page.totals() == {"Documents held": "3", "Clusters": "2", "Copies": "4", "Size of the copies": "6.0 kB"}
    assert set(page.links()) >= {"https://a.example/3?q=1", "http://m.a.example/1"}


def test_copies_of_least_resemblance_have_a_part_of_their_own(tmp_path: Path) -> None:
    doubtful = ("http://a.example/9", {"http://b.example/9": NEAR._replace(resemblance=0.4)})
    found = Page(write(tmp_path / "r.html", store(*SMALL, doubtful))).clusters("doubtful")
    (original, ((copy, *_),)), *_ = found.items()
    assert (original, copy) == ("http://a.example/9", "http://b.example/9")
    assert "http://m.a.example/3" not in str(found)  # it is equal


def test_copies_without_url_count_but_are_not_listed(tmp_path: Path) -> None:
    held = store(SMALL[0])
    for _ in range(2):
        held.record(Visit("", next(iter(held.signatures())), True, 1.0))
    page = Page(write(tmp_path / "r.html", held))
    assert len(page.clusters()["http://a.example/1"]) == 1
    assert "1 of 3 copies, the rest is left out" in page.source


def test_rules_come_surest_first_then_hosts_without_one(tmp_path: Path) -> None:
    rows = Page(write(tmp_path / "r.html", store(*SMALL), RULES)).rows("hosts")
    assert rows[:2] == [
        ["m.a.example/m/…", "a.example", "in force", "pages", "2", "0.912", "31", "0", "1"],
        ["x.example", "y.example", "not in force", "pages", "0", "0.500", "2", "1", "2"],
    ]
    assert sorted(row[:5] for row in rows[2:]) == [
        ["a.example", "a.example", "none", "–", "1"],
        ["b.example", "a.example", "none", "–", "1"],
    ]


def test_a_report_of_an_empty_store_says_so(tmp_path: Path) -> None:
    page = Page(write(tmp_path / "r.html", store()))
    assert (page.clusters(), page.rows("hosts"), page.rows("savings")) == ({}, [], [])
    assert "This store has seen no crawl." in page.source


def test_passwords_and_folders_are_left_out(tmp_path: Path) -> None:
    held = store(("http://me:secret@a.example/1", {"http://me:secret@b.example/1": EQUAL}))
    held.describe = lambda: {"store": "redis://me:secret@db/0"}  # type: ignore[method-assign]
    page = Page(write(tmp_path / "r.html", held))
    assert "secret" not in page.source
    assert page.links() == ["http://a.example/1", "http://b.example/1"]
    assert page.texts("//title") == ["Near-duplicates · 0"]


# What is safe, and short


def test_page_loads_nothing_and_runs_nothing(tmp_path: Path) -> None:
    page = Page(write(tmp_path / "r.html", store(*SMALL), RULES))
    assert "default-src 'none'" in page.source
    assert page.tree.xpath("//script | //img | //iframe | //object | //form | //*[@style]") == []
    assert page.tree.xpath("//@src | //link/@href[. != 'data:,']") == []
    assert page.tree.xpath("//@*[starts-with(name(), 'on')]") == []


def test_page_has_a_language_headings_in_order_and_captions(tmp_path: Path) -> None:
    page = Page(write(tmp_path / "r.html", store(*SMALL), RULES))
    assert page.tree.xpath("/html/@lang") == ["en"]
    levels = [int(found.tag[1]) for found in page.tree.xpath("//h1 | //h2 | //h3")]
    assert levels[0] == 1
    assert all(after <= before + 1 for before, after in pairwise(levels))
    assert page.tree.xpath("//table[not(caption)] | //th[not(@scope)]") == []
    ids = page.tree.xpath("//@id")
    assert [f"#{each}" for each in ids] == page.tree.xpath("//nav/a/@href")


def test_hostile_strings_stay_text(tmp_path: Path) -> None:
    path = write(tmp_path / "r.html", *hostile())
    page = Page(path)
    assert page.tree.xpath("//script | //img | //b") == []
    assert page.tree.xpath("//@*[starts-with(name(), 'on')]") == []
    assert {link.partition(":")[0].lower() for link in page.links()} == {"http"}
    assert "\u202e" not in page.source
    assert HOSTILE[0] in page.texts("//h3")
    assert page.texts("//h1") == ["Near-duplicates · in memory"]


def hostile() -> tuple[Store, list[Mapping[str, Any]], dict[str, str]]:
    """Return what a report is made of, each string with something that would run in a careless page."""
    evidence = NEAR._replace(kind="<img src=x onerror=alert(1)>", detector="</table><script>alert(1)</script>")
    clusters = [(url, {f"{other}#{n}": evidence for other in HOSTILE}) for n, url in enumerate(HOSTILE)]
    rule = {"mirror": "<script>alert(1)</script>", "original": 'a" onclick="alert(1)', "known_by": "<b>"}
    texts = dict.fromkeys(HOSTILE, "<script>alert(1)</script>\x00�")
    return store(*clusters), [{**rule, "in_force": True}], texts


def test_measures_that_are_no_numbers_do_no_harm(tmp_path: Path) -> None:
    odd = NEAR._replace(resemblance=float("nan"), length_ratio=float("inf"))
    held = store(("http://a.example/", {"http://b.example/": odd}))
    held.record(Visit("http://c.example/", next(iter(held.signatures())), True, 1e300, 10**18, odd))
    assert len(Page(write(tmp_path / "r.html", held)).clusters()["http://a.example/"]) == 2


def many(clusters: int, copies: int) -> Store:
    held, one = open_store(None, []), signature("")
    for n in range(clusters):
        original = built(f"http://a{n % 300}.example/{n:07}", {}, one.sketch, first_seen=NOW - 60)
        held.add(original)
        for copy in range(copies):
            held.record(Visit(f"http://b{n % 300}.example/{n:07}/{copy}", original, True, NOW - 60, 1500, NEAR))
    return held


@pytest.mark.parametrize(("clusters", "copies"), [(400, 2), *slow((5_000, 1)), (1, 2_000)])
def test_a_page_is_short_however_large_the_store(tmp_path: Path, clusters: int, copies: int) -> None:
    page = Page(write(tmp_path / "r.html", many(clusters, copies)))
    assert len(page.clusters()) == min(clusters, MOST)
    assert max(map(len, page.clusters().values())) == min(copies, COPIES)
    assert len(page.rows("hosts")) <= MOST
    assert page.totals()["Copies"] == f"{clusters * copies:,}"
    assert "the rest is left out" in page.source
    assert len(page.source) < 200_000


def test_a_long_url_is_cut_and_no_link(tmp_path: Path) -> None:
    long = "http://a.example/" + "long" * 100_000
    page = Page(write(tmp_path / "r.html", store((long, {f"{long}/2": NEAR, "http://b.example/": EQUAL}))))
    assert page.links() == ["http://b.example/"]
    assert len(page.source) < 20_000


# The command


@pytest.fixture
def held(tmp_path: Path) -> Path:
    with Deduplicator.open(str(tmp_path / "held.sqlite")) as dedup:
        for url, words in (("http://a.example/1", text(1)), ("http://b.example/1", edited(text(1), 100))):
            dedup.claim(Document(url, words)).commit()
    return tmp_path


def reported(folder: Path, *options: str) -> Page:
    """Run the command, and return the page that it wrote."""
    succeeded(folder, "report", "-o", "r.html", "--store", "held.sqlite", *options)
    return Page(folder / "r.html")


def test_command_writes_the_page(held: Path) -> None:
    made = succeeded(held, "report", "-o", "r.html", "--store", "held.sqlite")
    assert (made.stdout, made.stderr) == ("", "1 cluster of 1 document\n")
    page = Page(held / "r.html")
    ((url, *_, resemblance, _, _, _, _),) = page.clusters()["http://a.example/1"]
    assert (url, float(resemblance) > 0.8) == ("http://b.example/1", True)
    assert page.texts("//title") == ["Near-duplicates · held.sqlite"]


def test_runs_and_what_the_last_one_saw_change(crawl: Any, a: Any) -> None:
    crawled(crawl, a, {"stays": 1, "turns": 2, "goes": 3})
    crawled(crawl, a, {"stays": 1, "turns": 4, "comes": 5})
    runs = told(crawl.folder, "stats", "--runs", "--store", crawl.store)
    succeeded(crawl.folder, "report", "-o", "r.html", "--store", crawl.store)
    page = Page(crawl.folder / "r.html")
    rows = page.rows("savings")
    assert [row[0] for row in rows] == [run["run"] for run in reversed(runs)]
    assert [row[4:6] for row in rows] == [["1 new, 1 changed, 1 gone", "3"], ["3 new", "3"]]
    seen = [(kind, url.rpartition("/")[2]) for kind, url, *_ in page.rows("changes")]
    assert seen == [("new", "comes.html"), ("changed", "turns.html"), ("gone", "goes.html")]
    assert runs[-1]["run"] in page.texts("//caption")[1]


def test_command_shows_the_rules_of_the_settings(held: Path) -> None:
    rules = {"B.Example:80": "a.example", "d.example:8080": "a.example"}
    rows = reported(held, "-s", f"NEARDUP_MIRROR_HOSTS={json.dumps(rules)}").rows("hosts")
    assert [row[:5] for row in rows] == [
        ["b.example:80", "a.example", "in force", "NEARDUP_MIRROR_HOSTS", "1"],
        ["d.example:8080", "a.example", "in force", "NEARDUP_MIRROR_HOSTS", "0"],
        ["b.example", "a.example", "not in force", "pages", "1"],
    ]


def test_command_shows_the_beginnings_of_texts(held: Path) -> None:
    for name in "ab":
        row = {"url": f"http://{name}.example/1", "text": f"{name}:\n{text(1)}"}
        (held / f"{name}.jsonl").write_text(json.dumps(row))
    original, copy = reported(held, "--texts", "a.jsonl", "b.jsonl").texts("//p[@dir]")[:2]
    assert (original[:3], copy[:3], len(copy) > 200) == ("a: ", "b: ", True)
    assert text(1).startswith(copy[3:].removesuffix("…"))
    with (held / "b.jsonl").open("a") as feed:
        feed.write('\n{"url": "http://b.ex')  # a crawl is writing it
    made = neardup(held, "report", "-o", "r.html", "--store", "held.sqlite", "--texts", "a.jsonl", "b.jsonl")
    assert (made.returncode, (held / "r.html").exists()) == (1, True)
    assert made.stderr.endswith("1 unreadable row left out\n")


# In a browser


in_browser = pytest.mark.xdist_group("chromium")  # one browser, in one worker


@pytest.fixture(scope="module")
def chromium() -> Iterator[Any]:
    names = ("chromium", "chromium-browser", "google-chrome")
    path = next(filter(None, map(shutil.which, names)), None)
    if path is None:
        pytest.skip(f"no browser on the PATH: {', '.join(names)}")
    api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    with api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
        yield browser
        browser.close()


class Tab:
    """A page in a browser, and all that it complained of."""

    def __init__(self, chromium: Any, page: Path, width: int = 1280, scheme: str = "light") -> None:
        self.context = chromium.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme)
        self.page = self.context.new_page()
        self.complaints: list[str] = []
        self.requests: list[str] = []
        self.page.on("console", lambda message: self.complaints.append(message.text))
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.on("dialog", lambda dialog: (self.complaints.append(dialog.message), dialog.dismiss()))
        self.page.on("request", lambda request: self.requests.append(request.url))
        self.page.goto(page.as_uri())
        self.requests = [url for url in self.requests if url not in (page.as_uri(), "data:,")]

    def __enter__(self) -> Tab:
        return self

    def __exit__(self, *_: object) -> None:
        self.context.close()

    def texts(self, selector: str) -> list[str]:
        found: list[str] = self.page.locator(selector).all_inner_texts()
        return found


@pytest.mark.slow
@in_browser
@pytest.mark.parametrize("width", [1280, 390])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_page_opens_without_complaint(tmp_path: Path, chromium: Any, width: int, scheme: str) -> None:
    long = "http://a.example/" + "long" * 100
    page = write(tmp_path / "r.html", store(*SMALL, (long, {f"{long}/2": NEAR})), RULES)
    with Tab(chromium, page, width, scheme) as tab:
        assert (tab.complaints, tab.requests) == ([], [])
        assert tab.page.evaluate("document.documentElement.scrollWidth") <= width
        dark = tab.page.evaluate("getComputedStyle(document.querySelector('a')).color") == "rgb(116, 179, 247)"
        assert dark == (scheme == "dark")
        assert "http://a.example/1" in tab.texts("h3")


@pytest.mark.slow
@in_browser
def test_policy_lets_no_script_run(tmp_path: Path, chromium: Any) -> None:
    page = write(tmp_path / "r.html", store(*SMALL))
    page.write_text(page.read_text().replace("</body>", "<script>alert(1)</script></body>"))
    with Tab(chromium, page) as tab:
        (complaint,) = tab.complaints
        assert "Content Security Policy" in complaint
