"""Tests of a single kind of feed; test_feeds has the tests of all kinds."""

from __future__ import annotations

import datetime
import gzip
import json
import random
import sys
from itertools import chain
from pathlib import Path
from typing import Any

import pytest
from feed_cases import INFO
from feed_files import (
    answer,
    bad_rows,
    copied,
    copy,
    feeds_of,
    in_memory,
    page,
    read,
    record,
    write_records,
)
from helpers import run
from hypothesis import example, given, settings
from hypothesis import strategies as st

ZSTD = "compression.zstd" if sys.version_info >= (3, 14) else "backports.zstd"

# CSV and JSON: the rows lost to a missing quote or bracket

ROWS = b"".join(b"u%d,%d\n" % (n, n) for n in range(50))
OBJECTS = b"".join(b'{"a": %d, "b": "x", "c": [{}]},\n' % n for n in range(50))
BROKEN = [
    b'!{"a": "open},\n',
    b'!{"a: "open"},\n',
    b'!{"a": [1, 2},\n',
    b'!{"a": {"b": 1},\n',
    b'!{"a": "open},\n!{"b": "open},\n',
    b'!{"a": [1},\n!{"b": 1]},\n',
    b'!{"a": "open\\"},\n',
]
# Lines that can't be read begin with a mark here.
UNCLOSED = [
    ("csv", b'u,t\n!u,"open\n' + ROWS),  # nothing closes it
    ("csv", b'u,t\n!u,"open\n' + ROWS + b'!u,"more\n' + ROWS),
    ("csv", b"u,t\n" + ROWS + b'!u,"open\n' + ROWS + b'v,"1"\n' + ROWS),  # the next quote does
    ("csv", b'u,t\n!u,"o\n' + ROWS + b"!v,\xff\n" + ROWS),
    ("csv", b'u,t\n!u,"open\n' + ROWS + b'v,"1\n2"\n' + ROWS),
    *(("json", b"[\n" + OBJECTS + each + OBJECTS + b'{"a": 7}\n]\n') for each in BROKEN),
]
INDENTED = [(name, data.replace(b"\n{", b"\n  {").replace(b"!{", b"!  {")) for name, data in UNCLOSED[5:]]


@pytest.mark.parametrize("spread", [40, 1 << 20])
@pytest.mark.parametrize(("ending", "marked"), UNCLOSED + INDENTED, ids=range(len(UNCLOSED + INDENTED)))
def test_what_is_not_closed_costs_its_row_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ending: str, marked: bytes, spread: int
) -> None:
    for name, value in (("csv_table.SPREAD", spread), ("jsonarray.SPREAD", spread + 60), ("jsonarray.CHUNK", 64)):
        monkeypatch.setattr(f"scrapy_neardup.feeds.{name}", value)
    lines = marked.splitlines(keepends=True)
    bad = [(n, line[1:]) for n, line in enumerate(lines, 1) if line.startswith(b"!")]
    rows, found = bad_rows(tmp_path / f"x.{ending}", marked.replace(b"!", b""))
    assert rows == read(tmp_path / f"y.{ending}", b"".join(line for line in lines if not line.startswith(b"!")))
    assert len(rows) >= 50
    if ending == "csv":
        assert [(why.partition(":")[0], raw) for raw, why in found] == [(f"line {n}", raw) for n, raw in bad]
    else:
        places = [(f"row {n - 1}, line {n}", raw.strip().removesuffix(b",")) for n, raw in bad]
        assert [(why.partition(":")[0], raw) for raw, why in found] == places


def test_a_quote_that_is_missing_takes_no_more_memory_than_some_rows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("scrapy_neardup.feeds.csv_table.SPREAD", 1 << 16)
    (tmp_path / "x.csv").write_bytes(b'u,t\nu,"open\n' + (b"u," + b"1" * 997 + b"\n") * 4000)
    bad: list[str] = []
    with in_memory(1 << 20):  # of 4
        assert sum(1 for _ in feeds_of(tmp_path / "x.csv").rows(lambda line, why: bad.append(why))) == 4000
    assert [why.partition("x.csv, ")[2][:20] for why in bad] == ["line 2: no CSV: over"]


