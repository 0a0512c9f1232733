"""Read several feeds of one format as one feed, and write rows: JSON lines, JSON arrays, CSV, Parquet and WARC.

Rows that can't be read are reported with their place, and the rest is read. To add a format, write a subclass of
`Feed`, and add it to `KINDS`.
"""

from __future__ import annotations

import csv
import gzip
import json
import os
import re
import zlib
from abc import ABC, abstractmethod
from codecs import BOM_UTF8, getincrementaldecoder, getwriter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import cached_property
from itertools import chain
from types import SimpleNamespace
from typing import IO, Any, ClassVar, NamedTuple, TypeAlias, TypeVar

from .files import STREAM, FileError, check_name, has_ending, is_gzipped, json_text, parse_object, reading, writing


class Row(NamedTuple):
    number: int  # counted from 1 over all feeds together
    data: dict[str, Any]
    place: str  # the file and the place in it, for messages
    raw: Any = None  # the row as its file has it, to write it unchanged to a file of the same format; None for CSV

    def field(self, name: str) -> Any:
        """Return the value of a field. Raise FileError if the row lacks the field."""
        if name not in self.data:
            raise FileError(f"{self.place}: there is no field {name!r}")
        return self.data[name]

    def id(self, id_field: str | None, url_field: str) -> Any:
        """Return the value of `id_field`; if None, the URL or else the number. Raise FileError for a missing field."""
        return self.data.get(url_field) or self.number if id_field is None else self.field(id_field)


def _raise(place: str, why: str) -> None:
    raise FileError(f"{place}: {why}")


class Feeds:
    """Several feeds of one format. Raises FileError for different or unknown formats, or if a file does not exist."""

    def __init__(self, paths: Sequence[str]) -> None:
        self.paths = paths
        self.size = sum(map(_size, paths))  # bytes
        found = list(dict.fromkeys(map(_kind, paths)))
        if len(found) > 1:
            names = " and ".join(kind.name for kind in found)
            raise FileError(f"feeds of several formats, {names}; allowed are feeds of one format")
        self.kind = found[0]
        self.number = 0  # of the last row that was read
        self.at = 0  # the bytes read so far

    def rows(self, bad: Callable[[str, str], object] = _raise) -> Iterator[Row]:
        """Yield the rows. If a row or the rest of a file can't be read, call `bad` with the place and the reason; the
        default raises FileError. Raise FileError if there are rows, but none can be read."""
        good = 0
        for path in self.paths:
            last, before = "", self.at
            try:
                with reading(path) as (packed, file):
                    for at, data, raw in self.kind(file, path).rows():
                        self.number += 1
                        self.at = before + (packed.tell() if packed.seekable() else 0)
                        last = f"{self.kind.unit} {at}"
                        if isinstance(data, ValueError):
                            bad(f"{path}, {last}", str(data))
                        else:
                            good += 1
                            yield Row(self.number, data, f"{path}, {last}", raw)
            except UNREADABLE as error:
                why = " ".join(str(getattr(error, "strerror", None) or error).split())
                if not self.number and path == self.paths[-1]:
                    raise FileError(f"{path}: can't be read: {why}") from error
                self.number += 1
                bad(f"{path}, after {last}" if last else path, f"can't be read: {why}")
            self.at = before + _size(path)
        if self.number > good == 0:
            raise FileError("no row can be read; nothing was written")


@contextmanager
def writing_rows(path: str, feeds: Feeds) -> Iterator[Callable[[Row], object]]:
    """Yield a function that writes rows of `feeds` to a file. Raise FileError if its format can't have these rows."""
    kind = _kind(path)
    if kind in (Parquet, Warc) and kind is not feeds.kind:
        raise FileError(f"{path}: {kind.name} is written only from {kind.name}, but the feeds are {feeds.kind.name}")
    with writing(path, kind.endings, packs=kind.is_packed_whole) as file:
        output = kind(file, path, feeds.paths)
        try:
            yield lambda row: output.write(row.data, row.raw if kind is feeds.kind else None)
        except BaseException:
            with suppress(Exception):
                output.close()  # or pyarrow would complain that the file is closed
            raise
        output.close()


