"""`scrapy neardup explain`: explain why a page is a duplicate or not."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from textwrap import wrap
from typing import Any

from scrapy.settings import BaseSettings
from w3lib.encoding import html_to_unicode

from ..deduplicator import Deduplicator
from ..document import Document
from ..feeds import FeedError
from ..matching.evidence import compare
from ..matching.reviews import WHY_APART, reviews_folder
from ..mirrors.advice import Mirrors
from ..settings import Config
from ..signature import Signature
from ..store import Store, StoreError
from ..verdict import Point, in_words, named
from .mirrors import described
from .options import add_json, add_store, columns, open_existing, print_result, print_sentence, read_config
from .points import limit_points, rule_points, thresholds_of
from .times import Moment

EXAMPLES = """examples:
  scrapy neardup explain http://example.com/a.html
  scrapy neardup explain --files a.html b.txt --json

The thresholds are those of the current settings, for the length of the document or, with --files, of the shorter file.
The last sentence names the points that decided.
"""
_BEGINNING = 400  # characters of a text to show


def add_arguments(parser: argparse.ArgumentParser) -> None:
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("url", nargs="?", metavar="URL", help="a URL known to the store")
    what.add_argument("--files", nargs=2, metavar=("A", "B"), help="two files to compare, HTML or plain text")
    add_store(parser)
    add_json(parser)


def run(opts: argparse.Namespace, settings: BaseSettings) -> None:
    if opts.files:
        config = Config.from_settings(settings)
        config = replace(config, store=None, reviewed=reviews_folder(config))
        with Deduplicator.from_config(config) as dedup:
            result = _explain_files(dedup, config, opts.files)
    else:
        with open_existing(opts, settings) as dedup:
            result = _explain_url(dedup, read_config(opts, settings), opts.url)
    sentence = "" if opts.json else result.pop("sentence", "")
    print_result(result, as_json=opts.json)
    if sentence:
        print_sentence(sentence)


def _explain_url(dedup: Deduplicator, config: Config, url: str) -> dict[str, Any]:
    link, items = dedup.store.resolve(url), dedup.store.of_page(url)
    if items and (link is None or link.signature is None):
        return _explain_items(dedup.store, url, items)
    if link is None:
        return _explain_rule(Mirrors(dedup.store, config, dedup.matcher.reviews), url)
    if link.signature is None:
        return {"url": url, "status": "fetched each time: it also returned content that is not held"}
    evidence = link.evidence._asdict() if link.evidence and link.is_copy else None
    sketch, repeated = link.signature.sketch, link.signature.repeats > link.is_copy  # without this copy itself
    thresholds = thresholds_of(dedup.matcher.rule, sketch.tokens, sketch.figures, repeated=repeated)
    is_apart = link.is_copy and dedup.matcher.reviews.differ(url, link.signature.url)
    return {
        "url": url,
        "status": f"fetched each time: {WHY_APART}" if is_apart else "copy" if link.is_copy else "held",
        "duplicate_of": named(link.signature.url, link.signature.label) if link.is_copy else None,
        "last_seen": Moment(link.seen),
        "evidence": evidence,
        "thresholds": thresholds,
        "document": _described(dedup.store, link.signature),
        "links": [
            {"url": other.shown, "copy": other.is_copy, "last_seen": Moment(other.seen)}
            for other in dedup.store.visits(link.signature)
        ],
        "sentence": _said_of_copy(evidence, thresholds, is_apart=is_apart) if link.is_copy else _held(link.signature),
    }


def _explain_items(store: Store, url: str, items: list[Signature]) -> dict[str, Any]:
    """Explain a page with several items: list those that are held."""
    return {
        "url": url,
        "status": "fetched each time: it gave several items",
        "items": [{"item": each.label, "copies": each.repeats, **_described(store, each)} for each in items],
        "sentence": f"the page gave several items, of which {len(items)} are held",
    }


def _said_of_copy(evidence: Mapping[str, Any] | None, thresholds: Mapping[str, Any], *, is_apart: bool) -> str:
    """Return the sentence on a copy. It compares the measures of the last fetch with the current thresholds."""
    if is_apart:
        return in_words("unique", [Point(WHY_APART, False)])
    if evidence is None:
        return in_words("duplicate", [Point("its evidence is unknown", True)])
    return in_words("duplicate", [*limit_points(evidence, thresholds), Point(f"found by {evidence['detector']}", True)])


def _held(document: Signature) -> str:
    """Return the sentence on an original."""
    return in_words("unique", [Point(f"its content was new; copies since then: {document.repeats}", True)])


def _explain_rule(mirrors: Mirrors, url: str) -> dict[str, Any]:
    """Explain the advice on a URL that was never fetched. Raise StoreError if there is no advice."""
    advice = mirrors.advise(url)
    if advice is None:
        raise StoreError(f"the store does not know {url}")
    return {
        "url": url,
        "status": f"never fetched: its host mirrors another host (advice: {advice.action})",
        "duplicate_of": advice.url,
        "rule": described(advice.rule.relation) if advice.rule else {"known_by": "NEARDUP_MIRROR_HOSTS"},
    }


_THIN = "it has less than half of the page's words outside links, was hidden or in data, or is almost only links"
_SCRIPTED = "the page has hardly any text, so its text may be in a script"


def _explain_files(dedup: Deduplicator, config: Config, paths: list[str]) -> dict[str, Any]:
    first, second = (_document(path, config) for path in paths)
    signatures = [dedup.sign(document) for document in (first, second)]
    found, rule = compare(first.sketch, second.sketch), dedup.matcher.rule
    dedup.claim(first)
    proposed_by = [name for name, _ in dedup.store.find(signatures[1])]
    sibling = dedup.matcher.why_siblings(second, signatures[1], signatures[0])
    verdict = dedup.claim(second).verdict
    described = [
        {**_described(dedup.store, signature), "thin": document.thin, "text": _beginning(document.text)}
        for signature, document in zip(signatures, (first, second), strict=True)
    ]
    points = [*rule_points(found, rule, proposed_by, same_url=first.url == second.url)]
    if sibling and all(point.is_met for point in points):
        points.append(Point(sibling, False))
    return {
        "verdict": verdict.tag(),
        "comparison": found._asdict(),
        "thresholds": thresholds_of(rule, found.tokens, found.figures),
        "proposed_by": proposed_by,
        "documents": dict(zip(paths, described, strict=True)),
        "sentence": in_words(verdict.status, points) + _said_of_thin(paths, (first, second)),
    }


def _said_of_thin(paths: list[str], documents: tuple[Document, Document]) -> str:
    read = zip(paths, documents, strict=True)
    return "".join(
        f"; the text of {path} is thin: {_SCRIPTED if document.scripted else _THIN}"
        for path, document in read
        if document.thin
    )


def _beginning(text: str) -> list[str]:
    """Return the beginning of a text as lines that fit into a terminal."""
    text = text.strip()
    begun = text[:_BEGINNING] + "…" * (len(text) > _BEGINNING)
    width = 72 // max([1, *map(columns, begun)])
    return [part for line in begun.splitlines() for part in wrap(line, width)]


def _described(store: Store, signature: Signature) -> dict[str, Any]:
    sketch = signature.sketch
    return {
        "url": signature.url,
        "tokens": sketch.tokens,
        "shingles": sketch.shingles,
        "figures": sketch.figures,
        "fingerprints": {
            name: " ".join(f"{value:016x}" for value in values) or "abstains"
            for name, values in signature.fingerprints.items()
        },
        "layout": f"{signature.layout:016x}" if signature.layout else None,
        "first_seen": Moment(signature.first_seen),
        "run": store.run_of(signature) or None,
    }


def _document(path: str, config: Config) -> Document:
    return Document.from_field(_read(path), url=Path(path).absolute().as_uri(), extractor=config.extractor)


def _read(path: str) -> str:
    try:
        return html_to_unicode(None, Path(path).read_bytes())[1]
    except OSError as error:
        raise FeedError(f"{path}: can't be read: {error.strerror}") from error
