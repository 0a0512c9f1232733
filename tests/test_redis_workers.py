"""Workers on a shared store that die, seem to die, or lose their network: a copy of each document is kept."""

from __future__ import annotations

import os
import random
import threading
import time
from contextlib import suppress
from typing import Any

import pytest
from helpers import edited, text
from redis_faults import document, held, keep, keep_all, pending, reached, urls
from redis_server import Server
from store_kinds import Place
from tcp_proxy import TcpProxy

from scrapy_neardup import Deduplicator, Document
from scrapy_neardup.store import StoreError
from scrapy_neardup.store import runs as dead

# Others have the parts: a process that is killed (test_store_runs), while it crawls (test_redis_fleet), a run that lost
# its lease (test_redis), claims of the dead (test_redis_claims), and each failure of the network (test_redis_faults).
pytestmark = pytest.mark.usefixtures("impatient")


def test_run_that_died_is_ended_by_those_that_live(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dead, "LOOK", 0.0)
    one = Deduplicator.open(server.address)
    with Deduplicator.open(server.address) as other:
        keep(one, 1)
        other.store.refresh()
        assert keep(other, 1, site="b") == ["duplicate"]
        Place(server.address).die(one.store)
        for _ in range(dead.LOOKS):
            other.store.refresh()
        assert keep(other, 1, site="c") == ["unique"]
        assert all(run.closed for run in other.store.runs() if run.id == one.store.run)


@pytest.mark.parametrize("claims_meanwhile", [False, True])
def test_what_a_dead_run_loses_is_not_met_while_it_is_erased(
    server: Server, monkeypatch: pytest.MonkeyPatch, claims_meanwhile: bool
) -> None:
    dead_run = Deduplicator.open(server.address)
    with Deduplicator.open(server.address) as lives:

        def visit(copy: int, dedup: Deduplicator = lives) -> str:
            claim = dedup.claim(Document(f"http://b.example/{copy}", edited(text(1), 3 * copy)))
            claim.commit()
            dedup.flush()
            return claim.verdict.status

        def erase(*arguments: Any, erase: Any = dead.erase, **options: Any) -> int:
            lives.flush()  # it hears that the run has ended, before any row is gone
            statuses.extend(map(visit, [3] * claims_meanwhile))
            return int(erase(*arguments, **options))

        statuses: list[str] = []
        assert [visit(1, dead_run), visit(2)] == ["unique", "duplicate"]
        Place(server.address).die(dead_run.store)
        monkeypatch.setattr(dead, "erase", erase)
        with Deduplicator.open(server.address):
            statuses.extend(map(visit, range(4, 7)))
        assert statuses == ["unique", *["duplicate"] * (2 + claims_meanwhile)]


def test_run_that_is_away_for_a_moment_is_not_ended(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dead, "LOOK", 0.0)
    with Deduplicator.open(server.address) as one, Deduplicator.open(server.address) as other:
        keep(one, 1)
        for _ in range(dead.LOOKS):
            Place(server.address).let_lapse(one.store.run)
            other.store.refresh()
            assert keep(one, 2)
            other.store.refresh()
        assert keep(other, 1, site="b") == ["duplicate"]
    assert held(server) == urls(1, 2)


# All at once


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(int(os.environ.get("NEARDUP_TEST_CHAOS", "2"))))
def test_of_each_document_a_copy_is_kept_whatever_the_network_does(server: Server, proxy: TcpProxy, seed: int) -> None:
    chosen, over, kept, lost = random.Random(seed), threading.Event(), set[int](), list[int]()
    unjudged = list[int]()

    def spoil() -> None:
        begun.wait(30)
        while not over.wait(chosen.uniform(0, 0.2)):
            match chosen.randrange(40):
                case 0:
                    proxy.stall()
                    over.wait(chosen.uniform(0, 2.5))
                    proxy.flow()
                case 1:
                    proxy.drop()
                    over.wait(chosen.uniform(0, 2.5))
                    proxy.flow()
                case 2 | 3 | 4 | 5 | 6 | 7 | 8 | 9 | 10 | 11 | 12:
                    proxy.cut_before_answer(chosen.choice([b"\xa4look", b"\xa3row", b"EVALSHA"]))
                case 13 | 14 | 15 | 16:
                    proxy.cut()

    def work(address: str, order: list[int]) -> None:
        with Deduplicator.open(address) as dedup:
            begun.wait(30)
            late = []
            for number in order:
                passed = document(number, str(number % 7))
                try:
                    claim = dedup.claim(passed)
                except StoreError:
                    kept.add(number)  # it passes
                    unjudged.append(number)
                    time.sleep(0.01)
                    late.append(passed)
                    continue
                if claim.verdict.status == "unique":
                    kept.add(number)
                elif number not in kept:
                    lost.append(number)
                for each in (claim.commit, dedup.flush, dedup.store.refresh):
                    with suppress(StoreError):
                        each()
            if address == proxy.address:
                over.set()
                spoiling.join()
                proxy.flow()
            reached(dedup)
            keep_all(dedup, late)

    orders = [random.Random(seed + n).choices(range(80), k=300) for n in (1, 2)]
    begun = threading.Barrier(3)
    other = threading.Thread(target=work, args=(server.address, orders[1]))
    spoiling = threading.Thread(target=spoil)
    for each in (spoiling, other):
        each.start()
    try:
        work(proxy.address, orders[0])
    finally:
        over.set()
        for each in (spoiling, other):
            each.join()
    print(f"{len(unjudged)} of 300 passed unjudged")
    assert not lost
    assert {int(url.rpartition("/")[2]) for url in held(server)} == kept == {*orders[0], *orders[1]}
    assert pending(server) == 0
