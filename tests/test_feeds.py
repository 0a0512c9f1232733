"""Feeds on disk: rows come out as they went in, and files appear as a whole or not at all."""

from __future__ import annotations

import gzip
import os
import pickle
import random
import stat
import tracemalloc
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
from feed_files import ENDINGS, ROWS, page, read_feed, write_feed

from scrapy_neardup.feeds import FORMATS, BadRowError, FeedError, Feeds, Line, Row, writing, writing_rows

LINES = [b'{"url": "http://a.example/", "n": 1.50}', '{ "text":"\u9e64\\u9e64",  "b": [1,2] }'.encode()]


def rows_of(*paths: Path) -> list[Row]:
    return list(Feeds(list(map(str, paths))).rows())


def said(path: Path, ending: str) -> list[dict[str, Any]]:
    """Return what a feed says, of WARC only what stands in other feeds too."""
    names = ("url", "text") if ending.startswith("warc") else tuple(ROWS[0])
    return [{name: row.data[name] for name in names} for row in rows_of(path)]


def wanted(ending: str, rows: Iterable[dict[str, str]] = ROWS) -> list[dict[str, Any]]:
    return [{"url": row["url"], "text": page(row)} if ending.startswith("warc") else row for row in rows]


def copy(paths: list[Path], output: Path, *numbers: int) -> None:
    """Write some rows of feeds, all where none are named."""
    feeds = Feeds(list(map(str, paths)))
    with writing_rows(str(output), feeds.kind) as write:
        for line in feeds.lines():
            if line.number in numbers or not numbers:
                write(line)


# What holds for every kind


@pytest.fixture(params=ENDINGS)
def ending(request: pytest.FixtureRequest) -> str:
    """Return how the name of a feed ends, for each kind that there is."""
    pytest.importorskip({"parquet": "pyarrow", "warc": "warcio"}.get(request.param.partition(".")[0], "json"))
    return str(request.param)


def test_rows_say_what_was_written(tmp_path: Path, ending: str) -> None:
    path = write_feed(tmp_path / f"x.{ending}")
    assert said(path, ending) == wanted(ending)
    assert said(path.rename(tmp_path / f"X.{ending.upper()}"), ending) == wanted(ending)


def test_rows_that_are_kept_are_what_others_read(tmp_path: Path, ending: str) -> None:
    path, kept = write_feed(tmp_path / f"in.{ending}"), tmp_path / f"out.{ending}"
    before = read_feed(path)
    copy([path], kept, 1, 3)
    assert read_feed(kept) == [before[0], before[2]]
    copy([path], kept)
    assert read_feed(kept) == before


def test_kept_rows_have_their_very_bytes(tmp_path: Path, ending: str) -> None:
    path, kept = write_feed(tmp_path / f"in.{ending}"), tmp_path / f"out.{ending}"
    copy([path], kept)
    before, after = path.read_bytes(), kept.read_bytes()
    if ending == "parquet":  # it is pages of columns, so there are no bytes of a row
        import pyarrow.parquet as pq

        assert pq.read_table(kept).equals(pq.read_table(path), check_metadata=True)
        assert pq.ParquetFile(kept).metadata.row_group(0).column(0).compression == "ZSTD"
        return
    if ending.endswith(".gz") and ending != "warc.gz":
        before, after = gzip.decompress(before), gzip.decompress(after)
    assert after.rstrip(b"\n") == before.rstrip(b"\n")


def test_feeds_of_one_kind_become_one(tmp_path: Path, ending: str) -> None:
    paths = [write_feed(tmp_path / f"{name}.{ending}", ROWS[n : n + 2]) for n, name in ((0, "a"), (2, "b"))]
    copy(paths, tmp_path / f"out.{ending}")
    assert said(tmp_path / f"out.{ending}", ending) == wanted(ending)
    lines = list(Feeds(list(map(str, paths))).lines())
    assert [line.number for line in lines] == [1, 2, 3, 4]
    assert [line.place.split(",")[0] for line in lines] == [str(path) for path in paths for _ in range(2)]


def test_lines_can_be_sent_to_other_processes(tmp_path: Path, ending: str) -> None:
    feeds = Feeds([str(write_feed(tmp_path / f"x.{ending}"))])
    lines = list(feeds.lines())
    sent: list[Line] = pickle.loads(pickle.dumps(lines))
    assert sent == lines
    assert list(map(Row.of, sent)) == list(map(Row.of, lines))


def test_it_tells_how_much_has_been_read(tmp_path: Path, ending: str) -> None:
    paths = [write_feed(tmp_path / f"{name}.{ending}") for name in "ab"]
    feeds = Feeds(list(map(str, paths)))
    seen = [feeds.at for _ in feeds.lines()]
    assert feeds.size == feeds.at == sum(path.stat().st_size for path in paths)
    assert seen == sorted(seen)
    assert paths[0].stat().st_size < seen[-1] <= feeds.size


