"""Check the types and ranges of the fields of records that come from an untrusted source. No I/O.

The annotation of a field states the allowed type. Lookups skip these checks when they read documents and visits.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from itertools import chain
from types import NoneType, UnionType
from typing import TYPE_CHECKING, Any, Union, get_args, get_origin, get_type_hints

from ..facts import SIZE
from ..signature import Signature
from .records import Run

if TYPE_CHECKING:
    from .records import Record

_PLAIN = (str, bytes, bool, NoneType)
_FAR = 253_370_764_800.0  # the beginning of the year 9999; some time zones can't show later dates
_ROWS = 1 << 36  # the maximum number of rows of a run
_ALLOWED = f"(int: from 0 to 2**64 - 1; float: from 0 to {_FAR:.0f}, the year 9999)"


def check(record: Record) -> None:
    """Raise ValueError if a field of a record has an invalid value. The message names the first such field."""
    if isinstance(record, Run):
        record = replace(record, documents=abs(record.documents), urls=abs(record.urls))
        if max(record.sealed, record.documents, record.urls, *chain(*record.forgotten)) >= _ROWS:
            raise ValueError(f"it has too many rows for a run; allowed are fewer than {_ROWS}")
    kind: Any = type(record)
    for name, hint in _hints(kind).items():
        if not _fits(value := getattr(record, name), hint):
            raise ValueError(f"its {name} is {value!r:.80}; allowed is {kind.__annotations__[name]} {_ALLOWED}")
    if isinstance(record, Signature) and len(record.facts) % SIZE:
        raise ValueError(f"its facts have {len(record.facts)} bytes; allowed is a multiple of {SIZE}")


@cache
def _hints(kind: type) -> dict[str, Any]:
    return get_type_hints(kind)


def _fits(value: Any, hint: Any) -> bool:
    if hint is int:
        return type(value) is int and 0 <= value < 1 << 64
    if hint is float:
        return type(value) in (int, float) and 0 <= value < _FAR
    if hint in _PLAIN:
        return type(value) is hint
    kind, parts = get_origin(hint), get_args(hint)
    if kind in (UnionType, Union):
        return any(_fits(value, part) for part in parts)
    if kind is list or (kind is tuple and ... in parts):
        return isinstance(value, kind) and all(_fits(each, parts[0]) for each in value)
    if kind is tuple:
        return isinstance(value, tuple) and len(value) == len(parts) and all(map(_fits, value, parts))
    if kind in (dict, Mapping):
        return isinstance(value, Mapping) and all(_fits(n, str) and _fits(each, parts[1]) for n, each in value.items())
    return (
        isinstance(hint, type)
        and isinstance(value, hint)
        and all(_fits(getattr(value, name), each) for name, each in _hints(hint).items())
    )
