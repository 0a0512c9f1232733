"""`scrapy neardup compact`: make a store as small as it can be."""

from __future__ import annotations

import argparse

from scrapy.settings import BaseSettings

from ..store.upkeep import compact, size
from .options import add_json, add_store, existing_store, print_result

EXAMPLES = """examples:
  scrapy neardup compact
  scrapy neardup compact --store neardup.sqlite

Room is used again while a store is written: call this after much was forgotten, or before a backup. A crawl may go on.
What it writes waits meanwhile, some seconds a gigabyte.
On a server the bytes are those of all that it holds, whoever wrote it.
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_store(parser)
    add_json(parser)


def run(opts: argparse.Namespace, settings: BaseSettings) -> None:
    store = existing_store(opts, settings)
    before = size(store)
    compact(store)
    after = size(store)
    if opts.json:
        print_result({"bytes_before": before, "bytes_now": after}, as_json=True)
    else:
        print(f"{before} bytes before, {after} now")