def _kind(path: str) -> type[Feed]:
    """Return the format of a file by the ending of its name. Raise FileError for an unknown ending."""
    if path == STREAM:
        return JsonLines
    check_name(path, [ending for kind in KINDS for ending in kind.endings])
    return next(kind for kind in KINDS if has_ending(path, kind.endings))


def _size(path: str) -> int:
    try:
        if os.path.isdir(path):
            raise IsADirectoryError(21, "Is a directory")
        return 0 if path == STREAM else os.stat(path).st_size
    except OSError as error:
        raise FileError(f"{path}: can't be read: {error.strerror or error}") from error


LARGEST = 1 << 28  # the maximum bytes of a row


class BrokenError(OSError):
    """The rest of a feed can't be read, or a feed can't be written. The message gives the reason."""


UNREADABLE = (OSError, EOFError, zlib.error)
T = TypeVar("T")
Found: TypeAlias = tuple[int, dict[str, Any] | ValueError, Any]
"""The number of a row in its file, the row or an error that says why it is not valid, and `Row.raw`."""


@dataclass
class Feed(ABC):
    """An open file of rows, which is either read or written."""

    file: IO[bytes]
    path: str
    sources: Sequence[str] = ()  # the feeds whose rows are written

    name: ClassVar[str]  # in messages
    endings: ClassVar[tuple[str, ...]]  # of file names, in lower case; .gz may follow
    unit: ClassVar[str] = "row"  # the thing that the number of a row counts
    is_packed_whole: ClassVar[bool] = True  # False if each row of a .gz file is packed on its own
    settings: ClassVar[Mapping[str, Any]] = {}  # the settings that rows of this format require

    @abstractmethod
    def rows(self) -> Iterator[Found]:
        """Yield the rows, valid or not, see `Found`. Raise one of the `UNREADABLE` errors if the rest can't be read."""

    @abstractmethod
    def write(self, data: Mapping[str, Any], raw: Any = None) -> None:
        """Write a row: `raw` (see `Row.raw`) if it is given, else `data`."""

    def close(self) -> None:  # noqa: B027 - most formats write nothing after the last row
        """Write the end of the file, after the last row."""

    def lines(self) -> Iterator[bytes]:
        """Yield the lines of the file. Raise BrokenError for a line of `LARGEST` bytes or more."""
        while line := self.file.readline(LARGEST):
            if len(line) == LARGEST:
                raise BrokenError(f"a line of over {LARGEST} bytes")
            yield line


def _tried(parse: Callable[..., T], *given: Any) -> T | ValueError:
    """Return what `parse` returns or, if it raises a ValueError, the error."""
    try:
        return parse(*given)
    except ValueError as error:
        return error


class JsonLines(Feed):
    """Lines with one JSON object each."""

    name, unit = "JSON lines", "line"
    endings = (".jsonl", ".jsonlines", ".jl", ".ndjson")

    def rows(self) -> Iterator[Found]:
        for number, line in enumerate(self.lines(), 1):
            if raw := line.strip().removeprefix(BOM_UTF8):
                yield number, _tried(parse_object, raw), raw

    def write(self, data: Mapping[str, Any], raw: bytes | None = None) -> None:
        self.file.write((raw or json_text(data).encode()) + b"\n")


CHUNK = 1 << 18  # bytes of an array to read at a time
MOST = 1 << 26  # the maximum characters of an object in an array, and of a field in CSV
_BETWEEN = re.compile(r"[\s,\[\]\ufeff]*")  # between two objects, or two arrays, since a crawl may append one


