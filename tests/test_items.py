"""Items to documents: which text is compared and which URLs it is known by, for every kind of item."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import attrs
import pytest
import scrapy
from helpers import text
from pydantic import BaseModel

from scrapy_neardup.document import Tree
from scrapy_neardup.items import Fetch, item_document
from scrapy_neardup.settings import Config
from scrapy_neardup.text.html import parse

BODY, OTHER = text(1, 30), text(2, 30)
URL = "http://a.example/1"


class ScrapyItem(scrapy.Item):
    url = scrapy.Field()
    title = scrapy.Field()
    body = scrapy.Field()


@dataclass
class DataclassItem:
    url: str = ""
    title: str = ""
    body: Any = None


@attrs.define
class AttrsItem:
    url: str = ""
    title: str = ""
    body: Any = None


class PydanticItem(BaseModel):
    url: str = ""
    title: str = ""
    body: Any = None


def read(item: Any, fetched: tuple[str, ...] = (), size: int = 0, **settings: Any) -> Any:
    return item_document(item, Config(**settings), Fetch(tuple(fetched), size=size))


def text_of(item: dict[str, Any], **settings: Any) -> str | None:
    document = read(item, **settings)
    return document.text if document else None


@pytest.mark.parametrize("make", [dict, ScrapyItem, DataclassItem, AttrsItem, PydanticItem])
def test_every_kind_of_item(make: Callable[..., Any]) -> None:
    document = read(make(url=URL, title="Boats", body=BODY), size=99)
    assert (document.url, document.title, document.text, document.size) == (URL, "Boats", BODY, 99)
    assert read(make(url=URL, title="Boats")) is None


# Text


@pytest.mark.parametrize("name", ["text", "body", "content", "articleBody", "html"])
def test_usual_names(name: str) -> None:
    assert text_of({"author": OTHER, name: "a short text"}) == "a short text"


def test_first_usual_name_with_text_wins() -> None:
    assert text_of({"html": OTHER, "content": OTHER, "body": BODY, "text": "  "}) == BODY


def test_all_long_strings_where_no_name_is_usual() -> None:
    item = {"lead": BODY, "author": "x" * 49, "rest": OTHER, "pages": 7, "url": URL + "x" * 99, "title": "t" * 99}
    assert text_of({**item, "neardup": "n" * 99}) == f"{BODY}\n{OTHER}"
    assert text_of({"lead": "y" * 50}) == "y" * 50


def test_named_fields_in_their_order_and_no_others() -> None:
    item = {"body": "not this", "lead": "second", "head": "first"}
    assert text_of(item, fields=["head", "missing", "lead"]) == "first\nsecond"
    assert text_of(item, fields=["missing"]) is None


@pytest.mark.parametrize(
    "value",
    [None, "", "  \n", 5, [], [""], {"text": "nested"}, b"", "<html><body><script>let x</script></body></html>"],
)
def test_item_without_text_is_no_document(value: object) -> None:
    assert read({"url": URL, "body": value}) is None


@pytest.mark.parametrize("value", [["one", "two"], ("one", "", "two"), [["one"], [None, 5, "two"]], [b"one", "two"]])
def test_values_in_lists_are_joined(value: object) -> None:
    assert text_of({"body": value}) == "one\ntwo"


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig"])
def test_bytes_are_decoded(encoding: str) -> None:
    assert text_of({"body": "Über 鹤".encode(encoding)}) == "Über 鹤"


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
    document = item_document({"url": URL, "html": data, "summary": OTHER}, Config(fields=("html", "summary")))
    assert document
    assert document.text == OTHER


@pytest.mark.parametrize(
    "data", [f"<p>\x01{BODY}</p>".encode(), BODY.encode("utf-16"), b"\xef\xbb\xbf" + BODY.encode()]
)
def test_bytes_of_odd_text_are_text(data: bytes) -> None:
    document = item_document({"url": URL, "body": data}, Config())
    assert document
    assert document.text.split()[-5:] == BODY.split()[-5:]


def test_bytes_of_a_page_that_names_its_encoding() -> None:
    page = f'<html><head><meta charset="gb2312"><title>鹤</title></head><body><p>{"湖上的鹤" * 9}</p></body></html>'
    document = read({"body": page.encode("gb2312")})
    assert (document.title, document.text) == ("鹤", "湖上的鹤" * 9)


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


def test_extractor_of_the_settings_reads_html_only() -> None:
    page = f"<html><head><title>Boats</title></head><body><p>{BODY}</p></body></html>"
    document = read({"html": page}, extractor=lambda html: f"{len(html)} characters")
    assert (document.title, document.text) == ("Boats", f"{len(page)} characters")
    assert text_of({"text": BODY}, extractor=lambda html: "") == BODY


@pytest.mark.parametrize("nothing", [None, ""])
def test_item_whose_extractor_finds_nothing_has_no_text(nothing: str | None) -> None:
    assert read({"html": f"<html><body><p>{BODY}</p></body></html>"}, extractor=lambda html: nothing) is None


THIN = f"<html><body><div><p>{BODY}</p></div><div id=comments>{'<p>' + text(3, 40) + '</p>'}</div></body></html>"
"""A page of which the comments are left out; they are longer than its text."""


def test_text_of_a_page_that_says_more_is_thin() -> None:
    tree = Tree(THIN, parse(THIN), 0)
    for document in (read({"html": THIN}), item_document({"html": THIN}, Config(), Fetch(tree=tree))):
        assert (document.text, document.thin) == (BODY, True)
    assert read({"body": OTHER, "html": THIN}, fields=["body", "html"]).thin
    for item in ({"text": BODY}, {"html": f"<html><body><p>{BODY}</p></body></html>"}, {"text": BODY, "html": THIN}):
        assert not read(item).thin


# Identity


def identity(item: Any, **settings: Any) -> int:
    found: int = read(item, **settings).identity
    return found


SAME_IDENTITY = [
    ({"name": "Boot  Nora", "sku": "N-38"}, {"sku": "n-38", "name": "boot nora\n"}),
    ({"name": "Ｂｏｏｔ"}, {"name": b"boot"}),
    ({"price": 5}, {"price": 5.0}),
    ({"price": 12.5}, {"price": Decimal("12.50")}),
    ({"price": 100}, {"price": "100"}),
    ({"gtin": ["4006381333931", None]}, {"gtin": 4006381333931}),
    ({"name": "Boot", "sku": " ", "ean": None, "isbn": [], "mpn": True, "price": float("nan")}, {"name": "Boot"}),
    ({"name": "Boot", "color": "red"}, {"name": "Boot", "color": "blue"}),
]


@pytest.mark.parametrize(("first", "second"), SAME_IDENTITY)
def test_identity_is_the_same_however_a_value_is_written(first: dict[str, Any], second: dict[str, Any]) -> None:
    assert identity({**first, "text": BODY}) == identity({**second, "text": OTHER}) != 0


OTHER_IDENTITY = [
    ({"name": "Boot Nora"}, {"name": "Boot Nore"}),
    ({"id": 1}, {"id": 2}),
    ({"id": 10**40}, {"id": 10**40 + 1}),
    ({"id": 0}, {"id": 1}),
    ({"product_id": "1"}, {"sku": "1"}),
    ({"gtin": ["1", "2"]}, {"gtin": ["1", "3"]}),
    ({"name": "Boot", "price": 9.99}, {"name": "Boot", "price": 9.89}),
    ({"name": "Boot", "sku": "1"}, {"name": "Boot"}),
]


@pytest.mark.parametrize(("first", "second"), OTHER_IDENTITY)
def test_identity_is_another_where_a_field_says_something_else(first: dict[str, Any], second: dict[str, Any]) -> None:
    assert identity({**first, "description": BODY}) != identity({**second, "description": BODY})


def test_27_boots_with_one_description_have_27_identities() -> None:
    boots = [{"name": "Boot Nora", "sku": f"N-{size}", "price": 79, "description": BODY} for size in range(27)]
    assert len({identity(boot) for boot in boots}) == 27
    assert len({identity({**boot, "url": f"{URL}?{number}"}) for number, boot in enumerate(boots)}) == 27
    assert {identity(boot, identity_fields=["price"]) for boot in boots} - {0}
    assert len({identity(boot, identity_fields=["price"]) for boot in boots}) == 1


@pytest.mark.parametrize(
    "item", [{"url": URL, "text": BODY}, {"url": URL, "title": "Boot", "neardup": "tag", "html": f"<p>{BODY}</p>"}]
)
def test_item_without_such_fields_has_no_identity(item: dict[str, Any]) -> None:
    assert identity(item) == 0
    assert identity({**item, "sku": "1"}, identity_fields=()) == 0


def test_url_title_and_tag_are_no_identity_under_any_name() -> None:
    own = {"url_field": "id", "title_field": "name", "tag_field": "price"}
    assert identity({"id": URL, "name": "Boot", "price": "tag", "text": BODY}, **own) == 0


def test_field_that_names_a_row_is_no_identity() -> None:
    config = Config().without_identity("id")
    assert "id" not in config.identity_fields
    assert set(config.identity_fields) | {"id"} == set(Config().identity_fields)
    assert config.without_identity(None) == config


@pytest.mark.parametrize("make", [ScrapyItem, DataclassItem, AttrsItem, PydanticItem])
def test_identity_of_every_kind_of_item(make: Callable[..., Any]) -> None:
    fields = {"title": "Boot", "body": BODY}
    assert identity(make(**fields), identity_fields=["body"]) == identity(fields, identity_fields=["body"]) != 0


# URLs


def urls(item_url: object, *fetched: str, **settings: Any) -> tuple[str | None, tuple[str, ...]]:
    item = {"body": BODY} if item_url is None else {"body": BODY, settings.get("url_field", "url"): item_url}
    document = read(item, fetched=fetched, **settings)
    return document.url, document.aliases


def test_item_without_url_gets_that_of_its_fetch() -> None:
    assert urls(None, URL) == (URL, ())
    assert urls(None, URL, "http://a.example/old", "http://short.example/x") == (
        URL,
        ("http://a.example/old", "http://short.example/x"),
    )
    assert urls("", URL) == (URL, ())
    assert urls(None) == (None, ())


def test_url_of_the_item_is_first_among_those_of_the_fetch() -> None:
    assert urls("http://short.example/x", URL, "http://short.example/x") == ("http://short.example/x", (URL,))
    assert urls(URL, URL) == (URL, ())
    assert urls("https://a.example/1#top", URL) == ("https://a.example/1#top", (URL,))


def test_item_of_a_list_page_has_its_own_url_only() -> None:
    assert urls(URL, "http://a.example/list") == (URL, ())


def test_relative_url_is_of_the_page() -> None:
    assert urls("../2?p=1", "http://a.example/dir/list/") == ("http://a.example/dir/2?p=1", ())
    assert urls("/1", URL, "http://short.example/x") == (URL, ("http://short.example/x",))


def test_url_in_another_field_or_a_list() -> None:
    assert urls(URL, "http://a.example/list", url_field="link") == (URL, ())
    assert urls([URL, "http://a.example/2"]) == (URL, ())


@pytest.mark.parametrize("value", [5, None, {"href": URL}, [], "  "])
def test_url_that_is_no_text_is_none(value: object) -> None:
    document = read({"body": BODY, "url": value}, fetched=(URL,))
    assert document.url == URL


WHOLE = "<html><body><div class=story><p>Some text that is long enough to be one.</p></div></body></html>"


@pytest.mark.parametrize(
    ("item", "layout"),
    [
        ({"text": "text", "url": "http://a.example/?b=1&a=2#top"}, 7),
        ({"text": "text"}, 7),
        ({"text": "text", "url": "http://b.example/"}, 0),
    ],
)
def test_layout_of_the_response_is_that_of_items_with_its_url(item: dict[str, str], layout: int) -> None:
    fetch = Fetch(("http://a.example/?a=2&b=1",), tree=Tree("", parse("<p>"), 7), claimed=("http://c.example/",))
    made = item_document(item, Config(), fetch)
    assert made is not None
    assert (made.layout, bool(made.claimed)) == (layout, bool(layout))


def test_a_field_may_hold_the_whole_page_where_the_response_is_no_html() -> None:
    made = item_document({"html": WHOLE}, Config(), Fetch(("http://a.example/api",)))
    assert made is not None
    assert made.layout
