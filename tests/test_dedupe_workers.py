"""`scrapy neardup dedupe --workers N`: its output does not depend on N, and how it fails."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest
from cli import neardup, refused, rows, succeeded, write
from helpers import edited, text
from site_server import html
from tiers import slow

CHINESE = "秋天的傍晚河边的老桥上站满了看风筝的人孩子们跑来跑去卖茶的老人把水烧开远处的山慢慢变成蓝色船从桥下过去"
TEMPLATE = "\n".join(text(900 + line, 40) for line in range(4))
WORDS = 60  # of most texts


def made_up(count: int = 250) -> list[dict[str, Any]]:
    """Return rows of all kinds, among them copies of earlier ones, and pages of one site that share its template."""
    source = random.Random(7)
    return [{"id": f"r{number}", **_row(source, number)} for number in range(count)]


def _row(source: random.Random, number: int) -> dict[str, Any]:
    origin = source.randrange(number // 2 + 1)
    body = edited(text(origin, WORDS), *source.sample(range(WORDS), source.choice((0, 0, 1, 2, 20))))
    url = f"http://{source.choice('abc')}.example/{number}"
    kinds: list[dict[str, Any]] = [
        {"url": url, "text": body},
        {"url": f"http://a.example/{origin}", "text": body},
        {"text": body},
        {"url": url, "html": html(body, "a", "p"), "title": "A title"},
        {"url": f"http://t.example/{number}", "text": f"{TEMPLATE[:400]}\n{body}\n{TEMPLATE[400:]}"},
        {"url": f"http://t.example/{number}", "html": html(f"{body}", "t") + TEMPLATE},
        {
            "url": url,
            "text": "".join(random.Random(origin).choices(CHINESE, k=150)) + "。又是一年。" * source.randrange(3),
        },
        source.choice([{"url": url}, {"text": "  "}, {"text": "?!"}, {"text": 7}, {"text": "\ud800 " + body}]),
    ]
    return source.choice(kinds)


def outcome(folder: Path, *options: str) -> tuple[bytes, bytes, str]:
    made = succeeded(
        folder, "dedupe", "in.jsonl", "-o", "out.jsonl", "--duplicates", "dups.jsonl", "--id-field", "id", *options
    )
    return (folder / "out.jsonl").read_bytes(), (folder / "dups.jsonl").read_bytes(), made.stderr


@pytest.fixture(scope="module")
def expected(tmp_path_factory: pytest.TempPathFactory) -> tuple[bytes, bytes, str]:
    """Return what one process makes of the feed."""
    folder = tmp_path_factory.mktemp("one")
    write_rows(folder, made_up())
    return outcome(folder, "--workers", "0")


def write_rows(folder: Path, made: list[dict[str, Any]]) -> None:
    (folder / "in.jsonl").write_text("".join(json.dumps(row) + "\n" for row in made))


def test_the_feed_has_something_of_everything(tmp_path: Path, expected: tuple[bytes, bytes, str]) -> None:
    (tmp_path / "dups.jsonl").write_bytes(expected[1])
    found = rows(tmp_path / "dups.jsonl")
    assert {row["status"] for row in found} == {"duplicate", "revisit"}
    assert {"full", "content", None} <= {row["kind"] for row in found}
    assert 50 < len(found) < 200


@pytest.mark.parametrize("options", ["--workers 2", *slow("", "--workers 1", "--workers 4")])
def test_output_is_the_same_for_every_number_of_workers(
    tmp_path: Path, expected: tuple[bytes, bytes, str], options: str
) -> None:
    write_rows(tmp_path, made_up())
    assert outcome(tmp_path, *options.split()) == expected


@pytest.mark.slow
def test_one_of_the_template_is_told_apart_by_what_only_the_text_shows(tmp_path: Path) -> None:
    made = [{"id": n, "url": f"http://t.example/{n}", "text": f"{TEMPLATE}\n{text(n, 40)}"} for n in range(5)]
    write_rows(tmp_path, made)
    assert outcome(tmp_path, "--workers", "2")[0].count(b"\n") == 5


# What fails

DETECTOR = """
import os, pathlib, threading
from scrapy_neardup.row_index import Equal

