"""How soon one process knows what another one commits to the same store in a file.

    python bench/together.py [--documents 200] [--pause 0.03]

One process commits a document every so many seconds, and flushes nothing itself; the other asks for each until it is
found. Both take their time from the system's monotonic clock, from the commit to the answer. Linux only.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from store_made import signature

from scrapy_neardup import Deduplicator


def write(path: str, documents: int, pause: float) -> None:
    """Commit documents once a line comes; print when each was committed."""
    with Deduplicator.open(path) as dedup:
        sys.stdin.readline()
        for number in range(documents):
            time.sleep(pause)
            each = signature(number, number)
            dedup.store.add(each)
            dedup.store.commit(each)
            print(time.monotonic())


def found_at(dedup: Deduplicator, number: int) -> float:
    """Return when a document was found."""
    asked = signature(number, number)
    while not any(dedup.store.find(asked)):
        time.sleep(0.0005)
    return time.monotonic()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--documents", type=int, default=200)
    parser.add_argument("--pause", type=float, default=0.03, help="seconds between two commits")
    parser.add_argument("--write", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.write:
        write(options.write, options.documents, options.pause)
        return
    with tempfile.TemporaryDirectory() as folder, Deduplicator.open(path := str(Path(folder, "store.sqlite"))) as dedup:
        command = [sys.executable, __file__, "--write", path, "--documents", str(options.documents)]
        with subprocess.Popen([*command, "--pause", str(options.pause)], stdin=-1, stdout=-1, text=True) as process:
            assert process.stdin
            print(file=process.stdin, flush=True)
            found = [found_at(dedup, number) for number in range(options.documents)]
            committed = [float(line) for line in process.stdout or ()]
    took = 1000 * (np.array(found) - np.array(committed))
    print(
        "ms from commit to find: median {:.1f}, p99 {:.1f}, longest {:.1f}".format(*np.percentile(took, (50, 99, 100)))
    )


if __name__ == "__main__":
    main()
