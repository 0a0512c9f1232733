"""Items are records: nothing that an item says is lost. Stories of real crawls, with the defaults."""

from __future__ import annotations

import json
import re
from collections import Counter
from typing import Any

import pytest
from cli import rows, succeeded, write
from site_server import Page, Site, article
from tiers import slow

TEXT = article(1, 60)
DROP = {"NEARDUP_REVISIT": "drop"}
CITIES = ("Leeds", "York", "Bath", "Derby")
Row = dict[str, Any]


def fill(site: Site, pages: dict[str, Row | list[Row]]) -> list[str]:
    """Let a site answer with these rows, and return the URLs."""
    for path, listed in pages.items():
        site.pages[path] = Page(json.dumps(listed if isinstance(listed, list) else [listed]))
    return [f"{site.url}{path}" for path in pages]


def meetings(**more: Any) -> list[Row]:
    return [{"title": "Planning", "date": f"2026-{n:02}-14", "description": TEXT, **more} for n in range(1, 7)]


def values(result: Any, name: str) -> Counter[str]:
    """Return the values of a field in a feed, each alone or in a list."""
    found = (item[name] for item in result.items)
    return Counter(each[0] if isinstance(each, list) else each for each in found)


@pytest.mark.parametrize("kind", ["dict", *slow("loader", "dataclass", "attrs", "pydantic")])
def test_meetings_with_one_text_are_told_apart_by_their_date_in_every_kind_of_item(crawl, a, kind):
    urls = fill(a, {f"/e/{n}": row for n, row in enumerate(meetings())})
    first = crawl("EventSpider", DROP, urls=urls, kind=kind)
    assert values(first, "date") == Counter(row["date"] for row in meetings())
    assert crawl("EventSpider", DROP, urls=urls, kind=kind).items == []


def test_a_field_that_one_item_lacks_matters_unless_the_earlier_has_it_and_a_strong_fact_is_equal(crawl, a):
    rated, sku, pages = {"rating": 4}, {"sku": "L-1", "price": "20.00"}, {}
    cases = [(sku | rated, sku, 1), (rated, {}, 2), (sku, sku | rated, 2)]
    for number, (first, second, _) in enumerate(cases):
        lamp = {"name": "Lamp", "description": article(number, 60)}
        pages |= {f"/lamps/{number}": lamp | first, f"/sale/{number}": lamp | second}
    kept = values(crawl("EventSpider", urls=fill(a, pages)), "description")
    assert kept == {article(number, 60): count for number, (_, _, count) in enumerate(cases)}


def test_records_of_an_api_that_is_asked_by_post(crawl, a):
    urls = fill(a, {"/api": meetings()})
    assert len(crawl("EventSpider", DROP, urls=urls, method="POST").items) == 6
    assert crawl("EventSpider", DROP, urls=urls, method="POST").items == []
    fill(a, {"/api": [*meetings(), {"title": "Planning", "date": "2026-07-14", "description": TEXT}]})
    assert values(crawl("EventSpider", DROP, urls=urls, method="POST"), "date") == {"2026-07-14": 1}


def test_records_that_the_spider_yields_at_its_start_without_a_page(crawl):
    assert len(crawl("EventSpider", DROP, urls=[], rows=meetings()).items) == 6
    later = [*meetings(), {"title": "Planning", "date": "2026-07-14", "description": TEXT}]
    assert values(crawl("EventSpider", DROP, urls=[], rows=later), "date") == {"2026-07-14": 1}


def test_records_of_pages_are_kept_if_the_spider_middleware_is_missing(crawl, a):
    urls = fill(a, {f"/{n}": [{"name": "Lamp", "price": 3}] for n in range(2)})
    settings = DROP | {"SPIDER_MIDDLEWARES": {"scrapy_neardup.ItemOrigins": None}}
    assert len(crawl("EventSpider", settings, urls=urls).items) == 2


def pianos(reads: int, **of_the_third: str) -> dict[str, Row]:
    """Return ten pages, each with a counter of its readers."""
    ads = {f"/ad/{n}": {"title": f"Piano {n}", "reads": reads + n, "description": article(n)} for n in range(10)}
    return {**ads, "/ad/3": {**ads["/ad/3"], **of_the_third}}


