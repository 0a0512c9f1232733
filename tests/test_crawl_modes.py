"""Crawls work alike on every reactor, and bad settings stop them at the start."""

from __future__ import annotations

from pathlib import Path

import pytest
from site_server import mirror
from tiers import slow

MODES = {
    "asyncio": {},
    "select": {"TWISTED_REACTOR": "twisted.internet.selectreactor.SelectReactor"},
    "without reactor": {"TWISTED_REACTOR_ENABLED": False},
}
STORES_AND_MODES = [(store, mode) for store in ("file", "redis") for mode in MODES]


@pytest.fixture
def urls(a, b):
    return mirror(a, b, 6)


@pytest.mark.parametrize(
    ("crawl", "mode"),
    [STORES_AND_MODES[0], *slow(*STORES_AND_MODES[1:])],
    indirect=["crawl"],
)
def test_the_same_on_every_reactor(crawl, a, b, urls, mode):
    lossy = {"ITEM_PIPELINES": {"spiders.Hold": 400, "spiders.DropEverySecond": 500, "spiders.ReplaceItem": 600}}
    first = crawl("ListSpider", {**MODES[mode], **lossy, "HOLD_RESPONSES": 13}, urls=urls)
    # What the pipeline dropped of one host came from the other.
    assert first.count("documents") + first.count("withdrawn") >= 12
    assert first.count("store/documents") == len(first.items)
    second = crawl("ListSpider", {**MODES[mode], "NEARDUP_REVISIT": "drop"}, urls=urls)
    assert len(first.items) + len(second.items) == 6
    asked = len(a.requests) + len(b.requests)
    third = crawl("ListSpider", MODES[mode], urls=urls)
    assert len(a.asked()) + len(b.asked()) - asked == 6
    assert (third.count("requests/skipped"), len(third.items)) == (6, 6)
    a.dead_status = 404
    fourth = crawl("ListSpider", {**MODES[mode], "NEARDUP_SKIP_MIRRORS": False}, urls=urls)
    assert fourth.count("dead_links/rescued") > 0
    assert fourth.count("dead_links/rescued") == fourth.count("dead_links/redirected")


BAD = {  # one that is read with the settings, one only when it is used
    "NEARDUP_ACTION": "remove",
    "NEARDUP_DETECTORS": [{"name": "imatch", "lexicon": "/nowhere/lexicon.txt"}],
}


@pytest.mark.parametrize("name", BAD)
def test_a_bad_setting_stops_the_crawl_and_is_named(crawl, a, urls, name):
    result = crawl.finish(crawl.start("ListSpider", {name: BAD[name]}, urls=urls))
    assert result.code == 1
    [reason] = [line for line in result.log.splitlines() if "The crawl was not started: " in line]
    assert name in reason
    assert "settings.ConfigError" not in result.log + result.errors  # as a traceback ends
    assert (a.requests, result.items) == ([], [])


def test_switched_off_it_does_nothing(crawl, a, b, urls):
    result = crawl("ListSpider", {"NEARDUP_ENABLED": False}, urls=urls)
    assert len(result.items) == 12
    assert not [name for name in result.stats if name.startswith("neardup/")]
    assert not Path(crawl.store).exists()
