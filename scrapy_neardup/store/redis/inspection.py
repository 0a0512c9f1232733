"""Verify the rows of all namespaces of a server, and their index. Read-only."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import islice

from ...progress import watched
from .. import records
from ..interface import Entry, StoreError
from ..records import DAMAGE, DOCUMENT, HOST, META, RUN, VISIT, Record, postings
from ..verification import Survey, Verification
from .backend import RedisBackend, located
from .connection import namespaces

AT_ONCE = 200  # rows to verify at a time
_KINDS = (META, RUN, VISIT, DOCUMENT, HOST)  # visits before documents, since a document is written before them
_TYPES = {**dict.fromkeys(("names", "last", "run", "meta", "host"), "hash"), "news": "stream"}


def inspect(address: str, survey: Survey) -> None:
    """Verify all namespaces of a server. Raise StoreError if it can't be reached."""
    names = namespaces(address)
    survey.read["namespaces"] = len(names)
    for name in names:
        backend = RedisBackend(address, name, writes=False)
        try:
            _inspect_namespace(backend, Verification(survey, name))
        finally:
            backend.abandon()


def _inspect_namespace(backend: RedisBackend, rows: Verification) -> None:
    types = backend.run(*(["call", "TYPE", backend.key(name)] for name in _TYPES))
    for (name, wanted), found in zip(_TYPES.items(), types, strict=True):
        if found.decode() not in (wanted, "none"):
            what = f"key {backend.key(name)!r} is a {found.decode()}, not a {wanted}"
            rows.note(what, "the store is refused, or can't be written")
    is_quiet = _is_quiet(backend)
    for kind in _KINDS:
        try:
            _inspect_kind(backend, kind, rows)
        except (StoreError, *DAMAGE) as error:
            backend.run(["call", "PING"])  # raises if the server is down
            rows.lose(error, f"{kind}/…")
    if is_quiet and _is_quiet(backend):
        rows.check()


def _is_quiet(backend: RedisBackend) -> bool:
    """Return whether no living process has a run open."""
    try:
        return not any(map(backend.is_held, backend.names()))
    except (StoreError, *DAMAGE):
        return False


def _inspect_kind(backend: RedisBackend, kind: str, rows: Verification) -> None:
    scanned = iter(watched(backend.scan(kind), "rows"))
    while some := list(islice(scanned, AT_ONCE)):
        taken = {row.key: record for row in some if (record := rows.take(row.key, row.value))}
        if kind in (DOCUMENT, VISIT) and (lost := _unfound(backend, taken)):
            # Read again, since another process may have rewritten or deleted them.
            found = [(row.key, row.value) for row in backend.get(lost) if isinstance(row.value, bytes)]
            for key in _unfound(backend, {key: records.load(key, value) for key, value in found}):
                costs = "copies of their pages are stored again, or their URLs are fetched again"
                rows.note("rows are missing in their index", costs, count=1, example=repr(key))


def _unfound(backend: RedisBackend, rows: Mapping[str, Record]) -> list[str]:
    """Return the keys of rows that are missing in at least one of their lists in the index."""
    entries = [Entry(key, record, postings(record)) for key, record in rows.items()]
    told = backend.run(*(["lacks", *located(entry)] for entry in entries), checks=False)
    return [entry.key for entry, is_lacking in zip(entries, told, strict=True) if is_lacking]
