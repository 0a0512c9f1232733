"""Feeds of every kind, as other programs write them, and what they read in them."""

from __future__ import annotations

import csv
import gzip
import io
import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any
from uuid import NAMESPACE_URL, uuid5

from scrapy_neardup.feeds import Feeds, writing_rows

ROWS: list[dict[str, str]] = [
    {"url": "http://a.example/1", "title": "A, B", "text": "one two\nthree \"four\" ] } , 'five'"},
    {"url": "http://a.example/2", "title": "", "text": '鹤鹤 \\ \\\\" \t [{'},
    {"url": "http://a.example/3?a=1&b=2", "title": "-", "text": "x" * 300_000},
    {"url": "http://b.example/", "title": " ", "text": "last"},
]
PLAIN = ("jsonl", "jl", "json", "csv", "tsv", "parquet", "warc")
ENDINGS = (*PLAIN, "jsonl.gz", "json.gz", "csv.gz", "tsv.gz", "warc.gz")


def write_feed(path: Path, rows: Sequence[dict[str, Any]] = ROWS) -> Path:
    """Write rows of text as the kind of feed that the name says; of WARC title and text make a page."""
    ending = path.name.removesuffix(".gz").rpartition(".")[2]
    if ending == "parquet":
        _write_parquet(path, rows)
    elif ending == "warc":
        _write_warc(path, rows)
    else:
        data = {"json": _json, "csv": _csv, "tsv": _tsv}.get(ending, _lines)(rows)
        path.write_bytes(gzip.compress(data) if path.name.endswith(".gz") else data)
    return path


def read_feed(path: Path) -> list[dict[str, Any]]:
    """Read rows as others do."""
    ending = path.name.removesuffix(".gz").rpartition(".")[2]
    if ending == "parquet":
        import pyarrow.parquet as pq

        return list(pq.read_table(path).to_pylist())
    if ending == "warc":
        return list(_read_warc(path))
    data = gzip.decompress(path.read_bytes()) if path.name.endswith(".gz") else path.read_bytes()
    if ending == "json":
        return list(json.loads(data))
    if ending in ("csv", "tsv"):
        csv.field_size_limit(1 << 28)
        text = io.StringIO(data.decode(), newline="")
        return list(csv.DictReader(text, delimiter="\t" if ending == "tsv" else ","))
    return list(map(json.loads, data.splitlines()))


def page(row: dict[str, Any]) -> str:
    return f"<html><head><title>{row.get('title', '')}</title></head><body><p>{row['text']}</p></body></html>"


def _lines(rows: Iterable[dict[str, Any]]) -> bytes:
    return "".join(json.dumps(row, ensure_ascii=False, separators=(" ,", ":  ")) + "\n" for row in rows).encode()


def _json(rows: Iterable[dict[str, Any]]) -> bytes:
    return ("[\n" + ",\n".join(json.dumps(row, separators=(" ,", ":  ")) for row in rows) + "\n]").encode()


def _csv(rows: Sequence[dict[str, Any]], delimiter: str = ",") -> bytes:
    text = io.StringIO(newline="")
    writer = csv.DictWriter(text, list(rows[0]) if rows else ["url", "title", "text"], delimiter=delimiter)
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue().encode()


def _tsv(rows: Sequence[dict[str, Any]]) -> bytes:
    return _csv(rows, "\t")


def _write_parquet(path: Path, rows: Sequence[dict[str, Any]]) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    schema = pa.schema({name: pa.string() for name in (rows or ROWS)[0]}, metadata={"made": "by hand"})
    pq.write_table(pa.Table.from_pylist(list(rows), schema), path, row_group_size=3, compression="zstd")


def record(kind: str, url: str, content: bytes, mime: str = "application/http; msgtype=response") -> bytes:
    """Return a record of a WARC; of a response the content is all that the server sent."""
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
    """Return what a server sends."""
    headers = {**({"Content-Type": mime} if mime else {}), **{k.replace("_", "-"): v for k, v in more.items()}}
    return "\r\n".join([f"HTTP/1.1 {status}", *map(": ".join, headers.items()), "", ""]).encode() + content


def write_records(path: Path, *records: bytes) -> Path:
    is_gzip = path.name.lower().endswith(".gz")
    path.write_bytes(b"".join(gzip.compress(each, mtime=0) if is_gzip else each for each in records))
    return path


def _write_warc(path: Path, rows: Iterable[dict[str, Any]]) -> None:
    write_records(path, *(record("response", row["url"], answer(page(row).encode())) for row in rows))


def _read_warc(path: Path) -> Iterable[dict[str, Any]]:
    from warcio.archiveiterator import ArchiveIterator

    with path.open("rb") as file:
        for each in ArchiveIterator(file):
            yield {"url": each.rec_headers["WARC-Target-URI"], "page": each.content_stream().read().decode()}


def read(path: Path, data: bytes) -> list[dict[str, Any]]:
    """Return what the rows of a file with these bytes say."""
    path.write_bytes(data)
    return [row.data for row in Feeds([str(path)]).rows()]


def bad_rows(path: Path, data: bytes) -> tuple[list[Any], list[tuple[Any, str]]]:
    """Return what the rows say, and those that can't be read with what is said of them, without the path."""
    path.write_bytes(data)
    bad: list[tuple[Any, str]] = []
    rows = Feeds([str(path)]).rows(lambda line, why: bad.append((line.raw, why.removeprefix(f"{path}, "))))
    return [row.data for row in rows], bad


def copied(path: Path, output: Path) -> bytes:
    """Return the bytes of a feed whose rows were written as they stand."""
    feeds = Feeds([str(path)])
    with writing_rows(str(output), feeds.kind) as write:
        for line in feeds.lines():
            write(line)
    return output.read_bytes()
