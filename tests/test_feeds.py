"""Feeds of every kind: rows come out as they went in, and files appear as a whole or not at all."""

from __future__ import annotations

import gzip
import os
import pickle
import stat
import sys
from collections.abc import Iterable
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from feed_cases import AROUND, BAD_ROWS, BOM, LINES, NO_FEEDS, READ, TOO_LONG, Rows
from feed_files import (
    ENDINGS,
    ROWS,
    TEXTS,
    bad_rows,
    copied,
    copy,
    feeds_of,
    in_memory,
    page,
    read,
    read_feed,
    write_feed,
)

from scrapy_neardup.feeds import FORMATS, BadRowError, FeedError, Line, Row, writing

ALSO = {"jsonl": ("jl", "jsonlines", "ndjson"), "jsonl.gz": ("jl.gz",)}
every_kind = pytest.mark.parametrize("ending", ENDINGS)


def said(path: Path, ending: str) -> list[dict[str, Any]]:
    """Return what a feed says, of WARC only what stands in other feeds too."""
    names = ("url", "text") if ending.startswith("warc") else tuple(ROWS[0])
    return [{name: row.data[name] for name in names} for row in feeds_of(path).rows()]


def wanted(ending: str, rows: Iterable[dict[str, str]] = ROWS) -> list[dict[str, Any]]:
    return [{"url": row["url"], "text": page(row)} if ending.startswith("warc") else row for row in rows]


@every_kind
def test_rows_come_out_as_they_went_in(tmp_path: Path, ending: str) -> None:
    path, kept = write_feed(tmp_path / f"in.{ending}"), tmp_path / f"out.{ending}"
    before, others = path.read_bytes(), read_feed(path)
    for name in (ending, ending.upper(), *ALSO.get(ending, ())):
        path = path.rename(tmp_path / f"in.{name}")
        assert said(path, ending) == wanted(ending)
    copy(kept, path, only=[1, 3])
    assert read_feed(kept) == [others[0], others[2]]
    after = copied(kept, path)
    assert read_feed(kept) == others
    if ending == "parquet":  # it is pages of columns, so there are no bytes of a row
        import pyarrow.parquet as pq

        assert pq.read_table(kept).equals(pq.read_table(path), check_metadata=True)
        assert pq.ParquetFile(kept).metadata.row_group(0).column(0).compression == "ZSTD"
        return
    if ending.endswith(".gz") and ending != "warc.gz":
        before, after = gzip.decompress(before), gzip.decompress(after)
    assert after.rstrip(b"\n") == before.rstrip(b"\n")


@every_kind
def test_feeds_of_one_kind_become_one(tmp_path: Path, ending: str) -> None:
    paths = [write_feed(tmp_path / f"{name}.{ending}", ROWS[n : n + 2]) for n, name in ((0, "a"), (2, "b"))]
    copy(tmp_path / f"out.{ending}", *paths)
    assert said(tmp_path / f"out.{ending}", ending) == wanted(ending)
    feeds = feeds_of(*paths)
    lines, seen = zip(*((line, feeds.at) for line in feeds.lines()), strict=True)
    assert [line.number for line in lines] == [1, 2, 3, 4]
    assert [line.place.split(",")[0] for line in lines] == [str(path) for path in paths for _ in range(2)]
    assert feeds.size == feeds.at == sum(path.stat().st_size for path in paths)
    assert [*seen, feeds.size] == sorted([*seen, feeds.size])
    assert seen[1] <= paths[0].stat().st_size < seen[-1]
    sent: tuple[Line, ...] = pickle.loads(pickle.dumps(lines))  # as to other processes
    assert sent == lines
    assert list(map(Row.of, sent)) == list(map(Row.of, lines))


@every_kind
def test_no_more_than_some_of_it_is_in_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ending: str) -> None:
    monkeypatch.setattr("scrapy_neardup.feeds.parquet.GROUP", 1 << 21)
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
    assert BOM not in copied(tmp_path / f"out.{ending}", empty, *paths, empty)[3:]
    assert said(tmp_path / f"out.{ending}", ending) == wanted(ending)


@pytest.mark.parametrize(("name", "data", "rows", "written"), READ.values(), ids=READ)
def test_odd_feed_is_read_and_written(tmp_path: Path, name: str, data: bytes, rows: Rows, written: bytes) -> None:
    assert read(tmp_path / name, data) == rows
    assert copied(tmp_path / f"out_{name}", tmp_path / name) == written


@pytest.mark.parametrize(("ending", "data", "raw", "message"), BAD_ROWS, ids=range(len(BAD_ROWS)))
def test_bad_rows_are_named_and_can_be_taken(
    tmp_path: Path, ending: str, data: bytes, raw: bytes, message: str
) -> None:
    before, after, wanted = AROUND[ending]
    rows, ((_, why), *_) = bad_rows(tmp_path / f"x.{ending}", data)
    assert rows == wanted
    assert why.startswith(message)
    assert (tmp_path / f"bad_x.{ending}").read_bytes() == before + raw + after
    with pytest.raises(BadRowError) as caught:
        list(feeds_of(tmp_path / f"x.{ending}").rows())
    assert str(caught.value) == f"{tmp_path / 'x'}.{ending}, {why}"
    assert "\n" not in why


