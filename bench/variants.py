"""Measure what learned rules on variants of URLs save and miss on real sites to which variants are added.

    python bench/variants.py SITES [--pages 300] [--only NAME …]

SITES holds files SITE.jsonl, each line with "url" and "html". Up to 300 pages of each are taken, in runs of neighbours.
Every case adds variants of each page's URL. Some change nothing, some return another page's text. Crawls are replayed
without HTTP, in three orders: each page before its variants, level by level, and shuffled; with 1 and with 8 requests
in flight.

after 50: once 50 pages were requested at two URLs or more, the share of variants not fetched, of those whose content
another URL had returned before, by order. short: the number of those that have fewer than 40 words, for which no rule
is used. skipped: all skipped requests. missed: those whose content is no duplicate of anything held in the end.
"""

from __future__ import annotations

import argparse
import json
import random
import re
from collections import Counter, deque
from collections.abc import Callable, Iterator
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlsplit

from scrapy_neardup import Deduplicator, Document
from scrapy_neardup.contrib.variants import Learner
from scrapy_neardup.hosts.relations import CONTAINED, SHORT
from scrapy_neardup.matching.evidence import compare
from scrapy_neardup.mirrors.advice import Mirrors
from scrapy_neardup.settings import Config

START = 50
ORDERS = ("page first", "levels", "shuffled")
FRAME = ("<div><b>Print view</b> <a href='/'>Home</a> | <a href='/about'>About</a></div>", "<div>Printed for you</div>")


class Page(NamedTuple):
    path: str
    html: str
    other: str
    """The page to return where a variant matters."""
    number: int


Variants = list[tuple[str, str]]
"""The URLs of a page in the order of a crawl, without the host, with their HTML."""


def token(*parts: object) -> str:
    return sha256(repr(parts).encode()).hexdigest()[:16]


def framed(html: str) -> str:
    framed = re.sub(r"<body[^>]*>", lambda m: m[0] + FRAME[0], html)
    return framed.replace("</body>", f"{FRAME[1]}</body>")


def content(html: str) -> str:
    """Return a page without the frame of its print view."""
    return html.replace(FRAME[0], "").replace(FRAME[1], "")


def sessions(page: Page) -> Variants:
    return [(f"{page.path}?sid={token(page.path, n)}", page.html) for n in range(4)]


def prints(page: Page) -> Variants:
    return [(page.path, page.html), (f"{page.path}?print=1", framed(page.html))]


def tracking(page: Page) -> Variants:
    return [(page.path, page.html), *((f"{page.path}?src={word}", page.html) for word in ("home", "list", "related"))]


def mixed(page: Page) -> Variants:
    plain = [(f"{page.path}?sid={token(page.path, n)}", page.html) for n in range(3)]
    return [*plain, *((f"{page.path}?print=1&sid={token(page.path, n)}", framed(page.html)) for n in range(3, 6))]


def paging(page: Page) -> Variants:
    html = page.html if page.number % 10 else page.other
    return [(page.path, page.html), (f"{page.path}?page=1", page.html), (f"{page.path}?page=2", html)]


def views(page: Page) -> Variants:
    html = page.html if page.number % 10 else page.other
    return [(page.path, page.html), (f"{page.path}?view=full", html)]


def languages(page: Page) -> Variants:
    return [(page.path, page.html), (f"{page.path}?lang=en", page.html), (f"{page.path}?lang=de", page.other)]


def ids(page: Page) -> Variants:
    return [(f"/show?id={token(page.path)}", page.html), (f"/show?id={page.number}", page.other)]


def one_directory(page: Page) -> Variants:
    folder = directory(page.path)
    matters = int(token(folder), 16) % 3 == 0
    html = page.other if matters else page.html
    return [(page.path, page.html), *((f"{page.path}?v={value}", html) for value in ("all", token(page.path)))]


