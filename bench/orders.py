"""How much the order of the documents, and chance in the hash, move F1.

    python bench/orders.py DIR… [--seeds 5] [--orders 10] [--family-discount 0.13]

DIR holds docs.jsonl (id, text) and pairs.jsonl (a, b, label). Each seed hashes the shingles anew, so that sketches and
super-shingles are those of another hash function; the first is the one that is shipped. Strict F1.
"""

from __future__ import annotations

import argparse
import random
from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import cached_property
from statistics import fmean

import numpy as np

from scrapy_neardup import Deduplicator, Document
from scrapy_neardup.detectors import Exact
from scrapy_neardup.fingerprints.hashes import Hashes, mix
from scrapy_neardup.fingerprints.minhash import super_shingles
from scrapy_neardup.fingerprints.record import BANDS, ROWS, encode, figures_of, make_sketch
from scrapy_neardup.quality.labels import MODES, LabelledSet, Partition
from scrapy_neardup.signature import Signature


class Salted(Document):
    """A document whose shingles have other hashes."""

    seed = 0

    @cached_property
    def shingles(self) -> Hashes:
        return np.sort(mix(super().shingles + np.uint64(self.seed)))

    @property
    def record(self) -> bytes:
        """The record with these shingles."""
        found = {"exact": Exact().fingerprints(self), "shingle": super_shingles(self.shingles, BANDS, ROWS)}
        return encode(found, make_sketch(len(self.hashes), self.shingles, figures_of(self.hashes, self.lines)))


def salted(labelled: LabelledSet, seed: int) -> dict[str, Document]:
    kind = type("Seeded", (Salted,), {"seed": 7919 * seed}) if seed else Document
    return {name: kind(text=row["text"]) for name, row in labelled.rows.items()}


def f1(labelled: LabelledSet, documents: Iterable[tuple[str, Document]], discount: float) -> float:
    clusters: dict[Signature, list[str]] = {}
    with Deduplicator.open(None, detectors=["exact", "shingle"]) as dedup:
        dedup.matcher.rule = replace(dedup.matcher.rule, family_discount=discount)
        for name, document in documents:
            claim = dedup.claim(document, document.record if isinstance(document, Salted) else None)
            claim.commit()
            clusters.setdefault(claim.match.signature if claim.match else claim.signature, []).append(name)
    return labelled.score(Partition(clusters.values()), MODES["strict"]).f1


def runs(labelled: LabelledSet, seeds: int, orders: int, discount: float) -> Iterator[float]:
    for seed in range(seeds):
        documents = list(salted(labelled, seed).items())
        for order in range(orders):
            if order:
                random.Random(order).shuffle(documents)
            yield f1(labelled, documents, discount)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", nargs="+", metavar="DIR")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--orders", type=int, default=10)
    parser.add_argument("--family-discount", type=float, default=0.13)
    options = parser.parse_args()
    for folder in options.folders:
        labelled = LabelledSet.load(folder)
        found = list(runs(labelled, options.seeds, options.orders, options.family_discount))
        own = found[: options.orders]
        print(
            f"{folder}: own hash, mean {fmean(own):.4f}, lowest {min(own):.4f};"
            f" all, mean {fmean(found):.4f}, lowest {min(found):.4f}, {sum(f >= 0.98 for f in found)} of {len(found)}"
            " at .98 or more",
            flush=True,
        )


if __name__ == "__main__":
    main()
