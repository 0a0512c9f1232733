"""`scrapy neardup lab cluster`, each call in a process of its own."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from cli import refused, rows, succeeded, write
from helpers import edited, text, write_labelled
from tiers import slow

ROWS: list[dict[str, Any]] = [
    {"id": "a", "url": "http://one.example/a", "title": "First", "kind": "x", "text": text(1)},
    {"id": "b", "url": "http://one.example/b", "title": "Second", "kind": "y", "text": text(2)},
    {"id": "c", "title": "First again", "kind": "x", "text": edited(text(1), 50, 100)},
    {"id": "d", "title": "Nothing", "text": ""},
    {"id": "e", "url": "http://two.example/", "title": "Third", "kind": "x", "text": text(3)},
    {"id": 6, "title": "Second again", "kind": "y", "text": f"<p>{edited(text(2), 20)}</p>"},
    {"id": "g", "title": "First once more", "kind": "x", "text": edited(text(1), 150)},
]
WANTED = [{"cluster": 1, "documents": ["a", "c", "g"]}, {"cluster": 2, "documents": ["b", 6]}]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write(tmp_path / "in.jsonl", ROWS)
    return tmp_path


def clustered(folder: Path, *arguments: str) -> list[dict[str, Any]]:
    """Return the clusters of in.jsonl."""
    succeeded(folder, "lab", "cluster", "in.jsonl", "-o", "out.jsonl", *arguments)
    return rows(folder / "out.jsonl")


def test_what_dedupe_decides_is_the_default(folder: Path) -> None:
    made = succeeded(folder, "lab", "cluster", "in.jsonl", "-o", "out.jsonl", "--id-field", "id")
    assert rows(folder / "out.jsonl") == WANTED
    assert made.stdout == ""
    assert made.stderr.splitlines()[-1] == "7 rows, 6 documents, 2 clusters of 5 documents"
    assert clustered(folder, "--id-field", "id", "--method", "dedupe") == WANTED


def test_som_clusters_as_wanted(folder: Path) -> None:
    pytest.importorskip("minisom")
    assert clustered(folder, "--id-field", "id", "--method", "som") == WANTED


def test_without_id_field_documents_go_by_url_or_row_number(folder: Path) -> None:
    assert [entry["documents"] for entry in clustered(folder)] == [
        ["http://one.example/a", 3, 7],
        ["http://one.example/b", 6],
    ]
    assert clustered(folder, "--url-field", "title")[1]["documents"] == ["Second", "Second again"]


def test_several_feeds_gzipped_with_other_names(tmp_path: Path) -> None:
    renamed = [{"main": row["text"], "text": "", "where": row["id"]} for row in ROWS]
    write(tmp_path / "one.jsonl.gz", renamed[:3])
    write(tmp_path / "two.jsonl", renamed[3:])
    options = ("--text-field", "main", "--id-field", "where")
    succeeded(tmp_path, "lab", "cluster", "one.jsonl.gz", "two.jsonl", "-o", "out.jsonl.gz", *options)
    assert rows(tmp_path / "out.jsonl.gz") == WANTED


def test_settings_decide_what_is_a_cluster(folder: Path) -> None:
    assert clustered(folder, "-s", "NEARDUP_RESEMBLANCE=1") == []
    assert clustered(folder, "-s", "NEARDUP_MIN_TOKENS=500") == []


def test_help_says_what_som_is_for(tmp_path: Path) -> None:
    said = succeeded(tmp_path, "lab", "cluster", "--help").stdout
    assert "1,000 long documents" in said
    assert "scrapy-neardup[som]" in said


def test_without_minisom_it_says_what_to_install(folder: Path) -> None:
    (folder / "minisom.py").write_text("raise ModuleNotFoundError('not here')")
    # The folder comes before what is installed.
    said = refused(folder, "lab", "cluster", "in.jsonl", "-o", "out.jsonl", "--method", "som")
    needed = "--method som needs MiniSom: pip install 'scrapy-neardup[som]' (not here)"
    assert said == f"scrapy neardup lab cluster: {needed}\n"


@pytest.mark.parametrize("error", ["BrokenPipeError(32, 'gone')", *slow("ModuleNotFoundError('not here')")])
def test_a_detector_that_fails_is_told_with_its_document(folder: Path, error: str) -> None:
    """Neither the output nor MiniSom is named in its place."""
    (folder / "mine.py").write_text(
        "from scrapy_neardup.detectors import Exact\n\n"
        f"class Mine(Exact):\n    def fingerprints(self, document):\n        raise {error}\n"
    )
    mine = ("-s", "NEARDUP_DETECTORS=mine.Mine")
    said = refused(folder, "lab", "cluster", "in.jsonl", "-o", "out.jsonl", *mine)
    assert said == f"scrapy neardup lab cluster: document 'http://one.example/a': {error}\n"
    write_labelled(folder / "news")
    for verb in ("evaluate", "calibrate --precision 0.9"):
        said = refused(folder, "lab", *verb.split(), "news", *mine)
        assert said.endswith(f": document 'a0': {error}\n")
