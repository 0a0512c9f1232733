"""`scrapy neardup explain`: explain the verdict on a page, or compare two pages."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from itertools import islice
from operator import ge, le
from textwrap import wrap
from typing import Any

from scrapy.settings import BaseSettings

from ..deduplicator import Deduplicator
from ..detectors import Exact
from ..document import Document
from ..facts import differing
from ..feeds import FeedError
from ..matching.matcher import Comparison, Rule, compare
from ..matching.reviews import WHY_APART, Reviews
from ..mirrors.advice import Alternative, Mirrors
from ..settings import Config
from ..signature import Signature, Visit
from ..store import Store, StoreError
from ..text.urls import host
from ..verdict import Point, in_words, named
from .mirrors import described
from .options import add_json, add_store, is_url, open_existing, read_config, read_document
from .output import Moment, print_lines, print_result

BEGINNING = 400  # characters of a text to show
LISTED = 50  # other URLs of a document to list
_THIN = "it has less than half of the page's words outside links, was hidden or in data, or is almost only links"
_SCRIPTED = "the page has hardly any text, so its text may be in a script"
_LIMITS: tuple[tuple[str, str, Callable[[float, float], bool]], ...] = (
    ("resemblance", "resemblance {:g}, needed {:g}", ge),
    ("length_ratio", "length ratio {:g}, allowed {:g}", le),
    ("missing_figures", "{:g} figures differ, allowed {:g}", le),
)


def add_explain(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("page", metavar="A", help="a URL known to the store, or a file, HTML or plain text")
    parser.add_argument("other", metavar="B", nargs="?", help="compare A with this URL or file")
    add_store(parser)
    add_json(parser)


def run_explain(opts: argparse.Namespace, settings: BaseSettings) -> None:
    """Explain why a page is a duplicate or not, and list other URLs with its content. Or compare two pages.

    example:
      scrapy neardup explain http://example.com/a.html
      scrapy neardup explain a.html b.txt

    The thresholds are those of the current settings, for the length of the document or, of two, of the shorter one. The
    last sentence names the points that decided. Nothing is fetched.
    """
    pages = [opts.page, *filter(None, [opts.other])]
    if len({is_url(page) for page in pages}) > 1:
        raise FeedError("allowed are two URLs or two files")
    if is_url(pages[-1]) or len(pages) == 1:
        with open_existing(opts, settings) as dedup:
            config = read_config(opts, settings)
            result = _compare_held(dedup, *pages) if opts.other else _explain_url(dedup, config, opts.page)
    else:
        config = Config.from_settings(settings)
        with Deduplicator.from_config(replace(config, store=None)) as dedup:
            dedup.matcher.reviews = Reviews(replace(config, store=opts.store or config.store))
            result = _compare_files(dedup, config, pages)
    sentence = "" if opts.json else result.pop("sentence", "")
    if not opts.json and "others" in result:
        result["others"] = list(map(_line, result["others"])) or "none"
    print_result(result, as_json=opts.json)
    if sentence:
        print_lines([sentence])


# A page of the store


def _explain_url(dedup: Deduplicator, config: Config, url: str) -> dict[str, Any]:
    link, items = dedup.store.resolve(url), dedup.store.of_page(url)
    mirrors = Mirrors(dedup.store, config, dedup.matcher.reviews)
    if items and (link is None or link.signature is None):
        return _explain_items(dedup.store, url, items)
    others = [_described_other(other) for other in islice(mirrors.alternatives(url), LISTED)]
    if link is None:
        return {**_explain_rule(mirrors, url, bool(others)), "others": others}
    if link.signature is None:
        return {"url": url, "status": "fetched each time: it also returned content that is not held"}
    is_apart = link.is_copy and dedup.matcher.reviews.differ(url, link.signature.url)
    return {
        "url": url,
        "status": f"fetched each time: {WHY_APART}" if is_apart else "copy" if link.is_copy else "held",
        "duplicate_of": named(link.signature.url, link.signature.label) if link.is_copy else None,
        "last_seen": Moment(link.seen),
        **_evidence(dedup, link),
        "document": _described(dedup.store, link.signature),
        "others": others,
        "sentence": in_words("unique", [Point(WHY_APART, False)]) if is_apart else _said(dedup, link),
    }


def _evidence(dedup: Deduplicator, link: Visit) -> dict[str, Any]:
    """Return the measures of a copy at its last fetch, and the current thresholds."""
    assert link.signature
    sketch, repeated = link.signature.sketch, link.signature.repeats > link.is_copy  # without this copy itself
    evidence = link.evidence._asdict() if link.evidence and link.is_copy else None
    limits = thresholds_of(dedup.matcher.rule, sketch.tokens, sketch.figures, repeated=repeated)
    return {"evidence": evidence, "thresholds": limits}


def _said(dedup: Deduplicator, link: Visit) -> str:
    """Return the sentence on a copy or an original."""
    assert link.signature
    if not link.is_copy:
        return in_words("unique", [Point(f"its content was new; copies since then: {link.signature.repeats}", True)])
    evidence, thresholds = _evidence(dedup, link).values()
    if evidence is None:
        return in_words("duplicate", [Point("its evidence is unknown", True)])
    return in_words("duplicate", [*limit_points(evidence, thresholds), Point(f"found by {evidence['detector']}", True)])


def _explain_items(store: Store, url: str, items: list[Signature]) -> dict[str, Any]:
    """Explain a page with several items: list those that are held."""
    return {
        "url": url,
        "status": "fetched each time: it gave several items",
        "items": [{"item": each.label, "copies": each.repeats, **_described(store, each)} for each in items],
        "sentence": f"the page gave several items, of which {len(items)} are held",
    }


def _explain_rule(mirrors: Mirrors, url: str, is_mirror: bool) -> dict[str, Any]:
    """Explain the advice on a URL that was never fetched. Raise StoreError if nothing is known of it."""
    if advice := mirrors.advise(url):
        rule = described(advice.rule.relation) if advice.rule else {"known_by": "NEARDUP_MIRROR_HOSTS"}
        status = f"never fetched: its host mirrors another host (advice: {advice.action})"
        return {"url": url, "status": status, "duplicate_of": advice.url, "rule": rule}
    if not is_mirror:
        raise StoreError(f"the store does not know {url}{_hint(url)}")
    return {"url": url, "status": "never fetched"}


def _hint(url: str) -> str:
    return "" if "://" in url else "; there is no such file, and a URL begins with http:// or https://"


def _described_other(other: Alternative) -> dict[str, Any]:
    link = other.link
    return {
        "url": other.url,
        "known_by": other.known_by,
        "last_seen": Moment(link.seen) if link else None,
        "resemblance": link.evidence.resemblance if link and link.evidence and link.is_copy else None,
        "confidence": None if other.confidence is None else round(other.confidence, 4),
    }


def _line(other: Mapping[str, Any]) -> str:
    sure = next((other[name] for name in ("resemblance", "confidence") if other[name] is not None), "")
    return f"{other['known_by']:9}  {other['last_seen'] or '':19}  {sure:6}  {other['url']}"


def _described(store: Store, signature: Signature) -> dict[str, Any]:
    sketch = signature.sketch
    prints = {name: " ".join(f"{value:016x}" for value in values) for name, values in signature.fingerprints.items()}
    return {
        "url": signature.url,
        "tokens": sketch.tokens,
        "shingles": sketch.shingles,
        "figures": sketch.figures,
        "fingerprints": {name: value or "abstains" for name, value in prints.items()},
        "layout": f"{signature.layout:016x}" if signature.layout else None,
        "first_seen": Moment(signature.first_seen),
        "run": store.run_of(signature) or None,
    }


# Two pages


def _compare_held(dedup: Deduplicator, *urls: str) -> dict[str, Any]:
    """Compare what two URLs of the store returned. The store has no texts, only their fingerprints."""
    links = [_held(dedup.store, url) for url in urls]
    first, second = (link.signature for link in links)
    assert first
    assert second
    if first.id == second.id and not dedup.matcher.reviews.differ(*urls):
        copy = links[links[1].is_copy]
        return {"duplicate_of": first.url, **_evidence(dedup, copy), "sentence": _said(dedup, copy)}
    found, rule = compare(first.sketch, second.sketch), dedup.matcher.rule
    proposed_by = list(dict.fromkeys(name for name, each in dedup.store.find(second) if each.id == first.id))
    points = [*rule_points(found, rule, proposed_by, same_url=False)]
    if dedup.matcher.reviews.differ(*urls):
        points = [Point(WHY_APART, False)]
    elif all(point.is_met for point in points):
        is_by_fields = host(urls[0]) == host(urls[1]) and differing(first.facts, second.facts)
        what = "the items differ in other fields" if is_by_fields else "the titles or what is no form keeps them apart"
        points = [Point(f"the texts are alike; {what}", False)]
    described = {url: _described(dedup.store, each) for url, each in zip(urls, (first, second), strict=True)}
    return {**_compared(found, rule, proposed_by), "documents": described, "sentence": in_words("unique", points)}


def _held(store: Store, url: str) -> Visit:
    link = store.resolve(url)
    if link is None or link.signature is None:
        raise StoreError(f"the store {'holds no content of' if link else 'does not know'} {url}{_hint(url)}")
    return link


def _compare_files(dedup: Deduplicator, config: Config, paths: list[str]) -> dict[str, Any]:
    first, second = (read_document(path, config) for path in paths)
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
        **_compared(found, rule, proposed_by),
        "documents": dict(zip(paths, described, strict=True)),
        "sentence": in_words(verdict.status, points) + _said_of_thin(paths, (first, second)),
    }


def _compared(found: Comparison, rule: Rule, proposed_by: list[str]) -> dict[str, Any]:
    limits = thresholds_of(rule, found.tokens, found.figures)
    return {"comparison": found._asdict(), "thresholds": limits, "proposed_by": proposed_by}


def _said_of_thin(paths: list[str], documents: tuple[Document, Document]) -> str:
    thin = [(path, each.scripted) for path, each in zip(paths, documents, strict=True) if each.thin]
    return "".join(f"; the text of {path} is thin: {_SCRIPTED if scripted else _THIN}" for path, scripted in thin)


def _beginning(text: str) -> list[str]:
    text = text.strip()
    begun = text[:BEGINNING] + "…" * (len(text) > BEGINNING)
    return [part for line in begun.splitlines() for part in wrap(line, 72)]


# The points that decide


def rule_points(found: Comparison, rule: Rule, proposed_by: list[str], *, same_url: bool) -> Iterator[Point]:
    """Yield the points that the rule checks for two documents, and whether each is met."""
    least = max(rule.min_tokens, 1)
    if found.tokens >= least:
        measured = found._asdict()
        if rule.ignores_figures(found):
            del measured["missing_figures"]
        yield from limit_points(measured, thresholds_of(rule, found.tokens, found.figures))
        yield Point(f"found by {', '.join(proposed_by) or 'no detector'}", bool(proposed_by))
    elif found.tokens and (same_url or rule.short_text == "exact"):
        is_same = Exact.name in proposed_by
        yield Point(f"{found.tokens} words, fewer than {least}: {'' if is_same else 'not '}all are equal", is_same)
    else:
        yield Point(f"{found.tokens} words, needed {least}", False)


def limit_points(found: Mapping[str, Any], thresholds: Mapping[str, Any]) -> Iterator[Point]:
    """Yield a point for each measure that has a threshold."""
    for name, text, is_met in _LIMITS:
        if name in found and thresholds[name] is not None:  # a record without text needs no resemblance
            value, limit = round(found[name], 4), thresholds[name]
            yield Point(text.format(value, limit), is_met(value, limit))


def thresholds_of(rule: Rule, tokens: int, figures: int, *, repeated: bool = False) -> dict[str, Any]:
    """Return the thresholds for texts of this length, and for one that is repeated already."""
    return {
        "min_tokens": rule.min_tokens,
        "resemblance": round(rule.required_resemblance(tokens, repeated=repeated), 4) if tokens else None,
        "length_ratio": rule.length_ratio,
        "missing_figures": round(rule.allowed_figures(tokens, figures), 4),
    }
