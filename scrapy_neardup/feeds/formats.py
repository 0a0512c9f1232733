"""Feeds of JSON lines, JSON arrays, CSV or TSV, and Parquet."""

from __future__ import annotations

import csv
import json
import re
from codecs import BOM_UTF8, getincrementaldecoder, getwriter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import partial
from itertools import chain
from typing import Any

from .feed import BrokenError, Feed, FeedError, Found, has_ending, reading

# JSON


def json_text(value: Any, *, indent: int | None = None) -> str:
    r"""Return a value as JSON, with all characters unescaped, except that a lone surrogate is written as `\ud800`.

    URLs from JSON may contain lone surrogates, which no encoding accepts. Values of unknown types are written as their
    `str`, and NaN and infinite numbers as null.
    """
    dump = partial(json.dumps, ensure_ascii=False, default=str, indent=indent)
    try:
        text = dump(value, allow_nan=False)
    except ValueError:  # rare, so that other texts are not searched
        text = dump(json.loads(json.dumps(value, default=str), parse_constant=lambda name: None))
    return text.encode(errors="backslashreplace").decode()


def parse_object(raw: bytes) -> dict[str, Any]:
    """Parse a JSON object. Raise ValueError with the reason if the text is none."""
    try:
        # Decode here, since json would guess the encoding of each line.
        return _checked(json.loads(raw.removeprefix(BOM_UTF8).decode("utf-8", "surrogatepass")))
    except json.JSONDecodeError as error:
        raise ValueError(f"no JSON: {error.msg}, column {error.colno}") from error
    except RecursionError as error:
        raise ValueError("no JSON: too deep") from error


def _checked(data: Any) -> dict[str, Any]:
    if not isinstance(data, dict):
        raise ValueError(f"a JSON {type(data).__name__}; allowed is an object")
    return data


class JsonLines(Feed):
    """Lines with one JSON object each."""

    name, unit = "JSON lines", "line"
    endings = (".jsonl", ".jsonlines", ".jl", ".ndjson")

    def rows(self) -> Iterator[Found]:
        for number, line in enumerate(self.lines(), 1):
            if raw := line.strip().removeprefix(BOM_UTF8):
                try:
                    yield number, parse_object(raw), raw
                except ValueError as error:
                    yield number, error, None

    def write(self, data: Mapping[str, Any], raw: bytes | None = None) -> None:
        self.file.write((raw or json_text(data).encode()) + b"\n")


CHUNK = 1 << 18  # bytes of an array to read at a time
MOST = 1 << 26  # the maximum characters of an object in an array, and of a field in CSV
_BETWEEN = re.compile(r"[\s,\[\]\ufeff]*")  # objects of an array, or of several, since crawls may append some


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
            data, end, fault = None, len(text), "the file ends before the object"
            try:
                data, end = parse(text, at)
            except (ValueError, RecursionError) as error:
                fault = str(error)
            if end == len(text) and len(text) - at < MOST and (more := self.file.read(max(CHUNK, len(text) - at))):
                text, at = text[at:] + decode(more), 0
            elif at == len(text):
                return
            elif data is None:
                raise BrokenError(f"no JSON: {fault.partition(': line')[0]}")
            else:
                number += 1
                raw, at = text[at:end], end
                try:
                    yield number, _checked(data), raw.encode()
                except ValueError as error:  # also for bytes that were no UTF-8
                    yield number, error, None

    def write(self, data: Mapping[str, Any], raw: bytes | None = None) -> None:
        self.file.write(self._before + (raw or json_text(data).encode()))
        self._before = b",\n"

    def close(self) -> None:
        self.file.write(b"[\n]\n" if self._before == b"[\n" else b"\n]\n")


# CSV


