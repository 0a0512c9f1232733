"""Stores: one contract for all, and one for stores that outlive their process."""

from __future__ import annotations

import random
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from helpers import asking, built, detectors, link, names, signature
from store_kinds import KINDS, Place, commit, held, numbered
from tiers import some

from scrapy_neardup.detectors import Exact
from scrapy_neardup.store import Selection, Store, StoreError, open_store
from scrapy_neardup.store import store as store_module
from scrapy_neardup.store.local import MemoryBackend
from scrapy_neardup.store.records import index_key


@pytest.fixture(params=["memory", *KINDS])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Store]:
    is_lasting = request.param in KINDS
    with closing(KINDS[request.param](tmp_path).open() if is_lasting else open_store(None, detectors())) as opened:
        yield opened


def found(store: Store, exact: int = 0, simhash: int = 2**64 - 1) -> list[tuple[str, str]]:
    pairs = list(store.find(asking({"exact": (exact,), "simhash": (simhash,)})))
    return list(zip((name for name, _ in pairs), names(s for _, s in pairs), strict=True))


# What holds of every store


@pytest.mark.parametrize("id", [0, 1, -1, 2**62])
def test_no_document_has_an_id_that_no_row_has(store: Store, id: int) -> None:
    assert store.document(id) is None


def test_fingerprints_of_a_detector_that_abstains_are_none(store: Store) -> None:
    abstaining = built("http://site.example/a", {"exact": (), "simhash": (5,)}, signature("a").sketch, 1.0)
    store.add(abstaining)
    store.commit(abstaining)
    assert list(store.find(asking({}))) == list(store.find(asking({"exact": (), "stranger": (5,)}))) == []
    assert found(store, simhash=5) == [("simhash", "a")]


@pytest.mark.parametrize("seed", some(range(2), 0))
def test_copies_are_found_at_every_moment_of_writing(store: Store, seed: int) -> None:
    chance, documents = random.Random(seed), [signature(name, exact=ord(name)) for name in "ab"]
    commit(store, *documents)
    for moment in range(60):
        document, other = chance.sample(documents, 2)
        store.record(link("http://m.example/1", document, is_copy=True, seen=3000.0 + moment))
        for _ in range(chance.randrange(4)):
            chance.choice([store.refresh, store.flush, lambda: store.flush(wait=False), lambda: time.sleep(0.001)])()
        urls = [[known.url for known in store.visits(each) if known.is_copy] for each in (document, other)]
        assert urls == [["http://m.example/1"], []]
        assert (document.copy_count, other.copy_count) == (1, 0)


def test_pages_of_a_host_are_its_documents_oldest_first(store: Store) -> None:
    a, *others = map(signature, "abcde")
    a.first_seen = 2000.0
    commit(store, a, signature("other", url="http://other.example/other"), *others)
    store.add(signature("pending"))
    assert names(store.pages("site.example")) == ["b", "c", "d", "e", "a"]
    assert (names(store.pages("other.example")), store.pages("stranger.example")) == (["other"], [])
    store.withdraw(others[0])
    store.forget(Selection(url=a.url))
    assert names(store.pages("site.example")) == ["c", "d", "e"]


def test_pages_of_a_large_host_are_a_sample_of_late_ones_that_is_the_same_in_each_store(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(store_module, "SAMPLES", 4)
    with closing(open_store(None, detectors())) as other:
        for each in (store, other):
            commit(each, *map(numbered, range(120)))
        assert names(store.pages("site.example")) == names(other.pages("site.example"))
    pages = [int(name) for name in names(store.pages("site.example"))]
    assert (len(pages), pages[-1] > 8) == (4, True)
    assert store.backend.count(index_key("host", "site.example")) < 60
    store.forget(Selection(host="site.example"))
    assert store.pages("site.example") == []
    commit(store, numbered(120))
    assert names(store.pages("site.example")) == ["120"]


def test_address_chooses_the_store(place: Place) -> None:
    assert isinstance(open_store(None, detectors()).backend, MemoryBackend)
    with place.opened() as store:
        assert store.is_remote == place.is_on_server
    with pytest.raises(StoreError, match="gopher://x"):
        open_store("gopher://x", detectors())


# Stores that outlive their process


def test_namespaces_are_apart(place: Place) -> None:
    for namespace, document in (("/one/two", "a"), ("/one", "b"), ("", "c"), ("/{1", "d")):
        place.fill(document, name=namespace)
    for namespace, expected in (("/one/two", ["a"]), ("/one", ["b"]), ("", ["c"]), ("/{1", ["d"]), ("/two", [])):
        assert place.held(namespace, run=None) == expected


def test_looking_in_writes_nothing(place: Place) -> None:
    place.fill("a")
    place.fill_and_die("provisional")
    before = place.content()
    with place.opened(run=None) as store:
        assert "a" in held(store)
        assert store.run == ""
        store.refresh()
    assert place.content() == before


# Detectors that a store was made with


def test_other_scheme_of_a_detector_is_refused(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    place.fill("a")
    before = place.content()
    with monkeypatch.context() as patch:
        patch.setattr(Exact, "scheme", "exact/5")
        with pytest.raises(StoreError, match=r"'exact/4'.*'exact/5'.*NEARDUP_STORE") as caught:
            place.open()
    assert place.address in str(caught.value)
    assert place.content() == before
    assert place.held() == ["a"]


def test_other_detectors_may_be_added_and_left_out(place: Place) -> None:
    with place.opened(made_with=detectors()[:1]) as store:
        commit(store, built("http://site.example/a", {"exact": (1,)}, signature("a").sketch, 1.0))
    with place.opened() as store:
        assert found(store, exact=1, simhash=0) == [("exact", "a")]
    assert place.held(made_with=detectors()[1:]) == ["a"]
