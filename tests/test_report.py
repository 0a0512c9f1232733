"""The report: what is gathered, what is written, and what a real browser makes of it.

The tests with a browser need playwright and a Chromium on the PATH; without either they are skipped.
"""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest
from cli import neardup, refused, succeeded
from helpers import built, edited, signature, text
from tiers import slow

from scrapy_neardup import Deduplicator, Document
from scrapy_neardup.report.changes import KINDS
from scrapy_neardup.report.data import HostMirror, RunSummary, build
from scrapy_neardup.report.page import write_page
from scrapy_neardup.signature import Evidence, Visit
from scrapy_neardup.store import Store, memory_store
from scrapy_neardup.store.records import Run

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
)
HOSTS = [
    HostMirror("m.a.example", "a.example", 0.9123, 31, 1, True),
    HostMirror("x.example", "y.example", 0.5, 3, 2, False),
]
RUNS = [
    RunSummary("second", "", NOW - 100, None, {"neardup/documents": 7}),
    RunSummary(
        "first", "news", NOW - 900, NOW - 800, {"documents": 9, "requests/skipped": 4, "bytes_saved": 5_000_000}
    ),
]


def store(*clusters: tuple[str, dict[str, Evidence | None]]) -> Store:
    """Return a store of originals, each with the URLs of its copies and their evidence."""
    made = memory_store([])
    for url, copies in clusters:
        held = signature("", url=url)
        made.add(held)
        made.record(Visit(url, held, False, NOW - 60))
        for copy, evidence in copies.items():
            made.record(Visit(copy, held, True, NOW - 60, 1500, evidence))
    return made


SMALL = (
    ("http://a.example/1", {"http://m.a.example/1": NEAR}),
    ("http://a.example/2", {}),
    (
        "https://a.example/3?q=1",
        {"http://m.a.example/3": EQUAL, "http://b.example": None, "http://a.example/print/3": NEAR},
    ),
)


def write(path: Path, held: Store, hosts: Iterable[HostMirror] = (), runs: Iterable[RunSummary] = ()) -> Path:
    with path.open("wb") as file:
        write_page(build(held, hosts, runs, NOW), file)
    return path


def data_of(page: Path) -> Any:
    """Return the data in a page, as a browser would find its end."""
    found = re.search(r'<script type="application/json" id="data">(.*?)</script', page.read_text(), re.DOTALL)
    assert found
    return json.loads(found[1])


# What is gathered


def test_clusters_come_largest_first_in_columns() -> None:
    report = build(store(*SMALL), (), (), NOW)
    clusters, members = report["clusters"], report["members"]
    assert [report["origins"][n] for n in clusters["origin"]] == ["https://a.example", "http://a.example"]
    assert (clusters["path"], clusters["degree"], clusters["listed"]) == (["/3?q=1", "/1"], [3, 1], [3, 1])
    assert members["path"] == ["/3", "", "/print/3", 0]
    assert members["age"] == [60] * 4
    assert [report["kinds"][n] if n >= 0 else None for n in members["kind"]] == ["full", None, "layout", "layout"]
    assert members["hamming"] == [0, -1, 5, 5]
    assert members["resemblance"] == [10000, -1, 8125, 8125]
    assert members["ratio"] == [10000, -1, 12500, 12500]


def test_copies_without_url_count_but_are_not_listed() -> None:
    held = store(SMALL[0])
    for _ in range(2):
        held.record(Visit("", next(iter(held.signatures())), True, 1.0))
    report = build(held, (), (), NOW)
    assert (report["clusters"]["degree"], report["clusters"]["listed"]) == ([3], [1])


def test_edges_are_counted_by_host_and_joined_with_what_was_learned() -> None:
    report = build(store(*SMALL), HOSTS, (), NOW)
    names, edges = report["hosts"], report["edges"]
    rows = list(
        zip([names[n] for n in edges["mirror"]], [names[n] for n in edges["original"]], edges["urls"], strict=True)
    )
    assert rows[:2] == [("m.a.example", "a.example", 2), ("x.example", "y.example", 0)]
    assert sorted(rows[2:]) == [("a.example", "a.example", 1), ("b.example", "a.example", 1)]
    assert (edges["state"], edges["confidence"]) == ([2, 1, 0, 0], [9123, 5000, -1, -1])
    assert (edges["agreeing"], edges["disagreeing"]) == ([31, 3, -1, -1], [1, 2, -1, -1])


