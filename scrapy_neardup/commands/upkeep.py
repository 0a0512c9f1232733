"""`scrapy neardup judge`, `forget`, `export`, `import`: judge pages, remove from a store, or move it."""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections import Counter
from contextlib import closing

from scrapy.settings import BaseSettings
from tqdm import tqdm

from ..document import Document
from ..feeds import Feeds, JsonLines
from ..files import FileError, writing
from ..matching.reviews import DIFFERENT, SAME, Reviews, reviews_folder
from ..settings import Config, ConfigError
from ..stats import plural
from ..store import Selection, Store, StoreError, compact, open_store
from ..store.backend import Forgotten
from ..store.transfer import export_rows, import_rows
from ..text.urls import canonical_url
from . import answer, shown
from .options import check_apart, documents_of, duration, held, host_name, is_url, read_document, with_bar, with_store

LABELS = {"same": SAME, "different": DIFFERENT}


def add_judge(parser: argparse.ArgumentParser) -> None:
    for name in "AB":
        parser.add_argument(name.lower(), metavar=name, help="the URL of a page, or a file, HTML or plain text")
    parser.add_argument("judgement", choices=LABELS, help="what the two pages are")
    text = "feeds with the texts of A and B, such as the items and NEARDUP_DROPPED"
    parser.add_argument("--texts", nargs="+", default=[], metavar="FEED", help=text)


def run_judge(opts: argparse.Namespace, settings: BaseSettings) -> None:
    """Remember that two pages are the same, or different.

    example:
      scrapy neardup judge http://example.com/a.html http://example.com/b.html different

    If two pages are different, neither is dropped again as a copy of the other. Judgements are kept in the folder
    STORE.reviewed beside the store. The last one on a pair counts. With texts, the folder is a labelled set for
    `scrapy neardup lab evaluate` and `lab calibrate`. Only these two use `same`, so `same` needs the texts.
    """
    config = with_store(opts, settings)
    folder = reviews_folder(config)
    if not folder:
        raise ConfigError(
            f"{config.store}: judgements are kept beside a store in a file; a server has no place for them"
        )
    reviews = Reviews(config)
    with held(config) as store:
        first, second = (_page(page, opts.texts, store, config) for page in (opts.a, opts.b))
    if canonical_url(first.url or "") == canonical_url(second.url or ""):
        raise FileError(f"{opts.a} and {opts.b} are one page; allowed are two")
    if opts.judgement == "same" and not (first.lines and second.lines):
        raise FileError("'same' needs the texts of both pages; name feeds that have them with --texts")
    reviews.append(first, second, LABELS[opts.judgement])
    said = f"{opts.a} and {opts.b} are {opts.judgement}: written to {folder}"
    answer(opts, {"a": first.url, "b": second.url, "judgement": opts.judgement}, said=said)


def _page(page: str, feeds: list[str], store: Store, config: Config) -> Document:
    """Return a page, with its text if a feed has it. Raise StoreError if neither a feed nor the store knows its URL."""
    if not is_url(page):
        return read_document(page, config)
    for url, document in documents_of(feeds, config):
        if url == canonical_url(page) and document.lines:
            return document
    if not (store.resolve(page) or store.of_page(page)):
        raise StoreError(f"neither the store nor a feed knows {page}; allowed is a URL that a crawl has fetched")
    return Document(page, "")


MUCH = 3  # the file is compacted if the number of forgotten documents, times this, is above the number of those left


def add_forget(parser: argparse.ArgumentParser) -> None:
    add = parser.add_mutually_exclusive_group(required=True).add_argument
    add("url", nargs="?", metavar="URL", help="a URL and, if it is the URL of an original, its document")
    text = "all URLs, documents and rules of a host, named with or without port"
    add("--host", type=host_name, metavar="H", help=text)
    add("--run", metavar="R", help="everything that a run added; `scrapy neardup stats --runs` lists the ids")
    add("--before", type=duration, metavar="D", help="documents not seen for a duration such as '90 days'")
    parser.add_argument("--dry-run", action="store_true", help="count, but forget nothing")


def run_forget(opts: argparse.Namespace, settings: BaseSettings) -> None:
    """Remove documents and URLs from a store.

    example:
      scrapy neardup forget --before "90 days" --dry-run

    Forgotten content counts as new: the next page with it is fetched and stored. A document is forgotten with all URLs
    that returned it. Running crawls notice this within a second. The command is a run, so `scrapy neardup stats --runs`
    lists it. Like any run, it first ends dead runs, see NEARDUP_UNCLEAN_RUN.
    """
    before = None if opts.before is None else time.time() - opts.before
    what = Selection(opts.url, opts.host, opts.run, before)
    config = with_store(opts, settings)
    if opts.dry_run:
        with held(config) as store:
            forgotten = store.forget(what, only_counts=True)
    else:
        forgotten = _forget(config, what)
    told = _told(forgotten) + (" would be forgotten" if opts.dry_run else " forgotten")
    answer(opts, forgotten._asdict(), [told if any(forgotten) else f"{told}: nothing matches"])


