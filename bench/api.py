"""Measure memory and speed of a program that calls `claim`, `commit` and `flush`, as documents come.

    python bench/api.py [150000] [--flush 100]

Made-up documents of 100 words, none a copy, each with a URL on one of 50 hosts; a `flush()` after so many. A line for
every tenth of them: the process's own (anonymous) memory, how many documents are in no part yet, and documents a second
of the process's own work, which other processes do not slow down. Linux only.
"""

from __future__ import annotations

import argparse
import random
import tempfile
import time
from pathlib import Path

from store_ours import memory

from scrapy_neardup import Deduplicator, Document

WORDS = [f"w{number:05x}" for number in range(30_000)]


def main(count: int, flush: int) -> None:
    """Print the table."""
    source = random.Random(1)
    print(f"{'documents':>10} {'MB':>6} {'in no part':>11} {'a second':>9}")
    with tempfile.TemporaryDirectory() as folder, Deduplicator.open(Path(folder, "store.sqlite")) as dedup:
        began = time.process_time()
        for number in range(1, count + 1):
            text = " ".join(source.choices(WORDS, k=100))
            dedup.claim(Document(url=f"http://h{number % 50}.example/{number}", text=text)).commit()
            if number % flush == 0:
                dedup.flush()
            if number % (count // 10) == 0:
                rate, began = count / 10 / (time.process_time() - began), time.process_time()
                rest = dedup.store.describe()["documents_in_memory"]
                print(f"{number:10,} {memory()[0] / 1e6:6.0f} {rest:11,} {rate:9,.0f}", flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("count", nargs="?", type=int, default=150_000)
    parser.add_argument("--flush", type=int, default=100)
    given = parser.parse_args()
    main(given.count, given.flush)
