"""Encode and decode records as bytes, in the same format for every back end. No I/O.

A value is a CRC-32 (4 bytes, big-endian) of the key and the body, followed by the body in MessagePack. MessagePack
holds data only, so a file from a stranger can't run code. The body is a list of the fields in `FIELDS`, or a map for
the kind `meta`:

- document: `fingerprints` are packed as 64-bit little-endian integers; `sketch` is `[tokens, shingles, figures, codes,
  figure_sample]`; `facts` are packed as in facts.py; `own` is `[seen, size, before]` of the visit of its own URL, or
  nil if a link is newer; `sample` is true for a sample of its host;
- link: `target` is the id of its document, `RUN/NUMBER`, or nil for a URL to be fetched each time; `evidence` is
  `[detector, hamming, resemblance, containment, length_ratio, kind]` or nil;
- host: `trials` are `relations.Row`; `met` maps each new host to the time of its first page; `counters` are
  `[host, hashed name of a fact, whether it is a counter]`.
"""

from __future__ import annotations

import zlib
from array import array
from collections.abc import Callable, Iterator, Mapping
from sys import byteorder
from typing import Any

import msgpack

from ..fingerprints.sketch import Sketch
from ..hosts.relations import Outcome
from ..hosts.relations import Row as Trial
from ..signature import Evidence, Link, Signature, Visit
from .damage import DAMAGE
from .interface import DOCUMENT, HOST, LINK, META, RUN, HostNews, Record
from .keys import id_of, kind_of
from .runs import Run

FIELDS = {
    RUN: ("started", "closed", "sealed", "paused", "forgotten", "documents", "urls", "stats", "writer"),
    DOCUMENT: ("url", "title", "first_seen", "fingerprints", "sketch", "layout", "facts", "label", "own", "sample"),
    LINK: ("url", "target", "is_copy", "seen", "size", "firm", "evidence", "before"),
    HOST: ("trials", "met", "counters"),
}
_ERRORS = "surrogatepass"  # URLs and titles may contain lone surrogates


class Prints(Mapping[str, tuple[int, ...]]):
    """Fingerprints by detector. They are unpacked on access, since those of most found documents are never used."""

    __slots__ = ("_packed",)

    def __init__(self, packed: dict[str, bytes]) -> None:
        self._packed = packed

    def __getitem__(self, name: str) -> tuple[int, ...]:
        return unpack(self._packed[name])

    def __iter__(self) -> Iterator[str]:
        return iter(self._packed)

    def __len__(self) -> int:
        return len(self._packed)


def dump(key: str, record: Record) -> bytes:
    """Encode a record as the value of the row with this key."""
    body: bytes = msgpack.packb(body_of(key, record), unicode_errors=_ERRORS)
    return _checksum(key, body) + body


def _checksum(key: str, body: bytes | memoryview) -> bytes:
    return zlib.crc32(body, zlib.crc32(key.encode(errors=_ERRORS))).to_bytes(4, "big")


def is_intact(key: str, value: object) -> bool:
    """Return whether the value of a row has the right checksum."""
    return isinstance(value, bytes) and value[:4] == _checksum(key, value[4:])


def load(key: str, value: bytes) -> Any:
    """Decode the value of the row with this key. Return the record.

    A link is returned with the id of its document, but without the document. Raise ValueError for a damaged row.
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


def pack(values: tuple[int, ...]) -> bytes:
    """Return 64-bit integers as little-endian bytes."""
    return _native(array("Q", values)).tobytes()


def unpack(packed: bytes) -> tuple[int, ...]:
    """Return the integers in bytes that `pack` returned."""
    return tuple(_native(array("Q", packed)))


def _native(values: array[int]) -> array[int]:
    if byteorder == "big":
        values.byteswap()
    return values


def body_of(key: str, record: Record) -> Any:
    """Return the body of a record, made of values that MessagePack can encode."""
    kind = kind_of(key)
    if kind == META:
        return record
    body = [getattr(record, name) for name in FIELDS[kind]]
    if kind == DOCUMENT:
        body[3] = {name: pack(values) for name, values in body[3].items() if values}
    return body


def _document(key: str, body: Any) -> Signature:
    url, title, first_seen, prints, sketch, layout, facts, label, own, sample = body
    visit = Visit(*own) if own and url else None
    for packed in prints.values():
        if type(packed) is not bytes or len(packed) & 7:
            raise ValueError("its fingerprints are invalid")
    return Signature(
        url, Prints(prints), Sketch(*sketch), first_seen, layout, title, facts, label, key[9:], visit, sample=sample
    )


def _link(key: str, body: Any) -> Link:
    url, target, is_copy, seen, size, firm, evidence, before = body
    found = Evidence(*evidence) if evidence else None
    return Link(url, None, is_copy, seen, size, found, firm, target, key, before)


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
    LINK: _link,
    HOST: _host,
    RUN: _run,
    META: lambda key, body: dict(body),
}
