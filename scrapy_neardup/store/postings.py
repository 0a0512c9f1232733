"""Compute the 64-bit keys by which the index finds a record. No I/O."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache

from ..fingerprints.hashes import MULTIPLIER, hash_text
from ..signature import SIMHASH, Link, Signature
from ..text.urls import canonical_url, host
from .interface import Postings, Record

_ALL, _MULTIPLIER = (1 << 64) - 1, int(MULTIPLIER)


@cache
def salt(name: str) -> int:
    """Return the salt of a kind of keys. All kinds share one table, and their salts keep them apart."""
    return hash_text(name)


def spread(key: int) -> int:
    """Return a 64-bit key with its bits well mixed."""
    return key * _MULTIPLIER & _ALL


def fingerprint_keys(name: str, values: Sequence[int]) -> list[int]:
    """Return the keys of the fingerprints of the detector `name`."""
    mixed = salt(name)
    return [(value ^ mixed) * _MULTIPLIER & _ALL for value in values]


def url_key(url: str) -> int:
    """Return the key that finds the rows of a URL. All spellings of a URL have the same key."""
    return spread(hash_text(canonical_url(url)) ^ salt("url"))


def page_key(url: str) -> int:
    """Return the key that finds the documents of a page with several items."""
    return spread(hash_text(canonical_url(url)) ^ salt("page"))


def host_key(name: str) -> int:
    """Return the key that finds the samples of a host."""
    return spread(hash_text(name) ^ salt("host"))


def links_key(id: str) -> int:
    """Return the key that finds all links to a document."""
    return spread(hash_text(id) ^ salt("links"))


def mirrors_key(id: str) -> int:
    """Return the key that finds those links to a document that are copies."""
    return spread(hash_text(id) ^ salt("mirrors"))


def document_keys(fingerprints: Mapping[str, Sequence[int]]) -> list[int]:
    """Return the keys of all fingerprints of a document except its SimHash.

    The keys of a detector with an index in RAM are included, although they are never looked up.
    """
    named = (fingerprint_keys(name, values) for name, values in fingerprints.items() if name != SIMHASH)
    return [key for keys in named for key in keys]


def page_keys(url: str | None, *, own: bool, label: bool, sample: bool) -> list[int]:
    """Return the keys of a document that its URL gives: of its own URL, its page and its host."""
    if not url:
        return []
    keys = [url_key(url)] if own else []
    if label:
        keys.append(page_key(url))
    if sample:
        keys.append(host_key(host(url)))
    return keys


def link_keys(url: str, target: str | None, *, is_copy: bool) -> list[int]:
    """Return the keys of a link from a URL to the document with the id `target`, if any."""
    keys = [url_key(url)] if url else []
    if target:
        hashed = hash_text(target)
        keys.append(spread(hashed ^ salt("links")))
        if is_copy:
            keys.append(spread(hashed ^ salt("mirrors")))
    return keys


def postings(record: Record) -> Postings:
    """Return the postings of a record. They are empty unless the record is a document or a link."""
    if isinstance(record, Signature):
        of_page = page_keys(record.url, own=bool(record.own), label=bool(record.label), sample=bool(record.sample))
        simhashes = record.fingerprints.get(SIMHASH, ())
        return Postings(document_keys(record.fingerprints) + of_page, simhashes[0] if simhashes else None)
    if isinstance(record, Link):
        return Postings(link_keys(record.url, record.target, is_copy=record.is_copy))
    return Postings()
