"""`scrapy neardup explain`: why a document is or is not a duplicate, from what is stored or from two files."""

from __future__ import annotations

import argparse
from dataclasses import replace
from pathlib import Path
from typing import Any

from scrapy.settings import BaseSettings
from w3lib.encoding import html_to_unicode

from ..config import Config
from ..dedup import Deduplicator
from ..document import Document
from ..feeds import FeedError
from ..mirrors import Mirrors
from ..signature import Link, Signature
from ..stores import Store, StoreError
from ..verify import compare
from .mirrors import described
from .moments import Moment
from .options import add_json, add_store, open_existing, print_result, read_config

EXAMPLES = """examples:
  scrapy neardup explain http://example.com/a.html
  scrapy neardup explain --files a.html b.txt --json

The thresholds are those of now, for a text as long as the document or, of two files, as the shorter one.
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("url", nargs="?", metavar="URL", help="a URL that the store knows")
    what.add_argument("--files", nargs=2, metavar=("A", "B"), help="two files to compare, HTML or plain text")
    add_store(parser)
    add_json(parser)


def run(opts: argparse.Namespace, settings: BaseSettings) -> None:
    if opts.files:
        config = replace(Config.from_settings(settings), store=None)
        with Deduplicator.from_config(config) as dedup:
            result = _explain_files(dedup, config, opts.files)
    else:
        with open_existing(opts, settings) as dedup:
            result = _explain_url(dedup, read_config(opts, settings), opts.url)
    print_result(result, as_json=opts.json)


def _explain_url(dedup: Deduplicator, config: Config, url: str) -> dict[str, Any]:
    link = dedup.store.resolve(url)
    if link is None:
        return _explain_rule(Mirrors.from_config(dedup.store, config), url)
    if link.signature is None:
        return {"url": url, "status": "fetched each time: it also gives what is held nowhere"}
    return {
        "url": url,
        "status": "mirror" if link.mirror else "held",
        "duplicate_of": link.signature.url if link.mirror else None,
        "last_seen": Moment(link.seen),
        "evidence": link.evidence._asdict() if link.evidence and link.mirror else None,
        "thresholds": _thresholds(dedup, link.signature.sketch.tokens, link.signature.sketch.figures),
        "document": _described(dedup.store, link.signature),
        "links": [_described_link(other) for other in dedup.store.links(link.signature)],
    }


def _explain_rule(mirrors: Mirrors, url: str) -> dict[str, Any]:
    """Say why a URL that was never fetched is skipped, or sent on; raise StoreError where it is not."""
    advice = mirrors.advise(url)
    if advice is None:
        raise StoreError(f"the store knows nothing of {url}")
    return {
        "url": url,
        "status": f"never fetched: its host mirrors another ({advice.action})",
        "duplicate_of": advice.url,
        "rule": described(advice.rule.relation) if advice.rule else {"known_by": "NEARDUP_MIRROR_HOSTS"},
    }


def _explain_files(dedup: Deduplicator, config: Config, paths: list[str]) -> dict[str, Any]:
    first, second = (_document(path, config) for path in paths)
    signatures = [dedup.sign(document) for document in (first, second)]
    found = compare(first.sketch, second.sketch)
    dedup.claim(first)
    proposed_by = [name for name, _ in dedup.store.find(signatures[1].fingerprints)]
    return {
        "verdict": dedup.claim(second).verdict.tag(),
        "comparison": found._asdict(),
        "thresholds": _thresholds(dedup, found.tokens, found.figures),
        "proposed_by": proposed_by,
        "documents": {path: _described(dedup.store, s) for path, s in zip(paths, signatures, strict=True)},
    }


def _thresholds(dedup: Deduplicator, tokens: int, figures: int) -> dict[str, Any]:
    rule = dedup.matcher.rule
    return {
        "min_tokens": rule.min_tokens,
        "resemblance": round(rule.required_resemblance(tokens), 4) if tokens else None,
        "length_ratio": rule.length_ratio,
        "missing_figures": round(rule.allowed_figures(tokens, figures), 4),
    }


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


def _described_link(link: Link) -> dict[str, Any]:
    return {"url": link.url, "mirror": link.mirror, "last_seen": Moment(link.seen)}


def _document(path: str, config: Config) -> Document:
    return Document.from_field(_read(path), url=Path(path).absolute().as_uri(), extractor=config.extractor)


def _read(path: str) -> str:
    try:
        return html_to_unicode(None, Path(path).read_bytes())[1]
    except OSError as error:
        raise FeedError(f"{path}: can't be read: {error.strerror}") from error
