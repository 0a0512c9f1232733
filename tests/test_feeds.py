"""Feeds on disk: rows come out as they went in, and files appear as a whole or not at all."""

from __future__ import annotations

import gzip
import os
from pathlib import Path

import pytest

from scrapy_neardup.feeds import FeedError, Row, read_feeds, writing

LINES = [b'{"url": "http://a.example/", "n": 1.50}', '{ "text":"\u9e64\\u9e64",  "b": [1,2] }'.encode()]


@pytest.mark.parametrize("name", ["x.jsonl", "x.jl", "x.jsonlines", "x.ndjson", "X.JSONL", "x.jsonl.gz", "x.JL.GZ"])
def test_rows_come_as_they_stand(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    data = b"\n".join(LINES) + b"\n"
    path.write_bytes(gzip.compress(data) if name.lower().endswith(".gz") else data)
    assert list(read_feeds([str(path)])) == [
        Row(1, LINES[0] + b"\n", {"url": "http://a.example/", "n": 1.5}),
        Row(2, LINES[1] + b"\n", {"text": "鹤鹤", "b": [1, 2]}),
    ]


def test_blank_lines_are_passed_over_and_line_ends_made_one(tmp_path: Path) -> None:
    path = tmp_path / "x.jsonl"
    path.write_bytes(b'\n{"a": 1}\r\n  \n{"a": 2}')
    assert [(row.number, row.raw) for row in read_feeds([str(path)])] == [(1, b'{"a": 1}\n'), (2, b'{"a": 2}\n')]


def test_rows_are_numbered_over_all_feeds(tmp_path: Path) -> None:
    for name in "ab":
        (tmp_path / f"{name}.jl").write_text('{"a": 1}\n{"a": 2}\n')
    numbers = [row.number for row in read_feeds([str(tmp_path / "a.jl"), str(tmp_path / "b.jl")])]
    assert numbers == [1, 2, 3, 4]


def test_empty_feed_has_no_rows(tmp_path: Path) -> None:
    (tmp_path / "x.jsonl").touch()
    (tmp_path / "x.jsonl.gz").write_bytes(gzip.compress(b""))
    assert list(read_feeds([str(tmp_path / "x.jsonl"), str(tmp_path / "x.jsonl.gz")])) == []


def test_first_row_may_begin_with_a_byte_order_mark(tmp_path: Path) -> None:
    (tmp_path / "x.jsonl").write_bytes(b'\xef\xbb\xbf{"a": 1}\n')
    assert [row.data for row in read_feeds([str(tmp_path / "x.jsonl")])] == [{"a": 1}]


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b'{"a": 1}\n\n{"a": \n', "line 3: no JSON"),
        (b"[1, 2]\n", "line 1: a JSON list; allowed is an object"),
        (b'{"a": 1}\n"text"\n', "line 2: a JSON str"),
        (b'{"a": "\xff"}\n', "line 1: no JSON"),
        (b"null\n", "line 1: a JSON"),
    ],
)
def test_row_that_is_none_is_named(tmp_path: Path, data: bytes, said: str) -> None:
    path = str(tmp_path / "x.jsonl")
    Path(path).write_bytes(data)
    with pytest.raises(FeedError) as caught:
        list(read_feeds([path]))
    assert str(caught.value).startswith(f"{path}, ")
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("name", "data", "said"),
    [
        ("missing.jsonl", None, "No such file"),
        ("x.xlsx", b"", "no such kind of file"),
        ("x", b"", "no such kind of file"),
        ("x.jsonl.bz2", b"", "no such kind of file"),
        ("x.jsonl.gz", b'{"a": 1}\n', "can't be read"),
        ("x.jsonl.gz", gzip.compress(b'{"a": 1}\n' * 999)[:-12], "can't be read"),
        ("x.jsonl.gz", gzip.compress(os.urandom(999))[:20] + b"\xff" * 500, "can't be read"),
    ],
)
def test_feed_that_can_not_be_read_is_named(tmp_path: Path, name: str, data: bytes | None, said: str) -> None:
    path = str(tmp_path / name)
    if data is not None:
        Path(path).write_bytes(data)
    with pytest.raises(FeedError) as caught:
        list(read_feeds([path]))
    assert str(caught.value).startswith(path)
    assert said in str(caught.value)


def test_directory_is_no_feed(tmp_path: Path) -> None:
    (tmp_path / "x.jsonl").mkdir()
    with pytest.raises(FeedError, match="can't be read"):
        list(read_feeds([str(tmp_path / "x.jsonl")]))


@pytest.mark.parametrize("name", ["out.jsonl", "out.jsonl.gz"])
def test_written_file_appears_when_it_is_whole(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    with writing(str(path)) as file:
        file.write(LINES[0] + b"\n")
        assert not path.exists()
    data = path.read_bytes()
    assert (gzip.decompress(data) if name.endswith(".gz") else data) == LINES[0] + b"\n"
    assert os.listdir(tmp_path) == [name]


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
def test_what_was_half_written_leaves_nothing_and_spoils_nothing(tmp_path: Path, error: type[BaseException]) -> None:
    path = tmp_path / "out.jsonl"
    path.write_text("earlier\n")

    def fail() -> None:
        with writing(str(path)) as file:
            file.write(b"half")
            raise error

    with pytest.raises(error):
        fail()
    assert path.read_text() == "earlier\n"
    assert os.listdir(tmp_path) == ["out.jsonl"]


@pytest.mark.parametrize("name", ["missing/out.jsonl", "out.txt"])
def test_file_that_can_not_be_written_is_named(tmp_path: Path, name: str) -> None:
    path = str(tmp_path / name)
    with pytest.raises(FeedError) as caught, writing(path):
        pass
    assert str(caught.value).startswith(path)
    assert os.listdir(tmp_path) == []