def test_a_counter_becomes_known_and_then_counts_no_more_but_makes_no_records_of_other_urls_one(crawl, a):
    flats = {f"/flat/{n}": {"title": "Flat", "reads": 600 + n, "description": TEXT} for n in range(4)}
    days = [pianos(100, status="open"), pianos(220, status="open"), pianos(350, status="sold") | flats]
    first, second, third = [crawl("EventSpider", DROP, urls=fill(a, ads), own="url") for ads in days]
    assert (len(first.items), len(second.items)) == (10, 3)  # until the fourth change
    assert "'reads' changes at most visits, so it no longer counts on 127.0.0.1" in second.log
    assert [item.get("status", item["reads"]) for item in third.items] == ["sold", 600, 601, 602, 603]


@pytest.mark.parametrize(("name", "later"), [("views", 0), ("rank", 1)])
def test_views_change_no_item_of_a_url_however_short_but_ranks_do(crawl, a, name, later):
    given = []
    for number in (5, 9, 12):
        rows = [{"title": "Song", name: number, "description": text} for text in ("By Ann.", article(1))]
        urls = fill(a, {f"/{place}": row for place, row in enumerate(rows)})
        given.append(len(crawl("EventSpider", DROP, urls=urls, own="url").items))
    assert given == [2, later, later]


@pytest.mark.parametrize("name", ["size", "colour"])
def test_variants_with_the_url_of_their_product_are_kept_and_stored_once(crawl, a, name):
    def day(count: int) -> list[str]:
        boots = [
            {"title": "Boot", name: (n if name == "size" else f"no. {n}"), "link": f"{a.url}/boot", "description": TEXT}
            for n in range(count)
        ]
        return fill(a, {"/list": boots})

    for count, kept in ((3, 3), (5, 2), (5, 0), (5, 0)):
        assert len(crawl("EventSpider", DROP, urls=day(count)).items) == kept


def test_two_spiders_of_one_store_with_different_fields(crawl, a):
    def day(**more: Any) -> list[str]:
        return fill(a, {f"/n/{n}": {"title": f"News {n}", "body": article(n), **more} for n in range(3)})

    other, kept = ("OtherEventSpider", {"author": "Ann", "words": 150}), []
    for spider, more in [("EventSpider", {"price": price}) if price else other for price in (5.5, 0, 6.5, 0, 5.5)]:
        kept.append(len(crawl(spider, DROP, urls=day(**more), own="url").items))
    assert kept == [3, 3, 3, 0, 3]


def test_records_without_text_at_two_urls_are_one_only_with_a_strong_fact(crawl, a):
    books = [{"title": "Ferries", "price": 12.5, "isbn": "978-3-16-148410-0"}, {"title": "Trains", "price": 9.5}]
    pages = {f"/{place}/{n}": book for n, book in enumerate(books) for place in ("b", "new")}
    assert values(crawl("EventSpider", urls=fill(a, pages)), "title") == {"Ferries": 1, "Trains": 2}


def test_an_item_of_another_site_repeats_the_record_with_which_it_agrees(crawl, a, b):
    def ad(city: str, **more: Any) -> Row:
        return {"title": "Clerk", "city": city, "description": TEXT, **more}

    ours = fill(a, {f"/j/{n}": ad(city, posted="2026-03-01") for n, city in enumerate(CITIES[:3])})
    theirs = fill(b, {f"/o/{n}": ad(city, posted="2026-03-04", ref=f"X{n}") for n, city in enumerate(CITIES)})
    result = crawl("EventSpider", urls=ours + theirs, own="url")
    assert [(item["city"], "ref" in item) for item in result.items] == [
        ("Leeds", False), ("York", False), ("Bath", False), ("Derby", True),
    ]  # fmt: skip
    assert re.search(rf"Dropped: {b.url}/o/1 is a copy of {a.url}/j/1 ", result.log)


def test_members_of_a_family_are_found_on_another_site_by_their_strong_fact(crawl, a, b):
    lamps = [{"name": "Lamp", "sku": f"L-{n}", "price": 20 + n, "description": TEXT} for n in range(3)]
    urls = [*fill(a, {f"/l/{n}": row for n, row in enumerate(lamps)})]
    urls += fill(b, {f"/p/{n}": {**row, "price": 5} for n, row in enumerate([*lamps, {**lamps[0], "sku": "L-9"}])})
    assert values(crawl("EventSpider", urls=urls, own="url"), "sku") == {"L-0": 1, "L-1": 1, "L-2": 1, "L-9": 1}


