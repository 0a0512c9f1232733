"""Crawls of a site that changes, and the changes that `scrapy neardup changes` lists."""

from __future__ import annotations

import json

import pytest
from cli import refused, succeeded
from helpers import sketch_of
from site_server import Gate, Page, article, html
from tiers import slow

from scrapy_neardup import Deduplicator, Document
from scrapy_neardup.report import FULL, KINDS, NOT_FULL, kinds_of
from scrapy_neardup.store.records import Run

COUNTED = {"CONCURRENT_REQUESTS": 1, "CONCURRENT_ITEMS": 1}


def crawled(crawl, site, texts: dict[str, int | str], settings=None, spider="ListSpider"):
    """Crawl a site with texts by the name of the page, each a text or the seed of one. All other pages are dead."""
    made = {name: article(text) if isinstance(text, int) else text for name, text in texts.items()}
    site.pages = {f"/{name}.html": Page(html(text)) for name, text in made.items()}
    urls = [f"{site.url}/{name}.html" for name in texts]
    return crawl(spider, {**COUNTED, **(settings or {})}, urls=urls)


def listed(crawl, *options: str) -> list[tuple[str, ...]]:
    """Return the kinds of the changes with the names of the pages, and the former names of moved pages."""
    rows = json.loads(succeeded(crawl.folder, "changes", "--store", crawl.store, "--json", *options).stdout)
    urls = [(row["kind"], row["url"], *filter(None, [row["former_url"]])) for row in rows]
    return [(kind, *(url.rpartition("/")[2].removesuffix(".html") for url in rest)) for kind, *rest in urls]


def counts(crawled) -> dict[str, int]:
    return {
        name.removeprefix("neardup/changes/"): count
        for name, count in crawled.stats.items()
        if name.startswith("neardup/changes/") and count
    }


@pytest.mark.parametrize(
    ("crawl", "revisit"),
    [("file", "keep"), *slow(("redis", "drop"), ("file", "drop"), ("redis", "keep"))],
    indirect=["crawl"],
)
def test_each_kind_of_change_is_listed_and_counted(crawl, a, revisit):
    settings = {"NEARDUP_REVISIT": revisit}
    first = crawled(crawl, a, {"same": 1, "edited": 2, "old": 3, "gone": 4, "there": 5}, settings)
    assert listed(crawl) == [("new", name) for name in ("edited", "gone", "old", "same", "there")]
    assert counts(first) == {"new": 5}
    second = crawled(crawl, a, {"same": 1, "edited": 20, "new": 3, "fresh": 6, "there": 7}, settings)
    assert listed(crawl) == [
        ("new", "fresh"), ("changed", "edited"), ("changed", "there"), ("moved", "new", "old"),
        ("gone", "gone"),
    ]  # fmt: skip
    assert counts(second) == {"new": 1, "changed": 2, "moved": 1, "gone": 1}
    assert "Changes: 1 new, 2 changed, 1 moved, 1 gone" in second.log
    third = crawled(crawl, a, {"same": 1, "edited": 20, "new": 3, "fresh": 6, "there": 5}, settings)
    assert listed(crawl) == [("changed", "there")]
    assert counts(third) == {"changed": 1}
    fourth = crawled(crawl, a, {"same": 1, "edited": 20, "new": 3, "fresh": 6, "there": 5}, settings)
    assert (listed(crawl), counts(fourth)) == ([], {})


def test_changes_prints_a_line_for_each_change_of_content(crawl, a):
    """A word is no change."""
    text, other = article(8), article(7)
    crawled(crawl, a, {"edited": text, "news": other, "old": 9})
    edited = text.replace(text.split()[40], "changed")
    crawled(crawl, a, {"edited": edited, "news": f"{other} {article(6, 400)}", "new": 9})
    changed, *rest = succeeded(crawl.folder, "changes", "--store", crawl.store).stdout.splitlines()
    kind, resemblance, url = changed.split()
    assert (kind, url) == ("changed", f"{a.url}/news.html")
    assert 0.1 < float(resemblance) < 0.5
    moved = f"moved            {a.url}/new.html  (before: {a.url}/old.html)"
    assert rest == [moved, "1 changed, 1 moved"]


def test_pages_of_another_spider_are_not_gone_nor_moved(crawl, a, b):
    crawled(crawl, a, {"one": 1, "two": 2})
    crawled(crawl, b, {"copy": 1, "three": 3}, spider="OtherSpider")
    assert listed(crawl) == [("new", "three")]
    crawled(crawl, a, {"one": 1})
    assert listed(crawl) == [("gone", "two")]
    assert listed(crawl, "--spider", "other") == [("new", "three")]
    told = refused(crawl.folder, "changes", "--store", crawl.store, "--spider", "none")
    assert "has no run of the spider 'none'" in told


