"""`scrapy neardup export`: write all rows of a store as JSON lines."""

from __future__ import annotations

import argparse
import json

from scrapy.settings import BaseSettings

from ..feeds import FORMATS, writing
from ..stats import plural
from ..store.transfer import export_rows
from .bars import counted
from .options import add_json, add_store, check_apart, existing, print_outcome

EXAMPLES = """examples:
  scrapy neardup export -o held.jsonl.gz
  scrapy neardup export --store neardup.sqlite -o held.jsonl

The export is complete: a store made from it by `scrapy neardup import` gives the same verdicts. The export contains no
texts. Crawls may run meanwhile. Some of the rows that they commit during the export may be in it.
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "-o",
        "--output",
        required=True,
        metavar="FILE",
        help="write JSON lines to FILE, or - for standard output; gzipped if the name ends in .gz",
    )
    add_store(parser)
    add_json(parser)


def run(opts: argparse.Namespace, settings: BaseSettings) -> None:
    config = existing(opts, settings)
    check_apart(the_store=config.store, the_output=opts.output, the_result="-" if opts.json else None)
    counts: dict[str, int] = {}
    with writing(opts.output, FORMATS) as file, export_rows(str(config.store), config.namespace) as rows:
        head = next(rows)
        file.write(_line(head))
        for row in counted(rows, "rows", head["documents"] + head["urls"]):
            file.write(_line(row))
            counts[row["type"]] = counts.get(row["type"], 0) + 1
    documents, runs, urls = counts.get("document", 0), counts.get("run", 0), head["urls"]
    told = f"{plural(documents, 'document')}, {plural(urls, 'URL')} and {plural(runs, 'run')} exported"
    print_outcome({"documents": documents, "urls": urls, "runs": runs}, told, as_json=opts.json)


def _line(row: object) -> bytes:
    return json.dumps(row, separators=(",", ":")).encode() + b"\n"