def rarely_in_one_directory(page: Page) -> Variants:
    matters = int(token(directory(page.path)), 16) % 3 == 0 and page.number % 10 == 0
    return [(page.path, page.html), (f"{page.path}?v={token(page.path)}", page.other if matters else page.html)]


def alike(page: Page) -> Variants:
    text = "Please enable JavaScript and cookies in your browser to read this page. " * 8
    return [(f"{page.path}?sid={token(page.path, n)}", f"<html><body><p>{text}</p></body></html>") for n in range(3)]


def one_word_apart(page: Page) -> Variants:
    words = [f"word{token(n)}" for n in range(400)]
    made = {n: " ".join([*words[:200], token(page.path, n), *words[200:]]) for n in range(3)}
    return [(f"/item{page.path}?sku={token(page.path, n)}", f"<p>{text}</p>") for n, text in made.items()]


def unchanged(page: Page) -> Variants:
    return [(page.path, page.html)]


CASES: dict[str, Callable[[Page], Variants]] = {
    "session id on every link": sessions, "print=1": prints,
    "tracking, 3 values": tracking,
    "session id and print=1": mixed, "page=N, other text on 1 page in 10": paging,
    "view=full, other text on 1 page in 10": views, "lang= with other text": languages, "id= with other text": ids,
    "v= matters in some directories": one_directory, "v= matters there on 1 page in 10": rarely_in_one_directory,
    "no variants added": unchanged, "all pages alike": alike, "pages one word apart": one_word_apart,
}  # fmt: skip


def directory(path: str) -> str:
    return path.rpartition("/")[0]


