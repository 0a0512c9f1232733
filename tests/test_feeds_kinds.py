"""What is particular to feeds in JSON, CSV, Parquet and WARC; what they share is in test_feeds."""

from __future__ import annotations

import datetime
import gzip
import json
import random
import sys
import tracemalloc
from pathlib import Path
from typing import Any

import pytest
from feed_files import ROWS, answer, page, record, write_feed, write_records
from helpers import run
from hypothesis import given, settings
from hypothesis import strategies as st

from scrapy_neardup.feeds import BadRowError, FeedError, Feeds, writing_rows
from scrapy_neardup.feeds import jsonarray as jsonarray_module

LEAVES = st.none() | st.booleans() | st.integers() | st.text('a\\"[]{},: \n鹤\ud800', max_size=20)
VALUES = st.recursive(LEAVES, lambda v: st.lists(v, max_size=3) | st.dictionaries(st.text('a\\"{,', max_size=3), v))


def read(path: Path, data: bytes) -> list[dict[str, Any]]:
    path.write_bytes(data)
    return [row.data for row in Feeds([str(path)]).rows()]


def bad_rows(path: Path, data: bytes) -> tuple[list[Any], list[tuple[Any, str]]]:
    """Return what the rows say, and those that can't be read with what is said of them, without the path."""
    path.write_bytes(data)
    bad: list[tuple[Any, str]] = []
    rows = Feeds([str(path)]).rows(lambda line, why: bad.append((line.raw, why.removeprefix(f"{path}, "))))
    return [row.data for row in rows], bad


def copied(path: Path, output: Path) -> bytes:
    feeds = Feeds([str(path)])
    with writing_rows(str(output), feeds.kind) as write:
        for line in feeds.lines():
            write(line)
    return output.read_bytes()


# JSON


@given(st.lists(st.dictionaries(st.text(max_size=3), VALUES, max_size=3), max_size=5), st.sampled_from([None, 2]))
@settings(max_examples=100, deadline=None)
def test_json_of_whatever_content_in_whatever_pieces(
    tmp_path_factory: pytest.TempPathFactory, rows: list[dict[str, Any]], indent: int | None
) -> None:
    path = tmp_path_factory.mktemp("json") / "x.json"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(jsonarray_module, "CHUNK", 3)
        assert read(path, json.dumps(rows, indent=indent).encode()) == rows
        feeds = Feeds([str(path)])
        raws = [line.raw for line in feeds.lines()]
    assert all(isinstance(raw, bytes) and raw in path.read_bytes() and raw.strip() == raw for raw in raws)


@pytest.mark.parametrize(
    ("data", "wanted"),
    [
        (b"[]", []),
        (b" [\n\n] \n", []),
        (b'\xef\xbb\xbf[{"a": 1}]', [{"a": 1}]),
        (b'[\n{"a": 1}\n]\n[\n{"a": 2},\n{"a": 3}\n]', [{"a": 1}, {"a": 2}, {"a": 3}]),  # two crawls with -o
        (b'[][{"a": 1}]', [{"a": 1}]),
    ],
)
def test_json_that_is_read(tmp_path: Path, data: bytes, wanted: list[dict[str, Any]]) -> None:
    assert read(tmp_path / "x.json", data) == wanted


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "row 1, line 1: 'nothing' where an array was to begin"),
        (b'\n{"a": 1}\n{"a": 2}', "row 1, line 2: '{' where an array was to begin; JSON lines are named .jsonl"),
        (b'[{"a": 1}]\nmore', "row 2, line 2: 'more' where an array was to begin"),
        (b'text [{"a": 1}]', "row 1, line 1: 'text [' where an array was to begin"),
        (b'"text"', "row 1, line 1: '\"text\"' where"),
    ],
)
def test_what_is_no_json_array(tmp_path: Path, data: bytes, message: str) -> None:
    with pytest.raises(FeedError) as caught:
        read(tmp_path / "x.json", data)
    assert message in str(caught.value)
    assert not isinstance(caught.value, BadRowError)