def test_no_more_than_some_of_it_is_in_memory(tmp_path: Path, ending: str) -> None:
    rows = [{"url": f"http://a.example/{n}", "text": '\\ " 鹤' * 5000} for n in range(400)]
    path = write_feed(tmp_path / f"x.{ending}", rows)
    next(Feeds([str(path)]).rows())  # what is imported counts no more
    tracemalloc.start()
    try:
        copy([path], tmp_path / f"out.{ending}")
        rows_of_it = sum(len(row.data["text"]) > 10_000 for row in Feeds([str(path)]).rows())
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert rows_of_it == 400
    # Arrow's own memory is not traced; what is waits for a row group to be full.
    assert peak < (40 << 20 if ending == "parquet" else 6 << 20)


@pytest.mark.parametrize("rows", [[], ROWS[:1]])
def test_feed_without_rows(tmp_path: Path, ending: str, rows: list[dict[str, str]]) -> None:
    path = write_feed(tmp_path / f"x.{ending}", rows)
    copy([path], tmp_path / f"out.{ending}", 99)
    assert rows_of(tmp_path / f"out.{ending}") == []
    copy([tmp_path / f"out.{ending}", write_feed(tmp_path / f"more.{ending}")], tmp_path / f"all.{ending}")
    assert said(tmp_path / f"all.{ending}", ending) == wanted(ending)


def test_a_feed_that_was_cut_off_is_told(tmp_path: Path, ending: str) -> None:
    path = write_feed(tmp_path / f"x.{ending}")
    path.write_bytes(path.read_bytes()[:-20])
    with pytest.raises(FeedError, match=r"x\.") as caught:
        rows_of(path)
    assert "\n" not in str(caught.value)


def test_the_output_is_of_the_kind_that_the_feeds_are(tmp_path: Path, ending: str) -> None:
    path = write_feed(tmp_path / f"in.{ending}")
    other = "json" if ending.startswith(("jsonl", "jl")) else "jsonl"
    with pytest.raises(FeedError, match=rf"out\.{other}: the feeds are .+; allowed is \."):
        copy([path], tmp_path / f"out.{other}")
    with pytest.raises(FeedError, match=r"feeds of several kinds, .+ and .+; allowed"):
        rows_of(path, write_feed(tmp_path / f"x.{other}"))
    assert sorted(os.listdir(tmp_path)) == sorted([f"in.{ending}", f"x.{other}"])


def test_bad_rows_can_be_taken_and_are_written_as_they_stand(tmp_path: Path) -> None:
    path = tmp_path / "x.jsonl"
    path.write_bytes(b'{"a": 1}\n{"a": \n\xff\n{"a": 2}\n')
    feeds, bad = Feeds([str(path)]), []
    with writing_rows(str(tmp_path / "bad.jsonl"), feeds.kind) as write:
        rows = list(feeds.rows(lambda line, why: bad.append((write(line), line.number, why))))
    assert [row.data for row in rows] == [{"a": 1}, {"a": 2}]
    assert [number for _, number, _ in bad] == [2, 3]
    assert bad[0][2].startswith(f"{path}, line 2: no JSON")
    assert (tmp_path / "bad.jsonl").read_bytes() == b'{"a": \n\xff\n'


# JSON lines