def test_of_two_rules_between_two_hosts_the_surest_is_shown() -> None:
    report = build(store(), [HOSTS[0], HOSTS[0]._replace(confidence=0.99, in_force=False)], (), NOW)
    assert (report["edges"]["state"], report["edges"]["confidence"]) == ([2], [9123])


def test_rules_of_the_settings_are_drawn_and_count_most() -> None:
    named = HostMirror(HOSTS[0].mirror, HOSTS[0].original, named=True)
    edges = build(store(*SMALL), [*HOSTS, named], (), NOW)["edges"]
    assert (edges["state"][0], edges["confidence"][0], edges["agreeing"][0], edges["urls"][0]) == (3, -1, -1, 2)


def test_runs_come_oldest_first() -> None:
    runs = build(store(), (), RUNS, NOW)["runs"]
    assert runs["writer"] == ["news", ""]
    assert (runs["id"], runs["documents"], runs["closed"]) == (["first", "second"], [9, 7], [int(NOW) - 800, -1])
    assert (runs["skipped"], runs["rescued"], runs["bytes"]) == ([4, 0], [0, 0], [5_000_000, 0])
    assert runs["changes"] == ["", ""]


def test_runs_have_the_changes_that_they_counted() -> None:
    counts = zip(KINDS, (3, 0, 1, 0, 0), strict=True)
    many = Run("many", NOW - 1).with_stats({f"changes/{kind}": count for kind, count in counts})
    quiet = Run("quiet", NOW).with_stats({f"changes/{kind}": 0 for kind in KINDS})
    runs = [RunSummary(run.id, run.writer, run.started, None, run.stats) for run in (many, quiet)]
    assert build(store(), (), runs, NOW)["runs"]["changes"] == ["3 new, 1 back", "no changes"]


def test_passwords_and_folders_are_left_out() -> None:
    held = store(("http://me:secret@a.example/1", {"http://me:secret@b.example/1": EQUAL}))
    held.describe = lambda: {"store": "redis://me:secret@db/0"}  # type: ignore[method-assign]
    report = build(held, (), (), NOW)
    assert report["origins"] == ["http://a.example", "http://b.example"]
    assert "secret" not in json.dumps(report)


def test_of_very_many_pairs_of_hosts_the_strongest_are_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("scrapy_neardup.report.data.MOST_EDGES", 2)
    report = build(store(*SMALL), HOSTS, (), NOW)
    assert (report["pairs"], report["edges"]["state"], len(report["hosts"])) == (4, [2, 1], 4)


# What is written


def test_page_loads_nothing_and_holds_its_data(tmp_path: Path) -> None:
    page = write(tmp_path / "r.html", store(*SMALL), HOSTS, RUNS)
    assert data_of(page) == json.loads(json.dumps(build(store(*SMALL), HOSTS, RUNS, NOW)))
    html = page.read_text()
    assert "default-src 'none'" in html
    assert "{{" not in html
    assert re.findall(r'<(?:script|link|img)[^>]* (?:src|href)=(?!"data:,")', html) == []
    assert re.findall(r"\son\w+=|innerHTML|insertAdjacentHTML|document\.write|url\(|@import", html) == []


def test_no_string_ends_the_data(tmp_path: Path) -> None:
    page = write(tmp_path / "r.html", store((HOSTILE[0], dict.fromkeys(HOSTILE[1:]))))
    assert len(data_of(page)["members"]["path"]) == len(HOSTILE) - 1
    assert "alert(1)</script" not in page.read_text()


# The command


@pytest.fixture
def held(tmp_path: Path) -> Path:
    with Deduplicator.open(str(tmp_path / "held.sqlite")) as dedup:
        for url, words in (("http://a.example/1", text(1)), ("http://b.example/1", edited(text(1), 100))):
            dedup.claim(Document(url, words)).commit()
    return tmp_path


def test_command_writes_the_page(held: Path) -> None:
    made = succeeded(held, "report", "-o", "r.html", "--store", "held.sqlite")
    assert (made.stdout, made.stderr) == ("", "1 cluster of 1 document\n")
    data = data_of(held / "r.html")
    assert (data["store"], data["members"]["path"]) == ({"name": "held.sqlite", "documents": 1}, [0])
    assert data["members"]["resemblance"][0] > 8000


