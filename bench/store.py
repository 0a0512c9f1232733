"""Measure a store after years of crawls: look-ups, insertion, RAM, disk, opening.

    python bench/store.py [1e5 1e6 1e7] [--inserts 20000]

`store_made.py` describes the documents and writes the store. Another process opens the store with the default settings,
and is measured. "Given" are all documents, "held" those that do not repeat an earlier one.

- look-up: `Matcher.best` with verification. The canonical URL is made before, as a crawl makes it for a request.
- insertion: `add` and `commit` with the visit of the URL, 2,000 a second, while threads write rows and build the index.
  After every 500, a `refresh()`, a `flush(wait=False)` and a `len()` are measured by themselves. A crawl does the first
  two twice a second.
- RAM: what the process gained in own (anonymous) memory and, apart, in mapped pages of files, which the system takes
  back when it needs room.

Median and p99 are medians of five rounds: by the clock, and then by the CPU time of the thread, which other processes
do not change. A store of 1e7 takes 10 GB of disk while it is made, and some GB of RAM. Linux only.
"""

from __future__ import annotations

import argparse
import gc
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from store_made import NEW, OF_FORM, Given, fill, signature

from scrapy_neardup import Deduplicator, Document
from scrapy_neardup.signature import Signature, Visit
from scrapy_neardup.store.stored_index import folder_of
from scrapy_neardup.text.urls import canonical_url

ROUNDS, QUERIES = 5, 1000
SYNC, PAUSE, SETTLE = 500, 0.25, 40  # insertions between two syncs, seconds before it, syncs at the end
KINDS = ("new", "near-copy", "of one form")
Result = dict[str, Any]
Times = list[tuple[float, float]]
Summary = tuple[float, ...]
WHAT = ("median", "p99", "median of work", "p99 of work")


def queries(labels: Sequence[int], count: int) -> dict[str, list[Signature]]:
    """Return signatures to look up, by kind: new documents, near-copies, new documents of a form (store_made.py)."""
    source = np.random.default_rng(3)
    some = [label for label in source.choice(labels, 2 * count).tolist() if label < OF_FORM]
    return {
        "new": [signature(2 * NEW + n, NEW + n) for n in range(count)],
        "near-copy": [signature(label, 2 * NEW + n, changed=2) for n, label in enumerate(some[:count])],
        "of one form": [signature(OF_FORM + NEW + n, 3 * NEW + n) for n in range(count)],
    }


def measure(path: str, inserts: int) -> Result:
    """Measure a store that was built, with its files in the system's cache."""
    labels = np.load(f"{path}.labels.npy")
    asked = queries(labels, ROUNDS * QUERIES)
    new = [signature(4 * NEW + n, 4 * NEW + n) for n in range(inserts)]
    Deduplicator.open().close()  # loads what is not part of the store
    gc.freeze()  # hides what the bench has made from the collector
    size = disk(path)
    warm(path)
    before, start = memory(), time.perf_counter()
    with Deduplicator.open(path) as dedup:
        result: Result = {"open": time.perf_counter() - start, "held": len(labels), "disk": size}
        for kind in KINDS:
            result[kind], result[f"{kind} matched"] = look_up(dedup, asked.pop(kind))
        result |= insert(dedup, new)
        result["ram"], result["mapped"] = grown(before)
        return result


def look_up(dedup: Deduplicator, asked: Sequence[Signature]) -> tuple[Summary, int]:
    """Return the times of look-ups, and the number of signatures that match."""
    matched, times = 0, []

    def best(document: Document) -> None:
        nonlocal matched
        matched += dedup.matcher.best(document, each) is not None

    for each in asked:
        canonical_url(each.url or "")
        times += timed(best, [Document(url=each.url)])
    return summary(times), matched


def insert(dedup: Deduplicator, signatures: list[Signature]) -> Result:
    """Insert documents while threads write rows and build the index, then wait until the threads are done.

    As in a crawl, only the store refers to a document. Otherwise, garbage collections would visit all documents.
    """
    store, times = dedup.store, []
    syncs: dict[str, Times] = {"refresh": [], "flush": [], "len": []}

    def sync() -> None:
        time.sleep(PAUSE)
        calls: dict[str, Callable[[], object]] = {
            "refresh": store.refresh,
            "flush": lambda: store.flush(wait=False),
            "len": lambda: len(store),
        }
        for name, call in calls.items():
            syncs[name] += timed(lambda call: call(), [call])

    worked = time.process_time()
    for number in range(1, (count := len(signatures)) + 1):
        each = signatures.pop()
        canonical_url(each.url or "")
        visit = Visit(each.url or "", each, False, each.first_seen, 20_000)
        times += timed(lambda each, visit=visit: (store.add(each), store.commit(each, visit)), [each])
        if number % SYNC == 0:
            sync()
    for _ in range(SETTLE):
        sync()
    longest = {f"{name}_longest": max(taken)[0] / 1000 for name, taken in syncs.items()}
    cpu = (time.process_time() - worked) / count * 1e6
    return {"insertion": summary(times), "insertion_longest": max(times)[0] / 1000, "insertion_cpu": cpu, **longest}


