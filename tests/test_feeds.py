"""Feeds of every kind: rows are written as they were read, bad rows are reported, and files appear complete."""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Iterable
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from feed_cases import BAD_ROWS, BOM, LINES, NO_FEEDS, READ, Rows
from feed_files import (
    ENDINGS,
    KINDS,
    ROWS,
    TEXTS,
    copied,
    copy,
    feeds_of,
    in_memory,
    page,
    read,
    read_all,
    read_feed,
    write_feed,
)
from tiers import some

from scrapy_neardup.feeds import JsonLines
from scrapy_neardup.files import FileError, writing

ALSO = {"jsonl": ("jl", "jsonlines", "ndjson"), "jsonl.gz": ("jl.gz",)}
every_kind = pytest.mark.parametrize("ending", some(ENDINGS, *KINDS))


def said(path: Path, ending: str) -> list[dict[str, Any]]:
    """Return what a feed says, of WARC only what stands in other feeds too."""
    names = ("url", "text") if ending.startswith("warc") else tuple(ROWS[0])
    return [{name: row.data[name] for name in names} for row in feeds_of(path).rows()]


def wanted(ending: str, rows: Iterable[dict[str, str]] = ROWS) -> list[dict[str, Any]]:
    return [{"url": row["url"], "text": page(row)} if ending.startswith("warc") else row for row in rows]


@every_kind
def test_rows_come_out_as_they_went_in(tmp_path: Path, ending: str) -> None:
    path, kept = write_feed(tmp_path / f"in.{ending}"), tmp_path / f"out.{ending}"
    others = read_feed(path)
    for name in (ending, ending.upper(), *ALSO.get(ending, ())):
        path = path.rename(tmp_path / f"in.{name}")
        assert said(path, ending) == wanted(ending)
    copy(kept, path, only=[1, 3])
    assert read_feed(kept) == [others[0], others[2]]
    copy(kept, path)
    assert read_feed(kept) == others


@pytest.mark.parametrize(("before", "after"), [*product(["jsonl", "json.gz", "csv", "parquet"], TEXTS)])
def test_a_feed_of_text_is_written_from_any_other(tmp_path: Path, before: str, after: str) -> None:
    copy(tmp_path / f"out.{after}", write_feed(tmp_path / f"in.{before}"))
    assert read_feed(tmp_path / f"out.{after}") == ROWS


def test_the_pages_of_an_archive_become_lines(tmp_path: Path) -> None:
    copy(tmp_path / "out.jsonl", write_feed(tmp_path / "in.warc.gz"))
    assert said(tmp_path / "out.jsonl", "warc") == wanted("warc")


@every_kind
def test_feeds_of_one_kind_become_one(tmp_path: Path, ending: str) -> None:
    paths = [write_feed(tmp_path / f"{name}.{ending}", ROWS[n : n + 2]) for n, name in ((0, "a"), (2, "b"))]
    copy(tmp_path / f"out.{ending}", *paths)
    assert said(tmp_path / f"out.{ending}", ending) == wanted(ending)
    feeds = feeds_of(*paths)
    rows, seen = zip(*((row, feeds.at) for row in feeds.rows()), strict=True)
    assert [row.number for row in rows] == [1, 2, 3, 4]
    assert [row.place.split(",")[0] for row in rows] == [str(path) for path in paths for _ in range(2)]
    assert feeds.size == feeds.at == sum(path.stat().st_size for path in paths)
    assert [*seen, feeds.size] == sorted([*seen, feeds.size])


@pytest.mark.parametrize("ending", some(ENDINGS, "jsonl", "json", "parquet"))
def test_no_more_than_some_of_it_is_in_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ending: str) -> None:
    monkeypatch.setattr("scrapy_neardup.feeds.GROUP", 1 << 21)
    rows = [{"url": f"http://a.example/{n}", "text": ('\\ " 鹤' + "x" * 1995) * 50} for n in range(100)]
    path = write_feed(tmp_path / f"x.{ending}", rows)
    next(feeds_of(path).rows())  # modules are imported now, so their memory does not count
    with in_memory(6 << 20):  # of 10
        copy(tmp_path / f"out.{ending}", path)
        assert sum(len(row.data["text"]) > 10_000 for row in feeds_of(path).rows()) == 100


@pytest.mark.parametrize("rows", [[], ROWS[:1]])
@every_kind
def test_feed_without_rows(tmp_path: Path, ending: str, rows: list[dict[str, str]]) -> None:
    path, out = write_feed(tmp_path / f"x.{ending}", rows), tmp_path / f"out.{ending}"
    copy(out, path, only=[99])
    assert said(out, ending) == []
    copy(tmp_path / f"all.{ending}", out, write_feed(tmp_path / f"more.{ending}"))
    assert said(tmp_path / f"all.{ending}", ending) == wanted(ending)


