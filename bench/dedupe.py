"""A feed of documents through `scrapy neardup dedupe`, with one process and with two, beside peers.

    python bench/dedupe.py [--documents 3000] [--tokens 700] [--chinese] [--rounds 3] [--workers 1,2] [--json FILE]

The feed is made up: texts of real length, of which every fifth is an earlier one with one word in a hundred changed.
Each contestant runs in processes of its own, from the file on disk to the end of its last process, all in turns; every
round runs each on the first 200 rows too, and what that took is taken off, so that starts do not count. The table
gives medians of the rounds, and ratios within a round: datasketch's MinHash-LSH and rensa's (128 minima, threshold 0.5,
shingles of 3 words or 5 Chinese characters) and the package `simhash`, which read the same file but write nothing. Peers
that are not installed are left out. Give 100000 documents on a machine that has nothing else to do.
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


def measure(path: Path, number: int, workers: list[int], rounds: int) -> dict[str, list[float]]:
    """Return documents a second of each contestant in each round, without its start."""
    found: dict[str, list[float]] = {name: [] for name in commands(workers)}
    for _ in range(rounds):
        for name, command in commands(workers).items():
            start = seconds(command, few(path))
            found[name].append((number - FEW) / max(seconds(command, path) - start, 1e-9))
    return found


def show(found: dict[str, list[float]]) -> None:
    first = next(iter(found.values()))
    print(f"{'':24} {'docs/s':>8} {'× the first':>12}")
    for name, speeds in found.items():
        ratio = median(speed / base for speed, base in zip(speeds, first, strict=True))
        print(f"{name:24} {median(speeds):8.0f} {ratio:12.2f}")


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
        found = measure(path, opts.documents, [int(count) for count in opts.workers.split(",")], opts.rounds)
    show(found)
    if opts.json:
        figures = {"language": language, "documents": opts.documents, "tokens": opts.tokens, "docs/s": found}
        Path(opts.json).write_text(json.dumps(figures, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
