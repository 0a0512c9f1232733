"""Tests of a single kind of feed; test_feeds has the tests of all kinds."""

from __future__ import annotations

import csv
import datetime
import gc
import gzip
import json
import random
import sys
from pathlib import Path
from typing import Any

import pytest
from feed_cases import INFO
from feed_files import answer, copied, copy, feeds_of, in_memory, page, read, read_all, record, write_records
from hypothesis import example, given, settings
from hypothesis import strategies as st
from tiers import slow

from scrapy_neardup.files import FileError

ZSTD = "compression.zstd" if sys.version_info >= (3, 14) else "backports.zstd"

# CSV and JSON


def test_a_quote_that_is_missing_takes_no_more_memory_than_some_rows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("scrapy_neardup.feeds.MOST", 1 << 17)
    csv.field_size_limit(1 << 17)  # other feeds may have raised it
    (tmp_path / "x.csv").write_bytes(b'u,t\nu,"open\n' + (b"u," + b"1" * 997 + b"\n") * 4000)
    bad: list[str] = []
    with in_memory(3 << 20):  # of 4
        count = sum(1 for _ in feeds_of(tmp_path / "x.csv").rows(lambda place, why: bad.append(why)))
    assert count > 3000
    assert bad == ["no CSV: field larger than field limit (131072)"]


@pytest.mark.parametrize("name", ["x.jsonl", "x.json", "x.csv"])
def test_a_row_that_is_too_long_for_memory_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    for constant, value in (("LARGEST", 1 << 18), ("MOST", 1 << 17), ("CHUNK", 300)):
        monkeypatch.setattr(f"scrapy_neardup.feeds.{constant}", value)
    csv.field_size_limit(1 << 17)
    begin = {"x.jsonl": b'{"a": 1}\n{"a": "', "x.json": b'[{"a": 1}, {"a": "', "x.csv": b'a\n1\n"'}[name]
    with in_memory(3 << 20):
        rows, (why,) = read_all(tmp_path / name, begin + b"x" * 700_000)
    assert [str(row["a"]) for row in rows] == ["1"]
    assert "over 262144 bytes" in why or "Unterminated string" in why or "no CSV" in why


LEAVES = st.none() | st.booleans() | st.integers() | st.text('a\\"[]{},: \n鹤\ud800', max_size=20)
KEYS = st.text('a\\"{,鹤', max_size=3)
VALUES = st.recursive(LEAVES, lambda v: st.lists(v, max_size=3) | st.dictionaries(KEYS, v, max_size=2), max_leaves=8)


@given(st.lists(st.dictionaries(KEYS, VALUES, max_size=3), max_size=4), st.sampled_from([None, 0, 2]))
@example([{"a": [{"b": 1}, {"b": 2}]}, {"a": []}], 0)
@settings(max_examples=25, deadline=None)
def test_json_of_whatever_content_in_whatever_pieces(
    tmp_path_factory: pytest.TempPathFactory, rows: list[dict[str, Any]], indent: int | None
) -> None:
    path = tmp_path_factory.mktemp("json") / "x.json"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("scrapy_neardup.feeds.CHUNK", 3)
        assert read(path, json.dumps(rows, indent=indent).encode()) == rows
        assert json.loads(copied(path.with_name("out.json"), path)) == rows


# Parquet: types, metadata and row groups


def write_table(path: Path, columns: Any, **options: Any) -> Any:
    """Write columns, or a table; return the table that pyarrow reads there."""
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    pq.write_table(columns if isinstance(columns, pa.Table) else pa.table(columns), path, **options)
    return pq.read_table(path)


def copied_table(output: Path, *paths: Path) -> Any:
    copy(output, *paths)
    return pytest.importorskip("pyarrow.parquet").read_table(output)


def groups(path: Path) -> list[int]:
    """Return how many rows each row group has."""
    with pytest.importorskip("pyarrow.parquet").ParquetFile(path) as file:
        return [file.metadata.row_group(n).num_rows for n in range(file.num_row_groups)]


