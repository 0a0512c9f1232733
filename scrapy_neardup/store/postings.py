"""Compute the 64-bit keys by which the index finds a row. No I/O."""

from __future__ import annotations

from ..fingerprints.hashes import hash_text
from ..fingerprints.record import salt, spread
from ..signature import Signature, Visit
from ..text.urls import canonical_url, host
from .interface import Postings, Record
from .keys import run_of


def page_key(url: str) -> int:
    """Return the key that finds the documents of a page with several items."""
    return spread(hash_text(canonical_url(url)) ^ salt("page"))


def host_key(name: str) -> int:
    """Return the key that finds the samples of a host."""
    return spread(hash_text(name) ^ salt("host"))


def links_key(id: str) -> int:
    """Return the key that finds the visits of other URLs than its own that returned a document, and are no copies."""
    return spread(hash_text(id) ^ salt("links"))


def mirrors_key(id: str) -> int:
    """Return the key that finds the visits that are copies of a document."""
    return spread(hash_text(id) ^ salt("mirrors"))


def run_key(run: str) -> int:
    """Return the key that finds the visits that a run wrote."""
    return spread(hash_text(run) ^ salt("run"))


def page_keys(url: str | None, *, label: bool, sample: bool) -> list[int]:
    """Return the keys of a document that its URL gives: of its page and its host."""
    if not url:
        return []
    return [page_key(url)] * label + [host_key(host(url))] * sample


def visit_keys(visit: Visit) -> list[int]:
    """Return the keys of a visit as it is stored. That of a document's own URL, of one run with it, needs none."""
    run, own = run_of(visit.at), not (visit.url or visit.name)
    keys = [] if own and run_of(visit.target or "") == run else [run_key(run)]
    if visit.target and not own:
        keys.append(mirrors_key(visit.target) if visit.is_copy else links_key(visit.target))
    return keys


def postings(record: Record) -> Postings:
    """Return the postings of a record. They are empty unless the record is a document or a visit."""
    if isinstance(record, Signature):
        # Also those of a detector with an index in RAM, although they are never looked up.
        keys = [key for keys in record.keys.values() for key in keys]
        return Postings(keys + page_keys(record.url, label=bool(record.label), sample=record.sample), record.simhash)
    if isinstance(record, Visit):
        return Postings(visit_keys(record))
    return Postings()
