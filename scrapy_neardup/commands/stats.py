"""`scrapy neardup stats`: count what a store holds, and its size."""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from pathlib import Path

from scrapy.settings import BaseSettings

from ..detectors import Detector
from ..detectors.registry import build_detectors
from ..stats import sized
from ..store import Store, open_store
from .options import add_json, add_store, existing, print_result

EXAMPLES = """examples:
  scrapy neardup stats
  scrapy neardup stats --store neardup.sqlite --json

clusters: documents that have copies. copies: URLs that repeat a document. urls: URLs that the store knows.
bytes: the size of the store on disk. For a store on a server, bytes_server is the size of all data on the server.
--verbose adds bytes_rows (the file), bytes_index (the index beside the file, which can be rebuilt), the detectors, and
memory: the memory that this process needed to open the store (Linux only; the memory-mapped index is not counted).
"""


VERBOSE = ("detectors", "bytes_rows", "bytes_index", "eviction", "memory")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--verbose", action="store_true", help="also print internal figures; --json always does")
    add_store(parser)
    add_json(parser)


def run(opts: argparse.Namespace, settings: BaseSettings) -> None:
    config = existing(opts, settings)
    detectors = build_detectors(config)
    before = _private_memory()
    store = open_store(config.store, detectors, namespace=config.namespace, run=None)
    try:
        after = _private_memory()
        grown = None if before is None or after is None else max(0, after - before)
        figures = {**_summary(store, detectors), "memory": grown}
        print_result(figures if opts.json else _readable(figures, verbose=opts.verbose), as_json=opts.json)
    finally:
        store.close()


def _summary(store: Store, detectors: Sequence[Detector]) -> dict[str, object]:
    repeated = clusters = 0
    for degree in (signature.repeats for signature in store.signatures()):
        repeated += degree
        clusters += degree > 0
    return {
        "documents": len(store),
        "clusters": clusters,
        "copies": repeated,
        "detectors": ", ".join(detector.name for detector in detectors),
        **store.describe(),
    }


def _readable(figures: Mapping[str, object], *, verbose: bool) -> dict[str, object]:
    """Return the figures, with units for sizes. Leave out the figures in `VERBOSE` unless `verbose`."""
    shown = {name: value for name, value in figures.items() if verbose or name not in VERBOSE}
    sizes = {name for name in shown if name.startswith("bytes") or name == "memory"}
    return {name: sized(value) if name in sizes and isinstance(value, int) else value for name, value in shown.items()}


def _private_memory() -> int | None:
    """Return the bytes of private memory of this process; None if the system does not report it."""
    try:
        lines = Path("/proc/self/status").read_text().splitlines()
    except OSError:
        return None
    sizes = [int(line.split()[1]) * 1024 for line in lines if line.startswith("RssAnon:")]
    return sizes[0] if sizes else None
