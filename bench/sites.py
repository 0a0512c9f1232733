"""Precision and recall on sites: which pages are dropped though they say something else, and which copies are missed.

    python bench/sites.py FOLDER… [--most 1500] [--copies 100] [--list]

Each FOLDER is a site: a tree of .html files, such as a manual that was downloaded. Its pages are deduplicated with the
defaults, as pages of one host. Every drop is judged by the visible lines of both pages without those that stand on over
30 % of the site's pages, which are its template:

- false: the original lacks over 2 % of the copy's runs of three words, or over 2 % of its words, unless the two pages
  resemble each other by .9 or more under one title;
- neither: the copy has under 20 words of its own.

Then pages of 100 words and more are copied to another host, in another frame and with a share of their words exchanged.
"found" is the share of copies that are dropped. Words and pages are drawn with a fixed seed.
"""

from __future__ import annotations

import argparse
import html
import random
import re
from collections import Counter
from pathlib import Path
from typing import NamedTuple

from lxml import etree
from options import positive
from visible_lines import OFTEN, WORD, visible_lines

from scrapy_neardup import Deduplicator
from scrapy_neardup.items import item_document
from scrapy_neardup.settings import Config

CHANGES = (0.0, 0.01, 0.03, 0.1)
LONG, STUB = 100, 20  # words
MOST_LOST, SAME = 0.02, 0.9
FRAME = (
    "<html><head><title>{title} | Portal</title></head><body><div><a href='/'>Portal</a> <a href='/new'>New</a></div>"
    "<h1>{title}</h1><div>{main}</div><footer><p>The portal collects free manuals.</p></footer></body></html>"
)


class Text(NamedTuple):
    """The own words of a page, without the template of its site."""

    title: str
    words: Counter[str]
    runs: frozenset[tuple[str, ...]]


def main() -> None:
    """Print a row for each site, and one for all."""
    parser = argparse.ArgumentParser(description="precision and recall on sites")
    parser.add_argument("folders", nargs="+", type=Path, metavar="FOLDER", help="a site: a tree of .html files")
    parser.add_argument("--most", type=positive, default=1500, help="pages of a site (1500)")
    parser.add_argument("--copies", type=positive, default=100, help="pages of a site that are copied (100)")
    parser.add_argument("--list", action="store_true", help="name the pages that are dropped falsely")
    options = parser.parse_args()
    print("site | pages | dropped | false | share |", " | ".join(f"found, {share:.0%} changed" for share in CHANGES))
    pages = false = 0
    for folder in options.folders:
        site = _read(folder, options.most)
        drops = _drops(site)
        wrong = _false(site, drops)
        found = _found(site, options.copies)
        row = (folder.name, len(site), len(drops), len(wrong), f"{len(wrong) / max(1, len(site)):.2%}", *found)
        print(*row, sep=" | ", flush=True)
        for url in wrong if options.list else ():
            print(f"    {url} as {drops[url]}")
        pages, false = pages + len(site), false + len(wrong)
    print(f"all | {pages} | | {false} | {false / max(1, pages):.2%}")


def _read(folder: Path, most: int) -> dict[str, str]:
    """Return the HTML of the pages of a site by URL; files with equal bytes once."""
    files = sorted(path for path in folder.rglob("*.htm*") if path.is_file() and not path.is_symlink())
    sample = sorted(random.Random(7).sample(files, min(most, len(files))))
    return {
        f"http://site.example/{path.relative_to(folder).as_posix()}": path.read_text("utf-8", "replace")
        for path in sample
    }


def _drops(site: dict[str, str], *, copies: dict[str, str] | None = None) -> dict[str, str]:
    """Return the URL of each copy with its original's."""
    drops = {}
    with Deduplicator.open(None) as dedup:
        for url, page in {**site, **(copies or {})}.items():
            if document := item_document({"url": url, "html": page}, Config()):
                claim = dedup.claim(document)
                claim.commit()
                if claim.verdict.status == "duplicate":
                    drops[url] = str(claim.verdict.duplicate_of)
    return drops


def _false(site: dict[str, str], drops: dict[str, str]) -> list[str]:
    """Return the URLs of pages whose original lacks something that they say."""
    seen = {url: [line.text for line in visible_lines(page)] for url, page in site.items()}
    often = Counter(line for lines in seen.values() for line in set(lines))
    template = {line for line, count in often.items() if count > OFTEN * len(site)}
    return [
        url
        for url, original in drops.items()
        if _is_false(*(_text(site[u], seen[u], template) for u in (url, original)))
    ]


def _text(page: str, lines: list[str], template: set[str]) -> Text:
    words = WORD.findall("\n".join(line for line in lines if line not in template).lower())
    runs = frozenset(tuple(words[place : place + 3]) for place in range(max(1, len(words) - 2)))
    return Text(_title(page), Counter(words), runs)


def _title(page: str) -> str:
    found = re.search(r"<title[^>]*>(.*?)</title", page, re.DOTALL | re.IGNORECASE)
    return " ".join(html.unescape(found[1]).split()) if found else ""


def _is_false(copy: Text, original: Text) -> bool:
    words = copy.words.total()
    if words < STUB:
        return False
    shared = len(copy.runs & original.runs)
    is_held = shared >= (1 - MOST_LOST) * len(copy.runs) and (copy.words - original.words).total() <= MOST_LOST * words
    is_same = copy.title == original.title and shared >= SAME * len(copy.runs | original.runs)
    return not (is_held or is_same)


def _found(site: dict[str, str], count: int) -> list[str]:
    """Return the share of copies that are found, for each share of changed words."""
    rng = random.Random(3)
    long = [
        url
        for url, page in site.items()
        if len(WORD.findall(" ".join(line.text for line in visible_lines(page)))) >= LONG
    ]
    chosen = rng.sample(long, min(count, len(long)))
    pool = WORD.findall(" ".join(line.text for url in chosen for line in visible_lines(site[url]))) or ["word"]
    shares = []
    for share in CHANGES:
        copies = {url.replace("site", "copy", 1): _copy(site[url], share, rng, pool) for url in chosen}
        found = sum(url in copies for url in _drops(site, copies=copies))
        shares.append(f"{found / max(1, len(copies)):.2f}")
    return shares


def _copy(page: str, share: float, rng: random.Random, pool: list[str]) -> str:
    """Return a page in another frame, with a share of the words of its body exchanged for words of the site."""
    root = etree.fromstring(
        f"<html>{page}".encode("utf-8", "replace"), etree.HTMLParser(encoding="utf-8", huge_tree=True)
    )
    body = root.find(".//body")
    body = root if body is None else body

    def edited(text: str) -> str:
        return WORD.sub(lambda word: rng.choice(pool) if rng.random() < share else word[0], text)

    for element in body.iter(etree.Element):
        element.text = element.text and edited(element.text)
        if element is not body:
            element.tail = element.tail and edited(element.tail)
    body.tag = "div"
    body.attrib.clear()  # classes of a body name the page's kind, not its part
    main = etree.tostring(body, encoding="unicode", method="html", with_tail=False)
    return FRAME.format(title=html.escape(_title(page)), main=main)


if __name__ == "__main__":
    main()
