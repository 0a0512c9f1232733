"""`scrapy neardup changes`: list the pages that are new, changed, back, moved or gone since the previous crawl."""

from __future__ import annotations

import argparse
import sys

from scrapy.settings import BaseSettings

from ..feeds.json_text import json_text
from ..report.changes import KINDS, NOT_FULL, Change, changes, counted, in_words, kinds_of, last_crawl
from ..store import Store, StoreError, open_store
from ..store.records import Run
from .options import add_json, add_store, existing, print_table

EXAMPLES = """examples:
  scrapy neardup changes
  scrapy neardup changes --kind changed gone --json
  scrapy neardup changes --run 261123-185404-5d1c

new: a new URL with new content. changed: content that differs from that of the last visit, with the resemblance of the
two. back: changed to the content that was first found at this URL. moved: held content at a new URL, if no earlier URL
was seen with it. gone: content of the previous crawl that no URL has now. A URL that changed in several runs is listed
under the last of them. Moved and gone pages are listed only for a crawl that finished and left out no pages.
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--run", metavar="R", help="the run to list, see `runs` (default: the last crawl)")
    parser.add_argument(
        "--kind", nargs="+", choices=KINDS, default=KINDS, metavar="K", help="only these kinds (default: all)"
    )
    add_store(parser)
    add_json(parser)


def run(opts: argparse.Namespace, settings: BaseSettings) -> None:
    config = existing(opts, settings)
    store = open_store(config.store, (), namespace=config.namespace, run=None)
    try:
        run = _named(store, opts.run) if opts.run else last_crawl(store)
        found = list(changes(store, run)) if run else []
    finally:
        store.close()
    listed = sorted(
        (change for change in found if change.kind in opts.kind),
        key=lambda change: (KINDS.index(change.kind), change.url),
    )
    if opts.json:
        print(json_text([change._asdict() for change in listed], indent=2))
    else:
        print_table(*map(_line, listed))
        print(in_words(counted(listed, opts.kind)))
    if run and not set(opts.kind) <= set(kinds_of(run)):
        print(f"{NOT_FULL}.", file=sys.stderr)


def _named(store: Store, id: str) -> Run:
    for run in store.runs():
        if run.id == id:
            return run
    raise StoreError(f"{id!r} is not a run of this store; allowed are those that `scrapy neardup runs` lists")


def _line(change: Change) -> str:
    former = f"  (before: {change.former_url})" if change.former_url else ""
    resemblance = "" if change.resemblance is None else change.resemblance
    return f"{change.kind:7}  {resemblance:6}  {change.url}{former}"
