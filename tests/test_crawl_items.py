"""Items of every kind in real crawls of real servers: kept, dropped, tagged, or passed."""

from __future__ import annotations

import json
import re

import pytest
from cli import succeeded
from site_server import Page, article, html, mirror
from tiers import slow


@pytest.mark.parametrize("kind", ["dict", "item", "pydantic", *slow("dataclass", "attrs")])
def test_the_second_copy_is_dropped_for_every_kind_of_item(crawl, a, b, kind):
    result = crawl("OneAfterAnother", urls=mirror(a, b, 5), kind=kind)
    assert sorted(result.urls) == [f"{a.url}/{n}.html" for n in range(5)]
    assert (result.count("documents"), result.count("unique"), result.count("duplicates")) == (10, 5, 5)
    assert result.count("duplicates/exact") == 5
    assert result.count("store/documents") == 5
    # The first three drops at INFO, the others at DEBUG.
    for n, level in enumerate(["INFO"] * 3 + ["DEBUG"] * 2):
        evidence = f"is a copy of {a.url}/{n}.html (found by exact, resemblance 1.0)"
        assert f"{level}: Dropped: {b.url}/{n}.html {evidence}\n" in result.log
    assert result.log.count(": Dropped: ") == 5
    (compared,) = re.findall("INFO: Items of type (.*)\n", result.log)
    assert compared.endswith(": text from text; title title; own URL url")
    line = "10 documents: 5 unique, 5 duplicates (50.0 %), 0 revisits, 0 requests saved, 5 held in the store"
    assert f"INFO: {line}" in result.log


def test_bytes_are_decoded_as_their_response_is(crawl, a, b):
    page = html(article(0).translate(str.maketrans("aeioukmt", "аеиоукмт")))
    a.pages["/0.html"], b.pages["/0.html"] = Page(page), Page(page, charset="gbk")
    result = crawl("OneAfterAnother", urls=[f"{site.url}/0.html" for site in (a, b)], field="body")
    assert (result.count("unique"), result.count("duplicates/exact")) == (1, 1)


def test_the_role_of_each_field_is_logged_for_each_type_of_item(crawl, a):
    a.pages["/boots"] = Page("".join(f"<p>{article(1)}</p><b>N-{size}</b>" for size in (36, 37)))
    result = crawl("RecordSpider", urls=[f"{a.url}/boots"])
    for kind in ("dict", "Record"):
        line = f"Items of type {kind}: text from description; title name; facts sku\n"
        assert result.log.count(line) == 1


def test_fields_that_later_items_have_are_logged_too_but_not_without_end(crawl, a):
    boots = [{"title": f"Boot {n}", "description": article(1), f"size_{n}": 1} for n in range(60)]
    a.pages["/boots"] = Page(json.dumps([boots[0], boots[0], *boots]))
    result = crawl("JsonSpider", urls=[f"{a.url}/boots"])
    assert result.log.count("Items of type dict: text from description; title title; facts size_0\n") == 1
    assert [result.log.count(f"Items of type dict: facts size_{n}\n") for n in (1, 40, 59)] == [1, 1, 0]


def test_a_snapshot_has_all_records_of_a_page_in_every_run(crawl, a):
    """Those of one page have one description, those of the other no text."""
    days = [{"date": f"2024-05-{day:02}", "edition_number": 1000 + day} for day in range(1, 9)]
    described = [{**day, "description": article(1)} for day in days]
    a.pages = {"/may": Page(json.dumps(days)), "/described": Page(json.dumps(described))}
    for revisits in (0, 16):
        result = crawl("JsonSpider", {"NEARDUP_REVISIT": "keep"}, urls=[a.url + path for path in a.pages])
        assert (len(result.items), result.count("revisits")) == (16, revisits)