@pytest.mark.parametrize("name", ["x.jsonl", "x.jl", "x.jsonlines", "x.ndjson", "X.JSONL", "x.jsonl.gz", "x.JL.GZ"])
def test_rows_come_as_they_stand(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    data = b"\n".join(LINES) + b"\n"
    path.write_bytes(gzip.compress(data) if name.lower().endswith(".gz") else data)
    assert rows_of(path) == [
        Row(1, LINES[0] + b"\n", {"url": "http://a.example/", "n": 1.5}, f"{path}, line 1"),
        Row(2, LINES[1] + b"\n", {"text": "鹤鹤", "b": [1, 2]}, f"{path}, line 2"),
    ]


def test_no_line_is_of_another_encoding(tmp_path: Path) -> None:
    path = tmp_path / "x.jsonl"
    path.write_bytes(b'{"a": 1}\n' + '{"a": 2}'.encode("utf-16-le") + b'\n{"a": "\xed\xa0\x80"}\n')
    feeds, bad = Feeds([str(path)]), list[str]()
    assert [row.data for row in feeds.rows(lambda line, why: bad.append(why))] == [{"a": 1}, {"a": "\ud800"}]
    assert [why.partition(": no JSON")[0] for why in bad] == [f"{path}, line 2"]


def test_blank_lines_are_passed_over_and_line_ends_made_one(tmp_path: Path) -> None:
    path = tmp_path / "x.jsonl"
    path.write_bytes(b'\n{"a": 1}\r\n  \n{"a": 2}')
    assert [(row.number, row.raw) for row in rows_of(path)] == [(1, b'{"a": 1}\n'), (2, b'{"a": 2}\n')]


def test_empty_feed_has_no_rows(tmp_path: Path) -> None:
    (tmp_path / "x.jsonl").touch()
    (tmp_path / "x.jsonl.gz").write_bytes(gzip.compress(b""))
    assert rows_of(tmp_path / "x.jsonl", tmp_path / "x.jsonl.gz") == []


@pytest.mark.parametrize("ending", ["jsonl", "json", "csv"])
def test_file_of_no_bytes_has_no_rows(tmp_path: Path, ending: str) -> None:
    (tmp_path / f"x.{ending}").touch()
    full = write_feed(tmp_path / f"y.{ending}")
    assert len(rows_of(tmp_path / f"x.{ending}", full)) == len(ROWS)


def test_first_row_may_begin_with_a_byte_order_mark(tmp_path: Path) -> None:
    (tmp_path / "x.jsonl").write_bytes(b'\xef\xbb\xbf{"a": 1}\n')
    assert [row.data for row in rows_of(tmp_path / "x.jsonl")] == [{"a": 1}]


@pytest.mark.parametrize("name", ["jsonl", "json", "csv"])
def test_no_byte_order_mark_gets_into_the_middle_of_a_feed(tmp_path: Path, name: str) -> None:
    paths = [write_feed(tmp_path / f"{n}.{name}", ROWS[n : n + 2]) for n in (0, 2)]
    for path in paths:
        path.write_bytes(b"\xef\xbb\xbf" + path.read_bytes())
    copy(paths, tmp_path / f"out.{name}")
    assert b"\xef\xbb\xbf" not in (tmp_path / f"out.{name}").read_bytes()[3:]
    assert said(tmp_path / f"out.{name}", name) == wanted(name)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b'{"a": 1}\n\n{"a": \n', "line 3: no JSON"),
        (b"[1, 2]\n", "line 1: a JSON list; allowed is an object"),
        (b'{"a": 1}\n"text"\n', "line 2: a JSON str"),
        (b'{"a": "\xff"}\n', "line 1: no JSON"),
        (b"null\n", "line 1: a JSON"),
        ('{"a": 1}\n{"a": 2}\n'.encode("utf-16"), "line 1: no JSON: 'utf-8' codec can't decode"),
        ('{"a": 1}\n{"a": 2}\n'.encode("utf-16-le"), "line 1: no JSON"),
        (b"[" * 100_000 + b"\n", "line 1: no JSON"),
    ],
)
def test_row_that_is_none_is_named(tmp_path: Path, data: bytes, message: str) -> None:
    path = tmp_path / "x.jsonl"
    path.write_bytes(data)
    with pytest.raises(BadRowError) as caught:
        rows_of(path)
    assert str(caught.value).startswith(f"{path}, ")
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("name", "data", "message"),
    [
        ("missing.jsonl", None, "No such file"),
        ("x.xlsx", b"", "no such kind of file"),
        ("x", b"", "no such kind of file"),
        ("x.jsonl.bz2", b"", "no such kind of file"),
        ("x.jsonl.gz", b'{"a": 1}\n', "can't be read"),
        ("x.jsonl.gz", gzip.compress(b'{"a": 1}\n' * 999)[:-12], "can't be read"),
        ("x.jsonl.gz", gzip.compress(random.Random(1).randbytes(999))[:20] + b"\xff" * 500, "can't be read"),
    ],
)
def test_feed_that_can_not_be_read_is_named(tmp_path: Path, name: str, data: bytes | None, message: str) -> None:
    path = tmp_path / name
    if data is not None:
        path.write_bytes(data)
    with pytest.raises(FeedError) as caught:
        rows_of(path)
    assert str(caught.value).startswith(str(path))
    assert message in str(caught.value)


def test_directory_is_no_feed(tmp_path: Path) -> None:
    (tmp_path / "x.jsonl").mkdir()
    with pytest.raises(FeedError, match="can't be read"):
        rows_of(tmp_path / "x.jsonl")


@pytest.mark.parametrize("ending", ["jsonl", "json", "csv", "parquet", "warc"])
def test_pipe_is_no_feed(tmp_path: Path, ending: str) -> None:
    reader, writer = os.pipe()  # nobody would wait for it
    os.close(writer)
    (tmp_path / f"x.{ending}").symlink_to(f"/dev/fd/{reader}")
    with pytest.raises(FeedError, match="can't be read: no regular file"):
        rows_of(tmp_path / f"x.{ending}")
    os.close(reader)


@pytest.mark.parametrize("name", ["out.jsonl", "out.jsonl.gz"])
def test_written_file_appears_when_it_is_whole(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    with writing(str(path), FORMATS) as file:
        file.write(LINES[0] + b"\n")
        assert not path.exists()
    data = path.read_bytes()
    assert (gzip.decompress(data) if name.endswith(".gz") else data) == LINES[0] + b"\n"
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
