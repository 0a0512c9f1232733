"""Write and read feeds of every kind as other programs do."""

from __future__ import annotations

import csv
import gzip
import io
import json
import tracemalloc
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from uuid import NAMESPACE_URL, uuid5

import pytest

from scrapy_neardup.feeds import Feeds, writing_rows

ROWS: list[dict[str, str]] = [
    {"url": "http://a.example/1", "title": "A, B", "text": "one two\nthree \"four\" ] } , 'five'"},
    {"url": "http://a.example/2", "title": "", "text": '鹤鹤 \\ \\\\" \t [{'},
    {"url": "http://a.example/3?a=1&b=2", "title": "-", "text": "x" * 300_000},
    {"url": "http://b.example/", "title": " ", "text": "last"},
]
DELIMITERS = {"csv": ",", "tsv": "\t"}
TEXTS = ("jsonl", "json", "csv", "tsv")
KINDS = ("jsonl", "json", "csv", "parquet", "warc.gz")
"""An ending for each kind; the other endings differ only in their names and in compression."""
ENDINGS = (*TEXTS, "parquet", "warc", *(f"{ending}.gz" for ending in (*TEXTS, "warc")))


def kind_of(path: Path) -> str:
    """Return the ending of a file's name, without .gz. Skip the test if the package that reads it is not installed."""
    ending = path.name.lower().removesuffix(".gz").rpartition(".")[2]
    pytest.importorskip({"parquet": "pyarrow", "warc": "warcio", "wet": "warcio"}.get(ending, "json"))
    return ending


def write_feed(path: Path, rows: Sequence[dict[str, Any]] = ROWS) -> Path:
    """Write rows to a feed of the kind that its name tells. In a WARC, the title and text of a row become a page."""
    kind = kind_of(path)
    if kind == "warc":
        return write_records(path, *(record("response", row["url"], answer(page(row).encode())) for row in rows))
    if kind == "parquet":
        import pyarrow as pa
        import pyarrow.parquet as pq

        schema = pa.schema({name: pa.string() for name in (rows or ROWS)[0]}, metadata={"made": "by hand"})
        pq.write_table(pa.Table.from_pylist(list(rows), schema), path, row_group_size=3, compression="zstd")
    else:
        data = (_table(rows, DELIMITERS[kind]) if kind in DELIMITERS else _json(rows, kind)).encode()
        path.write_bytes(gzip.compress(data, mtime=0) if path.name.endswith(".gz") else data)
    return path


def _json(rows: Sequence[dict[str, Any]], kind: str) -> str:
    is_array = kind == "json"
    lines = [json.dumps(row, ensure_ascii=is_array, separators=(" ,", ":  ")) for row in rows]
    return "[\n" + ",\n".join(lines) + "\n]" if is_array else "".join(f"{line}\n" for line in lines)


def _table(rows: Sequence[dict[str, Any]], delimiter: str) -> str:
    text = io.StringIO(newline="")
    writer = csv.DictWriter(text, (rows or ROWS)[0], delimiter=delimiter)
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue()


def read_feed(path: Path) -> list[dict[str, Any]]:
    """Read rows as other programs do."""
    kind = kind_of(path)
    if kind == "parquet":
        return list(pytest.importorskip("pyarrow.parquet").read_table(path).to_pylist())
    if kind == "warc":
        return list(_pages(path))
    data = gzip.decompress(path.read_bytes()) if path.name.endswith(".gz") else path.read_bytes()
    if kind in DELIMITERS:
        csv.field_size_limit(1 << 28)
        return list(csv.DictReader(io.StringIO(data.decode(), newline=""), delimiter=DELIMITERS[kind]))
    return list(json.loads(data)) if kind == "json" else list(map(json.loads, data.splitlines()))


def _pages(path: Path) -> Iterator[dict[str, Any]]:
    from warcio.archiveiterator import ArchiveIterator

    with path.open("rb") as file:
        for each in ArchiveIterator(file):
            yield {"url": each.rec_headers["WARC-Target-URI"], "page": each.content_stream().read().decode()}


def page(row: dict[str, Any]) -> str:
    return f"<html><head><title>{row.get('title', '')}</title></head><body><p>{row['text']}</p></body></html>"


def record(kind: str, url: str, content: bytes, mime: str = "application/http; msgtype=response") -> bytes:
    """Return a WARC record. If it is a response, `content` has the head of the response too, see `answer`."""
    head = {
        "WARC-Type": kind,
        "WARC-Record-ID": f"<urn:uuid:{uuid5(NAMESPACE_URL, kind + url)}>",
        "WARC-Target-URI": url,
        "WARC-Date": "2026-11-21T10:00:00Z",
        "Content-Type": mime,
        "Content-Length": str(len(content)),
    }
    return "\r\n".join(["WARC/1.0", *map(": ".join, head.items()), "", ""]).encode() + content + b"\r\n\r\n"


def answer(content: bytes, mime: str = "text/html; charset=utf-8", status: str = "200 OK", **more: str) -> bytes:
    """Return an HTTP response with its head, as a server sends it."""
    headers = {**({"Content-Type": mime} if mime else {}), **{k.replace("_", "-"): v for k, v in more.items()}}
    return "\r\n".join([f"HTTP/1.1 {status}", *map(": ".join, headers.items()), "", ""]).encode() + content


def write_records(path: Path, *records: bytes) -> Path:
    kind_of(path)
    is_gzip = path.name.lower().endswith(".gz")
    path.write_bytes(b"".join(gzip.compress(each, mtime=0) if is_gzip else each for each in records))
    return path


def feeds_of(*paths: Path) -> Feeds:
    return Feeds(list(map(str, paths)))


def read(path: Path, data: bytes) -> list[dict[str, Any]]:
    """Write bytes to a file, and return its rows. Fail if one can't be read."""
    kind_of(path)
    path.write_bytes(data)
    return [row.data for row in feeds_of(path).rows()]


def read_all(path: Path, data: bytes) -> tuple[list[dict[str, Any]], list[str]]:
    """Write bytes to a file. Return its rows, and the messages on what can't be read, without the path."""
    kind_of(path)
    path.write_bytes(data)
    bad: list[str] = []

    def take(place: str, why: str) -> None:
        assert "\n" not in place + why
        bad.append(f"{place}: {why}".removeprefix(f"{path}").removeprefix(", ").removeprefix(": "))

    rows = feeds_of(path).rows(take)
    return [row.data for row in rows], bad


def copy(output: Path, *paths: Path, only: Sequence[int] = ()) -> None:
    """Write the rows of feeds to one feed; with `only`, the rows with these numbers."""
    feeds = feeds_of(*paths)
    with writing_rows(str(output), feeds) as write:
        for row in feeds.rows():
            if row.number in only or not only:
                write(row)


def copied(output: Path, *paths: Path) -> bytes:
    copy(output, *paths)
    return output.read_bytes()


@contextmanager
def in_memory(size: int) -> Iterator[None]:
    """Fail if Python's objects take `size` bytes or more at any time in the block. Memory of Arrow does not count."""
    tracemalloc.start()
    try:
        yield
        assert tracemalloc.get_traced_memory()[1] < size
    finally:
        tracemalloc.stop()
