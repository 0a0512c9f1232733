"""Made-up documents for bench/store.py, and a store that holds them as if it had been crawled.

Fingerprints and sketches are random, but the same for a label. Documents repeat one another in clusters, whose sizes
follow Zipf's law, and come in mixed order; one has 150,000 documents (of less than a million 15 %). Besides, every 60th
of those held is of one form: these do not repeat one another, but share three super-shingles, and their SimHashes are
near. The parts, their manifest and the records of runs are written by the product's own code, in as many parts as
tidying would leave.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from scrapy_neardup import Deduplicator
from scrapy_neardup.fingerprints.hashing import MULTIPLIER, hash_text, mix
from scrapy_neardup.fingerprints.sketch import Sketch
from scrapy_neardup.index.packed import MOST, Array, Entries, entries
from scrapy_neardup.signature import Evidence, Link, Signature
from scrapy_neardup.stores import manifest
from scrapy_neardup.stores.absorbing import RATIO
from scrapy_neardup.stores.log import Log
from scrapy_neardup.stores.merging import Notes, joined, made
from scrapy_neardup.stores.part import Part
from scrapy_neardup.stores.records import document_rows, link_rows, strings
from scrapy_neardup.stores.runs import Run
from scrapy_neardup.stores.search import salt
from scrapy_neardup.text.shapes import site

Numbers = npt.NDArray[np.uint64]
SLOTS = {"exact": 1, "imatch": 11, "shingle": 12}  # keys of a document, by detector
TEMPLATE, LARGEST = 150_000, 100_000  # documents of the one cluster, and of any other at most
EVERY = 60  # documents held, one of the form
OF_FORM = 2**48  # labels from here on
NEW = 2**40  # labels and URLs from here on, or this far above OF_FORM, are of documents that are not held
SEGMENT, RUN = 128, 2**14  # documents given, in a segment and in a run
TIDYING, CHUNK = 2**13, 2**19  # documents given between two tidyings, and made at a time
START = 1.7e9  # seconds since the epoch; then one a second
DETECTORS = ("shingle", "full")


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
    figures: Array

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


def signature(label: int, place: int, changed: int = 0) -> Signature:
    """Return a document's, or a near-copy's, in which of the sketch so many eighths are another's."""
    keys, simhash, layout, codes, figures = (column[0] for column in Prints.make(np.array([label], np.uint64)))
    if changed:
        other = Prints.make(np.array([label + NEW], np.uint64))
        keys = np.where(np.arange(24) % 3 > 0, other.keys[0], keys)
        codes = np.where(np.arange(64) % 8 < changed, other.codes[0], codes)
        simhash ^= np.uint64(0b10011)
    parts = np.split(keys, np.cumsum(list(SLOTS.values()))[:-1])
    found = {name: tuple(part.tolist()) for name, part in zip(SLOTS, parts, strict=True)}
    sketch = Sketch(400, 398, figures.size, codes.tobytes(), figures.tobytes())
    return Signature(url(place), {**found, "simhash": (int(simhash),)}, sketch, START + place, int(layout))