@pytest.mark.parametrize(
    ("data", "raw", "message"),
    [
        (b'[\n{"a": 1},\n{"a": },\n{"a": 2}\n]', b'{"a": }', "row 2, line 3: no JSON: Expecting value"),
        (b'[\n{"a": 1},\n\n\n7,\n{"a": 2}\n]', b"7", "row 2, line 5: a JSON int; allowed is an object"),
        (b'[{"a": 1}, [{}, 2], {"a": 2}]', b"[{}, 2]", "row 2, line 1: a JSON list"),
        (b'[{"a": 1},, {"a": 2}]', b"", "row 2, line 1: no JSON"),
        (b'[{"a": 1}, {"a": "\xff"}, {"a": 2}]', b'{"a": "\xff"}', "row 2, line 1: no JSON"),
        (b'[{"a": 1}, {"a": 2} x, {"a": 2}]', b'{"a": 2} x', "row 2, line 1: no JSON: Extra data"),
        (b'[{"a": 1}, }, {"a": 2}]', b"}", "row 2, line 1: no JSON"),
        (b'[{"a": 1}, {"a": 2},]', b"", "row 3, line 1: no JSON"),
        (b'[\n{"a": 1},\n{"a": 2}\n', b"", "row 3, line 4: the file ends before the array does"),
        (b'[\n{"a": 1},\n{"a": 2},\n{"a": "lo', b'{"a": "lo', "row 3, line 4: the file ends before the array does"),
        (b'[\n{"a": 1},\n{"a": 2},\n{"a": "lo\\', b'{"a": "lo\\', "row 3, line 4: the file ends"),
    ],
)
def test_json_row_that_is_none(tmp_path: Path, data: bytes, raw: bytes, message: str) -> None:
    rows, ((found, why),) = bad_rows(tmp_path / "x.json", data)
    assert rows == [{"a": 1}, {"a": 2}]
    assert found == raw
    assert why.startswith(message)
    with pytest.raises(BadRowError):
        read(tmp_path / "x.json", data)


JSON_GOOD = b"".join(b'{"a": %d, "b": "x", "c": [{}]},\n' % n for n in range(50))


@pytest.mark.parametrize(
    "broken",
    [
        b'{"a": "open},\n',
        b'{"a: "open"},\n',
        b'{"a": [1, 2},\n',
        b'{"a": {"b": 1},\n',
        b'{"a": "open},\n{"b": "open},\n',
        b'{"a": [1},\n{"b": 1]},\n',
        b'{"a": "open\\"},\n',
    ],
)
@pytest.mark.parametrize("spread", [100, 1 << 20])
@pytest.mark.parametrize("indent", [b"", b"  "])
def test_json_rows_after_one_that_is_broken_are_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, broken: bytes, spread: int, indent: bytes
) -> None:
    monkeypatch.setattr(jsonarray_module, "SPREAD", spread)
    monkeypatch.setattr(jsonarray_module, "CHUNK", 64)
    data = (JSON_GOOD + broken + JSON_GOOD + b'{"a": 7}\n').replace(b"{", indent + b"{").replace(b"[" + indent, b"[")
    rows, bad = bad_rows(tmp_path / "x.json", b"[\n" + data + b"]\n")
    assert [row["a"] for row in rows] == [*range(50), *range(50), 7]
    wanted = [line.strip().removesuffix(b",") for line in data.splitlines()[50 : 50 + broken.count(b"\n")]]
    assert [raw for raw, _ in bad] == wanted
    assert [why.partition(":")[0] for _, why in bad] == [f"row {51 + n}, line {52 + n}" for n in range(len(bad))]


def test_json_whose_commas_are_missing(tmp_path: Path) -> None:
    assert read(tmp_path / "x.json", b'[\n{"a": 1}\n{"a": 2},\n{"a": 3}\n]') == [{"a": n} for n in (1, 2, 3)]


@pytest.mark.parametrize("spread", [10, 1 << 20])
def test_json_whose_nested_objects_begin_lines(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, spread: int) -> None:
    monkeypatch.setattr(jsonarray_module, "SPREAD", spread)
    rows = [{"a": [{"b": 1}, {"b": 2}]}, {"a": []}]
    assert read(tmp_path / "x.json", json.dumps(rows, indent=0).encode()) == rows


