"""Segments: the bytes in which a batch of signatures, links and trials lies on disk. No I/O.

A segment is a CRC-32 (4 bytes, big-endian), then the body in MessagePack: data only, so opening a file from a stranger
runs nothing. The CRC-32 is that of the body followed by `RUN/NUMBER`, by which other segments name documents of this;
at first it was of the body alone, which is read still. The body is `[detectors, documents, links, trials, forgotten]`:
- a document is `[url, first_seen, [fingerprints of each detector], sketch, layout, title, identity]`,
- a link is `[url, document, mirror, seen, size, evidence, firm]`; its document is a place in this segment, `[run,
  segment, place]`, nil, or -1 (format 4) where the URL is forgotten; its evidence `[detector, hamming, resemblance,
  containment, length_ratio, kind]` or nil; before format 3 without kind,
- trials, from format 3 on, are evidence on host mirrors by pair of hosts: `[sites, prefixes, endings, [[path, outcome,
  content, branch, holder, seen, claimed], …]]`,
- forgotten, from format 4 on, are documents of earlier segments, as `[run, segment, place]`.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any

import msgpack

from ..fingerprints.sketch import Sketch
from ..index.relations import Row
from ..signature import Evidence, Key, Link, Signature
from .damage import DAMAGE

_ERRORS = "surrogatepass"  # a URL may hold what is no character
_VOID = -1  # in place of a document: nothing is known of the URL any more
_PAIR = 3  # fields of a Row that say of which hosts it is


@dataclass
class Batch:
    """What is written together."""

    signatures: list[Signature] = field(default_factory=list)
    links: list[Link] = field(default_factory=list)
    trials: list[Row] = field(default_factory=list)
    forgotten: list[Key] = field(default_factory=list)
    """Documents of earlier segments."""

    def __len__(self) -> int:
        return len(self.signatures) + len(self.links) + len(self.trials) + len(self.forgotten)


def encode(run: str, number: int, batch: Batch, key: Callable[[Signature], Key | None]) -> bytes:
    """Return the segment of a batch; its signatures get their keys. `key` gives those of other segments."""
    for place, signature in enumerate(batch.signatures):
        signature.key = (run, number, place)
    names = list(dict.fromkeys(name for s in batch.signatures for name in s.fingerprints))
    documents = [
        [s.url, s.first_seen, [s.fingerprints.get(n, ()) for n in names], s.sketch, s.layout, s.title, s.identity]
        for s in batch.signatures
    ]
    links = [_packed(link, run, number, key) for link in batch.links]
    rows = [names, documents, links, _grouped(batch.trials), batch.forgotten]
    body: bytes = msgpack.packb(rows, unicode_errors=_ERRORS)
    return _checksum(run, number, body) + body


def _checksum(run: str, number: int, body: bytes) -> bytes:
    return zlib.crc32(f"{run}/{number}".encode(errors=_ERRORS), zlib.crc32(body)).to_bytes(4, "big")


def _packed(link: Link, run: str, number: int, key_of: Callable[[Signature], Key | None]) -> list[Any]:
    key = key_of(link.signature) if link.signature else None
    here = key is not None and key[:2] == (run, number)
    given_up = link.signature is not None and key is None
    target = _VOID if link.void or given_up else key[2] if key and here else key
    return [link.url, target, link.mirror, link.seen, link.size, link.evidence, link.firm]


def _grouped(trials: Iterable[Row]) -> list[Any]:
    ordered = sorted(trials, key=lambda row: row[:_PAIR])
    return [[*pair, [row[_PAIR:] for row in rows]] for pair, rows in groupby(ordered, key=lambda row: row[:_PAIR])]


def decode(run: str, number: int, segment: bytes, find: Callable[[Key], Signature | None]) -> Batch:
    """Return the batch of a segment; `find` gives the documents of other segments, or None for those forgotten.

    A link whose document is forgotten is left out. Raise ValueError where the bytes are damaged.
    """
    body = segment[4:]
    if segment[:4] not in (_checksum(run, number, body), zlib.crc32(body).to_bytes(4, "big")):
        raise ValueError(f"segment {number} of run {run} is damaged: its checksum does not match")
    try:
        return _read(run, number, msgpack.unpackb(body, use_list=False, unicode_errors=_ERRORS), find)
    except DAMAGE as error:  # who made it meant to
        raise ValueError(f"segment {number} of run {run} is damaged: {error}") from error


def _read(run: str, number: int, rows: Sequence[Any], find: Callable[[Key], Signature | None]) -> Batch:
    names, documents, links, *rest = rows
    trials, forgotten = (*rest, (), ())[:2]
    signatures = [_signature(names, d, (run, number, place)) for place, d in enumerate(documents)]

    def target(reference: int | Key | None) -> Signature | None:
        if reference == _VOID or reference is None:
            return None
        return signatures[reference] if isinstance(reference, int) else find(reference)

    read = []
    for url, reference, mirror, seen, size, evidence, firm in links:
        found = target(reference)
        # Of a URL whose document is forgotten nothing is known any more: what an older link says must not come back.
        void = reference is not None and found is None
        proof = Evidence(*evidence) if evidence else None
        read.append(Link(url, found, mirror and not void, seen, size, proof, firm, void=void))
    return Batch(signatures, read, list(_trials(trials)), list(forgotten))


def _signature(names: Sequence[str], row: Sequence[Any], key: Key) -> Signature:
    url, first_seen, values, sketch, layout, title, identity = row
    fingerprints = dict(zip(names, values, strict=True))
    return Signature(url, fingerprints, Sketch(*sketch), first_seen, layout, key, title=title, identity=identity)


def _trials(groups: Iterable[Any]) -> Iterator[Row]:
    for *pair, rows in groups:
        yield from (Row(*pair, *row) for row in rows)
