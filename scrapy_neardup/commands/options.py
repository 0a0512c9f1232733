"""Add and read the options that several verbs share: the store, feeds and their fields, numbers, files."""

from __future__ import annotations

import argparse
import os
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

from scrapy.settings import BaseSettings
from scrapy.utils.project import inside_project
from tqdm import tqdm
from w3lib.encoding import html_to_unicode

from ..crawl import default_store
from ..document import Document
from ..feeds import Feed, Feeds, Row
from ..files import FileError
from ..items import item_document
from ..settings import Check, Config, ConfigError, checking, number, seconds
from ..stats import plural
from ..store import Store, StoreError, check_kind, is_server, open_store
from ..text.urls import canonical_url
from . import answer, shown

T = TypeVar("T")
SHOWN = 10  # unreadable rows that are reported one by one


def _argument(check: Check) -> Callable[[str], Any]:
    """Return an argparse type that applies the check of a setting."""

    def read(text: str) -> Any:
        try:
            return check(text)
        except ValueError as error:
            raise argparse.ArgumentTypeError(f"{text!r} is not allowed; allowed is {error}") from error

    return read


whole, share = _argument(number(0, kind=int)), _argument(number(0, 1))
duration = _argument(
    checking(
        "a duration such as '90 days'",
        lambda found: found is not None,
        lambda text: seconds(text) if any(map(str.isalpha, text)) else None,  # a number without a unit is not clear
    )
)
host_name = _argument(checking("a host, with its port or without", re.compile(r"[^/\s]+").fullmatch))
# An unset shell variable gives an empty value. The project's store must not take its place.
_address = _argument(checking("a path, or redis://…", str.strip))


def check_apart(**files: str | list[str] | None) -> None:
    """Raise FileError if two keywords name the same file. The message has the keywords, with spaces for `_`."""
    seen: dict[str, str] = {}
    for what, names in files.items():
        for name in names if isinstance(names, list) else filter(None, [names]):
            # Of a feed, `-` is standard input; of anything else, standard output.
            key = what if name == "-" and what == "a_feed" else os.path.realpath(name)
            before = what if "://" in name else seen.setdefault(key, what)
            if before != what:
                raise FileError(f"{name}: can't be both {before.replace('_', ' ')} and {what.replace('_', ' ')}")


def add_store(parser: argparse.ArgumentParser, default: str = "NEARDUP_STORE of the project") -> None:
    parser.add_argument("--store", type=_address, metavar="S", help=f"a path, or redis://… (default: {default})")


def with_store(opts: argparse.Namespace, settings: BaseSettings, *, exists: bool = True) -> Config:
    """Return the settings with the address of the store, which is --store, NEARDUP_STORE or the project's default.

    Raise ConfigError for a bad setting. Raise StoreError if there is no address or, if `exists`, no store at it.
    """
    config = Config.from_settings(settings)
    if "{spider}" in config.namespace:
        why = "{spider} has a value only in a crawl; name one namespace with -s NEARDUP_NAMESPACE=NAME"
        raise ConfigError(f"NEARDUP_NAMESPACE = {config.namespace!r}: {why}")
    store = opts.store or config.store or str(default_store(settings))
    check_kind(store)
    is_there = is_server(store) or os.path.exists(store)
    if not (opts.store or config.store or is_there or inside_project()):
        raise StoreError(f"no store: name one with --store, or run this in a Scrapy project ({store} does not exist)")
    if exists and not is_there:
        raise StoreError(f"store {store!r} does not exist")
    return replace(config, store=store)


def held(config: Config) -> closing[Store]:
    """Open a store for reading, without detectors. It closes at the end of a `with` block."""
    return closing(open_store(config.store, (), namespace=config.namespace, run=None))


def is_url(page: str) -> bool:
    """Return whether an argument is a URL rather than the path of a file."""
    return "://" in page


def read_document(path: str, config: Config) -> Document:
    """Return the document in a file of HTML or plain text. Raise FileError if the file can't be read."""
    try:
        read = html_to_unicode(None, Path(path).read_bytes())[1]
    except OSError as error:
        raise FileError(f"{path}: can't be read: {error.strerror}") from error
    return Document.from_field(read, url=Path(path).absolute().as_uri(), extractor=config.extractor)


