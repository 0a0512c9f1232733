"""Items to documents: the role of each field, and the text, facts and URLs of the record, for every kind of item."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import date, datetime, timedelta, timezone
from decimal import Decimal
from enum import Enum
from ipaddress import IPv4Address
from itertools import zip_longest
from typing import Any
from uuid import UUID

import numpy as np
import pytest
from helpers import text
from item_kinds import kinds

from scrapy_neardup import Deduplicator, Document
from scrapy_neardup.document import Tree
from scrapy_neardup.facts import (
    COUNTING,
    Clock,
    agree,
    are_strongly_equal,
    name_of,
    names_in,
    pack,
    string_fact,
    strong,
)
from scrapy_neardup.items import Fetch, Record, item_document, roles_in_words
from scrapy_neardup.settings import Config
from scrapy_neardup.text.html import parse

BODY, OTHER = text(1, 30), text(2, 30)
URL = "http://a.example/1"


KINDS = kinds("url", "title", "body")


class Size(Enum):
    BIG = "big"


def read(item: Any, fetched: tuple[str, ...] = (), size: int = 0, **settings: Any) -> Any:
    """Return the document of the only item of a page."""
    place = fetched[0] if fetched else ""
    return item_document(item, Config(**settings), Fetch(tuple(fetched), place=place, gives_one=True, body=b"x" * size))


def document_of(item: Any, fetch: Fetch | None = None, **settings: Any) -> Document:
    """Return the document of an item that is to have one."""
    document = item_document(item, Config(**settings), fetch)
    assert document
    return document


def record(item: Any, fetch: Fetch | None = None, **settings: Any) -> Record:
    made = Record.of(item, Config(**settings), fetch)
    assert made
    return made


def role(item: Any, name: str, **settings: Any) -> str | None:
    """Return the role of a field of an item."""
    return record(item, **settings).roles.get(name)


def text_of(item: dict[str, Any], **settings: Any) -> str | None:
    document = read(item, **settings)
    return document.text if document else None


@pytest.mark.parametrize("make", KINDS.values(), ids=KINDS)
def test_every_kind_of_item(make: Callable[..., Any]) -> None:
    document = read(make(url=URL, title="Boats", body=BODY), size=99)
    assert (document.url, document.title, document.text, document.size) == (URL, "Boats", BODY, 99)
    assert read(make(url=URL, title="Boats")) is None
    nested = {"title": "Boot", "body": {"text": BODY, "sku": "1"}}
    assert facts(make(**nested)) == facts(nested) != b""


# Text


@pytest.mark.parametrize("name", ["text", "body", "content", "articleBody", "html", "lead", "zusammenfassung"])
def test_a_string_of_20_words_is_text_under_any_name(name: str) -> None:
    assert text_of({"author": "Ann", name: text(1, 20)}) == text(1, 20)
    assert role({"other": BODY, name: text(1, 19)}, name) == "fact"


@pytest.mark.parametrize("name", ["text", "body", "articleBody", "message", "正文", "comment_text", "paragraphs"])
def test_a_short_string_with_a_usual_name_is_text_where_nothing_else_is(name: str) -> None:
    short = {"author": "Ann of the north harbour", name: "a short text"}
    assert (text_of(short), role(short, name)) == ("a short text", "text")
    assert role({"lead": BODY, name: "a short text"}, name) == "fact"


def test_a_sentence_or_a_line_is_text_where_nothing_else_is() -> None:
    assert text_of({"author": "Ann", "said": "It rains."}) == "It rains."
    assert text_of({"author": "Ann", "line": "nine words " * 5}) == "nine words " * 5
    assert text_of({"author": "Ann", "code": "y" * 50}) is None


def test_all_texts_are_compared_each_once() -> None:
    item = {"lead": BODY, "author": "x" * 49, "rest": OTHER, "again": BODY, "pages": 7, "url": URL, "title": "t" * 99}
    assert text_of({**item, "neardup": OTHER * 2}) == f"{BODY}\n{OTHER}"


def test_a_whole_page_is_no_text_beside_enough_other_text() -> None:
    page = f"<html><body><p>{OTHER}</p></body></html>"
    assert text_of({"html": page, "body": text(1, 120)}) == text(1, 120)
    assert role({"html": page, "body": text(1, 120)}, "html") == "ignored"
    assert text_of({"html": page, "body": BODY}) == f"{OTHER}\n{BODY}"


@pytest.mark.parametrize(
    "link", ["http://a.example/" + "-".join(text(1, 40).split()), "/a/path", "//a.example/x", "mailto:ann@a.example"]
)
def test_a_link_is_never_text(link: str) -> None:
    assert text_of({"content": link, "author": "Ann"}) is None
    assert role({"content": link, "lead": BODY}, "content") == "link"


def test_text_in_nested_values_is_found() -> None:
    assert text_of({"job": {"description": BODY, "place": {"town": "Ulm"}}}) == BODY
    assert text_of({"graph": [{"@type": "Person", "name": "Ann"}, {"articleBody": BODY}]}) == BODY
    assert text_of({"job": KINDS["dataclass"](body=BODY)}) == BODY
    assert text_of({"body": {"text": "nested"}}) == "nested"


def test_named_fields_in_their_order_and_no_others() -> None:
    item = {"body": "not this", "lead": "second", "head": "first"}
    assert text_of(item, fields=["head", "missing", "lead"]) == "first\nsecond"
    assert text_of(item, fields=["missing"]) is None


@pytest.mark.parametrize(
    "value",
    [None, "", "  \n", 5, [], [""], {"text": None}, {}, b"", "<html><body><script>let x</script></body></html>"],
)
def test_item_without_text_is_no_document(value: object) -> None:
    assert read({"url": URL, "body": value}) is None


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        *((each, "one\ntwo") for each in (["one", "two"], ("one", "", "two"), [["one", None, "two"]], [b"one", "two"])),
        *(("Über 鹤".encode(encoding), "Über 鹤") for encoding in ("utf-8", "utf-8-sig")),
    ],
)
def test_values_in_lists_are_joined_and_bytes_decoded(value: object, expected: str) -> None:
    assert text_of({"body": value}) == expected


@pytest.mark.parametrize("value", [[BODY, "two"], (BODY, "", "two"), ["one two three four"] * 9])
def test_paragraphs_in_a_list_are_one_text(value: Sequence[str]) -> None:
    assert text_of({"paragraphs": value, "tags": ["red", "blue"] * 9}) == "\n".join(dict.fromkeys(filter(None, value)))


@pytest.mark.parametrize(
    "start",
    [
        b"%PDF-1.4\n",
        b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR",
        b"GIF89a\x01\x00",
        b"\xff\xd8\xff\xe0\x00\x10JFIF",
        b"PK\x03\x04",
    ],
)
def test_bytes_of_a_file_that_is_no_text_are_none(start: bytes) -> None:
    data = start + b" ".join([b"stream", BODY.encode(), b"endstream"])
    assert item_document({"url": URL, "body": data}, Config()) is None
    assert document_of({"url": URL, "html": data, "summary": OTHER}, fields=("html", "summary")).text == OTHER


@pytest.mark.parametrize(
    "data", [f"<p>\x01{BODY}</p>".encode(), BODY.encode("utf-16"), b"\xef\xbb\xbf" + BODY.encode()]
)
def test_bytes_of_odd_text_are_text(data: bytes) -> None:
    assert document_of({"url": URL, "body": data}).text.split()[-5:] == BODY.split()[-5:]


def test_bytes_of_a_page_that_names_its_encoding() -> None:
    page = f'<html><head><meta charset="gb2312"><title>鹤</title></head><body><p>{"湖上的鹤" * 9}</p></body></html>'
    document = read({"body": page.encode("gb2312")})
    assert (document.title, document.text) == ("鹤", "湖上的鹤" * 9)


KANA = "湖の上の鶴。" * 9
DECLARED = f"<html><head><meta charset=iso-2022-jp></head><body><p>{KANA}</p></body></html>"


@pytest.mark.parametrize(
    ("body", "encoding", "data"),
    [
        ("own", "shift_jis", "own"),
        ("own", "iso-2022-jp", "own"),  # valid UTF-8 too
        ("other", "shift_jis", KANA.encode("shift_jis")),
        ("other", "shift_jis", KANA.encode()),
        ("other", "shift_jis", KANA.encode("utf-16")),  # by its byte order mark
        ("other", "utf-16", DECLARED.encode("iso-2022-jp")),
        ("", None, KANA.encode()),
    ],
)
def test_bytes_are_decoded_as_the_response_or_by_what_they_are(body: str, encoding: str | None, data: Any) -> None:
    own = KANA.encode(encoding or "utf-8")
    fetch = Fetch(body=own if body == "own" else body.encode(), encoding=encoding)
    assert record({"body": [own if data == "own" else data]}, fetch).document().text.strip() == KANA


def test_html_is_read_and_plain_text_is_left() -> None:
    page = f"<html><head><title>Boats</title></head><body><nav>Menu</nav><article><p>{BODY}</p></article></body></html>"
    document = read({"html": page})
    assert (document.title, document.text) == ("Boats", BODY)
    plain = "if a < b and c > d then\n  List<String>"
    assert text_of({"text": plain}) == plain


def test_title_of_the_item_comes_before_that_of_the_page() -> None:
    page = f"<html><head><title>Page</title></head><body><p>{BODY}</p></body></html>"
    assert read({"html": page, "title": ["Item"]}).title == "Item"
    assert read({"html": page, "headline": "Own"}, title_field="headline").title == "Own"
    assert read({"text": BODY}).title == ""


THIN = f"<html><body><div><p>{BODY}</p></div><div id=comments>{'<p>' + text(3, 40) + '</p>'}</div></body></html>"
"""A page of which the comments are left out; they are longer than its text."""


def test_text_of_a_page_that_says_more_is_thin() -> None:
    tree = Tree(THIN, parse(THIN))
    for document in (read({"html": THIN}), item_document({"html": THIN}, Config(), Fetch(tree=tree))):
        assert (document.text, document.thin) == (BODY, True)
    assert read({"body": OTHER, "html": THIN}, fields=["body", "html"]).thin
    enough = {"text": text(1, 120), "html": THIN}
    for item in ({"text": BODY}, {"html": f"<html><body><p>{BODY}</p></body></html>"}, enough):
        assert not read(item).thin


# Titles


@pytest.mark.parametrize("name", ["title", "headline", "Name", "job_title", "pageTitle", "标题", "Título", "제목"])
def test_usual_names_of_titles(name: str) -> None:
    assert read({"author": "Ann", name: "Boats", "lead": BODY}).title == "Boats"
    assert role({name: "Boats", "lead": BODY}, name) == "title"


def test_a_title_is_no_fact_but_a_name_is() -> None:
    assert facts({"title": "Boat", "text": BODY}) == facts({"headline": "Ship", "text": BODY}) == b""
    assert facts({"name": "Boat", "text": BODY}) != facts({"name": "Ship", "text": BODY})


def test_the_title_of_nested_values_is_found() -> None:
    item = {"job": {"title": "Baker", "text": BODY}}
    document = read(item)
    assert (document.title, document.facts, role(item, "job.title")) == ("Baker", b"", "title")


@pytest.mark.parametrize(
    ("item", "path"),
    [
        ({"title": {"rendered": "Baker"}, "content": {"rendered": BODY}}, "title.rendered"),
        ({"headline": {"main": "Baker", "kicker": None}, "body": BODY}, "headline.main"),
        ({"data": {"title": "Baker", "body": {"value": BODY}}, "author": {"name": "Ann"}}, "data.title"),
    ],
)
def test_a_title_above_a_text_or_within_a_title_is_found_and_stays_a_fact(item: dict[str, Any], path: str) -> None:
    found = record(item)
    assert (found.title, found.roles[path], path in found.facts) == ("Baker", "title", True)


@pytest.mark.parametrize(
    ("item", "title"),
    [
        ({"page": {"title": "Jobs", "article": {"headline": "Baker", "body": BODY}}}, "Baker"),  # the nearest one
        ({"title": {"lang": "en", "text": "Baker"}, "body": BODY}, ""),  # which of the two is unknown
        ({"job": {"Name": "Baker", "body": BODY}}, "Baker"),
    ],
)
def test_of_nested_values_the_nearest_clear_title_counts(item: dict[str, Any], title: str) -> None:
    found = record(item)
    assert (found.title, "job.Name" in found.facts) == (title, "job" in item)


# Facts


def facts(item: Any, **settings: Any) -> bytes:
    found: bytes = read(item, **settings).facts
    return found


@pytest.mark.parametrize(
    "value", ["Ulm", 5, 5.5, True, date(2024, 5, 6), timedelta(5), Decimal(5), UUID(int=5), Size.BIG]
)
def test_short_values_are_facts(value: object) -> None:
    assert role({"text": BODY, "some": value}, "some") == "fact"
    assert facts({"text": BODY, "some": value}) == facts({"text": BODY, "some": [value]}) != b""


SAME_FACTS = [
    ({"name": "Boot  Nora", "sku": "N-38"}, {"sku": "n-38", "name": "boot nora\n"}),
    ({"sku": "N-38"}, {"sku": "N 38"}),
    ({"name": "Ｂｏｏｔ"}, {"name": b"boot"}),
    ({"days": "\u200eMo\u00ads – “Fr”\ufeff"}, {"days": "mos - \"fr\""}),
    ({"price": 5}, {"price": 5.0}),
    ({"price": 12.5}, {"price": Decimal("12.50")}),
    ({"price": 100}, {"price": "100"}),
    ({"": 1, "No.": 5}, {"": 2, "No.": 5}),  # as pandas numbers the rows of a table
    ({"day": datetime(2026, 5, 6, 7, 8, 9, tzinfo=timezone.utc)}, {"day": "2026-05-06T07:08:09+00:00"}),
    ({"gtin": ["4006381333931", None]}, {"gtin": 4006381333931}),
    ({"name": "Boot", "sku": " ", "ean": None, "isbn": [], "mpn": {}, "price": float("nan")}, {"name": "Boot"}),
    ({"size": Size.BIG}, {"size": "big"}),
    ({"tags": ["red", "blue"]}, {"tags": ("Blue", "red")}),
    ({"days": {"Mon", "Tue"}}, {"days": ["Tue", "Mon"]}),
    ({"offers": [{"price": 1, "size": 8}, {"price": 2}]}, {"offers": [{"price": 2}, {"size": 8, "price": 1}]}),
    ({"job": {"place": "Ulm", "pay": None}}, {"job": {"place": "ulm"}}),
    ({"job": {"place": "Ulm"}}, {"job": [{"place": "Ulm"}]}),
    ({"map": "http://a.example/map?s=1#x"}, {"map": "https://a.example/map?s=2"}),
    ({"ip": IPv4Address("10.0.0.1")}, {"ip": "10.0.0.1"}),
    ({"name": "Boot", "seen": object()}, {"name": "Boot"}),
]  # fmt: skip


@pytest.mark.parametrize(("first", "second"), SAME_FACTS)
def test_facts_are_the_same_however_a_value_is_written(first: dict[str, Any], second: dict[str, Any]) -> None:
    assert facts({**first, "text": BODY}) == facts({**second, "text": OTHER}) != b""


OTHER_FACTS = [
    ({"name": "Boot Nora"}, {"name": "Boot Nore"}),
    ({"id": 1}, {"id": 2}),
    ({"id": 10**40}, {"id": 10**40 + 1}),
    ({"id": 0}, {"id": 1}),
    ({"is_open": True}, {"is_open": False}),
    ({"product_id": "1"}, {"sku": "1"}),
    ({"gtin": ["1", "2"]}, {"gtin": ["1", "3"]}),
    ({"name": "Boot", "price": 9.99}, {"name": "Boot", "price": 9.89}),
    ({"name": "Boot", "sku": "1"}, {"name": "Boot"}),
    ({"name": "Boot", "color": "red"}, {"name": "Boot", "color": "blue"}),
    ({"date": date(2024, 5, 6)}, {"date": date(2024, 6, 6)}),
    ({"job": {"place": "Ulm"}}, {"job": {"place": "Bonn"}}),
    ({"a": {"place": "Ulm"}}, {"b": {"place": "Ulm"}}),
    tuple({"a": [{"b": [{"c": [{"d": [{"e": {"f": [{"g": {"h": place}}]}}]}]}]}]} for place in ("Ulm", "Bonn")),
    tuple({"body": f"<p>{BODY}</p><img src='/Plan {n}.png'>"} for n in (1, 2)),
    tuple({"body": f'<p>{BODY}</p><IMG src="/get?w=9&amp;id={n}">'} for n in (1, 2)),
    tuple({"body": f"<p>{BODY}</p><a href=/{n}.pdf>Download</a>"} for n in (1, 2)),
    tuple({"hours": [f"Room {room} is open until {end}" for room in range(9)]} for end in (5, 6)),
    ({"offers": [{"price": 1, "size": 8}, {"price": 2}]}, {"offers": [{"price": 2, "size": 8}, {"price": 1}]}),
    ({"file": "http://a.example/1.pdf"}, {"file": "http://a.example/2.pdf"}),
    ({"ip": IPv4Address("10.0.0.1")}, {"ip": IPv4Address("10.0.0.2")}),
    ({f"f{n}": 0 for n in range(60)}, {f"f{n}": n // 59 for n in range(60)}),
]  # fmt: skip


@pytest.mark.parametrize(("first", "second"), OTHER_FACTS)
def test_facts_are_others_where_a_field_says_something_else(first: dict[str, Any], second: dict[str, Any]) -> None:
    assert facts({**first, "description": BODY}) != facts({**second, "description": BODY})


def test_bytes_that_are_no_text_are_a_fact_of_an_item_without_a_long_text() -> None:
    first, second = ({"url": URL, "sku": "M-1", "file": b"%PDF-1.4 " + dish} for dish in (b"soup", b"fish"))
    assert facts(first) != facts(second)
    assert facts({**first, "text": BODY}) == facts({**second, "text": BODY})


def test_pictures_of_a_text_that_is_not_compared_are_no_fact() -> None:
    assert facts({"text": BODY, "body": f"<p>{BODY}</p><img src='/1.png'>"}, fields=("text",)) == b""
    assert facts({"text": f"<p>{' '.join([BODY] * 9)}</p><img src='/1.png'>"}) == b""  # so long a text says enough


@pytest.mark.parametrize("odd", ["<img " * 200_000, "<a href=" + ".pdf" * 200_000, "<img" + " " * 900_000])
def test_odd_tags_take_no_long_time(odd: str) -> None:
    assert document_of({"body": f"<p>{BODY}</p>{odd}"})  # in a moment; a slow expression would take an hour


def test_27_boots_with_one_description_have_27_different_facts() -> None:
    boots = [{"name": "Boot Nora", "sku": f"N-{size}", "price": 79, "description": BODY} for size in range(27)]
    assert len({facts(boot) for boot in boots}) == 27
    assert len({facts({**boot, "url": f"{URL}?{number}"}) for number, boot in enumerate(boots)}) == 27
    assert len({facts(boot, ignore_fields=("sku",)) for boot in boots}) == 1


@pytest.mark.parametrize(
    "item",
    [
        {"url": URL, "text": BODY},
        {"url": URL, "title": "Boot", "neardup": "tag", "html": f"<p>{BODY}</p>"},
        {"text": BODY, "stats": {"views": 7, "click_count": "7"}, "rank": 7, "pageViews": 7, "阅读量": 7},
        {"text": BODY, "Scrape Date": "1 May", "crawl_run_id": "a7", "job": {"dateScraped": "1 May"}},
    ],
)
def test_item_with_nothing_but_text_title_and_url_has_no_facts(item: dict[str, Any]) -> None:
    assert facts(item) == b""
    assert all(facts({**item, name: "1"}) for name in ("crawl_space", "crawler_width", "scraper"))
    assert facts({**item, "sku": "1"}, ignore_fields=("*",)) == b""


def test_url_and_title_under_any_name_and_the_tag_are_no_facts() -> None:
    own = {"url_field": "id", "title_field": "name"}
    assert facts({"id": URL, "name": "Boot", "neardup": "tag", "text": BODY}, **own) == b""


def test_ignored_fields_are_named_by_patterns_nested_ones_with_dots() -> None:
    item = {"text": BODY, "job": {"vacant": 7, "place": "Ulm", "scraped_at": "today"}}
    roles = {"text": "text", "job.vacant": "fact", "job.place": "fact", "job.scraped_at": "ignored"}
    assert record(item).roles == roles
    assert facts(item, ignore_fields=("job.v*", "scraped*")) == facts({"text": BODY, "job": {"place": "Ulm"}})
    assert facts(item, ignore_fields=("job.*", "scraped*")) == b""


def test_path_and_status_of_a_download_are_no_facts_whatever_the_field() -> None:
    def files(path: str, checksum: str, status: str) -> list[dict[str, str]]:
        return [{"url": f"http://a.example/{path}.pdf", "path": path, "checksum": checksum, "status": status}]

    first: dict[str, Any] = {"text": BODY, "papers": files("a", "5d", "downloaded")}
    assert record(first).roles["papers.status"] == "ignored"
    again = {"text": BODY, "papers": [first["papers"][0] | {"path": "b", "status": "uptodate"}]}
    assert facts(first) == facts(again) != facts({"text": BODY, "papers": files("a", "6e", "downloaded")})
    two, later = ([*item["papers"], *files("c", "7f", "cached")] for item in (first, again))
    assert facts({"text": BODY, "papers": two}) == facts({"text": BODY, "papers": later})
    own = {"text": BODY, "papers": {"path": "a", "status": 200}}
    assert facts(own) != facts({"text": BODY, "papers": {"path": "a", "status": 404}})


def test_field_that_names_a_row_is_no_fact() -> None:
    config = Config().ignoring("id")
    assert config.ignore_fields == (*Config().ignore_fields, "id")
    assert config.ignoring(None) == config
    assert facts({"id": 5, "text": BODY}, ignore_fields=config.ignore_fields) == b""


@pytest.mark.parametrize("name", ["sku", "SKU", "gtin13", "ean", "isbn", "product_id", "productId", "offer.mpn"])
def test_numbers_that_are_the_same_on_all_sites_are_strong(name: str) -> None:
    one, same, two = (pack({name: string_fact(name, value, Clock())}) for value in ("n-97", "N97", "n-98"))
    assert strong(one)
    assert (are_strongly_equal(one, same), are_strongly_equal(one, two)) == (True, False)


@pytest.mark.parametrize(("name", "expected"), [("sku", False), ("mpn", False), ("isbn", True), ("gtin13", True)])
def test_separators_between_figures_count_unless_only_figures_do(name: str, expected: bool) -> None:
    one, other = (pack({name: string_fact(name, value, Clock())}) for value in ("1-11", "11 1"))
    assert are_strongly_equal(one, other) is expected


@pytest.mark.parametrize("name", ["id", "name", "price", "number", "risk"])
def test_other_facts_are_not_strong(name: str) -> None:
    one, two = (facts({name: value, "text": BODY}) for value in ("1", "2"))
    assert not strong(one)
    assert are_strongly_equal(one, two) is None


@pytest.mark.parametrize(
    ("one", "two", "is_one_fact"),
    [
        ("http://a.example/map?session=1", "https://a.example/map?session=2", True),
        ("http://a.example/map#top", "http://a.example/map#end", True),
        ("http://a.example/get?sid=1&t=7", "http://a.example/get?sid=2&t=8", True),
        ("http://a.example/get;JSESSIONID=1?id=7", "http://a.example/get?id=7", True),
        ("http://a.example/get;jsessionid=1/7", "http://a.example/get;jsessionid=1/8", False),
        ("http://a.example/get?id=1", "http://a.example/get?id=2", False),
        ("http://a.example/get?id=612345678901", "http://a.example/get?id=612345678902", False),
        ("http://a.example/get?event=1", "http://a.example/get?event=2", False),
        ("http://a.example/get?id=1a-b", "http://a.example/get?id=1a-c", False),
        ("http://a.example/get?date=2026-11-01", "http://a.example/get?date=2026-11-02", False),
        ("http://a.example/get?file=may-1.pdf&t=7", "http://a.example/get?file=may-2.pdf&t=7", False),
        ("http://a.example/get?name=may-1.pdf&t=7", "http://a.example/get?name=may-2.pdf&t=7", False),
        ("http://a.example/get?guid=1a-b", "http://a.example/get?guid=1a-c", False),
        ("http://a.example/get?nid=1&sid=1", "http://a.example/get?nid=2&sid=1", False),
        ("http://a.example/get?product=red-boot", "http://a.example/get?product=blue-boot", False),
        ("http://a.example/watch?v=abcdefghij1", "http://a.example/watch?v=abcdefghij2", False),
        ("http://a.example/style.css?v=12", "http://a.example/style.css?v=13", True),
        ("http://a.example/#/rooms/1", "http://a.example/#/rooms/2", False),  # pages of an app
        ("http://a.example/#!rooms/1", "http://a.example/#!rooms/2", False),
        ("http://a.example/map/1", "http://a.example/map/2", False),
    ],
)
def test_a_link_is_a_fact_as_far_as_it_names_a_page(one: str, two: str, is_one_fact: bool) -> None:
    assert (facts({"text": BODY, "map": one}) == facts({"text": BODY, "map": two})) is is_one_fact


@pytest.mark.parametrize(
    "item",
    [
        {"price": 707}, {"precio": 707}, {"Miete": "707"}, {"价格": 707}, {"price": {"value": 707}}, {"a": {"fare": 7}},
        {"qty": 7}, {"available": 7}, {"seats_left": 7}, {"raised": 376},
        {"was": "$707"}, {"was": "707 EUR"}, {"was": "707元/月"}, {"was": "707 kr"}, {"pris": 707}, {"was": "EUR707"},
        {"monthly_rent": 7}, {"salario": 7}, {"at": "18:30"}, {"score": "2:1"}, {"part": "45 %"},
        {"availability": "https://schema.org/InStock"}, {"m": "✓"},
        {"due": "14 March 2026"}, {"due": "12 мая 2026 г."}, {"due": "May 3"}, {"due": "3月14日"},
    ],
)  # fmt: skip
def test_a_price_a_date_or_a_sign_is_no_counter(item: dict[str, Any]) -> None:
    assert names_in(facts({**item, "text": BODY}), COUNTING) == frozenset()
    for other in (
        {"level": 7},
        {"current_viewers": 7},
        {"days_left": 7},
        {"feedback": {"count": 7}},
        {"评价数": 7},
        {"m": "회원 120명"},
        {"m": "-"},
        {"m": "1998 views"},
        {"m": "9 may like it"},
        {"bids": 7},
        {"job_id": 7},
    ):
        assert len(names_in(facts({**item, **other, "text": BODY}), COUNTING)) == 1


NOW = datetime(2024, 5, 6, 10, 30, tzinfo=timezone.utc)
CRAWL = Fetch((URL,), place=URL, gives_one=True, clock=Clock(NOW.timestamp() - 3600, NOW.timestamp()))


@pytest.mark.parametrize(
    ("other", "facts"),
    [
        *((now, 1) for now in (
            NOW, NOW.replace(tzinfo=None), NOW.isoformat(), "2024-05-06 10:29:59", "2024-05-06T12:30:00+02:00",
            "2024-05-06T10:00:00.123456Z", "Mon, 06 May 2024 10:10:00 GMT", NOW.timestamp(), int(NOW.timestamp()),
            f"{NOW.timestamp():.0f}", int(NOW.timestamp() * 1000), "2024/05/06 10:29", "2024年05月06日 10:29:59",
            "6 May 2024 10:29", "Mon May  6 10:29:59 2024", "06/05/2024 10:29:59", "06.05.2024 10:29",
            "6.5.2024, 10:29:59", "05/06/2024, 10:29:59", "5/6/2024, 10:29:59 AM", "2024年5月6日10时29分",
            "20240506102959", "20240506_102959", "2024-05-06-10-29-59", "6-May-2024 10:29", f"{NOW.timestamp() - 0.5}",
        )),
        *((then, 2) for then in (
            "2024-05-06", date(2024, 5, 6), "2024-05-05T10:30:00Z", "2024-05-06T09:25:00Z", NOW.replace(minute=35),
            NOW.replace(hour=13), NOW.timestamp() - 86400, 7, "05/06/2024 10:29 PM", "20240506",
            "05/06/2024 10:29", "202405061029", "2024-05-06 10-29",  # of an event, an order, opening hours
        )),
    ],
)  # fmt: skip
def test_the_time_of_the_crawl_is_one_fact_however_often_it_changes(other: object, facts: int) -> None:
    assert len({document_of({"text": BODY, "made": made}, CRAWL).facts for made in (other, NOW)}) == facts


def test_roles_are_said_in_words() -> None:
    item = {"url": URL, "title": "Boots", "lead": BODY, "rest": OTHER, "price": 5, "file": "/1.pdf", "spider": "s"}
    assert roles_in_words(record({**item, "job": {"place": "Ulm"}}).roles) == (
        "text from lead, rest; title title; own URL url; facts price, job.place; links file; ignored spider"
    )


# Records without text


@pytest.mark.parametrize(
    ("item", "is_document"),
    [
        ({"url": URL, "title": "Boots", "price": 5}, True),
        ({"url": URL, "place": "Ulm", "price": 5}, True),
        ({"url": URL, "sku": "5"}, True),
        ({"url": URL, "title": "Boots"}, False),
        ({"url": URL, "price": 5}, False),
        ({"title": "Boots", "price": 5}, False),
    ],
)
def test_a_record_without_text_is_a_document_if_it_says_two_things_at_a_url(
    item: dict[str, Any], is_document: bool
) -> None:
    document = read(item)
    assert bool(document) is is_document
    assert not document or (document.text, document.url) == ("", URL)


@pytest.mark.parametrize("no_page", ["javascript:void(0)", "mailto:a@a.example", "about:blank", "http://"])
def test_what_leads_to_no_page_is_no_url_of_the_item(no_page: str) -> None:
    assert document_of({"url": no_page, "text": BODY}, CRAWL).url == URL


# Several items of a page

SEVERAL = Fetch((URL,), place=URL)


def statuses_of(items: list[dict[str, Any]], *pages: str) -> list[str]:
    """Claim items in order, and return the status of each. They are rows of a feed, or some of those of these pages."""
    statuses = []
    with Deduplicator.open() as dedup:
        for item, page in zip_longest(items, pages):
            fetch = Fetch((page,), place=page) if page else None
            claim = dedup.claim(document_of({"title": "Flat", "text": text(1), **item}, fetch))
            claim.commit()
            statuses.append(claim.verdict.status)
    return statuses


def test_items_of_one_page_are_copies_only_if_their_texts_and_titles_are_equal() -> None:
    ads = [("Nurse", BODY), ("Nurse", f"{BODY} Ulm."), ("Clerk", BODY), ("Nurse", BODY)]
    statuses = statuses_of([{"title": title, "text": body} for title, body in ads], *[URL] * 4)
    assert statuses[:3] == ["unique"] * 3
    assert statuses[3] != "unique"


def test_offers_that_one_page_lists_are_told_apart_on_any_host() -> None:
    offers = [
        {"url": f"http://{shop}.example/1", "price": price} for shop, price in zip("abcd", (5, 5, 5, 6), strict=True)
    ]
    assert statuses_of(offers, URL, URL, f"{URL}?2", URL) == ["unique", "duplicate", "duplicate", "unique"]


def test_an_item_that_its_page_lists_twice_is_a_revisit() -> None:
    items = [{"url": f"{URL}/1", "text": f"{BODY} {views}"} for views in (1, 1, 2)]
    assert statuses_of(items, *[URL] * 3) == ["unique", "revisit", "revisit"]


def at(host: str, page: object, **fields: Any) -> dict[str, Any]:
    """Return an item with the URL of a page on a host."""
    return {"url": f"http://{host}.example/{page}", **fields}


def flat(host: str, unit: int, rent: int) -> dict[str, Any]:
    return at(host, unit, unit=unit, rent=rent)


NEW, COPY = "unique", "duplicate"
ADS = [("b", "Truro"), ("a", "Leeds"), ("a", "York"), ("a", "Bath"), ("a", "Leeds"), ("c", "York"), ("c", "Ely")]
PLACES = [("a", "Ulm", 1), ("a", "Ulm", 2), ("a", "Bonn", 1), ("b", "Ulm", 3), ("b", "Ulm", 2)]
JOBS = [("a", "Ulm"), ("a", "Bonn"), ("b", "Bonn"), ("b", "Jena")]
FLATS = [flat(host, unit, 900 + unit) for host in "ab" for unit in range(4)]


@pytest.mark.parametrize(
    ("items", "expected"),
    [
        ([at(host, city, city=city) for host, city in ADS], [NEW, COPY, NEW, NEW, NEW, COPY, NEW]),
        ([*FLATS, flat("b", 2, 850)], [NEW] * 4 + [COPY] * 4 + [NEW]),
        ([at(host, f"{city}{n}", city=city, unit=n) for host, city, n in PLACES], [NEW] * 4 + [COPY]),
        ([at(host, "jobs", city=city) for host, city in JOBS], [NEW, NEW, COPY, NEW]),
        ([at(host, 1, rent=rent) for rent in (900, 850) for host in "ab"], [NEW, COPY, NEW, COPY]),
    ],
    ids=[
        "facts tell items of a host apart that repeat one of another host",
        "records that differ only in numbers are found on another host by these",
        "numbers tell records apart that agree in words",
        "records with one URL are told apart on another host too",
        "an item with the facts that its copy has now is the original",
    ],
)
def test_items_of_two_hosts_with_one_text(items: list[dict[str, Any]], expected: list[str]) -> None:
    assert statuses_of(items) == expected


@pytest.mark.parametrize("texts", [("Fitch: A+", "Fitch: A-"), ("Minus: -5", "Minus: 5"), ("Great :-)", "Great :-(")])
def test_signs_in_a_short_text_of_a_record_count(texts: tuple[str, str]) -> None:
    items = [{"url": f"{URL}{number}", "text": each, "town": "Ulm"} for number, each in enumerate((*texts, texts[0]))]
    assert statuses_of(items) == ["unique", "unique", "duplicate"]
    assert statuses_of([{**items[0], "text": each} for each in ("It's fine.\n", "It’s fine")]) == ["unique", "revisit"]


def test_several_items_of_a_page_are_named_by_what_they_say() -> None:
    made = [document_of({"date": day, "place": "Ulm", "text": BODY}, SEVERAL) for day in ("5 May", "6 May")]
    assert [each.label for each in made] == ["date 5 May, place Ulm", "date 6 May, place Ulm"]
    listed = {"days": [date(2026, 5, 6), "later"], "sizes": [Decimal("1.50"), 2], "codes": (10**5000, 2), "text": BODY}
    assert document_of(listed, SEVERAL).label.startswith("days 2026-05-06, sizes 1.50, codes 0x")
    bare = document_of({"text": BODY}, SEVERAL)
    assert bare.label
    assert BODY.startswith(bare.label)
    assert (bare.is_one_of_several, bare.has_own_url) == (True, False)


def test_the_only_item_of_a_page_needs_no_name() -> None:
    for item in ({"date": "5 May", "text": BODY}, {"date": "5 May", "text": BODY, "link": URL}):
        document = read(item, fetched=(URL,))
        assert (document.url, document.label) == (URL, "")
        assert (document.is_one_of_several, document.has_own_url) == (False, True)


def test_an_answer_below_the_text_that_it_quotes_is_kept() -> None:
    quoted = text(1, 60)
    posts = [("Leak", quoted), *(("Re: Leak", f"{quoted}\n{text(seed, 14)}") for seed in (3, 4))]
    with Deduplicator.open() as dedup:
        for number, (title, body) in enumerate(posts):
            document = document_of({"url": f"{URL}#{number}", "title": title, "text": body})
            assert dedup.claim(document).verdict.status == "unique"
        again = document_of({"url": f"{URL}#9", "title": "Re: Leak", "text": posts[1][1]})
        assert dedup.claim(again).verdict.status != "unique"


def test_a_text_that_comes_back_at_a_fragment_is_a_change() -> None:
    with Deduplicator.open(revisit="drop") as dedup:
        for body, changed in ((text(1, 60), False), (text(2, 60), False), (text(1, 60), True)):
            document = document_of({"url": f"{URL}#top", "text": body})
            (claim := dedup.claim(document)).commit()
            assert claim.verdict.changed == changed


# URLs


SHORT, OLD = "http://short.example/x", "http://a.example/old"


@pytest.mark.parametrize(
    ("named", "fetched", "expected"),
    [
        # An item without URL has those of its fetch.
        (None, [URL], (URL, ())),
        (None, [URL, OLD, SHORT], (URL, (OLD, SHORT))),
        ("", [URL], (URL, ())),
        (None, [], (None, ())),
        # The URL of an item is first among those of its fetch.
        (SHORT, [URL, SHORT], (SHORT, (URL,))),
        (URL, [URL], (URL, ())),
        ("https://a.example/1#top", [URL], ("https://a.example/1#top", (URL,))),
        # On a list page, it is the only one.
        (URL, ["http://a.example/list"], (URL, ())),
        ([URL], ["http://a.example/list"], (URL, ())),
        # It may be relative.
        ("../2?p=1", ["http://a.example/dir/list/"], ("http://a.example/dir/2?p=1", ())),
        ("/1", [URL, SHORT], (URL, (SHORT,))),
        # What is no text is none.
        *((value, [URL], (URL, ())) for value in (5, {"href": URL}, [], "  ")),
    ],
)
@pytest.mark.parametrize("field", ["url", "link"])
def test_urls_of_an_item(field: str, named: object, fetched: list[str], expected: tuple[str | None, Any]) -> None:
    document = read({"body": BODY, field: named}, fetched=tuple(fetched), url_field=field)
    assert (document.url, document.aliases) == expected


@pytest.mark.parametrize("name", ["lien", "source", "page_address"])
def test_the_own_url_is_found_by_its_value_under_any_name(name: str) -> None:
    found = record({"body": BODY, name: f"{URL}#top", "link": "/2"}, SEVERAL)
    assert (found.url, found.roles[name], found.roles["link"]) == (f"{URL}#top", "own URL", "link")


def test_the_page_and_its_canonical_url_are_no_facts() -> None:
    item = {"url": URL, "body": BODY, "path": "/1", "seen_at": URL, "same_as": "http://a.example/news/1"}
    fetch = CRAWL._replace(claimed=("http://a.example/news/1",))
    assert document_of(item, fetch).facts == b""
    assert document_of(item, fetch._replace(gives_one=False)).facts != b""  # of a list page


@pytest.mark.parametrize("name", ["url", "link", "href", "permalink", "detail_url"])
def test_among_several_items_a_link_with_a_usual_name_to_the_site_is_the_own_url(name: str) -> None:
    assert record({"body": BODY, name: "/2"}, SEVERAL).url == "http://a.example/2"
    assert record({"body": BODY, name: "http://www.a.example/2"}, SEVERAL).url == "http://www.a.example/2"


def test_other_links_are_no_own_urls() -> None:
    assert record({"body": BODY, "link": "http://b.example/2"}, SEVERAL).url == ""
    assert record({"body": BODY, "file": "/2.pdf"}, SEVERAL).url == ""
    assert record({"body": BODY, "link": "/2"}, SEVERAL._replace(gives_one=True)).url == ""


def test_a_row_of_a_feed_has_the_url_that_it_names() -> None:
    for item in ({"url": URL, "text": BODY}, {"link": URL, "text": BODY}, {"permalink": URL, "text": BODY}):
        document = document_of(item)
        assert (document.url, document.has_own_url, document.is_one_of_several) == (URL, True, False)


WHOLE = "<html><body><div class=story><p>Some text that is long enough to be one.</p></div></body></html>"


@pytest.mark.parametrize(
    ("item", "is_of_page"),
    [
        ({"text": "text", "url": "http://a.example/?b=1&a=2#top"}, True),
        ({"text": "text"}, True),
        ({"text": "text", "url": "http://b.example/"}, False),
    ],
)
def test_layout_of_the_response_is_that_of_items_with_its_url(item: dict[str, str], is_of_page: bool) -> None:
    tree = Tree("", parse("<p class=lead>"))
    fetch = Fetch(("http://a.example/?a=2&b=1",), tree=tree, claimed=("http://c.example/",))
    made = document_of(item, fetch)
    assert (made.layout, bool(made.claimed)) == (tree.layout if is_of_page else 0, is_of_page)
    assert tree.layout


def test_a_field_may_hold_the_whole_page_where_the_response_is_no_html() -> None:
    assert document_of({"html": WHOLE}, Fetch(("http://a.example/api",))).layout


def test_odd_values_and_names_harm_nothing() -> None:
    circle: dict[str, Any] = {}
    circle["itself"] = circle
    odd = {1: "a number as a name", "circle": circle, "huge": 10**5000, "lone": "\udc80", "place": "//[not a host"}
    document = document_of({"url": URL, "text": BODY, **odd})
    assert (document.text, set(document.fact_names)) == (BODY, {"1", "huge", "lone", "place"})


def facts_of(**fields: Any) -> bytes:
    return document_of({"url": URL, "text": BODY, **fields}).facts


def test_no_value_of_a_list_is_lost() -> None:
    assert facts_of(sizes=[2, 2, 3]) != facts_of(sizes=[2, 3, 3])
    assert facts_of(title=["Ferries", "Part 1"]) != facts_of(title=["Ferries", "Part 2"])
    assert facts_of(seats={1, 2, "x"}) == facts_of(seats=[2, "x", 1])


def test_what_only_fills_a_field_is_no_strong_fact() -> None:
    for value in ("N/A", "-", "0", 0):
        assert not strong(facts_of(sku=value))
    assert strong(facts_of(sku="L-0", **{f"field{n}": n for n in range(50)}))


def test_a_counter_that_becomes_words_counts_again() -> None:
    one, two, sold = (facts_of(left=value) for value in ("1 left", "2 left", "sold out"))
    counters = {name_of("left")}
    assert agree(one, two, counters)
    assert not agree(one, sold, counters)


def test_numbers_of_numpy_are_facts_as_those_of_python_are() -> None:
    assert facts_of(time=np.timedelta64(3, "D")) != facts_of(time=np.timedelta64(5, "D"))
    assert facts_of(size=np.int64(3)) == facts_of(size=3)