def test_a_crawl_and_dedupe_of_its_feed_agree(crawl, a, b, tmp_path):
    ads = [{"title": "Clerk", "city": city, "body": TEXT} for city in CITIES]
    urls = fill(a, {f"/a/{n}": row for n, row in enumerate(ads)}) + fill(a, {"/print/1": ads[1]})
    urls += fill(b, {f"/b/{n}": row for n, row in enumerate([*ads, {**ads[0], "city": "Truro"}])})
    kept = crawl("EventSpider", urls=urls, own="url").items
    crawl.store = str(tmp_path / "audit.sqlite")
    everything = crawl("EventSpider", {"NEARDUP_ACTION": "audit"}, urls=urls, own="url").items
    assert len(everything) == len(urls)
    write(tmp_path / "in.jsonl", everything)
    succeeded(tmp_path, "dedupe", "in.jsonl", "-o", "out.jsonl")
    assert rows(tmp_path / "out.jsonl") == kept


def test_items_of_a_list_page_are_named_by_page_and_facts(crawl, a, tmp_path):
    one, two = fill(a, {"/month": meetings(), "/planning": [*meetings()[:2], {"title": "Tea", "date": "2026-09-01"}]})
    crawl("EventSpider", urls=[one, two])
    explained = json.loads(succeeded(tmp_path, "explain", one, "--store", crawl.store, "--json").stdout)
    assert explained["status"] == "fetched each time: it gave several items"
    assert [item["item"] for item in explained["items"]] == [f"date {row['date']}" for row in meetings()]
    clusters = json.loads(succeeded(tmp_path, "clusters", "--store", crawl.store, "--json").stdout)
    assert {(each["original"], each["members"][0]["url"]) for each in clusters} == {
        (f"{one} (date {row['date']})", f"{two} (date {row['date']})") for row in meetings()[:2]
    }
    changes = json.loads(succeeded(tmp_path, "changes", "--store", crawl.store, "--json").stdout)
    assert {change["url"] for change in changes} >= {f"{one} (date {row['date']})" for row in meetings()}
    fill(a, {"/month": meetings()[1:]})
    second = crawl("EventSpider", {"NEARDUP_RECHECK": 0}, urls=[one])
    assert second.count("changes/gone") >= 1
    assert succeeded(tmp_path, "report", "--store", crawl.store, "-o", "report.html").returncode == 0
    assert "(date 2026-01-14)" in (tmp_path / "report.html").read_text()


@pytest.mark.parametrize("crawl", ["file", "redis"], indirect=True)
def test_a_page_that_gave_several_items_and_then_one_has_changed(crawl, a):
    for rows_, kept in ((meetings()[:2], 2), ([{"title": "Harbour", "description": article(2, 60)}], 1)):
        result = crawl("EventSpider", DROP, urls=fill(a, {"/list": rows_}))
        assert (len(result.items), result.count("errors")) == (kept, 0)
        assert "Changes: " in result.log
    assert result.count("changes/changed") == 1


SIZES = [{"name": "Shirt", "description": TEXT, "size": size, "price": 20} for size in ("S", "M", "L")]
PARTS = [{"product_id": f"A{n}", "name": f"Part {n}", "price": n + 10.5, "in_stock": True} for n in range(3)]
PLAIN = [{"sku": f"A{n}", "name": f"Part {n}", "price": n + 10.5} for n in range(3)]
QUOTES = [{"text": article(n, 60), "author": f"Author {n}"} for n in range(3)]


BACK = [(SIZES, {"price": 18}), (PARTS, {"in_stock": False}), (PLAIN, {"badge": "sale"})]


@pytest.mark.parametrize(
    ("crawl", "row", "other"),
    [("file", *BACK[0]), *slow(*(("file", *each) for each in BACK[1:])), ("redis", *BACK[1])],
    indirect=["crawl"],
)
def test_an_item_of_a_list_that_changes_back_is_given_again(crawl, a, row, other):
    for day in range(5):  # on every other day, the first and the last item are in another state
        changed = {0, 2} if day % 2 else set()
        listed = [each | (other if n in changed else {}) for n, each in enumerate(row)]
        given = crawl("EventSpider", DROP, urls=fill(a, {"/list": listed})).items
        assert given == [each for n, each in enumerate(listed) if not day or n != 1]
    again = crawl("EventSpider", DROP, urls=fill(a, {"/list": listed}))
    assert (again.items, again.count("changed"), again.count("revisits")) == ([], 0, 3)


