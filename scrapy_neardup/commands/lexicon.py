"""`scrapy neardup lab lexicon`: build an I-Match lexicon from the document frequencies of feeds."""

from __future__ import annotations

import argparse
from collections import Counter

from scrapy.settings import BaseSettings

from ..atomic import check_place
from ..feeds import FeedError, Feeds, telling
from ..items import item_document
from ..settings import Config
from ..text.lexicon import BAND, Lexicon
from . import options
from .output import print_outcome, through
from .terminal import shown


def add_lexicon(parser: argparse.ArgumentParser) -> None:
    options.add_feeds(parser)
    options.add_text_field(parser)
    text = "write the lexicon to FILE; gzipped if the name ends in .gz"
    parser.add_argument("-o", "--output", required=True, metavar="FILE", help=text)
    text = "keep terms with a normalized IDF from LOW to HIGH; it is 0 for a term in all documents, 1 for a term in"
    text += " only one (default: %(default)s)"
    parser.add_argument("--band", nargs=2, type=options.number(0, 1), default=BAND, metavar=("LOW", "HIGH"), help=text)
    text = "leave out terms in fewer than N documents (default: 2)"
    parser.add_argument("--min-documents", type=options.whole(0), default=2, metavar="N", help=text)
    options.add_json(parser)


def run_lexicon(opts: argparse.Namespace, settings: BaseSettings) -> int:
    """Build an I-Match lexicon from feeds.

    example:
      scrapy neardup lab lexicon monday.jsonl.gz tuesday.jsonl.gz -o news.lexicon

    Then set NEARDUP_LEXICON = "news.lexicon", and begin a new store.
    """
    options.check_apart(a_feed=opts.feeds, the_output=opts.output, the_file_of_bad_rows=opts.bad_rows)
    feeds = Feeds(opts.feeds, opts.format)
    with telling(opts.output):
        check_place(opts.output)
    config = options.with_fields(Config.from_settings(settings), opts, feeds.kind)
    with options.taking_bad_rows(opts) as bad:
        frequencies, documents = _counted(feeds, config, bad)
        if not documents:
            field = f" in field {opts.text_field!r}" if opts.text_field else ""
            raise FeedError(f"{', '.join(opts.feeds)}: no row has text{field}; nothing was written")
        lexicon = _saved(opts, frequencies, documents)
    outcome = {"documents": documents, "terms": len(frequencies), "kept": len(lexicon.terms), "lexicon": lexicon.id}
    kept = f"{len(lexicon.terms)} of {len(frequencies)} terms kept"
    told = f"{documents} documents, {kept}, lexicon {lexicon.id}{bad.summary()}"
    print_outcome({**outcome, "bad_rows": bad.count}, told, as_json=opts.json)
    return bad.exit_code


def _saved(opts: argparse.Namespace, frequencies: Counter[str], documents: int) -> Lexicon:
    low, high = opts.band
    source = shown(", ".join(opts.feeds))  # file names need not be valid text
    try:
        lexicon = Lexicon.from_frequencies(frequencies, documents, low, high, opts.min_documents, source)
    except ValueError as error:
        raise FeedError(f"--band {low} {high}: {error}") from error
    if not lexicon.terms:
        raise FeedError(f"no term is in the band {low} to {high} of {documents} documents; nothing was written")
    with telling(opts.output):
        lexicon.save(opts.output)
    return lexicon


def _counted(feeds: Feeds, config: Config, bad: options.BadRows) -> tuple[Counter[str], int]:
    """Return the document frequency of each term, and the number of documents."""
    frequencies: Counter[str] = Counter()
    documents = 0
    for row in through(feeds, feeds.rows(bad)):
        if document := item_document(row.data, config):
            documents += 1
            frequencies.update(set(document.tokens))
    return frequencies, documents
