"""`scrapy neardup VERB`, each call in a process of its own: what it writes and prints, and how it fails."""

from __future__ import annotations

import os
import re
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest
from cli import deduped, ids, refused, rows, succeeded, told, write
from helpers import edited, text, write_labelled
from site_server import html

from scrapy_neardup import Deduplicator, Document
from scrapy_neardup.commands import VERBS

ROWS: list[dict[str, Any]] = [
    {"row": "a", "url": "http://a.example/1", "text": text(1), "price": 1.50},
    {"row": "b", "url": "http://b.example/1", "text": edited(text(1), 100)},
    {"row": "c", "url": "http://a.example/2", "text": text(2)},
    {"row": "d", "url": "http://a.example/1", "text": text(1), "price": "1.5", "scraped": "again"},
    {"row": "e", "url": "http://a.example/3", "text": ""},
    {"row": "f", "url": "http://c.example/2", "text": text(2)},
    {"row": "g", "url": "http://c.example/3"},
]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return a directory that holds the feed `in.jsonl`."""
    write(tmp_path / "in.jsonl", ROWS)
    return tmp_path


# Help


def test_help_names_the_verbs(tmp_path: Path) -> None:
    out = succeeded(tmp_path, "--help").stdout
    assert all(f"  {verb} " in out for verb in VERBS)
    assert out == succeeded(tmp_path).stdout == succeeded(tmp_path, "lab").stdout
    assert len(out.splitlines()) <= 30


def test_version_is_printed_in_one_line(tmp_path: Path) -> None:
    assert succeeded(tmp_path, "--version").stdout == f"scrapy-neardup {version('scrapy-neardup')}\n"


def test_scripts_may_use_other_words(held: Path) -> None:
    assert (
        succeeded(held, "verify", "--store", "held.sqlite").stdout
        == succeeded(held, "stats", "--check", "--store", "held.sqlite").stdout
    )
    write_labelled(held / "news")
    assert told(held, "evaluate", "news", "--detectors", "exact")[0]["set"] == "news"


@pytest.mark.parametrize("verb", VERBS)
def test_help_of_a_verb_has_an_example(tmp_path: Path, verb: str) -> None:
    out = succeeded(tmp_path, *verb.split(), "--help").stdout
    assert out.startswith(f"usage: scrapy neardup {verb} [-h]")
    assert f"example:\n  scrapy neardup {verb} " in out


# Dedupe


def test_dedupe_keeps_the_first_of_each_untouched(folder: Path) -> None:
    made = succeeded(folder, "dedupe", "in.jsonl", "-o", "out.jsonl", "--id-field", "row")
    lines = (folder / "in.jsonl").read_bytes().splitlines(keepends=True)
    assert (folder / "out.jsonl").read_bytes() == b"".join(lines[n] for n in (0, 2, 4, 6))
    assert made.stdout == ""
    assert "7 rows, 4 kept, 3 duplicates" in made.stderr
    assert sorted(os.listdir(folder)) == ["in.jsonl", "out.jsonl"]


def test_dedupe_says_what_it_dropped_and_why(folder: Path) -> None:
    succeeded(folder, "dedupe", "in.jsonl", "-o", "out.jsonl", "--duplicates", "dups.jsonl", "--id-field", "row")
    near, again, equal = rows(folder / "dups.jsonl")
    assert {"id", "duplicate_of", "detector", "hamming", "resemblance", "length_ratio", "status"} <= set(near)
    assert [(row["id"], row["duplicate_of"]) for row in (near, again, equal)] == [("b", "a"), ("d", "a"), ("f", "c")]
    assert [row["status"] for row in (near, again, equal)] == ["duplicate", "revisit", "duplicate"]
    assert (equal["detector"], equal["hamming"], equal["resemblance"]) == ("exact", 0, 1.0)
    assert near["detector"] != "exact"
    assert 0.8 < near["resemblance"] < 1


def test_dedupe_names_rows_by_url_else_by_number(tmp_path: Path) -> None:
    write(tmp_path / "in.jsonl", [ROWS[0], ROWS[1], *({"text": text(n)} for n in (3, 3, 1))])
    succeeded(tmp_path, "dedupe", "in.jsonl", "-o", "out.jsonl", "--duplicates", "dups.jsonl")
    pairs = [(row["id"], row["duplicate_of"]) for row in rows(tmp_path / "dups.jsonl")]
    assert pairs == [("http://b.example/1", "http://a.example/1"), (4, 3), (5, "http://a.example/1")]


def test_dedupe_with_other_fields(tmp_path: Path) -> None:
    write(tmp_path / "in.jsonl", [{"row": n, "text": text(n), "main": text(7), "link": f"/{n}"} for n in range(3)])
    succeeded(
        tmp_path, "dedupe", "in.jsonl", "-o", "out.jsonl", "--duplicates", "d.jsonl", "--text-field", "main",
        "--url-field", "link",
    )  # fmt: skip
    assert ids(tmp_path / "out.jsonl", "row") == [0]
    assert [(row["id"], row["duplicate_of"]) for row in rows(tmp_path / "d.jsonl")] == [("/1", "/0"), ("/2", "/0")]


# What a store holds


@pytest.fixture
def held(tmp_path: Path) -> Path:
    """Return a directory with a store `held.sqlite`: two documents, one with a copy."""
    with Deduplicator.open(str(tmp_path / "held.sqlite")) as dedup:
        for row in ROWS[:3]:
            dedup.claim(Document(row["url"], row["text"])).commit()
    return tmp_path


def test_clusters_lists_an_original_with_its_copy(held: Path) -> None:
    (cluster,) = told(held, "clusters", "--store", "held.sqlite")
    assert (cluster["original"], cluster["copies"], cluster["words"]) == ("http://a.example/1", 1, 200)
    (member,) = cluster["members"]
    assert (member["url"], member["kind"]) == ("http://b.example/1", None)
    assert 0.5 < member["resemblance"] <= member["containment"] <= 1
    printed = succeeded(held, "clusters", "--store", "held.sqlite").stdout.splitlines()
    assert printed == [
        "http://a.example/1  (1 copy, 200 words)",
        f"  {member['resemblance']:>6}  -        http://b.example/1",
        "1 of 1 cluster",
    ]


def test_clusters_of_whole_pages_say_their_kind(tmp_path: Path) -> None:
    pages = [(f"http://{name}.example/", html(text(1), name)) for name in "aab"]
    deduped(tmp_path, [{"url": f"{url}{n}", "html": page} for n, (url, page) in enumerate(pages)])
    (cluster,) = told(tmp_path, "clusters", "--store", "held.sqlite")
    assert [member["kind"] for member in cluster["members"]] == ["full", "content"]


def test_clusters_are_sorted_and_limited(tmp_path: Path) -> None:
    near = " ".join([*text(2).split()[:190], *["ten", "words", "which", "this", "text", "has", "alone", "now"]])
    texts = {"a.example/1": text(1), "b.example/1": text(1), "a.example:8080/2": text(2), "c.example/2": near}
    longer = {f"{host}.example/3": text(3) + " " + text(4) for host in "def"}
    deduped(tmp_path, [{"url": f"http://{url}", "text": words} for url, words in {**texts, **longer}.items()])
    for options, wanted in (
        ("", [3, 1, 2]),
        ("--limit 2", [3, 1]),
        ("--limit 0 --sort copies", [3, 1, 2]),
        ("--sort resemblance --limit 1", [2]),
        ("--sort resemblance", [2, 1, 3]),  # ties by URL
    ):
        clusters = told(tmp_path, "clusters", "--store", "held.sqlite", *options.split())
        assert [int(cluster["original"][-1]) for cluster in clusters] == wanted, options


def test_explain_a_copy(held: Path) -> None:
    arguments = ("explain", "https://b.example/1#x", "--store", "held.sqlite")
    copy = told(held, *arguments)
    assert (copy["status"], copy["duplicate_of"]) == ("copy", "http://a.example/1")
    assert [(other["url"], other["known_by"]) for other in copy["others"]] == [("http://a.example/1", "original")]
    found = copy["evidence"]["resemblance"]
    assert found > 0.8
    sentence = f"duplicate: resemblance {found}, needed 0.52; length ratio 1, allowed 2.5; found by "
    assert copy["sentence"].startswith(sentence)
    shown = succeeded(held, *arguments).stdout
    assert "http://a.example/1" in shown
    assert shown.splitlines()[-1] == copy["sentence"]


def test_explain_a_document_held(held: Path) -> None:
    page = told(held, "explain", "http://a.example/2", "--store", "held.sqlite")
    assert (page["status"], page["duplicate_of"], page["document"]["tokens"]) == ("held", None, 200)
    assert page["sentence"] == "unique: its content was new; copies since then: 0"
    assert page["others"] == []


def test_explain_two_pages_of_a_store(held: Path) -> None:
    def explained(*urls: str) -> Any:
        return told(held, "explain", *urls, "--store", "held.sqlite")

    a, copy, other = "http://a.example/1", "http://b.example/1", "http://a.example/2"
    assert explained(a, copy)["sentence"] == explained(copy, a)["sentence"] == explained(copy)["sentence"]
    apart = explained(copy, other)
    assert (apart["comparison"]["resemblance"], apart["proposed_by"]) == (0.0, [])
    assert apart["sentence"] == "unique: resemblance 0, needed 0.52; found by no detector"
    assert "does not know http://x.example/" in refused(
        held, "explain", a, "http://x.example/", "--store", "held.sqlite"
    )


def test_explain_two_siblings_names_their_titles_and_the_rule(tmp_path: Path) -> None:
    titles = ["Parish of Dunmore", "Parish of Kilrush"]
    urls = [f"http://a.example/{n}" for n in range(4)]
    feed: list[dict[str, Any]] = [
        *({"url": url, "title": title, "text": text(1)} for url, title in zip(urls, titles, strict=False)),
        *({"url": url, "title": "P", "price": f"{url[-1]} EUR", "text": text(2)} for url in urls[2:]),
    ]
    assert "4 kept" in deduped(tmp_path, feed)
    for pair in (urls[:2], urls[1::-1]):
        said = succeeded(tmp_path, "explain", *pair, "--store", "held.sqlite").stdout
        assert said.endswith(f"unique: the titles differ in a name ({titles[0]!r}, {titles[1]!r})\n")
        assert [line.split(maxsplit=1)[1] for line in said.splitlines() if "title  " in line] == [
            titles[urls.index(url)] for url in pair
        ]
    said = succeeded(tmp_path, "explain", *urls[2:], "--store", "held.sqlite").stdout
    assert said.endswith("unique: the items differ in a fact\n")


def test_explain_a_page_with_several_items_lists_them_in_words(tmp_path: Path) -> None:
    with Deduplicator.open(str(tmp_path / "held.sqlite")) as dedup:
        for n in range(2):
            document = Document("http://a.example/", text(n), has_own_url=False, label=f"Item {n}")
            dedup.claim(document).commit()
    said = succeeded(tmp_path, "explain", "http://a.example/", "--store", "held.sqlite").stdout
    assert said.splitlines()[2:] == [
        "items", "  Item 0  (200 words, 0 copies)", "  Item 1  (200 words, 0 copies)",
        "the page gave several items, of which 2 are held",
    ]  # fmt: skip


def test_explain_a_copy_of_an_original_with_others(tmp_path: Path) -> None:
    urls = [f"http://{host}.example/1" for host in "abc"]
    deduped(tmp_path, [{"url": url, "text": text(1)} for url in urls])
    copy = told(tmp_path, "explain", urls[1], "--store", "held.sqlite")
    needed = re.search(r"needed ([\d.]+); ", copy["sentence"])
    assert needed
    assert 0.4 < float(needed[1]) < 0.52  # what is repeated already needs less


FIGURES = " ".join(f"item {n}" for n in range(100, 200))
SENTENCES = [
    (text(1), edited(text(1), 100), [], r"duplicate: resemblance 0\.\d+, needed 0\.52; length ratio 1, allowed 2\.5; "
     r"found by [a-z, ]*shingle"),
    (text(1), text(2), [], r"unique: resemblance 0(\.\d+)?, needed 0\.52; found by no detector"),
    (text(1), text(1) + text(2, 500), [], r"unique: .*length ratio 3\.\d+, allowed 2\.5.*"),
    (FIGURES, FIGURES.replace("item 1", "item 2", 50), ["NEARDUP_RESEMBLANCE=0.1"],
     r"unique: [\d.]+ figures differ, allowed 11"),
    (text(1), "a few words", [], "unique: 3 words, needed 20"),
    (text(1), "one", [], "unique: 1 word, needed 20"),
    (text(1), "", [], "unique: 0 words, needed 20"),
    ("a few words", "A few words!", ["NEARDUP_SHORT_TEXT=exact"], "duplicate: 3 words, fewer than 20: all are equal"),
    ("a few words", "few words", ["NEARDUP_SHORT_TEXT=exact"], "unique: 2 words, fewer than 20: not all are equal"),
]  # fmt: skip


@pytest.mark.parametrize(("first", "second", "settings", "sentence"), SENTENCES)
def test_explain_ends_in_a_sentence_with_the_points_that_decided(
    tmp_path: Path, first: str, second: str, settings: list[str], sentence: str
) -> None:
    (tmp_path / "a.txt").write_text(first)
    (tmp_path / "b.txt").write_text(second)
    given = [part for setting in settings for part in ("-s", setting)]
    said = succeeded(tmp_path, "explain", "a.txt", "b.txt", *given).stdout
    assert re.fullmatch(sentence, said.splitlines()[-1]), said.splitlines()[-1]


@pytest.mark.parametrize("line", [f"{text(1, 30)}\n\n{text(2)}", "长江大桥今天通车了。" * 60])
def test_explain_shows_where_the_compared_text_begins(tmp_path: Path, line: str) -> None:
    paragraphs = "".join(f"<p>{part}</p>" for part in line.split("\n"))
    (tmp_path / "a.html").write_text(f"<html><body><nav>The menu</nav>{paragraphs}</body></html>", encoding="utf-8")
    (tmp_path / "b.txt").write_text("short", encoding="utf-8")
    arguments = ("explain", "a.html", "b.txt")
    documents = told(tmp_path, *arguments)["documents"]
    begun = "".join(documents["a.html"]["text"]).replace(" ", "")
    assert begun.endswith("…")
    assert "".join(line.split()).startswith(begun[:-1])
    assert 300 < len(begun) <= 401
    assert max(map(len, documents["a.html"]["text"])) <= 72
    assert (documents["b.txt"]["text"], documents["b.txt"]["tokens"]) == (["short"], 1)
    assert f"    text\n      {documents['a.html']['text'][0]}\n" in succeeded(tmp_path, *arguments).stdout


def test_explain_says_if_files_would_be_siblings_on_one_host(tmp_path: Path) -> None:
    for name, day in (("a", "12 May, 17 degrees"), ("b", "13 June, 19 degrees")):
        page = f"<html><head><title>The weather</title></head><body><p>{text(1)} {day}</p></body></html>"
        (tmp_path / f"{name}.html").write_text(page)
    said = succeeded(tmp_path, "explain", "a.html", "b.html").stdout.splitlines()[-1]
    assert said.startswith("duplicate: ")
    assert said.endswith("; but unique if both are of one host: each text has a figure that the other lacks")


def test_explain_says_which_text_is_thin(tmp_path: Path) -> None:
    comments = f"<div id=comments><p>{text(3, 400)}</p></div>"
    (tmp_path / "a.html").write_text(f"<html><body><div><p>{text(1)}</p></div>{comments}</body></html>")
    (tmp_path / "b.html").write_text(f"<html><body><div><p>{text(1)}</p></div></body></html>")
    compared = told(tmp_path, "explain", "a.html", "b.html")
    thin = {path: document["thin"] for path, document in compared["documents"].items()}
    assert thin == {"a.html": True, "b.html": False}
    why = "it has less than half of the page's words outside links, was hidden or in data, or is almost only links"
    assert compared["sentence"].startswith("duplicate: ")
    assert compared["sentence"].endswith(f"; the text of a.html is thin: {why}")
    assert succeeded(tmp_path, "explain", "a.html", "b.html").stdout.splitlines()[-1] == compared["sentence"]