def test_json_says_the_line_with_the_fault(tmp_path: Path) -> None:
    _, ((_, why),) = bad_rows(tmp_path / "x.json", b'[\n{"a": 1},\n{\n  "a": 1,\n  "b" 2\n}\n]')
    assert why == "row 2, line 5: no JSON: Expecting ':' delimiter, column 7"
    _, ((_, why),) = bad_rows(tmp_path / "x.jsonl", b'{"a": 1}\n{"a": \n')
    assert why == "line 2: no JSON: Expecting value, column 6"


def test_json_of_many_escapes_is_read_in_little_memory(tmp_path: Path) -> None:
    (tmp_path / "x.json").write_bytes(b'[{"a": "' + b"\\u00e9" * 2_000_000 + b'\\""}]')
    code = f"""
import resource
from scrapy_neardup.feeds import Feeds
def peak(): return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10
before = peak()
(row,) = Feeds([{str(tmp_path / "x.json")!r}]).lines()
print(peak() - before, len(row.raw))
"""
    grown, size = map(int, run([sys.executable, "-c", code], cwd=tmp_path).stdout.split())
    assert size == 12_000_000 + 11
    assert grown < 10 * size


def test_json_that_never_closes_a_row_is_not_read_into_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jsonarray_module, "LARGEST", 1 << 12)
    monkeypatch.setattr(jsonarray_module, "CHUNK", 1 << 10)
    with pytest.raises(FeedError, match="row 2, line 2: over 4096 bytes: is a quote or a bracket missing"):
        read(tmp_path / "x.json", b'[{"a": 1},\n{"a": "' + b"x" * 100_000)


# CSV


def test_csv_keeps_ends_of_lines_in_fields_and_behind_rows(tmp_path: Path) -> None:
    data = b'url,text\r\na,"one\ntwo\r\n""three"""\r\n\r\nb,plain\nc,"last, without end"'
    rows = read(tmp_path / "x.csv", data)
    assert [row["text"] for row in rows] == ['one\ntwo\r\n"three"', "plain", "last, without end"]
    assert copied(tmp_path / "x.csv", tmp_path / "out.csv") == data.replace(b"\r\n\r\n", b"\r\n") + b"\r\n"


def test_csv_with_a_byte_order_mark(tmp_path: Path) -> None:
    data = b'\xef\xbb\xbf"url",text\na,b\n'
    assert read(tmp_path / "x.csv", data) == [{"url": "a", "text": "b"}]
    assert copied(tmp_path / "x.csv", tmp_path / "out.csv") == data


@pytest.mark.parametrize("delimiter", [",", ";", "\t", "|"])
def test_csv_of_several_delimiters(tmp_path: Path, delimiter: str) -> None:
    rows = read(tmp_path / "x.csv", f'url{delimiter}text\n"a{delimiter}"{delimiter}b\n'.encode())
    assert rows == [{"url": f"a{delimiter}", "text": "b"}]


def test_csv_of_one_column(tmp_path: Path) -> None:
    assert read(tmp_path / "x.csv", b'text\n"one, two"\n') == [{"text": "one, two"}]


def test_tsv_is_not_what_is_parted_by_commas(tmp_path: Path) -> None:
    write_feed(tmp_path / "x.csv")
    with pytest.raises(FeedError, match=r"out\.tsv: the feeds are CSV, and so is the output; allowed is \.csv, also"):
        copied(tmp_path / "x.csv", tmp_path / "out.tsv")


def test_csv_without_any_row_goes_with_all_others(tmp_path: Path) -> None:
    (tmp_path / "a.csv").touch()  # as Scrapy leaves it where there are no items
    path = write_feed(tmp_path / "b.csv")
    rows = list(Feeds([str(tmp_path / "a.csv"), str(path), str(tmp_path / "a.csv")]).rows())
    assert [row.data for row in rows] == ROWS


