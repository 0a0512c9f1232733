"""`scrapy neardup import`: read an export into a store."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from typing import Any

from scrapy.settings import BaseSettings

from ..feeds import FeedError, Feeds, JsonLines, Row
from ..feeds.json_text import json_text
from ..stats import plural
from ..store.transfer import import_rows
from .bars import through
from .options import add_json, add_store, with_store
from .streams import shown

EXAMPLES = """examples:
  scrapy neardup import held.jsonl.gz
  scrapy neardup import monday.jsonl tuesday.jsonl --store merged.sqlite

The store is created if it does not exist. Documents that the store holds stay. If the store and a file know the same
URL, the later visit is kept. Rows of runs that the store has forgotten are not imported. The command is idempotent: if
it was stopped, run it again.
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "files", nargs="+", metavar="FILE", help="files written by `scrapy neardup export`; - for standard input"
    )
    add_store(parser)
    add_json(parser)


def run(opts: argparse.Namespace, settings: BaseSettings) -> None:
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
    if opts.json:
        print(json_text(outcomes, indent=2))


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
