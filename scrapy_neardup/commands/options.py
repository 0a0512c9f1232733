"""Add and read the options that several verbs share: the store, feeds and their fields, numbers, files."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import replace
from math import inf
from pathlib import Path
from typing import IO, Any, TypeVar

from scrapy.settings import BaseSettings
from scrapy.utils.project import inside_project
from tqdm import tqdm
from w3lib.encoding import html_to_unicode

from ..crawl import default_store
from ..deduplicator import Deduplicator
from ..document import Document
from ..feeds import FORMATS, Feed, FeedError, Feeds, telling, writing
from ..feeds.text_rows import json_text
from ..items import item_document
from ..settings import Config, ConfigError
from ..stats import plural
from ..store import StoreError, check_kind, is_server
from ..text.urls import canonical_url
from .terminal import shown

T = TypeVar("T")
SHOWN = 10  # unreadable rows that are reported one by one

# Values


def whole(low: int, high: float = inf) -> Callable[[str], int]:
    """Return a function that reads a whole number from `low` to `high`."""
    allowed = f"a whole number from {low}" + (f" to {high}" if high < inf else "")
    return lambda text: _allowed(text, int, lambda number: low <= number <= high, allowed)


def share(text: str) -> float:
    return _allowed(text, float, lambda number: 0 <= number <= 1, "a number from 0 to 1")


def _allowed(text: str, read: Callable[[str], T], fits: Callable[[T], object], allowed: str) -> T:
    with suppress(ValueError):
        if fits(value := read(text)):
            return value
    raise argparse.ArgumentTypeError(f"{text!r} is not allowed; allowed is {allowed}")


def add_json(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="print the result as JSON")


def check_apart(**files: str | list[str] | None) -> None:
    """Raise FeedError if one file is given for two options. A store on a server is not a file."""
    seen: dict[object, str] = {}
    for what, names in files.items():
        for name in names if isinstance(names, list) else filter(None, [names]):
            # Standard input and output are no files.
            key = (what == "a_feed",) if name == "-" else _file(name)
            before = what if "://" in name else seen.setdefault(key, what)
            if before != what:
                raise FeedError(f"{name}: can't be both {before.replace('_', ' ')} and {what.replace('_', ' ')}")


def _file(name: str) -> object:
    """Return a key that is equal for all names of a file, also through links."""
    try:
        found = os.stat(name)
    except OSError:
        return os.path.realpath(name)
    return found.st_dev, found.st_ino


# The store


def add_store(
    parser: argparse.ArgumentParser, text: str = "a path, or redis://… (default: NEARDUP_STORE of the project)"
) -> None:
    """Add the option `--store`. The default is the store of the project."""
    parser.add_argument("--store", type=_address, metavar="S", help=text)


def _address(text: str) -> str:
    # An empty value comes from an unset variable of the shell. The project's store must not take its place.
    return _allowed(text, str, str.strip, "a path, or redis://…")


def read_config(opts: argparse.Namespace, settings: BaseSettings) -> Config:
    """Return the settings of the project, with the store that the options name."""
    config = Config.from_settings(settings)
    if "{spider}" in config.namespace:
        raise ConfigError(
            f"NEARDUP_NAMESPACE = {config.namespace!r}: {{spider}} has a value only in a crawl; name one namespace with"
            " -s NEARDUP_NAMESPACE=NAME"
        )
    return replace(config, store=opts.store) if opts.store else config


def with_store(opts: argparse.Namespace, settings: BaseSettings, *, writes: bool = False) -> Config:
    """Return the settings, with the address of the store. With `writes`, create the folder of the default store.

    Raise ConfigError for a bad setting, StoreError if no store is named.
    """
    config = read_config(opts, settings)
    if config.store:
        check_kind(config.store)
        return config
    store = default_store(settings)
    if not (inside_project() or store.exists()):
        raise StoreError(f"no store: name one with --store, or run this in a Scrapy project ({store} does not exist)")
    if writes:
        store.parent.mkdir(parents=True, exist_ok=True)
    return replace(config, store=str(store))


def existing(opts: argparse.Namespace, settings: BaseSettings) -> Config:
    """Return the settings, with the address of the store. Raise StoreError if the store does not exist."""
    config = with_store(opts, settings)
    if config.store and not is_server(config.store) and not os.path.exists(config.store):
        raise StoreError(f"store {config.store!r} does not exist")
    return config


def existing_store(opts: argparse.Namespace, settings: BaseSettings) -> str:
    """Return the address of the store, whatever its namespace. Raise StoreError if the store does not exist."""
    only = BaseSettings({name: settings[name] for name in ("NEARDUP_STORE", "JOBDIR") if settings.get(name)})
    return str(existing(opts, only).store)


def open_existing(opts: argparse.Namespace, settings: BaseSettings) -> Deduplicator:
    """Open the store for reading. Raise StoreError if it does not exist."""
    return Deduplicator.from_config(existing(opts, settings), run=None)


# Pages


def is_url(page: str) -> bool:
    """Return whether an argument is a URL, and not the path of a file."""
    return "://" in page


def read_document(path: str, config: Config) -> Document:
    """Return the document in a file, HTML or plain text. Raise FeedError if it can't be read."""
    try:
        read = html_to_unicode(None, Path(path).read_bytes())[1]
    except OSError as error:
        raise FeedError(f"{path}: can't be read: {error.strerror}") from error
    return Document.from_field(read, url=Path(path).absolute().as_uri(), extractor=config.extractor)


def documents_of(feeds: Sequence[str], config: Config) -> Iterator[tuple[str, Document]]:
    """Yield the documents with a URL in feeds of any format, each after its canonical URL."""
    for path in feeds:
        feed = Feeds([path])
        fields = replace(config, **feed.kind.settings)
        for row in feed.rows():
            document = item_document(row.data, fields)
            if document and document.url:
                yield canonical_url(document.url), document


# Feeds


def add_feeds(parser: argparse.ArgumentParser) -> None:
    """Add the feeds, and the option for unreadable rows."""
    kinds = ".jsonl, .json (an array), .csv, .tsv, .warc or .wet, each also gzipped (.gz); .parquet"
    text = f"feeds of one format: {kinds}; or - for standard input"
    parser.add_argument("feeds", nargs="+", metavar="IN", help=text)
    text = "the format of standard input and output, such as csv (default: jsonl)"
    parser.add_argument("--format", metavar="F", help=text)
    text = "write unreadable rows to FILE, as JSON lines, and end with exit code 0 (default: exit code 1)"
    parser.add_argument("--bad-rows", metavar="FILE", help=text)


def add_text_field(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--text-field", metavar="F", help="the field with the text (HTML or plain)")


def add_fields(parser: argparse.ArgumentParser) -> None:
    """Add the options that name the fields of a row."""
    add_text_field(parser)
    parser.add_argument("--url-field", metavar="F", help="the field with the URL")
    text = "the field that identifies a row (default: the URL of the row, else its number)"
    parser.add_argument("--id-field", metavar="F", help=text)


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