LEAVES = st.none() | st.booleans() | st.integers() | st.text('a\\"[]{},: \n鹤\ud800', max_size=20)
KEYS = st.text('a\\"{,鹤', max_size=3)
VALUES = st.recursive(LEAVES, lambda v: st.lists(v, max_size=3) | st.dictionaries(KEYS, v, max_size=2), max_leaves=8)


@given(st.lists(st.dictionaries(KEYS, VALUES, max_size=3), max_size=4), st.sampled_from([None, 0, 2]))
@example([{"a": [{"b": 1}, {"b": 2}]}, {"a": []}], 0)
@settings(max_examples=100, deadline=None)
def test_json_of_whatever_content_in_whatever_pieces(
    tmp_path_factory: pytest.TempPathFactory, rows: list[dict[str, Any]], indent: int | None
) -> None:
    path = tmp_path_factory.mktemp("json") / "x.json"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("scrapy_neardup.feeds.jsonarray.CHUNK", 3)
        assert read(path, json.dumps(rows, indent=indent).encode()) == rows
        raws = [line.raw for line in feeds_of(path).lines()]
    assert all(isinstance(raw, bytes) and raw in path.read_bytes() and raw.strip() == raw for raw in raws)


def test_json_whose_nested_objects_begin_lines(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("scrapy_neardup.feeds.jsonarray.SPREAD", 10)
    rows = [{"a": [{"b": 1}, {"b": 2}]}, {"a": []}]
    assert read(tmp_path / "x.json", json.dumps(rows, indent=0).encode()) == rows


def test_json_of_many_escapes_is_read_in_little_memory(tmp_path: Path) -> None:
    (tmp_path / "x.json").write_bytes(b'[{"a": "' + b"\\u00e9" * 1_000_000 + b'\\""}]')
    code = f"""
import resource
from scrapy_neardup.feeds import Feeds
def peak(): return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10
before = peak()
(row,) = Feeds([{str(tmp_path / "x.json")!r}]).lines()
print(peak() - before, len(row.raw))
"""
    grown, size = map(int, run([sys.executable, "-c", code], cwd=tmp_path).stdout.split())
    assert size == 6_000_000 + 11
    assert grown < 10 * size


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
    monkeypatch.setattr("scrapy_neardup.feeds.parquet.MOST", 400)
    pa = pytest.importorskip("pyarrow")
    columns = {
        "url": [f"http://a.example/{n}" for n in range(700)],
        "at": [datetime.datetime(2026, 11, 21, n % 24) for n in range(700)],
        "html": [b"<p>bytes</p>"] * 700,
        "tags": [["a", None], None] * 350,
        "kind": pa.array(["x", "y"] * 350).dictionary_encode(),
        "deep": [{"a": {"b": n}} for n in range(700)],
    }
    table = write_table(tmp_path / "x.parquet", columns, row_group_size=300)
    assert [row.data for row in feeds_of(tmp_path / "x.parquet").rows()] == pa.table(columns).to_pylist()
    assert copied_table(tmp_path / "out.parquet", tmp_path / "x.parquet").equals(table, check_metadata=True)
    assert groups(tmp_path / "out.parquet") == [400, 300]


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


def test_parquet_whose_metadata_differ_goes_together(tmp_path: Path) -> None:
    pa = pytest.importorskip("pyarrow")
    paths = [tmp_path / f"{n}.parquet" for n in range(3)]
    for number, path in enumerate(paths):
        metadata = {"made": str(number)} if number else None
        inner = pa.list_(pa.field("element", pa.string(), metadata=metadata))
        fields = [pa.field("text", pa.string(), metadata=metadata), pa.field("tags", inner)]
        write_table(path, pa.table([[f"t{number}"], [["a"]]], schema=pa.schema(fields, metadata=metadata)))
    assert copied_table(tmp_path / "out.parquet", *paths)["text"].to_pylist() == ["t0", "t1", "t2"]


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


def test_dictionaries_of_feeds_together_may_be_larger_than_their_numbers_go_up_to(tmp_path: Path) -> None:
    pa = pytest.importorskip("pyarrow")
    paths = [tmp_path / f"{n}.parquet" for n in range(3)]
    names = [[f"{path.name}, {n}" for n in range(100)] for path in paths]
    for path, each in zip(paths, names, strict=True):
        write_table(path, {"site": pa.array(each, pa.dictionary(pa.int8(), pa.string()))})
    copy(tmp_path / "out.parquet", *paths)
    with pa.parquet.ParquetFile(tmp_path / "out.parquet") as file:
        found = [file.read_row_group(n)["site"].to_pylist() for n in range(file.num_row_groups)]
    assert list(chain(*found)) == list(chain(*names))


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
    record("response", URL, answer(ZIPPED, Content_Encoding="exi, gzip")),
    record("conversion", URL, b"{}", "application/json"),
    record("response", "", answer(b"<p>without URL</p>")),
]