class JsonArray(Feed):
    """Objects in an array, read in pieces. Further arrays may follow, since a crawl may append one."""

    name, endings = "JSON", (".json",)
    _before = b"[\n"

    def rows(self) -> Iterator[Found]:
        decode, parse = getincrementaldecoder("utf-8")("surrogateescape").decode, json.JSONDecoder().raw_decode
        text, at, number = "", 0, 0
        while True:
            between = _BETWEEN.match(text, at)
            at = between.end() if between else at
            try:
                end, fault = parse(text, at)[1], ""
            except (ValueError, RecursionError) as error:
                end, fault = len(text), str(error)
            if end == len(text) and len(text) - at < MOST and (more := self.file.read(max(CHUNK, len(text) - at))):
                text, at = text[at:] + decode(more), 0
            elif at == len(text):
                return
            elif fault:
                raise BrokenError(f"no JSON: {fault.partition(': line')[0]}")
            else:
                number += 1
                raw, at = text[at:end].encode(errors="surrogateescape"), end
                yield number, _tried(parse_object, raw), raw

    def write(self, data: Mapping[str, Any], raw: bytes | None = None) -> None:
        self.file.write(self._before + (raw or json_text(data).encode()))
        self._before = b",\n"

    def close(self) -> None:
        self.file.write(b"[\n]\n" if self._before == b"[\n" else b"\n]\n")


class Csv(Feed):
    """A table with column names in its first row. A tab delimits in .tsv, else the most frequent of `,;|` and tab."""

    name, unit = "CSV", "line"
    endings = (".csv", ".tsv")
    _writer: Any = None

    def rows(self) -> Iterator[Found]:
        csv.field_size_limit(max(MOST, csv.field_size_limit()))  # the default of 128 KB is too low for many pages
        lines = (line.decode("utf-8", "surrogateescape") for line in self.lines())
        head = next(lines, "").removeprefix("\ufeff")
        if re.search("[\udc80-\udcff]", head):  # for UTF-16, the csv module would blame the ends of lines
            raise BrokenError("no UTF-8")
        delimiter = "\t" if has_ending(self.path, (".tsv",)) else max(",;\t|", key=re.sub('"[^"]*"', "", head).count)
        reader = csv.reader(chain([head], lines), delimiter=delimiter, strict=True)
        columns = list[str]()
        while True:
            number, cells, fault = reader.line_num + 1, list[str](), ""
            try:
                "".join(cells := next(reader)).encode()
            except StopIteration:
                return
            except UnicodeEncodeError:  # for bytes that are not UTF-8
                fault = "no UTF-8"
            except csv.Error as error:
                fault = f"no CSV: {error}"
            if not columns:
                if fault or len({*cells}) < len(cells):
                    raise BrokenError(fault or "two columns have one name")
                columns = cells
            elif fault or cells:  # otherwise the line is blank
                if not fault and len(cells) != len(columns):
                    fault = f"{len(cells)} fields; allowed are {len(columns)}, as columns"
                yield number, ValueError(fault) if fault else dict(zip(columns, cells, strict=True)), None

    def write(self, data: Mapping[str, Any], raw: None = None) -> None:
        if not self._writer:
            delimiter = "\t" if has_ending(self.path, (".tsv",)) else ","
            self._writer = csv.DictWriter(getwriter("utf-8")(self.file, "backslashreplace"), data, delimiter=delimiter)
            self._writer.writeheader()
        if more := data.keys() - {*self._writer.fieldnames}:
            raise FileError(f"{self.path}: no column for the field {min(more)!r}, which the first row does not have")
        values = ((name, json_text(each) if isinstance(each, (dict, list)) else each) for name, each in data.items())
        self._writer.writerow(dict(values))


ROWS = 16  # rows to read at a time; a file of some kilobytes can have rows of many megabytes
GROUP = 1 << 25  # bytes after which a row group is written


