"""Workers in separate processes that share a store on a server: each content is kept once, by any of them."""

from __future__ import annotations

import os
import random
import subprocess
from collections import Counter
from collections.abc import Iterable
from typing import Any

import pytest
import redis
from conftest import Crawler
from helpers import edited, until
from redis_server import server
from site_server import Page, Site, article, html
from tiers import slow

from scrapy_neardup.store.redis_server import Server as Namespace
from scrapy_neardup.store.redis_server import code

KILLS = int(os.environ.get("NEARDUP_TEST_KILLS", "3"))
WORKERS = 3


def publish(a: Site, b: Site, pages: int) -> list[str]:
    """Serve so many pages on two hosts, 30 % of which are copies, every other one edited; return the URLs.

    Their paths begin with the number of the article.
    """
    source, articles, urls = random.Random(1), pages * 7 // 10, []
    for number in range(pages):
        label = number if number < articles else source.randrange(articles // 2)
        site, text = (a, article(label)) if number < articles else (b, article(label))
        if number % 2 and site is b:
            text = edited(text, number % 97, number % 89)
        site.pages[f"/{label}-{number}.html"] = Page(html(text, "a" if site is a else "b"))
        urls.append(f"{site.url}/{label}-{number}.html")
    source.shuffle(urls)
    return urls


def labels(items: Iterable[dict[str, Any]]) -> Counter[str]:
    """Count of which article items are."""
    return Counter(item["url"].rpartition("/")[2].partition("-")[0] for item in items)


class Fleet:
    """Workers that crawl the same pages."""

    def __init__(self, crawl: Crawler, namespace: str, urls: list[str]) -> None:
        self._crawl, self._urls = crawl, urls
        self._root = Namespace(server().address, namespace).root
        self._client = redis.Redis.from_url(server().address)
        self._settings = {
            "NEARDUP_STORE": server().address,
            "NEARDUP_NAMESPACE": namespace,
            "NEARDUP_REVISIT": "drop",
            "DOWNLOAD_DELAY": 0,
        }

    def start(self, seed: int | None = None, name: str = "worker") -> tuple[int, subprocess.Popen[str]]:
        """Start a worker, with a seed in an order of its own; return the number of its feed with it.

        Its pages are start requests, so all are fetched, with `name` as user agent.
        """
        urls = list(self._urls)
        if seed is not None:
            random.Random(seed).shuffle(urls)
        process = self._crawl.start(settings={**self._settings, "USER_AGENT": name}, urls=urls, start=True)
        return self._crawl.runs, process

    def runs(self) -> dict[bytes, bytes]:
        """Return all runs, with their codes."""
        return {name: code(name.decode()) for name in self._client.hkeys(f"{self._root}:run")}

    def end_lease(self, run: bytes) -> None:
        """End the lease of a dead process at once; it would run out some seconds later."""
        assert self._client.delete(f"{self._root}:lease.".encode() + self.runs()[run])

    def kept(self, *workers: tuple[int, subprocess.Popen[str]]) -> Counter[str]:
        """Wait for workers; count what is in their feeds, by article."""
        for _, process in workers:
            errors = process.communicate(timeout=120)[1]
            assert process.returncode == 0, errors
        return sum((labels(self._crawl.items(number)) for number, _ in workers), Counter())


@pytest.mark.slow
def test_workers_keep_what_one_alone_keeps(crawl, a, b, request) -> None:
    urls = publish(a, b, 120)
    alone, same, random_order = (Fleet(crawl, f"{request.node.name} {each}", urls) for each in range(3))
    expected = alone.kept(alone.start())
    assert expected == Counter({str(label): 1 for label in range(84)})
    assert same.kept(*(same.start() for _ in range(WORKERS))) == expected
    assert random_order.kept(*(random_order.start(seed) for seed in range(WORKERS))) == expected
    assert len(a.asked()) + len(b.asked()) == (1 + 2 * WORKERS) * len(urls)


@pytest.mark.parametrize("kill", [0, *slow(*range(1, KILLS))])
def test_worker_that_is_killed_costs_nothing(crawl, a, b, request, kill) -> None:
    pages = 40 if kill else 20
    fleet = Fleet(crawl, request.node.name, publish(a, b, pages))
    victim = fleet.start(0, "victim")
    until(fleet.runs)
    [run] = fleet.runs()
    others = [fleet.start(seed, "worker") for seed in range(1, WORKERS if kill else 2)]
    until(lambda: asked_by("victim", a, b) > 0.9 * pages * (kill + 1) // (KILLS + 1), 180)
    victim[1].kill()
    victim[1].communicate(timeout=120)
    fleet.end_lease(run)
    again = fleet.start(0)
    assert fleet.kept(*others, again) == Counter({str(label): 1 for label in range(pages * 7 // 10)})
    assert set(labels(crawl.items(victim[0])).values()) <= {1}


def asked_by(name: str, *sites: Site) -> int:
    """Count the requests of a worker."""
    return sum(headers["User-Agent"] == name for site in sites for headers in site.headers)
