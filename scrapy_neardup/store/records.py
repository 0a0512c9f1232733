"""Encode and decode records as bytes, in the same format for every back end. No I/O.

A value is a CRC-32 (4 bytes, big-endian) of the key and the body, followed by the body in MessagePack. MessagePack
holds data only, so a file from a stranger can't run code. The body is a list of the fields in `FIELDS`, or a map for
the kind `meta`:

- document: `record` are the bytes that `fingerprints/record.py` describes; `sample` is true for a sample of its host;
- visit: `target` is the id of its document, `RUN/NUMBER`, or nil for a URL to be fetched each time. With neither `url`
  nor `name`, the URL is the document's own; if `seen` is 0, it was seen when the document was. `evidence` is
  `[detector, hamming, resemblance, containment, length_ratio, kind]` or nil; `at` is `RUN/NUMBER`, or "" for that of
  the document; `before` is nil, or the fields of the state before the run. Fields at the end that have their default
  are left out;
- host: `trials` are `relations.Row`; `met` maps each new host to the time of its first page; `counters` are
  `[host, hashed name of a fact, whether it is a counter]`.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable
from typing import Any

import msgpack

from ..fingerprints.record import check as check_record
from ..hosts.relations import Outcome
from ..hosts.relations import Row as Trial
from ..signature import Evidence, Signature, Visit
from .damage import DAMAGE
from .interface import DOCUMENT, HOST, META, RUN, VISIT, HostNews, Record
from .keys import id_of, kind_of
from .runs import Run

FIELDS = {
    RUN: ("started", "closed", "sealed", "paused", "forgotten", "documents", "urls", "stats", "writer"),
    DOCUMENT: ("url", "title", "first_seen", "record", "label", "sample"),
    VISIT: ("target", "size", "seen", "url", "is_copy", "firm", "evidence", "at", "before", "name"),
    HOST: ("trials", "met", "counters"),
}
_DEFAULTS: tuple[Any, ...] = (None, 0, 0, "", False, True, None, "", None, "")  # of a visit
_ERRORS = "surrogatepass"  # URLs and titles may contain lone surrogates


def dump(key: str, record: Record) -> bytes:
    """Encode a record as the value of the row with this key."""
    fields = _visit_body(record) if isinstance(record, Visit) else body_of(key, record)
    body: bytes = msgpack.packb(fields, unicode_errors=_ERRORS)
    return _checksum(key, body) + body


def _checksum(key: str, body: bytes | memoryview) -> bytes:
    return zlib.crc32(body, zlib.crc32(key.encode(errors=_ERRORS))).to_bytes(4, "big")


def is_intact(key: str, value: object) -> bool:
    """Return whether the value of a row has the right checksum."""
    return isinstance(value, bytes) and value[:4] == _checksum(key, value[4:])


def load(key: str, value: bytes) -> Any:
    """Decode the value of the row with this key. Return the record.

    A visit is returned as it is stored: without its document, and without a URL that is the document's own. Raise
    ValueError for a damaged row.
    """
    body = memoryview(value)[4:]
    if value[:4] != _checksum(key, body):
        raise ValueError(f"row {key!r} is damaged: its checksum does not match")
    try:
        return _READERS[kind_of(key)](key, msgpack.unpackb(body, unicode_errors=_ERRORS, strict_map_key=False))
    except DAMAGE as error:  # the checksum matches, so the writer was faulty or hostile
        raise ValueError(f"row {key!r} is damaged: {' '.join(str(error).split())}") from error


def read(key: str, body: list[Any]) -> Record:
    """Return the record of a row, given the fields of its body."""
    return _READERS[kind_of(key)](key, body)


def body_of(key: str, record: Record) -> Any:
    """Return the body of a record, made of values that MessagePack can encode."""
    kind = kind_of(key)
    if kind == META:
        return record
    if isinstance(record, Visit):
        return [*(body := _visit_body(record)), *_DEFAULTS[len(body) :]]
    return [getattr(record, name) for name in FIELDS[kind]]


def _visit_body(visit: Visit) -> list[Any]:
    body = [
        visit.target, visit.size, visit.seen, visit.url, visit.is_copy, visit.firm, visit.evidence,
        "" if visit.at == visit.target else visit.at, visit.before and _visit_body(visit.before), visit.name,
    ]  # fmt: skip
    while body and body[-1] == _DEFAULTS[len(body) - 1]:
        body.pop()
    return body


def _document(key: str, body: Any) -> Signature:
    url, title, first_seen, packed, label, sample = body
    check_record(packed)
    return Signature(url, packed, first_seen, title, label, key[9:], sample=sample)


def _visit(key: str, body: Any) -> Visit:
    fields: list[Any] = [*body, *_DEFAULTS[len(body) :]]
    target, size, seen, url, is_copy, firm, evidence, at, before, name = fields
    found, earlier = Evidence(*evidence) if evidence else None, _visit(key, before) if before else None
    return Visit(url, None, is_copy, seen, size, found, firm, name, target, at or target or "", earlier)


def _host(key: str, body: Any) -> HostNews:
    trials, met, counters = body
    return HostNews([_trial(*trial) for trial in trials], dict(met), [(host, fact, so) for host, fact, so in counters])


def _trial(sites: Any, prefixes: Any, endings: Any, path: Any, outcome: Any, *rest: Any) -> Trial:
    return Trial(tuple(sites), tuple(prefixes), tuple(endings), path, int(Outcome(outcome)), *rest)


def _run(key: str, body: Any) -> Run:
    started, closed, sealed, paused, forgotten, *counts = body
    return Run(id_of(key), started, closed, sealed, paused, tuple((first, last) for first, last in forgotten), *counts)


_READERS: dict[str, Callable[[str, Any], Record]] = {
    DOCUMENT: _document,
    VISIT: _visit,
    HOST: _host,
    RUN: _run,
    META: lambda key, body: dict(body),
}