@pytest.mark.parametrize(("ending", "begin"), [("warc", b""), *product(TEXTS, (b"", BOM))])
def test_files_of_no_bytes_and_with_marks_go_with_all_others(tmp_path: Path, ending: str, begin: bytes) -> None:
    empty, *paths = [tmp_path / f"{name}.{ending}" for name in "xab"]
    empty.touch()  # as Scrapy leaves it where there are no items
    for path, rows in zip(paths, (ROWS[:2], ROWS[2:]), strict=True):
        path.write_bytes(begin + write_feed(path, rows).read_bytes())
    assert BOM not in copied(tmp_path / f"out.{ending}", empty, *paths, empty)
    assert said(tmp_path / f"out.{ending}", ending) == wanted(ending)


@pytest.mark.parametrize(("name", "data", "rows"), READ.values(), ids=READ)
def test_odd_feed_is_read_and_written(tmp_path: Path, name: str, data: bytes, rows: Rows) -> None:
    assert read(tmp_path / name, data) == rows
    copy(tmp_path / f"out_{name}", tmp_path / name)
    assert [row.data for row in feeds_of(tmp_path / f"out_{name}").rows()] == rows


@pytest.mark.parametrize(("name", "data", "rows", "bad"), BAD_ROWS, ids=range(len(BAD_ROWS)))
def test_what_can_not_be_read_is_told_and_the_rest_is_read(
    tmp_path: Path, name: str, data: bytes, rows: Rows, bad: list[str]
) -> None:
    found, told = read_all(tmp_path / name, data)
    assert found == rows
    assert len(told) == len(bad)
    assert [why[: len(start)] for why, start in zip(told, bad, strict=True)] == bad
    with pytest.raises(FileError) as caught:
        list(feeds_of(tmp_path / name).rows())
    assert told[0] in str(caught.value)


@pytest.mark.parametrize("ending", [each for each in ENDINGS if each not in ("csv", "tsv")])
def test_a_feed_that_was_cut_off_is_told_and_the_next_is_read(tmp_path: Path, ending: str) -> None:
    path, more = write_feed(tmp_path / f"x.{ending}"), write_feed(tmp_path / f"y.{ending}")
    path.write_bytes(path.read_bytes()[:-20])
    bad: list[str] = []
    rows = [row.data["url"] for row in feeds_of(path, more).rows(lambda place, why: bad.append(place))]
    assert rows[-4:] == [row["url"] for row in ROWS]
    assert len(bad) == 1
    assert bad[0].startswith(str(path))


@pytest.mark.parametrize(("name", "data", "message"), NO_FEEDS, ids=range(len(NO_FEEDS)))
def test_what_is_no_feed_is_named(tmp_path: Path, name: str, data: bytes, message: str) -> None:
    (tmp_path / name).write_bytes(data)
    with pytest.raises(FileError) as caught:
        list(feeds_of(tmp_path / name).rows())
    assert str(caught.value).startswith(f"{tmp_path / name}")
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_folder_or_a_missing_file_is_told_before_any_row_is_read(tmp_path: Path) -> None:
    path = tmp_path / "x.jsonl"
    with pytest.raises(FileError, match=f"{path}: can't be read: No such file"):
        feeds_of(path)
    path.mkdir()
    with pytest.raises(FileError, match=f"{path}: can't be read: Is a directory"):
        feeds_of(path)


def test_columns_are_those_of_the_first_row(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("url,text\na,b\n")
    (tmp_path / "b.csv").write_text("text\nc\n")
    assert copied(tmp_path / "out.csv", tmp_path / "a.csv", tmp_path / "b.csv") == b"url,text\r\na,b\r\n,c\r\n"
    with pytest.raises(FileError, match=r"out\.csv: no column for the field 'url'"):
        copy(tmp_path / "out.csv", tmp_path / "b.csv", tmp_path / "a.csv")


def test_package_that_is_not_installed_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write_feed(tmp_path / "x.parquet")
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(FileError, match=rf"{path}: Parquet needs pyarrow: pip install 'scrapy-neardup\[parquet\]'"):
        list(feeds_of(path).rows())


# Files that are written


@pytest.mark.skipif(os.name != "posix", reason="a folder can't be opened here")
def test_written_file_is_on_disk_before_it_appears(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, done, sync = tmp_path / "out.jsonl", list[object](), os.fsync

    def spy(handle: int) -> None:
        is_file = stat.S_ISREG(os.fstat(handle).st_mode)
        done.append((path.exists(), os.fstat(handle).st_size if is_file else "folder"))
        sync(handle)

    monkeypatch.setattr(os, "fsync", spy)
    with writing(str(path), JsonLines.endings) as file:
        file.write(LINES[0])
    assert done == [(False, len(LINES[0])), (True, "folder")]


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
def test_what_was_half_written_leaves_nothing_and_spoils_nothing(tmp_path: Path, error: type[BaseException]) -> None:
    path = tmp_path / "out.jsonl"
    path.write_text("earlier\n")

    def fail() -> None:
        with writing(str(path), JsonLines.endings) as file:
            file.write(b"half")
            raise error

    with pytest.raises(error):
        fail()
    assert path.read_text() == "earlier\n"
    assert os.listdir(tmp_path) == ["out.jsonl"]
