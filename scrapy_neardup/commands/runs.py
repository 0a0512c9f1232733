"""`scrapy neardup runs`: list the runs of a store and how they ended."""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

from scrapy.settings import BaseSettings

from ..feeds.json_text import json_text
from ..stats import plural
from ..store import Store, open_store
from ..store.records import Run
from .options import add_json, add_store, existing, print_table
from .times import Moment

EXAMPLES = """examples:
  scrapy neardup runs
  scrapy neardup runs --store neardup.sqlite --json

Runs are listed with their spider or command, oldest first. alive: a process has the run open. died: the process ended
without closing the run. The next run of the namespace then forgets or keeps the documents of the dead run, see
NEARDUP_UNCLEAN_RUN. A paused crawl is closed, and shows the time of its last pause.
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_store(parser)
    add_json(parser)


def run(opts: argparse.Namespace, settings: BaseSettings) -> None:
    config = existing(opts, settings)
    store = open_store(config.store, (), namespace=config.namespace, run=None)
    try:
        runs = _described(store)
    finally:
        store.close()
    if opts.json:
        print(json_text(runs, indent=2))
    else:
        print_table(*map(_line, runs), plural(len(runs), "run"))


def _described(store: Store) -> list[dict[str, Any]]:
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