def test_explain_names_the_field_in_which_two_held_items_differ(crawl, a):
    items = [{"url": f"{a.url}/{n}", "text": article(1), "size": 9, "price": f"{n}.00"} for n in (1, 2)]
    a.pages["/boots"] = Page(json.dumps(items))
    assert len(crawl("JsonSpider", urls=[f"{a.url}/boots"]).items) == 2
    said = succeeded(crawl.folder, "explain", *(item["url"] for item in items), "--store", crawl.store).stdout
    assert said.endswith("unique: the items differ in the field price\n")
    runs = json.loads(succeeded(crawl.folder, "stats", "--runs", "--store", crawl.store, "--json").stdout)
    assert "price" not in json.dumps(runs)  # the names of fields are no stats


def test_the_time_of_an_item_is_no_fact_however_long_its_page_takes(crawl, a):
    a.pages["/stream"] = Page("x")
    for items in (3, 0):
        near = {"scrapy_neardup.facts.NEAR": 0.0}  # a time must be that of the crawl to the moment
        result = crawl("Stream", {"NEARDUP_REVISIT": "drop"}, urls=[f"{a.url}/stream"], patch=near)
        assert len(result.items) == items


def test_a_page_is_skipped_for_its_only_item_whatever_fields_that_has(crawl, a, b):
    for duplicates, requests in ((3, 3), (0, 0)):
        asked = len(b.asked())
        result = crawl("OneAfterAnother", urls=mirror(a, b), with_url=False)
        assert (len(result.items), result.count("duplicates"), len(b.asked(since=asked))) == (3, duplicates, requests)


def test_a_page_with_two_items_without_url_is_not_skipped(crawl, a, b):
    for site in (a, b):
        site.pages["/list"] = Page(f"<p>{article(1)}</p><p>{article(2)}</p>")
    for _ in range(2):
        asked = len(b.asked())
        result = crawl("ManySpider", {"CONCURRENT_REQUESTS": 1}, urls=[f"{a.url}/list", f"{b.url}/list"])
        assert (len(result.items), result.count("duplicates"), len(b.asked(since=asked))) == (2, 2, 1)


CALENDARS = {  # the days of the concerts on page 1 and on page 2, and which one is new
    "an item that another page gave before": [
        ([11, 12, 13, 14], [], 14), ([10, 11, 12, 13], [14], 10), ([11, 12, 13, 14], [15], 15)
    ],
    "one item left": [([10, 11], [], 10), ([11], [], None), ([11, 12], [], 12)],
}  # fmt: skip


@pytest.mark.parametrize("revisit", ["skip", *slow("keep", "drop")])
@pytest.mark.parametrize("calendar", CALENDARS)
def test_a_page_of_a_list_is_fetched_though_all_that_it_had_was_one_known_item(crawl, a, calendar, revisit):
    settings = {"NEARDUP_SKIP_START": True, "NEARDUP_RECHECK": 0, "NEARDUP_REVISIT": revisit}
    for *days, new in CALENDARS[calendar]:
        for page, numbers in enumerate(days):
            dates = [{"title": f"Concert {n}", "text": article(n), "date": f"2026-05-{n:02}"} for n in numbers]
            a.pages[f"/{page}"] = Page(json.dumps(dates))
        result = crawl("EventSpider", settings, urls=[f"{a.url}/0", f"{a.url}/1"])
        assert new is None or f"Concert {new}" in [item["title"] for item in result.items]


@pytest.mark.parametrize(("revisit", "skipped"), [("skip", 6), ("keep", 0)])
def test_the_middleware_alone_skips_where_that_needs_no_item(crawl, a, b, revisit, skipped):
    crawl("OneAfterAnother", urls=mirror(a, b))
    components = {"ADDONS": {}, "DOWNLOADER_MIDDLEWARES": {"scrapy_neardup.MirrorMiddleware": 75}}
    alone = crawl("ListSpider", {**components, "NEARDUP_REVISIT": revisit}, urls=mirror(a, b))
    assert (alone.count("requests/skipped"), len(alone.items)) == (skipped, 6 - skipped)