STORIES = {  # the articles of some pages, day by day, and what has changed by then
    "pages that get held content have changed": [
        ({"a": 1, "b": 2, "c": 3, "d": 4}, []),
        ({"a": 50, "b": 50, "c": 50, "d": 50}, [("changed", name) for name in "abcd"]),
        ({"a": 1, "b": 1, "c": 50, "d": 50}, [("changed", "a"), ("changed", "b")]),
        ({"a": 1, "b": 1, "c": 50, "d": 1}, [("changed", "d")]),
    ],
    "content at another known URL is not gone": [({"e": 5, "f": 6}, []), ({"f": 5}, [("changed", "f")])],
    "content that another URL kept has not moved": [
        ({"g": 7, "h": 7}, []), ({"h": 7}, []), ({"i": 7, "h": 7}, [])
    ],
    "content has moved although copies of other content are skipped": [
        ({"j": 8, "l": 9, "m": 9}, []), ({"k": 8, "l": 9, "m": 9}, [("moved", "k", "j")])
    ],
    "content is gone when its last copy is": [
        ({"n": 10, "o": 10}, []), ({"n": 11, "o": 10}, [("changed", "n")]), ({"n": 11}, [("gone", "o")])
    ],
}  # fmt: skip


@pytest.mark.parametrize(("revisit", "skips"), [("drop", True), *slow(("keep", True), ("drop", False))])
def test_content_that_comes_and_goes_at_several_urls_is_listed_by_story(crawl, a, revisit, skips):
    """All stories in the same crawls; a story that is over stays as it is."""
    settings = {"NEARDUP_REVISIT": revisit, "NEARDUP_SKIP_MIRRORS": skips}
    for day in range(4):
        pages = [story[min(day, len(story) - 1)][0] for story in STORIES.values()]
        made = crawled(crawl, a, {name: number for each in pages for name, number in each.items()}, settings)
        assert (made.count("requests/skipped") > 0) == (skips and day > 0)
        changes = [change for story in STORIES.values() if day < len(story) for change in story[day][1]]
        assert day == 0 or sorted(listed(crawl)) == sorted(changes)


def test_content_moves_twice_and_is_gone_at_its_last_url(crawl, a):
    crawled(crawl, a, {"old": 1, "same": 9})
    crawled(crawl, a, {"new": 1, "also": 1, "same": 9})
    [(kind, first, former)] = listed(crawl)
    assert (kind, former) == ("moved", "old")
    [last] = {"new", "also"} - {first}  # which of the two is answered first is up to the network
    crawled(crawl, a, {"newer": 1, "same": 9})
    assert listed(crawl) == [("moved", "newer", last)]
    crawled(crawl, a, {"same": 9})
    assert listed(crawl) == [("gone", "newer")]


def test_nothing_is_gone_for_a_crawl_without_a_response(crawl, a):
    a.pages = {f"/{n}": Page(json.dumps([{"description": article(n)}])) for n in range(2)}
    urls = [f"{a.url}{path}" for path in a.pages]
    crawl("EventSpider", urls=urls)
    down = crawl("EventSpider", {"RETRY_ENABLED": False}, urls=["http://127.0.0.1:1/"])
    assert (counts(down), NOT_FULL in down.log) == ({}, True)
    for path in urls:
        del a.pages[path.removeprefix(a.url)]
        assert counts(crawl("EventSpider", urls=urls)) == {"gone": 1}  # a crawl with no page but dead ones is one


@pytest.mark.slow
def test_content_that_comes_without_a_url_is_not_gone(crawl, a):
    crawled(crawl, a, {"one": 1})
    last = crawl("ListSpider", COUNTED, urls=[f"{a.url}/one.html"], method="POST", with_url=False)
    assert (listed(crawl), last.count("duplicates") + last.count("revisits")) == ([], 1)


@pytest.mark.slow
def test_a_page_that_another_spider_found_first_is_gone(crawl, a):
    crawled(crawl, a, {"one": 1, "two": 2})
    for texts in ({"one": 1, "two": 2}, {"one": 1}):
        crawled(crawl, a, texts, spider="OtherSpider")
    assert listed(crawl) == [("gone", "two")]


def test_a_temporary_redirect_is_no_change(crawl, a):
    for seed in (1, 2):
        a.pages = {"/in": Page(status=302, location="/page"), "/page": Page(html(article(seed)))}
        last = crawl("ListSpider", COUNTED, urls=[f"{a.url}/in"])
    assert (listed(crawl), counts(last)) == ([("changed", "page")], {"changed": 1})
    a.pages = {"/in": Page(status=302, location="/new"), "/new": Page(html(article(2)))}
    crawl("ListSpider", COUNTED, urls=[f"{a.url}/in"])
    assert listed(crawl) == [("moved", "new", "page")]


