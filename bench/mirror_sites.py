"""Measure what learned host mirrors save and miss on real sites, over the confidence bound.

    python bench/mirror_sites.py EVAL_SITES_DIR [--orders 10] [--in-flight 2]

EVAL_SITES_DIR holds installation-guide-amd64 and installation-guide-i386, each with en and zh_CN. One host's pages come
first, then the other's: in the order of their links from index.html, as Scrapy asks for them by default (the last link
first), by path, and shuffled. A page is requested while so many others are in flight: what they give is not known yet.

- mirror: the pages of amd64 on a second host, in another frame (header, menu, footer), in three makes;
- versions: amd64 beside i386, where about 5 % of the pages differ under the same path.

saved: of the second host's pages, those not fetched. missed: those skipped whose text is no duplicate of the page that
is held at the same path. Each the mean (and the worst) over the orders, in %.
"""

from __future__ import annotations

import argparse
import random
import re
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from math import inf
from pathlib import Path
from statistics import fmean

import mmh3

from scrapy_neardup import Deduplicator, Document
from scrapy_neardup.hosts.rules import Finding, Hosts
from scrapy_neardup.matching.claim import Claim
from scrapy_neardup.matching.evidence import compare
from scrapy_neardup.mirrors.advice import Mirrors

A, B = "http://a.example", "http://b.example"
BOUNDS = (0.5, 0.7, 0.8, 0.85, 0.87, 0.88, 0.89, 0.9, 0.95)
MENU = "<ul><li><a href='/about'>About this mirror</a><li><a href='/news'>News</a><li><a href='/ftp'>Archive</a></ul>"
HOSTED = "<p>Manuals of free software, kindly hosted by the computing centre of Example University.</p>"
NOTICE = "<p>This mirror is updated four times a day. Questions to webmaster@example.org. All rights reserved.</p>"
FRAMES = {
    "plain": (f"<div id='masthead'><h1>Mirror</h1>{HOSTED}{MENU}</div>", f"<div id='footer'>{NOTICE}</div>"),
    "semantic": (f"<header>{HOSTED}</header><nav>{MENU}</nav><main>", f"</main><footer>{NOTICE}</footer>"),
    "short": ("<div><b>Mirror</b> <a href='/'>Home</a> | <a href='/about'>About</a></div>", "<div>Hosted by us</div>"),
}
Pages = dict[str, str]


def read(folder: Path) -> Pages:
    return {page.name: page.read_text(errors="replace") for page in sorted(folder.glob("*.html"))}


def framed(pages: Pages, frame: str) -> Pages:
    header, footer = FRAMES[frame]
    bodies = {name: re.sub(r"<body[^>]*>", lambda m: m[0] + header, html) for name, html in pages.items()}
    return {name: html.replace("</body>", f"{footer}</body>") for name, html in bodies.items()}


def orders(pages: Pages, shuffled: int) -> Iterator[list[str]]:
    yield crawled(pages, deque.popleft)
    yield crawled(pages, deque.pop)
    yield list(pages)
    for seed in range(shuffled):
        yield random.Random(seed).sample(list(pages), len(pages))


def crawled(pages: Pages, take: Callable[[deque[str]], str]) -> list[str]:
    """Follow the links: breadth first with `popleft`, the last link first with `pop`."""
    waiting, seen, order = deque(["index.html"]), {"index.html"}, []
    while waiting:
        order.append(take(waiting))
        for name in re.findall(r"href=[\"']([\w.-]+\.html)", pages[order[-1]]):
            if name in pages and name not in seen:
                seen.add(name)
                waiting.append(name)
    return order + [name for name in pages if name not in seen]


