"""Compute the 64-bit keys that find a record. No I/O."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache

from ..fingerprints.hashes import MULTIPLIER, hash_text
from ..signature import SIMHASH, Link, Signature
from ..text.urls import canonical_url
from .interface import Postings, Record

_ALL, _MULTIPLIER = (1 << 64) - 1, int(MULTIPLIER)


@cache
def salt(name: str) -> int:
    """Return the salt of a kind of keys. It separates the kinds, which share one table."""
    return hash_text(name)


def spread(key: int) -> int:
    """Return a key with all bits well mixed."""
    return key * _MULTIPLIER & _ALL


def fingerprint_keys(name: str, values: Sequence[int]) -> list[int]:
    """Return the keys of a detector's fingerprints."""
    mixed = salt(name)
    return [(value ^ mixed) * _MULTIPLIER & _ALL for value in values]


def url_key(url: str) -> int:
    """Return the key of the rows of a URL in any spelling."""
    return spread(hash_text(canonical_url(url)) ^ salt("url"))


def links_key(id: str) -> int:
    """Return the key of the links to a document."""
    return spread(hash_text(id) ^ salt("links"))


def mirrors_key(id: str) -> int:
    """Return the key of the links to a document that are copies."""
    return spread(hash_text(id) ^ salt("mirrors"))


def document_keys(fingerprints: Mapping[str, Sequence[int]]) -> list[int]:
    """Return the keys of all fingerprints except SimHashes.

    The keys of a detector with an index in RAM are included, although they are never looked up.
    """
    named = (fingerprint_keys(name, values) for name, values in fingerprints.items() if name != SIMHASH)
    return [key for keys in named for key in keys]


def postings(record: Record) -> Postings:
    """Return the postings of a record. Only documents and links have any."""
    if isinstance(record, Signature):
        keys = document_keys(record.fingerprints)
        if record.own and record.url:
            keys.append(url_key(record.url))
        simhashes = record.fingerprints.get(SIMHASH, ())
        return Postings(keys, simhashes[0] if simhashes else None)
    if isinstance(record, Link):
        keys = [url_key(record.url)] if record.url else []
        if record.target:
            keys.append(links_key(record.target))
            if record.is_copy:
                keys.append(mirrors_key(record.target))
        return Postings(keys)
    return Postings()
