"""What can't be done in less time: reading, hashing and sorting what a text has, parsing a page; and how far we are.

    python bench/limits.py [--tokens 700] [--documents 300] [--rounds 7]

Made-up texts as in path.py. Each limit is a single call of a library on the same data; "ours" is the whole path. CPU
time, medians of the rounds.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from functools import partial
from statistics import median
from time import process_time
from typing import Any

import mmh3
import numpy as np
from lxml import etree
from options import positive
from path import ours, ours_of_pages
from path_texts import made_up, page_of

from scrapy_neardup import Document


def limits(texts: Sequence[str], pages: Sequence[str]) -> dict[str, tuple[Callable[[Any], object], Sequence[Any]]]:
    """Return by name what is called for each document, and on what."""
    documents = [Document(text=text) for text in texts]
    words = [document.lines.split(b"\n") for document in documents]
    hashes = [document.hashes[:, 0].copy() for document in documents]
    parse = partial(etree.HTML, parser=etree.HTMLParser())
    return {
        "memory: copy the text's bytes": (bytearray, [text.encode() for text in texts]),
        "hashing: each word once, by mmh3": (lambda some: [*map(mmh3.hash_bytes, some)], words),
        "sorting: the words' hashes, by numpy": (np.sort, hashes),
        "parsing: the page, by lxml": (parse, [page.encode() for page in pages]),
    }


def measure(language: str, size: int, number: int, rounds: int) -> dict[str, float]:
    """Return microseconds a document."""
    texts = made_up(language, number, size)
    pages = [page_of(text) for text in texts]
    runs: dict[str, Callable[[], object]] = {
        name: partial(each, call, data) for name, (call, data) in limits(texts, pages).items()
    }
    runs |= {"ours: text → verdict": partial(ours, texts), "ours: HTML → verdict": partial(ours_of_pages, pages)}
    took: dict[str, list[float]] = {name: [] for name in runs}
    for _ in range(rounds):
        for name, run in runs.items():
            start = process_time()
            run()
            took[name].append((process_time() - start) / number * 1e6)
    return {name: median(found) for name, found in took.items()}


def each(call: Callable[[Any], object], data: Sequence[Any]) -> None:
    for one in data:
        call(one)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tokens", type=positive, default=700, metavar="N", help="of a document (default: 700)")
    parser.add_argument("--documents", type=positive, default=300, metavar="N", help="how many (default: 300)")
    parser.add_argument("--rounds", type=positive, default=7, metavar="N", help="default: 7")
    opts = parser.parse_args()
    found = {each: measure(each, opts.tokens, opts.documents, opts.rounds) for each in ("English", "Chinese")}
    print(f"{'µs a document':38}" + "".join(f"{language:>10}" for language in found))
    for name in found["English"]:
        print(f"{name:38}" + "".join(f"{each[name]:10.1f}" for each in found.values()))


if __name__ == "__main__":
    main()