@dataclass
class Parquet(Feed):
    """A table of typed columns. `Row.raw` is a batch of rows, and the place of the row in it."""

    name, endings = "Parquet", (".parquet",)
    _batches: list[tuple[Any, list[int]]] = field(default_factory=list)  # with the places of rows to write
    _size: int = 0  # of the batches, in bytes

    def rows(self) -> Iterator[Found]:
        # Without these options, pyarrow holds whole columns of a row group in memory.
        with _arrow(self.path) as pa, pa.parquet.ParquetFile(self.file, buffer_size=1 << 20, pre_buffer=False) as file:
            places = ((batch, place) for batch in file.iter_batches(ROWS) for place in range(batch.num_rows))
            for number, (batch, place) in enumerate(places, 1):
                columns = zip(batch.schema.names, batch.columns, strict=True)
                yield number, {name: _value(pa, column[place]) for name, column in columns}, (batch, place)

    @cached_property
    def _writer(self) -> Any:
        with _arrow(self.path) as pa, reading(self.sources[0]) as (_, file):
            return pa.parquet.ParquetWriter(self.file, pa.parquet.read_schema(file))

    def write(self, data: Mapping[str, Any], raw: Any = None) -> None:
        batch, place = raw
        if not self._batches or batch is not self._batches[-1][0]:
            if self._size > GROUP:
                self._write_group()
            self._batches.append((batch, []))
            self._size += batch.nbytes
        self._batches[-1][1].append(place)

    def close(self) -> None:
        with self._writer:
            self._write_group()

    def _write_group(self) -> None:
        with _arrow(self.path) as pa:
            if parts := [batch.slice(place, 1) for batch, places in self._batches for place in places]:
                self._writer.write_table(pa.Table.from_batches(parts).cast(self._writer.schema))
        self._batches, self._size = [], 0


def _value(pa: Any, scalar: Any) -> Any:
    """Return a cell as a Python value. A time beyond Python's range becomes text, or None if that fails."""
    try:
        return scalar.as_py()
    except (ValueError, OverflowError, LookupError):  # LookupError for an unknown time zone
        with suppress(pa.ArrowException):
            return scalar.cast(pa.string()).as_py()
    return None


@contextmanager
def _arrow(path: str) -> Iterator[Any]:
    """Yield pyarrow. Raise BrokenError for its errors, and FileError if it is not installed."""
    try:
        import pyarrow as pa
        import pyarrow.parquet
    except ImportError as error:
        raise FileError(f"{path}: Parquet needs pyarrow: pip install 'scrapy-neardup[parquet]'") from error
    try:
        yield pa
    except (pa.ArrowException, ValueError) as error:
        raise BrokenError(" ".join(str(error).split())) from error


_BEGIN = re.compile(rb"WARC/1\.[01]\s*")
_BLANK = re.compile(rb"\r?\n\r?\n")
_SIZE = re.compile(rb"([0-9a-fA-F]{1,8})[^\n]{0,99}\n")


