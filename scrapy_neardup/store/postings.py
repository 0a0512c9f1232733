"""Compute the 64-bit keys by which the index finds a row. No I/O."""

from __future__ import annotations

from ..fingerprints.hashes import hash_text
from ..fingerprints.record import salt, spread
from ..signature import Link, Signature
from ..text.urls import canonical_url, host
from .interface import Postings, Record


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


def postings(record: Record) -> Postings:
    """Return the postings of a record. They are empty unless the record is a document or a link."""
    if isinstance(record, Signature):
        # Also those of a detector with an index in RAM, although they are never looked up.
        keys = [key for keys in record.keys.values() for key in keys]
        if record.own and record.url:
            keys.append(url_key(record.url))
        if record.label and record.url:
            keys.append(page_key(record.url))
        if record.sample and record.url:
            keys.append(host_key(host(record.url)))
        return Postings(keys, record.simhash)
    if isinstance(record, Link):
        keys = [url_key(record.url)] if record.url else []
        if record.target:
            keys.append(links_key(record.target))
            if record.is_copy:
                keys.append(mirrors_key(record.target))
        return Postings(keys)
    return Postings()