def test_pages_without_text_and_with_thin_text_pass_and_are_counted(crawl, a):
    comments = f"<div id=comments><p>{article(2, 300)}</p></div>"
    pages = (html(article(0) + comments), html(article(1)), "<html><title>Nothing</title></html>")
    a.pages = {f"/{n}.html": Page(page) for n, page in enumerate(pages)}
    result = crawl("OneAfterAnother", urls=[a.url + path for path in a.pages], field="html")
    assert [result.count(name) for name in ("documents", "thin", "no_text")] == [2, 1, 1]
    assert len(result.items) == 3


def test_tagged_items_pass_with_the_verdict(crawl, a, b):
    """The tag also says what kind of duplicate a page is."""
    kinds = {"full": ("a", 150), "partial": ("b", 110), "content": ("b", 150), "layout": ("a", 110)}
    for number, (template, words) in enumerate(kinds.values()):
        a.pages[f"/{number}.html"] = Page(html(article(number), "a"))
        b.pages[f"/{number}.html"] = Page(html(" ".join(article(number).split()[:words]), template))
    urls = [f"{site.url}/{number}.html" for site in (a, b) for number in range(4)]
    result = crawl("OneAfterAnother", {"NEARDUP_ACTION": "tag"}, urls=urls)
    tags = [item["neardup"] for item in result.items]
    assert [tag["kind"] for tag in tags] == [*[None] * 4, *kinds]
    original, copy = tags[0], tags[4]
    assert original["status"] == "unique"
    assert (copy["status"], copy["duplicate_of"], copy["detector"]) == ("duplicate", f"{a.url}/0.html", "exact")
    assert copy["hamming"] == 0
    assert set(copy) >= {"resemblance", "length_ratio", "kind", "copies"}


def test_items_with_no_field_for_the_tag_pass_without_it(crawl, a, b):
    result = crawl("OneAfterAnother", {"NEARDUP_ACTION": "tag"}, urls=mirror(a, b, 2), kind="item")
    assert [sorted(item) for item in result.items] == [["text", "title", "url"]] * 4
    assert result.log.count("pass without tag") == 1
    assert result.count("duplicates") == 2


def test_audited_items_pass_unchanged(crawl, a, b):
    """The next crawl says that it acts on what was recorded."""
    urls, recorded = mirror(a, b, 1), "The store holds what 2 earlier audits recorded"
    for _ in range(2):
        result = crawl("OneAfterAnother", {"NEARDUP_ACTION": "audit"}, urls=urls)
        assert [sorted(item) for item in result.items] == [["text", "title", "url"]] * 2
        assert result.count("duplicates") == 1
        assert "recorded" not in result.log
    result = crawl("OneAfterAnother", urls=urls)
    assert (result.count("requests/skipped"), len(result.items), result.log.count(recorded)) == (1, 1, 1)


def test_each_item_of_a_page_has_its_own_verdict(crawl, a, b):
    a.pages["/list"] = Page(f"<p>{article(1)}</p><p>{article(2)}</p><p>{article(1)}</p>")
    b.pages["/list"] = Page(f"<p>{article(2)}</p><p>{article(3)}</p>")
    result = crawl("ManySpider", {"CONCURRENT_REQUESTS": 1}, urls=[f"{a.url}/list", f"{b.url}/list"])
    assert [item["text"] for item in result.items] == [article(1), article(2), article(3)]
    assert (result.count("duplicates"), result.count("revisits")) == (2, 0)


def test_a_page_that_also_gives_something_new_is_never_skipped(crawl, a, b):
    a.pages["/list"] = Page(f"<p>{article(1)}</p><p>{article(2)}</p>")
    b.pages["/mixed"] = Page(f"<p>{article(2)}</p><p>{article(3)}</p><p>{article(1)}</p>")
    b.pages["/bare"] = Page(f"<p>{article(1)}</p>")
    urls = [f"{a.url}/list", f"{b.url}/mixed", f"{b.url}/bare"]
    crawl("ManySpider", {"CONCURRENT_REQUESTS": 1}, urls=urls, bare_item=True)
    asked = len(b.requests)
    again = crawl("ManySpider", {"CONCURRENT_REQUESTS": 1}, urls=urls, bare_item=True)
    assert sorted(b.asked(since=asked)) == ["/bare", "/mixed"]
    assert again.count("requests/skipped") == 0


