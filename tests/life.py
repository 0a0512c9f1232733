"""Crawl a site that changes from day to day, and check after each day what the feeds promise."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import cache
from typing import Any

from site_server import Page, Site, article, html


@cache
def articles() -> dict[str, int]:
    return {article(number): number for number in range(200)}


class Life:
    """Crawls in one mode, day after day, and insists on its promise.

    `keep`: the feed of each day has every content that the site has that day, once. `drop`: all feeds together have
    every content, none of them again but under a URL that gave another one last, and under each of those.
    """

    def __init__(self, crawl: Callable[..., Any], revisit: str) -> None:
        self.crawl, self.revisit = crawl, revisit
        self.known: set[int] = set()
        """The articles in all feeds so far."""
        self.said: dict[str, int] = {}
        """What the feeds last said of each URL."""

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
        """Crawl from these URLs. `there`: the articles that the site has; `gives`: what some URLs give now."""
        settings = {"NEARDUP_REVISIT": self.revisit, **(settings or {})}
        result = self.crawl(spider, settings, urls=list(urls), start=True, **args)
        self.check(result.items, set(there), gives or {})
        assert result.count("errors") == result.count("store/errors") == 0
        return result

    def check(self, items: Iterable[Mapping[str, Any]], there: set[int], gives: Mapping[str, int]) -> None:
        """Insist on what the mode promises of the feed of a day."""
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
    """Return which article an item has."""
    return articles()[item["text"]]


def publish(site: Site, pages: Mapping[str, int], *links: str) -> str:
    """Have a site give these articles by path, and nothing else but a list of them and of more; return its URL."""
    made = {path: Page(html(article(number), _template(site))) for path, number in pages.items()}
    site.pages = {"/": Page(html("", links=(*pages, *links))), **made}
    return f"{site.url}/"


def _template(site: Site) -> str:
    return "a" if "127.0.0.1:" in site.url else "b"
