"""Check rows that come from an untrusted source: their keys, and the types and ranges of their fields. No I/O.

The annotation of a field states the allowed type. Lookups skip these checks when they read documents and visits.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from itertools import chain
from operator import index
from types import UnionType
from typing import Any, Union, get_args, get_origin, get_type_hints

from ..facts import SIZE
from ..signature import Signature, Visit
from . import records
from .records import Run, id_of, is_place, kind_of

_IDS = {"document": is_place, "host": is_place, "visit": records.is_hash, "run": records.is_id}
_FAR = 253_370_764_800.0  # the beginning of the year 9999; some time zones can't show later dates
_ROWS = 1 << 36  # the maximum number of rows of a run
_ALLOWED = f"(int: from 0 to 2**64 - 1; float: from 0 to {_FAR:.0f}, the year 9999)"


def is_key(key: str) -> bool:
    """Return whether a store may have a row with this key."""
    is_valid = _IDS.get(kind_of(key))
    return is_valid(id_of(key)) if is_valid else key in (records.MADE, records.COUNTS)


def check(key: str, record: Any) -> None:
    """Raise ValueError if a field of a record has an invalid value. The message names the first such field."""
    kind: Any = type(record)
    for id in (record.at, record.target) if isinstance(record, Visit) else ():
        if not (id is None or is_place(str(id))):
            raise ValueError(f"it names the row {id!r:.80}; allowed is RUN/NUMBER")
    if isinstance(record, Run):
        record = replace(record, documents=abs(record.documents), urls=abs(record.urls))
        if max(record.sealed, record.documents, record.urls, *chain(*record.forgotten)) >= _ROWS:
            raise ValueError(f"it has too many rows for a run; allowed are fewer than {_ROWS}")
    for name, hint in _hints(kind).items():
        if not _fits(value := getattr(record, name), hint):
            raise ValueError(f"its {name} is {value!r:.80}; allowed is {kind.__annotations__[name]} {_ALLOWED}")
    if isinstance(record, Signature) and len(record.facts) % SIZE:
        raise ValueError(f"its facts have {len(record.facts)} bytes; allowed is a multiple of {SIZE}")
    if isinstance(record, Visit) and not records.is_at(key, record):
        raise ValueError("its key is not the hash of its URL or name")
    if key == records.MADE:
        records.merged(record, {})
    elif key == records.COUNTS:
        _ = sum(map(index, record.values()))


@cache
def _hints(kind: type) -> dict[str, Any]:
    return get_type_hints(kind)


def _fits(value: Any, hint: Any) -> bool:
    kind, parts = get_origin(hint), get_args(hint)
    if hint is int:
        return type(value) is int and 0 <= value < 1 << 64
    if hint is float:
        return type(value) in (int, float) and 0 <= value < _FAR
    if kind in (UnionType, Union):
        return any(_fits(value, part) for part in parts)
    if kind in (dict, Mapping):
        return isinstance(value, Mapping) and all(_fits(n, str) and _fits(each, parts[1]) for n, each in value.items())
    if kind is list or ... in parts:
        return isinstance(value, kind) and all(_fits(each, parts[0]) for each in value)
    if kind is tuple:
        return isinstance(value, tuple) and len(value) == len(parts) and all(map(_fits, value, parts))
    return isinstance(value, kind or hint) and all(_fits(getattr(value, n), each) for n, each in _hints(hint).items())
