"""Claims on a shared store: of documents that repeat each other, one is kept, in any order and from any worker."""

from __future__ import annotations

import multiprocessing
import random
from collections.abc import Callable
from concurrent.futures import Executor, ProcessPoolExecutor, ThreadPoolExecutor
from contextlib import nullcontext

import pytest
from helpers import edited, settle, signature, text, until
from store_inputs import Own, OwnIndex
from store_kinds import Place, commit
from tiers import slow

from scrapy_neardup import Deduplicator, Document
from scrapy_neardup.deduplicator import Claim

pytestmark = pytest.mark.parametrize("place", ["server"], indirect=True)


def claimed(dedup: Deduplicator, document: Document, settle: Callable[[], object]) -> Claim:
    """Settle another document once the claim of this one waits; return the claim."""
    tried: list[Document] = []
    try_claim = dedup.try_claim
    dedup.try_claim = lambda each: (tried.append(each), try_claim(each))[1]
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(dedup.claim, document)
        until(lambda: len(tried) > 1)
        assert not waiting.done()
        settle()
        return waiting.result(30)


@pytest.mark.parametrize(("end", "original"), [("commit", "http://a.example/1"), ("withdraw", None)])
def test_twin_waits_until_the_first_one_is_committed_or_withdrawn(place: Place, end: str, original: str | None) -> None:
    with place.dedup() as one, place.dedup() as other:
        first = one.claim(Document("http://a.example/1", text(1)))
        twin = claimed(other, Document("http://b.example/1", text(1)), lambda: (getattr(first, end)(), one.flush()))
        assert twin.verdict.duplicate_of == original
        twin.commit()
    with place.opened(run=None) as store:
        assert [each.url for each in store.signatures()] == [original or "http://b.example/1"]


@pytest.mark.parametrize("outcome", ["committed", "withdrawn"])
def test_wait_that_runs_out_keeps_the_twin_and_its_url_is_fetched_again(
    place: Place, monkeypatch: pytest.MonkeyPatch, outcome: str
) -> None:
    monkeypatch.setattr("scrapy_neardup.deduplicator.PATIENCE", 0.2)
    with place.dedup() as one, place.dedup() as other:
        one.claim(Document("http://a.example/2", text(2))).commit()
        one.claim(Document("http://b.example/1", text(2))).commit()  # so that its URL is known as a copy
        first = one.claim(Document("http://a.example/1", text(1)))
        one.flush()
        twin = other.claim(Document("http://b.example/1", text(1)))
        assert (twin.verdict.status, twin.match) == ("unique", None)
        twin.commit()
        assert first.state == "pending"
        first.commit() if outcome == "committed" else first.withdraw()
    with place.dedup() as later:
        known = later.store.resolve("http://b.example/1")
        assert known is None or known.signature is None
        status = {"committed": "duplicate", "withdrawn": "unique"}[outcome]
        assert later.claim(Document("http://b.example/1", text(1))).verdict.status == status


@pytest.mark.parametrize("is_resumed", [False, True])
def test_twin_takes_the_place_of_one_whose_process_died(place: Place, is_resumed: bool) -> None:
    one = place.dedup()
    one.claim(Document("http://a.example/1", text(1)))
    place.die(one.store)
    with place.opened(run=one.store.run) if is_resumed else nullcontext(), place.dedup() as other:
        twin = other.try_claim(Document("http://b.example/1", text(1)))
        assert (twin.verdict.status, twin.is_early) == ("unique", False)


def test_detector_with_an_index_of_its_own_does_not_find_the_document_itself(place: Place) -> None:
    documents = [Document(f"http://a.example/{n}", "。".join(text(n).split()).replace(" ", "")) for n in range(3)]
    with place.dedup(detectors=["exact", "feature_code"]) as dedup:
        assert any(dedup.sign(each).own["feature_code"] for each in documents)
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


def test_document_of_a_claim_that_failed_is_held_by_nobody(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    options = {"detectors": ["exact", f"{__name__}.Broken"]}
    with place.dedup(**options) as one, place.dedup(**options) as other:
        with monkeypatch.context() as patched:
            patched.setattr(BrokenIndex, "is_broken", True)
            with pytest.raises(RuntimeError, match="broken"):
                one.claim(Document("http://a.example/1", text(1)))
        one.flush()
        twin = other.try_claim(Document("http://b.example/1", text(1)))
        assert (twin.verdict.status, twin.is_early) == ("unique", False)


def test_document_that_came_in_between_is_found(place: Place) -> None:
    with place.opened() as one, place.opened() as other:
        commit(other, held := signature("other", exact=7, simhash=0xFF))
        mine = signature("mine", exact=7, simhash=0xFF00)
        newer, found = signature("newer", exact=7, simhash=0xFF0000), []

        def look() -> None:
            found.append([s.url for _, s in one.find(mine)])
            if len(found) == 1:
                commit(other, newer)

        one.claim(mine, look)
        assert found == [[held.url], found[-1]]
        assert newer.url in found[-1]
        settle(one)
        assert len(one) == 3


def work(address: str, seed: int) -> list[int]:
    """Claim copies of 15 documents in a random order; return the numbers of the documents that were kept."""
    order = [(number, copy) for number in range(15) for copy in range(2)]
    random.Random(seed).shuffle(order)
    kept = []
    with Deduplicator.open(address) as dedup:
        for number, copy in order:
            url = f"http://{seed}.example/{number}/{copy}"
            claim = dedup.claim(Document(url, edited(text(number), 9 * seed + copy)))
            claim.commit()
            if claim.verdict.status == "unique":
                kept.append(number)
            dedup.flush()
    return kept


def processes(count: int) -> Executor:
    return ProcessPoolExecutor(count, multiprocessing.get_context("spawn"))


@pytest.mark.parametrize("pool", [ThreadPoolExecutor, *slow(processes)])
def test_of_copies_that_come_at_once_one_is_kept(place: Place, pool: Callable[[int], Executor]) -> None:
    with pool(3) as workers:
        kept = [workers.submit(work, place.address, seed) for seed in range(3)]
        assert sorted(number for each in kept for number in each.result(60)) == list(range(15))