@pytest.mark.slow
def test_the_original_of_a_preferred_host_is_no_change_of_its_copies(crawl, a, b):
    a.pages = b.pages = {"/one.html": Page(html(article(1)))}
    settings = {**COUNTED, "NEARDUP_PREFERRED_HOSTS": [b.url.partition("//")[2]]}
    made = crawl("ListSpider", settings, urls=[f"{site.url}/one.html" for site in (a, b)])
    assert counts(made) == {"new": 1}


def test_commands_are_no_crawls(crawl, a):
    crawled(crawl, a, {"one": 1, "two": 2})
    crawled(crawl, a, {"one": 1})
    succeeded(crawl.folder, "forget", "--store", crawl.store, f"{a.url}/one.html")
    feed = crawl.folder / "feed.jsonl"
    feed.write_text(json.dumps({"url": "http://a.example/", "text": article(5)}) + "\n")
    succeeded(crawl.folder, "dedupe", "feed.jsonl", "--store", crawl.store, "-o", "kept.jsonl")
    assert listed(crawl) == [("gone", "two")]
    succeeded(crawl.folder, "dedupe", "feed.jsonl", "--store", "other.sqlite", "-o", "kept2.jsonl")
    made = succeeded(crawl.folder, "changes", "--store", "other.sqlite")
    assert (made.stdout, made.stderr) == ("no changes\n", "The store has seen no crawl.\n")


def test_a_paused_crawl_counts_at_its_end(crawl, a):
    crawled(crawl, a, {"one": 1, "two": 2, "three": 3})
    job = {"JOBDIR": str(crawl.folder / "job")}
    paused = crawled(crawl, a, {"one": 1, "new": 4, "two": 2}, {**job, "CLOSESPIDER_PAGECOUNT": 3})
    assert (counts(paused), "Changes:" in paused.log) == ({}, False)
    assert counts(crawled(crawl, a, {"one": 1, "new": 4, "two": 2}, job)) == {"new": 1, "gone": 1}


def test_a_page_of_which_only_a_field_changed_is_listed_as_such(crawl, a):
    for price in ("20.00", "18.00"):
        a.pages["/e"] = Page(json.dumps([{"description": article(1), "price": price}]))
        crawl("EventSpider", {"NEARDUP_REVISIT": "drop"}, urls=[f"{a.url}/e"])
    told = succeeded(crawl.folder, "changes", "--store", crawl.store).stdout
    assert told.startswith(f"changed  fields  {a.url}/e  (price)")
    succeeded(crawl.folder, "report", "--store", crawl.store, "-o", "report.html")
    assert ">price<" in (crawl.folder / "report.html").read_text()


def test_a_killed_crawl_is_no_previous_crawl(crawl, a):
    crawled(crawl, a, {"one": 1, "two": 2})
    a.pages = Gate({"/one.html": a.pages["/one.html"]}, "/wait")
    process = crawl.start("ListSpider", COUNTED, urls=[f"{a.url}/one.html", f"{a.url}/wait"])
    assert a.pages.reached.wait(60)
    process.kill()
    process.communicate(timeout=60)
    a.pages.opened.set()
    last = crawled(crawl, a, {"one": 1})
    assert (listed(crawl), counts(last)) == ([("gone", "two")], {"gone": 1})


STOP_LISTING = {"scrapy_neardup.contrib.stop.StopListing": 0}
TRAPS = {"scrapy_neardup.contrib.stop.Traps": 0}


@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        ({"CLOSESPIDER_PAGECOUNT": 3}, "closespider_pagecount"),
        *slow(
            (
                {"EXTENSIONS": {"scrapy_neardup.contrib.stop.StopEarly": 0}, "STOP_EARLY_ITEMS": 2},
                "neardup_only_seen",
            ),
            ({"SPIDER_MIDDLEWARES": STOP_LISTING, "STOP_LISTING_ITEMS": 2}, "finished"),
            ({"EXTENSIONS": TRAPS, "TRAPS_COPIES": 1, "NEARDUP_SKIP_MIRRORS": False}, "finished"),
        ),
    ],
)
def test_what_a_crawl_left_out_is_not_gone(crawl, a, settings, reason):
    texts = {"a": 1, "b": 1, "c": 1, **{f"p{n}": n for n in range(2, 7)}}
    crawled(crawl, a, texts, {"NEARDUP_SKIP_MIRRORS": False})
    stopped = crawled(crawl, a, {"new": 9, **texts}, settings, "OneAfterAnother")
    assert (stopped.stats["finish_reason"], counts(stopped)) == (reason, {"new": 1})
    assert f"Changes: 1 new. {NOT_FULL}" in stopped.log
    assert succeeded(crawl.folder, "changes", "--store", crawl.store).stderr == f"{NOT_FULL}.\n"
    assert listed(crawl) == [("new", "new")]
    assert counts(crawled(crawl, a, {"new": 9, **texts})) == {}
    del texts["p6"]
    assert counts(crawled(crawl, a, {"new": 9, **texts})) == {"gone": 1}
    assert not succeeded(crawl.folder, "changes", "--store", crawl.store).stderr


