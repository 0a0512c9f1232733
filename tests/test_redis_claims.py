"""Claims on a shared store: of documents that repeat each other, one is kept, whoever brings them and whenever."""

from __future__ import annotations

import multiprocessing
import random
import threading
from collections import Counter
from contextlib import closing

import pytest
from helpers import detectors, edited, signature, text
from redis_server import server
from store_inputs import Own, OwnIndex

from scrapy_neardup import Deduplicator, Document
from scrapy_neardup.stores.redis.store import RedisStore


def opened(namespace: str) -> Deduplicator:
    return Deduplicator.open(server().address, namespace=namespace)


def test_document_that_another_process_holds_is_found(request) -> None:
    with opened(request.node.name) as one, opened(request.node.name) as other:
        one.claim(Document("http://a.example/1", text(1))).commit()
        one.flush()
        claim = other.claim(Document("http://b.example/1", edited(text(1), 50)))
        assert (claim.verdict.status, claim.verdict.duplicate_of) == ("duplicate", "http://a.example/1")


def test_twin_waits_until_the_first_one_is_committed(request) -> None:
    with opened(request.node.name) as one, opened(request.node.name) as other:
        claim = one.claim(Document("http://a.example/1", text(1)))
        settled = threading.Event()
        later = threading.Timer(0.2, lambda: (settled.set(), claim.commit(), one.flush()))
        later.start()
        twin = other.claim(Document("http://b.example/1", text(1)))
        assert settled.is_set()
        assert twin.verdict.duplicate_of == "http://a.example/1"
        later.join()


def test_twin_takes_the_place_of_one_that_is_withdrawn(request) -> None:
    with opened(request.node.name) as one, opened(request.node.name) as other:
        claim = one.claim(Document("http://a.example/1", text(1)))
        later = threading.Timer(0.2, lambda: (claim.withdraw(), one.flush()))
        later.start()
        twin = other.claim(Document("http://b.example/1", text(1)))
        assert twin.verdict.status == "unique"
        later.join()
        twin.commit()
    with opened(request.node.name) as third:
        assert [each.url for each in third.store.signatures()] == ["http://b.example/1"]


def test_twin_takes_the_place_of_one_whose_process_died(request) -> None:
    one = opened(request.node.name)
    one.claim(Document("http://a.example/1", text(1)))
    store = one.store
    assert isinstance(store, RedisStore)
    store.server.run([("DEL", store.server.key(f"lease.{store.documents.run}"))])  # as if it had run out
    store._abandon()
    with opened(request.node.name) as other:
        assert other.claim(Document("http://b.example/1", text(1))).verdict.status == "unique"


def test_detector_with_an_index_of_its_own_does_not_find_the_document_itself(request) -> None:
    documents = [Document(f"http://a.example/{n}", "。".join(text(n).split()).replace(" ", "")) for n in range(3)]
    with Deduplicator.open(server().address, namespace=request.node.name, detectors=["exact", "feature_code"]) as dedup:
        assert any(dedup.sign(each).fingerprints["feature_code"] for each in documents)
        assert [dedup.claim(each).verdict.status for each in documents * 2] == ["unique"] * 3 + ["revisit"] * 3


class BrokenIndex(OwnIndex):
    is_broken = False

    def find(self, fingerprints):
        if self.is_broken:
            raise RuntimeError("broken")
        return super().find(fingerprints)


class Broken(Own):
    def index(self) -> BrokenIndex:
        return BrokenIndex()


def test_document_of_a_claim_that_failed_is_held_by_nobody(request) -> None:
    options = {"namespace": request.node.name, "detectors": ["exact", f"{__name__}.Broken"]}
    with Deduplicator.open(server().address, **options) as one, Deduplicator.open(server().address, **options) as other:
        one.store.asking.own["own"].is_broken = True
        with pytest.raises(RuntimeError, match="broken"):
            one.claim(Document("http://a.example/1", text(1)))
        one.flush()
        twin = other.try_claim(Document("http://b.example/1", text(1)))
        assert (twin.verdict.status, twin.is_early) == ("unique", False)


def test_document_that_came_in_between_is_found(request) -> None:
    first = RedisStore(server().address, detectors(), namespace=request.node.name)
    second = RedisStore(server().address, detectors(), namespace=request.node.name)
    with closing(first) as one, closing(second) as other:
        other.add(held := signature("other", exact=7, simhash=0xFF))
        other.commit(held)
        other.flush()
        mine = signature("mine", exact=7, simhash=0xFF00)
        one.intend(mine)
        assert [s.url for _, s in one.find(mine.fingerprints)] == [held.url]
        other.add(newer := signature("newer", exact=7, simhash=0xFF0000))
        other.commit(newer)
        other.flush()
        assert not one.enter(mine)
        assert [s.url for _, s in one.find(mine.fingerprints)] == [newer.url]
        assert one.enter(mine)
        assert len(one) == 3


def work(address: str, namespace: str, seed: int, kept) -> None:
    """Claim copies of 60 documents in an order of one's own; put the numbers of those that were kept."""
    order = [(number, copy) for number in range(60) for copy in range(2)]
    random.Random(seed).shuffle(order)
    with Deduplicator.open(address, namespace=namespace) as dedup:
        for number, copy in order:
            claim = dedup.claim(
                Document(f"http://{seed}.example/{number}/{copy}", edited(text(number), 9 * seed + copy))
            )
            claim.commit()
            if claim.verdict.status == "unique":
                kept.put(number)
            dedup.flush()


def test_of_copies_that_come_at_once_one_is_kept(request) -> None:
    context = multiprocessing.get_context("spawn")
    kept = context.Queue()
    arguments = (server().address, request.node.name)
    workers = [context.Process(target=work, args=(*arguments, seed, kept)) for seed in range(3)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(60)
        assert worker.exitcode == 0
    counts = Counter(kept.get(timeout=5) for _ in range(60))
    assert kept.empty()
    assert counts == Counter(range(60))