@pytest.mark.parametrize("other", ["title,url,text\n", "url,text\n", "url;title;text\n", '"url,title,text"\n'])
def test_csv_of_other_columns_is_refused(tmp_path: Path, other: str) -> None:
    (tmp_path / "other.csv").write_text(other)
    with pytest.raises(FeedError, match=r"other\.csv: its columns are not those of .*x\.csv"):
        Feeds([str(write_feed(tmp_path / "x.csv")), str(tmp_path / "other.csv")])


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"url,text,url\na,b,c\n", "line 1: column 'url' is there twice"),
        (b"\n\nurl,\xff\na,b\n", "line 3: no UTF-8"),
        (b'"url,text\na,b\n', "line 1: no CSV"),
    ],
)
def test_csv_whose_first_row_is_none(tmp_path: Path, data: bytes, message: str) -> None:
    with pytest.raises(FeedError) as caught:
        read(tmp_path / "x.csv", data)
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("data", "raw", "message"),
    [
        (b'u,t\na,"1\n2"\nb\nc,3\n', b"b\n", "line 4: 1 fields; allowed are 2, as there are columns"),
        (b'u,t\na,"1\n2"\nb,2,x\nc,3\n', b"b,2,x\n", "line 4: 3 fields; allowed are 2"),
        (b'u,t\na,"1\n2"\nb,\xff\nc,3\n', b"b,\xff\n", "line 4: no UTF-8"),
        (b'u,t\na,"1\n2"\nb,"x" y\nc,3\n', b'b,"x" y\n', "line 4: no CSV"),
        (b'u,t\na,"1\n2"\nb,x\ry\nc,3\n', b"b,x\ry\n", "line 4: no CSV"),
    ],
)
def test_csv_row_that_is_none(tmp_path: Path, data: bytes, raw: bytes, message: str) -> None:
    rows, ((found, why),) = bad_rows(tmp_path / "x.csv", data)
    assert rows == [{"u": "a", "t": "1\n2"}, {"u": "c", "t": "3"}]
    assert found == raw
    assert why.startswith(message)


def test_csv_that_was_cut_off_in_a_field(tmp_path: Path) -> None:
    rows, bad = bad_rows(tmp_path / "x.csv", b'u,t\na,1\nb,"2\n3')
    assert rows == [{"u": "a", "t": "1"}]
    assert [found for found, _ in bad] == [b'b,"2\n', b"3\n"]
    assert bad[0][1] == "line 3: no CSV: unexpected end of data, in line 4: is a quote missing?"


GOOD = b"".join(b"u%d,%d\n" % (n, n) for n in range(50))


@pytest.mark.parametrize(
    ("data", "bad", "count"),
    [
        (b'u,"open\n' + GOOD, [b'u,"open\n'], 50),  # nothing closes it
        (b'u,"open\n' + GOOD + b'u,"more\n' + GOOD, [b'u,"open\n', b'u,"more\n'], 100),
        (GOOD + b'u,"open\n' + GOOD + b'v,"1"\n' + GOOD, [b'u,"open\n'], 151),  # the next quote does
        (b'u,"o\n' + GOOD + b"v,\xff\n" + GOOD, [b'u,"o\n', b"v,\xff\n"], 100),
        (b'u,"open\n' + GOOD + b'v,"1\n2"\n' + GOOD, [b'u,"open\n'], 101),
    ],
)
@pytest.mark.parametrize("spread", [40, 1 << 20])
def test_a_quote_that_is_missing_costs_its_row_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, data: bytes, bad: list[bytes], count: int, spread: int
) -> None:
    monkeypatch.setattr("scrapy_neardup.feeds.table.SPREAD", spread)
    rows, found = bad_rows(tmp_path / "x.csv", b"u,t\n" + data)
    assert [raw for raw, _ in found] == bad
    assert len(rows) == count
    lines = (tmp_path / "x.csv").read_bytes().splitlines(keepends=True)
    assert [int(why.split(":")[0].removeprefix("line ")) for _, why in found] == [lines.index(raw) + 1 for raw in bad]