class Odd:
    name, scheme = "odd", "1"

    def fingerprints(self, document):
        if document.text.startswith("fail"):
            raise OSError("no fingerprint")
        if document.text.startswith("wrong"):
            return ("one",)
        if document.text.startswith("die"):
            os._exit(1)
        if document.text.startswith("print"):
            print("printed")
        return ()

    def index(self):
        return Equal()

class Counted(Odd):
    def __reduce__(self):
        return begun, ()

def begun():
    pathlib.Path(f"process-{os.getpid()}").touch()
    return Counted()

class Locked(Odd):
    def __init__(self):
        self.lock = threading.Lock()
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """Return a project with detectors of its own."""
    (tmp_path / "scrapy.cfg").write_text("[settings]\ndefault = shop\n")
    (tmp_path / "shop.py").write_text("NEARDUP_DETECTORS = ['exact', 'odd.Odd']\n")
    (tmp_path / "odd.py").write_text(DETECTOR)
    return tmp_path


def with_one(folder: Path, start: str, place: int = 89) -> tuple[str, ...]:
    """Write a feed of which one text begins so; return the call."""
    write(folder / "in.jsonl", [{"text": f"{start if n == place else 'an'} {text(n, 30)}"} for n in range(200)])
    return ("dedupe", "in.jsonl", "-o", "out.jsonl", "--workers")


@pytest.mark.parametrize(
    ("start", "message"), [("fail", "OSError('no fingerprint')"), *slow(("wrong", "detector 'odd'"))]
)
def test_a_row_that_a_detector_fails_on_is_named(project: Path, start: str, message: str) -> None:
    call = with_one(project, start)
    said = refused(project, *call, "1")
    assert "row 90: " in said
    assert message in said
    assert refused(project, *call, "2") == said


def test_the_rows_of_a_batch_that_kills_its_process_are_named_and_no_other_process_was_started(project: Path) -> None:
    made = neardup(project, *with_one(project, "die"), "2", "-s", "NEARDUP_DETECTORS=odd.Counted")
    assert (made.returncode, made.stderr.count("\n")) == (2, 1), made.stderr
    assert "rows 1 to 200: a process died with exit code 1" in made.stderr
    assert len(list(project.glob("process-*"))) == 1  # all rows are one batch
    assert not (project / "out.jsonl").exists()


@pytest.mark.slow
def test_what_a_detector_prints_harms_nothing(project: Path) -> None:
    assert "200 rows, 200 kept" in succeeded(project, *with_one(project, "print"), "2").stderr


@pytest.mark.slow
@pytest.mark.parametrize(("count", "most"), [(10, 1), (200, 1), (300, 2), (600, 3)])
def test_no_more_processes_are_started_than_there_is_work_for(project: Path, count: int, most: int) -> None:
    write(project / "in.jsonl", [{"text": text(n, 30)} for n in range(count)])
    succeeded(
        project, "dedupe", "in.jsonl", "-o", "out.jsonl", "--workers", "50", "-s", "NEARDUP_DETECTORS=odd.Counted"
    )
    assert 1 <= len(list(project.glob("process-*"))) <= most  # the last ones may end before they begin
    assert (project / "out.jsonl").read_bytes() == (project / "in.jsonl").read_bytes()


def test_a_detector_that_can_not_be_sent_is_refused(project: Path) -> None:
    made = neardup(project, *with_one(project, "an"), "2", "-s", "NEARDUP_DETECTORS=odd.Locked")
    assert made.returncode == 2
    assert "NEARDUP_DETECTORS: 'odd' has to be sent to another process, but pickling fails" in made.stderr
    succeeded(project, *with_one(project, "an"), "1", "-s", "NEARDUP_DETECTORS=odd.Locked")