def test_command_draws_the_rules_of_the_settings(held: Path) -> None:
    rule = 'NEARDUP_MIRROR_HOSTS={"b.example": "a.example"}'
    succeeded(held, "report", "-o", "r.html", "--store", "held.sqlite", "-s", rule)
    data = data_of(held / "r.html")
    assert (data["hosts"], data["edges"]["state"], data["edges"]["urls"]) == (["b.example", "a.example"], [3], [1])


def test_hosts_of_the_settings_are_those_of_the_urls(held: Path) -> None:
    rules = {"B.Example:80": "a.example", "c.example:443": "a.example.", "d.example:8080": "a.example"}
    rule = f"NEARDUP_MIRROR_HOSTS={json.dumps({**rules, 'bücher.de': 'e.de'})}"
    succeeded(held, "report", "-o", "r.html", "--store", "held.sqlite", "-s", rule)
    data = data_of(held / "r.html")
    wanted = ["a.example", "b.example", "c.example", "d.example:8080", "e.de", "xn--bcher-kva.de"]
    assert sorted(data["hosts"]) == wanted
    assert data["edges"]["state"] == [3] * 4


def test_command_shows_the_beginnings_of_texts(held: Path) -> None:
    rows = [{"url": f"http://{name}.example/1", "text": f"{name}:\n{text(1)}"} for name in "ab"]
    for row in rows:
        (held / f"{row['text'][0]}.jsonl").write_text(json.dumps(row))
    succeeded(held, "report", "-o", "r.html", "--store", "held.sqlite", "--texts", "a.jsonl", "b.jsonl")
    data = data_of(held / "r.html")
    [original], [copy] = data["clusters"]["snippet"], data["members"]["snippet"]
    assert (original[:3], copy[:3], len(copy) > 200) == ("a: ", "b: ", True)
    assert text(1).startswith(copy[3:])


def test_rules_say_how_paths_differ() -> None:
    edges = build(store(), [HOSTS[0]._replace(paths="/m/… → /…")], (), NOW)["edges"]
    assert edges["paths"] == ["/m/… → /…"]


@pytest.mark.parametrize("name", ["r.html.gz", "r.txt"])
def test_what_no_browser_opens_is_no_name_of_a_report(held: Path, name: str) -> None:
    assert refused(held, "report", "-o", name, "--store", "held.sqlite").endswith("; allowed is .html, .htm\n")


def test_command_of_an_empty_store(tmp_path: Path) -> None:
    Deduplicator.open(str(tmp_path / "held.sqlite")).close()
    assert neardup(tmp_path, "report", "-o", "r.html", "--store", "held.sqlite").returncode == 0
    assert data_of(tmp_path / "r.html")["clusters"]["degree"] == []


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

    def found(self, wanted: str) -> None:
        """Wait until the line above the clusters says so."""
        self.page.locator("#found").get_by_text(wanted, exact=True).wait_for(timeout=60_000)


@in_browser
@pytest.mark.parametrize(("width", "scheme"), [(1280, "light"), *slow((1280, "dark"), (390, "light"), (390, "dark"))])
def test_page_opens_without_complaint(tmp_path: Path, chromium: Any, width: int, scheme: str) -> None:
    long = "http://a.example/" + "long" * 100
    page = write(tmp_path / "r.html", store(*SMALL, (long, {f"{long}/2": NEAR})), HOSTS, RUNS)
    with Tab(chromium, page, width, scheme) as tab:
        tab.found("3 of 3 clusters")
        tab.page.locator("#map svg").first.wait_for()
        assert (tab.complaints, tab.requests) == ([], [])
        assert tab.page.evaluate("document.documentElement.scrollWidth") <= width
        assert tab.page.locator("#runs rect").count() == 10
        assert tab.page.locator("#map .map .edge").count() == 3
        assert "second" in tab.texts("#runs tbody tr")[0]
        tab.page.screenshot(path=str(tmp_path / "r.png"), full_page=True)
        assert (tmp_path / "r.png").stat().st_size > 10_000


@pytest.mark.slow
@in_browser
def test_the_map_tells_rules_of_the_settings(tmp_path: Path, chromium: Any) -> None:
    named = HostMirror("m.a.example", "a.example", named=True)
    with Tab(chromium, write(tmp_path / "r.html", store(*SMALL), [named], RUNS), 1280, "light") as tab:
        tab.page.locator("#map .edge.strong title").get_by_text("rule of the settings").wait_for(state="attached")
        assert "by the settings" in tab.texts("#map tbody tr")[0]
        assert tab.complaints == []


