"""All that a store on a server holds, as rows (see `interchange`); memory for the hashes of a slice of documents."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice

import numpy as np

from ...index.packed import Array
from ..interchange import END, Head, Record, document_row, head_row, host_row, link_row, run_row, trial_row
from ..records import KEPT
from .damage import sound
from .documents import CHUNK, PER_BLOCK
from .packing import document_of, origin_of, unpack_link
from .store import RedisStore

SLICE = 1 << 20  # documents of which the hashes are looked for in one pass over their table


def exported(store: RedisStore) -> Iterator[Record]:
    """Yield the rows of a store that is only looked into. What is written meanwhile may be among them, or not."""
    links = sum(1 for _ in store.documents.packed_links())
    yield head_row(Head(store.schemes, store.own_fingerprints, len(store), links))
    yield from map(run_row, store.runs())
    yield from _documents(store)
    yield from _links(store)
    for number, row in store.learned.all():
        yield trial_row(store.documents.run_id(number) if number else "", row)
    for name, met in store.hosts.met():
        yield host_row(name, met)
    yield END


def _documents(store: RedisStore) -> Iterator[Record]:
    kept = store.own_fingerprints | set(KEPT)
    last = store.documents.next_number
    for start in range(0, last, SLICE):
        end = min(start + SLICE, last)
        hashes, ends = _hashes(store, start, end)
        for first in range(start, end, CHUNK):
            for number, signature in store.documents.fetch(range(first, min(first + CHUNK, end))).items():
                keys = hashes[ends[number - start] : ends[number - start + 1]]
                yield document_row(signature, kept, keys.tolist())


def _hashes(store: RedisStore, first: int, last: int) -> tuple[Array, Array]:
    """Return the hashes that find the documents of some numbers, by number, and where those of each begin."""
    found = [np.zeros(0, np.uint64)]
    for buckets, place, value in store.documents.buckets("k"):
        with sound(store.server.name):
            found.append(_chosen(*read(buckets, place, value), first, last))
    for hashed, numbers in store.documents.hot():
        found.append(_chosen(np.full(len(numbers), hashed, np.uint64), np.array(numbers, np.uint64), first, last))
    both = np.unique(np.concatenate(found))
    starts = np.searchsorted(both, np.arange(last - first + 1, dtype=np.uint64) << np.uint64(_BITS))
    return both & np.uint64((1 << _BITS) - 1), starts


_BITS = 36  # of a hash; above them, the number


def _chosen(hashes: Array, numbers: Array, first: int, last: int) -> Array:
    chosen = (numbers >= first) & (numbers < last)
    result: Array = (numbers[chosen] - np.uint64(first)) << np.uint64(_BITS) | hashes[chosen]
    return result


def read(buckets: int, place: int, value: bytes) -> tuple[Array, Array]:
    """Return the hashes and the numbers in a bucket; see `scripts/tables.lua` for what its entries are."""
    size = 1 << buckets.bit_length() - 1
    is_split = place < buckets - size or place >= size
    width = 3 if size << is_split < 1 << 20 else 2
    bits = 36 - 8 * width
    rows = np.frombuffer(value, np.uint8).reshape(-1, 6).astype(np.uint64)
    return _joined(rows[:, :width]) << np.uint64(bits) | np.uint64(place & (1 << bits) - 1), _joined(rows[:, width:])


def _joined(digits: Array) -> Array:
    result = np.zeros(len(digits), np.uint64)
    for column in digits.T:
        result = result << np.uint64(8) | column
    return result


def _links(store: RedisStore) -> Iterator[Record]:
    """Yield those that lead to documents by document, oldest first, then those that lead nowhere."""
    last = store.documents.next_number
    for block in range(-(-last // PER_BLOCK)):
        for some in store.documents.packed_links_of(block):
            yield from _rows(store, some)
    nowhere = (link for link in store.documents.packed_links() if document_of(link) is None)
    while some := list(islice(nowhere, CHUNK)):
        yield from _rows(store, some)


def _rows(store: RedisStore, links: Sequence[bytes]) -> Iterator[Record]:
    documents = store.documents.fetch(number for link in links if (number := document_of(link)) is not None)
    for packed in links:
        number, (run, segment) = document_of(packed), origin_of(packed)
        signature = None if number is None else documents.get(number)
        if number is None or signature:
            key = signature.key if signature else None
            yield link_row(unpack_link(packed, signature), key, (store.documents.run_id(run), segment))
