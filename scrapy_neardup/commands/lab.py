"""`scrapy neardup lab`: measure detectors and find thresholds on labelled documents, build a lexicon, cluster feeds."""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from itertools import chain
from typing import Any

from scrapy.settings import BaseSettings

from ..detectors import build_detectors
from ..document import Document
from ..feeds import JsonLines
from ..files import FileError, json_text, writing
from ..fingerprints.lexicon import BAND, Lexicon
from ..papers.som import som_clusters
from ..quality import MODES, LabelledSet, calibrate, evaluate, result_of
from ..settings import BUILTIN_DETECTORS, DEFAULT_DETECTORS, PREFIX, Config
from ..stats import plural
from ..text.tokens import tokenize
from . import answer, options

ALL = "all"
HEAD = (
    f"{'':34} {'P':>6} {'R':>6} {'F1':>6} {'lenient':>8} {'hard':>6} {'cand./doc':>10} {'docs/s':>7} {'bytes/doc':>9}"
)


def add_evaluate(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("folders", nargs="+", metavar="DIR", help="folders with docs.jsonl and pairs.jsonl")
    text = f"detectors, each measured alone, then together; {ALL!r}: each that exists, then those of the settings"
    add("--detectors", metavar="A,B", help=text)
    add("--unverified", action="store_true", help="accept all candidates of a detector, whatever the thresholds")


def run_evaluate(opts: argparse.Namespace, settings: BaseSettings) -> None:
    """Measure precision, recall and speed of detectors on labelled documents.

    example:
      scrapy neardup lab evaluate news laws --detectors simhash,shingle

    A folder has the documents in docs.jsonl, {"id": …, "text": …}, and judged pairs in pairs.jsonl, {"a": id, "b": id,
    "label": …}, as `scrapy neardup judge` writes them. "dup" is the label of duplicates. Pairs labelled "partial" or
    "rewrite" do not count. The lenient F1 does not count "template" either. The hard F1 takes "rewrite" as a duplicate.
    """
    configs = _contestants(Config.from_settings(settings), opts.detectors)
    for contestant in configs:
        build_detectors(contestant)  # report a wrong name before the first measurement
    sets = [LabelledSet.load(folder) for folder in opts.folders]
    tokenize("预热")  # loads the dictionary, so that the first measurement does not include it
    results = (  # lazy, so that each table is printed once its set is measured
        {
            "set": labelled.name,
            "documents": len(labelled.rows),
            "results": [evaluate(labelled, contestant, verified=not opts.unverified) for contestant in configs],
        }
        for labelled in sets
    )
    answer(opts, [*results] if opts.json else None, chain.from_iterable(map(_table, results)))


def _table(result: Mapping[str, Any]) -> Iterator[str]:
    yield f"{result['set']}: {plural(result['documents'], 'document')}"
    yield HEAD
    yield from map(_measures, result["results"])
    found = result["results"][-1]["found"]
    if "dup" not in found:
        yield "no pair is labelled 'dup', so precision and recall have no meaning"
    told = ", ".join(f"{label} {some} of {all_}" for label, (some, all_) in found.items())
    yield f"labelled pairs found in the last line: {told}"


def _contestants(config: Config, chosen: Any) -> list[Config]:
    """Return a configuration for each detector alone, then one for all: those `chosen`, or those of the settings."""
    together = config if chosen in (None, ALL) else replace(config, detectors=chosen)
    known = BUILTIN_DETECTORS if chosen else DEFAULT_DETECTORS
    parts = [*(known if together is config else ()), *together.detectors]  # a set can't have dictionaries
    alone = [replace(together, detectors=(part,)) for n, part in enumerate(parts) if part not in parts[:n]]
    return alone if alone[-1:] == [together] else [*alone, together]


def _measures(row: Mapping[str, Any]) -> str:
    strict, lenient, hard = (row[mode] for mode in MODES)
    return (
        f"{' '.join(row['detectors']):34} {strict['precision']:6.4f} {strict['recall']:6.4f} {strict['f1']:6.4f}"
        f" {lenient['f1']:8.4f} {hard['f1']:6.4f} {row['candidates_per_document']:10.2f}"
        f" {row['documents_per_second']:7d} {row['bytes_per_document']:9d}"
    )


def add_calibrate(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("folder", metavar="DIR", help="folder with docs.jsonl and pairs.jsonl")
    text = "the target precision: the share of the found pairs that are duplicates"
    parser.add_argument("--precision", type=options.share, required=True, metavar="P", help=text)


def run_calibrate(opts: argparse.Namespace, settings: BaseSettings) -> None:
    """Find thresholds for a target precision, and print them as settings.

    example:
      scrapy neardup lab calibrate news --precision 0.99 >> settings.py

    `scrapy neardup lab evaluate --help` describes the files of the folder.
    """
    config = Config.from_settings(settings)
    labelled = LabelledSet.load(opts.folder)
    if "dup" not in labelled.labels.values():
        raise FileError(f"{opts.folder}: no pair is labelled 'dup'; calibration needs such pairs")
    found, reached = calibrate(labelled, config, opts.precision)
    named = {f"{PREFIX}{name.upper()}": value for name, value in found.items()}
    score = reached["strict"]
    pairs = plural(score["right"] + score["missed"], "duplicate pair")
    told = [
        f"# target precision {opts.precision}; reached: precision {score['precision']}, recall {score['recall']}",
        f"# learned from {pairs}; pairs found wrongly: {score['wrong']}",
    ]
    lines = [*told, *(f"{name} = {value!r}" for name, value in named.items())]
    answer(opts, {"settings": named, "reached": score}, lines)


def add_lexicon(parser: argparse.ArgumentParser) -> None:
    options.add_feeds(parser)
    text = "write the lexicon to FILE; gzipped if the name ends in .gz"
    parser.add_argument("-o", "--output", required=True, metavar="FILE", help=text)
    text = "keep terms with a normalized IDF from LOW to HIGH; it is 0 for a term in all documents, 1 for a term in"
    text += " only one (default: %(default)s)"
    parser.add_argument("--band", nargs=2, type=options.share, default=BAND, metavar=("LOW", "HIGH"), help=text)


def run_lexicon(opts: argparse.Namespace, settings: BaseSettings) -> int:
    """Build an I-Match lexicon from feeds.

    example:
      scrapy neardup lab lexicon monday.jsonl.gz tuesday.jsonl.gz -o news.lexicon

    Then replace "imatch" in NEARDUP_DETECTORS by {"name": "imatch", "lexicon": "news.lexicon"}, and begin a new store.
    """
    options.check_apart(a_feed=opts.feeds, the_output=opts.output)
    found, frequencies = options.Documents(opts, settings), Counter[str]()
    with writing(opts.output) as output:
        for _, document in found:
            frequencies.update(set(document.tokens))
        lexicon = _lexicon(opts, frequencies, found.documents)
        output.write(lexicon.encoded())
    documents, terms, kept = found.documents, len(frequencies), len(lexicon.terms)
    outcome = {"documents": documents, "terms": terms, "kept": kept, "lexicon": lexicon.id}
    said = f"{documents} documents, {kept} of {terms} terms kept, lexicon {lexicon.id}"
    return found.bad.answer(opts, outcome, said)


def _lexicon(opts: argparse.Namespace, frequencies: Counter[str], documents: int) -> Lexicon:
    low, high = opts.band
    try:
        lexicon = Lexicon.from_frequencies(frequencies, documents, low, high)
    except ValueError as error:
        raise FileError(f"--band {low} {high}: {error}") from error
    if not lexicon.terms:
        raise FileError(f"no term is in the band {low} to {high} of {documents} documents; nothing was written")
    return lexicon


def add_cluster(parser: argparse.ArgumentParser) -> None:
    options.add_feeds(parser)
    text = "as `dedupe` decides (the default), or by a self-organising map"
    parser.add_argument("--method", choices=("dedupe", "som"), default="dedupe", help=text)
    text = "write the clusters to FILE, as JSON lines; - for standard output"
    parser.add_argument("-o", "--output", required=True, metavar="FILE", help=text)


def run_cluster(opts: argparse.Namespace, settings: BaseSettings) -> int:
    """Cluster the documents of feeds.

    example:
      scrapy neardup lab cluster items.jsonl -o clusters.jsonl

    Each line of the output is a cluster of two or more documents: {"cluster": 1, "documents": [id, id, …]}. The first
    is the original, and the others are its copies. --method som (pip install 'scrapy-neardup[som]') builds a
    self-organising map of weighted terms, for up to about 1,000 long documents with few words in common.
    """
    options.check_apart(a_feed=opts.feeds, the_output=opts.output, the_result="-" if opts.json else None)
    found = options.Documents(opts, settings)
    documents = ((row.id(opts.id_field, found.config.url_field), each) for row, each in found)
    with writing(opts.output, JsonLines.endings) as output:
        made = _on_map(documents) if opts.method == "som" else result_of(documents, found.config).clusters
        clusters = [cluster for cluster in made if len(cluster) > 1]
        for number, cluster in enumerate(clusters, 1):
            output.write(f"{json_text({'cluster': number, 'documents': cluster})}\n".encode())
    held = sum(map(len, clusters))
    said = f"{plural(found.rows, 'row')}, {plural(found.documents, 'document')}, "
    said += f"{plural(len(clusters), 'cluster')} of {plural(held, 'document')}"
    outcome = {"rows": found.rows, "documents": found.documents, "clusters": len(clusters), "clustered": held}
    return found.bad.answer(opts, outcome, said)


def _on_map(documents: Iterable[tuple[Any, Document]]) -> list[list[Any]]:
    try:
        return som_clusters(documents)
    except ModuleNotFoundError as error:
        raise FileError(f"--method som needs MiniSom: pip install 'scrapy-neardup[som]' ({error})") from error
