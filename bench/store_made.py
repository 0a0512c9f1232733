"""Made-up documents for bench/store.py, and a store that holds them as if it had been crawled.

Fingerprints and sketches are random, but the same for a label. Documents repeat one another in clusters, whose sizes
follow Zipf's law, and come in mixed order; one has 150,000 documents (of less than a million 15 %). Besides, every 60th
of those held is of one form: these do not repeat one another, but share three super-shingles, and their SimHashes are
near. Rows are made by the product's own code, and put into the table without its writer, in a fifth of the time.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from scrapy_neardup import Deduplicator
from scrapy_neardup.fingerprints.hashes import MULTIPLIER, mix
from scrapy_neardup.fingerprints.record import encode
from scrapy_neardup.fingerprints.shingles import Sketch
from scrapy_neardup.signature import Evidence, Signature, Visit
from scrapy_neardup.store.local.database import open_database, stored_key
from scrapy_neardup.store.records import Run, dump, visit_key

Numbers = npt.NDArray[np.uint64]
SLOTS = {"exact": slice(1), "imatch": slice(1, 2), "shingle": slice(12, 24)}  # of the keys of a document, by detector
TEMPLATE, LARGEST = 150_000, 100_000  # documents of the one cluster, and of any other at most
EVERY = 60  # documents held, one of the form
OF_FORM = 2**48  # labels from here on
NEW = 2**40  # labels and URLs from here on, or this far above OF_FORM, are of documents that are not held
RUN = 2**14  # documents given in a run
START = 1.7e9  # seconds since the epoch; then one a second


class Given(NamedTuple):
    """Documents in the order of coming."""

    numbers: npt.NDArray[np.int64]
    """For each document, the number of the one held: itself or its original."""
    is_held: npt.NDArray[np.bool_]
    """For each document, whether it is held."""
    labels: Numbers
    """For each document held, by number, the label."""

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
    """Columns made of documents' labels, a row each."""

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
    """Return the URL of a document given."""
    return f"http://www.site{number % 4999}.example/articles/{number}.html"


def signatures(labels: Numbers) -> Iterator[Signature]:
    """Yield the signatures of documents, without what comes with a place."""
    prints = Prints.make(labels)
    for keys, simhash, layout, codes, figures in zip(*prints, strict=True):
        found = {name: tuple(keys[part].tolist()) for name, part in SLOTS.items()}
        sketch = Sketch(400, 398, figures.size, codes.tobytes(), figures.tobytes())
        yield Signature(None, encode({**found, "simhash": (int(simhash),)}, sketch, int(layout)), START)


def signature(label: int, place: int, changed: int = 0) -> Signature:
    """Return a document's, or a near-copy's, in which of the sketch so many eighths are another's."""
    keys, simhash, layout, codes, figures = (column[0] for column in Prints.make(np.array([label], np.uint64)))
    if changed:
        other = Prints.make(np.array([label + NEW], np.uint64))
        keys = np.where(np.arange(24) % 3 > 0, other.keys[0], keys)
        codes = np.where(np.arange(64) % 8 < changed, other.codes[0], codes)
        simhash ^= np.uint64(0b10011)
    found = {name: tuple(keys[part].tolist()) for name, part in SLOTS.items()}
    sketch = Sketch(400, 398, figures.size, codes.tobytes(), figures.tobytes())
    return Signature(url(place), encode({**found, "simhash": (int(simhash),)}, sketch, int(layout)), START + place)


def build(path: str, given: Given) -> None:
    """Write a store that was given these documents, run by run, and have it make its index."""
    Deduplicator.open(path).close()  # says what it is made with
    with closing(open_database(path, writes=True)) as db:
        db.execute("PRAGMA synchronous=OFF")
        runs = [Run(f"{n:04d}", START + n * RUN) for n in range(-(-len(given.numbers) // RUN))]
        for at, run in enumerate(runs):
            rows = list(rows_of(given, at * RUN, min((at + 1) * RUN, len(given.numbers)), run))
            with db:
                db.execute("BEGIN")
                stored = [(stored_key(key), value) for key, value in rows]
                db.executemany("INSERT INTO neardup (key, value) VALUES (?, ?)", stored)
    Deduplicator.open(path).close()


def rows_of(given: Given, start: int, end: int, run: Run) -> Iterator[tuple[str, bytes]]:
    """Yield the rows of one run: the documents given from `start` to before `end`, and the run's own."""
    is_held = given.is_held[start:end].tolist()
    first = int(given.is_held[:start].sum())
    made = signatures(given.labels[first : first + sum(is_held)])
    for place, (number, held) in enumerate(zip(given.numbers[start:end].tolist(), is_held, strict=True)):
        id, at = f"{run.id}/{place + 1:06x}", start + place
        if held:
            record = next(made)
            record.url, record.first_seen, record.id = url(at), START + at, id
            ids.append(id)
            yield f"document/{id}", dump(f"document/{id}", record)
            visit = Visit("", None, False, 0, 20_000, target=id, at=id)
        else:
            evidence = Evidence("shingle", 3, 0.7, 0.8, 1.0, "full")
            visit = Visit(url(at), None, True, START + at, 20_000, evidence, target=ids[number], at=id)
        yield (key := visit_key(url(at))), dump(key, visit)
    ended = replace(run, closed=run.started + RUN, sealed=end - start)
    yield f"run/{run.id}", dump(f"run/{run.id}", ended)


ids: list[str] = []  # of the documents held, by number: only the process that builds fills it