def read(path: Path, most: int) -> list[Page]:
    rows = [json.loads(line) for line in path.open(encoding="utf-8")]
    starts = list(range(0, len(rows), 25))
    random.Random(1).shuffle(starts)
    chosen = [n for start in sorted(starts[: 2 * most // 25]) for n in range(start, min(start + 25, len(rows)))]
    half = len(chosen) // 2
    pairs = zip(chosen[::2], chosen[1::2][:half], strict=False)
    return [
        Page(urlsplit(rows[a]["url"]).path, rows[a]["html"], rows[b]["html"], number)
        for number, (a, b) in enumerate(pairs)
    ]


@cache
def text_of(html: str) -> Document:
    return Document.from_field(html)


def document(url: str, html: str) -> Document:
    read = text_of(html)
    made = Document(url=url, text=read.text, title=read.title, layout=read.layout, thin=read.thin)
    for name in ("lines", "hashes", "shingles", "sketch"):
        object.__setattr__(made, name, getattr(read, name))
    return made


def orders(groups: list[Variants]) -> Iterator[tuple[str, Variants]]:
    yield "page first", [url for group in groups for url in group]
    longest = max(map(len, groups))
    yield "levels", [group[n] for n in range(longest) for group in groups if n < len(group)]
    for seed in range(2):
        urls = [url for group in groups for url in group]
        yield f"shuffled {seed}", random.Random(seed).sample(urls, len(urls))


class Crawl:
    """One replayed crawl of a site."""

    def __init__(self, host: str, base: set[str]) -> None:
        self.dedup = Deduplicator.open(None, learn_hosts=False)
        self.mirrors = Mirrors(self.dedup.store, Config(), deliveries=self.dedup.deliveries)
        self.learner = Learner(self.dedup, ttl=Config().mirror_ttl)
        self.host, self.base = host, base
        self.skipped: list[tuple[Document, str | None]] = []
        """Each skipped page, with the URL of the document for which it was skipped."""
        self.requested: Counter[str] = Counter()
        """The number of requests for each content."""
        self.fetched: Counter[str] = Counter()
        """The number of URLs that returned each content."""
        self.later = self.saved = self.short = 0

    def run(self, urls: Variants, in_flight: int) -> None:
        waiting: deque[tuple[str, str]] = deque()
        for path, html in urls:
            url = f"{self.host}{path}"
            advice = self.learner.advise(url) or self.mirrors.advise(url)
            is_skipped = advice is not None and not self.mirrors.rechecks(url, advice.recheck)
            self.requested[content(html)] += 1
            is_late = sum(count > 1 for count in self.requested.values()) > START
            if is_repeat := is_late and self.fetched[content(html)] > 0 and path not in self.base:
                self.later += 1
                self.short += document(url, html).sketch.tokens < SHORT
            if advice and is_skipped:
                self.saved += is_repeat
                self.skipped.append((document(url, html), advice.url))
                continue
            waiting.append((url, html))
            if len(waiting) >= in_flight:
                self.judge(*waiting.popleft())
        while waiting:
            self.judge(*waiting.popleft())

    def judge(self, url: str, html: str) -> None:
        self.fetched[content(html)] += 1
        claim = self.dedup.claim(document(url, html))
        claim.commit()
        self.dedup.deliveries.record((claim.match or claim).signature)
        list(self.learner.learn(url, claim))

    def missed(self) -> int:
        return sum(not self.is_held(page, held) for page, held in self.skipped)

    def is_held(self, page: Document, held: str | None) -> bool:
        """Return whether a page repeats a held document, or is a part of the one for which it was skipped."""
        claim = self.dedup.claim(page)
        claim.withdraw()
        link = self.dedup.store.resolve(held or "")
        if claim.verdict.status != "unique" or not link or not link.signature:
            return claim.verdict.status != "unique"
        return compare(claim.signature.sketch, link.signature.sketch).containment >= CONTAINED


def replay(site: str, groups: list[Variants]) -> Iterator[tuple[str, Crawl]]:
    base = {group[0][0] for group in groups}
    for name, urls in orders(groups):
        for in_flight in (1, 8):
            crawl = Crawl(f"http://{site}.example", base)
            crawl.run(urls, in_flight)
            yield f"{name}, {in_flight} in flight", crawl


def measure(name: str, sites: dict[str, list[Variants]], *, verbose: bool) -> None:
    counts: dict[str, Counter[str]] = {order: Counter() for order in ORDERS}
    for site, groups in sites.items():
        for order, crawl in replay(site, groups):
            found = Counter(saved=crawl.saved, later=crawl.later, short=crawl.short)
            found.update(skipped=len(crawl.skipped), missed=crawl.missed())
            counts[next(each for each in ORDERS if order.startswith(each))] += found
            if verbose:
                print(f"    {site}, {order}: {dict(found)}")
    shares = (f"{share(each):>12}" for each in counts.values())
    total = sum(counts.values(), Counter[str]())
    print(f"{name:40}{''.join(shares)}{total['short']:9}{total['skipped']:9}{total['missed']:8}", flush=True)


def share(counts: Counter[str]) -> str:
    return f"{100 * counts['saved'] / counts['later']:.1f}" if counts["later"] else "–"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sites", type=Path, metavar="SITES")
    parser.add_argument("--pages", type=int, default=300, help="the maximum number of pages of a site")
    parser.add_argument("--only", nargs="+", help="names of sites")
    parser.add_argument("--cases", nargs="+", metavar="TEXT", help="only cases whose names have one of these texts")
    parser.add_argument("--verbose", action="store_true", help="print each crawl")
    options = parser.parse_args()
    files = [path for path in sorted(options.sites.glob("*.jsonl")) if path.stem in (options.only or path.stem)]
    sites = {path.stem: read(path, options.pages) for path in files}
    print("\n".join(f"{name}: {len(pages)} pages" for name, pages in sites.items()))
    print(f"{'after 50, saved %:':40}{''.join(f'{order:>12}' for order in ORDERS)}    short  skipped  missed")
    for name, case in CASES.items():
        if any(text in name for text in options.cases or [""]):
            groups = {site: [case(page) for page in pages] for site, pages in sites.items()}
            measure(name, groups, verbose=options.verbose)


if __name__ == "__main__":
    main()
