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

clusters: documents that are repeated elsewhere; mirrors: how often in all. urls: of so many it is known what they led
to. bytes_rows, bytes_index: on disk, the file, and the index beside it, which can be made again from the file. memory:
the bytes by which this process grew when it opened the store, as a crawl does; the index is mapped and not counted,
since the system can take that memory back. Known only on Linux. On a server bytes_server: all that it holds, whoever
wrote it.
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
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
        told = {**_summary(store, detectors), "memory": grown}
        print_result(told if opts.json else _with_sizes(told), as_json=opts.json)
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
        "mirrors": repeated,
        "detectors": ", ".join(detector.name for detector in detectors),
        **store.describe(),
    }


def _with_sizes(told: Mapping[str, object]) -> dict[str, object]:
    """Return the same with sizes as people read them."""
    is_size = {name for name in told if name.startswith("bytes") or name == "memory"}
    return {name: sized(value) if name in is_size and isinstance(value, int) else value for name, value in told.items()}


def _private_memory() -> int | None:
    """Return the bytes of memory that only this process has; None where the system does not tell."""
    try:
        lines = Path("/proc/self/status").read_text().splitlines()
    except OSError:
        return None
    sizes = [int(line.split()[1]) * 1024 for line in lines if line.startswith("RssAnon:")]
    return sizes[0] if sizes else None
