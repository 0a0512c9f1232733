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
        # Also those of a detector with an index in RAM, although they are never looked up.
        keys = [key for keys in record.keys.values() for key in keys]
        of_page = page_keys(record.url, own=bool(record.own), label=bool(record.label), sample=bool(record.sample))
        return Postings(keys + of_page, record.simhash)
    if isinstance(record, Link):
        return Postings(link_keys(record.url, record.target, is_copy=record.is_copy))
    return Postings()