def test_a_quote_that_is_missing_takes_no_more_memory_than_some_rows(tmp_path: Path) -> None:
    (tmp_path / "x.csv").write_bytes(b'u,t\nu,"open\n' + (b"u," + b"1" * 97 + b"\n") * 200_000)
    tracemalloc.start()
    try:
        bad: list[str] = []
        rows = sum(1 for _ in Feeds([str(tmp_path / "x.csv")]).rows(lambda line, why: bad.append(why)))
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert (rows, len(bad)) == (200_000, 1)
    assert "line 2: no CSV: over" in bad[0]
    assert peak < 64 << 20


def test_a_line_that_is_too_long_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("scrapy_neardup.feeds.files.LARGEST", 1000)
    for name in ("x.jsonl", "x.csv"):
        with pytest.raises(FeedError, match=rf"x\{name[1:]}, line 2: over 1000 bytes"):
            read(tmp_path / name, b"{}\n" + b"x" * 2000)


# Parquet


def test_parquet_of_many_types_and_row_groups(tmp_path: Path) -> None:
    pa = pytest.importorskip("pyarrow")
    import pyarrow.parquet as pq

    table = pa.table(
        {
            "url": [f"http://a.example/{n}" for n in range(700)],
            "at": [datetime.datetime(2026, 11, 21, n % 24) for n in range(700)],
            "html": [b"<p>bytes</p>"] * 700,
            "tags": [["a", None], None] * 350,
            "kind": pa.array(["x", "y"] * 350).dictionary_encode(),
            "deep": [{"a": {"b": n}} for n in range(700)],
        }
    )
    pq.write_table(table, tmp_path / "x.parquet", row_group_size=300)
    assert [row.data for row in Feeds([str(tmp_path / "x.parquet")]).rows()] == table.to_pylist()
    copied(tmp_path / "x.parquet", tmp_path / "out.parquet")
    assert pq.read_table(tmp_path / "out.parquet").equals(pq.read_table(tmp_path / "x.parquet"), check_metadata=True)


def test_parquet_of_times_that_python_can_not_hold(tmp_path: Path) -> None:
    pa = pytest.importorskip("pyarrow")
    import pyarrow.parquet as pq

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
    pq.write_table(pa.table(columns), tmp_path / "x.parquet")
    (row,) = Feeds([str(tmp_path / "x.parquet")]).rows()
    assert row.data["text"] == "one"
    assert row.data.keys() == columns.keys()
    assert {type(row.data[name]) for name in ("zone", "late", "day")} <= {str, type(None)}
    copied(tmp_path / "x.parquet", tmp_path / "out.parquet")
    assert pq.read_table(tmp_path / "out.parquet").equals(pq.read_table(tmp_path / "x.parquet"))


def test_parquet_whose_metadata_differ_goes_together(tmp_path: Path) -> None:
    pa = pytest.importorskip("pyarrow")
    import pyarrow.parquet as pq

    names = [str(tmp_path / f"{n}.parquet") for n in range(3)]
    for number, name in enumerate(names):
        metadata = {"made": str(number)} if number else None
        inner = pa.list_(pa.field("element", pa.string(), metadata=metadata))
        fields = [pa.field("text", pa.string(), metadata=metadata), pa.field("tags", inner)]
        pq.write_table(pa.table([[f"t{number}"], [["a"]]], schema=pa.schema(fields, metadata=metadata)), name)
    feeds = Feeds(names)
    with writing_rows(str(tmp_path / "out.parquet"), feeds.kind) as write:
        for line in feeds.lines():
            write(line)
    assert pq.read_table(tmp_path / "out.parquet")["text"].to_pylist() == ["t0", "t1", "t2"]


