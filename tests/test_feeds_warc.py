"""What is particular to feeds in WARC; what all share is in test_feeds."""

from __future__ import annotations

import gzip
import random
from pathlib import Path

import pytest
from feed_files import answer, bad_rows, copied, page, read, record, write_records

from scrapy_neardup.feeds import FeedError, Feeds

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
        answer(gzip.compress(page({"text": CHINESE}).encode()), Content_Encoding="X-GZip"),
        answer(gzip.compress(page({"text": CHINESE}).encode()), Content_Encoding="UTF-8, gzip"),
        answer(page({"text": CHINESE}).encode(), Content_Encoding="UTF-8"),  # what is no coding changes nothing
        answer(page({"text": CHINESE}).encode(), Content_Encoding="none"),
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
    record("response", URL, answer(b"\x00\x01", Content_Encoding="x-compress")),
    record("response", URL, answer(gzip.compress(gzip.compress(b"<p>twice")), Content_Encoding="gzip, gzip")),
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


@pytest.mark.parametrize("which", [0, 1, 2])
@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        (b"Content-Length: 2", b"Content-Length: 1", "it does not end where it says"),
        (b"Content-Length: 2", b"Content-Length: 3", "it does not end where it says"),
        (b"Content-Length: 2", b"Content-Length: 9", "the file ends before the record does"),
        (b"Content-Length: 2", b"Content-Length: x", "can't be read: it has no Content-Length"),
        (b"WARC/1.0", b"warc/1.0", "can't be read: 'warc/1.0"),
    ],
)
def test_plain_records_after_one_that_is_broken_are_read(
    tmp_path: Path, old: bytes, new: bytes, said: str, which: int
) -> None:
    pytest.importorskip("warcio")
    made = [record("response", f"{URL}{n}", answer(page({"text": "x" * 20_100}).encode())) for n in range(4)]
    records = [each.replace(old, new) if n == which else each for n, each in enumerate(made)]
    rows, (((span, why),)) = bad_rows(tmp_path / "x.warc", b"".join(records))
    assert [row["url"] for row in rows] == [f"{URL}{n}" for n in range(4) if n != which]
    assert why.startswith(f"record {which + 1}: {said}")
    assert (span.start, span.size) == (sum(map(len, made[:which])), len(made[which]))


@pytest.mark.parametrize("at", range(16_360, 16_400))
def test_the_next_plain_record_is_found_wherever_it_begins(tmp_path: Path, at: int) -> None:
    pytest.importorskip("warcio")
    odd = b"WARC/1.0\r\n\r\n" + b"x" * at + b"\r\n\r\n"
    rows, ((span, _), (rest, _)) = bad_rows(tmp_path / "x.warc", odd + NO_PAGES[0] + b"odd")
    assert (len(rows), span.size, rest.size) == (1, len(odd), len(b"odd"))


def test_a_record_within_a_broken_one_is_told_from_what_only_looks_so(tmp_path: Path) -> None:
    pytest.importorskip("warcio")
    good = gzip.compress(NO_PAGES[0], mtime=0)
    odd = (
        broken(gzip.compress(NO_PAGES[1], mtime=0), -6) + b"\x1f\x8b\x08" * 9 + gzip.compress(b"other") + bytes(40_000)
    )
    rows, ((span, _),) = bad_rows(tmp_path / "x.warc.gz", good + odd + good)
    assert len(rows) == 2
    assert span.size == len(odd)