@pytest.mark.slow
@in_browser
def test_clusters_say_what_was_dropped_and_why(tmp_path: Path, chromium: Any) -> None:
    with Tab(chromium, write(tmp_path / "r.html", store(*SMALL))) as tab:
        assert tab.texts("#list h3") == ["https://a.example/3?q=1", "http://a.example/1"]
        copies = tab.texts("#list > li:first-child li .url")
        assert copies == ["http://m.a.example/3", "http://b.example", "http://a.example/print/3"]
        shown = " ".join(tab.texts("#list > li:last-child .evidence span"))
        assert "layout by simhash resemblance 0.813 containment 0.900 Hamming 5 length ratio 1.25 1.5 kB" in shown
        assert tab.page.locator("#list a").first.get_attribute("rel") == "noreferrer noopener"
        assert tab.page.locator("#runs").inner_text() == "This store has no statistics of its runs."


@pytest.mark.slow
@in_browser
def test_a_hundred_thousand_clusters(tmp_path: Path, chromium: Any) -> None:
    held, one = memory_store([]), signature("")
    for n in range(100_000):
        original = built(f"http://a.example/{n}", one.fingerprints, one.sketch, first_seen=NOW - 60)
        held.add(original)
        held.record(Visit(f"http://b.example/{n}", original, True, NOW - 60, 1500, NEAR))
    with Tab(chromium, write(tmp_path / "r.html", held)) as tab:
        tab.found("100,000 of 100,000 clusters, page 1 of 5,000")
        assert tab.page.locator("#list > li").count() == 20
        tab.page.fill("#text", "b.example/99998")
        tab.found("1 of 100,000 clusters")
        assert tab.texts("#list h3") == ["http://a.example/99998"]
        assert tab.complaints == []


@pytest.mark.slow
@in_browser
def test_search_and_filters(tmp_path: Path, chromium: Any) -> None:
    with Tab(chromium, write(tmp_path / "r.html", store(*SMALL))) as tab:
        tab.page.fill("#text", "PRINT")
        tab.found("1 of 2 clusters")
        assert tab.texts("#list li li .url") == ["http://a.example/print/3"]
        tab.page.fill("#text", "nowhere")
        tab.found("0 of 2 clusters")
        tab.page.fill("#text", "")
        tab.page.select_option("#kind", label="full")
        tab.found("1 of 2 clusters")
        tab.page.select_option("#detector", label="simhash")
        tab.found("0 of 2 clusters")
        tab.page.select_option("#kind", label="any")
        tab.found("2 of 2 clusters")
        assert len(tab.texts("#list li li")) == 2
        assert tab.complaints == []


@pytest.mark.slow
@in_browser
def test_clusters_are_shown_a_page_at_a_time(tmp_path: Path, chromium: Any) -> None:
    many = store(*((f"http://a.example/{n}", {f"http://b.example/{n}": NEAR}) for n in range(100, 145)))
    with Tab(chromium, write(tmp_path / "r.html", many)) as tab:
        tab.found("45 of 45 clusters, page 1 of 3")
        assert tab.page.locator("#list > li").count() == 20
        tab.page.get_by_role("button", name="Last").click()
        tab.found("45 of 45 clusters, page 3 of 3")
        assert tab.texts("#list h3") == [f"http://a.example/{n}" for n in range(140, 145)]


@pytest.mark.slow
@in_browser
def test_orders(tmp_path: Path, chromium: Any) -> None:
    doubtful = ("http://a.example/9", {"http://b.example/9": NEAR._replace(resemblance=0.4)})
    with Tab(chromium, write(tmp_path / "r.html", store(*SMALL, doubtful))) as tab:
        assert tab.texts("#list h3")[0] == "https://a.example/3?q=1"
        tab.page.select_option("#order", "doubt")
        tab.page.locator("#list > li:first-child h3").get_by_text("http://a.example/9").wait_for(timeout=5000)