def test_other_records_have_no_text_and_are_kept_packed_as_the_output_is(tmp_path: Path) -> None:
    paths = [write_records(tmp_path / f"x.{ending}", *NO_PAGES) for ending in ("warc", "warc.gz")]
    for path in paths:
        assert [row.data["text"] for row in feeds_of(path).rows()] == [None] * len(NO_PAGES)
        assert copied(path.with_name(f"out{path.name[1:]}"), path) == path.read_bytes()
    assert copied(tmp_path / "y.warc.gz", paths[0]).startswith(b"\x1f\x8b")
    assert len(list(feeds_of(tmp_path / "y.warc.gz").lines())) == len(NO_PAGES)
    assert copied(tmp_path / "z.warc", tmp_path / "y.warc.gz") == paths[0].read_bytes()


BLOCK = 16_384  # bytes that warcio reads at a time


def packed(coding: str, content: bytes) -> bytes:
    made: bytes = pytest.importorskip("brotli" if coding == "br" else ZSTD).compress(content)
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
@pytest.mark.parametrize("noise", [0, 40_000])
def test_a_small_record_does_not_fill_the_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, coding: str, noise: int
) -> None:
    monkeypatch.setattr("scrapy_neardup.feeds.warc.LARGEST", 1 << 16)
    monkeypatch.setattr("scrapy_neardup.feeds.warc_content.MOST", 1 << 17)
    data = packed(coding, b"<p>" + bytes(1 << 26) + random.Random(1).randbytes(noise))
    with in_memory(1 << 22):
        rows, ((_, why),) = bad_rows(
            tmp_path / "x.warc", record("response", URL, answer(data, Content_Encoding=coding))
        )
    assert rows == []
    assert "a page of over" in why or "can't be unpacked" in why


@pytest.mark.parametrize(
    ("coding", "module", "package"), [("br", "brotli", "brotli>=1.2"), ("zstd", ZSTD, "backports.zstd")]
)
def test_a_missing_decoder_is_named_once_and_the_records_have_no_text(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    coding: str,
    module: str,
    package: str,
) -> None:
    pytest.importorskip("warcio")
    monkeypatch.setitem(sys.modules, module, None)
    sent = [record("response", f"{URL}{n}", answer(b"\x00\x01", Content_Encoding=coding)) for n in range(2)]
    path = tmp_path / "x.warc"
    assert texts(path, *sent, record("response", URL, answer(PAGE.encode()))) == [None, None, PAGE]
    why = f"Content-Encoding {coding} needs {package}: pip install 'scrapy-neardup[warc]'"
    assert caplog.messages == [f"{path}, '{URL}0': read without text, as all such records: {why}"]


