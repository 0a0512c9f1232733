"""`scrapy neardup changes`: list the pages that are new, changed, moved or gone since the previous crawl."""

from __future__ import annotations

import argparse
import sys
from contextlib import closing

from scrapy.settings import BaseSettings

from ..report.changes import KINDS, NOT_FULL, Change, changes, counted, in_words, kinds_of, last_crawl
from ..store import Store, StoreError, open_store
from ..store.records import Run
from .options import add_json, add_store, existing
from .output import print_lines


def add_changes(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("--run", metavar="R", help="the run to list, see `stats --runs` (default: the last crawl)")
    add("--kind", nargs="+", choices=KINDS, default=KINDS, metavar="K", help="only these kinds (default: all)")
    add_store(parser)
    add_json(parser)


def run_changes(opts: argparse.Namespace, settings: BaseSettings) -> None:
    """List the pages that are new, changed, moved or gone since the previous crawl.

    example:
      scrapy neardup changes --kind changed gone

    new: a new URL with new content. changed: content that differs from that of the last visit, with the resemblance of
    the two. moved: held content at a new URL, if no earlier URL was seen with it. gone: content of the previous crawl
    that no URL has now. A URL that changed in several runs is listed under the last of them. Moved and gone pages are
    listed only for a crawl that finished and left out no pages.
    """
    config = existing(opts, settings)
    with closing(open_store(config.store, (), namespace=config.namespace, run=None)) as store:
        run = _named(store, opts.run) if opts.run else last_crawl(store)
        found = list(changes(store, run)) if run else []
    chosen = (change for change in found if change.kind in opts.kind)
    listed = sorted(chosen, key=lambda change: (KINDS.index(change.kind), change.url))
    lines = [*map(_line, listed), in_words(counted(listed, opts.kind))]
    print_lines(lines, [change._asdict() for change in listed], as_json=opts.json)
    if run and not set(opts.kind) <= set(kinds_of(run)):
        print(f"{NOT_FULL}.", file=sys.stderr)


def _named(store: Store, id: str) -> Run:
    for run in store.runs():
        if run.id == id:
            return run
    raise StoreError(f"{id!r} is not a run of this store; allowed are those that `scrapy neardup stats --runs` lists")


def _line(change: Change) -> str:
    former = f"  (before: {change.former_url})" if change.former_url else ""
    resemblance = "" if change.resemblance is None else change.resemblance
    return f"{change.kind:7}  {resemblance:6}  {change.url}{former}"
