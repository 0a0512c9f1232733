"""`scrapy neardup cluster`: cluster the documents of feeds."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from typing import Any

from scrapy.settings import BaseSettings

from ..document import Document
from ..feeds import FORMATS, FeedError, Feeds, row_id, writing
from ..feeds.json_text import json_text
from ..items import item_document
from ..matching.evidence import Rule
from ..papers.som import MissingExtraError, Parameters, som_clusters
from ..quality.shingle_clusters import shingle_clusters
from ..settings import Config
from ..stats import plural
from .bars import through
from .feed_options import BadRows, add_feeds, add_fields, check_fields, taking_bad_rows, with_fields
from .options import add_json, check_apart, number, print_outcome, whole

EXAMPLES = """examples:
  scrapy neardup cluster items.jsonl -o clusters.jsonl
  scrapy neardup cluster monday.jsonl.gz tuesday.jsonl.gz -o clusters.jsonl --text-field body --id-field id
  scrapy neardup cluster items.jsonl -o clusters.jsonl --method som --class-field category --title-weight 3

Each line of FILE is a cluster of two or more documents: {"cluster": 1, "documents": [id, id, …]}.

--method shingle compares documents that share super-shingles, with the NEARDUP_RESEMBLANCE, NEARDUP_LENGTH_RATIO and
NEARDUP_MIN_TOKENS of the project. The batch has to fit into memory.
--method som builds a self-organising map of weighted terms (pip install 'scrapy-neardup[som]'). It is made for up to
about 1,000 long documents with few words in common. Its cost grows faster than the number of documents.
Both methods read the whole batch first. `scrapy neardup dedupe` decides row by row instead, and can compare rows with
the documents of a store.
"""

OPTIONS = {
    "class_field": "--class-field",
    "title_weight": "--title-weight",
    "similarity": "--similarity",
    "seed": "--seed",
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_feeds(parser)
    add_fields(parser)
    parser.add_argument(
        "--method", choices=("shingle", "som"), default="shingle", help="the algorithm (default: shingle)"
    )
    parser.add_argument(
        "-o",
        "--output",
        required=True,
        metavar="FILE",
        help="write the clusters to FILE, as JSON lines; - for standard output",
    )
    add_json(parser)
    _add_som(parser.add_argument_group("for --method som"))


def _add_som(group: argparse._ArgumentGroup) -> None:
    usual = Parameters()
    group.add_argument(
        "--class-field", metavar="F", help="the field with the class, such as a category (default: classes are guessed)"
    )
    group.add_argument(
        "--title-weight",
        type=number(0, 1000),
        metavar="N",
        help=f"the weight of a term in the title; in the text it is 1 (default: {usual.title_weight:g})",
    )
    group.add_argument(
        "--similarity",
        type=number(0, 1),
        metavar="N",
        help=f"the required cosine of two documents, from 0 to 1 (default: {usual.similarity})",
    )
    group.add_argument(
        "--seed", type=whole(0, 2**32 - 1), metavar="N", help=f"the random seed of the map (default: {usual.seed})"
    )


def run(opts: argparse.Namespace, settings: BaseSettings) -> int:
    files = {"the_output": opts.output, "the_file_of_bad_rows": opts.bad_rows, "the_result": "-" if opts.json else None}
    check_apart(a_feed=opts.feeds, **files)
    feeds, parameters = Feeds(opts.feeds, opts.format), _parameters(opts)
    config = with_fields(Config.from_settings(settings), opts, feeds.kind)
    with taking_bad_rows(opts) as bad, writing(opts.output, FORMATS) as output:
        batch = _Batch(opts, config, feeds, bad)
        try:
            if opts.method == "som":
                classes = batch.classes if opts.class_field else None  # the list is filled while the documents are read
                clusters = som_clusters(batch.read(), parameters, classes)
            else:
                clusters = shingle_clusters(batch.read(), Rule.from_config(config))
        except MissingExtraError as error:
            raise FeedError(f"--method {opts.method}: {error}") from error
        check_fields(opts, batch.rows, len(batch.ids), batch.located)
        for number, cluster in enumerate(clusters, 1):
            entry = {"cluster": number, "documents": [batch.ids[place] for place in cluster]}
            output.write(f"{json_text(entry)}\n".encode())
    held = sum(map(len, clusters))
    told = ", ".join(
        [
            plural(batch.rows, "row"),
            plural(len(batch.ids), "document"),
            f"{plural(len(clusters), 'cluster')} of {plural(held, 'document')}",
        ]
    )
    outcome = {"rows": batch.rows, "documents": len(batch.ids), "clusters": len(clusters), "clustered": held}
    outcome["bad_rows"] = bad.count
    print_outcome(outcome, told + bad.summary(), as_json=opts.json)
    return bad.exit_code


def _parameters(opts: argparse.Namespace) -> Parameters:
    given = {name: getattr(opts, name) for name in OPTIONS if getattr(opts, name) is not None}
    if given and opts.method != "som":
        raise FeedError(f"{OPTIONS[next(iter(given))]} is for --method som only")
    given.pop("class_field", None)
    return Parameters(**given)


class _Batch:
    """Reads the rows once, makes their documents, and records the row id of each document."""

    def __init__(self, opts: argparse.Namespace, config: Config, feeds: Feeds, bad: BadRows) -> None:
        self.rows = self.located = 0
        self.ids: list[Any] = []
        self.classes: list[str] = []
        """The class of each document. Rows without the field form one class."""
        self._opts = opts
        self._config = config
        self._feeds = feeds
        self._bad = bad

    def read(self) -> Iterator[Document]:
        for row in through(self._feeds, self._feeds.rows(self._bad)):
            self.rows += 1
            if document := item_document(row.data, self._config):
                self.located += document.url is not None
                self.ids.append(row_id(row, self._opts.id_field, self._config.url_field))
                self.classes.append(json.dumps(row.data.get(self._opts.class_field), default=str))
                yield document
        if self._opts.class_field and set(self.classes) == {"null"}:
            raise FeedError(f"--class-field {self._opts.class_field}: no row has that field")
