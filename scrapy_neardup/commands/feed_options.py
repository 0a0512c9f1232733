"""Add and apply the options of verbs that read feeds, and write unreadable rows to a file."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from typing import Any

from tqdm import tqdm

from ..feeds import BadRowError, FeedError, Feeds, Kind, Line, writing_rows
from ..settings import Config
from ..stats import plural
from .streams import shown

SHOWN = 10  # unreadable rows that are reported one by one


def add_fields(parser: argparse.ArgumentParser) -> None:
    """Add the options that name the fields of a row."""
    add_text_field(parser)
    parser.add_argument("--url-field", metavar="F", help="the field with the URL")
    parser.add_argument(
        "--id-field", metavar="F", help="the field that identifies a row (default: the URL of the row, else its number)"
    )


def add_feeds(parser: argparse.ArgumentParser) -> None:
    """Add the feeds, and the option for unreadable rows."""
    parser.add_argument(
        "feeds",
        nargs="+",
        metavar="IN",
        help="feeds of one format: .jsonl, .json (an array), .csv, .tsv, .warc or .wet, each also gzipped (.gz); or"
        " .parquet",
    )
    parser.add_argument(
        "--bad-rows",
        metavar="FILE",
        help="write unreadable rows to FILE, unchanged (default: the first one is an error)",
    )


def add_text_field(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--text-field", metavar="F", help="the field with the text (HTML or plain)")


def with_fields(config: Config, opts: argparse.Namespace, kind: Kind | None = None) -> Config:
    """Return the configuration with the fields that the options name or, without them, those of the feed format."""
    text, url = opts.text_field, getattr(opts, "url_field", None)
    if kind and kind.settings and (text or url):
        raise FeedError(f"--{'text' if text else 'url'}-field {text or url}: {kind.name} has no fields to choose from")
    chosen = {"fields": text and (text,), "url_field": url}
    changes: dict[str, Any] = {name: value for name, value in chosen.items() if value}
    changes.update(kind.settings if kind else {})
    return replace(config.ignoring(getattr(opts, "id_field", None)), **changes)


def check_fields(opts: argparse.Namespace, rows: int, documents: int, located: int) -> None:
    """Raise FeedError if an option names a field that no row has. `located` is the number of documents with a URL."""
    if opts.text_field and rows and not documents:
        raise FeedError(f"--text-field {opts.text_field}: no row has text in it")
    if opts.url_field and documents and not located:
        raise FeedError(f"--url-field {opts.url_field}: no row with text has a URL in it")


class BadRows:
    """Writes unreadable rows to a file, and reports the first few on stderr.

    Without a file, the first unreadable row raises BadRowError.
    """

    def __init__(self, path: str | None, write: Callable[[Line], object] | None) -> None:
        self.count = 0
        self._path = path
        self._write = write

    def __call__(self, line: Line, why: str) -> None:
        if self._write is None:
            raise BadRowError(why)
        self.count += 1
        self._write(line)
        if self.count <= SHOWN:
            tqdm.write(shown(why), file=sys.stderr)

    def summary(self) -> str:
        """Return the end of a summary line; "" if no row was unreadable."""
        return f", {plural(self.count, 'unreadable row')} in {self._path}" if self.count else ""


@contextmanager
def taking_bad_rows(opts: argparse.Namespace, feeds: Feeds) -> Iterator[BadRows]:
    """Yield a handler that writes unreadable rows to the file of `--bad-rows`."""
    with writing_rows(opts.bad_rows, feeds.kind) if opts.bad_rows else nullcontext() as write:
        yield BadRows(opts.bad_rows, write)
