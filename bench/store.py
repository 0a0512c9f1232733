"""What a store costs that has been crawled into for years: look-ups, insertion, RAM, disk, opening; peers beside it.

    python bench/store.py [1e5 1e6 1e7] [--peers 1e6] [--inserts 20000] [--json FILE]

`store_made.py` says what the documents are like and writes the store; another process opens it, with the default
settings, and is measured. "Given" are all documents, "held" those that repeat none before them.

- look-up: `Matcher.best`, verification included; the URL's canonical form was made before, for the request;
- insertion: `add` and `commit` with the URL's visit, 2,000 a second, with the threads that write and build, and every
  500 a `flush(wait=False)`, `refresh()` and `len()`, as a crawl does twice a second: those are apart;
- RAM: what grew in that process: its own (anonymous) memory and, apart, the mapped pages of files, which the system
  takes back when it needs room;
- cold: none of the store's files is in the system's cache.

Median and p99 are the medians of five rounds, by the clock, then of the thread's own work: what they would be if other
processes did not keep the machine busy. Peers hold what the store holds; they get five minutes and 12 GB. A store of
1e7 takes 10 GB of disk while it is made, and some GB of RAM. Linux only.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
from store_made import Given, build
from store_ours import KINDS, Result, measure, measure_cold
from store_peers import PEERS, measure_peer

OURS, STEPS = "scrapy-neardup", {"cold": measure_cold, "measure": measure}
WHAT = ("median", "p99", "median of work", "p99 of work")
PATIENCE = 300  # seconds, with a peer


def step(name: str, folder: Path, given: int, inserts: int) -> None:
    """Do in a process of its own what is measured, or would leave memory behind."""
    path = str(folder / "store.sqlite")
    result: Result = {"name": name, "given": given}
    if name == "build":
        documents = Given.make(given)
        np.save(f"{path}.labels.npy", documents.labels)
        build(path, documents)
    elif name in PEERS:
        result |= measure_peer(PEERS[name], folder, Given.make(given).labels.tolist())
    else:
        result |= STEPS[name](path, inserts)
    (folder / f"{name}.json").write_text(json.dumps(result))


def child(name: str, given: int, inserts: int) -> Result:
    """Run steps, and return what they measured, or why they did not."""
    result: Result = {"name": name, "given": given}
    with tempfile.TemporaryDirectory() as folder:
        for each in ("build", *STEPS) if name == OURS else (name,):
            command = [sys.executable, __file__, "--step", each, folder, str(given), "--inserts", str(inserts)]
            try:
                subprocess.run(command, check=True, timeout=PATIENCE if each in PEERS else None)
            except subprocess.TimeoutExpired:
                return {**result, "skipped": f"not done in {PATIENCE} s"}
            except subprocess.CalledProcessError as error:
                return {**result, "skipped": f"failed with status {error.returncode}, see above"}
            result = {**json.loads(Path(folder, f"{each}.json").read_text()), **result}
    return result


def compared(results: list[Result]) -> None:
    """Print everyone side by side."""
    kinds = " | ".join(f"look-up, {kind}" for kind in KINDS)
    print("\nMicroseconds, median / p99 / both of work; bytes per document held\n")
    print(f"| | given | held | {kinds} | insertion | own RAM | mapped | disk |\n|{'---|' * (7 + len(KINDS))}")
    for each in results:
        cells = [each["name"], f"{each['given']:,}"]
        if "skipped" in each:
            cells += [each["skipped"]]
        else:
            cells += [f"{each['held']:,}", *(pair(each[kind]) for kind in (*KINDS, "insertion"))]
            cells += [f"{each[name] / each['held']:,.0f}" for name in ("ram", "mapped", "disk")]
        print("| " + " | ".join(cells) + " |")


def pair(times: list[float]) -> str:
    return " / ".join(f"{value:,.0f}" for value in times)


def rows(each: Result) -> dict[str, float]:
    """Return what is measured of the store, in the order in which it is printed."""
    given, held = each["given"], each["held"]
    found = {"documents given": given, "documents held": held, "parts": len(each["parts"])}
    for name in (*KINDS, "new_cold", "insertion"):
        label = {"new_cold": "first look-ups, new, cold"}.get(name, name if name == "insertion" else f"look-up, {name}")
        found |= {f"{label}, {what} µs": value for what, value in zip(WHAT, each[name], strict=True)}
    for name in ("insertion", "flush", "refresh", "len"):
        found[f"longest {name}, ms"] = each[f"{name}_longest"]
    found |= {
        "insertion, CPU in all, µs": each["insertion_cpu"],
        "open, s": each["open"],
        "open, cold, s": each["open_cold"],
    }
    for name, ram in (("opened", each["ram_opened"]), ("looked up", each["ram_looked_up"])):
        found |= {f"own RAM, {name}, B/given": ram[0] / given, f"mapped, {name}, B/given": ram[1] / given}
    found |= {"own RAM, inserted, B/given": each["ram"] / given, "own RAM, inserted, B/held": each["ram"] / held}
    for name, size in (("disk", each["disk"]), ("index, on disk", each["index"])):
        found |= {f"{name}, B/given": size / given, f"{name}, B/held": size / held}
    return found | {f"{name}(), ms": each[name] for name in ("len", "describe", "degrees")}


def scaled(results: list[Result]) -> None:
    """Print the store at all sizes, and how much more it costs at the largest than at the smallest."""
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
    parser.add_argument("--peers", type=float, default=1e6, help="of how many documents at most; 0 for no peers")
    parser.add_argument("--inserts", type=int, default=20_000)
    parser.add_argument("--json", type=Path, metavar="FILE")
    parser.add_argument("--step", nargs=3, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.step:
        name, folder, given = options.step
        step(name, Path(folder), int(given), options.inserts)
        return
    results: list[Result] = []
    for name in (OURS, *PEERS):
        for given in map(int, options.documents):
            if name in PEERS and given > options.peers:
                results.append({"name": name, "given": given, "skipped": "more than --peers"})
            else:
                results.append(child(name, given, options.inserts))
            print(json.dumps(results[-1]), file=sys.stderr, flush=True)
    compared(results)
    scaled([each for each in results if each["name"] == OURS and "skipped" not in each])
    if options.json:
        options.json.write_text(json.dumps(results, indent=1))


if __name__ == "__main__":
    main()
