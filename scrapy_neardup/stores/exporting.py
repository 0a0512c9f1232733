"""All that a store on disk holds, as rows (see `interchange`), without having more of it in memory than a slice."""

from __future__ import annotations

from collections.abc import Iterator

from ..signature import Link, Signature
from .absorbing import hashed_keys
from .describing import count_urls
from .interchange import (
    END,
    Head,
    Record,
    document_row,
    head_row,
    host_row,
    link_row,
    run_row,
    trial_row,
)
from .part import Part
from .records import KEPT
from .sqlite import SqliteStore

SLICE = 1 << 18  # documents of which the keys are looked for in one pass over a part's table


def exported(store: SqliteStore) -> Iterator[Record]:
    """Yield the rows of a store that is only looked into: as it was when it was opened."""
    yield head_row(Head(store.schemes, store.own_fingerprints, len(store), count_urls(store)))
    yield from map(run_row, store.runs())
    yield from _documents(store)
    yield from _links(store)
    for relation_run, row in store.all_trials():
        yield trial_row(relation_run, row)
    for name, met in store.hosts.met():
        yield host_row(name, met)
    yield END


def _documents(store: SqliteStore) -> Iterator[Record]:
    own = store.own_fingerprints
    kept = own | set(KEPT)
    for part in store.parts.all:
        for first in range(0, len(part), SLICE):
            for signature, keys in _slice(store, part, first, min(first + SLICE, len(part))):
                store.parts.key(signature)
                yield document_row(signature, kept, keys)
    for signature in store.fresh.signatures():
        if signature.number is None:
            yield document_row(signature, kept, hashed_keys(signature, own))


def _slice(store: SqliteStore, part: Part, first: int, last: int) -> Iterator[tuple[Signature, list[int]]]:
    """Yield the documents at some places of a part, each with the hashes that find it."""
    hashes, ends = part.tables["keys"].leading_to(first, last)
    start = 0
    for place, end in enumerate(ends.tolist(), first):
        if signature := store.parts.numbered(part.first + place):
            yield signature, hashes[start:end].tolist()
        start = end


def _links(store: SqliteStore) -> Iterator[Record]:
    for part, place, link in store.parts.placed_links():
        if link.digest not in store.newest:
            yield _link_row(store, link, part.segment(part.columns["link_rows"]["segment"][place]))
    for segment, batch in store.batches.items():
        for link in batch.links:
            if store.newest.get(link.digest) is link and not link.void:
                yield _link_row(store, link, segment)


def _link_row(store: SqliteStore, link: Link, segment: tuple[str, int]) -> Record:
    return link_row(link, store.parts.key(link.signature) if link.signature else None, segment)