class Csv(Feed):
    """A table. Its first row has the column names, and its delimiter is the most frequent one of these in there."""

    name, unit = "CSV", "line"
    endings = (".csv", ".tsv")
    _writer: Any = None

    def rows(self) -> Iterator[Found]:
        csv.field_size_limit(max(MOST, csv.field_size_limit()))  # the default of 128 KB is too low for many pages
        lines = (line.decode("utf-8", "surrogateescape") for line in self.lines())
        head = next(lines, "").removeprefix("\ufeff")
        delimiter = "\t" if has_ending(self.path, (".tsv",)) else max(",;\t|", key=re.sub('"[^"]*"', "", head).count)
        reader = csv.reader(chain([head], lines), delimiter=delimiter, strict=True)
        columns = list[str]()
        while True:
            number, cells, fault = reader.line_num + 1, list[str](), ""
            try:
                "".join(cells := next(reader)).encode()
            except StopIteration:
                return
            except UnicodeEncodeError:  # for bytes that were no UTF-8
                fault = "no UTF-8"
            except csv.Error as error:
                fault = f"no CSV: {error}"
            if not columns:
                if fault or len({*cells}) < len(cells):
                    raise BrokenError(fault or "two columns have one name")
                columns = cells
            elif fault or (cells and len(cells) != len(columns)):
                fault = fault or f"{len(cells)} fields; allowed are {len(columns)}, as columns"
                yield number, ValueError(fault), None
            elif cells:  # otherwise the line is blank
                yield number, dict(zip(columns, cells, strict=True)), None

    def write(self, data: Mapping[str, Any], raw: None = None) -> None:
        if not self._writer:
            delimiter = "\t" if has_ending(self.path, (".tsv",)) else ","
            self._writer = csv.DictWriter(getwriter("utf-8")(self.file, "backslashreplace"), data, delimiter=delimiter)
            self._writer.writeheader()
        if more := data.keys() - {*self._writer.fieldnames}:
            raise FeedError(f"{self.path}: no column for the field {min(more)!r}, which the first row does not have")
        values = ((name, json_text(each) if isinstance(each, (dict, list)) else each) for name, each in data.items())
        self._writer.writerow(dict(values))


# Parquet

ROWS = 16  # rows to read at a time; a file of some kilobytes can have rows of many megabytes
GROUP = 1 << 25  # bytes after which a row group is written


class Parquet(Feed):
    """A table of typed columns. A row as the file has it is a batch, and a place in it."""

    name, endings = "Parquet", (".parquet",)
    _writer: Any = None
    _batch: Any = None

    def rows(self) -> Iterator[Found]:
        number = 0
        # Without these options, pyarrow holds whole columns of a row group in memory.
        with _arrow(self.path) as pa, pa.parquet.ParquetFile(self.file, buffer_size=1 << 20, pre_buffer=False) as file:
            for batch in file.iter_batches(ROWS):
                for place in range(batch.num_rows):
                    number += 1
                    columns = zip(batch.schema.names, batch.columns, strict=True)
                    yield number, {name: _value(pa, column[place]) for name, column in columns}, (batch, place)

    def write(self, data: Mapping[str, Any], raw: Any = None) -> None:
        batch, place = raw
        if self._writer is None or batch is not self._batch:
            self._copy()
            self._batch = batch
        self._places.append(place)

    def close(self) -> None:
        self._copy(is_last=True)
        self._writer.close()

    def _copy(self, *, is_last: bool = False) -> None:
        """Copy the rows of a batch that are written. Write all copies to the file if they are large."""
        with _arrow(self.path) as pa:
            if self._writer is None:  # with the columns of the first feed
                with reading(self.sources[0]) as (_, file):
                    self._schema = pa.parquet.read_schema(file)
                self._writer = pa.parquet.ParquetWriter(self.file, self._schema)
                self._tables, self._places = list[Any](), list[int]()
            if self._places:
                self._tables.append(pa.Table.from_batches([self._batch.take(pa.array(self._places))]))
                self._places = []
            if self._tables and (is_last or sum(table.nbytes for table in self._tables) > GROUP):
                self._writer.write_table(pa.concat_tables(self._tables).cast(self._schema))
                self._tables = []


def _value(pa: Any, scalar: Any) -> Any:
    """Return a value. A time beyond Python's range becomes text, or None if that fails."""
    try:
        return scalar.as_py()
    except (ValueError, OverflowError, LookupError):  # LookupError for an unknown time zone
        with suppress(pa.ArrowException):
            return scalar.cast(pa.string()).as_py()
    return None


@contextmanager
def _arrow(path: str) -> Iterator[Any]:
    """Yield pyarrow. Raise BrokenError for its errors, and FeedError if it is not installed."""
    try:
        import pyarrow as pa
        import pyarrow.parquet
    except ImportError as error:
        raise FeedError(f"{path}: Parquet needs pyarrow: pip install 'scrapy-neardup[parquet]'") from error
    try:
        yield pa
    except (pa.ArrowException, ValueError) as error:
        raise BrokenError(" ".join(str(error).split())) from error
