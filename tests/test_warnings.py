"""Warnings of crawls that look wrong: crawls with everything odd or with nothing odd, and limits."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from typing import Any

import pytest
from helpers import text
from site_server import Page, article

from scrapy_neardup import Config, Deduplicator, Document
from scrapy_neardup.crawl import observers

Item = dict[str, Any]
LOGIN = article(0)


def warnings(log: str) -> list[str]:
    return re.findall(r"\[scrapy_neardup\.crawl\.observers\] WARNING: (.*)", log)


def pages(numbers: Iterable[int], host: str = "a.example", title: str = "Report {}") -> list[Item]:
    return [{"url": f"http://{host}/{n}", "title": title.format(n), "text": article(n)} for n in numbers]


def logins(count: int) -> list[Item]:
    return [{"url": f"http://a.example/member/{n}", "title": "Log in", "text": LOGIN} for n in range(count)]


def empty(count: int) -> list[Item]:
    return [{"url": f"http://a.example/empty/{n}", "text": " "} for n in range(count)]


def crawled(crawl, site, items: list[Item], **settings: Any) -> list[str]:
    site.pages["/items"] = Page(json.dumps(items))
    result = crawl("JsonSpider", settings, urls=[f"{site.url}/items"])
    assert result.count("errors") == 0
    return warnings(result.log)


def test_a_crawl_warns_once_of_all_that_looks_wrong(crawl, a):
    copies = pages(range(1, 71), "b.example", "Number {} of all")
    items = [*pages([1]), *empty(60), *pages(range(2, 161)), *logins(60), *copies, *empty(400)]
    settings = {"NEARDUP_FIELDS": ["text", "lead"], "NEARDUP_URL_FIELD": "url", "CONCURRENT_ITEMS": 1}
    textless, missing, crowd, titles = crawled(crawl, a, items, **settings)
    assert textless.startswith("Most items have no text: 19 of 20. ")
    assert missing.startswith("None of 20 items has the field 'lead' (NEARDUP_FIELDS). ")
    assert crowd.startswith("20 of 181 documents of a.example are copies of http://a.example/member/0. ")
    assert "`scrapy neardup explain http://a.example/member/0` lists them" in crowd
    said = "The titles of most duplicates differ from their original's"
    assert re.match(rf"{said}: \d+ of \d+\. For example, 'Number \d+ of all' \(http://b\.example/(\d+)\) was "
                    r"judged a copy of 'Report \1' \(http://a\.example/\1\)\. ", titles)  # fmt: skip


def test_a_usual_crawl_warns_of_nothing(crawl, a):
    copies = pages(range(1, 71), "b.example", "Report {} | The B")
    items = [*pages(range(1, 200)), *empty(70), *logins(10), *copies]
    assert crawled(crawl, a, items, NEARDUP_FIELDS=["lead", "text"], NEARDUP_URL_FIELD="url") == [
        "None of 20 items has the field 'lead' (NEARDUP_FIELDS). Check the name in the setting"
    ]


def test_items_of_an_unknown_type_are_named_once(caplog):
    observer = observers.Observer(Config())
    for _ in range(30):
        observer.note(complex, None, None, None)
    observer.end()
    assert caplog.messages == [f"Items of {complex} pass without a verdict, since itemadapter does not know them"]


def test_a_short_crawl_without_any_text_warns_at_its_end(crawl, a):
    (warning,) = crawled(crawl, a, pages(range(3)), NEARDUP_FIELDS="stroy")
    assert warning.startswith("All items have no text: 3 of 3. ")
    assert crawled(crawl, a, [*pages([1]), *empty(3)]) == []


def test_a_url_field_that_no_item_has(crawl, a):
    items = [{"link": f"http://a.example/{n}", "text": article(n)} for n in range(50)]
    assert crawled(crawl, a, items, NEARDUP_URL_FIELD="link") == []
    missing, homeless = crawled(crawl, a, items, NEARDUP_URL_FIELD="Link")
    assert "'Link' (NEARDUP_URL_FIELD)" in missing
    assert homeless.startswith(f"Most items have no URL of their own: 20 of 20, such as one of {a.url}/items. ")


def test_an_original_that_swallows_much_of_a_host(crawl, a):
    (warning,) = crawled(crawl, a, [*pages(range(1, 9)), *logins(30)], CONCURRENT_ITEMS=1)
    assert warning.startswith("20 of 29 documents of a.example are copies of http://a.example/member/0. ")
    assert crawled(crawl, a, [*pages(range(20, 60)), *logins(20)], CONCURRENT_ITEMS=1) == []


def test_a_field_that_alone_keeps_items_with_one_text_apart(crawl, a):
    items = [{"url": f"http://a.example/{n}", "text": LOGIN, "count": n} for n in range(30)]
    (warning,) = crawled(crawl, a, items, CONCURRENT_ITEMS=1)
    assert re.match(r"1\d of 20 documents repeat an earlier text, and only the field 'count' keeps", warning)
    first, second = re.findall(r"http://a\.example/\d+", warning)
    assert first != second
    assert "NEARDUP_IGNORE_FIELDS" in warning
    assert len(crawled(crawl, a, items, CONCURRENT_ITEMS=1, NEARDUP_IGNORE_FIELDS="count")) == 1  # of one original


def test_a_field_that_alone_keeps_pages_apart_from_their_last_state(crawl, a):
    for day, told in ((1, []), (2, ["count"]), (2, [])):
        items = [
            {"url": f"http://a.example/{n}", "text": f"{article(n)} {day} votes", "count": n + day} for n in range(30)
        ]
        warnings = crawled(crawl, a, items, NEARDUP_REVISIT="drop")
        assert [name for warning in warnings for name in re.findall("only the field '(.*)' keeps", warning)] == told


def test_what_is_counted_is_bounded(caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(observers, "COUNTED", most := 40)
    warnings = observers.Observer(Config())
    with Deduplicator.open() as dedup:
        for n in range(2 * most):
            claim = dedup.claim(Document(f"http://h{n}.example/", text(n, 30), f"Page {n}"))
            claim.commit()
            warnings.note(dict, None, claim.document, claim)
        for n in range(3 * most):
            again = dedup.claim(Document(f"http://one.example/{n}", text(n % most, 30), f"Page {n % most}"))
            assert again.verdict.status == "duplicate"
            warnings.note(dict, None, again.document, again)
            again.commit()
    assert caplog.messages == []
    assert warnings.numbers.cache_info().currsize <= most
    assert next(warnings.numbers("one.example", "")) == 3 * most + 1
