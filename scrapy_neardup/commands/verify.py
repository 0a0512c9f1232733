"""`scrapy neardup verify`: reads all of a store, and says whether it is whole."""

from __future__ import annotations

import argparse

from scrapy.settings import BaseSettings

from .options import add_json, add_store, open_existing, print_result

EXAMPLES = """examples:
  scrapy neardup verify --store neardup.sqlite
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_store(parser)
    add_json(parser)


def run(opts: argparse.Namespace, settings: BaseSettings) -> None:
    # Opening reads every row, and refuses the first that is damaged.
    with open_existing(opts, settings) as dedup:
        dedup.store.check()
        print_result({**dedup.store.describe(), "documents": len(dedup), "whole": True}, as_json=opts.json)