def build(path: str, given: Given) -> list[Part]:
    """Write a store that was given these documents; return its parts."""
    Deduplicator.open(path).close()
    folder = manifest.folder(path)
    folder.mkdir()
    parts, start = [], 0
    for size in part_sizes(len(given.numbers)):
        parts.append(part(folder, given, start, start + size))
        start += size
    log = Log(path)
    runs = [Run(f"{n}", START + n * RUN, START + (n + 1) * RUN, RUN // SEGMENT) for n in range(-(-start // RUN))]
    log.append_all([*((f"run//{run.id}", run.dump()) for run in runs), ("parts/", manifest.dump(parts))])
    log.sync(wait=True)
    log.close()
    return parts


def part_sizes(count: int) -> list[int]:
    """Return how many of the documents given lie in each part, if they are tidied little by little."""
    sizes: list[int] = []
    for size in [TIDYING] * (count // TIDYING) + [count % TIDYING] * (count % TIDYING > 0):
        while sizes and sizes[-1] <= RATIO * size and sizes[-1] + size < MOST:
            size += sizes.pop()
        sizes.append(size)
    return sizes


def part(folder: Path, given: Given, start: int, end: int) -> Part:
    """Write the part of a range of the documents given, made chunk by chunk as a large one needs much memory."""
    chunks = [chunk(given, at, min(at + CHUNK, end)) for at in range(start, end, CHUNK)]
    chunks = [each.write(folder / f"{at}.chunk") for at, each in enumerate(chunks)] if len(chunks) > 1 else chunks
    met = {site(url(number)): START for number in range(4999)}
    whole = joined(chunks, Notes(repeats(given, start, end), (), {}, met)).write(folder / f"{start}.part")
    for file in filter(None, (each.file for each in chunks)):
        file.unlink()
    return whole


def repeats(given: Given, start: int, end: int) -> dict[int, int]:
    """Return, by number, how often those documents were repeated in the end that were so in a range."""
    mirrors = given.numbers[:end][~given.is_held[:end]]
    counts = np.bincount(mirrors, minlength=1)
    changed = np.unique(given.numbers[start:end][~given.is_held[start:end]])
    return dict(zip(changed.tolist(), counts[changed].tolist(), strict=True))


def chunk(given: Given, start: int, end: int) -> Part:
    """Return a part of a range of the documents given."""
    is_held, numbers = given.is_held[start:end], given.numbers[start:end]
    first = int(given.is_held[:start].sum())
    prints = Prints.make(given.labels[first : first + int(is_held.sum())])
    urls = [url(number) for number in range(start, end)]
    columns = {**documents(prints, is_held, urls), **links(numbers, is_held, urls, start)}
    segments = [(f"{at // RUN}", at % RUN // SEGMENT) for at in range(start, end, SEGMENT)]
    return made(first, columns, packed(prints.keys), DETECTORS, segments)


def documents(prints: Prints, is_held: npt.NDArray[np.bool_], urls: list[str]) -> dict[str, Array]:
    count = len(prints.keys)
    rows = np.repeat(document_rows([(signature(0, 0), 0, {})])["documents"], count)
    places = is_held.nonzero()[0]
    before = is_held.cumsum() - is_held
    rows["codes"] = np.ascontiguousarray(prints.codes).view("V512")[:, 0]
    rows["layout"], rows["exact"], rows["first_seen"] = prints.layouts, prints.keys[:, 0], START
    rows["segment"] = places // SEGMENT
    rows["place"] = np.arange(count) - before[places // SEGMENT * SEGMENT]
    url_ends, own = strings(urls[place].encode() for place in places.tolist())
    title_ends, titles = strings(b"" for _ in range(count))
    figure_ends, figures = strings(row.tobytes() for row in prints.figures)
    whole_ends, wholes = strings(b"" for _ in range(count))
    return {
        "documents": rows, "simhashes": prints.simhashes, "repeats": np.zeros(count, np.uint32),
        "url_ends": url_ends, "urls": own, "title_ends": title_ends, "titles": titles,
        "figure_ends": figure_ends, "figures": figures, "whole_ends": whole_ends, "wholes": wholes,
    }  # fmt: skip


def links(
    numbers: npt.NDArray[np.int64], is_held: npt.NDArray[np.bool_], urls: list[str], start: int
) -> dict[str, Array]:
    held, evidence = signature(0, 0), Evidence("shingle", 3, 0.7, 0.8, 1.0, "full")
    both = [
        Link("http://mirror.example/", held, True, START, 20_000, evidence),
        Link(held.url or "", held, False, START),
    ]
    rows = link_rows([(link, 0, 0, 0) for link in both], DETECTORS)["link_rows"][is_held.astype(int)]
    rows["url"] = [hash_text(each) for each in urls]
    rows["seen"] = START + start + np.arange(len(urls))
    rows["document"], rows["segment"] = numbers, np.arange(len(urls)) // SEGMENT
    ends, others = strings(b"" if own else each.encode() for each, own in zip(urls, is_held.tolist(), strict=True))
    return {"link_rows": rows, "link_ends": ends, "links": others}


def packed(keys: Numbers) -> Entries:
    salts = np.repeat(np.array([salt(name) for name in SLOTS], np.uint64), list(SLOTS.values()))
    places = np.repeat(np.arange(len(keys), dtype=np.uint64), keys.shape[1])
    return entries(((keys ^ salts) * MULTIPLIER).ravel(), places)


def url_bytes(parts: Iterator[Part]) -> int:
    """Return how much of the parts are URLs and where each begins."""
    return sum(part.columns[name].nbytes for part in parts for name in ("urls", "url_ends", "links", "link_ends"))
