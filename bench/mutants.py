"""Count the small mistakes that the tests would notice: the quick tier, and all tests.

    python bench/mutants.py OUT.jsonl [--mutants 60] [--seed 1] [--workers 1] [--only PATH…] [--tests PATH…]
                            [--until reach|quick|slow]

Draws mutants of the decisions, the stores and the glue to Scrapy (see mutant_kinds.py) and runs tests against each, up
to the first that fails or until twice the time that a clean run takes:

- reach: tests that come by the line in their own process, the fastest first, 20 s of them;
- quick: the tests without the mark `slow`, on two cores;
- slow: the others, for what survives.

First come clean runs of all that, one under coverage. Results are added to OUT.jsonl as they come: another call goes on
from there, as long as neither package nor tests change. What survives is printed, to be looked at: some is equivalent.

Why not mutmut 3 or cosmic-ray 8: mutmut runs, for a mutant, the tests that call its function in their own process, and
what a test forks or starts imports the installed package and not its mutants/; here stores are killed, locked and
crawled in processes of their own. cosmic-ray changes the checkout in place, runs one command for every mutant, so the
whole tier, and ends that command's process group, which tests leave. Linux only; needs `prlimit`.
"""

from __future__ import annotations

import argparse
import json
import queue
import random
import signal
import sys
import tempfile
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import suppress
from itertools import accumulate
from pathlib import Path
from statistics import median
from typing import Any

from mutant_kinds import Mutant, mutants
from mutant_tree import ROOT, Ended, Tree, digest
from options import new_file, positive

DECISIONS = ("crawl", "matching", "mirrors", "store", "deduplicator.py", "verdict.py")
ROOMS = [f"scrapy_neardup/{each}" for each in DECISIONS]
STAGES = ("reach", "quick", "slow")
REACHING = 20.0  # seconds of tests that come first; with more, the quick tier on two cores is as fast
SLACK = 60.0  # seconds, for the start of pytest on a busy machine


class Clean:
    """Clean runs: the tests that reach a line, and how long a stage takes."""

    def __init__(self, tests: list[str], path: Path) -> None:
        self._tests, self._path, self._of = tests, path, [digest(), tests]
        self._runs: dict[str, Any] = json.loads(path.read_text()) if path.exists() else {}
        if self._runs.get("of") != self._of:
            self._runs = {"of": self._of, "limits": {}}

    def run(self, tree: Tree, stage: str) -> None:
        """Run a stage, unless it was run before on these sources."""
        if stage in self._runs["limits"]:
            return
        print(f"clean run: {stage}", flush=True)
        reach = tree.root.parent / "reach.json"
        script = str(tree.root / "bench" / "mutant_reach.py")
        if stage == "reach":
            ended = tree.run(script, str(reach), *self._of_tier(stage))
        else:
            ended = tree.pytest(*self._of_tier(stage))
        if ended.failed:
            sys.exit(f"{tree.said()}\nfails without a mutant: {ended.failed}")
        if stage == "reach":
            self._runs |= json.loads(reach.read_text())
        self._runs["limits"][stage] = SLACK + 2 * (REACHING if stage == "reach" else ended.seconds)
        self._path.write_text(json.dumps(self._runs))

    def judge(self, mutant: Mutant, tree: Tree, stage: str) -> Ended:
        """Run a stage on a tree that holds a mutant."""
        options = self._reaching(mutant) if stage == "reach" else self._of_tier(stage)
        return tree.pytest(*options, limit=self._runs["limits"][stage]) if options else Ended("", 0.0)

    def _of_tier(self, stage: str) -> list[str]:
        return ["-n0" if stage == "reach" else "-n2", "-m", "slow" if stage == "slow" else "not slow", *self._tests]

    def _reaching(self, mutant: Mutant) -> list[str]:
        """Return options for the tests that reach the line or, where it runs on import only, the file."""
        lines, seconds = self._runs["lines"].get(mutant.path, {}), self._runs["seconds"]
        tests = lines.get(str(mutant.line), [])
        if "" in tests:
            tests = {test for some in lines.values() for test in some} - {""}
        fastest = sorted(tests, key=lambda test: (seconds[test], test))
        until = accumulate(seconds[test] for test in fastest)
        chosen = [test for test, total in zip(fastest, until, strict=True) if total <= REACHING]
        return ["-n0", "-m", "not slow", *chosen] if chosen else []


def drawn(only: Iterable[str], count: int, seed: int) -> list[Mutant]:
    """Return mutants drawn at random."""
    paths = sorted({path for name in only for path in files(ROOT / name)})
    found = [mutant for path in paths for mutant in mutants(str(path.relative_to(ROOT)), path.read_bytes())]
    return random.Random(seed).sample(found, min(count, len(found)))


def files(path: Path) -> list[Path]:
    if not path.exists():
        sys.exit(f"{path} is not there")
    return [path] if path.is_file() else [*path.rglob("*.py")]