@pytest.mark.slow
@in_browser
def test_copies_beyond_the_first_are_shown_on_demand(tmp_path: Path, chromium: Any) -> None:
    large = store(("http://a.example/", {f"http://b.example/{n}": NEAR for n in range(120)}))
    with Tab(chromium, write(tmp_path / "r.html", large)) as tab:
        assert tab.page.locator("#list li li").count() == 5
        for count in (105, 120):
            tab.page.get_by_role("button", name="more of 120 copies").click()
            assert tab.page.locator("#list li li").count() == count
        assert tab.page.get_by_role("button", name="more of 120 copies").count() == 0


@pytest.mark.slow
@in_browser
def test_a_very_long_url_takes_three_lines(tmp_path: Path, chromium: Any) -> None:
    long = "http://a.example/" + "long" * 500
    with Tab(chromium, write(tmp_path / "r.html", store((long, {f"{long}/2": NEAR}))), 390) as tab:
        tab.found("1 of 1 cluster")
        found = tab.page.locator("#list .url")
        assert all(10 < url.bounding_box()["height"] < 80 for url in found.all())
        assert [url.get_attribute("title") for url in found.all()] == [long, f"{long}/2"]
        assert tab.texts("#list li li .url") == [f"{long}/2"]  # to be copied


@pytest.mark.slow
@in_browser
def test_hostile_strings_do_nothing(tmp_path: Path, chromium: Any) -> None:
    evidence = NEAR._replace(kind="<img src=x onerror=alert(1)>", detector="</script><script>alert(1)</script>")
    clusters = [(url, dict.fromkeys((f"{other}#{n}" for other in HOSTILE), evidence)) for n, url in enumerate(HOSTILE)]
    hosts = [HostMirror("<script>alert(1)</script>", "javascript:alert(1)", 0.9, 1, 0, True)]
    runs = [RunSummary("<img src=x onerror=alert(1)>", "<b>news</b>", NOW, None, {})]
    with Tab(chromium, write(tmp_path / "r.html", store(*clusters), hosts, runs)) as tab:
        tab.found("6 of 6 clusters")
        tab.page.evaluate("new Promise((done) => requestIdleCallback(done))")  # all scripts have run
        assert (tab.complaints, tab.requests) == ([], [])
        assert tab.page.locator("img").count() == 0
        assert tab.page.locator("script").count() == 1
        addresses = tab.page.evaluate("[...document.links].map((link) => link.protocol)")
        assert set(addresses) == {"http:", "file:"}  # file: the links within the page
        assert HOSTILE[0] in tab.texts("#list h3")


@pytest.mark.slow
@in_browser
def test_policy_lets_no_other_script_run(tmp_path: Path, chromium: Any) -> None:
    page = write(tmp_path / "r.html", store(*SMALL))
    page.write_text(page.read_text().replace("</body>", "<script>alert(1)</script></body>"))
    with Tab(chromium, page) as tab:
        tab.found("2 of 2 clusters")
        (complaint,) = tab.complaints
        assert "Content Security Policy" in complaint


@pytest.mark.slow
@in_browser
def test_empty_store(tmp_path: Path, chromium: Any) -> None:
    with Tab(chromium, write(tmp_path / "r.html", store())) as tab:
        tab.found("This store knows no copies.")
        assert tab.page.locator("#map").inner_text() == "No host mirrors another."
        assert tab.complaints == []


@pytest.mark.slow
@in_browser
def test_snippets_and_the_kinds(tmp_path: Path, chromium: Any) -> None:
    page = tmp_path / "r.html"
    with page.open("wb") as file:
        write_page(build(store(SMALL[0]), (), (), NOW, {"http://a.example/1": "<b>The</b> ferry"}), file)
    with Tab(chromium, page) as tab:
        assert tab.texts("#list .snippet") == ["<b>The</b> ferry"]
        tab.page.get_by_text("What the kinds mean").click()
        assert tab.texts(".kinds dt") == ["full", "content", "layout", "partial"]
        assert tab.complaints == []


@pytest.mark.slow
@in_browser
def test_on_a_phone_a_run_is_a_list(tmp_path: Path, chromium: Any) -> None:
    with Tab(chromium, write(tmp_path / "r.html", store(*SMALL), HOSTS, RUNS), 390) as tab:
        cells = tab.page.locator("#runs tbody tr:last-child td")
        assert all(cell.bounding_box()["width"] > 250 for cell in cells.all())
        assert tab.page.evaluate("document.documentElement.scrollWidth") <= 390
        tops = [cell.bounding_box()["y"] for cell in cells.all()]
        assert tops == sorted(set(tops))
