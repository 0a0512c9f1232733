"""How long it takes to find and verify what a document may repeat, among 10,000, 100,000, … documents held in memory.

    python bench/index.py [DOCUMENTS]                       at least 10,000; default 100,000
    python bench/index.py 1000000 --docs FILE.jsonl         real documents (text), multiplied, in place of made ones
    python bench/index.py --lsh 100000 --simhash 100000     peers too, up to so many documents, since they are slow

Held are the documents that repeat none before them, as in a crawl; the defaults decide. Timed are new documents that
repeat nothing, and near-copies of some that are held; then, of the same, the search by detector and the verification.
Documents are asked for without URL: its canonical form, which takes as long as a few candidates, is made before, for
the request. The documents are synthetic: `texts.py` says how far. Peers that are not installed
are passed over (`pip install datasketch simhash`). `--json FILE`: medians and 99th percentiles to that file too.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import resource
import time
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from itertools import chain, compress, islice
from pathlib import Path
from typing import Any

import numpy as np
from options import new_file, positive
from texts import Text, edited, made, multiplied, signed

from scrapy_neardup import Deduplicator, Document
from scrapy_neardup.fingerprints.hashes import shingle_hashes
from scrapy_neardup.fingerprints.record import encode
from scrapy_neardup.fingerprints.simhash import simhash
from scrapy_neardup.fingerprints.sketch import WIDTH
from scrapy_neardup.matching.evidence import compare
from scrapy_neardup.signature import Signature

SIZES = (10_000, 100_000, 1_000_000)
QUERIES = 1000


class Tell:
    """Prints medians and 99th percentiles in µs, and keeps them."""

    def __init__(self) -> None:
        self.told: list[dict[str, Any]] = []

    def __call__(self, name: str, held: int, times: list[float]) -> None:
        middle, high = float(np.median(times)), float(np.percentile(times, 99))
        self.told.append({"name": name.strip(), "held": held, "median": middle, "p99": high})
        print(f"{name}: {middle:.0f} µs, p99 {high:.0f}, at worst {max(times):.0f}", flush=True)


class Ours:
    """A growing store, and what was seen on the way."""

    def __init__(self, texts: Iterator[Text], tell: Tell) -> None:
        self.tell = tell
        self.texts = chain([next(texts)], texts)  # what is read first is not the store's
        self.source = np.random.default_rng(2)
        self.dedup = Deduplicator.open()
        self.held: list[bool] = []
        """Of each text so far, whether it is held."""
        self.some: list[Text] = []
        """Some of those that are."""
        self.inserts: list[float] = []
        self.ram = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss

    def grow(self, size: int) -> None:
        while len(self.dedup) < size:
            text = next(self.texts)
            signature = signed(text, len(self.held))
            self.held.append(not self.matches(signature))
            if self.held[-1]:
                self.inserts += timed(self.dedup.store.add, [signature])
                if len(self.some) < QUERIES:
                    self.some.append(text)
                elif self.source.random() < QUERIES / len(self.dedup):
                    self.some[self.source.integers(QUERIES)] = text

    def matches(self, signature: Signature) -> list[object]:
        return list(self.dedup.matcher.matches(Document(), signature))

    def candidates(self, signature: Signature) -> list[Signature]:
        return list({earlier: None for _, earlier in self.dedup.store.find(signature)})

    def verify(self, pair: tuple[Signature, list[Signature]]) -> list[bool]:
        return [self.dedup.matcher.rule.accepts(compare(pair[0].sketch, earlier.sketch)) for earlier in pair[1]]

    def queries(self) -> dict[str, list[Text]]:
        """Return texts that repeat nothing that is held, as far as is known, and near-copies of some that are."""
        new = list(islice(self.texts, QUERIES))
        self.held += [False] * QUERIES
        return {"new documents": new, "near-copies": [edited(text, self.source) for text in self.some]}

    def report(self, queries: dict[str, list[Text]]) -> None:
        ram = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - self.ram
        print(f"{len(self.dedup):,} held of {len(self.held):,}; {ram / len(self.dedup):.1f} kB of RAM each (ru_maxrss)")
        self.tell("  insertion", len(self.dedup), self.inserts)
        for name, texts in queries.items():
            self._report(name, [signed(text, -number) for number, text in enumerate(texts, 1)])

    def _report(self, name: str, signatures: list[Signature]) -> None:
        times = timed(self.matches, signatures)
        matching = sum(bool(self.matches(signature)) for signature in signatures)
        self.tell(f"  {name} ({matching} of {QUERIES} match)", len(self.dedup), times)
        pairs = [(signature, self.candidates(signature)) for signature in signatures]
        counts = [len(earlier) for _, earlier in pairs]
        print(
            f"    candidates: {np.mean(counts):.1f} on average, median {np.median(counts):.0f}, "
            f"p99 {np.percentile(counts, 99):.0f}"
        )
        for kind in signatures[0].fingerprints:
            asked = [only(signature, kind) for signature in signatures]
            times = timed(lambda own: list(self.dedup.store.find(own)), asked)
            self.tell(f"    {name}, {kind}", len(self.dedup), times)
        self.tell(f"    {name}, verification", len(self.dedup), timed(self.verify, pairs))


def only(signature: Signature, kind: str) -> Signature:
    """Return a signature with the fingerprints of one detector only."""
    return Signature(
        signature.url, encode({kind: signature.fingerprints[kind]}, signature.sketch), signature.first_seen
    )


def timed(call: Callable[[Any], object], arguments: Iterable[Any]) -> list[float]:
    """Return the microseconds of each call."""
    times = []
    for argument in arguments:
        start = time.perf_counter_ns()
        call(argument)
        times.append((time.perf_counter_ns() - start) / 1000)
    return times


class DataSketch:
    """MinHash-LSH over the same shingles."""

    name = "datasketch MinHashLSH(.5, 128)"

    def __init__(self) -> None:
        from datasketch import MinHash, MinHashLSH

        self._minhash, self._index = MinHash, MinHashLSH(threshold=0.5, num_perm=128)

    def prepared(self, text: Text) -> Any:
        sketch = self._minhash(128, hashfunc=lambda value: value)
        sketch.update_batch((shingle_hashes(text.hashes[:, 0], WIDTH) >> np.uint64(32)).tolist())
        return sketch

    def add(self, number: int, text: Any) -> None:
        self._index.insert(number, text, check_duplication=False)

    def find(self, text: Any) -> object:
        return self._index.query(text)


class SimhashPackage:
    """The index of the simhash package over the same SimHashes, at half of the distance."""

    name = "simhash SimhashIndex(k=3)"

    def __init__(self) -> None:
        from simhash import Simhash, SimhashIndex

        self._simhash, self._index = Simhash, SimhashIndex([], k=3)

    def prepared(self, text: Text) -> Any:
        return self._simhash(simhash(text.hashes[:, 0]))

    def add(self, number: int, text: Any) -> None:
        self._index.add(str(number), text)

    def find(self, text: Any) -> object:
        return self._index.get_near_dups(text)


PEERS: dict[str, Callable[[], Any]] = {"datasketch": DataSketch, "simhash": SimhashPackage}


def run(texts: Callable[[], Iterator[Text]], sizes: list[int], peers: dict[str, int], tell: Tell) -> None:
    ours = Ours(texts(), tell)
    queries = {}
    for size in sizes:
        ours.grow(size)
        queries[size] = ours.queries()
        ours.report(queries[size])
    for name, limit in peers.items():
        held = compress(texts(), ours.held)
        if importlib.util.find_spec(name) and limit:
            run_peer(PEERS[name](), held, {size: asked for size, asked in queries.items() if size <= limit}, tell)


def run_peer(peer: Any, texts: Iterator[Text], queries: dict[int, dict[str, list[Text]]], tell: Tell) -> None:
    """Fill a peer with the same documents, and ask it for the same."""
    held = 0
    for size, kinds in queries.items():
        for text in islice(texts, size - held):
            peer.add(held, peer.prepared(text))
            held += 1
        for name, asked in kinds.items():
            tell(f"{peer.name}, {size:,} held, {name}", size, timed(peer.find, map(peer.prepared, asked)))


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("documents", type=positive, nargs="?", default=100_000)
    parser.add_argument("--docs", type=Path, help="JSON lines with a text each; without it texts are made")
    parser.add_argument("--lsh", type=int, default=0, help="ask datasketch too, of so many documents at most")
    parser.add_argument("--simhash", type=int, default=0, help="ask the simhash package too")
    parser.add_argument("--json", type=new_file, metavar="FILE", help="write all figures to this file")
    options = parser.parse_args()
    texts = partial(multiplied, options.docs) if options.docs else made
    sizes = sorted({size for size in SIZES if size < options.documents} | {options.documents})
    tell = Tell()
    run(texts, sizes, {"datasketch": options.lsh, "simhash": options.simhash}, tell)
    if options.json:
        options.json.write_text(json.dumps(tell.told, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