def timed(call: Callable[[Any], object], arguments: Iterable[Any]) -> Times:
    """Return the microseconds that each call takes by the clock, and in CPU time of this thread."""
    times = []
    for argument in arguments:
        start, work = time.perf_counter_ns(), time.thread_time_ns()
        call(argument)
        worked, took = time.thread_time_ns() - work, time.perf_counter_ns() - start
        times.append((took / 1000, worked / 1000))
    return times


def summary(times: Times) -> Summary:
    """Return the median and p99 by the clock, then those of CPU time. Each figure is the median of the rounds."""
    rounds = np.array_split(np.array(times), ROUNDS)
    values = [np.percentile(part, (50, 99), axis=0).T.ravel() for part in rounds]
    return tuple(np.median(values, axis=0).tolist())


def memory() -> tuple[int, int]:
    """Return the bytes of this process's own memory, and those of mapped files."""
    rows = (line.split() for line in Path("/proc/self/smaps_rollup").read_text().splitlines()[1:])
    sizes = {name: int(size) * 1024 for name, size, _ in rows}
    return sizes["Anonymous:"], sizes["Rss:"] - sizes["Anonymous:"]


def grown(before: tuple[int, int]) -> tuple[int, int]:
    own, mapped = memory()
    return own - before[0], mapped - before[1]


def warm(path: str) -> None:
    """Read a store's files, so that the system's cache has them."""
    for file in files(path):
        with file.open("rb") as opened:
            while opened.read(1 << 24):
                pass


def files(path: str) -> list[Path]:
    return [file for file in (Path(path), Path(f"{path}-wal"), *folder_of(path).rglob("*.idx")) if file.exists()]


def disk(path: str) -> int:
    return sum(file.stat().st_size for file in files(path))


def step(name: str, folder: Path, given: int, inserts: int) -> None:
    """Build or measure a store. Each step has a process of its own, since building does not free all its memory."""
    path = str(folder / "store.sqlite")
    result: Result = {"given": given}
    if name == "build":
        documents = Given.make(given)
        np.save(f"{path}.labels.npy", documents.labels)
        with Deduplicator.open(path) as dedup:
            fill(dedup.store, documents)
        Deduplicator.open(path).close()  # makes the index
    else:
        result |= measure(path, inserts)
    (folder / f"{name}.json").write_text(json.dumps(result))


def measured(given: int, inserts: int) -> Result:
    """Build a store of `given` documents, measure it with `inserts` new ones, and return the figures."""
    result: Result = {}
    with tempfile.TemporaryDirectory() as folder:
        for each in ("build", "measure"):
            command = [sys.executable, __file__, "--step", each, folder, str(given), "--inserts", str(inserts)]
            subprocess.run(command, check=True)
            result |= json.loads(Path(folder, f"{each}.json").read_text())
    return result


def rows(each: Result) -> dict[str, float]:
    """Return the figures of a store by name, in the order in which they are printed."""
    given, held = each["given"], each["held"]
    found = {"documents given": given, "documents held": held, "open, s": each["open"]}
    for name in (*KINDS, "insertion"):
        label = name if name == "insertion" else f"look-up, {name}"
        found |= {f"{label}, {what} µs": value for what, value in zip(WHAT, each[name], strict=True)}
    for name in ("insertion", "flush", "refresh", "len"):
        found[f"longest {name}, ms"] = each[f"{name}_longest"]
    found["insertion, CPU in all, µs"] = each["insertion_cpu"]
    for name in ("ram", "mapped", "disk"):
        found |= {f"{name}, B/given": each[name] / given, f"{name}, B/held": each[name] / held}
    return found


def scaled(results: list[Result]) -> None:
    """Print the figures for all sizes, and the ratio of the largest size to the smallest."""
    columns = [rows(each) for each in results]
    print("\n| scrapy-neardup |", " | ".join(f"{each['given']:,}" for each in results), "| ratio |")
    print(f"|{'---|' * (len(columns) + 2)}")
    for name in columns[0] if columns else ():
        values = [column[name] for column in columns]
        cells = [f"{value:,.4g}" if value < 1e4 else f"{value:,.0f}" for value in values]
        print("|", " | ".join([name, *cells, f"{values[-1] / values[0]:.2f}" if values[0] else ""]), "|")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("documents", type=float, nargs="*", default=[1e5, 1e6, 1e7])
    parser.add_argument("--inserts", type=int, default=20_000)
    parser.add_argument("--step", nargs=3, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.step:
        name, folder, given = options.step
        step(name, Path(folder), int(given), options.inserts)
        return
    scaled([measured(given, options.inserts) for given in map(int, options.documents)])


if __name__ == "__main__":
    main()
