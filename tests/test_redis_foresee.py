"""Look-ups of several claims in one round trip to a server, and what may change in between."""

from __future__ import annotations

from contextlib import closing
from itertools import count

import pytest
from helpers import detectors, edited, names, signature, text
from redis_faults import document, held, keep_all, pending, reached, urls
from redis_server import Server
from store_kinds import Place, commit

from scrapy_neardup import Deduplicator, Document
from scrapy_neardup.store import Store, open_store
from scrapy_neardup.store import store as store_module

on_server = pytest.mark.parametrize("place", ["server"], indirect=True)


@on_server
def test_the_state_of_a_url_is_read_anew_after_it_was_written(place: Place) -> None:
    with Deduplicator.open(place.address) as dedup:
        for number in range(2):
            new = Document(url="http://a.example/1", text=text(number))
            dedup.store.resolve("http://a.example/1")
            claim = dedup.claim(new)
            claim.commit()
            link = dedup.store.resolve("http://a.example/1")
            assert link is not None
            assert link.signature is claim.signature


@on_server
def test_a_near_copy_of_a_document_of_the_same_batch_is_found(place: Place) -> None:
    """The first one is known, so the others are not held when the batch is foreseen."""
    documents = [
        Document(f"http://b.example/{n}", each) for n, each in enumerate([text(1), text(2), edited(text(2), 60)])
    ]
    with place.dedup(detectors=["exact", "simhash"]) as dedup:
        dedup.claim(Document("http://a.example/1", text(1))).commit()
        dedup.foresee(documents)
        assert [dedup.claim(each).verdict.status for each in documents] == ["duplicate", "unique", "duplicate"]


@on_server
def test_what_was_foreseen_and_never_came_is_given_up(place: Place) -> None:
    with place.dedup() as dedup:
        dedup.foresee([Document("http://a.example/1", text(1))])
        dedup.foresee([])
        assert dedup.claim(Document("http://b.example/1", text(1))).verdict.status == "unique"
        assert len(dedup) == 1


def test_a_batch_reads_its_visits_together_while_another_run_is_open(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(store_module, "SHARED_SECONDS", 0.0)
    with Deduplicator.open(server.address), Deduplicator.open(server.address) as dedup:
        server.tell("CONFIG", "RESETSTAT")
        dedup.decide([document(number) for number in range(20)])
        dedup.flush()
        assert server.tell("INFO", "commandstats")["cmdstat_evalsha"]["calls"] < 10


# Servers that fail in between


def take_for_dead(server: Server, store: Store) -> None:
    """End the run of a store from another process; the store learns of it from its next request."""
    Place(server.address).let_lapse(store.run)
    Deduplicator.open(server.address).close()


def test_server_that_gets_full_in_the_midst_of_a_batch(server: Server) -> None:
    some = [document(number) for number in range(20)]
    with Deduplicator.open(server.address) as dedup:
        for room in count(0, 1000):
            server.tell("CONFIG", "SET", "maxmemory", str(server.tell("INFO", "memory")["used_memory"] + room))
            dedup.foresee(some)
            if pending(server):
                break
        server.tell("CONFIG", "SET", "maxmemory", "0")
        reached(dedup)
        assert keep_all(dedup, some) == 20 * ["unique"]
    assert pending(server) == 0
    assert held(server) == urls(*range(20))


def test_run_that_is_begun_anew_in_the_midst_of_a_batch(server: Server) -> None:
    some = [document(number) for number in range(6)]
    with Deduplicator.open(server.address) as dedup:
        dedup.foresee(some)
        first = dedup.claim(some[0])
        take_for_dead(server, dedup.store)
        reached(dedup)
        assert keep_all(dedup, some[1:]) == 5 * ["unique"]
        first.commit()
    assert held(server) == urls(*range(6))


def test_run_that_is_begun_anew_when_a_document_is_looked_for_again(server: Server) -> None:
    old, late, last = signature("old"), signature("late", simhash=0xFF), signature("last", exact=2, simhash=0xFF00)
    found: list[list[str]] = []
    with closing(open_store(server.address, detectors())) as store:
        commit(store, old)
        store.foresee([late, last])
        store.claim(late, lambda: found.append(names(s for _, s in store.find(late))))
        assert found.pop() == ["old"]
        take_for_dead(server, store)
        store.claim(last, lambda: found.append(names(s for _, s in store.find(last))))
        assert found == [[]]
