"""A feed of documents through `scrapy neardup dedupe`, with one process and with two, beside peers.

    python bench/dedupe.py [--documents 3000] [--tokens 700] [--chinese] [--rounds 3] [--workers 1,2] [--json FILE]

The feed is made up: texts of real length, of which every fifth is an earlier one with one word in a hundred changed.
Each contestant runs in processes of its own, from the file on disk to the end of its last process, all in turns, and in
every round on the first 200 rows too, which is its start: with few documents that is most of what it takes. The table
gives medians of the rounds, and ratios within a round, with the start and without: datasketch's MinHash-LSH and rensa's
(128 minima, threshold 0.5, shingles of 3 words or 5 Chinese characters) and the package `simhash`, which read the same
file and write nothing. Peers that are not installed are left out. Give 100000 documents on a machine that has nothing
else to do.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import subprocess
import sys
import tempfile
from importlib.util import find_spec
from pathlib import Path
from statistics import median
from time import perf_counter

from path_texts import made_up

FEW = 200  # rows: their time is that of the start
OUTPUT = "out.jsonl"  # beside the feed
COPIES, CHANGED = 5, 100  # one document in so many is a copy, with one word in so many changed
PEERS = ("datasketch", "rensa", "simhash")
PEER = """
import json, sys
import path_peers
with open(sys.argv[2], encoding="utf-8") as feed:
    getattr(path_peers, sys.argv[1])([json.loads(line)["text"] for line in feed])
"""


def feed(path: Path, language: str, number: int, size: int) -> None:
    """Write a feed of made-up documents, and beside it one of the first few."""
    source = random.Random(3)
    texts = made_up(language, number - number // COPIES, size)
    with path.open("w", encoding="utf-8") as whole, few(path).open("w", encoding="utf-8") as part:
        for place in range(number):
            fresh = place - place // COPIES
            is_copy = place % COPIES == COPIES - 1
            text = edited(texts[source.randrange(fresh)], source) if is_copy else texts[fresh]
            line = json.dumps({"url": f"http://site{place % 500}.example/{place}", "text": text}, ensure_ascii=False)
            whole.write(line + "\n")
            if place < FEW:
                part.write(line + "\n")


def edited(text: str, source: random.Random) -> str:
    words = text.split(" ") if " " in text else list(text)
    for _ in range(len(words) // CHANGED):
        words[source.randrange(len(words))] = "changed"
    return (" " if " " in text else "").join(words)


def few(path: Path) -> Path:
    return path.with_name(f"few.{path.name}")


def commands(workers: list[int]) -> dict[str, list[str]]:
    """Return the contestants; the path of a feed comes last."""
    ours = ["-m", "scrapy", "neardup", "dedupe", "-o", OUTPUT]
    found = {f"ours, --workers {count}": [*ours, "--workers", str(count)] for count in workers}
    return found | {peer: ["-c", PEER, peer] for peer in PEERS if find_spec(peer)}


def seconds(command: list[str], path: Path) -> float:
    here = os.pathsep.join([str(Path(__file__).parent), os.environ.get("PYTHONPATH", "")])
    start = perf_counter()
    called = [sys.executable, *command, str(path)]
    subprocess.run(called, check=True, cwd=path.parent, env=os.environ | {"PYTHONPATH": here}, capture_output=True)
    return perf_counter() - start


def measure(path: Path, workers: list[int], rounds: int) -> dict[str, list[tuple[float, float]]]:
    """Return the seconds that each contestant took in each round: for the first few rows, and for all."""
    found: dict[str, list[tuple[float, float]]] = {name: [] for name in commands(workers)}
    for _ in range(rounds):
        for name, command in commands(workers).items():
            found[name].append((seconds(command, few(path)), seconds(command, path)))
    return found


def show(found: dict[str, list[tuple[float, float]]], number: int) -> None:
    first = next(iter(found.values()))
    print(f"{'':24} {'start, s':>8} {'all, s':>8} {'docs/s':>8} {'× the first':>12} {'without start':>14}")
    for name, rounds in found.items():
        start, whole = (median(each) for each in zip(*rounds, strict=True))
        ratio = median(base[1] / took[1] for took, base in zip(rounds, first, strict=True))
        bare = [(base[1] - base[0]) / (took[1] - took[0]) for took, base in zip(rounds, first, strict=True)]
        print(f"{name:24} {start:8.2f} {whole:8.2f} {number / whole:8.0f} {ratio:12.2f} {median(bare):14.2f}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--documents", type=int, default=3000, metavar="N", help="how many (default: 3000)")
    parser.add_argument("--tokens", type=int, default=700, metavar="N", help="of a document (default: 700)")
    parser.add_argument("--chinese", action="store_true", help="instead of English")
    parser.add_argument("--rounds", type=int, default=3, metavar="N", help="default: 3")
    parser.add_argument("--workers", default="1,2", metavar="N,N", help="of ours, each a contestant (default: 1,2)")
    parser.add_argument("--json", metavar="FILE", help="write all figures to this file")
    opts = parser.parse_args()
    if opts.documents <= FEW:
        parser.error(f"--documents: more than {FEW}")
    language = "Chinese" if opts.chinese else "English"
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "feed.jsonl")
        feed(path, language, opts.documents, opts.tokens)
        print(f"{language}: {opts.documents} documents of {opts.tokens} tokens, {path.stat().st_size / 1e6:.0f} MB")
        found = measure(path, [int(count) for count in opts.workers.split(",")], opts.rounds)
    show(found, opts.documents)
    if opts.json:
        figures = {"language": language, "documents": opts.documents, "tokens": opts.tokens, "seconds": found}
        Path(opts.json).write_text(json.dumps(figures, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
