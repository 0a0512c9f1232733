"""The feed of dropped items, from real crawls. It can be read like any other feed."""

from __future__ import annotations

import ast
import csv
import json
import re
from pathlib import Path
from typing import Any

import pytest
from site_server import Page, article, html, mirror
from tiers import slow

from scrapy_neardup.verdict import Verdict

TAG = {"url", *Verdict("unique").tag()}


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


@pytest.mark.parametrize("kind", ["dict", *slow("item", "dataclass", "attrs", "pydantic")])
def test_dropped_items_of_every_kind_are_written_with_their_evidence(crawl, a, b, tmp_path, kind):
    settings = {"NEARDUP_DROPPED": str(tmp_path / "%(name)s-dropped.jsonl")}
    result = crawl("OneAfterAnother", settings, urls=mirror(a, b, 2), kind=kind)
    rows = lines(tmp_path / "list-dropped.jsonl")
    assert result.urls == [f"{a.url}/{n}.html" for n in range(2)]
    assert [row["url"] for row in rows] == [f"{b.url}/{n}.html" for n in range(2)]
    assert [row["text"] for row in rows] == [item["text"] for item in result.items]
    tag = rows[0]["neardup"]
    assert set(tag) == TAG
    assert (tag["url"], tag["duplicate_of"]) == (f"{b.url}/0.html", f"{a.url}/0.html")
    assert (tag["status"], tag["detector"], tag["resemblance"]) == ("duplicate", "exact", 1.0)
    assert "never retrieved" not in result.log  # no task of the feed failed


def test_a_table_has_a_column_for_the_evidence_and_all_fields(crawl, a, b, tmp_path):
    settings = {"NEARDUP_DROPPED": str(tmp_path / "dropped.csv"), "FEED_EXPORT_FIELDS": ["title"]}
    crawl("OneAfterAnother", settings, urls=mirror(a, b, 2))
    with open(tmp_path / "dropped.csv", newline="") as table:
        rows = list(csv.DictReader(table))
    assert [row["url"] for row in rows] == [f"{b.url}/{n}.html" for n in range(2)]
    assert [sorted(row) for row in rows] == [["neardup", "text", "title", "url"]] * 2
    assert ast.literal_eval(rows[1]["neardup"])["duplicate_of"] == f"{a.url}/1.html"


def test_a_serializer_of_a_field_counts_here_too(crawl, a, b, tmp_path):
    settings = {"NEARDUP_DROPPED": str(tmp_path / "dropped")}  # JSON lines where the name says nothing
    crawl("OneAfterAnother", settings, urls=mirror(a, b, 1), kind="serialized")
    assert [row["title"] for row in lines(tmp_path / "dropped")] == ["<A PAGE | B>"]


@pytest.mark.parametrize("revisit", ["drop", "skip"])
def test_revisits_that_are_dropped_are_written_and_those_that_are_kept_are_not(crawl, a, tmp_path, revisit):
    a.pages["/0.html"] = Page(html(article(0)))
    urls, feed = [f"{a.url}/0.html"], {"NEARDUP_DROPPED": str(tmp_path / "dropped.jsonl"), "NEARDUP_MIRROR_TTL": 0}
    crawl(urls=urls)
    crawl(settings={**feed, "NEARDUP_REVISIT": "keep", "FEED_STORE_EMPTY": False}, urls=urls)
    assert not (tmp_path / "dropped.jsonl").exists()
    crawl(settings={**feed, "NEARDUP_REVISIT": revisit}, urls=urls)
    assert [row["neardup"]["status"] for row in lines(tmp_path / "dropped.jsonl")] == ["revisit"]


def test_what_others_drop_is_not_written(crawl, a, b, tmp_path):
    settings = {"NEARDUP_DROPPED": str(tmp_path / "dropped.jsonl"), "ITEM_PIPELINES": {"spiders.DropEverySecond": 400}}
    result = crawl("OneAfterAnother", settings, urls=mirror(a, b))
    assert result.count("withdrawn") == 2
    assert {row["neardup"]["status"] for row in lines(tmp_path / "dropped.jsonl")} == {"duplicate"}
    assert len(lines(tmp_path / "dropped.jsonl")) == result.count("duplicates")


