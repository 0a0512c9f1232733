"""Text to verdict and HTML to verdict in one process, by stage, beside peers.

    python bench/path.py [DIR …] [--tokens 700] [--documents 300] [--rounds 5] [--json FILE]

DIR holds docs.jsonl: {"text": …} a line; documents are joined to about that many tokens. Without DIR they are made up,
English and Chinese. All run in turns, each round with an index that is empty at its start; the tables give the median
of the rounds in CPU time, and ratios within a round: datasketch's MinHash-LSH and rensa's (128 minima, threshold 0.5),
both on shingles of 3 words or 5 Chinese characters, and the package `simhash` (distance 3, on words and their counts).
Peers that are not installed are left out. Pages are the texts within a page of about 19 KB.
"""

from __future__ import annotations

import argparse
import json
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from importlib import import_module
from statistics import median
from time import process_time
from typing import Any

from options import new_file, positive
from path_texts import is_chinese, made_up, page_of, read
from peers import Peer, datasketch, rensa, simhash

from scrapy_neardup import Deduplicator, Document, native
from scrapy_neardup.text import tokens
from scrapy_neardup.text.html import html_to_page
from scrapy_neardup.text.segmenter import Segmenter, by_jieba
from scrapy_neardup.text.tokens import tokenize

Run = Callable[[Sequence[str]], None]
OURS, PAGES = "text → verdict", "HTML → verdict"
JIEBA = "text → verdict, with jieba"
PLAIN = "text → verdict, not compiled"
WARM_UP = 30  # documents

# What is compared


def ours(texts: Sequence[str]) -> None:
    with Deduplicator.open() as dedup:
        for number, text in enumerate(texts):
            dedup.claim(Document(f"http://site.example/{number}.html", text)).commit()


def ours_of_pages(pages: Sequence[str]) -> None:
    with Deduplicator.open() as dedup:
        for number, page in enumerate(pages):
            dedup.claim(Document.from_field(page, url=f"http://site.example/{number}.html")).commit()


def ours_without_compiled(texts: Sequence[str]) -> None:
    usual, native.compiled = native.compiled, None
    try:
        ours(texts)
    finally:
        native.compiled = usual


def ours_with(segment: Callable[[], Segmenter], texts: Sequence[str]) -> None:
    usual, tokens.segmenter = tokens.segmenter, segment
    try:
        ours(texts)
    finally:
        tokens.segmenter = usual


# By stage


def staged(pages: Sequence[str], texts: Sequence[str]) -> dict[str, float]:
    """Return how many seconds each stage took, for all documents."""
    spent: dict[str, float] = {}
    with Deduplicator.open() as dedup:
        for number, (page, text) in enumerate(zip(pages, texts, strict=True)):
            document = Document(f"http://site.example/{number}.html", text)
            for name, step in stages(dedup, document, page):
                start = process_time()
                step()
                spent[name] = spent.get(name, 0.0) + process_time() - start
    return spent


def stages(dedup: Deduplicator, document: Document, page: str) -> Iterator[tuple[str, Callable[[], object]]]:
    """Yield what is done with a document, in order; each takes what those before it have made."""
    yield "HTML: title, main text, layout", partial(html_to_page, page)
    yield "words", lambda: document.lines
    yield "hashes", lambda: document.hashes
    yield "words counted", lambda: document.counted
    yield "shingles", lambda: document.shingles
    for detector in dedup.detectors:
        yield f"fingerprints: {detector.name}", partial(detector.fingerprints, document)
    yield "sketch", lambda: document.sketch
    ready = {detector.name: detector.fingerprints(document) for detector in dedup.detectors}
    signed = dedup.sign(Document(document.url, document.text, ready=ready))
    yield "look-up and verification", lambda: dedup.matcher.best(document, signed)
    yield "pages of the host", lambda: dedup.matcher.learn(signed, None)
    claims = [dedup.claim(Document(document.url, document.text))]
    yield "store", claims[0].commit


# Tables


def measure(texts: Sequence[str], rounds: int) -> dict[str, Any]:
    """Return microseconds a document: of each stage, and of each contestant in each round."""
    pages = [page_of(text) for text in texts]
    runs: dict[str, tuple[Run, Sequence[str]]] = {
        OURS: (ours, texts),
        PAGES: (ours_of_pages, pages),
    }
    if native.compiled:
        runs[PLAIN] = (ours_without_compiled, texts)
    if is_chinese(texts[0]):
        runs[JIEBA] = (partial(ours_with, by_jieba), texts)
    peers: dict[str, Peer] = {"datasketch": datasketch, "rensa": rensa, "simhash": simhash}
    runs |= {name: (consumed(peer), texts) for name, peer in peers.items() if installed(name)}
    for run, given in runs.values():
        run(given[:WARM_UP])
    took: dict[str, list[float]] = {name: [] for name in runs}
    parts: list[dict[str, float]] = []
    for _ in range(rounds):
        for name, (run, given) in runs.items():
            start = process_time()
            run(given)
            took[name].append((process_time() - start) / len(texts) * 1e6)
        parts.append(staged(pages, texts))
    by_stage = {name: median(part[name] for part in parts) / len(texts) * 1e6 for name in parts[0]}
    return {"documents": len(texts), "tokens": median(map(len, map(tokenize, texts))), "stages": by_stage, "took": took}


def consumed(peer: Peer) -> Run:
    def run(texts: Sequence[str]) -> None:
        deque(peer(texts), maxlen=0)

    return run


def installed(package: str) -> bool:
    try:
        import_module(package)
    except ImportError:
        return False
    return True


def show(name: str, found: dict[str, Any]) -> None:
    whole = sum(found["stages"].values())
    print(
        f"\n{name}: {found['documents']} documents of {found['tokens']:.0f} tokens\n{'stage':32} {'µs':>8} {'share':>7}"
    )
    for stage, took in found["stages"].items():
        print(f"{stage:32} {took:8.1f} {took / whole:7.1%}")
    print(f"\n{'':32} {'µs':>8} {'docs/s':>8} {'ours is … times as fast':>24}")
    for contestant, took in found["took"].items():
        ratio = median(theirs / mine for theirs, mine in zip(took, found["took"][OURS], strict=True))
        print(f"{contestant:32} {median(took):8.0f} {1e6 / median(took):8.0f} {ratio:24.1f}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", nargs="*", metavar="DIR")
    parser.add_argument("--tokens", type=positive, default=700, metavar="N", help="of a document (default: 700)")
    parser.add_argument("--documents", type=positive, default=300, metavar="N", help="how many (default: 300)")
    parser.add_argument("--rounds", type=positive, default=5, metavar="N", help="default: 5")
    parser.add_argument("--json", type=new_file, metavar="FILE", help="write all figures to this file")
    opts = parser.parse_args()
    sets = {folder: read(folder, opts.documents, opts.tokens) for folder in opts.folders} or {
        language: made_up(language, opts.documents, opts.tokens) for language in ("English", "Chinese")
    }
    found: dict[str, dict[str, Any]] = {}
    for name, texts in sets.items():
        show(name, found.setdefault(name, measure(texts, opts.rounds)))
    if opts.json:
        opts.json.write_text(json.dumps(found, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