class Warc(Feed):
    """Records of a web archive, all gzipped or none. Only pages have text. `Row.raw` is the unpacked record."""

    name, unit = "WARC", "record"
    endings, is_packed_whole = (".warc", ".wet"), False
    settings = {  # noqa: RUF012 - never changed
        "fields": ("text",),
        "url_field": "url",
        "title_field": "title",
        "ignore_fields": ("id", "date"),  # these belong to the record in the file, not to the page
    }

    def rows(self) -> Iterator[Found]:
        number, is_lost = 0, False  # is_lost: lines are skipped until a record begins, since the last one was invalid
        for line in iter(lambda: self.file.readline(LARGEST), b""):
            if line.strip() and (_BEGIN.fullmatch(line) or not is_lost):
                number += 1
                found = _tried(self._record, line)
                if is_lost := isinstance(found, ValueError):
                    yield number, found, None
                else:
                    head, content = found
                    yield number, _tried(self._row, head, content), b"".join([*head, b"\r\n", content])

    def write(self, data: Mapping[str, Any], raw: bytes = b"") -> None:
        record = raw + b"\r\n\r\n"
        self.file.write(gzip.compress(record, mtime=0) if is_gzipped(self.path) else record)

    def _record(self, line: bytes) -> tuple[list[bytes], bytes]:
        """Return the head of a record, as lines from `line` on, and its content. Raise ValueError if it is invalid."""
        if not _BEGIN.fullmatch(line):
            raise ValueError(f"{line[:20].decode(errors='replace')!r} in place of a record")
        head = [line]
        while len(head) < 1000 and (line := self.file.readline(LARGEST)).strip():
            head.append(line)
        size = _fields(head).get("content-length", "")
        if not re.fullmatch("[0-9]{1,9}", size) or int(size) > LARGEST:
            raise ValueError(f"its Content-Length is {size!r}; allowed is a number up to {LARGEST}")
        content = self.file.read(int(size))
        if len(content) < int(size):
            raise BrokenError("the file ends before the record; it is probably truncated")
        if self.file.readline(LARGEST).strip():
            raise ValueError("its Content-Length does not match its end")
        return head, content

    def _row(self, head: Sequence[bytes], content: bytes) -> dict[str, Any]:
        fields, text = _fields(head), None
        kind, url = fields.get("warc-type"), fields.get("warc-target-uri", "").strip("<>")
        if kind == "conversion" and fields.get("content-type", "").lower().startswith("text/plain"):
            text = content.decode(errors="replace")
        elif kind == "response" and re.match("https?:", url.lower()) and re.match(rb"HTTP/\S+ 200\s", content):
            text = self._html(url, *_BLANK.split(content, 1))
        return {"id": fields.get("warc-record-id"), "url": url or None, "date": fields.get("warc-date"), "text": text}

    def _html(self, url: str, head: bytes, body: bytes = b"") -> str | None:
        """Return the HTML of a response, decoded as by Scrapy; None for other types. Raise ValueError if that fails."""
        from scrapy.http import Headers, HtmlResponse, Request, Response
        from scrapy.responsetypes import responsetypes

        fields = _fields(head.splitlines())
        if fields.get("transfer-encoding", "").lower().endswith("chunked"):
            body = _joined(body)
        headers = Headers({name: fields[name] for name in ("content-type", "content-encoding") if fields.get(name)})
        if body.lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"<"):
            headers.pop("Content-Encoding", None)  # the crawler has unpacked it
        try:
            response: Any = self._unpacking.process_response(Request(url), Response(url, headers=headers, body=body))
        except Exception as error:  # any error of the packages that unpack
            raise ValueError(f"its content can't be unpacked: {error}") from error
        kind = responsetypes.from_args(headers=response.headers, body=response.body)
        page = kind(url, headers=response.headers, body=response.body)
        return page.text if page.body and isinstance(page, HtmlResponse) else None

    @cached_property
    def _unpacking(self) -> Any:
        from scrapy.downloadermiddlewares.httpcompression import HttpCompressionMiddleware
        from scrapy.settings import Settings
        from scrapy.signalmanager import SignalManager

        settings = Settings({"DOWNLOAD_MAXSIZE": LARGEST, "DOWNLOAD_WARNSIZE": LARGEST})
        crawler: Any = SimpleNamespace(settings=settings, stats=None, signals=SignalManager())
        return HttpCompressionMiddleware(crawler=crawler)


def _fields(head: Sequence[bytes]) -> dict[str, str]:
    """Return the fields of a head by their names in lower case. The first of several equal names counts."""
    parts = (line.decode(errors="replace").partition(":") for line in reversed(head))
    return {name.strip().lower(): value.strip() for name, _, value in parts}


def _joined(body: bytes) -> bytes:
    """Join the chunks of a body. A body without chunks is returned unchanged."""
    parts, at = list[bytes](), 0
    while found := _SIZE.match(body, at):
        at = found.end() + int(found[1], 16)
        parts.append(body[found.end() : at])
        at += 2
    return b"".join(parts) or body


KINDS: tuple[type[Feed], ...] = (JsonLines, JsonArray, Csv, Parquet, Warc)
