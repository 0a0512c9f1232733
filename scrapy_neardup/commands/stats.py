"""`scrapy neardup stats`: count what a store holds, list its runs, or check its rows."""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import asdict
from typing import Any

from scrapy.settings import BaseSettings

from ..detectors import Detector
from ..detectors.detector import build_detectors
from ..stats import plural, sized
from ..store import Store, StoreError, named, open_store
from ..store.records import Run
from ..store.verification import verify
from .options import add_json, add_store, existing, existing_store
from .output import Moment, print_lines, print_result


def add_stats(parser: argparse.ArgumentParser) -> None:
    add = parser.add_mutually_exclusive_group().add_argument
    add("--runs", action="store_true", help="list the runs, oldest first, with what they came to")
    add("--check", action="store_true", help="check every row, and list damage with its cost and a remedy")
    add_store(parser)
    add_json(parser)


def run_stats(opts: argparse.Namespace, settings: BaseSettings) -> None:
    """Count what a store holds, list its runs, or check its rows.

    example:
      scrapy neardup stats --store neardup.sqlite --json

    clusters: documents that have copies. copies: URLs that repeat a document. urls: URLs that the store knows.
    bytes: the size of the store on disk; bytes_server: of all data on the server. A run is closed, alive (a process has
    it open), or died; the next run forgets or keeps the documents of a dead one, as NEARDUP_UNCLEAN_RUN says.
    --check reads all namespaces, also while crawls run. The exit code is 2 if a row is damaged.
    """
    if opts.check:
        _check(existing_store(opts, settings), as_json=opts.json)
        return
    config = existing(opts, settings)
    detectors = () if opts.runs else build_detectors(config)
    with closing(open_store(config.store, detectors, namespace=config.namespace, run=None)) as store:
        if opts.runs:
            runs = _runs(store)
            print_lines([*map(_line, runs), plural(len(runs), "run")], runs, as_json=opts.json)
        else:
            print_result(_figures(store, detectors, readable=not opts.json), as_json=opts.json)


def _figures(store: Store, detectors: Sequence[Detector], *, readable: bool) -> dict[str, object]:
    """Return the counts and sizes of a store; with `readable`, sizes with units."""
    repeats = [signature.repeats for signature in store.signatures()]
    described = store.describe()
    sizes = {name: sized(value) for name, value in described.items() if name[:5] == "bytes" and isinstance(value, int)}
    return {
        "documents": len(store),
        "clusters": sum(map(bool, repeats)),
        "copies": sum(repeats),
        "detectors": ", ".join(detector.name for detector in detectors),
        **described,
        **(sizes if readable else {}),
    }


# Runs


def _runs(store: Store) -> list[dict[str, Any]]:
    dead = {run.id for run in died(store)}
    return [
        {
            "run": run.id,
            "writer": run.writer,
            "started": Moment(run.started),
            "state": _state(run, is_dead=run.id in dead),
            "closed": Moment(run.closed) if run.closed else None,
            "forgotten": _share_forgotten(run),
            "stats": dict(run.stats),
        }
        for run in store.runs()
    ]


def _state(run: Run, *, is_dead: bool) -> str:
    """Return the state of a run. A dead run that a later run ended has died, unless its documents were kept."""
    if run.closed is not None and run.closed == run.paused:
        return "closed"
    return "died" if run.closed is not None or is_dead else "alive"


def died(store: Store) -> list[Run]:
    """Return the dead runs: never closed, and open in no process."""
    found = {run.id for run in store.runs() if run.closed is None and not store.is_alive(run.id)}
    return [run for run in store.runs() if run.closed is None and run.id in found]  # a run may have closed meanwhile


def _share_forgotten(run: Run) -> str | None:
    """Return how much of a run was forgotten: "all", "part", or None for nothing."""
    if not run.forgotten:
        return None
    reached = 0
    for first, last in sorted(run.forgotten):
        reached = max(reached, last) if first <= reached + 1 else reached
    return "all" if reached >= run.sealed else "part"


def _line(run: Mapping[str, Any]) -> str:
    state = f"closed {run['closed']}" if run["state"] == "closed" else run["state"]
    line = f"{run['run']}  {run['writer'] or '-':15}  started {run['started']}  {state:26}  {', '.join(_came_to(run))}"
    return line.rstrip()


def _came_to(run: Mapping[str, Any]) -> Iterator[str]:
    stats = Counter(run["stats"])
    if stats["audit"]:
        yield "audit"
    if stats["documents"]:
        yield f"{plural(stats['documents'], 'document')}, {plural(stats['duplicates'], 'duplicate')}"
    if stats["requests/skipped"]:
        yield f"{plural(stats['requests/skipped'], 'request')} saved"
    if stats["forgot/urls"]:
        yield f"forgot {plural(stats['forgot/documents'], 'document')} and {plural(stats['forgot/urls'], 'URL')}"
    if run["forgotten"]:
        yield "forgotten" if run["forgotten"] == "all" else "forgotten in part"


# Damage


def _check(address: str, *, as_json: bool) -> None:
    survey, store = verify(address), named(address)
    found = survey.findings
    if not as_json:
        told = [[each.what, f"  costs: {each.costs}", f"  to do: {each.to_do}"] for each in found]
        print_lines(line for lines in told for line in lines)
    result = {"store": store, **survey.read, "whole": survey.whole}
    print_result({**result, "findings": [*map(asdict, found)]} if as_json else result, as_json=as_json)
    if damaged := sum(not finding.harmless for finding in found):
        raise StoreError(
            f"store {store!r} is damaged, see the list ({plural(damaged, 'finding')}); it was left as it is"
        )
