"""The files of commands: no file is used for two purposes, and none appears before it is complete."""

from __future__ import annotations

import gc
import os
from contextlib import nullcontext
from pathlib import Path

import pytest
from cli import neardup, refused, succeeded, write
from faulty import Disk, small_disk  # noqa: F401 - a fixture
from helpers import text

from scrapy_neardup import Deduplicator, Document
from scrapy_neardup.commands.dedupe import Job
from scrapy_neardup.feeds import Row
from scrapy_neardup.files import writing
from scrapy_neardup.processes import RowSigner
from scrapy_neardup.settings import Config
from scrapy_neardup.signature import Signature

ROWS = [{"id": n, "url": f"http://a.example/{n}", "text": text(n)} for n in range(3)]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return a directory with a feed and a store under several names each."""
    write(tmp_path / "in.jsonl", ROWS)
    (tmp_path / "sub").mkdir()
    with Deduplicator.open(str(tmp_path / "store.jsonl")) as dedup:
        dedup.claim(Document("http://a.example/1", text(1))).commit()
    (tmp_path / "link.jsonl").symlink_to("in.jsonl")
    (tmp_path / "store.html").symlink_to("store.jsonl")
    return tmp_path


@pytest.mark.parametrize("name", ["in.jsonl", "sub/../in.jsonl", "link.jsonl", "../{}/in.jsonl"])
def test_a_feed_is_no_output_by_whatever_name(folder: Path, name: str) -> None:
    before = (folder / "in.jsonl").read_bytes()
    said = refused(folder, "dedupe", "in.jsonl", "-o", name.format(folder.name))
    assert "can't be both a feed and the output" in said
    assert (folder / "in.jsonl").read_bytes() == before


@pytest.mark.parametrize(
    ("call", "said"),
    [
        ("dedupe in.jsonl -o store.jsonl --store store.jsonl", "the store and the output"),
        ("dedupe in.jsonl -o new.jsonl --store new.jsonl", "the store and the output"),
        ("dedupe in.jsonl -o new.jsonl --store in.jsonl", "the store and a feed"),
        ("dedupe in.jsonl -o new.jsonl --duplicates sub/../store.jsonl --store store.jsonl", "the file of duplicates"),
        ("export -o sub/../store.jsonl --store store.jsonl", "the store and the output"),
        ("report -o store.html --store store.jsonl", "the store and the report"),
        ("report -o store.html -s NEARDUP_STORE=store.jsonl", "the store and the report"),
    ],
)
def test_a_store_is_no_output(folder: Path, call: str, said: str) -> None:
    before = (folder / "store.jsonl").read_bytes()
    assert said in refused(folder, *call.split())
    assert (folder / "store.jsonl").read_bytes() == before


@pytest.mark.parametrize("call", ["dedupe bad.jsonl -o sub.jsonl", "lab lexicon bad.jsonl -o sub.jsonl"])
def test_an_output_that_is_a_directory_is_told_before_the_work(tmp_path: Path, call: str) -> None:
    (tmp_path / "bad.jsonl").write_text("no row")  # the work itself would tell of this
    (tmp_path / "sub.jsonl").mkdir()
    assert "sub.jsonl: can't be written: Is a directory" in refused(tmp_path, *call.split())


@pytest.mark.parametrize("call", ["dedupe in.jsonl -o {}", "lab lexicon in.jsonl -o {} --band 0 1"])
def test_what_a_link_leads_to_is_written(tmp_path: Path, call: str) -> None:
    write(tmp_path / "in.jsonl", ROWS)
    (tmp_path / "sub").mkdir()
    (tmp_path / "out.jsonl").symlink_to("sub/real.jsonl")
    succeeded(tmp_path, *call.format("out.jsonl").split())
    assert (tmp_path / "out.jsonl").is_symlink()
    assert (tmp_path / "sub" / "real.jsonl").stat().st_size
    assert os.listdir(tmp_path / "sub") == ["real.jsonl"]


def test_two_that_write_one_file_at_once_do_not_mix(tmp_path: Path) -> None:
    path = str(tmp_path / "out.jsonl")
    with writing(path, (".jsonl",)) as first:
        first.write(b"first\n")
        with writing(path, (".jsonl",)) as second:
            second.write(b"second\n")
        assert Path(path).read_bytes() == b"second\n"
        first.write(b"more\n")
    assert Path(path).read_bytes() == b"first\nmore\n"


@pytest.mark.parametrize("failing", [False, True])
def test_a_gzipped_file_says_its_own_name(tmp_path: Path, failing: bool) -> None:
    path = tmp_path / "out.jsonl.gz"
    with pytest.raises(KeyError) if failing else nullcontext(), writing(str(path), (".jsonl",)) as file:
        file.write(b"{}\n")
        if failing:
            raise KeyError
    assert list(tmp_path.iterdir()) == [path] * (not failing)
    assert failing or b"out.jsonl\0" in path.read_bytes()[:30]


def test_dedupe_holds_no_document_but_those_that_the_store_holds(tmp_path: Path) -> None:
    gc.collect()
    before = alive()
    with Deduplicator.open() as dedup, writing(str(tmp_path / "dups.jsonl"), (".jsonl",)) as report:
        job = Job(Config(), dedup, lambda row: None, report, None)
        rows = [Row(n, {"url": f"http://a.example/{n}", "text": text(n)}, f"line {n}") for n in range(100)]
        made = RowSigner(Config(), dedup.detectors).sign([row[:2] for row in rows])
        job.take(rows, made)
    assert job.documents == 100
    assert alive() >= before + 100
    del job.dedup, dedup, rows, made
    gc.collect()
    assert alive() == before
    assert job.summary().startswith("100 rows, 100 kept")


def alive() -> int:
    return sum(type(each) is Signature for each in gc.get_objects())


def test_rows_again_are_dropped_within_a_feed_and_kept_where_they_were_held_before(tmp_path: Path) -> None:
    call = ["dedupe", "in.jsonl", "-o", "out.jsonl", "--duplicates", "d.jsonl", "--store", "s.sqlite", "--json"]
    write(tmp_path / "in.jsonl", ROWS + ROWS)
    for _ in range(2):
        assert '"kept": 3' in succeeded(tmp_path, *call, "--id-field", "id").stdout
    write(tmp_path / "in.jsonl", [{"url": f"http://b.example/{n}", "text": text(n)} for n in range(3)])
    assert '"kept": 0' in succeeded(tmp_path, *call).stdout
    assert "a.example" in (tmp_path / "d.jsonl").read_text()


@pytest.mark.slow
def test_a_store_that_can_not_remember_leaves_the_outputs_as_they_were(
    tmp_path: Path,
    small_disk: Disk,  # noqa: F811
) -> None:
    write(tmp_path / "in.jsonl", [{"url": f"http://a.example/{n}", "text": text(n)} for n in range(6000)])
    call = ["dedupe", "in.jsonl", "-o", "out.jsonl", "--store", str(small_disk.path / "held.sqlite")]
    (tmp_path / "out.jsonl").write_text("earlier\n")
    made = neardup(tmp_path, *call)
    assert made.returncode == 2
    assert "is full" in made.stderr.splitlines()[-1]  # before it: that the index stays in memory
    assert (tmp_path / "out.jsonl").read_text() == "earlier\n"
