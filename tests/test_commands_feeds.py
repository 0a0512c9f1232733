"""Feeds of every kind through the commands that read them, each call in a process of its own."""

from __future__ import annotations

import json
import math
import os
from pathlib import Path

import pytest
from cli import FORKS, deduped, environment, neardup, refused, rows, succeeded, told
from conftest import Crawler
from feed_files import KINDS, answer, page, read_feed, record, write_feed, write_records
from helpers import edited, text, write_rows
from site_server import Site, mirror
from tiers import slow

from scrapy_neardup.files import json_text
from scrapy_neardup.fingerprints.lexicon import Lexicon

HOSTS = ("a", "b")


def made_up(count: int = 30) -> list[dict[str, str]]:
    """Return so many documents, then as many copies, each with a word changed, and one without text."""
    found = [
        {"url": f"http://{host}.example/{n}", "title": f"T, {n}", "text": edited(text(n, 60), *[30] * (host == "b"))}
        for host in HOSTS
        for n in range(count)
    ]
    return [*found, {"url": "http://c.example/", "title": "", "text": ""}]


@pytest.mark.parametrize("ending", KINDS)
def test_verbs_read_and_write_every_kind(tmp_path: Path, ending: str) -> None:
    before = read_feed(write_feed(tmp_path / f"in.{ending}", made_up(5)))
    made = succeeded(tmp_path, "dedupe", f"in.{ending}", "-o", f"out.{ending}", "--duplicates", "dups.jsonl")
    assert made.stderr.endswith("11 rows, 6 kept, 5 duplicates, 1 without text\n")
    assert read_feed(tmp_path / f"out.{ending}") == [*before[:5], before[10]]
    assert [row["duplicate_of"] for row in rows(tmp_path / "dups.jsonl")] == [f"http://a.example/{n}" for n in range(5)]
    succeeded(tmp_path, "lab", "cluster", f"in.{ending}", "-o", "clusters.jsonl")
    wanted = [[f"http://{host}.example/{n}" for host in HOSTS] for n in range(5)]
    assert [row["documents"] for row in rows(tmp_path / "clusters.jsonl")] == wanted
    succeeded(tmp_path, "lab", "lexicon", f"in.{ending}", "-o", "x.lexicon", "--band", "0", "1")
    assert set(text(0, 60).split()) - {text(0, 60).split()[30]} <= Lexicon.load(tmp_path / "x.lexicon").terms


def test_a_feed_of_increments_has_what_changes_back(tmp_path: Path) -> None:
    counts = []
    for price, other in ((10, 2), (12, 2), (10, 1), (10, 1)):  # the other page becomes a copy
        row = {"url": "http://a.example/1", "price": price, "text": text(1)}
        write_rows(tmp_path / "in.jsonl", [row, {"url": "http://b.example/1", "price": 10, "text": text(other)}])
        succeeded(tmp_path, "dedupe", "in.jsonl", "-o", "out.jsonl", "--store", "s", "-s", "NEARDUP_REVISIT=drop")
        counts.append(len(rows(tmp_path / "out.jsonl")))
    assert counts == [2, 1, 2, 0]
    posts = [{"url": f"http://a.example/t/{n}", "text": text(kind)} for n in (1, 2) for kind in (n + 5, 9)]
    write_rows(tmp_path / "in.jsonl", posts)  # the second post of both threads is one
    succeeded(tmp_path, "dedupe", "in.jsonl", "-o", "out.jsonl", "--store", "t", "-s", "NEARDUP_REVISIT=drop")
    assert len(rows(tmp_path / "out.jsonl")) == 3


# What Scrapy writes


def test_feed_exports_of_scrapy(tmp_path: Path, crawl: Crawler, a: Site, b: Site) -> None:
    names = ["items.json", "items.jl", "items.csv", "items.json.gz", "items.jl.gz", "items.csv.gz"]
    gzips = {"postprocessing": ["scrapy.extensions.postprocessing.GzipPlugin"]}
    formats = {"json": "json", "jl": "jsonlines", "csv": "csv"}
    feeds = {
        str(tmp_path / name): {"format": formats[name.split(".")[1]], **(gzips if name.endswith(".gz") else {})}
        for name in names
    }
    crawl(urls=mirror(a, b), settings={"FEEDS": feeds, "NEARDUP_ENABLED": False})
    for name in names:
        output = f"unique_{name}"
        assert "6 rows, 3 kept, 3 duplicates" in succeeded(tmp_path, "dedupe", name, "-o", output).stderr
        before, after = (read_feed(tmp_path / each) for each in (name, output))
        assert len(before) == 6
        assert {row["url"].rpartition("/")[2] for row in after} == {f"{n}.html" for n in range(3)}
        assert all(row in before for row in after)


