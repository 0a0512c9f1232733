"""`scrapy neardup explain`: explain the verdict on a page, or compare two pages."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from itertools import islice
from operator import attrgetter, ge, le
from textwrap import wrap
from typing import Any, NamedTuple

from scrapy.settings import BaseSettings

from ..deduplicator import Deduplicator
from ..detectors import Exact
from ..document import Document
from ..files import FileError
from ..matching.matcher import Comparison, Rule, compare
from ..matching.reviews import WHY_APART, Reviews
from ..mirrors import Alternative, Mirrors
from ..settings import Config
from ..signature import Evidence, Signature, Visit
from ..stats import plural
from ..store import Store, StoreError
from ..verdict import named
from . import Moment, answer, fields
from .look import described
from .options import is_url, read_document, with_store

WIDTH, BEGINNING = 72, 6  # of the beginning of a text: characters of a line, and lines
LISTED = 50  # other URLs of a document, or items of a page, to list
_THIN = "it has less than half of the page's words outside links, was hidden or in data, or is almost only links"
_SCRIPTED = "the page has hardly any text, so its text may be in a script"


def add_explain(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("page", metavar="A", help="a URL known to the store, or a file, HTML or plain text")
    parser.add_argument("other", metavar="B", nargs="?", help="compare A with this URL or file")


def run_explain(opts: argparse.Namespace, settings: BaseSettings) -> None:
    """Explain why a page is a duplicate or not, or compare two pages.

    example:
      scrapy neardup explain http://example.com/a.html
      scrapy neardup explain a.html b.txt

    Other URLs with the content of a page are listed. The last sentence names what decided, and the thresholds that the
    current settings give for this length of text. Of two texts, the length of the shorter one counts. Nothing is
    fetched.
    """
    pages = [opts.page, *filter(None, [opts.other])]
    if len({is_url(page) for page in pages}) > 1:
        raise FileError("allowed are two URLs or two files")
    if is_url(pages[-1]) or len(pages) == 1:
        config = with_store(opts, settings)
        with Deduplicator.from_config(config, run=None) as dedup:
            result = (_compare_held if opts.other else _explain_url)(dedup, config, *pages)
    else:
        config = Config.from_settings(settings)
        with Deduplicator.from_config(replace(config, store=None)) as dedup:
            dedup.matcher.reviews = Reviews(replace(config, store=opts.store or config.store))
            result = _compare_files(dedup, config, pages)
    told = {name: value for name, value in result.items() if name != "sentence"}
    for name, line in (("others", _other_line), ("items", _item_line)):
        if name in told:
            told[name] = list(map(line, told[name])) or "none"
    answer(opts, result, [*fields(told), *filter(None, [result.get("sentence")])])


def _explain_url(dedup: Deduplicator, config: Config, url: str) -> dict[str, Any]:
    link, items = dedup.store.resolve(url), dedup.store.of_page(url)
    mirrors = Mirrors(dedup.store, config, dedup.matcher.reviews)
    if items and (link is None or link.signature is None):
        return _explain_items(url, items)
    others = [_described_other(other) for other in islice(mirrors.alternatives(url), LISTED)]
    if link is None:
        advised = _explain_advice(mirrors, url)
        if not (advised or others):
            raise StoreError(f"the store does not know {url}{_hint(url)}")
        return {"url": url, "status": "never fetched", **advised, "others": others}
    if link.signature is None:
        return {"url": url, "status": "fetched each time: it gave several items, or content that is not held"}
    is_apart = link.is_copy and dedup.matcher.reviews.differ(url, link.signature.url)
    return {
        "url": url,
        "status": f"fetched each time: {WHY_APART}" if is_apart else "copy" if link.is_copy else "held",
        "duplicate_of": named(link.signature.url, link.signature.label) if link.is_copy else None,
        "last_seen": Moment(link.seen),
        "evidence": link.evidence._asdict() if link.evidence and link.is_copy else None,
        "document": _described(dedup.store, link.signature),
        "others": others,
        "sentence": f"unique: {WHY_APART}" if is_apart else _said(dedup, link),
    }


def _said(dedup: Deduplicator, link: Visit) -> str:
    """Return the sentence that explains why a URL is a copy or an original."""
    assert link.signature
    copies, tokens = link.signature.copy_count, link.signature.sketch.tokens
    if not link.is_copy:
        return f"unique: its content was new; copies since then: {copies}"
    if link.evidence is None:
        return "duplicate: its evidence is unknown"
    points = _limits(dedup.matcher.rule, link.evidence, tokens, repeated=copies > 1)  # without this copy itself
    return f"{_sentence('duplicate', [*points])}; found by {link.evidence.detector}"


def _explain_items(url: str, items: list[Signature]) -> dict[str, Any]:
    return {
        "url": url,
        "status": "fetched each time: it gave several items",
        "items": [
            {"item": each.label, "title": each.title, "tokens": each.sketch.tokens, "copies": each.copy_count}
            for each in items
        ],
        "sentence": f"the page gave several items, of which {len(items)} are held",
    }


def _item_line(item: Mapping[str, Any]) -> str:
    counts = f"{plural(item['tokens'], 'word')}, {plural(item['copies'], 'copy')}"
    return f"{item['item'] or item['title'] or 'without facts'}  ({counts})"


def _explain_advice(mirrors: Mirrors, url: str) -> dict[str, Any]:
    """Explain the advice on a URL that was never fetched. Return {} if there is no advice."""
    if not (advice := mirrors.advise(url)):
        return {}
    rule = described(advice.rule.relation) if advice.rule else {"known_by": "NEARDUP_MIRROR_HOSTS"}
    status = f"never fetched: its host mirrors another host (advice: {advice.action})"
    return {"status": status, "duplicate_of": advice.url, "rule": rule}


def _hint(url: str) -> str:
    return "" if is_url(url) else "; a URL begins with http:// or https://, and a file is compared with another"


def _described_other(other: Alternative) -> dict[str, Any]:
    link = other.link
    return {
        "url": other.url,
        "known_by": other.known_by,
        "last_seen": Moment(link.seen) if link else None,
        "resemblance": link.evidence.resemblance if link and link.evidence and link.is_copy else None,
        "confidence": None if other.confidence is None else round(other.confidence, 4),
    }


def _other_line(other: Mapping[str, Any]) -> str:
    sure = next((other[name] for name in ("resemblance", "confidence") if other[name] is not None), "")
    return f"{other['known_by']:9}  {other['last_seen'] or '':19}  {sure:6}  {other['url']}"


def _described(store: Store, signature: Signature) -> dict[str, Any]:
    return {
        "url": signature.url,
        "title": signature.title or None,
        "tokens": signature.sketch.tokens,
        "figures": signature.sketch.figures,
        "first_seen": Moment(signature.first_seen),
        "run": store.run_of(signature) or None,
    }


def _compare_held(dedup: Deduplicator, config: Config, *urls: str) -> dict[str, Any]:
    """Compare what two URLs of the store returned. The store has no texts, only their fingerprints and titles."""
    links = [_held(dedup.store, url) for url in urls]
    signatures = [link.signature for link in links if link.signature]
    first, second = sorted(signatures, key=attrgetter("first_seen"))
    is_apart = dedup.matcher.reviews.differ(*urls)
    if first.id == second.id and not is_apart:
        return _explain_url(dedup, config, urls[links[1].is_copy])
    names = [name for run in dedup.store.runs() for name in run.fields]
    held = Document(second.url, title=second.title, label=second.label, fact_names=tuple(dict.fromkeys(names)))
    compared, points = _compared(dedup, first, second, held)
    points = [Point(WHY_APART, is_met=False)] if is_apart else points
    sentence = _sentence("unique", points)
    if all(point.is_met for point in points):
        alike = "" if first.title == second.title else ", apart from their titles"
        why = "the texts, which it lacks, or other records keep them apart"
        sentence = f"unique: alike in what the store holds{alike}; {why}"
    documents = {url: _described(dedup.store, each) for url, each in zip(urls, signatures, strict=True)}
    return {**compared, "documents": documents, "sentence": sentence}


def _held(store: Store, url: str) -> Visit:
    link = store.resolve(url)
    if link is None or link.signature is None:
        raise StoreError(f"the store {'holds no content of' if link else 'does not know'} {url}{_hint(url)}")
    return link


def _compare_files(dedup: Deduplicator, config: Config, paths: list[str]) -> dict[str, Any]:
    read = [read_document(path, config) for path in paths]
    documents = [replace(each, url=f"http://saved{number}/") for number, each in enumerate(read)]  # on two hosts
    first, second = map(dedup.sign, documents)
    dedup.claim(documents[0])
    compared, points = _compared(dedup, first, second, documents[1])
    if dedup.matcher.reviews.differ(*(each.url for each in read)):
        points.append(Point(WHY_APART, is_met=False))
    described = [
        {**_described(dedup.store, signature), "url": each.url, "thin": each.thin, "text": _beginning(each.text)}
        for signature, each in zip((first, second), read, strict=True)
    ]
    thin = [(path, each.scripted) for path, each in zip(paths, documents, strict=True) if each.thin]
    why = "".join(f"; the text of {path} is thin: {_SCRIPTED if scripted else _THIN}" for path, scripted in thin)
    is_copy = all(point.is_met for point in points)
    beside = [replace(each, url=f"http://saved/{number}") for number, each in enumerate(read)]
    if is_copy and (reason := dedup.matcher.why_siblings(beside[1], *map(dedup.sign, beside[::-1]))):
        why = f"; but unique if both are of one host: {reason}{why}"
    sentence = _sentence("duplicate" if is_copy else "unique", points) + why
    return {**compared, "documents": dict(zip(paths, described, strict=True)), "sentence": sentence}


def _compared(
    dedup: Deduplicator, first: Signature, second: Signature, document: Document
) -> tuple[dict[str, Any], list[Point]]:
    """Return the measures and the points of two signatures. `document` is that of the second signature."""
    found, rule = compare(first.sketch, second.sketch), dedup.matcher.rule
    proposed_by = list(dict.fromkeys(name for name, each in dedup.store.find(second) if each.says_the_same(first)))
    points = [*rule_points(found, rule, proposed_by, same_url=first.url == second.url)]
    why = dedup.matcher.why_siblings(document, second, first)
    if why and all(point.is_met for point in points):
        titles = f" ({first.title!r}, {second.title!r})" if "title" in why and first.title != second.title else ""
        points.append(Point(why + titles, False))
    measured = {name: round(value, 4) for name, value in found._asdict().items()}
    return {"comparison": measured, "proposed_by": proposed_by}, points


def _beginning(text: str) -> list[str]:
    return wrap(text[: 2 * WIDTH * BEGINNING], WIDTH, max_lines=BEGINNING, placeholder="…")


class Point(NamedTuple):
    """One check in the comparison of two documents."""

    text: str  # the measure and its threshold: "resemblance 0.76, needed 0.43"
    is_met: bool


def _sentence(status: str, points: list[Point]) -> str:
    """Return a verdict with its points as a sentence. For a unique document, name only the failed points, if any."""
    missed = [point for point in points if not point.is_met] if status == "unique" else []
    return f"{status}: {'; '.join(point.text for point in missed or points)}"


def rule_points(found: Comparison, rule: Rule, proposed_by: list[str], *, same_url: bool) -> Iterator[Point]:
    """Yield the points of the rule on two documents. `proposed_by`: the detectors that proposed the pair."""
    least, words = max(rule.min_tokens, 1), plural(found.tokens, "word")
    if found.tokens >= least:
        yield from _limits(rule, found, found.tokens)
        if not rule.ignores_figures(found):
            allowed = rule.allowed_figures(found.tokens, found.figures)
            yield _point("{:g} figures differ, allowed {:g}", found.missing_figures, le, allowed)
        yield Point(f"found by {', '.join(proposed_by) or 'no detector'}", bool(proposed_by))
    elif found.tokens and (same_url or rule.short_text == "exact"):
        is_same = Exact.name in proposed_by
        yield Point(f"{words}, fewer than {least}: {'' if is_same else 'not '}all are equal", is_same)
    else:
        yield Point(f"{words}, needed {least}", False)


def _limits(rule: Rule, found: Comparison | Evidence, tokens: int, *, repeated: bool = False) -> Iterator[Point]:
    """Yield the points on resemblance and length. `tokens`: of the shorter text. `repeated`: there are other copies."""
    if tokens:  # a record without text needs no resemblance
        needed = rule.required_resemblance(tokens, repeated=repeated)
        yield _point("resemblance {:g}, needed {:g}", found.resemblance, ge, needed)
    yield _point("length ratio {:g}, allowed {:g}", found.length_ratio, le, rule.length_ratio)


def _point(text: str, value: float, is_met: Callable[[float, float], bool], limit: float) -> Point:
    value, limit = round(value, 4), round(limit, 4)
    return Point(text.format(value, limit), is_met(value, limit))