@every_kind
def test_a_feed_that_was_cut_off_is_told(tmp_path: Path, ending: str) -> None:
    path = write_feed(tmp_path / f"x.{ending}")
    with pytest.raises(FeedError, match=r"x\.") as caught:
        read(path, path.read_bytes()[:-20])
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(("name", "data", "message"), NO_FEEDS, ids=range(len(NO_FEEDS)))
def test_what_is_no_feed_is_named(tmp_path: Path, name: str, data: bytes, message: str) -> None:
    with pytest.raises(FeedError) as caught:
        bad_rows(tmp_path / name, data)
    assert str(caught.value).startswith(f"{tmp_path / name}")
    assert message in str(caught.value)
    assert "\n" not in str(caught.value).rstrip()  # pyarrow's own message ends in one
    assert os.listdir(tmp_path) == [name]


@pytest.mark.parametrize(("name", "data", "message"), TOO_LONG, ids=["jsonl", "csv", "json"])
def test_a_row_that_is_too_long_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, data: bytes, message: str
) -> None:
    for constant, value in (("compression.LARGEST", 1000), ("jsonarray.LARGEST", 1000), ("jsonarray.CHUNK", 300)):
        monkeypatch.setattr(f"scrapy_neardup.feeds.{constant}", value)
    with pytest.raises(FeedError, match=f"{name}, {message}"):
        bad_rows(tmp_path / name, data)


@every_kind
def test_only_a_regular_file_is_a_feed(tmp_path: Path, ending: str) -> None:
    path = write_feed(tmp_path / f"x.{ending}")
    path.unlink()
    with pytest.raises(FeedError, match=f"{path}: can't be read: No such file"):
        feeds_of(path)
    path.mkdir()
    with pytest.raises(FeedError, match=f"{path}: can't be read: Is a directory"):
        list(feeds_of(path).rows())
    path.rmdir()
    reader, writer = os.pipe()  # nobody would wait for it
    os.close(writer)
    path.symlink_to(f"/dev/fd/{reader}")
    with pytest.raises(FeedError, match=f"{path}: can't be read: not a regular file"):
        feeds_of(path)
    os.close(reader)


@every_kind
def test_the_output_is_of_the_kind_that_the_feeds_are(tmp_path: Path, ending: str) -> None:
    path = write_feed(tmp_path / f"in.{ending}")
    for other in ["json" if ending.startswith("jsonl") else "jsonl", *(["tsv"] if ending.startswith("csv") else [])]:
        with pytest.raises(FeedError, match=rf"out\.{other}: the feeds are .+, and so is the output; allowed is \."):
            copy(tmp_path / f"out.{other}", path)
        with pytest.raises(FeedError, match=r"several formats, .+ and .+; allowed|its columns differ from those of"):
            feeds_of(path, write_feed(tmp_path / f"x.{other}"))
    assert not list(tmp_path.glob("*out*"))


@pytest.mark.parametrize("other", ["title,url,text\n", "url,text\n", "url;title;text\n", '"url,title,text"\n', None])
def test_feed_of_other_columns_is_refused(tmp_path: Path, other: str | None) -> None:
    ending = "csv" if other else "parquet"
    paths = [write_feed(tmp_path / f"{name}.{ending}", rows) for name, rows in (("x", ROWS), ("y", [{"text": "b"}]))]
    if other:
        paths[1].write_text(other)
    with pytest.raises(FeedError, match=rf"y\.{ending}: its columns differ from those of .*x\.{ending}"):
        feeds_of(*paths)


@pytest.mark.parametrize(("package", "kind"), [("pyarrow", "Parquet"), ("warcio", "WARC")])
def test_package_that_is_not_installed_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, package: str, kind: str
) -> None:
    path = write_feed(tmp_path / f"x.{kind.lower()}")
    monkeypatch.setitem(sys.modules, package, None)
    why = rf"{kind} needs {package}: pip install 'scrapy-neardup\[{kind.lower()}\]'"
    with pytest.raises(FeedError, match=f"{path}: {why}"):
        feeds_of(path)


# Files that are written


@pytest.mark.parametrize("name", ["out.jsonl", "out.jsonl.gz"])
def test_written_file_appears_when_it_is_whole(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    with writing(str(path), FORMATS) as file:
        file.write(LINES[0])
        assert not path.exists()
    data = path.read_bytes()
    assert (gzip.decompress(data) if name.endswith(".gz") else data) == LINES[0]
    assert os.listdir(tmp_path) == [name]


@pytest.mark.skipif(os.name != "posix", reason="a folder can't be opened here")
def test_written_file_is_on_disk_before_it_appears(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, done, sync = tmp_path / "out.jsonl", list[object](), os.fsync

    def spy(handle: int) -> None:
        is_file = stat.S_ISREG(os.fstat(handle).st_mode)
        done.append((path.exists(), os.fstat(handle).st_size if is_file else "folder"))
        sync(handle)

    monkeypatch.setattr(os, "fsync", spy)
    with writing(str(path), FORMATS) as file:
        file.write(LINES[0])
    assert done == [(False, len(LINES[0])), (True, "folder")]


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
def test_what_was_half_written_leaves_nothing_and_spoils_nothing(tmp_path: Path, error: type[BaseException]) -> None:
    path = tmp_path / "out.jsonl"
    path.write_text("earlier\n")

    def fail() -> None:
        with writing(str(path), FORMATS) as file:
            file.write(b"half")
            raise error

    with pytest.raises(error):
        fail()
    assert path.read_text() == "earlier\n"
    assert os.listdir(tmp_path) == ["out.jsonl"]


@pytest.mark.parametrize("name", ["missing/out.jsonl", "out.txt"])
def test_file_that_can_not_be_written_is_named(tmp_path: Path, name: str) -> None:
    path = str(tmp_path / name)
    with pytest.raises(FeedError) as caught, writing(path, FORMATS):
        pass
    assert str(caught.value).startswith(path)
    assert os.listdir(tmp_path) == []