def test_parquet_of_many_types_and_row_groups(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("scrapy_neardup.feeds.GROUP", 1 << 12)
    pa = pytest.importorskip("pyarrow")
    columns = {
        "url": [f"http://a.example/{n}" for n in range(700)],
        "at": [datetime.datetime(2026, 11, 21, n % 24) for n in range(700)],
        "html": [b"<p>bytes</p>"] * 700,
        "tags": [["a", None], None] * 350,
        "kind": pa.array(["x", "y"] * 350).dictionary_encode(),
        "deep": [{"a": {"b": n}} for n in range(700)],
        "view": pa.array(["a long value", None] * 350, pa.string_view()),
    }
    table = write_table(tmp_path / "x.parquet", columns, row_group_size=300)
    assert [row.data for row in feeds_of(tmp_path / "x.parquet").rows()] == pa.table(columns).to_pylist()
    assert copied_table(tmp_path / "out.parquet", tmp_path / "x.parquet").equals(table, check_metadata=True)
    assert len(groups(tmp_path / "out.parquet")) > 1


def test_parquet_of_times_that_python_can_not_hold(tmp_path: Path) -> None:
    pa = pytest.importorskip("pyarrow")
    far = pa.array([1 << 40], pa.int64())
    columns = {
        "text": pa.array(["one"]),
        "ns": pa.array([1], pa.timestamp("ns")),
        "zone": pa.array([1], pa.timestamp("ns", "no/zone")),
        "late": far.cast(pa.timestamp("s")),
        "day": pa.array([1 << 30], pa.int32()).cast(pa.date32()),
        "for": far.cast(pa.duration("s")),
        "deep": pa.array([[1]], pa.list_(pa.timestamp("ns"))),
    }
    table = write_table(tmp_path / "x.parquet", columns)
    (row,) = feeds_of(tmp_path / "x.parquet").rows()
    assert row.data["text"] == "one"
    assert row.data.keys() == columns.keys()
    assert {type(row.data[name]) for name in ("zone", "late", "day")} <= {str, type(None)}
    assert copied_table(tmp_path / "out.parquet", tmp_path / "x.parquet").equals(table)


def test_a_small_parquet_does_not_fill_the_memory(tmp_path: Path) -> None:
    pa = pytest.importorskip("pyarrow")
    pa.parquet = pytest.importorskip("pyarrow.parquet")
    texts = pa.DictionaryArray.from_arrays(pa.array([0] * 300, pa.int32()), pa.array(["word " * 200_000]))
    pa.parquet.write_table(pa.table({"text": texts}), tmp_path / "x.parquet", compression="zstd", store_schema=False)
    assert (tmp_path / "x.parquet").stat().st_size < 10_000
    most = max(pa.total_allocated_bytes() for _ in feeds_of(tmp_path / "x.parquet").rows())
    assert most < 50_000_000  # of 300 MB


def test_parquet_whose_metadata_differ_goes_together(tmp_path: Path) -> None:
    pa = pytest.importorskip("pyarrow")
    paths = [tmp_path / f"{n}.parquet" for n in range(3)]
    for number, path in enumerate(paths):
        metadata = {"made": str(number)} if number else None
        inner = pa.list_(pa.field("element", pa.string(), metadata=metadata))
        fields = [pa.field("text", pa.string(), metadata=metadata), pa.field("tags", inner)]
        write_table(path, pa.table([[f"t{number}"], [["a"]]], schema=pa.schema(fields, metadata=metadata)))
    assert copied_table(tmp_path / "out.parquet", *paths)["text"].to_pylist() == ["t0", "t1", "t2"]


def test_parquet_of_other_columns_is_refused_without_a_complaint_of_pyarrow(tmp_path: Path) -> None:
    for name in "ab":
        write_table(tmp_path / f"{name}.parquet", {"text": ["one"], name: [1]})
    with pytest.raises(FileError, match="can't be written: Schema at index 1 was different"):
        copy(tmp_path / "out.parquet", tmp_path / "a.parquet", tmp_path / "b.parquet")
    gc.collect()  # pytest fails for what a destructor raises
    assert len([*tmp_path.iterdir()]) == 2


def test_dictionaries_do_not_make_row_groups_small(tmp_path: Path) -> None:
    pa = pytest.importorskip("pyarrow")
    kind = pa.dictionary(pa.int32(), pa.string())
    names = [f"http://site{n}.example/with/a/long/name" for n in range(2000)]
    columns = {
        "site": pa.array(names, kind),
        "deep": pa.array([{"tags": [name, None]} for name in names], pa.struct([("tags", pa.list_(kind))])),
        "size": pa.DictionaryArray.from_arrays([2, 0] * 1000, ["small", "medium", "large"], ordered=True),
    }
    path, output = tmp_path / "x.parquet", tmp_path / "out.parquet"
    before = write_table(path, columns)
    after = copied_table(output, path)
    assert (after.schema, groups(output)) == (before.schema, [2000])
    assert after.equals(before)
    assert after["size"].chunk(0).dictionary.to_pylist() == ["small", "medium", "large"]
    assert output.stat().st_size < 1.1 * path.stat().st_size


# WARC: the text of pages, other records, and those that are broken

URL = "http://a.example/"
CHINESE = "图书馆今天开放。" * 20
PAGE = page({"text": CHINESE})
ZIPPED = gzip.compress(PAGE.encode(), mtime=0)
TWICE = gzip.compress(ZIPPED, mtime=0)


def texts(path: Path, *records: bytes) -> list[str | None]:
    return [row.data["text"] for row in feeds_of(write_records(path, *records)).rows()]


def test_pages_of_a_warc_are_decoded(tmp_path: Path) -> None:
    sent = [
        answer(PAGE.encode("gbk"), "text/html; charset=gb2312"),
        answer(PAGE.replace("<head>", "<head><meta charset=gbk>").encode("gbk"), "text/html"),
        answer(PAGE.encode(), "application/xhtml+xml"),
        answer(PAGE.encode(), ""),
        answer(ZIPPED, Content_Encoding="gzip"),
        answer(PAGE.encode(), Content_Encoding="gzip"),  # the crawler that stored it had unpacked it
        answer(ZIPPED, Content_Encoding="X-GZip"),
        answer(ZIPPED, Content_Encoding="UTF-8, gzip"),
        answer(TWICE, Content_Encoding="gzip, gzip"),
        answer(PAGE.encode(), Content_Encoding="UTF-8"),  # not the name of a coding: no effect
        answer(PAGE.encode(), Content_Encoding="none"),
        answer(PAGE.encode()).replace(b"HTTP/1.1", b"HTTP/2"),
    ]
    chunked = answer(b"5\r\n<p>\xe5\x9b\r\n4\r\n\xbe.</\r\n3\r\np> \r\n0\r\n\r\n", Transfer_Encoding="chunked")
    *found, last = texts(tmp_path / "x.warc", *(record("response", URL, each) for each in (*sent, chunked)))
    assert [CHINESE in (text or "") for text in found] == [True] * len(sent)
    assert last == "<p>图.</p> "
    wet = record("conversion", URL, f"Title\n{CHINESE}".encode(), "text/plain")
    assert texts(tmp_path / "x.warc.wet.gz", wet) == [f"Title\n{CHINESE}"]


NO_PAGES = [
    INFO,
    record("request", URL, b"GET / HTTP/1.1\r\nHost: a.example\r\n\r\n", "application/http; msgtype=request"),
    record("metadata", URL, b"fetchTimeMs: 7\r\n", "application/warc-fields"),
    record("response", URL, answer(b"<p>gone</p>", status="404 Not Found")),
    record("response", URL, answer(b"\x89PNG\r\n\x1a\n" + bytes(99), "image/png")),
    record("response", URL, answer(b"")),
    record("response", URL, b"not a head at all"),
    record("response", URL, b""),
    record("response", "dns:a.example", b"20261121100000\na.example. 60 IN A 127.0.0.1\n", "text/dns"),
    record("response", URL, answer(b"\x00\x01", Content_Encoding="exi")),
    record("response", URL, answer(b"\x00\x01", Content_Encoding="x-compress")),
    record("conversion", URL, b"{}", "application/json"),
    record("response", "", answer(b"<p>without URL</p>")),
]


def test_other_records_have_no_text_and_are_kept_packed_as_the_output_is(tmp_path: Path) -> None:
    paths = [write_records(tmp_path / f"x.{ending}", *NO_PAGES) for ending in ("warc", "warc.gz")]
    for path in paths:
        assert [row.data["text"] for row in feeds_of(path).rows()] == [None] * len(NO_PAGES)
        assert copied(path.with_name(f"out{path.name[1:]}"), path) == path.read_bytes()
    # Each record is gzipped on its own.
    assert copied(tmp_path / "y.warc.gz", paths[0]) == paths[1].read_bytes()
    assert copied(tmp_path / "z.warc", tmp_path / "y.warc.gz") == paths[0].read_bytes()
    (tmp_path / "y.warc.gz").write_bytes(gzip.compress(paths[0].read_bytes()))  # as a whole
    assert len(list(feeds_of(tmp_path / "y.warc.gz").rows())) == len(NO_PAGES)


BLOCK = 16_384


def packed(coding: str, content: bytes) -> bytes:
    module, options = ("brotli", {"quality": 5}) if coding == "br" else (ZSTD, {})  # the best takes two seconds
    made: bytes = pytest.importorskip(module).compress(content, **options)
    return made


@pytest.mark.parametrize("coding", ["br", "zstd"])
def test_pages_in_the_codings_of_browsers_are_unpacked(tmp_path: Path, coding: str) -> None:
    filled = PAGE + f"<!--{random.Random(1).randbytes(3 * BLOCK).hex()}-->"
    data = packed(coding, filled.encode())
    zipped = packed(coding, ZIPPED)
    chunked = b"%x\r\n%b\r\n%x\r\n%b\r\n0\r\n\r\n" % (99, data[:99], len(data) - 99, data[99:])
    sent = [
        answer(data, Content_Encoding=coding),
        answer(data, Content_Encoding=coding.upper()),
        answer(chunked, Content_Encoding=coding, Transfer_Encoding="chunked"),
        answer(zipped, Content_Encoding=f"gzip, {coding}"),
        *(answer(f"{before}{PAGE}".encode(), Content_Encoding=coding) for before in ("", " \n", "\ufeff")),  # unpacked
    ]
    found = texts(tmp_path / "x.warc.gz", *(record("response", URL, each) for each in sent))
    assert [CHINESE in (text or "") for text in found] == [True] * len(sent)


@pytest.mark.parametrize("size", [99, BLOCK])
def test_all_frames_of_zstd_are_read(tmp_path: Path, size: int) -> None:
    skipped = b"\x50\x2a\x4d\x18" + (size - 8).to_bytes(4, "little") + bytes(size - 8)  # ends where a block does
    data = skipped + packed("zstd", b"<p>one") + packed("zstd", b" two")
    assert texts(tmp_path / "x.warc", record("response", URL, answer(data, Content_Encoding="zstd"))) == ["<p>one two"]


@pytest.mark.parametrize("coding", ["br", "zstd"])
@pytest.mark.parametrize("noise", [40_000, *slow(0)])
def test_a_small_record_does_not_fill_the_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, coding: str, noise: int
) -> None:
    monkeypatch.setattr("scrapy_neardup.feeds.LARGEST", 1 << 16)
    data = packed(coding, b"<p>" + bytes(1 << 25) + random.Random(1).randbytes(noise))
    sent = record("response", URL, answer(data, Content_Encoding=coding))
    with in_memory(1 << 24):  # most of it are modules of Scrapy
        rows, (why,) = read_all(tmp_path / "x.warc", sent + INFO)
    assert len(rows) == 1
    assert "can't be unpacked" in why


def test_content_that_can_not_be_unpacked(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    sent = [answer(data, Content_Encoding="gzip") for data in (b"\x1f\x8b" + bytes(99), ZIPPED)]
    (row,), (why,) = read_all(tmp_path / "x.warc", b"".join(record("response", URL, each) for each in sent))
    assert CHINESE in row["text"]
    assert why.startswith("record 1: its content can't be unpacked: ")
    assert capfd.readouterr() == ("", "")
