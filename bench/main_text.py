"""Measure what each rule of the extraction is worth, on pages whose main text is known.

    python bench/main_text.py DIR…

Each DIR holds docs.jsonl or docs.jsonl.gz: {"html": …, "text": the main text as gold[, "type": …]} a line. F1 of a page
is that of bags of words; each Chinese, Japanese, Korean, Thai or Burmese character is a word. A column is a type of
pages, or a folder: the mean F1 of its pages, and how many of them have an F1 under .5. "change" is the sum of F1 over
all pages, less that of the first row: 1 is a page that is read rightly instead of not at all.
"""

from __future__ import annotations

import argparse
import gzip
import json
import re
from collections import Counter, defaultdict
from collections.abc import Iterator
from math import inf
from pathlib import Path
from typing import Any, NamedTuple
from unittest.mock import patch

from lxml import etree

from scrapy_neardup.text import main_text
from scrapy_neardup.text.html import extract, parse

_CHARACTER = "\u0e00-\u0eff\u1000-\u109f\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af"
_WORD = re.compile(rf"[{_CHARACTER}]|[^\W{_CHARACTER}]+")
_LOST = 0.5
_NONE: frozenset[str] = frozenset()
_TRUSTS = ("names", "tags", "comments", "names of margins", "hidden", "labels", "controls", "margins", "consent")


class Page(NamedTuple):
    groups: tuple[str, ...]
    """The columns in which the page counts."""
    root: etree._Element | None
    words: Counter[str]
    """The words of its main text."""


def main() -> None:
    """Print a row for the extraction as it is, and one without each rule."""
    parser = argparse.ArgumentParser(description="F1 of main text, without each rule of the extraction in turn")
    parser.add_argument("dir", nargs="+", type=Path, help="folder with docs.jsonl or docs.jsonl.gz: html, text, type")
    pages = [page for folder in parser.parse_args().dir for page in _pages(folder)]
    groups = list(dict.fromkeys(group for page in pages for group in page.groups))
    print(f"{'':38} {'change':>7}" + "".join(f" {group[:13]:>13}" for group in groups))
    before: float | None = None
    for name, changes in rules():
        with patch.multiple(main_text, **changes):
            main_text._of_names.cache_clear()
            scores = [_f1(page) for page in pages]
        before = sum(scores) if before is None else before
        print(f"{name:38} {sum(scores) - before:+7.2f}" + "".join(_columns(pages, scores, groups)), flush=True)


def rules() -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield each rule that is off, with what has to be set in the module for that."""
    trusts = main_text._TRUSTS
    yield "as it is", {"_NEVER": main_text._NEVER}
    yield "nothing is given up", {"_TRUSTS": {each: trust._replace(limit=inf) for each, trust in trusts.items()}}
    yield "no `enough`", {"_TRUSTS": {each: trust._replace(enough=inf) for each, trust in trusts.items()}}
    for trust, name in enumerate(_TRUSTS):
        yield f"no reasons: {name}", {"_reasons": _reasons_without(trust)}
    yield "long ids are names too", {"_MOST_WORDS_OF_ID": inf}
    yield "names in has-…, no-… hold", {"_NEGATING": _NONE}
    yield "the class of a topic is a name", {"_TOPIC": re.compile("(?!)")}
    yield "wrappers are in no margin", {"_WRAPPERS": _NONE}
    yield "no marked main part", {"_MAIN_SHARE": inf}
    yield "links weigh in what is left out", {"_LITTLE": inf}
    yield "links never weigh in what is left out", {"_LITTLE": 0}
    yield "no link is long", {"_LONG_LINK": 10**9}
    yield "every link is long", {"_LONG_LINK": 0}
    yield "no fee of a line", {"_LINE_FEE": 0}
    yield "no least score of plain lines", {"_LEAST_OF_PLAIN": -(10**9)}
    yield "lines said twice are kept", {"_MANY_REPEATED": inf}
    yield "all pages are lists", {"_LEAST_SCORE": inf}
    yield "lists keep their frame", {"_MOST": 9.0}
    yield "spans have no reasons", {"_OPENED": main_text._OPENED - {"span"}}
    yield "short spans break their lines", {"_LETTERS_OF_LABEL": 0}


def _reasons_without(trust: int) -> Any:
    reasons = main_text._reasons
    return lambda element, tag: tuple(reason for reason in reasons(element, tag) if reason[0] != trust)


def _columns(pages: list[Page], scores: list[float], groups: list[str]) -> Iterator[str]:
    by_group: defaultdict[str, list[float]] = defaultdict(list)
    for page, score in zip(pages, scores, strict=True):
        for group in page.groups:
            by_group[group].append(score)
    for each in map(by_group.__getitem__, groups):
        yield f" {sum(each) / len(each):9.3f} {sum(score < _LOST for score in each):3}"


def _f1(page: Page) -> float:
    found = _bag("" if page.root is None else extract(page.root).text)
    shared = (found & page.words).total()
    return 2 * shared / (found.total() + page.words.total()) if shared else float(not found and not page.words)


def _pages(folder: Path) -> Iterator[Page]:
    path = folder / "docs.jsonl"
    with path.open("rb") if path.exists() else gzip.open(f"{path}.gz") as lines:
        for line in lines:
            row = json.loads(line)
            groups = (row["type"], folder.name) if "type" in row else (folder.name,)
            yield Page(groups, parse(row["html"]), _bag(row["text"]))


def _bag(text: str) -> Counter[str]:
    return Counter(_WORD.findall(text.lower()))


if __name__ == "__main__":
    main()
