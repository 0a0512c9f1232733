"""Main-text extraction beside other libraries: F1 by characters, and pages a second on one core.

    python bench/extraction.py DIR        DIR holds docs.jsonl: {"html": …, "text": the main text as gold} a line

F1 by characters: a text is the multiset of its words (each Han or kana character is one), each word weighed by its
length. Precision and recall are taken page by page; F1 is that of their means. No order, no spaces, no punctuation:
what counts is which words an extractor keeps, and a long word counts for more than a short one.
"""

from __future__ import annotations

import argparse
import json
import re
import time
from collections import Counter
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path
from statistics import fmean, median
from typing import Any

from lxml import etree
from lxml import html as lxml_html

from scrapy_neardup.text.html import html_to_page

Extractor = Callable[[str], str]
_WORD = re.compile(r"[\u3041-\u30ff\u3400-\u9fff]|[^\W\u3041-\u30ff\u3400-\u9fff]+")


def ours() -> Extractor:
    return lambda html: html_to_page(html).text


def trafilatura() -> Extractor:
    extract: Callable[[str], str | None] = import_module("trafilatura").extract
    return lambda html: extract(html) or ""


def readability() -> Extractor:
    document: Callable[[str], Any] = import_module("readability").Document
    return lambda html: str(lxml_html.fromstring(document(html).summary()).xpath("string()"))


def all_text() -> Extractor:
    def extract(html: str) -> str:
        root = lxml_html.document_fromstring(html.encode(), parser=lxml_html.HTMLParser(encoding="utf-8"))
        etree.strip_elements(root, "head", "script", "style", "noscript", with_tail=False)
        return " ".join(map(str, root.itertext()))

    return extract


def measure(extract: Extractor, pages: list[dict[str, str]]) -> str:
    """Return a row of the table: precision, recall, F1, pages a second over all pages, and by the median page."""
    results = [_timed(extract, page["html"]) for page in pages]
    scores = [_overlap(text, page["text"]) for (text, _), page in zip(results, pages, strict=True)]
    precision, recall = (fmean(values) for values in zip(*scores, strict=True))
    f1 = 2 * precision * recall / (precision + recall)
    seconds = [best for _, best in results]
    return f"{precision:9.3f} {recall:9.3f} {f1:9.3f} {1 / fmean(seconds):9.0f} {1 / median(seconds):9.0f}"


def _timed(extract: Extractor, html: str, rounds: int = 3) -> tuple[str, float]:
    times = []
    for _ in range(rounds):
        start = time.perf_counter()
        text = extract(html)
        times.append(time.perf_counter() - start)
    return text, min(times)


def _overlap(text: str, gold: str) -> tuple[float, float]:
    found, wanted = _bag(text), _bag(gold)
    shared = (found & wanted).total()
    return shared / max(found.total(), 1), shared / max(wanted.total(), 1)


def _bag(text: str) -> Counter[str]:
    return Counter({word: count * len(word) for word, count in Counter(_WORD.findall(text)).items()})


def _installed() -> Iterator[tuple[str, Extractor]]:
    for make in (ours, trafilatura, readability, all_text):
        try:
            yield make.__name__, make()
        except ImportError:
            print(f"{make.__name__:12} not installed, skipped")


def main() -> None:
    """Print the table for the folder named on the command line."""
    parser = argparse.ArgumentParser(description="F1 and speed of main-text extraction beside other libraries")
    parser.add_argument("dir", type=Path, help="folder with docs.jsonl: html, text")
    with (parser.parse_args().dir / "docs.jsonl").open(encoding="utf-8") as lines:
        pages = [json.loads(line) for line in lines]
    print(f"{'':12} {'precision':>9} {'recall':>9} {'F1':>9} {'pages/s':>9} {'by median':>9}")
    for name, extract in _installed():
        print(f"{name:12} {measure(extract, pages)}", flush=True)


if __name__ == "__main__":
    main()