OFFER = {"url": "/lamp", "sku": "L-1", "offer": "new"}
RED, BLUE = ({"title": f"Lamp {colour}", "colour": colour, "description": TEXT} for colour in ("red", "blue"))


PROMO, PLAIN_OFFER = {"/api": [OFFER | {"promo": "three for two"}]}, {"/api": [OFFER]}
FAIR, FOUL = (
    {"/sky": [{"city": city, "sky": sky if city == "Bath" else "rain"} for city in CITIES[:3]]}
    for sky in ("sun", "rain")
)
SPECS = [{"label": "Weight", "value": "heavy"}, {"label": "Height", "value": "tall"}]
OFFERED, SOLD = (
    {
        "/lamp": [
            {"seller": "Ann", "condition": "new", "stock": "in"},
            {"seller": "Bo", "condition": "used", "stock": stock},
            *SPECS,
        ]
    }
    for stock in ("in", "out")
)
RACK, SALE = ({"/rack": [{"title": "Shirt", "size": n, "price": n + cut} for n in range(3)]} for cut in (0.5, 0.25))
FULL, CUT = ({"/list": [RED | {"price": price}, BLUE]} for price in (9.5, 8.5))
LINKS = [{"link": f"http://shop.example/{name}"} for name in ("red", "blue")]
DEAR, CHEAP = ({"/list": [RED | LINKS[0] | {"price": price}, BLUE | LINKS[1]]} for price in (20, 15))
ON, OFF = ({"/show": {"title": "Circus", "status": status, "description": TEXT}} for status in ("on sale", "cancelled"))
POSTED, EDITED = (
    {"/thread": [{"author": "Ann", "text": article(5, words)}, {"author": "Bo", "text": article(6, 60)}]}
    for words in (60, 90)
)
TWO_ON, TWO_OFF = (show | {"/show/print": ON["/show"]} for show in (ON, OFF))


@pytest.mark.parametrize(
    ("own", "days", "news"),
    [
        pytest.param("", (PROMO, PLAIN_OFFER, PROMO, PLAIN_OFFER), (1, 1, 1, 1), id="one item of an API"),
        pytest.param("", (FAIR, FOUL, FAIR, FOUL), (3, 1, 1, 1), id="items in one state"),
        pytest.param("", (SOLD, OFFERED, SOLD, OFFERED), (4, 1, 1, 1), id="items of two kinds"),
        pytest.param("", (RACK, SALE, RACK, SALE), (3, 3, 3, 3), id="items that only numbers tell apart"),
        pytest.param("", (FULL, CUT, {"/list": FULL["/list"][:1]}), (2, 1, 1), id="list shrinks to one item"),
        pytest.param("", (DEAR, CHEAP, DEAR, CHEAP, CHEAP, DEAR), (2, 1, 1, 1, 0, 1), id="items with links"),
        pytest.param("", (POSTED, EDITED, EDITED), (2, 1, 0), id="an answer that grows"),
        pytest.param("permalink", (ON, ON, OFF, OFF, ON), (1, 0, 1, 0, 1), id="page with its own URL"),
        pytest.param("permalink", (TWO_ON, TWO_OFF, TWO_ON), (1, 1, 1), id="page whose print version keeps its state"),
    ],
)
def test_what_changes_back_is_given_again(crawl, a, own, days, news):
    assert tuple(len(crawl("EventSpider", DROP, urls=fill(a, day), own=own).items) for day in days) == news


def test_an_item_that_only_was_not_listed_for_a_day_is_not_given_again(crawl, a):
    ads = [{"title": "Nurse", "description": TEXT, "city": city} for city in CITIES]
    shifts = [
        {"title": "Nurse", "city": city, "shift": shift}
        for city, shift in zip(CITIES, 2 * ("day", "night"), strict=True)
    ]
    variants = [{"title": "Shirt", "size": size, "price": f"{n}.5"} for n, size in enumerate("SML")]
    for rows_ in (QUOTES, ads, SIZES, shifts, [{"title": "Shirt", "brand": "Acme", "price": "1.5"}, *variants]):
        for listed, given in ((rows_, len(rows_)), ([rows_[0], *rows_[2:]], 0), (rows_, 0)):
            items = crawl("EventSpider", DROP, urls=fill(a, {f"/list/{'-'.join(rows_[0])}": listed})).items
            assert len(items) == given