@pytest.mark.slow
def test_nothing_is_gone_since_a_crawl_that_left_out_pages(crawl, a):
    crawled(crawl, a, {"one": 1, "two": 2, "three": 3}, {"CLOSESPIDER_PAGECOUNT": 2})
    assert counts(crawled(crawl, a, {"two": 2})) == {"new": 1}
    assert counts(crawled(crawl, a, {"three": 3})) == {"new": 1, "gone": 1}


def test_only_a_full_crawl_finds_what_is_gone():
    def found(**stats: int) -> tuple[str, ...]:
        return kinds_of(Run("r", 0.0).with_stats({"requests/stopped": 0, **stats}))

    assert (found(**{FULL: 1}), found()) == (KINDS, KINDS[:2])
    for name in ("requests/stopped", "store/unjudged"):
        assert found(**{FULL: 1, name: 1}) == KINDS[:2]
    paused = Run("r", 0.0).with_stats({"requests/stopped": 1})
    assert kinds_of(paused.with_stats({FULL: 1})) == kinds_of(paused.with_stats({FULL: 1, "requests/stopped": 0}))
    assert kinds_of(paused.with_stats({FULL: 1})) == KINDS[:2]


def test_a_url_that_changes_twice_in_a_run_is_compared_with_the_run_before(tmp_path):
    for visits in ([("a", 1), ("b", 2)], [("b", 1), ("b", 3)]):
        with Deduplicator.open(tmp_path / "store.sqlite") as dedup:
            for name, seed in visits:
                dedup.claim(Document(f"http://a.example/{name}", article(seed))).commit()
            state = dedup.store.resolve("http://a.example/b")
            assert state
            target = state.before and state.before.target
            before = dedup.store.document(target) if target else None
    assert (before.url, before.sketch.codes) == ("http://a.example/b", sketch_of(article(2)).codes)


def test_a_page_that_is_not_fetched_again_is_not_gone(crawl, a):
    settings = {"NEARDUP_REVISIT": "skip", "NEARDUP_RECHECK": 0}
    crawled(crawl, a, {"one": 1, "two": 2}, settings)
    later = crawled(crawl, a, {"one": 1, "two": 2, "three": 3}, settings)
    assert (later.count("requests/skipped"), counts(later), listed(crawl)) == (2, {"new": 1}, [("new", "three")])
    assert NOT_FULL in later.log
    assert counts(crawled(crawl, a, {"one": 1, "new": 2}, settings)) == {}
    assert listed(crawl) == []


def test_the_items_of_one_page_come_and_go_by_themselves_and_do_not_change_its_url(crawl, a):
    for seeds in ((1, 2), (1, 3)):
        a.pages["/list.html"] = Page(html("</p><p>".join(map(article, seeds))))
        many = crawl("ManySpider", COUNTED, urls=[f"{a.url}/list.html"])
    assert (many.count("unique"), counts(many)) == (1, {"new": 1, "gone": 1})
    rows = json.loads(succeeded(crawl.folder, "changes", "--store", crawl.store, "--json").stdout)
    for row, kind, seed in zip(rows, ("new", "gone"), (3, 2), strict=True):
        page, _, label = row["url"].partition(" (")
        assert (row["kind"], page) == (kind, f"{a.url}/list.html")
        assert article(seed).startswith(label[:-1])


@pytest.mark.parametrize("revisit", ["drop", *slow("keep")])
def test_the_items_of_a_list_page_that_have_urls_of_their_own_change_like_pages(crawl, a, revisit):
    """A list page gives each item a URL, which is not fetched."""

    def crawled_list(seeds: dict[str, int]) -> list[tuple[str, ...]]:
        items = [{"url": f"{a.url}/{name}.html", "text": article(seed)} for name, seed in seeds.items()]
        a.pages["/list"] = Page(json.dumps(items))
        crawl("JsonSpider", {**COUNTED, "NEARDUP_REVISIT": revisit}, urls=[f"{a.url}/list"])
        return listed(crawl)

    first = {"same": 1, "edited": 2, "old": 3, "gone": 4}
    assert crawled_list(first) == [("new", name) for name in sorted(first)]
    second = {"same": 1, "edited": 20, "new": 3, "fresh": 6}
    assert crawled_list(second) == [("new", "fresh"), ("changed", "edited"), ("moved", "new", "old"), ("gone", "gone")]
    assert crawled_list(second) == []