def judged(mutant: Mutant, earlier: dict[str, Any], tree: Tree, clean: Clean, stages: Iterable[str]) -> dict[str, Any]:
    """Return the outcome of each stage for a mutant; `earlier` holds the stages that were run before."""
    row = {"place": mutant.place, "before": mutant.before, "after": mutant.after, "by": "", "seconds": {}, **earlier}
    with tree.changed(mutant):
        for stage in stages:
            if not row["by"] and stage not in row["seconds"]:
                ended = clean.judge(mutant, tree, stage)
                row["by"], row["seconds"][stage] = ended.failed, round(ended.seconds, 1)
    return row


class Run:
    """Mutants and their outcomes: a row each, in a file that another run goes on with."""

    def __init__(self, found: Iterable[Mutant], path: Path, stages: Sequence[str]) -> None:
        of = digest()
        self._mutants = {json.dumps([of, *mutant]): mutant for mutant in found}
        self._path, self._stages = path, stages
        earlier = map(json.loads, path.read_text().splitlines()) if path.exists() else ()
        self._rows = {row["key"]: row for row in earlier if row["key"] in self._mutants}

    def judge(self, trees: Sequence[Tree], clean: Clean) -> None:
        """Judge the mutants that are left, one at a time in a tree."""
        idle: queue.Queue[Tree] = queue.Queue()
        for tree in trees:
            idle.put(tree)

        def judge(key: str) -> dict[str, Any]:
            tree = idle.get()
            try:
                earlier = {"key": key, **self._rows.get(key, {})}
                return judged(self._mutants[key], earlier, tree, clean, self._stages)
            finally:
                idle.put(tree)

        with ThreadPoolExecutor(len(trees)) as pool, self._path.open("a") as file:
            tasks = [pool.submit(judge, key) for key in self._mutants if self._is_left(key)]
            try:
                for number, task in enumerate(as_completed(tasks), 1):
                    row = task.result()
                    self._rows[row["key"]] = row
                    print(json.dumps(row), file=file, flush=True)
                    print(f"{number}/{len(tasks)} {line(row)}", flush=True)
            except BaseException:
                pool.shutdown(wait=False, cancel_futures=True)
                for tree in trees:
                    tree.stop()
                raise

    def _is_left(self, key: str) -> bool:
        row = self._rows.get(key)
        return row is None or not (row["by"] or self._stages[-1] in row["seconds"])

    def print(self) -> None:
        if not (rows := sorted(self._rows.values(), key=lambda row: row["place"])):
            return
        survivors = [row for row in rows if not row["by"]]
        slow = [row for row in rows if row["by"] and "slow" in row["seconds"]]  # its stages end with the one that kills
        quick, seconds = len(rows) - len(survivors) - len(slow), [sum(row["seconds"].values()) for row in rows]
        print(f"\n{len(rows)} mutants, {median(seconds):.0f} s each (median), {sum(seconds):.0f} s in all")
        print(f"killed by stages up to {self._stages[:2][-1]}: {quick}, {quick / len(rows):.0%}")
        if "slow" in self._stages:
            print(f"killed by all tests: {quick + len(slow)}, {(quick + len(slow)) / len(rows):.0%}")
        for title, some in (("killed by slow tests only", slow), ("survivors", survivors)):
            print(f"\n{title}:", *map(line, some), sep="\n")


def line(row: dict[str, Any]) -> str:
    stages = row["seconds"]
    outcome = f"{[*stages][-1]}: {row['by']}" if row["by"] else "survives"
    return f"{row['place']}  {row['before'][:80]} -> {row['after'][:80]}  [{outcome}, {sum(stages.values()):.0f} s]"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=new_file, metavar="OUT.jsonl")
    parser.add_argument("--mutants", type=positive, default=60)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--workers", type=positive, default=1, help="mutants at once, each in a copy of the checkout")
    parser.add_argument("--only", nargs="+", default=ROOMS, metavar="PATH", help="files and folders to change")
    parser.add_argument("--tests", nargs="+", default=[], metavar="PATH", help="tests to run; otherwise all")
    parser.add_argument("--until", choices=STAGES, default=STAGES[-1])
    opts = parser.parse_args()
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    stages = STAGES[: STAGES.index(opts.until) + 1]
    run = Run(drawn(opts.only, opts.mutants, opts.seed), opts.out, stages)
    clean = Clean(opts.tests, opts.out.with_suffix(".clean.json"))
    with suppress(KeyboardInterrupt), tempfile.TemporaryDirectory(prefix="mutants") as folder:
        trees = [Tree(Path(folder).resolve() / str(number)) for number in range(opts.workers)]
        for stage in stages:
            clean.run(trees[0], stage)
        run.judge(trees, clean)
    run.print()


if __name__ == "__main__":
    main()
