"""`scrapy neardup lab`: measure detectors and find thresholds on labelled documents, build a lexicon, cluster feeds."""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from dataclasses import replace
from typing import Any

from scrapy.settings import BaseSettings

from ..atomic import check_place
from ..detectors.detector import build_detectors
from ..document import Document
from ..feeds import FORMATS, FeedError, Feeds, row_id, telling, writing
from ..feeds.text_rows import json_text
from ..items import item_document
from ..matching.matcher import Rule
from ..papers.som import MissingExtraError, som_clusters
from ..quality.evaluation import Calibration, calibrate, evaluate, shuffled, warm_up
from ..quality.labels import MODES, LabelledSet
from ..quality.shingle_clusters import shingle_clusters
from ..settings import BUILTIN_DETECTORS, DEFAULT_DETECTORS, PREFIX, Config
from ..stats import plural
from ..text.lexicon import BAND, Lexicon
from . import options
from .output import print_lines, print_outcome, through
from .terminal import shown

ALL = "all"
HEAD = (
    f"{'':34} {'P':>6} {'R':>6} {'F1':>6} {'lenient':>8} {'hard':>6} {'cand./doc':>10} {'docs/s':>7} {'bytes/doc':>9}"
)

# Evaluate


def add_evaluate(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("folders", nargs="+", metavar="DIR", help="folders with docs.jsonl and pairs.jsonl")
    text = f"detectors to measure, each alone and all together; {ALL!r}: all that exist"
    add("--detectors", metavar="A,B", help=text)
    add("--unverified", action="store_true", help="accept all candidates of a detector, whatever the thresholds")
    add("--shuffle", type=options.whole(0), metavar="SEED", help="shuffle the documents with this random seed")
    add("--json", metavar="FILE", help="also write all results to FILE")


def run_evaluate(opts: argparse.Namespace, settings: BaseSettings) -> None:
    """Measure precision, recall and speed of detectors on labelled documents.

    example:
      scrapy neardup lab evaluate news laws --detectors simhash,shingle

    A folder contains docs.jsonl, with a document on each line: {"id": …, "text": …}, and pairs.jsonl, with a judged
    pair on each line: {"a": id, "b": id, "label": …}. Pairs labelled "dup" are duplicates. Pairs labelled "partial" or
    "rewrite" are not counted. For the lenient F1, pairs labelled "template" are not counted either. For the hard F1,
    pairs labelled "rewrite" count as duplicates. `scrapy neardup judge` writes such a folder.
    """
    config = Config.from_settings(settings)
    labelled_files = [file for folder in opts.folders for file in LabelledSet.files(folder)]
    options.check_apart(a_file_of_a_labelled_set=labelled_files, the_file_of_results=opts.json)
    configs = _contestants(config, opts.detectors)
    for contestant in configs:
        build_detectors(contestant)  # report a wrong name before the first measurement
    sets = [LabelledSet.load(folder) for folder in opts.folders]
    warm_up()
    with ExitStack() as stack:
        file = stack.enter_context(writing(opts.json, formats=(".json",))) if opts.json else None
        results = [_evaluated(labelled, configs, opts) for labelled in sets]
        if file:
            file.write(f"{json_text(results, indent=2)}\n".encode())


def _evaluated(labelled: LabelledSet, configs: list[Config], opts: argparse.Namespace) -> dict[str, Any]:
    """Print the results on one set, each as soon as it is known, and return them."""
    ordered = labelled if opts.shuffle is None else shuffled(labelled, opts.shuffle)
    print_lines([f"{labelled.name}: {len(labelled.rows)} documents", HEAD])
    rows = []
    for contestant in configs:
        rows.append(evaluate(ordered, contestant, verified=not opts.unverified))
        print_lines([_measures(rows[-1])])
        sys.stdout.flush()
    found = rows[-1]["found"]
    if "dup" not in found:
        print_lines(["no pair is labelled 'dup', so precision and recall have no meaning"])
    told = ", ".join(f"{label} {some} of {all_}" for label, (some, all_) in found.items())
    print_lines([f"labelled pairs found in the last line: {told}", ""])
    return {"set": labelled.name, "documents": len(labelled.rows), "results": rows}


def _contestants(config: Config, chosen: Any) -> list[Config]:
    """Return a configuration for each detector, and then one for all of them together."""
    together = config if chosen in (None, ALL) else replace(config, detectors=chosen)
    known = BUILTIN_DETECTORS if chosen else DEFAULT_DETECTORS
    names = dict.fromkeys([*(known if together is config else ()), *together.detectors])
    alone = [replace(together, detectors=(name,)) for name in names]
    return alone if alone[-1:] == [together] else [*alone, together]


def _measures(row: Mapping[str, Any]) -> str:
    strict, lenient, hard = (row[mode] for mode in MODES)
    return (
        f"{' '.join(row['detectors']):34} {strict['precision']:6.4f} {strict['recall']:6.4f} {strict['f1']:6.4f}"
        f" {lenient['f1']:8.4f} {hard['f1']:6.4f} {row['candidates_per_document']:10.2f}"
        f" {row['documents_per_second']:7d} {row['bytes_per_document']:9d}"
    )


# Calibrate


def add_calibrate(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("folder", metavar="DIR", help="folder with docs.jsonl and pairs.jsonl")
    text = "the target precision: the share of the found pairs that are duplicates"
    parser.add_argument("--precision", type=options.share, required=True, metavar="P", help=text)
    text = "how labels count; see scrapy neardup lab evaluate --help (default: strict)"
    parser.add_argument("--labels", choices=MODES, default="strict", help=text)
    options.add_json(parser)


def run_calibrate(opts: argparse.Namespace, settings: BaseSettings) -> None:
    """Find thresholds for a target precision, and print them as settings.

    example:
      scrapy neardup lab calibrate news --precision 0.99 >> settings.py

    The folder contains docs.jsonl and pairs.jsonl, as `scrapy neardup judge` writes them;
    scrapy neardup lab evaluate --help describes these files.
    """
    config = Config.from_settings(settings)
    labelled = LabelledSet.load(opts.folder)
    if not MODES[opts.labels].right.intersection(labelled.labels.values()):
        raise FeedError(f"{opts.folder}: no pair is labelled 'dup'; calibration needs such pairs")
    try:
        found = calibrate(labelled, config, opts.precision, opts.labels)
    except ValueError as error:
        raise FeedError(str(error)) from error
    named = {f"{PREFIX}{name.upper()}": value for name, value in found.settings.items()}
    if opts.json:
        print_lines((), {"settings": named, "reached": found.reached[opts.labels]}, as_json=True)
    else:  # whole lines, also on a terminal: they are Python
        print(*_comments(found, opts), *(f"{name} = {value!r}" for name, value in named.items()), sep="\n")


def _comments(found: Calibration, opts: argparse.Namespace) -> Iterator[str]:
    score = found.reached[opts.labels]
    reached = f"reached: precision {score['precision']}, recall {score['recall']} ({opts.labels})"
    yield f"# target precision {opts.precision}; {reached}"
    pairs = plural(score["right"] + score["missed"], "duplicate pair")
    yield f"# learned from {pairs}; pairs found wrongly: {score['wrong']}"


# Lexicon


def add_lexicon(parser: argparse.ArgumentParser) -> None:
    options.add_feeds(parser)
    options.add_text_field(parser)
    text = "write the lexicon to FILE; gzipped if the name ends in .gz"
    parser.add_argument("-o", "--output", required=True, metavar="FILE", help=text)
    text = "keep terms with a normalized IDF from LOW to HIGH; it is 0 for a term in all documents, 1 for a term in"
    text += " only one (default: %(default)s)"
    parser.add_argument("--band", nargs=2, type=options.share, default=BAND, metavar=("LOW", "HIGH"), help=text)
    text = "leave out terms in fewer than N documents (default: 2)"
    parser.add_argument("--min-documents", type=options.whole(0), default=2, metavar="N", help=text)
    options.add_json(parser)


def run_lexicon(opts: argparse.Namespace, settings: BaseSettings) -> int:
    """Build an I-Match lexicon from feeds.

    example:
      scrapy neardup lab lexicon monday.jsonl.gz tuesday.jsonl.gz -o news.lexicon

    Then replace "imatch" in NEARDUP_DETECTORS by {"name": "imatch", "lexicon": "news.lexicon"}, and begin a new store.
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


# Cluster


def add_cluster(parser: argparse.ArgumentParser) -> None:
    options.add_feeds(parser)
    options.add_fields(parser)
    text = "the algorithm (default: shingle)"
    parser.add_argument("--method", choices=("shingle", "som"), default="shingle", help=text)
    text = "write the clusters to FILE, as JSON lines; - for standard output"
    parser.add_argument("-o", "--output", required=True, metavar="FILE", help=text)
    options.add_json(parser)
    text = "for --method som: the field with the class, such as a category (default: classes are guessed)"
    parser.add_argument("--class-field", metavar="F", help=text)


def run_cluster(opts: argparse.Namespace, settings: BaseSettings) -> int:
    """Cluster the documents of feeds, as a batch.

    example:
      scrapy neardup lab cluster items.jsonl -o clusters.jsonl

    Each line of FILE is a cluster of two or more documents: {"cluster": 1, "documents": [id, id, …]}.
    --method shingle compares documents that share super-shingles, with the NEARDUP_RESEMBLANCE, NEARDUP_LENGTH_RATIO
    and NEARDUP_MIN_TOKENS of the project. The batch has to fit into memory.
    --method som builds a self-organising map of weighted terms (pip install 'scrapy-neardup[som]'). It is made for up
    to about 1,000 long documents with few words in common. Its cost grows faster than the number of documents.
    """
    files = {"the_output": opts.output, "the_file_of_bad_rows": opts.bad_rows, "the_result": "-" if opts.json else None}
    options.check_apart(a_feed=opts.feeds, **files)
    feeds = Feeds(opts.feeds, opts.format)
    if opts.class_field and opts.method != "som":
        raise FeedError("--class-field is for --method som only")
    config = options.with_fields(Config.from_settings(settings), opts, feeds.kind)
    with options.taking_bad_rows(opts) as bad, writing(opts.output, FORMATS) as output:
        batch = _Batch(opts, config, feeds, bad)
        try:
            if opts.method == "som":
                classes = batch.classes if opts.class_field else None  # the list is filled while the documents are read
                clusters = som_clusters(batch.read(), classes=classes)
            else:
                clusters = shingle_clusters(batch.read(), Rule.from_config(config))
        except MissingExtraError as error:
            raise FeedError(f"--method {opts.method}: {error}") from error
        options.check_fields(opts, batch.rows, len(batch.ids), batch.located)
        for number, cluster in enumerate(clusters, 1):
            entry = {"cluster": number, "documents": [batch.ids[place] for place in cluster]}
            output.write(f"{json_text(entry)}\n".encode())
    held = sum(map(len, clusters))
    told = f"{plural(batch.rows, 'row')}, {plural(len(batch.ids), 'document')}, "
    told += f"{plural(len(clusters), 'cluster')} of {plural(held, 'document')}{bad.summary()}"
    outcome = {"rows": batch.rows, "documents": len(batch.ids), "clusters": len(clusters), "clustered": held}
    print_outcome({**outcome, "bad_rows": bad.count}, told, as_json=opts.json)
    return bad.exit_code


class _Batch:
    """Reads the rows once, makes their documents, and records the row id of each document."""

    def __init__(self, opts: argparse.Namespace, config: Config, feeds: Feeds, bad: options.BadRows) -> None:
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
