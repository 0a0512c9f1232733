"""Convert the rows of a store to JSON lines and back. No I/O.

Every line has a `type`:
- `store`: the first line. It has the `format` and the `schemes` of the store, its number of `documents`, and its number
  of URLs (`urls`).
- The kind of a row, such as `document`. `key` is the key of the row without the kind. The other fields are the fields
  of the record (see `records`). Bytes are written as `{"base64": …}`.
- `end`: the last line. A file without this line is truncated.
"""

from __future__ import annotations

from base64 import b64decode, b64encode
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, TypeAlias

from ..signature import Visit
from . import records
from .checks import check
from .records import DAMAGE, DOCUMENT, RUN, VISIT, Record, id_of, is_at, is_hash, is_id, is_place, kind_of

_STORE, _END, _BYTES = "store", "end", "base64"

Line: TypeAlias = dict[str, Any]


def head_line(schemes: Mapping[str, str], documents: int, urls: int) -> Line:
    return {"type": _STORE, "format": records.FORMAT, "schemes": schemes, "documents": documents, "urls": urls}


def line_of(key: str, record: Record) -> Line:
    """Return the line of a row, as a dictionary of JSON values."""
    kind = kind_of(key)
    fields = zip(records.FIELDS[kind], map(_to_json, records.body_of(key, record)), strict=True)
    return {"type": kind, "key": id_of(key), **dict(fields)}


def end_line() -> Line:
    return {"type": _END}


def read_head(line: Line) -> dict[str, str]:
    """Return the schemes in the first line. Raise ValueError if its type is not `store` or its format differs."""
    if line.get("type") != _STORE:
        raise ValueError("it is not an export: the first row must have the type 'store'")
    schemes: dict[str, str] = records.merged(line, {})["schemes"]
    return schemes


def read_lines(lines: Iterable[Line]) -> Iterator[tuple[str, Record]]:
    """Yield the key and the record of each line after the first.

    Raise ValueError if a line is invalid, or if the last line is not of type `end`.
    """
    last: Line = {}
    for last in lines:
        if last.get("type") != _END:
            yield _read(last)
    if last.get("type") != _END:
        raise ValueError("it is truncated: there is no row of type 'end'; import the whole file")


def _read(line: Line) -> tuple[str, Record]:
    kind = str(line.get("type"))
    if kind not in records.FIELDS:
        raise ValueError(f"a row of type {kind!r}; allowed are {', '.join(records.FIELDS)}")
    try:
        key = f"{kind}/{_id(kind, line['key'])}"
        record = records.read(key, [_from_json(line[name]) for name in records.FIELDS[kind]])
        if isinstance(record, Visit):
            _id(DOCUMENT, record.at if record.target is None else record.target)
        check(record)
        if isinstance(record, Visit) and not is_at(key, record):
            raise ValueError("its key is not the hash of its URL or name")
    except KeyError as error:
        raise ValueError(f"a {kind} without {error}") from error
    except DAMAGE as error:
        raise ValueError(f"no {kind}: {error}") from error
    return key, record


def _id(kind: str, value: object) -> str:
    """Return `value` if it is a valid id for a row of this kind. Raise ValueError otherwise."""
    is_valid = {RUN: is_id, VISIT: is_hash}.get(kind, is_place)
    if not (isinstance(value, str) and is_valid(value)):
        raise ValueError(f"its key is {value!r:.80}; allowed is RUN/NUMBER, RUN for a run, or the hash of a visit")
    return value


def _to_json(value: Any) -> Any:
    if isinstance(value, bytes):
        return {_BYTES: b64encode(value).decode()}
    if isinstance(value, Mapping):
        return {name: _to_json(each) for name, each in value.items()}
    return [_to_json(each) for each in value] if isinstance(value, list | tuple) else value


def _from_json(value: Any) -> Any:
    if isinstance(value, list):
        return [_from_json(each) for each in value]
    if not isinstance(value, dict):
        return value
    if value.keys() == {_BYTES} and isinstance(value[_BYTES], str):
        return b64decode(value[_BYTES], validate=True)
    return {name: _from_json(each) for name, each in value.items()}
