"""Measure `scrapy neardup dedupe` on a feed, with one process and with two, beside other packages.

    python bench/dedupe.py [--documents 3000] [--tokens 700] [--rounds 3] [--workers 1,2]
                           [--peers datasketch,rensa,gaoya,simhash]

The feed is made up of texts of real length. Every fifth text is an earlier one with one word in a hundred changed. In
each round, each contestant runs in new processes: on all rows, and on the first 200 rows. The latter time counts as its
start. A time ends with the last process. The table has medians of the rounds; a ratio compares two times of one round.
The peers read the same file and write nothing: MinHash-LSH of datasketch, rensa and gaoya, with 128 minima, threshold
0.5 and shingles of 3 words, and the package `simhash`. Those that are not installed are left out. "peak" is the memory
of a contestant's largest process. For 100,000 documents, use an idle machine, and leave out `simhash`: its index gets
slower with each such text.
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
from multiprocessing import get_context
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import NamedTuple

from options import positive
from texts import made_up

FEW = 200  # rows, whose time is the time of the start
OUTPUT = "out.jsonl"  # beside the feed
COPIES, CHANGED = 5, 100  # one document in so many is a copy, with one word in so many changed
PEERS = "datasketch,rensa,gaoya,simhash"
PEER = """
import json, sys
import peers
with open(sys.argv[2], encoding="utf-8") as feed:
    for found in getattr(peers, sys.argv[1])(json.loads(line)["text"] for line in feed):
        pass
"""


class Took(NamedTuple):
    """Time and memory of a contestant for some rows."""

    seconds: float
    peak: int
    """Bytes of its largest process."""


def feed(path: Path, number: int, size: int) -> None:
    """Write a feed of made-up documents, and a second feed of its first `FEW` rows."""
    source = random.Random(3)
    texts = made_up("English", number - number // COPIES, size)
    with path.open("w", encoding="utf-8") as whole, few(path).open("w", encoding="utf-8") as part:
        for place in range(number):
            fresh = place - place // COPIES
            is_copy = place % COPIES == COPIES - 1
            text = edited(texts[source.randrange(fresh)], source) if is_copy else texts[fresh]
            row = {"id": place, "url": f"http://site{place % 500}.example/{place}", "text": text}
            line = json.dumps(row, ensure_ascii=False)
            whole.write(line + "\n")
            if place < FEW:
                part.write(line + "\n")


def edited(text: str, source: random.Random) -> str:
    words = text.split(" ")
    for _ in range(len(words) // CHANGED):
        words[source.randrange(len(words))] = "changed"
    return " ".join(words)


def few(path: Path) -> Path:
    return path.with_name(f"few.{path.name}")


def commands(opts: argparse.Namespace) -> dict[str, list[str]]:
    """Return the command of each contestant, without the path of the feed, which comes last."""
    ours = [sys.executable, "-m", "scrapy", "neardup", "dedupe", "-o", OUTPUT, "--id-field", "id"]  # a row number
    found = {f"ours, --workers {count}": [*ours, "--workers", count] for count in opts.workers.split(",")}
    found |= {peer: [sys.executable, "-c", PEER, peer] for peer in opts.peers.split(",") if find_spec(peer)}
    return found


def run(command: list[str], path: Path) -> Took:
    here = os.pathsep.join([str(Path(__file__).parent), os.environ.get("PYTHONPATH", "")])
    start = perf_counter()
    with (path.parent / "log").open("w+b") as log:
        process = subprocess.Popen(
            [*command, str(path)], cwd=path.parent, env=os.environ | {"PYTHONPATH": here}, stdout=log, stderr=log
        )
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode:
            log.seek(0)
            raise SystemExit(log.read().decode())
    return Took(perf_counter() - start, used.ru_maxrss * 1024)


def measure(path: Path, opts: argparse.Namespace) -> dict[str, list[tuple[Took, Took]]]:
    """Return what each contestant took in each round: for the first few rows, and for all rows."""
    found: dict[str, list[tuple[Took, Took]]] = {name: [] for name in commands(opts)}
    for _ in range(opts.rounds):
        for name, command in commands(opts).items():
            found[name].append((run(command, few(path)), run(command, path)))
            print(f"{name}: {found[name][-1][1].seconds:.1f} s", file=sys.stderr, flush=True)
    return found


def show(found: dict[str, list[tuple[Took, Took]]], number: int) -> None:
    first = next(iter(found.values()))
    heads = f"{'start, s':>8} {'all, s':>8} {'docs/s':>8} {'× the first':>12} {'peak, MB':>9}"
    print(f"{'':19} {heads}")
    for name, rounds in found.items():
        start, whole = (median(each.seconds for each in some) for some in zip(*rounds, strict=True))
        ratio = median(base.seconds / took.seconds for (_, took), (_, base) in zip(rounds, first, strict=True))
        peak = max(took.peak for _, took in rounds) / 1e6
        figures = f"{start:8.2f} {whole:8.2f} {number / whole:8.0f} {ratio:12.2f}"
        print(f"{name:19} {figures} {peak:9.0f}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--documents", type=positive, default=3000, metavar="N", help="how many (default: 3000)")
    parser.add_argument("--tokens", type=positive, default=700, metavar="N", help="of a document (default: 700)")
    parser.add_argument("--rounds", type=positive, default=3, metavar="N", help="default: 3")
    parser.add_argument("--workers", default="1,2", metavar="N,N", help="of ours, each a contestant (default: 1,2)")
    parser.add_argument("--peers", default=PEERS, metavar="A,B", help=f"default: {PEERS}")
    opts = parser.parse_args()
    if opts.documents <= FEW:
        parser.error(f"--documents: more than {FEW}")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "feed.jsonl")
        # In another process, since the peak of a started process includes the memory of this one.
        making = get_context("spawn").Process(target=feed, args=(path, opts.documents, opts.tokens))
        making.start()
        making.join()
        print(f"{opts.documents} documents of {opts.tokens} tokens, {path.stat().st_size / 1e6:.0f} MB")
        found = measure(path, opts)
    show(found, opts.documents)


if __name__ == "__main__":
    main()