def _told(forgotten: Forgotten) -> str:
    return f"{plural(forgotten.documents, 'document')} and {plural(forgotten.urls, 'URL')}"


def _forget(config: Config, what: Selection) -> Forgotten:
    # Without detectors: no fingerprint is compared, so their versions need not match.
    store = open_store(
        config.store, (), namespace=config.namespace, unclean_run=config.unclean_run, writer="neardup forget"
    )
    try:
        forgotten = store.forget(what)
        store.stats = {"forgot/documents": forgotten.documents, "forgot/urls": forgotten.urls}
        store.flush()
    except BaseException as error:
        store.close(clean=isinstance(error, StoreError))  # after a StoreError, nothing was forgotten
        raise
    is_much = forgotten.documents * MUCH > len(store)
    try:
        store.close()
        if is_much:
            compact(str(config.store))
    except StoreError as error:
        raise StoreError(f"{_told(forgotten)} forgotten, but then {error}") from error
    return forgotten


def add_export(parser: argparse.ArgumentParser) -> None:
    text = "write JSON lines to FILE, or - for standard output; gzipped if the name ends in .gz"
    parser.add_argument("-o", "--output", required=True, metavar="FILE", help=text)


def run_export(opts: argparse.Namespace, settings: BaseSettings) -> None:
    """Write all rows of a store as JSON lines.

    example:
      scrapy neardup export --store neardup.sqlite -o held.jsonl.gz

    A store made from the export by `scrapy neardup import` gives the same verdicts. The export contains no texts.
    Crawls may run meanwhile. Some of the rows that they commit during the export may be in it.
    """
    config = with_store(opts, settings)
    check_apart(the_store=config.store, the_output=opts.output, the_result="-" if opts.json else None)
    kinds = Counter[str]()
    exported = export_rows(str(config.store), config.namespace)
    with writing(opts.output, JsonLines.endings) as file, closing(exported) as rows:
        head = next(rows)
        file.write(_line(head))
        for row in tqdm(rows, unit=" rows", total=head["documents"] + head["urls"], disable=None, leave=False):
            file.write(_line(row))
            kinds[row["type"]] += 1
    documents, urls, runs = kinds["document"], head["urls"], kinds["run"]
    said = f"{plural(documents, 'document')}, {plural(urls, 'URL')} and {plural(runs, 'run')} exported"
    answer(opts, {"documents": documents, "urls": urls, "runs": runs}, said=said)


def _line(row: object) -> bytes:
    return json.dumps(row, separators=(",", ":")).encode() + b"\n"


def add_import(parser: argparse.ArgumentParser) -> None:
    text = "files written by `scrapy neardup export`; - for standard input"
    parser.add_argument("files", nargs="+", metavar="FILE", help=text)


def run_import(opts: argparse.Namespace, settings: BaseSettings) -> None:
    """Read exports into a store, which is created if it does not exist.

    example:
      scrapy neardup import monday.jsonl tuesday.jsonl.gz --store merged.sqlite

    Documents that the store holds stay. If the store and a file know the same URL, the later visit is kept. Rows of
    runs that the store has forgotten are not imported. Rows are imported once, however often the command is run.
    """
    config = with_store(opts, settings, exists=False)
    if not (opts.store or settings.get("NEARDUP_STORE")):
        os.makedirs(os.path.dirname(str(config.store)), exist_ok=True)
    outcomes = []
    for file in opts.files:
        feeds = Feeds([file])
        rows = (row.data for row in with_bar(feeds, feeds.rows()))
        try:
            taken = import_rows(str(config.store), config.namespace, rows)
        except FileError:
            raise
        except ValueError as error:
            raise FileError(f"{file}, row {feeds.number}: {error}") from error
        outcomes.append({"file": file, "documents": taken.documents, "urls": taken.urls, "known": taken.known})
        told = f"{plural(taken.documents, 'document')} and {plural(taken.urls, 'URL')} imported"
        told += f"; {plural(taken.known, 'document')} known before, or forgotten with their run"
        print(shown(f"{file}: {told}"), file=sys.stderr)
    answer(opts, outcomes)
