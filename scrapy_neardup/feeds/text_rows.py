"""Feeds of text: JSON lines, JSON arrays, and CSV or TSV."""

from __future__ import annotations

import csv
import json
import re
from codecs import BOM_UTF8, getincrementaldecoder
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import chain
from math import isfinite
from types import SimpleNamespace
from typing import Any

from .feed import BrokenError, Feed, FeedError, Found, has_ending


def json_text(value: Any, *, indent: int | None = None) -> str:
    r"""Return a value as JSON, with all characters unescaped, except that a lone surrogate is written as `\ud800`.

    URLs from JSON may contain lone surrogates, which no encoding accepts. Values of unknown types are written as their
    `str`, and NaN and infinite numbers as null.
    """
    dump = partial(json.dumps, ensure_ascii=False, default=str, indent=indent, allow_nan=False)
    try:
        text = dump(value)
    except ValueError:  # rare, so that other texts are not searched
        text = dump(_known(value))
    return text.encode(errors="backslashreplace").decode()


def _known(value: Any) -> Any:
    if isinstance(value, float) and not isfinite(value):
        return None
    if isinstance(value, dict):
        return {_known(name): _known(each) for name, each in value.items()}
    return list(map(_known, value)) if isinstance(value, list | tuple) else value


CHUNK = 1 << 18  # bytes of an array to read at a time
MOST = 1 << 26  # the maximum characters of an object in an array, and of a field in CSV
_BETWEEN = re.compile(r"[\s,\[\]\ufeff]*")  # objects of an array, or of several, since crawls may append some


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
                    yield number, error, raw

    def write(self, data: Mapping[str, Any], raw: bytes | None = None) -> None:
        self.file.write((raw or json_text(data).encode()) + b"\n")


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
                    yield number, error, raw.encode(errors="replace")

    def write(self, data: Mapping[str, Any], raw: bytes | None = None) -> None:
        self.file.write(self._before + (raw or json_text(data).encode()))
        self._before = b",\n"

    def close(self) -> None:
        self.file.write(b"[\n]\n" if self._before == b"[\n" else b"\n]\n")


class Csv(Feed):
    """A table. Its first row has the column names, and its delimiter is the most frequent one of these in there."""

    name, unit = "CSV", "line"
    endings = (".csv", ".tsv")
    _columns: Sequence[str] = ()

    def rows(self) -> Iterator[Found]:
        csv.field_size_limit(max(MOST, csv.field_size_limit()))  # the default of 128 KB is too low for many pages
        lines = (line.decode("utf-8", "surrogateescape") for line in self.lines())
        head = next(lines, "").removeprefix("\ufeff")
        delimiter = "\t" if self._is_tsv() else max(",;\t|", key=re.sub(r'"[^"]*"', "", head).count)
        rows = _cells(chain([head], lines), delimiter)
        _, columns = next(rows, (0, []))
        if isinstance(columns, ValueError) or len({*columns}) < len(columns):
            raise BrokenError(str(columns) if isinstance(columns, ValueError) else "two columns have one name")
        for number, cells in rows:
            if isinstance(cells, ValueError):
                yield number, cells, None
            elif len(cells) == len(columns):
                yield number, dict(zip(columns, cells, strict=True)), None
            elif cells:  # otherwise the line is blank
                yield number, ValueError(f"{len(cells)} fields; allowed are {len(columns)}, as columns"), None

    def write(self, data: Mapping[str, Any], raw: None = None) -> None:
        if not self._columns:  # those of the first row
            self._columns = [*data]
            to = SimpleNamespace(write=lambda text: self.file.write(text.encode("utf-8", "backslashreplace")))
            self._rows = csv.writer(to, delimiter="\t" if self._is_tsv() else ",")
            self._rows.writerow(self._columns)
        if more := data.keys() - {*self._columns}:
            raise FeedError(f"{self.path}: no column for the field {min(more)!r}, which the first row does not have")
        values = (data.get(name) for name in self._columns)
        self._rows.writerow(json_text(each) if isinstance(each, (dict, list)) else each for each in values)

    def _is_tsv(self) -> bool:
        return has_ending(self.path, self.endings[1:], gzips=True)


def _cells(lines: Iterable[str], delimiter: str) -> Iterator[tuple[int, list[str] | ValueError]]:
    """Yield the line and the cells of each row, or the reason why it can't be read."""
    reader = csv.reader(lines, delimiter=delimiter, strict=True)
    while True:
        number = reader.line_num + 1
        try:
            "".join(cells := next(reader)).encode()
            yield number, cells
        except StopIteration:
            return
        except UnicodeEncodeError:  # for bytes that were no UTF-8
            yield number, ValueError("no UTF-8")
        except csv.Error as error:
            yield number, ValueError(f"no CSV: {error}")