@pytest.mark.parametrize(
    "row",
    [{"name": "Bolt {}", "stock": "{} left"}, *slow({"label": "{}", "hits": "1", "price": "{}.5"}, {"text": "No {}."})],
)
def test_rows_that_move_to_another_page_of_their_list_are_not_given_again(crawl, a, row):
    listed = [{name: value.format(n) for name, value in row.items()} for n in range(9)]
    for lists, given in (((listed[1:3], listed[3:6], listed[6:]), 8), ((listed[:2], listed[2:5], listed[5:]), 1)):
        pages = dict(zip(("/list", "/list?page=2", "/list/page/3"), lists, strict=True))
        assert len(crawl("EventSpider", DROP, urls=fill(a, pages)).items) == given
    pages = {"/other": listed[:3], "/other?page=2": listed[:3]}  # in one run, nothing moves
    assert len(crawl("EventSpider", DROP, urls=fill(a, pages)).items) == 6


def test_items_of_a_list_are_not_given_again_once_a_field_is_known_as_a_counter(crawl, a):
    posts = [{"author": f"member {n}", "post": article(n, 60)} for n in range(8)]
    given = []
    for day in range(4):
        listed = [each | {"likes": 3 * n + day * (n + 1)} for n, each in enumerate(posts)]
        given.append(len(crawl("EventSpider", DROP, urls=fill(a, {"/list": listed})).items))
    assert given == [8, given[1], 0, 0]
    assert 0 < given[1] < 8  # until the second day's items made it known


def test_a_counter_stays_one_for_the_copy_that_outlives_its_original(crawl, a, b):
    given, ads = [], [{"title": f"Piano {n}", "description": article(n)} for n in range(10)]
    for day in range(5):
        counted = [each | {"reads": 100 * (day + 1) + n} for n, each in enumerate(ads)]
        urls = fill(a, {f"/ad/{n}": row for n, row in enumerate(counted)}) + fill(b, {"/copy": counted[0]})
        if day > 1:
            a.pages["/ad/0"] = Page(status=404)
        given.append(len(crawl("EventSpider", DROP, urls=urls, own="url").items))
    assert given == [10, 3, 0, 0, 0]


def test_a_change_at_a_url_is_given_though_another_host_holds_its_text(crawl, a, b):
    shed = {"title": "Garden shed", "description": TEXT, "price": "5"}
    given = []
    for row in ({**shed, "description": article(2, 60)}, *({**shed, "price": price} for price in "66565")):
        urls = fill(a, {"/shed": shed}) + fill(b, {"/shed": row})
        given.append([item["price"] for item in crawl("EventSpider", DROP, urls=urls, own="url").items])
    assert given == [["5", "5"], ["6"], [], ["5"], ["6"], ["5"]]


def test_copies_that_outlive_their_original_are_not_given_in_each_run(crawl, a, b):
    given, (first, second) = [], ({"talk": TEXT, "source": f"paper {n}"} for n in range(2))
    for day in range(6):
        urls = fill(a, {"/talk": first}) + fill(b, {"/talk": second})
        if day > 1:
            a.pages["/talk"] = Page(status=404)
        given.append(len(crawl("EventSpider", DROP, urls=urls, own="url").items))
    assert sum(given) <= 2
    assert given[-2:] == [0, 0]


def test_a_change_is_given_once_by_copies_that_took_the_place_of_a_gone_original(crawl, a):
    talk, other, last = ({"talk": article(n, 60)} for n in range(3))
    quiet = [{"/1": talk, "/2": talk}, {"/2": talk, "/1": talk}]
    days = [{"/old": talk}, *quiet, *quiet, {"/1": other, "/2": other}, {"/1": last, "/2": last}]
    given = [len(crawl("EventSpider", DROP, urls=fill(a, day), own="url").items) for day in days]
    assert given == [1, 0, 0, 0, 0, 1, 1]


def test_a_change_at_the_new_host_of_a_site_is_given_though_its_pages_are_fetched_directly(crawl, a, b):
    given = []
    for day, price in enumerate((5.5, 5.5, 5.5, 6.5)):
        page = fill(b if day else a, {"/lamp": {"title": "Lamp", "description": TEXT, "price": price}})
        given.append(len(crawl("EventSpider", {**DROP, "NEARDUP_SKIP_MIRRORS": False}, urls=page, own="url").items))
    assert given == [1, 0, 0, 1]
