"""Measure what NEARDUP_CONDITIONAL saves in a second crawl of pages of 19 KB that have not changed.

    python bench/conditional.py [--pages 1000] [--rounds 3]

The spider follows the links that a LinkExtractor finds, and yields each page's title and HTML. After a first crawl with
the setting, the second crawl runs in turns without the plugin, with NEARDUP_REVISIT = "drop", and with the setting too,
each on a copy of the store. "downloaded" has the bodies of responses. Medians of the rounds; ratios are within a round.
"""

from __future__ import annotations

import argparse
import json
import shutil
import tempfile
from pathlib import Path
from statistics import median
from typing import Any

from crawl import Links
from crawl_run import PLUGIN, crawled, in_new_process, numbers, serving
from options import positive

DROP = {**PLUGIN, "NEARDUP_REVISIT": "drop"}
CRAWLS: dict[str, dict[str, Any]] = {
    "without": {},
    "drop": DROP,
    "conditional": {**DROP, "NEARDUP_CONDITIONAL": True},
}


def measured(port: str, what: str, store: Path) -> dict[str, Any]:
    """Crawl once, in a new process, and return the CPU in seconds with the stats."""
    settings = {**CRAWLS[what], **({"NEARDUP_STORE": str(store)} if CRAWLS[what] else {})}
    return in_new_process(__file__, "--one", json.dumps([port, settings]))


def round_of(port: str) -> dict[str, dict[str, Any]]:
    """Fill a store, and crawl again in each way."""
    with tempfile.TemporaryDirectory() as folder:
        measured(port, "conditional", Path(folder, "first", "store.sqlite"))
        for what in CRAWLS:
            shutil.copytree(Path(folder, "first"), Path(folder, what))
        return {what: measured(port, what, Path(folder, what, "store.sqlite")) for what in CRAWLS}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pages", type=positive, default=1000, metavar="N", help="default: 1000")
    parser.add_argument("--rounds", type=positive, default=3, metavar="N", help="default: 3")
    parser.add_argument("--one", type=json.loads, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        port, settings = options.one
        if "NEARDUP_STORE" in settings:
            Path(settings["NEARDUP_STORE"]).parent.mkdir(exist_ok=True)
        print(json.dumps({"stats": numbers(crawled(Links, settings, port=port))}))
        return
    with serving("crawl_pages.py", options.pages) as port:
        rounds = [round_of(port) for _ in range(options.rounds)]
    print(f"{options.pages} pages, second crawl{'':6}CPU, s   ratio  downloaded, MB  not modified")
    for what in CRAWLS:
        cpu, ratio, size, unchanged = (
            median(value)
            for value in zip(
                *(
                    (
                        each[what]["cpu"],
                        each[what]["cpu"] / each["without"]["cpu"],
                        each[what]["stats"].get("downloader/response_bytes", 0) / 1e6,
                        each[what]["stats"].get("neardup/requests/not_modified", 0),
                    )
                    for each in rounds
                ),
                strict=True,
            )
        )
        print(f"  {what:24}{cpu:8.2f}{ratio:8.2f}{size:16.2f}{unchanged:14.0f}")


if __name__ == "__main__":
    main()
