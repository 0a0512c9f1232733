"""`scrapy neardup stats`: what a store holds."""

from __future__ import annotations

import argparse

from scrapy.settings import BaseSettings

from ..dedup import Deduplicator
from .options import add_json, add_store, open_existing, print_result

EXAMPLES = """examples:
  scrapy neardup stats
  scrapy neardup stats --store neardup.sqlite --json
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_store(parser)
    add_json(parser)


def run(opts: argparse.Namespace, settings: BaseSettings) -> None:
    with open_existing(opts, settings) as dedup:
        print_result(_summary(dedup), as_json=opts.json)


def _summary(dedup: Deduplicator) -> dict[str, object]:
    store = dedup.store
    mirrors = list(store.degrees())
    return {
        "documents": len(store),
        "clusters": sum(1 for degree in mirrors if degree),
        "mirrors": sum(mirrors),
        "detectors": ", ".join(detector.name for detector in dedup.detectors),
        **store.describe(),
    }
