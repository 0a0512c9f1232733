"""Pages whose extracted text is only the site's template, or under half of what the page says.

    python bench/template_text.py CACHE [SITE …] [--pages 400] [--list]

CACHE holds SITE.jsonl: {"url": …, "html": …} a line; without SITE all files whose rows have HTML. Of each site so many
pages are drawn. A line that stands on over 30 % of them is the site's template. A page counts as "template only" where
every line of its extracted text is template, though 20 words or more of its visible lines are its own; as "thin" where
its extracted text is under half of its visible text that is not of links, in letters. "said thin" counts the
pages of which the package itself says so. The visible lines are found without the package. --list names the pages.
"""

from __future__ import annotations

import argparse
import json
import random
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from lxml import etree
from options import positive

from scrapy_neardup.text.html import html_to_page

BLOCKS = frozenset(
    re.findall(
        r"\w+",
        "address article aside blockquote body br center dd details dialog dir div dl dt fieldset figcaption figure"
        " footer form frameset h1 h2 h3 h4 h5 h6 header hr html legend li main menu nav ol option p pre section summary"
        " table tbody td tfoot th thead title tr ul",
    )
)
UNSEEN = frozenset(("head", "math", "noscript", "script", "style", "svg", "template"))
WORD = re.compile(r"[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff]|\w+")
OFTEN, OWN_WORDS = 0.3, 20


class Line(NamedTuple):
    text: str
    unlinked: int
    """The number of its letters outside of links."""


class Read(NamedTuple):
    url: str
    seen: list[Line]
    taken: list[str]
    said_thin: bool


def main() -> None:
    """Print a row for each site."""
    parser = argparse.ArgumentParser(description="pages whose extracted text is template only, or thin")
    parser.add_argument("cache", type=Path, help="folder with SITE.jsonl: url, html")
    parser.add_argument("site", nargs="*", help="names of sites; without any: all that have HTML")
    parser.add_argument("--pages", type=positive, default=400, help="of each site (400)")
    parser.add_argument("--list", action="store_true", help="name the pages that count")
    options = parser.parse_args()
    print("site | pages | template only | thin | said thin")
    for name in options.site or sorted(path.stem for path in options.cache.glob("*.jsonl")):
        pages = [_read(url, html) for url, html in _sample(options.cache / f"{name}.jsonl", options.pages)]
        if pages:
            _report(name, pages, options.list)


def _report(name: str, pages: list[Read], is_list: bool) -> None:
    template = _template(pages)
    bare = [page.url for page in pages if _is_template_only(page, template)]
    thin = [page.url for page in pages if _is_thin(page)]
    said = sum(page.said_thin for page in pages)
    print(f"{name} | {len(pages)} | {len(bare)} | {len(thin)} | {said}", flush=True)
    for kind, urls in (("template only", bare), ("thin", thin)) if is_list else ():
        for url in urls:
            print(f"    {kind}: {url}")


def _sample(path: Path, count: int) -> Iterator[tuple[str, str]]:
    with path.open(encoding="utf-8") as lines:
        rows = lines.readlines()
    for line in random.Random(5).sample(rows, min(count, len(rows))):
        row = json.loads(line)
        if "html" in row:
            yield row["url"], row["html"]


def _read(url: str, html: str) -> Read:
    page = html_to_page(html)
    return Read(url, _visible(html), page.text.split("\n"), getattr(page, "thin", False))


def _template(pages: list[Read]) -> frozenset[str]:
    standing = Counter(line for page in pages for line in {*(line.text for line in page.seen), *page.taken})
    return frozenset(line for line, count in standing.items() if count > OFTEN * len(pages))


def _is_template_only(page: Read, template: frozenset[str]) -> bool:
    own = (line.text for line in page.seen if line.text not in template)
    is_bare = all(line in template or not line for line in page.taken)
    return is_bare and len(WORD.findall("\n".join(own))) >= OWN_WORDS


def _is_thin(page: Read) -> bool:
    return 2 * sum(map(len, page.taken)) < sum(line.unlinked for line in page.seen)


def _visible(html: str) -> list[Line]:
    parser = etree.HTMLParser(encoding="utf-8", huge_tree=True, remove_comments=True, remove_pis=True)
    root = etree.fromstring(f"<html>{html}".encode("utf-8", "replace"), parser)  # never without an element
    lines: list[Line] = []
    parts: list[str] = []
    links: list[str] = []
    depth = 0  # of links

    def end() -> None:
        if line := " ".join("".join(parts).split()):
            lines.append(Line(line, max(0, len(line) - len(" ".join("".join(links).split())))))
        parts.clear()
        links.clear()

    def add(text: str | None) -> None:
        if text:
            parts.append(text)
            links.extend([text] if depth else [])

    walker = etree.iterwalk(root, events=("start", "end"))
    for event, element in walker:
        if element.tag in BLOCKS:
            end()
        if event == "start":
            depth += element.tag == "a"
            if element.tag in UNSEEN:
                walker.skip_subtree()
            else:
                add(element.text)
        else:
            depth -= element.tag == "a"
            add(element.tail)
    end()
    return lines


if __name__ == "__main__":
    main()
