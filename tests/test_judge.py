"""`scrapy neardup judge`: the effect of a judgement on crawls, `dedupe`, `explain` and measurements."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from cli import ids, refused, rows, succeeded, write
from conftest import Crawl, Crawler
from helpers import edited, text
from site_server import Page, Site, article, html

from scrapy_neardup import Config, ConfigError, Deduplicator, Document
from scrapy_neardup.matching.reviews import DIFFERENT, SAME, Reviews
from scrapy_neardup.mirrors import Mirrors
from scrapy_neardup.quality import LabelledSet

A, B, C, D = (f"http://{host}.example/1" for host in "abcd")
TEXT = text(1, 100)
ROWS = [
    {"url": A, "title": "One", "text": TEXT},
    {"url": B, "title": "One", "text": edited(TEXT, 50)},
    {"url": C, "title": "One", "text": edited(TEXT, 10, 30, 50, 70)},
]
DEDUPE = ("dedupe", "in.jsonl", "-o", "out.jsonl", "--duplicates", "dups.jsonl", "--store", "held.sqlite")


def judge(folder: Path, *arguments: str, store: str = "held.sqlite") -> str:
    return succeeded(folder, "judge", *arguments, "--store", store).stderr


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return a directory in which `dedupe` dropped two of three rows."""
    write(tmp_path / "in.jsonl", ROWS)
    succeeded(tmp_path, *DEDUPE)
    assert ids(tmp_path / "dups.jsonl") == [B, C]
    return tmp_path


def judged(folder: Path, a: str, b: str, label: str = DIFFERENT) -> Config:
    """Return a configuration with one judgement."""
    config = Config(store=str(folder / "judged"))
    Reviews(config).append(Document(a, text(8)), Document(b, text(9)), label)
    return config


# A crawl


def crawled(crawl: Crawler, a: Site, b: Site) -> Crawl:
    return crawl("OneAfterAnother", urls=[f"{a.url}/0.html", f"{b.url}/0.html"])


def test_what_a_person_judged_different_is_fetched_and_kept_by_the_next_crawl(crawl, a, b, tmp_path):
    a.pages["/0.html"], b.pages["/0.html"] = Page(html(article(0))), Page(html(article(0), "b"))
    first = crawled(crawl, a, b)
    assert first.urls == [f"{a.url}/0.html"]
    said = judge(tmp_path, f"{a.url}/0.html", f"{b.url}/0.html", "different", store=crawl.store)
    assert said.endswith(f"/0.html are different: written to {crawl.store}.reviewed\n")
    second = crawled(crawl, a, b)
    assert second.urls == [f"{a.url}/0.html", f"{b.url}/0.html"]
    assert (second.count("unique"), second.count("revisits"), second.count("requests/skipped")) == (1, 1, 0)
    third = crawled(crawl, a, b)
    assert (third.count("revisits"), third.count("duplicates")) == (2, 0)
    crawl.store = str(tmp_path / "other.sqlite")
    (tmp_path / "other.sqlite.reviewed").symlink_to(tmp_path / "store.sqlite.reviewed")
    assert len(crawled(crawl, b, a).items) == 2


def test_a_broken_judgement_stops_a_crawl_and_is_named(crawl, a, tmp_path):
    crawl.store = str(judged(tmp_path, A, B).store)
    with open(tmp_path / "judged.reviewed" / "pairs.jsonl", "a") as pairs:
        pairs.write('{"a": \n')
    a.pages["/0.html"] = Page(html(article(0)))
    result = crawl.finish(crawl.start(urls=[f"{a.url}/0.html"]))
    assert (result.code, result.items) == (1, [])
    assert "judgements can't be read: " in result.log
    assert "pairs.jsonl, line 2" in result.log


# The command


def test_judgements_are_kept_with_the_texts_of_feeds(folder: Path) -> None:
    made = succeeded(folder, "judge", A, C, "different", "--texts", "in.jsonl", "--store", "held.sqlite", "--json")
    assert json.loads(made.stdout) == {"a": A, "b": C, "judgement": "different"}
    judge(folder, B, A, "same", "--texts", "out.jsonl", "in.jsonl")
    reviewed = folder / "held.sqlite.reviewed"
    assert rows(reviewed / "pairs.jsonl") == [{"a": A, "b": C, "label": "different"}, {"a": A, "b": B, "label": "dup"}]
    assert {row["id"]: row["text"] for row in rows(reviewed / "docs.jsonl")} == {
        row["url"]: row["text"] for row in ROWS
    }


def test_a_page_that_nobody_fetched_is_not_judged(folder: Path) -> None:
    for pair in ((A, D), (D, A)):
        said = refused(folder, "judge", *pair, "different", "--store", "held.sqlite")
        assert said == (
            f"scrapy neardup judge: neither the store nor a feed knows {D}; allowed is a URL that a crawl has fetched\n"
        )
    write(folder / "more.jsonl", [{"url": D, "text": TEXT}])
    assert "are different" in judge(folder, A, D, "different", "--texts", "more.jsonl")


def test_the_last_judgement_on_a_pair_counts(folder: Path) -> None:
    for judgement in ("different", "same", "different"):
        judge(folder, A, B, judgement, "--texts", "in.jsonl")
    assert "judged them different" in succeeded(folder, "explain", B, "--store", "held.sqlite").stdout
    judge(folder, A, B, "same", "--texts", "in.jsonl")
    assert LabelledSet.load(str(folder / "held.sqlite.reviewed")).labels == {frozenset((A, B)): SAME}


