"""`scrapy neardup forget`: remove documents and URLs from a store, so that they are fetched and stored again."""

from __future__ import annotations

import argparse
import re
import time
from contextlib import closing
from datetime import datetime

from scrapy.settings import BaseSettings

from ..feeds import FeedError
from ..settings import Config, seconds
from ..stats import plural
from ..store import Selection, StoreError, compact, open_store
from ..store.interface import Forgotten
from .options import add_json, add_store, existing
from .output import print_lines

MUCH = 100  # once one in so many documents is forgotten, their space is given back
_DATE = re.compile(r"\d{4}-\d\d-\d\d([T ].+)?")


def add_forget(parser: argparse.ArgumentParser) -> None:
    add = parser.add_mutually_exclusive_group(required=True).add_argument
    add("url", nargs="?", metavar="URL", help="a URL and, if it is the URL of an original, its document")
    add("--host", metavar="H", help="all URLs, documents and rules of a host, named with or without port")
    add("--run", metavar="R", help="everything that a run added; `scrapy neardup stats --runs` lists the ids")
    add("--before", metavar="D", help="documents not seen since a date (local time) or for a duration")
    parser.add_argument("--dry-run", action="store_true", help="count, but forget nothing")
    add_store(parser)
    add_json(parser)


def run_forget(opts: argparse.Namespace, settings: BaseSettings) -> None:
    """Remove documents and URLs from a store, so that they are fetched and stored again.

    example:
      scrapy neardup forget --before "90 days" --dry-run

    Forgotten content counts as new: the next page with it is stored. A document is forgotten with all URLs that
    returned it. Running crawls notice this within a second. After one in a hundred documents, the freed space is given
    back to the system; writes of running crawls wait meanwhile, some seconds per gigabyte. The command is a run, so
    `scrapy neardup stats --runs` lists it. Like any run, it first ends dead runs, see NEARDUP_UNCLEAN_RUN.
    """
    what = _selection(opts, time.time())
    config = existing(opts, settings)
    forgotten = _selected(config, what) if opts.dry_run else _forget(config, what)
    told = _told(forgotten) + (" would be forgotten" if opts.dry_run else " forgotten")
    lines = [told if any(forgotten) else f"{told}: nothing matches"]
    print_lines(lines, {"documents": forgotten.documents, "urls": forgotten.urls}, as_json=opts.json)


def _told(forgotten: Forgotten) -> str:
    return f"{plural(forgotten.documents, 'document')} and {plural(forgotten.urls, 'URL')}"


def _selected(config: Config, what: Selection) -> Forgotten:
    with closing(open_store(config.store, (), namespace=config.namespace, run=None)) as store:
        return store.forget(what, only_counts=True)


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
        store.close(clean=isinstance(error, StoreError))  # after a StoreError nothing was forgotten
        raise
    is_much = forgotten.documents * MUCH > len(store)
    try:
        store.close()
        if is_much:
            compact(str(config.store))
    except StoreError as error:
        raise StoreError(f"{_told(forgotten)} forgotten, but then {error}") from error
    return forgotten


def _selection(opts: argparse.Namespace, now: float) -> Selection:
    if opts.host is not None and not re.fullmatch(r"[^/\s]+", opts.host):
        raise FeedError(f"--host {opts.host!r}: allowed is a host, with its port or without")
    before = None if opts.before is None else _moment(opts.before, now)
    return Selection(opts.url, opts.host, opts.run, before)


def _moment(text: str, now: float) -> float:
    """Return the time of a date, or of a duration before `now`, in seconds since the epoch. Raise FeedError."""
    try:
        if _DATE.fullmatch(text) and (when := datetime.fromisoformat(text).timestamp()) <= now:
            return when
        if re.search("[a-z]", text.lower()):  # a bare number is ambiguous
            return now - seconds(text)
    except (ValueError, OverflowError, OSError):
        pass
    raise FeedError(
        f"--before {text!r}: allowed is a date in the past such as 2026-08-01 or 2026-08-01T12:00, or a duration such"
        " as '90 days'"
    )
