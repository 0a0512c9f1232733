"""Read and write JSON lines: files with one JSON object on each line."""

from __future__ import annotations

import json
from codecs import BOM_UTF8
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import IO, Any

from .compression import lines_of, position, reading
from .feed import BadRowError, Kind, NoRowError, Piece, Raw

FORMATS = (".jsonl", ".jsonlines", ".jl", ".ndjson")


@dataclass(frozen=True)
class JsonLines(Kind):
    """JSON lines, in a file with any of the endings in `FORMATS`."""

    name = "JSON lines"
    names = FORMATS

    def split(self, path: str) -> Iterator[Piece]:
        """Yield the lines of a file, each with a line end. Skip blank lines."""
        with reading(path) as file:
            for number, line in enumerate(lines_of(file, path), 1):
                raw = line.removeprefix(BOM_UTF8) if number == 1 else line  # only the beginning of a file may have it
                if raw.strip():
                    yield Piece(f"line {number}", raw.rstrip(b"\r\n") + b"\n", position(file))

    def parse(self, raw: Raw) -> dict[str, Any]:
        return parse_object(raw)

    @contextmanager
    def writer(self, file: IO[bytes], *, gzipped: bool) -> Iterator[Callable[[Any], object]]:
        yield file.write


def parse_object(raw: Raw) -> dict[str, Any]:
    """Parse a JSON object. Raise ValueError if the text is no JSON object."""
    assert isinstance(raw, bytes)
    try:
        # Decode here, since json would guess the encoding of each line. Ignore a byte order mark, as json does.
        data = json.loads(raw.rstrip().removeprefix(BOM_UTF8).decode("utf-8", "surrogatepass"))
    except RecursionError as error:
        raise ValueError("no JSON: too deep") from error
    except json.JSONDecodeError as error:
        raise NoRowError(f"no JSON: {error.msg}, column {error.colno}", error.lineno - 1) from error
    except ValueError as error:
        raise ValueError(f"no JSON: {error}") from error
    if not isinstance(data, dict):
        raise ValueError(f"a JSON {type(data).__name__}; allowed is an object")
    return data


def parse_row(raw: bytes, place: str) -> dict[str, Any]:
    """Parse the JSON object in a line. Raise a BadRowError that names `place` if the line is no JSON object."""
    try:
        return parse_object(raw)
    except NoRowError as error:
        raise BadRowError(error.describe(place)) from error
    except ValueError as error:
        raise BadRowError(f"{place}: {error}") from error