def test_parquet_is_written_by_row_groups(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pq = pytest.importorskip("pyarrow.parquet")
    monkeypatch.setattr("scrapy_neardup.feeds.parquet.MOST", 3)
    copied(write_feed(tmp_path / "x.parquet"), tmp_path / "out.parquet")
    file = pq.ParquetFile(tmp_path / "out.parquet")
    assert [file.metadata.row_group(n).num_rows for n in range(file.num_row_groups)] == [3, 1]
    file.close()


def test_parquet_of_other_columns_and_what_is_none(tmp_path: Path) -> None:
    pytest.importorskip("pyarrow")
    path = write_feed(tmp_path / "x.parquet")
    other = write_feed(tmp_path / "other.parquet", [{"url": "a", "text": "b"}])
    with pytest.raises(FeedError, match=r"other\.parquet: its columns are not those of"):
        Feeds([str(path), str(other)])
    with pytest.raises(FeedError, match=r"x\.parquet: can't be read: .*Parquet"):
        read(path, b"no such thing")
    with pytest.raises(FeedError, match=r"x\.parquet: can't be read"):
        read(path, b"PAR1" + bytes(100) + b"PAR1")


# WARC

URL = "http://a.example/"
CHINESE = "图书馆今天开放。" * 20


def texts(path: Path, *records: bytes) -> list[str | None]:
    pytest.importorskip("warcio")
    write_records(path, *records)
    return [row.data["text"] for row in Feeds([str(path)]).rows()]


@pytest.mark.parametrize("name", ["x.warc", "x.warc.gz"])
@pytest.mark.parametrize(
    "sent",
    [
        answer(page({"text": CHINESE}).encode("gbk"), "text/html; charset=gb2312"),
        answer(page({"text": CHINESE}).replace("<head>", "<head><meta charset=gbk>").encode("gbk"), "text/html"),
        answer(page({"text": CHINESE}).encode(), "application/xhtml+xml"),
        answer(page({"text": CHINESE}).encode(), ""),
        answer(gzip.compress(page({"text": CHINESE}).encode()), Content_Encoding="gzip"),
        answer(page({"text": CHINESE}).encode(), Content_Encoding="gzip"),  # unpacked by who stored it
        answer(b"5\r\n<p>\xe5\x9b\r\n4\r\n\xbe.</\r\n3\r\np> \r\n0\r\n\r\n", Transfer_Encoding="chunked"),
        answer(page({"text": CHINESE}).encode()).replace(b"HTTP/1.1", b"HTTP/2"),
    ],
)
def test_pages_of_a_warc_are_decoded(tmp_path: Path, name: str, sent: bytes) -> None:
    (text,) = texts(tmp_path / name, record("response", URL, sent))
    assert text is not None
    assert CHINESE in text or text == "<p>图.</p> "


def test_wet_is_plain_text(tmp_path: Path) -> None:
    wet = record("conversion", URL, f"Title\n{CHINESE}".encode(), "text/plain")
    assert texts(tmp_path / "x.warc.wet.gz", wet) == [f"Title\n{CHINESE}"]


NO_PAGES = [
    record("warcinfo", "", b"software: x\r\n", "application/warc-fields"),
    record("request", URL, b"GET / HTTP/1.1\r\nHost: a.example\r\n\r\n", "application/http; msgtype=request"),
    record("metadata", URL, b"fetchTimeMs: 7\r\n", "application/warc-fields"),
    record("response", URL, answer(b"<p>gone</p>", status="404 Not Found")),
    record("response", URL, answer(b"\x89PNG\r\n\x1a\n" + bytes(99), "image/png")),
    record("response", URL, answer(b"")),
    record("response", URL, b"not a head at all"),
    record("response", URL, b""),
    record("response", "dns:a.example", b"20261121100000\na.example. 60 IN A 127.0.0.1\n", "text/dns"),
    record("response", URL, answer(b"\x00\x01", Content_Encoding="zstd")),
    record("conversion", URL, b"{}", "application/json"),
    record("response", "", answer(b"<p>without URL</p>")),
]


@pytest.mark.parametrize("name", ["x.warc", "x.warc.gz"])
def test_other_records_have_no_text_and_are_kept(tmp_path: Path, name: str) -> None:
    assert texts(tmp_path / name, *NO_PAGES) == [None] * len(NO_PAGES)
    assert copied(tmp_path / name, tmp_path / f"out{name[1:]}") == (tmp_path / name).read_bytes()


def test_records_are_packed_and_unpacked_where_the_output_is(tmp_path: Path) -> None:
    pytest.importorskip("warcio")
    plain = write_records(tmp_path / "x.warc", *NO_PAGES)
    packed = copied(plain, tmp_path / "y.warc.gz")
    assert packed.startswith(b"\x1f\x8b")
    assert len(list(Feeds([str(tmp_path / "y.warc.gz")]).lines())) == len(NO_PAGES)
    assert copied(tmp_path / "y.warc.gz", tmp_path / "z.warc") == plain.read_bytes()


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"no such thing", "record 1: can't be read: 'no such thing' where a record was to begin"),
        (NO_PAGES[0] + b"WARC/1.0\r\nWARC-Type: x\r\n\r\n", "record 2: can't be read: it has no Content-Length"),
        (gzip.compress(NO_PAGES[0] + NO_PAGES[1]), "record 1: can't be read: several records are gzipped as one"),
        (gzip.compress(NO_PAGES[0][:-30]), "record 1: can't be read: it is shorter than it says"),
        (gzip.compress(NO_PAGES[0])[:-8] + bytes(8), "record 1: can't be read: Error -3"),
    ],
)
def test_what_is_no_warc(tmp_path: Path, data: bytes, message: str) -> None:
    pytest.importorskip("warcio")
    with pytest.raises(FeedError) as caught:
        read(tmp_path / "x.warc.gz", data)
    assert message in str(caught.value)


