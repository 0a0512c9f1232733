"""Add and apply the options of verbs that read feeds, and write unreadable rows to a file."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from typing import IO, Any

from tqdm import tqdm

from ..feeds import FORMATS, Feed, FeedError, telling, writing
from ..feeds.json_text import json_text
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
        help="feeds of one format: .jsonl, .json (an array), .csv, .tsv, .warc or .wet, each also gzipped (.gz);"
        " .parquet; or - for standard input",
    )
    parser.add_argument(
        "--format", metavar="F", help="the format of standard input and output, such as csv (default: jsonl)"
    )
    parser.add_argument(
        "--bad-rows",
        metavar="FILE",
        help="write unreadable rows to FILE, as JSON lines, and end with exit code 0 (default: exit code 1)",
    )


def add_text_field(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--text-field", metavar="F", help="the field with the text (HTML or plain)")


def with_fields(config: Config, opts: argparse.Namespace, kind: type[Feed] | None = None) -> Config:
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
    """Counts what can't be read, reports the first of it on stderr, and writes all of it to a file, if there is one."""

    def __init__(self, path: str | None, file: IO[bytes] | None) -> None:
        self.count = 0
        self._path = path
        self._file = file

    def __call__(self, place: str, why: str, raw: Any) -> None:
        self.count += 1
        if self._file and self._path:
            text = raw.decode(errors="backslashreplace") if isinstance(raw, bytes) else None
            with telling(self._path):
                self._file.write(f"{json_text({'place': place, 'error': why, 'raw': text})}\n".encode())
        if self.count <= SHOWN:
            tqdm.write(shown(f"{place}: {why}"), file=sys.stderr)

    @property
    def exit_code(self) -> int:
        """1 if something was left out, which is in no file."""
        return int(self.count > 0 and not self._file)

    def summary(self) -> str:
        """Return the end of a summary line; "" if all could be read."""
        where = f" in {self._path}" if self._path else " left out"
        return f", {plural(self.count, 'unreadable row')}{where}" if self.count else ""


@contextmanager
def taking_bad_rows(opts: argparse.Namespace) -> Iterator[BadRows]:
    """Yield a handler for what can't be read, which writes to the file of `--bad-rows`."""
    with writing(opts.bad_rows, FORMATS) if opts.bad_rows else nullcontext() as file:
        yield BadRows(opts.bad_rows, file)