def documents_of(feeds: Sequence[str], config: Config, bad: BadRows | None = None) -> Iterator[tuple[str, Document]]:
    """Yield (canonical URL, document) for each document with a URL. The feeds may have different formats."""
    for path in feeds:
        feed = Feeds([path])
        fields = replace(config, **feed.kind.settings)
        for row in feed.rows(bad or BadRows()):
            document = item_document(row.data, fields)
            if document and document.url:
                yield canonical_url(document.url), document


def add_feeds(parser: argparse.ArgumentParser) -> None:
    """Add the argument for the feeds, and the options of `add_fields`."""
    kinds = ".jsonl, .json (an array), .csv, .tsv, .parquet, .warc or .wet, each also gzipped (.gz)"
    text = f"feeds of one format: {kinds}; or - for JSON lines from standard input"
    parser.add_argument("feeds", nargs="+", metavar="IN", help=text)
    add_fields(parser)


def add_fields(parser: argparse.ArgumentParser) -> None:
    """Add the options that name the fields of a row."""
    parser.add_argument("--text-field", metavar="F", help="the field with the text (HTML or plain)")
    parser.add_argument("--url-field", metavar="F", help="the field with the URL")
    text = "the field that identifies a row (default: the URL of the row, else its number)"
    parser.add_argument("--id-field", metavar="F", help=text)


def with_fields(config: Config, opts: argparse.Namespace, kind: type[Feed] | None = None) -> Config:
    """Return the configuration with the fields that the options name. Other fields are those of the format `kind`."""
    chosen = {"fields": opts.text_field and (opts.text_field,), "url_field": opts.url_field}
    changes: dict[str, Any] = {name: value for name, value in chosen.items() if value}
    return replace(config, **{**(kind.settings if kind else {}), **changes}).ignoring(opts.id_field)


def check_fields(opts: argparse.Namespace, rows: int, documents: int, located: int) -> None:
    """Raise FileError if an option names a field that is empty in all rows. `located`: how many have a URL."""
    if opts.text_field and rows and not documents:
        raise FileError(f"--text-field {opts.text_field}: no row has text in it")
    if opts.url_field and documents and not located:
        raise FileError(f"--url-field {opts.url_field}: no row with text has a URL in it")


class BadRows:
    """Counts the rows that can't be read, and reports the first `SHOWN` on stderr."""

    count = 0

    def __call__(self, place: str, why: str) -> None:
        self.count += 1
        if self.count <= SHOWN:
            tqdm.write(shown(f"{place}: {why}"), file=sys.stderr)

    def answer(self, opts: argparse.Namespace, outcome: Mapping[str, Any], said: str) -> int:
        """Print the outcome and the number of unreadable rows. Return the exit code: 1 if rows were unreadable."""
        said += f", {plural(self.count, 'unreadable row')} left out" if self.count else ""
        answer(opts, {**outcome, "bad_rows": self.count}, said=said)
        return int(self.count > 0)


class Documents:
    """Yields (row, document) for each row that has a document, and counts the rows and the documents."""

    def __init__(self, opts: argparse.Namespace, settings: BaseSettings) -> None:
        self.feeds, self.bad = Feeds(opts.feeds), BadRows()
        self.config = with_fields(Config.from_settings(settings), opts, self.feeds.kind)
        self.rows = self.documents = 0
        self._opts = opts

    def __iter__(self) -> Iterator[tuple[Row, Document]]:
        located = 0
        for row in with_bar(self.feeds, self.feeds.rows(self.bad)):
            self.rows += 1
            if document := item_document(row.data, self.config):
                self.documents += 1
                located += document.url is not None
                yield row, document
        check_fields(self._opts, self.rows, self.documents, located)


def with_bar(feeds: Feeds, batches: Iterable[T]) -> Iterator[T]:
    """Yield the batches (or rows). Show on a terminal how much of `feeds` is read, the rate and the time left."""
    with tqdm(total=feeds.size or None, unit="B", unit_scale=True, disable=None, dynamic_ncols=True) as bar:
        for batch in batches:
            if not bar.disable:
                bar.update(feeds.at - bar.n)
            yield batch
