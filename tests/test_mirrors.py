"""The advice on a URL before it is fetched, and the other URLs that have the content of a dead URL."""

from __future__ import annotations

import time
from typing import Any

import pytest
from helpers import built, link, signature, text

from scrapy_neardup import Deduplicator, Document
from scrapy_neardup.mirrors import MANY, Mirrors, is_in_share
from scrapy_neardup.settings import Config
from scrapy_neardup.signature import Signature
from scrapy_neardup.store import Store, open_store

NOW, DAY = 1_000_000.0, 86_400.0
OWN, MIRROR = "http://a.example/1", "http://m.example/1"


@pytest.fixture
def store() -> Store:
    """Return one that holds a document, and knows one mirror of it, seen a day ago."""
    made = open_store(None, [])
    made.add(held := signature("", url=OWN))
    made.record(link(OWN, held, seen=NOW - DAY))
    made.record(link(MIRROR, held, is_copy=True, seen=NOW - DAY))
    return made


@pytest.fixture(autouse=True)
def _now(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(time, "time", lambda: NOW)


def mirrors(store: Store, **options: Any) -> Mirrors:
    return Mirrors(store, Config(**{"recheck": 0, **options}))


def document(store: Store) -> Signature:
    [held] = store.signatures()
    return held


def holder(known: Mirrors, url: str) -> str | None:
    found = known.advise(url)
    return found.url if found else None


@pytest.mark.parametrize("url", [OWN, "http://m.example/2", "http://unknown.example/"])
def test_what_is_no_mirror_is_fetched(store: Store, url: str) -> None:
    assert mirrors(store).advise(url) is None


@pytest.mark.parametrize(("ttl", "expected"), [(2 * DAY, OWN), (DAY, OWN), (DAY - 1, None), (0, None)])
def test_mirror_not_confirmed_for_so_long_is_fetched(store: Store, ttl: float, expected: str | None) -> None:
    assert holder(mirrors(store, mirror_ttl=ttl), MIRROR) == expected


@pytest.mark.parametrize(
    ("words", "urls", "expected"),
    [
        (30, [OWN, MIRROR], True),  # mirrors have the same path
        (59, [OWN, "http://b.example/2"], False),
        (60, [OWN, "http://a.example/2"], True),
        (100, [OWN, "http://a.example/2", "http://a.example/3"], False),
        (120, [OWN, "http://a.example/2", "http://b.example/3"], True),
        (100, [OWN, *(f"http://m{n}.example/1" for n in range(20))], True),
        (400, [f"http://a.example/{n}" for n in range(1, MANY)], True),
        (400, [f"http://a.example/{n}" for n in range(1, MANY + 1)], False),
        (400, [f"http://a.example/?id={n}" for n in range(1, MANY + 1)], False),
        (400, [f"http://a{n}.example/{n}" for n in range(1, MANY + 1)], False),
    ],
)
def test_a_text_at_more_paths_than_its_length_allows_is_a_placeholder(
    words: int, urls: list[str], expected: bool
) -> None:
    with Deduplicator.open() as dedup:
        for url in urls:
            dedup.claim(Document(url, text(1, words))).commit()
        assert (Mirrors(dedup.store, Config()).advise(urls[-1]) is not None) == expected


def test_a_short_text_is_skipped_only_at_its_one_url() -> None:
    with Deduplicator.open(revisit="skip") as dedup:
        known = Mirrors(dedup.store, Config(revisit="skip"))
        dedup.claim(Document(OWN, text(1, 50))).commit()
        assert holder(known, OWN) == OWN
        dedup.claim(Document("http://b.example/2", text(1, 50))).commit()
        assert known.advise(OWN) is None


def test_revisits_are_skipped_only_where_asked_for(store: Store) -> None:
    assert mirrors(store).advise(OWN) is None
    assert holder(mirrors(store, revisit="skip"), OWN) == OWN
    assert mirrors(store, revisit="skip", mirror_ttl=DAY - 1).advise(OWN) is None


@pytest.mark.parametrize(("scope", "expected"), [("all", OWN), ("host", None), ("domain", None)])
def test_nothing_is_skipped_because_of_what_is_out_of_scope(store: Store, scope: str, expected: str | None) -> None:
    assert holder(mirrors(store, scope=scope), MIRROR) == expected


def test_preferred_host_is_never_skipped_in_favour_of_another(store: Store) -> None:
    assert mirrors(store, preferred_hosts=["M.example"]).advise(MIRROR) is None
    assert holder(mirrors(store, preferred_hosts=["a.example"]), MIRROR) == OWN


def test_preferred_host_is_skipped_in_favour_of_itself(store: Store) -> None:
    store.record(link("http://a.example/print/1", document(store), is_copy=True, seen=NOW))
    known = mirrors(store, preferred_hosts=["a.example"], revisit="skip")
    assert holder(known, "http://a.example/print/1") == OWN
    assert holder(known, OWN) == OWN


# Rules of the user's own


@pytest.mark.parametrize("rule", ["n.example", "n.example:8080"])
def test_rule_stands_for_a_host_of_which_nothing_is_known(store: Store, rule: str) -> None:
    known = mirrors(store, mirror_hosts={rule: "a.example"})
    assert holder(known, "http://N.example:8080/1") == OWN
    assert known.advise("http://n.example:8080/2") is None
    assert known.advise("http://sub.n.example:8080/1") is None


def test_knowledge_comes_before_rules(store: Store) -> None:
    store.record(link("http://n.example/1", None, seen=NOW))
    assert mirrors(store, mirror_hosts={"n.example": "a.example"}).advise("http://n.example/1") is None


def test_rule_does_not_override_trust(store: Store) -> None:
    known = mirrors(store, mirror_hosts={"n.example": "a.example"}, preferred_hosts=["n.example"])
    assert known.advise("http://n.example/1") is None


def test_rule_that_leads_to_a_mirror_leads_to_what_is_held(store: Store) -> None:
    assert holder(mirrors(store, mirror_hosts={"n.example": "m.example"}), "http://n.example/1") == OWN


# Rechecks

URLS = [f"http://m.example/{n}" for n in range(5000)]


def rechecked(share: float, run: str = "") -> list[str]:
    return [url for url in URLS if is_in_share(url, run, share)]


@pytest.mark.parametrize("share", [0.01, 0.1, 0.5])
def test_share_of_rechecks(share: float) -> None:
    deviation = (len(URLS) * share * (1 - share)) ** 0.5
    assert len(rechecked(share)) == pytest.approx(len(URLS) * share, abs=4 * deviation)


def test_rechecks_are_the_same_within_a_run_and_others_in_the_next() -> None:
    first = rechecked(0.1, "one")
    assert rechecked(0.1, "one") == first
    assert len(set(first) & set(rechecked(0.1, "two"))) < len(first) / 4


def test_rechecks_go_by_the_canonical_url() -> None:
    spellings = [f"https://m.example:443/{n}?utm_source=x#y" for n in range(200)]
    assert [is_in_share(url, "", 0.5) for url in spellings] == [is_in_share(url, "", 0.5) for url in URLS[:200]]


# After a failed fetch


def alternatives(store: Store, url: str, *tried: str, **options: Any) -> list[str]:
    return [other.url for other in mirrors(store, **options).alternatives(url, tried)]


@pytest.fixture
def family(store: Store) -> Store:
    held = document(store)
    store.record(link("http://new.example/1", held, is_copy=True, seen=NOW))
    store.record(link("http://old.example/1", held, is_copy=True, seen=NOW - 9 * DAY))
    store.record(link("http://a.example/alias", held, seen=NOW - 20 * DAY))
    return store


def test_the_last_seen_come_first(family: Store) -> None:
    old = ["http://old.example/1", "http://a.example/alias"]
    assert alternatives(family, MIRROR) == ["http://new.example/1", OWN, *old]
    assert alternatives(family, OWN) == ["http://new.example/1", MIRROR, *old]


def test_of_those_seen_on_one_day_preferred_hosts_then_https_then_the_shorter_come_first(store: Store) -> None:
    urls = ["http://t.example/long/1", "https://s.example/long/1", "http://u.example/1", "http://v.example/long/1"]
    for second, url in enumerate(urls):
        store.record(link(url, document(store), is_copy=True, seen=NOW - second))
    assert alternatives(store, OWN, preferred_hosts=["t.example"]) == [*urls, MIRROR]


def test_alternatives_do_not_expire(family: Store) -> None:
    assert alternatives(family, MIRROR, mirror_ttl=0) == alternatives(family, MIRROR)


def test_no_alternatives_for_what_is_unknown_or_leads_nowhere(family: Store) -> None:
    family.record(link(MIRROR, None))
    assert alternatives(family, MIRROR) == alternatives(family, "http://unknown.example/") == []


def test_counterpart_by_rule_comes_last(store: Store) -> None:
    hosts = {"m.example": "n.example:8080", "x.example": "a.example"}
    assert alternatives(store, MIRROR, mirror_hosts=hosts) == [OWN, "http://n.example:8080/1"]
    assert alternatives(store, "https://x.example/new?q=1", mirror_hosts=hosts) == ["https://a.example/new?q=1"]


def test_document_without_url_has_its_mirrors() -> None:
    store = open_store(None, [])
    store.add(held := built(None, {}, signature("x").sketch, 0.0))
    for url in (MIRROR, "http://n.example/1"):
        store.record(link(url, held, is_copy=True))
    assert alternatives(store, MIRROR) == ["http://n.example/1"]
