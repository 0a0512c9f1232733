"""`scrapy neardup changes`: list the pages that are new, changed, moved or gone since the crawl before."""

from __future__ import annotations

import argparse
from collections.abc import Iterator

from scrapy.settings import BaseSettings

from ..report.changes import KINDS, Change, changes, counted, in_words, last_crawl
from ..settings import Config
from ..store import Store, StoreError, open_store
from ..store.runs import Run
from ..text.json_text import json_text
from .options import add_json, add_store, existing, print_table

EXAMPLES = """examples:
  scrapy neardup changes
  scrapy neardup changes --kind changed gone --json
  scrapy neardup changes --run 261123-185404-5d1c

new: a new URL with new content. changed: other content than at the visit before, with the resemblance of both. back:
content that the URL had before that. moved: known content at a new URL, while its own URL was not seen. gone: content
of the crawl before that no URL has now. A URL that changed in several runs is listed under the last of them.
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
        found = sorted(_changes(store, opts.run, config), key=lambda change: (KINDS.index(change.kind), change.url))
    finally:
        store.close()
    listed = [change for change in found if change.kind in opts.kind]
    if opts.json:
        print(json_text([change._asdict() for change in listed], indent=2))
    else:
        print_table(*map(_line, listed))
        print(in_words(counted(found)))


def _changes(store: Store, id: str | None, config: Config) -> Iterator[Change]:
    run = _named(store, id) if id else last_crawl(store)
    return changes(store, run, config) if run else iter(())


def _named(store: Store, id: str) -> Run:
    for run in store.runs():
        if run.id == id:
            return run
    raise StoreError(f"{id!r} is not a run of this store; allowed are those that `scrapy neardup runs` lists")


def _line(change: Change) -> str:
    former = f"  (before: {change.former_url})" if change.former_url else ""
    resemblance = "" if change.resemblance is None else change.resemblance
    return f"{change.kind:7}  {resemblance:6}  {change.url}{former}"