@pytest.mark.parametrize("action", ["tag", "audit"])
def test_where_items_pass_the_feed_has_those_that_would_be_dropped(crawl, a, b, tmp_path, action):
    settings = {"NEARDUP_DROPPED": str(tmp_path / "dropped.jsonl"), "NEARDUP_ACTION": action}
    result = crawl("OneAfterAnother", settings, urls=mirror(a, b, 1))
    [row] = lines(tmp_path / "dropped.jsonl")
    assert (len(result.items), row["neardup"]["status"]) == (2, "duplicate")
    assert row["url"] == result.urls[1]


def test_a_feed_that_can_not_be_written_costs_the_crawl_nothing(crawl, a, b, tmp_path):
    (tmp_path / "file").touch()
    settings = {"NEARDUP_DROPPED": str(tmp_path / "file" / "dropped.jsonl")}  # root may write to any folder
    result = crawl("OneAfterAnother", settings, urls=mirror(a, b))
    assert (len(result.items), result.count("duplicates"), result.count("errors")) == (3, 3, 3)
    assert result.log.count("Dropped items can't be written to NEARDUP_DROPPED") == 1
    assert "3 errors" in result.log
    assert result.stats["finish_reason"] == "finished"


def test_a_value_that_a_format_can_not_hold_costs_one_row(crawl, a, b, tmp_path):
    settings = {"NEARDUP_DROPPED": str(tmp_path / "dropped.jsonl"), "ITEM_PIPELINES": {"spiders.AddOddValue": 100}}
    result = crawl("OneAfterAnother", settings, urls=mirror(a, b))
    assert (result.count("duplicates"), result.count("errors")) == (3, 1)
    assert len(lines(tmp_path / "dropped.jsonl")) == 2


@pytest.mark.parametrize(
    ("uri", "reason"),
    [
        ("nowhere://example/dropped.jsonl", "Unknown feed storage scheme: nowhere"),
        ("dropped.odd", "Unknown feed format: odd"),
        ("%(nothing)s.jsonl", "KeyError('nothing')"),
    ],
)
def test_a_uri_that_scrapy_has_no_feed_for_stops_the_crawl(crawl, a, uri, reason):
    a.pages["/0.html"] = Page(html(article(0)))
    result = crawl.finish(crawl.start(settings={"NEARDUP_DROPPED": uri}, urls=[f"{a.url}/0.html"]))
    assert (result.code, result.items) == (1, [])
    assert re.search(f"NEARDUP_DROPPED = {re.escape(repr(uri))} is not allowed(: KeyError.*)?; allowed is", result.log)
    assert reason in result.log


def test_who_waits_for_the_feeds_of_a_crawl_does_not_hear_of_this_one(crawl, a, b, tmp_path):
    settings = {"NEARDUP_DROPPED": str(tmp_path / "dropped.jsonl"), "EXTENSIONS": {"spiders.CountFeeds": 0}}
    result = crawl("OneAfterAnother", settings, urls=mirror(a, b, 1))
    assert len(lines(tmp_path / "dropped.jsonl")) == 1
    assert (result.stats["test/slots_closed"], result.stats["test/exporters_closed"]) == (1, 1)


@pytest.mark.slow
@pytest.mark.parametrize("reactor", ["selectreactor.SelectReactor", "asyncioreactor.AsyncioSelectorReactor"])
def test_the_same_on_every_reactor(crawl, a, b, tmp_path, reactor):
    settings = {"NEARDUP_DROPPED": f"file://{tmp_path}/dropped.json", "TWISTED_REACTOR": f"twisted.internet.{reactor}"}
    crawl("OneAfterAnother", settings, urls=mirror(a, b))
    assert len(json.loads((tmp_path / "dropped.json").read_text())) == 3
