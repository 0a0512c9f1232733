"""`scrapy neardup compact`: give unused space of a store back to the system."""

from __future__ import annotations

import argparse

from scrapy.settings import BaseSettings

from ..stats import sized
from ..store import compact, size
from .options import add_json, add_store, existing_store, print_result

EXAMPLES = """examples:
  scrapy neardup compact
  scrapy neardup compact --store neardup.sqlite

A store reuses its free space, so compact it only after many documents were forgotten, or before a backup. Crawls may
run meanwhile, but their writes wait for some seconds per gigabyte. For a store on a server, the printed sizes are those
of all data on the server.
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
        print(f"{sized(before)} before, {sized(after)} now")