def test_dedupe_explain_evaluate_and_calibrate_take_judgements_into_account(folder: Path) -> None:
    judge(folder, A, C, "different", "--texts", "in.jsonl")
    judge(folder, A, B, "same", "--texts", "in.jsonl")
    for pair in ((C,), (A, C), (C, A)):
        said = succeeded(folder, "explain", *pair, "--store", "held.sqlite").stdout
        assert said.endswith("unique: a person judged them different\n")
    succeeded(folder, *DEDUPE)
    assert ids(folder / "out.jsonl", "url") == [A, C]
    reviewed = "held.sqlite.reviewed"
    settings = ("-s", "NEARDUP_STORE=held.sqlite")  # what is measured does not look the answers up
    (figures,) = json.loads(succeeded(folder, "lab", "evaluate", reviewed, "--json", *settings).stdout)
    assert figures["results"][-1]["found"] == {"different": [1, 1], "dup": [1, 1]}
    printed = succeeded(folder, "lab", "calibrate", reviewed, "--precision", "0.99").stdout
    assert "reached: precision 1.0, recall 1.0\n" in printed


def test_files_are_judged_as_they_are_explained(folder: Path) -> None:
    for name in "ab":
        (folder / f"{name}.txt").write_text(TEXT)
    store = ("--store", "held.sqlite")
    assert "duplicate: " in succeeded(folder, "explain", "a.txt", "b.txt", *store).stdout
    succeeded(folder, "judge", "a.txt", "b.txt", "different", *store)
    said = succeeded(folder, "explain", "a.txt", "b.txt", *store).stdout
    assert said.endswith("unique: a person judged them different\n")


# The folder


def test_judgements_hold_in_both_directions_in_the_python_interface(tmp_path: Path) -> None:
    config = judged(tmp_path, "https://a.example/1?utm_source=x", B)
    for first, second in ((A, B), (B, A)):
        with Deduplicator.from_config(config) as dedup:
            verdicts = [dedup.claim(Document(url, TEXT)).verdict for url in (first, second, C)]
        assert [verdict.status for verdict in verdicts] == ["unique", "unique", "duplicate"]
    with Deduplicator.open(tmp_path / "nowhere") as dedup:
        assert [dedup.claim(Document(url, TEXT)).verdict.status for url in (A, B)] == ["unique", "duplicate"]


def test_the_copies_of_one_original_are_copies_of_each_other(tmp_path: Path) -> None:
    reviews = Reviews(judged(tmp_path, A, B, SAME))
    reviews.append(Document(A, text(8)), Document(C, text(7)), SAME)
    reviews.append(Document(A, text(8)), Document(D, text(6)), DIFFERENT)
    labelled = LabelledSet.load(str(tmp_path / "judged.reviewed"))
    assert list(labelled.rows) == [A, B, C, D]
    expected = {frozenset(pair): SAME for pair in ((A, B), (A, C), (B, C))}
    assert labelled.labels == {**expected, frozenset((A, D)): DIFFERENT}


def test_a_folder_whose_last_line_somebody_edited_is_appended_to(tmp_path: Path) -> None:
    config = judged(tmp_path, A, B)
    pairs = tmp_path / "judged.reviewed" / "pairs.jsonl"
    pairs.write_text(pairs.read_text().rstrip())
    Reviews(config).append(Document(A, text(8)), Document(C, text(7)), DIFFERENT)
    assert Reviews(config).differ(C, A)
    assert Reviews(config).differ(B, A)


NO_PAIRS = [f'{{"a": "{A}", "b": {b}, "label": "dup"}}' for b in ("null", f'"{A}"')]


@pytest.mark.parametrize(
    ("broken", "why"),
    [
        *((pair, "") for pair in ('{"a": ', "[]", '{"a": "without b", "label": "dup"}', *NO_PAIRS)),
        (f'{{"a": "{A}", "b": "{C}", "label": "diferent"}}', "label 'diferent'; allowed are dup, different"),
    ],
)
def test_a_broken_pair_is_named(tmp_path: Path, broken: str, why: str) -> None:
    config = judged(tmp_path, A, B)
    with open(tmp_path / "judged.reviewed" / "pairs.jsonl", "a") as pairs:
        pairs.write(f"{broken}\n")
    with pytest.raises(ConfigError, match=rf"judgements can't be read: .*pairs\.jsonl, line 2.*{why}"):
        Deduplicator.from_config(config)


# Before a fetch, and after one that failed


def advised(tmp_path: Path, **settings: Any) -> tuple[list[str | None], list[str]]:
    """Return where advice sends the URLs of two mirrors, one judged different, and what else gives the latter."""
    config = Config(store=judged(tmp_path, A, B).store, **settings)
    with Deduplicator.open(**settings) as dedup:  # before anybody judged
        for url in (A, B, C):
            dedup.claim(Document(url, TEXT)).commit()
        mirrors = Mirrors(dedup.store, config, Reviews(config))
        advice = [mirrors.advise(url) for url in (B, C)]
        return [each and each.url for each in advice], [other.url for other in mirrors.alternatives(B)]


def test_only_what_was_judged_different_is_fetched_again_and_nothing_stands_in_for_it(tmp_path: Path) -> None:
    assert advised(tmp_path) == ([None, A], [])


def test_a_rule_of_its_host_does_not_hide_it(tmp_path: Path) -> None:
    config = Config(store=judged(tmp_path, A, B).store, mirror_hosts={"b.example": "a.example"})
    with Deduplicator.open() as dedup:
        dedup.claim(Document(A, TEXT)).commit()
        assert Mirrors(dedup.store, config, Reviews(config)).advise(B) is None
        assert Mirrors(dedup.store, config).advise(B) is not None