# Archives


def test_dedupe_of_a_web_archive(tmp_path: Path) -> None:
    pytest.importorskip("warcio")
    records = [
        record("warcinfo", "", b"software: x\r\n", "application/warc-fields"),
        record("request", "http://a.example/", b"GET / HTTP/1.1\r\n\r\n", "application/http; msgtype=request"),
        record("response", "http://a.example/", answer(page({"text": text(1)}).encode())),
        record("response", "http://a.example/x.png", answer(b"\x89PNG" + bytes(99), "image/png")),
        record("response", "http://b.example/", answer(page({"text": text(1)}).encode())),
        record("response", "http://c.example/", answer(page({"text": text(1)}).encode(), status="404 Not Found")),
    ]
    write_records(tmp_path / "in.warc.gz", *records)
    write_records(tmp_path / "wanted.warc.gz", *records[:4], records[5])
    # What the project says of its items is not for archives.
    fields = ("-s", "NEARDUP_FIELDS=main", "-s", "NEARDUP_URL_FIELD=link")
    made = succeeded(
        tmp_path, "dedupe", "in.warc.gz", "-o", "out.warc.gz", "--duplicates", "d.jsonl", "--id-field", "id", *fields
    )
    assert made.stderr == "6 rows, 5 kept, 1 duplicate, 4 without text\n"
    assert (tmp_path / "out.warc.gz").read_bytes() == (tmp_path / "wanted.warc.gz").read_bytes()
    (row,) = rows(tmp_path / "d.jsonl")
    assert row["id"].startswith("<urn:uuid:")


def test_the_extractor_is_the_one_of_the_settings(tmp_path: Path) -> None:
    pytest.importorskip("warcio")
    sent = [answer(page({"text": text(n)}).encode()) for n in (1, 2)]
    write_records(tmp_path / "in.warc", *(record("response", f"http://{n}.example/", s) for n, s in enumerate(sent)))
    (tmp_path / "own.py").write_text(f"def extract(html):\n    return {text(3)!r}\n")
    (tmp_path / "shop.py").write_text("NEARDUP_EXTRACTOR = 'own.extract'\n")
    (tmp_path / "scrapy.cfg").write_text("[settings]\ndefault = shop\n")
    assert "2 rows, 1 kept" in succeeded(tmp_path, "dedupe", "in.warc", "-o", "out.warc").stderr


# Standard input and output


def piped(folder: Path, data: bytes, *arguments: str) -> tuple[str, str]:
    """Return what a verb writes to stdout and stderr if it gets this on stdin."""
    process = FORKS.talk(folder, ["neardup", *arguments], environment())
    process.stdin.buffer.write(data)
    said, errors = process.communicate()
    assert process.returncode == 0, errors
    return said, errors


def test_a_feed_of_lines_comes_from_a_pipe_and_goes_to_one(tmp_path: Path) -> None:
    path = write_feed(tmp_path / "in.jsonl", made_up(5))
    before = read_feed(path)
    data, said = piped(tmp_path, path.read_bytes(), "dedupe", "-", "-o", "-")
    assert said == "11 rows, 6 kept, 5 duplicates, 1 without text\n"
    (tmp_path / "out.jsonl").write_text(data)
    assert read_feed(tmp_path / "out.jsonl") == [*before[:5], before[10]]


@pytest.mark.slow
def test_a_gzipped_feed_comes_from_a_pipe_and_clusters_go_to_one(tmp_path: Path) -> None:
    path = write_feed(tmp_path / "in.jsonl.gz", made_up(5))
    data, _ = piped(tmp_path, path.read_bytes(), "lab", "cluster", "-", "-o", "-")
    assert [json.loads(line)["cluster"] for line in data.splitlines()] == [1, 2, 3, 4, 5]


@pytest.mark.slow
def test_a_store_goes_through_a_pipe(tmp_path: Path) -> None:
    deduped(tmp_path, made_up(5), "a.sqlite")
    held, said = piped(tmp_path, b"", "export", "--store", "a.sqlite", "-o", "-")
    assert said.startswith("5 documents, ")
    assert (
        "-: 5 documents and 10 URLs imported" in piped(tmp_path, held.encode(), "import", "-", "--store", "b.sqlite")[1]
    )


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ("-o - --json", "-: can't be both the output and the result"),
        ("-o - --duplicates -", "-: can't be both the output and the file of duplicates"),
        ("-o out.parquet", "Parquet is written only from Parquet, but the feeds are JSON lines"),
    ],
)
def test_what_a_pipe_is_not_for_is_refused(tmp_path: Path, options: str, why: str) -> None:
    assert why in refused(tmp_path, "dedupe", "-", *options.split())