def test_content_that_can_not_be_unpacked(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    packed = gzip.compress(random.Random(1).randbytes(60_000), mtime=0)
    sent = answer(packed[:40_000] + bytes(20_000), Content_Encoding="gzip")
    rows, ((_, why),) = bad_rows(tmp_path / "x.warc", record("response", URL, sent))
    assert rows == []
    assert "record 1: its content can't be unpacked" in why
    assert capfd.readouterr() == ("", "")


def broken(member: bytes, at: int) -> bytes:
    return member[:at] + bytes([member[at] ^ 0xFF]) + member[at + 1 :]


CUT_OFF = "the file ends before the record"
LENGTH, OTHER = b"Content-Length: 2", "its Content-Length does not match"
RECORDS = [record("response", f"{URL}{n}", answer(page({"text": "x" * 20_100 + str(n)}).encode())) for n in range(4)]
MEMBERS = [gzip.compress(each, mtime=0) for each in RECORDS]


@pytest.mark.parametrize("which", [0, 1, 2])
@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        *((None, at, "can't be read: ") for at in (0, 2, 3, 15, 40, 90, -6, -2)),
        (LENGTH, b"Content-Length: 1", OTHER),
        (LENGTH, b"Content-Length: 3", OTHER),
        (LENGTH, b"Content-Length: 9", CUT_OFF),
        (LENGTH, b"Content-Length: x", "can't be read: it has no Content-Length"),
        (b"WARC/1.0", b"warc/1.0", "can't be read: 'warc/1.0"),
    ],
)
def test_records_after_one_that_is_broken_are_read(
    tmp_path: Path, old: bytes | None, new: Any, said: str, which: int
) -> None:
    whole = RECORDS if old else MEMBERS
    bad = whole[which].replace(old, new) if old else broken(whole[which], new)
    data = b"".join(bad if n == which else each for n, each in enumerate(whole))
    rows, (((raw, why)),) = bad_rows(tmp_path / ("x.warc" if old else "x.warc.gz"), data)
    assert [row["url"] for row in rows] == [f"{URL}{n}" for n in range(4) if n != which]
    assert why.startswith(f"record {which + 1}: {said}")
    assert raw == bad


@pytest.mark.parametrize(
    ("name", "second", "said"),
    [
        ("x.warc", NO_PAGES[1][:-30], CUT_OFF),
        ("x.warc.gz", gzip.compress(NO_PAGES[1], mtime=0)[:-30], CUT_OFF),
        ("x.warc.gz", b"WARC/1.0\r\nWARC-Type: x\r\n\r\n", "can't be read: it has no Content-Length"),
    ],
    ids=["plain", "packed", "no length"],
)
def test_what_is_no_record_at_the_end_is_told(tmp_path: Path, name: str, second: bytes, said: str) -> None:
    first = write_records(tmp_path / name, INFO).read_bytes()
    rows, ((raw, why),) = bad_rows(tmp_path / name, first + second)
    assert (len(rows), raw) == (1, second)
    assert why.startswith(f"record 2: {said}")


def test_the_next_plain_record_is_found_wherever_it_begins(tmp_path: Path) -> None:
    for at in range(16_360, 16_400):  # read by 16,384 bytes
        odd = b"WARC/1.0\r\n\r\n" + b"x" * at + b"\r\n\r\n"
        rows, bad = bad_rows(tmp_path / "x.warc", odd + INFO + b"odd")
        assert (len(rows), [raw for raw, _ in bad]) == (1, [odd, b"odd"])


def test_a_record_within_a_broken_one_is_told_from_what_only_looks_so(tmp_path: Path) -> None:
    good, other = (gzip.compress(each, mtime=0) for each in (INFO, b"other"))
    odd = broken(gzip.compress(NO_PAGES[1], mtime=0), -6) + b"\x1f\x8b\x08" * 9 + other + bytes(40_000)
    rows, ((raw, _),) = bad_rows(tmp_path / "x.warc.gz", good + odd + good)
    assert (len(rows), raw) == (2, odd)
