"""`scrapy neardup review`: drops of a real crawl and of `dedupe`, judged by answers on stdin, and what follows."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from cli import environment, ids, refused, rows, succeeded, write
from conftest import Crawl, Crawler
from helpers import edited, text
from site_server import Page, Site, article, html

from scrapy_neardup import Config, ConfigError, Deduplicator, Document
from scrapy_neardup.matching.reviews import DIFFERENT, SAME, Reviews
from scrapy_neardup.mirrors.advice import Mirrors
from scrapy_neardup.quality.labels import LabelledSet

A, B, C, D = (f"http://{host}.example/1" for host in "abcd")
TEXT = text(1, 100)
ROWS = [
    {"url": A, "title": "One", "text": TEXT},
    {"url": B, "title": "One", "text": edited(TEXT, 50)},
    {"url": C, "title": "One", "text": edited(TEXT, 10, 30, 50, 70)},
]
DEDUPE = ("dedupe", "in.jsonl", "-o", "out.jsonl", "--duplicates", "dups.jsonl", "--store", "held.sqlite")
REVIEW = ("in.jsonl", "dups.jsonl", "--store", "held.sqlite")


def review(folder: Path, answers: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Call the verb in a process of its own, with answers on its stdin."""
    command = [sys.executable, "-m", "scrapy", "neardup", "review", *arguments]
    made = subprocess.run(
        command, cwd=folder, env=environment(), input=answers, capture_output=True, text=True, check=False, timeout=60
    )
    assert made.returncode == 0, made.stderr
    return made


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return a directory in which `dedupe` dropped two of three rows."""
    write(tmp_path / "in.jsonl", ROWS)
    succeeded(tmp_path, *DEDUPE)
    assert ids(tmp_path / "dups.jsonl") == [B, C]
    return tmp_path


def judged(folder: Path, a: str, b: str, label: str = DIFFERENT) -> Config:
    """Return a configuration with one judgement."""
    config = Config(reviewed=str(folder / "judged"))
    Reviews(config).append(Document(a, text(8)), Document(b, text(9)), label)
    return config


# A crawl


def crawled(crawl: Crawler, a: Site, b: Site) -> Crawl:
    settings = {"NEARDUP_DROPPED": str(crawl.folder / f"dropped{crawl.runs + 1}.jsonl")}
    return crawl("OneAfterAnother", settings, urls=[f"{a.url}/0.html", f"{b.url}/0.html"])


def test_what_a_person_judged_different_is_fetched_and_kept_by_the_next_crawl(crawl, a, b, tmp_path):
    a.pages["/0.html"], b.pages["/0.html"] = Page(html(article(0))), Page(html(article(0), "b"))
    first = crawled(crawl, a, b)
    assert first.urls == [f"{a.url}/0.html"]
    made = review(tmp_path, "n\n", "dropped1.jsonl", "items1.jsonl", "--store", crawl.store)
    assert "duplicate: resemblance 1, needed 0.52" in made.stdout
    assert "1 not the same, 0 left" in made.stderr
    second = crawled(crawl, a, b)
    assert second.urls == [f"{a.url}/0.html", f"{b.url}/0.html"]
    assert (second.count("unique"), second.count("revisits"), second.count("requests/skipped")) == (1, 1, 0)
    third = crawled(crawl, a, b)
    assert (third.count("revisits"), third.count("duplicates")) == (2, 0)
    crawl.store = str(tmp_path / "other.sqlite")
    (tmp_path / "other.sqlite.reviewed").symlink_to(tmp_path / "store.sqlite.reviewed")
    assert len(crawled(crawl, b, a).items) == 2


def test_a_table_of_drops_beside_items_of_another_kind(crawl, a, b, tmp_path):
    a.pages["/0.html"], b.pages["/0.html"] = Page(html(article(0))), Page(html(article(0), "b"))
    urls, settings = [f"{a.url}/0.html", f"{b.url}/0.html"], {"NEARDUP_DROPPED": str(tmp_path / "dropped.csv")}
    crawl("OneAfterAnother", settings, urls=urls)
    said = succeeded(tmp_path, "review", "dropped.csv", "items1.jsonl", "--store", crawl.store, "--json").stdout
    assert [(row["url"], row["duplicate_of"]) for row in map(json.loads, said.splitlines())] == [(urls[1], urls[0])]


def test_a_broken_judgement_stops_a_crawl_and_is_named(crawl, a, tmp_path):
    judged(tmp_path, A, B)
    with open(tmp_path / "judged" / "pairs.jsonl", "a") as pairs:
        pairs.write('{"a": \n')
    a.pages["/0.html"] = Page(html(article(0)))
    settings = {"NEARDUP_REVIEWED": str(tmp_path / "judged")}
    result = crawl.finish(crawl.start(settings=settings, urls=[f"{a.url}/0.html"]))
    assert (result.code, result.items) == (1, [])
    assert "NEARDUP_REVIEWED: " in result.log
    assert "pairs.jsonl, line 2" in result.log


# The command


def test_drops_come_least_sure_first_with_their_evidence_and_as_json(folder: Path) -> None:
    made = succeeded(folder, "review", *REVIEW, "--json")
    found = [json.loads(line) for line in made.stdout.splitlines()]
    assert [row["url"] for row in found] == [C, B]
    assert found[0] == {
        "url": C, "duplicate_of": A, "resemblance": found[0]["resemblance"], "needed": 0.52,
        "title": "One", "title_of_original": "One",
    }  # fmt: skip
    assert 0.52 < found[0]["resemblance"] < found[1]["resemblance"] < 1
    assert not (folder / "held.sqlite.reviewed").exists()
    shown = review(folder, "", *REVIEW)
    assert "1 of 2" in shown.stdout
    assert "2 of 2" not in shown.stdout
    assert "0 the same, 0 not the same, 2 left" in shown.stderr


@pytest.mark.slow
def test_answers_are_kept_and_not_asked_for_again(folder: Path) -> None:
    said = review(folder, "later\nn\nq\n", *REVIEW).stderr  # what is no answer is asked again
    assert said == "0 the same, 1 not the same, 1 left\n"
    assert rows(folder / "held.sqlite.reviewed" / "pairs.jsonl") == [{"a": A, "b": C, "label": "different"}]
    made = review(folder, "\n", *REVIEW)
    assert ("1 of 1" in made.stdout, B in made.stdout, C in made.stdout) == (True, True, False)
    assert made.stderr == "0 the same, 0 not the same, 1 left; 1 judged before\n"
    assert "1 the same, 0 not the same, 0 left" in review(folder, "s\n", *REVIEW).stderr


@pytest.mark.slow
def test_dedupe_explain_evaluate_and_calibrate_take_answers_into_account(folder: Path) -> None:
    review(folder, "n\ns\n", *REVIEW)
    said = succeeded(folder, "explain", C, "--store", "held.sqlite").stdout
    assert said.endswith("unique: a person judged them different\n")
    succeeded(folder, *DEDUPE)
    assert ids(folder / "dups.jsonl") == [B]
    assert ids(folder / "out.jsonl", "url") == [A, C]
    succeeded(folder, "evaluate", "held.sqlite.reviewed", "--json", "figures.json")
    (figures,) = json.loads((folder / "figures.json").read_text())
    assert figures["results"][-1]["found"] == {"different": [1, 1], "dup": [1, 1]}
    printed = succeeded(folder, "calibrate", "held.sqlite.reviewed", "--precision", "0.99").stdout
    assert "reached: precision 1.0, recall 1.0 (strict)" in printed


@pytest.mark.slow
def test_evaluate_does_not_look_the_answers_up(folder: Path) -> None:
    review(folder, "n\ns\n", *REVIEW)
    settings = ("-s", "NEARDUP_REVIEWED=held.sqlite.reviewed")
    succeeded(folder, "evaluate", "held.sqlite.reviewed", "--json", "figures.json", *settings)
    assert json.loads((folder / "figures.json").read_text())[0]["results"][-1]["found"]["different"] == [1, 1]


def test_explain_files_says_that_a_person_judged_them(tmp_path: Path) -> None:
    for name in "ab":
        (tmp_path / f"{name}.txt").write_text(TEXT)
    judged(tmp_path, *((tmp_path / f"{name}.txt").as_uri() for name in "ab"))
    said = succeeded(tmp_path, "explain", "--files", "a.txt", "b.txt", "-s", "NEARDUP_REVIEWED=judged").stdout
    assert said.endswith("unique: a person judged them different\n")


def test_an_original_that_no_feed_has_is_counted(tmp_path: Path) -> None:
    tags = [{"status": "duplicate", "duplicate_of": url, "detector": "exact"} for url in (A, D, None)]
    tagged = [{**row, "neardup": tag} for row, tag in zip([ROWS[1], ROWS[2], ROWS[2]], tags, strict=True)]
    write(tmp_path / "in.jsonl", [ROWS[0], *tagged])
    made = succeeded(tmp_path, "review", "in.jsonl", "--json", "-s", "NEARDUP_REVIEWED=judged")
    assert [json.loads(line)["url"] for line in made.stdout.splitlines()] == [B]
    assert made.stderr.splitlines() == [
        f"{C}: its original {D} is in none of the feeds",
        "1 drop to judge; 1 not shown: a text is in none of the feeds; "
        "1 not shown: they have no URL, or that of their original",
    ]


def test_rows_that_are_named_by_a_field(tmp_path: Path) -> None:
    write(tmp_path / "in.jsonl", [{**row, "id": number} for number, row in enumerate(ROWS)])
    succeeded(tmp_path, *DEDUPE, "--id-field", "id")
    assert ids(tmp_path / "dups.jsonl") == [1, 2]
    said = succeeded(tmp_path, "review", *REVIEW, "--id-field", "id", "--json").stdout
    assert [json.loads(line)["url"] for line in said.splitlines()] == [C, B]


def test_refusals_are_one_line(folder: Path) -> None:
    assert "no store: name one" in refused(folder, "review", "in.jsonl")
    assert "does not exist" in refused(folder, "review", "in.jsonl", "--store", "other.sqlite")
    assert "set NEARDUP_REVIEWED to a folder" in refused(folder, "review", "in.jsonl", "--store", "redis://127.0.0.1:1")
    judged(folder, A, B)
    pairs = folder / "judged" / "pairs.jsonl"
    pairs.write_text(pairs.read_text().replace(B, D))
    told = refused(folder, "review", "in.jsonl", "-s", "NEARDUP_REVIEWED=judged")
    assert "NEARDUP_REVIEWED: judged/pairs.jsonl, line 1: allowed is a pair of two ids that are in docs.jsonl" in told
    told = refused(folder, "dedupe", "in.jsonl", "-o", "new.jsonl", "-s", "NEARDUP_REVIEWED=judged")
    assert "pairs.jsonl, line 1" in told


# The folder


def test_judgements_hold_in_both_directions_in_the_python_interface(tmp_path: Path) -> None:
    config = judged(tmp_path, "https://a.example/1?utm_source=x", B)
    for first, second in ((A, B), (B, A)):
        with Deduplicator.from_config(config) as dedup:
            verdicts = [dedup.claim(Document(url, TEXT)).verdict for url in (first, second, C)]
        assert [verdict.status for verdict in verdicts] == ["unique", "unique", "duplicate"]
    with Deduplicator.open(reviewed=tmp_path / "nowhere") as dedup:
        assert [dedup.claim(Document(url, TEXT)).verdict.status for url in (A, B)] == ["unique", "duplicate"]


def test_the_copies_of_one_original_are_copies_of_each_other(tmp_path: Path) -> None:
    reviews = Reviews(judged(tmp_path, A, B, SAME))
    reviews.append(Document(A, text(8)), Document(C, text(7)), SAME)
    reviews.append(Document(A, text(8)), Document(D, text(6)), DIFFERENT)
    labelled = LabelledSet.load(str(tmp_path / "judged"))
    assert list(labelled.rows) == [A, B, C, D]
    expected = {frozenset(pair): SAME for pair in ((A, B), (A, C), (B, C))}
    assert labelled.labels == {**expected, frozenset((A, D)): DIFFERENT}


def test_a_folder_whose_last_line_somebody_edited_is_appended_to(tmp_path: Path) -> None:
    config = judged(tmp_path, A, B)
    pairs = tmp_path / "judged" / "pairs.jsonl"
    pairs.write_text(pairs.read_text().rstrip())
    Reviews(config).append(Document(A, text(8)), Document(C, text(7)), DIFFERENT)
    assert Reviews(config).differ(C, A)
    assert Reviews(config).differ(B, A)


def test_documents_are_read_again_with_the_fields_of_the_project(tmp_path: Path) -> None:
    config = Config(reviewed=str(tmp_path / "judged"), fields=("html",), title_field="heading", url_field="link")
    Reviews(config).append(Document(A, TEXT, "One"), Document(B, TEXT), SAME)
    assert rows(tmp_path / "judged" / "docs.jsonl")[0] == {"id": A, "link": A, "heading": "One", "html": TEXT}


@pytest.mark.parametrize("broken", ['{"id": ', "[]", '{"text": "without id"}'])
def test_a_broken_document_is_named(tmp_path: Path, broken: str) -> None:
    config = judged(tmp_path, A, B)
    with open(tmp_path / "judged" / "docs.jsonl", "a") as docs:
        docs.write(f"{broken}\n")
    with pytest.raises(ConfigError, match=r"NEARDUP_REVIEWED: .*docs\.jsonl, (line|row) 3"):
        Deduplicator.from_config(config)


def test_a_label_that_nobody_knows_is_named(tmp_path: Path) -> None:
    pair = {"a": "http://a.example/1", "b": "http://a.example/2", "label": "diferent"}
    write(tmp_path / "docs.jsonl", [{"id": pair[name], "text": "Boats"} for name in "ab"])
    write(tmp_path / "pairs.jsonl", [pair])
    with pytest.raises(ConfigError, match=r"label 'diferent'; allowed are dup, different"):
        Reviews(Config(reviewed=str(tmp_path)))


def test_a_file_in_place_of_the_folder_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(ConfigError, match="NEARDUP_REVIEWED"):
        Reviews(Config(reviewed=str(tmp_path / "file")))


# Before a fetch, and after one that failed


def advised(tmp_path: Path, **settings: Any) -> tuple[list[str | None], list[str]]:
    """Return where advice sends the URLs of two mirrors, one judged different, and what else gives the latter."""
    config = Config(reviewed=judged(tmp_path, A, B).reviewed, **settings)
    with Deduplicator.open(**settings) as dedup:  # before anybody judged
        for url in (A, B, C):
            dedup.claim(Document(url, TEXT)).commit()
        mirrors = Mirrors(dedup.store, config, Reviews(config))
        advice = [mirrors.advise(url) for url in (B, C)]
        return [each and each.url for each in advice], [other.url for other in mirrors.alternatives(B)]


def test_only_what_was_judged_different_is_fetched_again_and_nothing_stands_in_for_it(tmp_path: Path) -> None:
    assert advised(tmp_path) == ([None, A], [])


def test_a_rule_of_its_host_does_not_hide_it(tmp_path: Path) -> None:
    config = Config(reviewed=judged(tmp_path, A, B).reviewed, mirror_hosts={"b.example": "a.example"})
    with Deduplicator.open() as dedup:
        dedup.claim(Document(A, TEXT)).commit()
        assert Mirrors(dedup.store, config, Reviews(config)).advise(B) is None
        assert Mirrors(dedup.store, config).advise(B) is not None
