"""Segments: the bytes in which a batch of signatures and links lies on disk. No I/O.

A segment is the CRC-32 of its body (4 bytes, big-endian), then the body in MessagePack: data only, so opening a
file from a stranger runs nothing. The body is `[detectors, documents, links]`:
- a document is `[url, first_seen, [fingerprints of each detector], sketch, layout]`; format 1 had no layout,
- a link is `[url, document, mirror, seen, size, evidence, firm]`; its document is a place in this segment, `[run,
  segment, place]`, or nil, its evidence `[detector, hamming, resemblance, containment, length_ratio, kind]` or nil;
  before format 3 without kind.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Sequence
from typing import Any

import msgpack

from ..fingerprints.sketch import Sketch
from ..signature import Evidence, Key, Link, Signature

_ERRORS = "surrogatepass"  # a URL may hold what is no character


def encode(run: str, number: int, signatures: Sequence[Signature], links: Sequence[Link]) -> bytes:
    """Return the segment of a batch; its signatures get their keys."""
    for place, signature in enumerate(signatures):
        signature.key = (run, number, place)
    names = list(dict.fromkeys(name for s in signatures for name in s.fingerprints))
    documents = [
        [s.url, s.first_seen, [s.fingerprints.get(n, ()) for n in names], s.sketch, s.layout] for s in signatures
    ]
    body: bytes = msgpack.packb(
        [names, documents, [_packed(link, run, number) for link in links]], unicode_errors=_ERRORS
    )
    return zlib.crc32(body).to_bytes(4, "big") + body


def _packed(link: Link, run: str, number: int) -> list[Any]:
    key = link.signature.key if link.signature else None
    here = key is not None and key[:2] == (run, number)
    return [link.url, key[2] if key and here else key, link.mirror, link.seen, link.size, link.evidence, link.firm]


def decode(
    run: str, number: int, segment: bytes, find: Callable[[Key], Signature | None]
) -> tuple[list[Signature], list[Link]]:
    """Return the batch of a segment; `find` gives the documents of other segments, or None for those forgotten.

    A link whose document is forgotten is left out. Raise ValueError where the bytes are damaged.
    """
    body = segment[4:]
    if zlib.crc32(body) != int.from_bytes(segment[:4], "big"):
        raise ValueError(f"segment {number} of run {run} is damaged: its checksum does not match")
    names, documents, links = msgpack.unpackb(body, use_list=False, unicode_errors=_ERRORS)
    signatures = [_signature(names, d, (run, number, place)) for place, d in enumerate(documents)]

    def target(reference: int | Key | None) -> Signature | None:
        return signatures[reference] if isinstance(reference, int) else find(reference) if reference else None

    read = [
        Link(url, target(reference), mirror, seen, size, Evidence(*evidence) if evidence else None, firm)
        for url, reference, mirror, seen, size, evidence, firm in links
    ]
    return signatures, [link for link, row in zip(read, links, strict=True) if link.signature or row[1] is None]


def _signature(names: Sequence[str], row: Sequence[Any], key: Key) -> Signature:
    url, first_seen, fingerprints, sketch, *layout = row
    return Signature(url, dict(zip(names, fingerprints, strict=True)), Sketch(*sketch), first_seen, sum(layout), key)
