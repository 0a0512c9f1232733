"""`scrapy neardup judge`: remember the judgement of a person on two pages."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import replace

from scrapy.settings import BaseSettings

from ..document import Document
from ..feeds import FeedError
from ..matching.reviews import DIFFERENT, SAME, Reviews, reviews_folder
from ..settings import Config, ConfigError
from ..text.urls import canonical_url
from .options import add_json, add_store, documents_of, existing_store, is_url, read_document
from .output import print_outcome

LABELS = {"same": SAME, "different": DIFFERENT}


def add_judge(parser: argparse.ArgumentParser) -> None:
    for name in "AB":
        parser.add_argument(name.lower(), metavar=name, help="the URL of a page, or a file, HTML or plain text")
    parser.add_argument("judgement", choices=LABELS, help="what the two pages are")
    text = "feeds with the texts of A and B, such as that of the items and NEARDUP_DROPPED"
    parser.add_argument("--texts", nargs="+", default=[], metavar="FEED", help=text)
    add_store(parser)
    add_json(parser)


def run_judge(opts: argparse.Namespace, settings: BaseSettings) -> None:
    """Remember that two pages are the same, or different.

    example:
      scrapy neardup judge http://example.com/a.html http://example.com/b.html different

    If two pages are different, neither is dropped again as a copy of the other. Judgements are kept in the folder
    STORE.reviewed beside the store. The last one on a pair counts. With texts, the folder is a labelled set for
    `scrapy neardup lab evaluate` and `lab calibrate`; `same` is only for them, so it needs the texts.
    """
    config = _config(opts, settings)
    reviews = Reviews(config)
    first, second = (_document(page, opts.texts, config) for page in (opts.a, opts.b))
    a, b = first.url or "", second.url or ""
    if canonical_url(a) == canonical_url(b):
        raise FeedError(f"{opts.a} and {opts.b} are one page; allowed are two")
    if opts.judgement == "same" and not (first.lines and second.lines):
        raise FeedError("'same' needs the texts of both pages; name feeds that have them with --texts")
    reviews.append(first, second, LABELS[opts.judgement])
    said = f"{opts.a} and {opts.b} are {opts.judgement}: written to {reviews_folder(config)}"
    print_outcome({"a": a, "b": b, "judgement": opts.judgement}, said, as_json=opts.json)


def _config(opts: argparse.Namespace, settings: BaseSettings) -> Config:
    """Return the settings, with a folder for the judgements. All namespaces of a store share this folder."""
    config = replace(Config.from_settings(settings), store=existing_store(opts, settings))
    if not reviews_folder(config):
        raise ConfigError(
            f"{config.store}: judgements are kept beside a store in a file; a server has no place for them"
        )
    return config


def _document(page: str, feeds: Sequence[str], config: Config) -> Document:
    """Return a page with its text, if a feed has it."""
    if not is_url(page):
        return read_document(page, config)
    found = (each for url, each in documents_of(feeds, config) if url == canonical_url(page) and each.lines)
    return next(found, Document(page, ""))
