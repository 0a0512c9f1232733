"""Crawl a site that changes from day to day, and check the feeds after each day against the plugin's promises."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import cache
from typing import Any

from site_server import Page, Site, article, html


@cache
def articles() -> dict[str, int]:
    return {article(number): number for number in range(200)}


class Life:
    """Crawls day after day with one value of NEARDUP_REVISIT, and checks what this value promises.

    `keep`: the feed of each day has every content that the site has that day, once. `drop`: all feeds together have
    every content. A content comes again only with a URL for which the feeds last had another content; then it must.
    """

    def __init__(self, crawl: Callable[..., Any], revisit: str) -> None:
        self.crawl, self.revisit = crawl, revisit
        self.known: set[int] = set()
        """The articles in all feeds so far."""
        self.said: dict[str, int] = {}
        """The last article of each URL in the feeds."""

    def day(
        self,
        there: Iterable[int],
        urls: Iterable[str],
        settings: Mapping[str, Any] | None = None,
        *,
        gives: Mapping[str, int] | None = None,
        spider: str = "SiteSpider",
        **args: Any,
    ) -> Any:
        """Crawl from `urls`, and check the feed. `there`: the articles of the site. `gives`: those of some URLs."""
        settings = {"NEARDUP_REVISIT": self.revisit, **(settings or {})}
        result = self.crawl(spider, settings, urls=list(urls), start=True, **args)
        self.check(result.items, set(there), gives or {})
        assert result.count("errors") == result.count("store/errors") == 0
        return result

    def check(self, items: Iterable[Mapping[str, Any]], there: set[int], gives: Mapping[str, int]) -> None:
        """Check the feed of a day against the promise. The arguments are those of `day`."""
        given = [(item.get("url", ""), number_of(item)) for item in items]
        numbers = [number for _, number in given]
        if self.revisit == "keep":
            assert sorted(numbers) == sorted(there)
        for url, number in given:
            assert self.revisit == "keep" or number not in self.known or self.said.get(url, number) != number
            self.known.add(number)
            self.said[url] = number
        assert there <= self.known
        assert {url: self.said.get(url, number) for url, number in gives.items()} == {**gives}


def number_of(item: Mapping[str, Any]) -> int:
    """Return the number of the article that an item has."""
    return articles()[item["text"]]


def publish(site: Site, pages: Mapping[str, int], *links: str) -> str:
    """Make a site of articles, given by path, and a list that links to these and to `links`. Return the list's URL."""
    made = {path: Page(html(article(number), _template(site))) for path, number in pages.items()}
    site.pages = {"/": Page(html("", links=(*pages, *links))), **made}
    return f"{site.url}/"


def _template(site: Site) -> str:
    return "a" if "127.0.0.1:" in site.url else "b"
