"""Records as bytes: one encoding for every back end. No I/O.

A value is a CRC-32 (4 bytes, big-endian) of the key and the body, then the body in MessagePack: data only, so a file
from a stranger runs nothing. The body, by kind:

- document: `[url, title, first_seen, {detector: fingerprints}, sketch, layout, identity, own]`; fingerprints are 64-bit
  integers one after another, little-endian; `sketch` is `[tokens, shingles, figures, codes, figure_sample]`; `own` is
  `[seen, size]` where the document's own URL gave it and no link says more, else nil;
- link: `[url, document, mirror, seen, size, firm, evidence]`; `document` is `RUN/NUMBER`, or nil for a URL that is to
  be fetched each time; `evidence` is `[detector, hamming, resemblance, containment, length_ratio, kind]` or nil;
- host: `[[trial, …], {host: since}]`; run and meta: a map.
"""

from __future__ import annotations

import zlib
from array import array
from collections.abc import Callable, Iterator, Mapping
from sys import byteorder
from typing import Any

import msgpack

from ..fingerprints.sketch import Sketch
from ..index.relations import Row as Trial
from ..signature import Evidence, Link, Signature, Visit
from .base import DOCUMENT, HOST, LINK, META, RUN, HostNews, Record
from .damage import DAMAGE
from .runs import Run

_ERRORS = "surrogatepass"  # a URL or title may hold what is no character


def key_of(kind: str, run: str, number: int) -> str:
    """Return the key of a row that a run writes. Keys of a run ascend, since a table grows fastest at its end."""
    return f"{kind}/{run}/{number:06x}"


def kind_of(key: str) -> str:
    return key.partition("/")[0]


def id_of(key: str) -> str:
    """Return what links call a document, `RUN/NUMBER`, given the key of its row."""
    return key.partition("/")[2]


def place_of(id: str) -> tuple[str, int]:
    """Return the run and the number that an id says. Raise ValueError for one that is none."""
    run, _, number = id.rpartition("/")
    return run, int(number, 16)


class Prints(Mapping[str, tuple[int, ...]]):
    """Fingerprints by detector, unpacked where they are asked for: of most documents found, none is."""

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
    """Return the value of a row."""
    body: bytes = msgpack.packb(_body(record), unicode_errors=_ERRORS)
    return _checksum(key, body) + body


def _checksum(key: str, body: bytes | memoryview) -> bytes:
    return zlib.crc32(body, zlib.crc32(key.encode(errors=_ERRORS))).to_bytes(4, "big")


def is_intact(key: str, value: object) -> bool:
    """Return whether the checksum of a row matches."""
    return isinstance(value, bytes) and value[:4] == _checksum(key, value[4:])


def load(key: str, value: bytes) -> Any:
    """Return the record of a row. The document of a link is its id as `target`. Raise ValueError for damage."""
    body = memoryview(value)[4:]
    if value[:4] != _checksum(key, body):
        raise ValueError(f"row {key!r} is damaged: its checksum does not match")
    try:
        return _READERS[kind_of(key)](key, msgpack.unpackb(body, unicode_errors=_ERRORS, strict_map_key=False))
    except DAMAGE as error:  # who made it meant to
        raise ValueError(f"row {key!r} is damaged: {' '.join(str(error).split())}") from error


def pack(values: tuple[int, ...]) -> bytes:
    """Return 64-bit integers as bytes, little-endian."""
    return _native(array("Q", values)).tobytes()


def unpack(packed: bytes) -> tuple[int, ...]:
    """Return the integers that `pack` was given."""
    return tuple(_native(array("Q", packed)))


def _native(values: array[int]) -> array[int]:
    if byteorder == "big":
        values.byteswap()
    return values


def _body(record: Record) -> Any:
    if isinstance(record, Signature):
        prints = {name: pack(values) for name, values in record.fingerprints.items() if values}
        told = record.url, record.title, record.first_seen, prints, record.sketch, record.layout, record.identity
        return [*told, record.own]
    if isinstance(record, Link):
        evidence = record.evidence
        return [record.url, record.target, record.mirror, record.seen, record.size, record.firm, evidence]
    if isinstance(record, HostNews):
        return [record.trials, record.met]
    return record.dump() if isinstance(record, Run) else dict(record)


def _document(key: str, body: Any) -> Signature:
    url, title, first_seen, prints, sketch, layout, identity, own = body
    visit = Visit(*own) if own else None
    for packed in prints.values():
        if type(packed) is not bytes or len(packed) & 7:
            raise ValueError("its fingerprints are none")
    return Signature(url, Prints(prints), Sketch(*sketch), first_seen, layout, title, identity, key[9:], visit)


def _link(key: str, body: Any) -> Link:
    url, target, mirror, seen, size, firm, evidence = body
    return Link(url, None, mirror, seen, size, Evidence(*evidence) if evidence else None, firm, target, key)


def _host(key: str, body: Any) -> HostNews:
    trials, met = body
    return HostNews([_trial(*trial) for trial in trials], dict(met))


def _trial(sites: Any, prefixes: Any, endings: Any, *rest: Any) -> Trial:
    return Trial(tuple(sites), tuple(prefixes), tuple(endings), *rest)


def _run(key: str, body: Any) -> Run:
    run = Run.parsed(body)
    if run.id != id_of(key):
        raise ValueError(f"it is that of run {run.id!r}")
    return run


_READERS: dict[str, Callable[[str, Any], Record]] = {
    DOCUMENT: _document,
    LINK: _link,
    HOST: _host,
    RUN: _run,
    META: lambda key, body: dict(body),
}