def test_a_broken_link_to_a_canonical_page_says_nothing(crawl, a, b):
    urls = mirror(a, b, 4)
    for page, link in zip(b.pages.values(), ("http://[site]/x", "//[x", "http://h:99999999/", ""), strict=True):
        page.body = page.body.replace("<title>", f'<link rel=canonical href="{link}"><title>')
    result = crawl("OneAfterAnother", urls=urls)
    assert (result.urls, result.count("duplicates"), result.count("errors")) == (urls[:4], 4, 0)


def test_relative_url_of_an_item_starts_from_the_base_of_its_page(crawl, a):
    page = html(article(1), links=("1",)).replace("<title>", '<base href="/shop/"><title>')
    a.pages = {"/list/": Page(page), "/shop/1": Page(html(article(2)))}
    for _ in range(2):
        result = crawl("TeaserSpider", {"NEARDUP_REVISIT": "drop"}, urls=[f"{a.url}/list/"], raw=True)
    assert f"Dropped: {a.url}/shop/1 is a revisit" in result.log


def test_every_url_of_a_redirect_is_known(crawl, a, b):
    a.pages["/0.html"], b.pages["/0.html"] = (Page(html(article(0, 300), template)) for template in "ab")
    b.pages["/old"] = Page(status=301, location="/older")
    b.pages["/older"] = Page(status=308, location="/0.html")
    a.pages["/way"] = Page(status=301, location="/0.html")
    urls = [f"{a.url}/way", f"{b.url}/old"]
    crawl("OneAfterAnother", urls=urls)
    asked = len(b.requests)
    again = crawl("OneAfterAnother", urls=[*urls, f"{b.url}/older", f"{b.url}/0.html"])
    assert b.asked(since=asked) == []
    assert again.urls == [f"{a.url}/0.html"]
    assert again.count("revisits") == 1


def test_spiders_have_documents_of_their_own_in_their_namespace(crawl, a, b):
    urls = mirror(a, b, 1)
    crawl("ListSpider", {"NEARDUP_NAMESPACE": "{spider}"}, urls=urls[:1])
    other = crawl("ListSpider", {"NEARDUP_NAMESPACE": "other"}, urls=urls[1:])
    same = crawl("ListSpider", {"NEARDUP_NAMESPACE": "list"}, urls=urls[1:])
    assert (other.count("unique"), same.count("revisits")) == (1, 1)


def test_odd_items_pass(crawl, a):
    a.pages["/0.html"] = Page(html(article(0)))
    result = crawl("OddSpider", urls=[f"{a.url}/0.html"])
    assert len(result.items) == 3
    assert "item_error_count" not in result.stats


def test_a_page_whose_items_repeat_one_document_is_fetched_for_its_next_item(crawl, a, b):
    ad = {"url": f"{a.url}/ad", "title": "Nurse", "text": f"{article(1)} in Leeds"}
    texts = {city: f"{article(1)} in {city}" for city in ("York", "Bath")}
    items = [{"url": f"{b.url}/list#{city}", "title": "Nurse", "text": text} for city, text in texts.items()]
    a.pages["/ad"], b.pages["/list"] = Page(json.dumps([ad])), Page(json.dumps(items))
    urls = [f"{a.url}/ad", f"{b.url}/list"]
    settings = {"NEARDUP_SKIP_START": True, "NEARDUP_RECHECK": 0, "NEARDUP_REVISIT": "drop"}
    crawl("JsonSpider", settings, urls=urls[:1])  # else the list may come first, with items that are no copies
    assert crawl("JsonSpider", settings, urls=urls).count("duplicates") == 2
    b.pages["/list"] = Page(json.dumps([*items, {"url": f"{b.url}/list#lamp", "title": "Lamp", "text": article(2)}]))
    assert f"{b.url}/list#lamp" in crawl("JsonSpider", settings, urls=urls).urls