@pytest.mark.parametrize("name", ["x.warc", "x.warc.gz"])
def test_the_record_that_was_cut_off_is_told(tmp_path: Path, name: str) -> None:
    pytest.importorskip("warcio")
    write_records(tmp_path / name, *NO_PAGES[:2])
    data = (tmp_path / name).read_bytes()
    rows, ((_, why),) = bad_rows(tmp_path / name, data[:-30])
    assert len(rows) == 1
    assert why.startswith("record 2: the file ends before the record does")


def test_content_that_can_not_be_unpacked(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("warcio")
    packed = gzip.compress(random.Random(1).randbytes(60_000))
    sent = answer(packed[:40_000] + bytes(20_000), Content_Encoding="gzip")
    rows, ((_, why),) = bad_rows(tmp_path / "x.warc", record("response", URL, sent))
    assert rows == []
    assert "record 1: its content can't be unpacked" in why
    assert capfd.readouterr() == ("", "")


def broken(member: bytes, at: int, to: int = 0xFF) -> bytes:
    return member[:at] + bytes([member[at] ^ to]) + member[at + 1 :]


@pytest.mark.parametrize("at", [0, 2, 3, 15, 40, 200, -6, -2])
@pytest.mark.parametrize("which", [0, 1, 2])
def test_records_after_one_that_is_broken_are_read(tmp_path: Path, at: int, which: int) -> None:
    pytest.importorskip("warcio")
    made = [record("response", f"{URL}{n}", answer(page({"text": f"{CHINESE}{n}"}).encode())) for n in range(3)]
    members = [gzip.compress(each, mtime=0) for each in made]
    whole = list(members)
    members[which] = broken(members[which], at)
    rows, bad = bad_rows(tmp_path / "x.warc.gz", b"".join(members))
    assert [row["url"] for row in rows] == [f"{URL}{n}" for n in range(3) if n != which]
    (((span, why),)) = bad
    assert why.startswith(f"record {which + 1}: can't be read: ")
    assert (span.start, span.size) == (sum(map(len, whole[:which])), len(members[which]))


def test_a_record_within_a_broken_one_is_told_from_what_only_looks_so(tmp_path: Path) -> None:
    pytest.importorskip("warcio")
    good = gzip.compress(NO_PAGES[0], mtime=0)
    odd = (
        broken(gzip.compress(NO_PAGES[1], mtime=0), -6) + b"\x1f\x8b\x08" * 9 + gzip.compress(b"other") + bytes(40_000)
    )
    rows, ((span, _),) = bad_rows(tmp_path / "x.warc.gz", good + odd + good)
    assert len(rows) == 2
    assert span.size == len(odd)
