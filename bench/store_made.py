"""Make up documents for bench/store.py and bench/server.py, and write them to a store.

Fingerprints and sketches are random, but depend only on a document's label, a number. Documents repeat one another in
clusters, whose sizes follow Zipf's law, and come in random order. One cluster has 150,000 documents, at most 15 % of
all. Every 60th held document is of one form: these do not repeat one another, but they share three super-shingles, and
their SimHashes are near.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from scrapy_neardup.fingerprints.hashes import MULTIPLIER, mix
from scrapy_neardup.fingerprints.record import Sketch, encode
from scrapy_neardup.signature import Evidence, Signature, Visit
from scrapy_neardup.store import Store
from scrapy_neardup.store.backend import Entry
from scrapy_neardup.store.records import Key, Record, postings, visit_key

Numbers = npt.NDArray[np.uint64]
SLOTS = {"exact": slice(1), "imatch": slice(1, 2), "shingle": slice(12, 24)}  # of the keys of a document, by detector
TEMPLATE, LARGEST = 150_000, 100_000  # documents of the largest cluster, and the maximum of any other
EVERY = 60  # one of so many held documents is of the form
OF_FORM = 2**48  # labels of the form begin here
NEW = 2**40  # labels and URLs from here on, or from OF_FORM + NEW on, are of documents that are not held
START = 1.7e9  # seconds since the epoch; a document comes each second
BATCH = 200  # documents written at once
SIZE = 20_000  # bytes of a page
EVIDENCE = Evidence("shingle", 3, 0.9, 0.95, 1.02, "content")


class Given(NamedTuple):
    """Documents in the order in which they come."""

    numbers: npt.NDArray[np.int64]
    """For each document, the number of the held document: itself or its original."""
    is_held: npt.NDArray[np.bool_]
    """For each document, whether it is held."""
    labels: Numbers
    """The label of each held document, by its number."""

    @classmethod
    def make(cls, count: int) -> Given:
        source = np.random.default_rng(1)
        sizes = np.minimum(source.zipf(2.5, count), LARGEST)
        sizes[0] = min(TEMPLATE, count * 15 // 100)
        sizes = sizes[: np.searchsorted(sizes.cumsum(), count) + 1]
        clusters = np.repeat(np.arange(len(sizes)), sizes)[:count]
        source.shuffle(clusters)
        _, first, inverse = np.unique(clusters, return_index=True, return_inverse=True)
        order = np.argsort(first)
        numbers = np.empty(len(order), np.int64)
        numbers[order] = np.arange(len(order))
        is_held = np.zeros(count, bool)
        is_held[first] = True
        labels = order.astype(np.uint64) + np.uint64(OF_FORM) * (order % EVERY == 0).astype(np.uint64)
        return cls(numbers[inverse], is_held, labels)


class Prints(NamedTuple):
    """Columns that are made of labels, with one row for each document."""

    keys: Numbers
    simhashes: Numbers
    layouts: Numbers
    codes: Numbers
    figures: npt.NDArray[np.uint16]

    @classmethod
    def make(cls, labels: Numbers) -> Prints:
        columns = mix((labels[:, None] * np.uint64(64) + np.arange(92, dtype=np.uint64)) * MULTIPLIER)
        keys, simhashes = columns[:, :24].copy(), columns[:, 24].copy()
        alike = labels >= OF_FORM
        keys[alike, 12:15] = (1, 2, 3)
        turned = np.uint64(1) << (simhashes[alike] % np.uint64(64))
        simhashes[alike] = np.uint64(0x0123456789ABCDEF) ^ turned ^ (turned >> np.uint64(7))
        figures = np.sort(columns[:, 90:].copy().view(np.uint16), axis=1).astype(">u2")
        return cls(keys, simhashes, columns[:, 25].copy(), columns[:, 26:90].copy(), figures)


def url(number: int) -> str:
    """Return the URL of the document with a number."""
    return f"http://www.site{number % 4999}.example/articles/{number}.html"


def signature(label: int, place: int, changed: int = 0) -> Signature:
    """Return the signature of a document. Of its sketch, `changed` eighths are those of another document."""
    keys, simhash, layout, codes, figures = (column[0] for column in Prints.make(np.array([label], np.uint64)))
    if changed:
        other = Prints.make(np.array([label + NEW], np.uint64))
        keys = np.where(np.arange(24) % 3 > 0, other.keys[0], keys)
        codes = np.where(np.arange(64) % 8 < changed, other.codes[0], codes)
        simhash ^= np.uint64(0b10011)
    found = {name: tuple(keys[part].tolist()) for name, part in SLOTS.items()}
    sketch = Sketch(400, 398, figures.size, codes.tobytes(), figures.tobytes())
    return Signature(url(place), encode({**found, "simhash": (int(simhash),)}, sketch, int(layout)), START + place)


def fill(store: Store, given: Given) -> None:
    """Write documents and visits to a store of any kind, in batches."""
    ids: list[int] = []
    for start in range(0, len(given.numbers), BATCH):
        numbers, is_held = given.numbers[start : start + BATCH], given.is_held[start : start + BATCH]
        rows: list[tuple[Key, Record]] = []
        for place, number, held in zip(range(start, start + len(numbers)), numbers, is_held, strict=True):
            id = store.session.next_id()
            if held:
                each = signature(int(given.labels[len(ids)]), place)
                each.id = id
                ids.append(id)
                visit = Visit("", None, False, 0, SIZE, target=id, at=id)
                rows.append((id, each))
            else:
                visit = Visit(url(place), None, True, START + place, SIZE, EVIDENCE, target=ids[int(number)], at=id)
            rows.append((visit_key(url(place)), visit))
        store.backend.write([Entry(key, record, *postings(record)) for key, record in rows])
        store.flush(wait=False)
