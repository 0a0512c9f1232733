"""`scrapy neardup lab evaluate`, `lab calibrate` and `lab lexicon`, each call in a process of its own."""

from __future__ import annotations

import ast
import gzip
import json
from pathlib import Path
from typing import Any

import pytest
from cli import refused, succeeded, told
from helpers import text, words, write_labelled, write_rows

from scrapy_neardup import Config, Deduplicator, Document, StoreError
from scrapy_neardup.fingerprints.lexicon import Lexicon
from scrapy_neardup.settings import BUILTIN_DETECTORS


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return a directory with the labelled set `news`."""
    write_labelled(tmp_path / "news")
    return tmp_path


def evaluated(folder: Path, *arguments: str) -> list[dict[str, Any]]:
    """Return the rows of the first set."""
    results: list[dict[str, Any]] = told(folder, "lab", "evaluate", "news", *arguments)[0]["results"]
    return results


# Evaluate


def test_evaluate_measures_each_detector_and_all_together(folder: Path) -> None:
    rows = {" ".join(row["detectors"]): row for row in evaluated(folder)}
    assert list(rows) == ["exact", "imatch", "simhash", "shingle", "exact imatch simhash shingle"]
    together = rows["exact imatch simhash shingle"]
    assert together["strict"] == {
        "precision": 0.8, "recall": 1.0, "f1": 0.8889, "right": 40, "wrong": 10, "missed": 0,
    }  # fmt: skip
    assert together["found"] == {"different": [10, 10], "dup": [40, 40]}
    assert together["candidates_per_document"] == 0.5
    assert together["documents_per_second"] > 0
    assert rows["exact"]["strict"]["recall"] == 0
    assert rows["exact"]["candidates_per_document"] == 0


def test_evaluate_prints_a_table(folder: Path) -> None:
    printed = succeeded(folder, "lab", "evaluate", "news").stdout.splitlines()
    assert printed[0] == "news: 100 documents"
    assert printed[1].split() == ["P", "R", "F1", "lenient", "hard", "cand./doc", "docs/s", "bytes/doc"]
    assert printed[-2].split()[:7] == ["exact", "imatch", "simhash", "shingle", "0.8000", "1.0000", "0.8889"]
    assert printed[-1] == "labelled pairs found in the last line: different 10 of 10, dup 40 of 40"


def test_evaluate_with_settings_and_chosen_detectors(folder: Path) -> None:
    rows = evaluated(folder, "--detectors", "exact,shingle", "-s", "NEARDUP_RESEMBLANCE=0.75")
    assert [row["detectors"] for row in rows] == [["exact"], ["shingle"], ["exact", "shingle"]]
    assert [row["strict"]["wrong"] for row in rows] == [0, 0, 0]
    assert len(evaluated(folder, "--detectors", "shingle")) == 1


def test_evaluate_without_verification(folder: Path) -> None:
    (raw,) = evaluated(folder, "--detectors", "shingle", "--unverified", "-s", "NEARDUP_RESEMBLANCE=1")
    assert raw["strict"]["right"] == 40


def test_evaluate_several_sets(folder: Path) -> None:
    write_labelled(folder / "more")
    both = told(folder, "lab", "evaluate", "news", "more", "--detectors", "exact")
    assert [entry["set"] for entry in both] == ["news", "more"]


# Calibrate


def pasted(printed: str) -> dict[str, Any]:
    """Read what was printed as the Python that it is."""
    return {
        node.targets[0].id: ast.literal_eval(node.value)
        for node in ast.parse(printed).body
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name)
    }


def test_calibrate_prints_settings_that_reach_the_precision(folder: Path) -> None:
    printed = succeeded(folder, "lab", "calibrate", "news", "--precision", "0.99").stdout
    settings = pasted(printed)
    assert set(settings) == {"NEARDUP_RESEMBLANCE", "NEARDUP_MIN_TOKENS"}
    Config.from_settings(settings)
    assert "recall 1.0" in printed
    given = (part for name, value in settings.items() for part in ("-s", f"{name}={json.dumps(value)}"))
    (row,) = evaluated(folder, "--detectors", "shingle", *given)
    assert (row["strict"]["precision"], row["strict"]["recall"]) == (1.0, 1.0)


@pytest.mark.slow
def test_calibrate_keeps_the_defaults_where_nothing_is_wrong(folder: Path) -> None:
    pairs = (folder / "news" / "pairs.jsonl").read_text()
    (folder / "news" / "pairs.jsonl").write_text(pairs.replace("different", "dup"))
    settings = pasted(succeeded(folder, "lab", "calibrate", "news", "--precision", "0.99").stdout)
    assert settings["NEARDUP_MIN_TOKENS"] == Config().min_tokens
    assert settings["NEARDUP_RESEMBLANCE"][20] == 0.8  # 0.4 + 8/20
    assert settings["NEARDUP_RESEMBLANCE"][2000] == 0.404  # 0.4 + 8/2000


def test_calibrate_says_where_no_threshold_will_do(folder: Path) -> None:
    rows = [{"id": name, "text": text(number)} for name, number in (("a", 1), ("b", 1), ("c", 2))]
    write_rows(folder / "news" / "docs.jsonl", rows)
    pairs = [{"a": "a", "b": "b", "label": "different"}, {"a": "a", "b": "c", "label": "dup"}]
    write_rows(folder / "news" / "pairs.jsonl", pairs)
    said = refused(folder, "lab", "calibrate", "news", "--precision", "0.9")
    assert said.rstrip().endswith("no thresholds reach a precision of 0.9 on news")  # none were tried


# Lexicon


def test_lexicon_keeps_the_terms_of_the_band(tmp_path: Path) -> None:
    # Of 100 documents: `everywhere` is in all, `some` in 10 (normalized IDF .5), `once` in one.
    rows = [{"text": f"everywhere {'some' * (n < 10)} {'once' * (n == 5)}"} for n in range(100)]
    write_rows(tmp_path / "in.jsonl", rows)
    made = succeeded(tmp_path, "lab", "lexicon", "in.jsonl", "-o", "out.lexicon", "--band", "0.3", "0.7")
    lexicon = Lexicon.load(tmp_path / "out.lexicon")
    assert lexicon.terms == {"some"}
    assert f"100 documents, 1 of 3 terms kept, lexicon {lexicon.id}" in made.stderr
    wide = ("--band", "0", "1")
    succeeded(tmp_path, "lab", "lexicon", "in.jsonl", "-o", "out.lexicon.gz", *wide)
    assert gzip.decompress((tmp_path / "out.lexicon.gz").read_bytes()).endswith(b"everywhere\nsome\n")


def test_lexicon_of_a_feed_whose_name_is_no_text(tmp_path: Path) -> None:
    try:
        write_rows(tmp_path / "bad\udcff 名.jsonl", [{"text": "one two"}, {"text": "two three"}])
    except OSError:
        pytest.skip("here all names are text")
    succeeded(tmp_path, "lab", "lexicon", "bad\udcff 名.jsonl", "-o", "out.lexicon", "--band", "0", "1")
    assert Lexicon.load(tmp_path / "out.lexicon").terms == {"two"}


def test_a_crawl_store_goes_with_one_lexicon_only(tmp_path: Path) -> None:
    rows = [{"url": f"http://a.example/{n}", "text": " ".join(words(100, n))} for n in range(20)]
    write_rows(tmp_path / "in.jsonl", rows)
    succeeded(tmp_path, "lab", "lexicon", "in.jsonl", "-o", "mine.lexicon", "--band", "0.2", "0.9")
    before = {"store": str(tmp_path / "held.sqlite")}
    with Deduplicator.open(**before) as dedup:
        dedup.claim(Document(rows[0]["url"], rows[0]["text"])).commit()
    held = (tmp_path / "held.sqlite").read_bytes()
    mine = ("-s", 'NEARDUP_DETECTORS=[{"name": "imatch", "lexicon": "mine.lexicon"}]')
    dedupe = ("dedupe", "in.jsonl", "-o", "out.jsonl")
    said = refused(tmp_path, *dedupe, "--store", "held.sqlite", *mine)
    assert "'imatch' was made as" in said
    assert "scrapy neardup dedupe" in said
    assert "NEARDUP_DETECTORS" in said
    ours = [{"name": "imatch", "lexicon": str(tmp_path / "mine.lexicon")}]
    with pytest.raises(StoreError, match="NEARDUP_NAMESPACE"):
        Deduplicator.open(**before, detectors=ours)
    assert (tmp_path / "held.sqlite").read_bytes() == held
    # What the message advises:
    succeeded(tmp_path, *dedupe, "--store", "new.sqlite", *mine)
    with Deduplicator.open(str(tmp_path / "new.sqlite"), detectors=ours) as dedup:
        assert len(dedup) == 20


@pytest.mark.slow
def test_evaluate_measures_every_detector(folder: Path) -> None:
    pytest.importorskip("snowballstemmer")
    printed = succeeded(folder, "lab", "evaluate", "news", "--detectors", "all").stdout.splitlines()
    assert [line.split()[0] for line in printed[2:10]] == [*BUILTIN_DETECTORS, "exact"]
    assert all(int(line.split()[-1]) > 128 for line in printed[2:10])  # bytes: the sketch alone has 128