@dataclass
class Crawl:
    """The second host's crawl; the first one's pages are held."""

    dedup: Deduplicator
    hosts: Hosts
    documents: dict[str, Document]
    skipped: list[str] = field(default_factory=list)
    learned: int | None = None
    """The number of pages that were judged when the rule came into force."""
    judged: int = 0

    def run(self, order: list[str], in_flight: int) -> None:
        waiting: deque[str] = deque()
        for name in order:
            if self.skips(f"{B}/{name}"):
                self.skipped.append(name)
                continue
            waiting.append(name)
            if len(waiting) > in_flight:
                self.judge(waiting.popleft())
        for name in waiting:
            self.judge(name)

    def skips(self, url: str) -> bool:
        mirrors = Mirrors(self.dedup.store, ttl=inf, recheck=0.01, learned=self.hosts)
        advice = mirrors.advise(url)
        return advice is not None and not mirrors.rechecks(url, advice.recheck)

    def judge(self, name: str) -> None:
        claim = self.dedup.claim(self.documents[name])
        known = [link.url for link in self.dedup.store.visits(claim.match.signature)] if claim.match else []
        changes, _ = self.hosts.learn(f"{B}/{name}", known, partial(look, self.dedup, claim), 0.0)
        claim.commit()
        self.judged += 1
        if self.learned is None and any(change.in_force for change in changes):
            self.learned = self.judged


def look(dedup: Deduplicator, claim: Claim, url: str) -> Finding | None:
    link = dedup.store.resolve(url)
    return dedup.matcher.trial(claim.signature, link) if link else None


def replay(first: Pages, second: Pages, order: list[str], bound: float, in_flight: int) -> Crawl:
    with Deduplicator.open(None, learn_hosts=False) as dedup:
        dedup.store.hosts = Hosts(bound=bound)
        for name, html in first.items():
            dedup.claim(document(f"{A}/{name}", html)).commit()
        crawl = Crawl(dedup, dedup.store.hosts, {n: document(f"{B}/{n}", html) for n, html in second.items()})
        crawl.run(order, in_flight)
        return crawl


_made: dict[tuple[str, int], Document] = {}


def document(url: str, html: str) -> Document:
    key = (url, mmh3.hash64(html)[0])
    if key not in _made:
        _made[key] = Document.from_field(html, url=url)
    return _made[key]


def missed(crawl: Crawl) -> list[str]:
    """Name the skipped pages that are no duplicate of the page held at their path."""
    return [name for name in crawl.skipped if not repeats(crawl, name)]


def repeats(crawl: Crawl, name: str) -> bool:
    link = crawl.dedup.store.resolve(f"{A}/{name}")
    assert link and link.signature  # noqa: PT018 - no test
    signature = crawl.dedup.sign(crawl.documents[name])
    same_text = signature.fingerprints["exact"] == link.signature.fingerprints["exact"]
    found = compare(signature.sketch, link.signature.sketch)
    return same_text or crawl.dedup.matcher.rule.accepts(found)


def table(name: str, first: Pages, second: Pages, options: argparse.Namespace) -> None:
    print(f"{name}: {len(second)} pages\n bound   saved (least)   missed (most)   in force after")
    for bound in BOUNDS:
        crawls = [replay(first, second, order, bound, options.in_flight) for order in orders(second, options.orders)]
        saved = [100 * len(crawl.skipped) / len(second) for crawl in crawls]
        lost = [100 * len(missed(crawl)) / len(second) for crawl in crawls]
        learned = [crawl.learned for crawl in crawls if crawl.learned]
        after = f"{fmean(learned):.0f} ({min(learned)}–{max(learned)})" if learned else "–"
        print(
            f"{bound:6.2f} {fmean(saved):7.1f} ({min(saved):5.1f}) {fmean(lost):8.2f} ({max(lost):5.2f})"
            f"   {after:12} in {len(learned)} of {len(crawls)} orders",
            flush=True,
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sites", type=Path, metavar="EVAL_SITES_DIR")
    parser.add_argument("--orders", type=int, default=10, help="shuffled orders, beside three of crawls")
    parser.add_argument("--in-flight", type=int, default=2, help="as many as a crawl has while hosts are on trial")
    options = parser.parse_args()
    for language in ("en", "zh_CN"):
        amd64, i386 = (read(options.sites / f"installation-guide-{kind}" / language) for kind in ("amd64", "i386"))
        for frame in FRAMES:
            table(f"mirror, {frame} frame, {language}", amd64, framed(amd64, frame), options)
        table(f"versions, amd64 beside i386, {language}", amd64, i386, options)


if __name__ == "__main__":
    main()
