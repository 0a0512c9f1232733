"""`scrapy neardup export` and `import`: write all rows of a store as JSON lines, and read them into a store."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator
from typing import Any

from scrapy.settings import BaseSettings

from ..feeds import FORMATS, FeedError, Feeds, JsonLines, Row, writing
from ..stats import plural
from ..store.transfer import export_rows, import_rows
from .options import add_json, add_store, check_apart, existing, with_store
from .output import counted, print_lines, print_outcome, through
from .terminal import shown


def add_export(parser: argparse.ArgumentParser) -> None:
    text = "write JSON lines to FILE, or - for standard output; gzipped if the name ends in .gz"
    parser.add_argument("-o", "--output", required=True, metavar="FILE", help=text)
    add_store(parser)
    add_json(parser)


def run_export(opts: argparse.Namespace, settings: BaseSettings) -> None:
    """Write all rows of a store as JSON lines.

    example:
      scrapy neardup export --store neardup.sqlite -o held.jsonl.gz

    A store made from the export by `scrapy neardup import` gives the same verdicts. The export contains no texts.
    Crawls may run meanwhile. Some of the rows that they commit during the export may be in it.
    """
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


def add_import(parser: argparse.ArgumentParser) -> None:
    text = "files written by `scrapy neardup export`; - for standard input"
    parser.add_argument("files", nargs="+", metavar="FILE", help=text)
    add_store(parser)
    add_json(parser)


def run_import(opts: argparse.Namespace, settings: BaseSettings) -> None:
    """Read exports into a store, which is created if it does not exist.

    example:
      scrapy neardup import monday.jsonl tuesday.jsonl.gz --store merged.sqlite

    Documents that the store holds stay. If the store and a file know the same URL, the later visit is kept. Rows of
    runs that the store has forgotten are not imported. If the command was stopped, run it again: rows are imported
    once.
    """
    config = with_store(opts, settings, writes=True)
    outcomes = []
    for file in opts.files:
        rows = _Rows(file)
        try:
            taken = import_rows(str(config.store), config.namespace, iter(rows))
        except FeedError:
            raise
        except ValueError as error:
            raise FeedError(f"{file}, row {rows.number}: {error}") from error
        told = f"{plural(taken.documents, 'document')} and {plural(taken.urls, 'URL')} imported"
        told += f"; {plural(taken.known, 'document')} known before, or forgotten with their run"
        outcomes.append({"file": file, "documents": taken.documents, "urls": taken.urls, "known": taken.known})
        print(shown(f"{file}: {told}"), file=sys.stderr)
    print_lines((), outcomes, as_json=opts.json)


class _Rows:
    """The rows of a file, with the number of the current one."""

    def __init__(self, file: str) -> None:
        self.number = 0
        self._feeds = Feeds([file], kinds=(JsonLines,))

    def __iter__(self) -> Iterator[dict[str, Any]]:
        row: Row
        for row in through(self._feeds, self._feeds.rows()):
            self.number = row.number
            yield row.data
