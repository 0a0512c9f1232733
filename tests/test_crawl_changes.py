"""Crawls of a site that changes, and the changes that `scrapy neardup changes` lists."""

from __future__ import annotations

import json

import pytest
from cli import neardup, succeeded
from site_server import Page, article, html

COUNTED = {"NEARDUP_COUNT_CHANGES": True}


def crawled(crawl, site, texts: dict[str, int | str], settings=None, spider="ListSpider"):
    """Crawl a site with these texts, each a text or the seed of one, by the name of the page. Others are dead."""
    made = {name: article(text) if isinstance(text, int) else text for name, text in texts.items()}
    site.pages = {f"/{name}.html": Page(html(text)) for name, text in made.items()}
    urls = [f"{site.url}/{name}.html" for name in texts]
    return crawl(spider, {**COUNTED, **(settings or {})}, urls=urls)


def listed(crawl, *options: str) -> list[tuple[str, str]]:
    """Return the kinds of the changes with the names of the pages."""
    rows = json.loads(succeeded(crawl.folder, "changes", "--store", crawl.store, "--json", *options).stdout)
    return [(row["kind"], row["url"].rpartition("/")[2].removesuffix(".html")) for row in rows]


def counts(crawled) -> dict[str, int]:
    return {
        name.removeprefix("neardup/changes/"): count
        for name, count in crawled.stats.items()
        if name.startswith("neardup/changes/") and count
    }


@pytest.mark.parametrize("crawl", ["file", "redis"], indirect=True)
@pytest.mark.parametrize("revisit", ["keep", "drop"])
def test_each_kind_of_change_is_listed_and_counted(crawl, a, revisit):
    settings = {"NEARDUP_REVISIT": revisit}
    first = crawled(crawl, a, {"same": 1, "edited": 2, "old": 3, "gone": 4, "there": 5}, settings)
    assert listed(crawl) == [("new", name) for name in ("edited", "gone", "old", "same", "there")]
    assert counts(first) == {"new": 5}
    second = crawled(crawl, a, {"same": 1, "edited": 20, "new": 3, "fresh": 6, "there": 7}, settings)
    assert listed(crawl) == [
        ("new", "fresh"), ("changed", "edited"), ("changed", "there"), ("moved", "new"), ("gone", "gone"),
    ]  # fmt: skip
    assert counts(second) == {"new": 1, "changed": 2, "moved": 1, "gone": 1}
    assert "Since the crawl before: 1 new, 2 changed, 1 moved, 1 gone" in second.log
    third = crawled(crawl, a, {"same": 1, "edited": 20, "new": 3, "fresh": 6, "there": 5}, settings)
    assert listed(crawl) == [("back", "there")]
    assert counts(third) == {"back": 1}
    fourth = crawled(crawl, a, {"same": 1, "edited": 20, "new": 3, "fresh": 6, "there": 5}, settings)
    assert (listed(crawl), counts(fourth)) == ([], {})


def test_the_lines_and_an_earlier_run(crawl, a):
    text = article(8)
    crawled(crawl, a, {"news": text, "old": 9})
    crawled(crawl, a, {"news": text.replace(text.split()[40], "changed"), "new": 9})
    made = succeeded(crawl.folder, "changes", "--store", crawl.store).stdout.splitlines()
    assert made == ["moved            " + f"{a.url}/new.html  (before: {a.url}/old.html)", "1 moved"]
    first = json.loads(succeeded(crawl.folder, "runs", "--store", crawl.store, "--json").stdout)[0]["run"]
    assert listed(crawl, "--run", first) == [("new", "news"), ("new", "old")]
    assert listed(crawl, "--run", first, "--kind", "gone", "moved") == []


def test_changed_content_comes_with_its_resemblance(crawl, a):
    text = article(8)
    crawled(crawl, a, {"news": text})
    crawled(crawl, a, {"news": text + " " + article(9, 400)})
    (line, counted) = succeeded(crawl.folder, "changes", "--store", crawl.store).stdout.splitlines()
    kind, resemblance, url = line.split()
    assert (kind, url, counted) == ("changed", f"{a.url}/news.html", "1 changed")
    assert 0.1 < float(resemblance) < 0.5


def test_pages_of_another_spider_are_not_gone_nor_moved(crawl, a, b):
    crawled(crawl, a, {"one": 1, "two": 2})
    crawled(crawl, b, {"copy": 1, "three": 3}, spider="OtherSpider")
    assert listed(crawl) == [("new", "three")]
    crawled(crawl, a, {"one": 1})
    assert listed(crawl) == [("gone", "two")]


def test_a_page_that_is_not_fetched_again_is_not_gone(crawl, a):
    settings = {"NEARDUP_REVISIT": "skip", "NEARDUP_RECHECK": 0}
    crawled(crawl, a, {"one": 1, "two": 2}, settings)
    later = crawled(crawl, a, {"one": 1, "two": 2, "three": 3}, settings)
    assert (later.count("requests/skipped"), counts(later)) == (2, {"new": 1})


def test_the_items_of_one_page_are_no_changes_of_its_url(crawl, a):
    for seeds in ((1, 2), (1, 3)):
        a.pages["/list.html"] = Page(html("</p><p>".join(map(article, seeds))))
        many = crawl("ManySpider", COUNTED, urls=[f"{a.url}/list.html"])
    assert (many.count("unique"), counts(many)) == (1, {})


def test_nothing_is_counted_unless_it_is_asked_for(crawl, a):
    crawled(crawl, a, {"one": 1})
    assert counts(crawled(crawl, a, {"two": 2}, {"NEARDUP_COUNT_CHANGES": False})) == {}


def test_an_unknown_run_is_refused_in_one_line(crawl, a):
    crawled(crawl, a, {"one": 1})
    made = neardup(crawl.folder, "changes", "--store", crawl.store, "--run", "yesterday")
    assert (made.returncode, made.stderr.count("\n")) == (2, 1)
    assert "'yesterday' is not a run of this store" in made.stderr