# What can't be read


@pytest.mark.parametrize("workers", ["0", *slow("2")])
def test_what_can_not_be_read_is_told_and_the_rest_is_deduplicated(tmp_path: Path, workers: str) -> None:
    (tmp_path / "in.jsonl").write_bytes(b'{"text": "one"}\n{"text": \xff}\n{"text": "two"}\n7\n')
    call = ("dedupe", "in.jsonl", "-o", "out.jsonl", "--workers", workers)
    made = neardup(tmp_path, *call)
    assert made.returncode == 1
    *bad, last = made.stderr.splitlines()
    assert [line[:17] for line in bad] == ["in.jsonl, line 2:", "in.jsonl, line 4:"]
    assert last == "2 rows, 2 kept, 0 duplicates, 2 unreadable rows left out"
    assert [row["text"] for row in rows(tmp_path / "out.jsonl")] == ["one", "two"]


def test_of_many_bad_rows_the_first_ten_are_told(tmp_path: Path) -> None:
    (tmp_path / "in.jsonl").write_text('{"text": "one two three"}\n' + "bad\n" * 25 + '{"text": "one four five"}\n')
    for verb, output in (("dedupe", "out.jsonl"), ("lab cluster", "clusters.jsonl"), ("lab lexicon", "x.lexicon")):
        options = ("--band", "0", "1") if verb == "lab lexicon" else ()
        made = neardup(tmp_path, *verb.split(), "in.jsonl", "-o", output, *options)
        assert made.returncode == 1
        assert [line.partition(":")[0] for line in made.stderr.splitlines()[:-1]] == [
            f"in.jsonl, line {n}" for n in range(2, 12)
        ]
        assert made.stderr.endswith(", 25 unreadable rows left out\n")
        assert (tmp_path / output).exists()


def test_where_nothing_can_be_read_nothing_is_written(tmp_path: Path) -> None:
    (tmp_path / "in.jsonl").write_text("bad\n")
    (tmp_path / "out.jsonl").write_text("earlier\n")
    for verb in ("dedupe", "lab cluster", "lab lexicon"):
        made = neardup(tmp_path, *verb.split(), "in.jsonl", "-o", "out.jsonl")
        assert (made.returncode, made.stdout) == (2, "")
        assert made.stderr.splitlines()[-1] == f"scrapy neardup {verb}: no row can be read; nothing was written"
        assert sorted(os.listdir(tmp_path)) == ["in.jsonl", "out.jsonl"]
        assert (tmp_path / "out.jsonl").read_text() == "earlier\n"


def test_half_a_surrogate_pair_in_a_url_is_told_as_it_came(tmp_path: Path) -> None:
    row = {"url": "http://a.example/\ud800鹤", "text": "word " * 30}
    (tmp_path / "in.jsonl").write_text(f"{json.dumps(row)}\n{json.dumps({**row, 'url': 'http://b.example/'})}\n")
    feeds, store = ("in.jsonl", "-o", "out.jsonl"), ("--store", "held.sqlite")
    succeeded(tmp_path, "dedupe", *feeds, "--duplicates", "dups.jsonl", *store)
    succeeded(tmp_path, "lab", "cluster", "in.jsonl", "-o", "clusters.jsonl")
    dups, clusters = (tmp_path.joinpath(name).read_text() for name in ("dups.jsonl", "clusters.jsonl"))
    assert "鹤" in dups
    assert json.loads(dups)["duplicate_of"] == row["url"]
    assert json.loads(clusters)["documents"] == [row["url"], "http://b.example/"]
    assert row["url"] in told(tmp_path, "clusters", *store)[0].values()


def test_numbers_that_json_does_not_know_are_null(tmp_path: Path) -> None:
    (tmp_path / "e.txt").touch()
    (tmp_path / "in.jsonl").write_text(2 * (json.dumps({"id": float("nan"), "text": text(1)}) + "\n"))
    succeeded(tmp_path, "dedupe", "in.jsonl", "-o", "out.jsonl", "--id-field", "id", "--duplicates", "dups.jsonl")
    (tmp_path / "t.txt").write_text(text(1))
    explained = succeeded(tmp_path, "explain", "e.txt", "t.txt", "--json").stdout
    dup, compared = (
        json.loads(said, parse_constant=pytest.fail) for said in ((tmp_path / "dups.jsonl").read_text(), explained)
    )
    assert (dup["id"], dup["duplicate_of"]) == (None, None)
    assert compared["comparison"]["length_ratio"] is None
    assert json_text({math.inf: (1.5, [-math.inf])}) == '{"Infinity": [1.5, [null]]}'
