"""Measure floods: what a page costs after many pages of one kind, as a hostile site can make them.

    python bench/floods.py [--sizes 1000,10000] [--kinds copies,near,…]

- copies: one text at many URLs of one host, as a soft 404 is.
- near: one text of 200 words on 100 hosts. Each page replaces 4 of the words.
- hosts: one text, each time on another host.
- bags: the same 200 words in any order. So all have equal SimHashes and I-Match signatures, but no two texts are equal.
- titles: unlike texts on one host, each under a title of its own.
- names: unlike texts, each on a host of its own.
- fields: one text on one host, each time with another value in a field, so that all are kept.

Each kind has its own store on disk and its own process. CPU a page: the CPU time of all threads for the last tenth of
the pages before each size. Memory: the resident memory of the process, less that at its start. Store: the size of its
files. Linux only.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from options import positive, some_of
from texts import zipf

from scrapy_neardup import Deduplicator, Document, item_document

WORDS, VOCABULARY, LAST = 200, 20_000, 10


class Flood:
    """Makes the pages of each kind."""

    def __init__(self) -> None:
        self._random, self._source = random.Random(1), np.random.default_rng(1)
        self.text = self._new()

    def _new(self, count: int = WORDS) -> list[str]:
        return [f"w{number}" for number in zipf(self._source, VOCABULARY, count)]

    def copies(self, number: int) -> Document:
        return Document(f"http://a.example/{number}", " ".join(self.text))

    def near(self, number: int) -> Document:
        words = list(self.text)
        for place in self._random.sample(range(WORDS), 4):
            words[place] = "".join(self._random.choices("abcdefgh", k=8))
        return Document(f"http://h{number % 100}.example/{number}", " ".join(words))

    def hosts(self, number: int) -> Document:
        return Document(f"http://h{number}.example/", " ".join(self.text))

    def bags(self, number: int) -> Document:
        return Document(f"http://h{number % 100}.example/{number}", " ".join(self._random.sample(self.text, WORDS)))

    def titles(self, number: int) -> Document:
        title = f"{' '.join(self._new(5))} {number}"
        return Document(f"http://a.example/{number}", " ".join(self._new()), title=title)

    def names(self, number: int) -> Document:
        return Document(f"http://h{number}.example/", " ".join(self._new()))

    def fields(self, number: int) -> Document:
        item = {"url": f"http://a.example/{number}", "text": " ".join(self.text), "sku": f"s{number}"}
        document = item_document(item)
        assert document
        return document


KINDS = frozenset(name for name in vars(Flood) if not name.startswith("_"))


def measured(kind: str, sizes: Sequence[int]) -> Iterator[dict[str, Any]]:
    """Claim and commit pages of one kind. Yield the cost of a page at each size."""
    make, kept = getattr(Flood(), kind), 0
    with tempfile.TemporaryDirectory() as folder, Deduplicator.open(f"{folder}/store.sqlite") as dedup:
        before, spent = memory(), 0.0
        for number in range(max(sizes)):
            size = next(size for size in sizes if number < size)
            document = make(number)
            start = time.process_time()
            claim = dedup.claim(document)
            claim.commit()
            spent = (spent if number != size - size // LAST else 0.0) + time.process_time() - start
            kept += claim.verdict.status == "unique"
            if number == size - 1:
                dedup.flush()
                disk = sum(file.stat().st_size for file in Path(folder).rglob("*") if file.is_file())
                yield {
                    "kind": kind, "pages": size, "kept": kept, "ms a page": round(spent / (size // LAST) * 1000, 2),
                    "MB": round((memory() - before) / 1e6, 1), "store, bytes a page": round(disk / size),
                }  # fmt: skip


def memory() -> int:
    """Return the resident memory of this process, in bytes."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def main() -> None:
    """Measure each kind in a process of its own."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--sizes", type=lambda value: sorted(map(positive, value.split(","))), default=[1000, 10_000])
    parser.add_argument("--kinds", type=lambda value: some_of(value, KINDS), default=sorted(KINDS))
    parser.add_argument("--one", type=lambda value: some_of(value, KINDS)[0], help=argparse.SUPPRESS)
    opts = parser.parse_args()
    if opts.one:
        for result in measured(opts.one, opts.sizes):
            print(json.dumps(result), flush=True)
        return
    for kind in opts.kinds:
        call = [sys.executable, __file__, "--one", kind, "--sizes", ",".join(map(str, opts.sizes))]
        with subprocess.Popen(call, stdout=subprocess.PIPE, text=True) as process:
            assert process.stdout
            for line in process.stdout:
                print("  ".join(f"{name} {value}" for name, value in json.loads(line).items()), flush=True)


if __name__ == "__main__":
    main()
