"""What is particular to feeds in CSV and its like; what all share is in test_feeds."""

from __future__ import annotations

import tracemalloc
from pathlib import Path

import pytest
from feed_files import ROWS, bad_rows, copied, read, write_feed

from scrapy_neardup.feeds import FeedError, Feeds


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


@pytest.mark.parametrize("head", ["text", "url\ttext, clean", '"text, clean"'])
def test_tsv_is_parted_by_tabs_whatever_else_is_in_its_first_row(tmp_path: Path, head: str) -> None:
    names = [name.strip('"') for name in head.split("\t")]
    data = "\t".join(["one, two"] * len(names))
    assert read(tmp_path / "x.tsv", f"{head}\n{data}\n".encode()) == [dict.fromkeys(names, "one, two")]
    assert copied(tmp_path / "x.tsv", tmp_path / "out.tsv") == f"{head}\n{data}\n".encode()


@pytest.mark.parametrize("name", ["price, EUR, incl. tax", 'a "", b"", c,, d'])
def test_what_is_in_quotes_parts_no_columns(tmp_path: Path, name: str) -> None:
    rows = read(tmp_path / "x.csv", f'"{name}";url;text\n1;2;3\n'.encode())
    assert rows == [{name.replace('""', '"'): "1", "url": "2", "text": "3"}]


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
