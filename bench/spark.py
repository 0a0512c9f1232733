"""Compare `scrapy_neardup.spark` with `scrapy neardup dedupe`: the clusters and the time.

    python bench/spark.py DIR… [--cores 2]

DIR has docs.jsonl (id, text), as for `scrapy neardup lab evaluate`. Java and the extra `spark` are needed. Both
commands read the same file, and write what they keep and drop. Times are those of whole processes. For Spark, the time
without its start is also given; the start is the time of the same command on one document.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

LOCAL = [sys.executable, "-m", "scrapy", "neardup", "dedupe"]
SPARK = [sys.executable, "-m", "scrapy_neardup.spark"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", nargs="+", metavar="DIR")
    parser.add_argument("--cores", type=int, default=2)
    opts = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        one = Path(folder, "one.jsonl")
        one.write_text(json.dumps({"id": 1, "text": "one document"}) + "\n")
        start = timed(SPARK, one, opts.cores)[1]
        print(f"start of Spark: {start:.1f} s, on {opts.cores} cores")
        for name in opts.folders:
            compare(name, Path(name, "docs.jsonl"), start, opts.cores)


def without_start(rows: int, seconds: float, start: float) -> str:
    if seconds < 1.2 * start:
        return "no more than its start takes, which varies"
    return f"{rows / (seconds - start):.0f} without its start"


def compare(name: str, feed: Path, start: float, cores: int) -> None:
    """Print the time of both, and each document on which they decide differently."""
    with feed.open(encoding="utf-8") as file:
        rows = sum(1 for _ in file)
    (local, local_seconds), (spark, seconds) = timed(LOCAL, feed, cores), timed(SPARK, feed, cores)
    different = sorted(k for k in local.keys() | spark.keys() if local.get(k) != spark.get(k))
    print(
        f"{name}: {rows} documents, {len(local)} duplicates; decided otherwise: {len(different)};"
        f" dedupe {rows / local_seconds:.0f} docs/s, Spark {rows / seconds:.0f} docs/s"
        f" ({without_start(rows, seconds, start)})",
        flush=True,
    )
    for key in different:
        print(f"  {key}: a duplicate of {local.get(key)} for dedupe, of {spark.get(key)} on Spark")


def timed(command: list[str], feed: Path, cores: int) -> tuple[dict[Any, Any], float]:
    """Run a command. Return the originals of documents, and the seconds that the command took."""
    options = f"--master local[{cores}] --conf spark.ui.enabled=false --conf spark.sql.shuffle.partitions={2 * cores}"
    options += " --conf spark.driver.host=127.0.0.1 --conf spark.driver.bindAddress=127.0.0.1 pyspark-shell"
    with tempfile.TemporaryDirectory() as folder:
        kept, why = Path(folder, "kept.jsonl"), Path(folder, "why.jsonl")
        files = [str(feed), "-o", str(kept), "--duplicates", str(why), "--id-field", "id"]
        began = time.perf_counter()
        made = subprocess.run(
            [*command, *files], env={**os.environ, "PYSPARK_SUBMIT_ARGS": options}, capture_output=True, text=True
        )
        seconds = time.perf_counter() - began
        if made.returncode:
            sys.exit(made.stderr[-2000:])
        return {row["id"]: row["duplicate_of"] for row in read(why)}, seconds


def read(path: Path) -> Iterator[Any]:
    for part in sorted(path.glob("part-*")) if path.is_dir() else [path]:
        yield from map(json.loads, part.read_text(encoding="utf-8").splitlines())


if __name__ == "__main__":
    main()
