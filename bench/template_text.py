"""Pages whose extracted text is only the site's template, or under half of what the page says.

    python bench/template_text.py CACHE [SITE …] [--pages 400] [--list]

CACHE holds SITE.jsonl: {"url": …, "html": …} a line; without SITE all files whose rows have HTML. Of each site so many
pages are drawn. A line that stands on over 30 % of them is the site's template. A page counts as "template only" where
every line of its extracted text is template, though 20 words or more of its visible lines are its own; as "thin" where
its extracted text is under half of its visible text that is not of links, in letters. "said thin" counts the pages that
the package itself calls thin, also for other reasons. The visible lines are found without the package. --list names the
pages.
"""

from __future__ import annotations

import argparse
import json
import random
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from options import positive
from visible_lines import OFTEN, WORD, Line, visible_lines

from scrapy_neardup.text.html import html_to_page

OWN_WORDS = 20


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
    return Read(url, visible_lines(html), page.text.split("\n"), getattr(page, "thin", False))


def _template(pages: list[Read]) -> frozenset[str]:
    standing = Counter(line for page in pages for line in {*(line.text for line in page.seen), *page.taken})
    return frozenset(line for line, count in standing.items() if count > OFTEN * len(pages))


def _is_template_only(page: Read, template: frozenset[str]) -> bool:
    own = (line.text for line in page.seen if line.text not in template)
    is_bare = all(line in template or not line for line in page.taken)
    return is_bare and len(WORD.findall("\n".join(own))) >= OWN_WORDS


def _is_thin(page: Read) -> bool:
    return 2 * sum(map(len, page.taken)) < sum(line.unlinked for line in page.seen)


if __name__ == "__main__":
    main()
