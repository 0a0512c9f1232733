"""The back end on a server that fails: killed, restarted with and without its memory, full, slow, cut off."""

from __future__ import annotations

import threading
from array import array
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from typing import Any

import pytest
from helpers import until
from redis_groups import Cluster, Group, Sentinels
from redis_server import Server
from tcp_proxy import TcpProxy
from test_backends import claim, document, find, key_of, keys_of, near, of

from scrapy_neardup.store.interface import Entry, Question, StoreError
from scrapy_neardup.store.records import Run
from scrapy_neardup.store.redis import backend as backends
from scrapy_neardup.store.redis import connection as servers
from scrapy_neardup.store.redis.backend import RedisBackend
from scrapy_neardup.store.redis.connection import Server as Namespace
from scrapy_neardup.store.redis.connection import code


@pytest.fixture
def open_at() -> Iterator[Callable[..., RedisBackend]]:
    """Open back ends; they are let go of at the end."""
    opened: list[RedisBackend] = []

    def opens(address: str, run: str = "run", namespace: str = "") -> RedisBackend:
        opened.append(made := RedisBackend(address, namespace, writes=bool(run)))
        assert not run or made.hold_run(run)
        return made

    yield opens
    for each in opened:
        each.close()


@pytest.fixture
def durable() -> Iterator[Server]:
    started = Server("--appendonly", "yes", "--appendfsync", "always")
    yield started
    started.close()


def restart(server: Server) -> None:
    server.kill()
    server.start()


def reached(backend: RedisBackend) -> None:
    """Wait until the server is reached again, and has all that was written."""

    def is_reached() -> bool:
        with suppress(StoreError):
            backend.flush(wait=True)
            return True
        return False

    until(is_reached)


def held(open_at: Callable[..., RedisBackend], address: str) -> list[str]:
    return keys_of(open_at(address, "").scan("document"))


Opens = Callable[..., RedisBackend]


def spoil(server: Server, backend: RedisBackend, key: int) -> None:
    """Put something else in place of the bucket of an index key."""
    packed = key.to_bytes(8, "big")
    name = backend.root.encode() + b"k" + packed[:2] + bytes([packed[2] & 0xC0])
    server.tell("SET", name, "x")


def test_connection_that_was_closed_is_made_anew_at_once(server: Server, proxy: TcpProxy, open_at: Opens) -> None:
    backend = open_at(proxy.address)
    rows = [document(n, n) for n in range(1, 21)]
    for each in rows:
        assert claim(backend, each).is_held
        backend.write([each])
        proxy.cut()
    backend.flush(wait=True)
    assert held(open_at, server.address) == of(*rows)


def test_claim_of_which_the_answer_was_lost(server: Server, proxy: TcpProxy, open_at: Opens) -> None:
    backend = open_at(proxy.address)
    proxy.cut_before_answer(b"EVALSHA")
    entry = document(1, 11, 12, simhash=4)
    found = claim(backend, entry)
    assert (proxy.answers_lost, found.is_held, found.rows, found.near) == (1, True, {}, [])
    backend.write([entry])
    proxy.cut_before_answer(b"EVALSHA")
    backend.flush(wait=True)
    assert proxy.answers_lost == 2
    assert find(open_at(server.address, ""), 11) == [entry.key]
    assert backend.count(key_of(11)) == backend.count(key_of(12)) == 1


def test_late_answer_to_a_claim_leaves_nothing_pending(
    server: Server, proxy: TcpProxy, open_at: Opens, impatient: None
) -> None:
    backend, other = open_at(proxy.address), open_at(server.address, "other")
    entry = document(1, 11)
    proxy.stall()
    with pytest.raises(StoreError, match=r"can't be used"):
        claim(backend, entry)
    proxy.flow()  # the server is told of the claim now
    reached(backend)
    assert claim(other, document(1, 11, run="other")).is_held


def test_hung_server_holds_up_one_question_only(server: Server, open_at: Opens, impatient: None) -> None:
    backend = open_at(server.address)
    with server.hung():
        for number in range(100):  # each of them would wait for as long
            with pytest.raises(StoreError):
                find(backend, number)
    reached(backend)
    assert find(backend, 1) == []


def test_restart_of_a_server_that_keeps_all(durable: Server, open_at: Opens, caplog: pytest.LogCaptureFixture) -> None:
    backend, other = open_at(durable.address), open_at(durable.address, "other")
    one, two, three = document(1, 11), document(2, 12), document(3, 13)
    backend.write([one])
    backend.flush(wait=True)
    assert claim(backend, two).is_held
    restart(durable)
    reached(backend)
    reached(other)
    backend.write([two, three])
    backend.flush(wait=True)
    assert [find(other, value) for value in (11, 12, 13)] == [[one.key], [two.key], [three.key]]
    assert [backend.count(key_of(value)) for value in (11, 12, 13)] == [1, 1, 1]
    assert not caplog.records


def test_restart_of_a_server_that_lost_all(server: Server, open_at: Opens, caplog: pytest.LogCaptureFixture) -> None:
    backend, other = open_at(server.address), open_at(server.address, "other")
    rows = [document(n, 10 + n, simhash=n) for n in range(1, 4)]
    backend.write([Entry("meta/made", {"format": 6}), Entry("run/run", Run("run", 5.0)), *rows[:2]])
    backend.flush(wait=True)
    assert keys_of(other.get(["meta/made"])) == ["meta/made"]
    assert claim(backend, rows[2]).is_held
    restart(server)
    reached(other)
    assert find(other, 11) == []
    assert keys_of(other.get(["meta/made"])) == ["meta/made"]
    reached(backend)
    assert caplog.text.count("lost this run") >= 1
    assert [find(other, value) for value in (11, 12, 13)] == [[each.key] for each in rows]
    [row] = other.find([Question(array("Q", [key_of(13)]), 1)])[0].rows[key_of(13)]
    assert row.is_pending
    backend.write(rows[2:])
    backend.flush(wait=True)
    assert held(open_at, server.address) == of(*rows)
    assert keys_of(other.scan("run")) == ["run/run"]
    assert near(other, 2, 0) == [rows[1].key]


def test_restart_of_a_server_that_lost_the_last_writes(server: Server, open_at: Opens) -> None:
    backend, other = open_at(server.address), open_at(server.address, "other")
    rows = [document(n, 10 + n) for n in range(1, 5)]
    theirs = [document(n, 20 + n, run="other") for n in range(1, 5)]
    backend.write(rows[:1])
    backend.flush(wait=True)
    server.tell("SAVE")
    backend.write(rows[1:3])
    other.write(theirs[:3])
    backend.flush(wait=True)
    other.flush(wait=True)
    restart(server)
    backend.write(rows[3:])
    other.write(theirs[3:])
    reached(backend)
    reached(other)
    assert held(open_at, server.address) == of(*theirs, *rows)
    assert [find(other, 10 + n) for n in range(1, 5)] == [[each.key] for each in rows]


def test_data_that_are_deleted_under_a_run(server: Server, open_at: Opens) -> None:
    backend = open_at(server.address)
    rows = [document(n, 10 + n) for n in range(1, 4)]
    backend.write(rows[:2])
    backend.flush(wait=True)
    server.tell("FLUSHALL")
    assert claim(backend, rows[2]).is_held
    backend.write(rows[2:])
    backend.flush(wait=True)
    assert held(open_at, server.address) == of(*rows)


def test_scripts_that_are_forgotten(server: Server, open_at: Opens) -> None:
    backend = open_at(server.address)
    server.tell("SCRIPT", "FLUSH")
    backend.write([document(1, 11)])
    assert find(backend, 11) == ["document/run/000001"]


def test_writes_while_the_server_is_away(durable: Server, open_at: Opens) -> None:
    backend = open_at(durable.address)
    durable.kill()
    rows = [document(n, 10 + n) for n in range(1, 301)]
    for each in rows:
        backend.write([each])
    with pytest.raises(StoreError, match=r"can't be used"):
        backend.flush(wait=False)
    durable.start()
    reached(backend)
    assert held(open_at, durable.address) == of(*rows)


# Leases


def test_run_whose_lease_lapsed_goes_on(server: Server, open_at: Opens, caplog: pytest.LogCaptureFixture) -> None:
    backend, other = open_at(server.address), open_at(server.address, "other")
    one, two = document(1, 11), document(2, 12)
    backend.write([one])
    assert claim(backend, two).is_held
    server.tell("DEL", backend.key("lease.", code("run")))
    assert not other.is_held("run")
    assert claim(other, document(1, 12, run="other")).is_held  # what the dead hold is held no more
    assert other.hold_run("run")
    other.write([], [one])  # as if it were dead
    other.flush(wait=True)
    with pytest.raises(StoreError, match="its lease of 10 seconds expired"):
        claim(backend, document(3, 13))
    other.release_run("run")
    assert claim(backend, document(3, 13)).is_held
    assert find(backend, 11) == [one.key]
    assert "rows are written again" in caplog.text
    backend.write([two])
    backend.flush(wait=True)
    assert two.key in find(backend, 12)


def test_renewed_lease_lasts(server: Server, open_at: Opens, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(servers, "LEASE", 0.4)
    renewed, renewals, run = threading.Event(), iter(range(6)), Namespace._tried

    def running(namespace: Namespace, requests: Any, *rest: Any) -> list[Any]:
        answers = run(namespace, requests, *rest)
        if any(each[0] == "lease" for each in requests) and next(renewals, None) is None:
            renewed.set()
        return answers

    monkeypatch.setattr(Namespace, "_tried", running)
    backend, other = open_at(server.address), open_at(server.address, "")
    assert renewed.wait(10)
    assert other.is_held("run")
    backend.close()
    until(lambda: not other.is_held("run"))


def test_runs_of_which_one_code_is_made_are_not_both_taken(
    server: Server, open_at: Opens, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in (backends, servers):
        monkeypatch.setattr(module, "code", lambda run: b"same")
    backend, other = open_at(server.address), open_at(server.address, "")
    assert not other.hold_run("other")
    backend.release_run("run")
    assert not other.hold_run("other")  # rows of the first may be there
    assert other.hold_run("run")


def test_rows_that_are_dropped_together_write_a_list_once(server: Server, open_at: Opens) -> None:
    backend = open_at(server.address)
    rows = [document(n, 11) for n in range(1, 61)]
    backend.write(rows)
    backend.flush(wait=True)
    server.tell("CONFIG", "RESETSTAT")
    backend.write([document(99, 11)], rows[:40:2])
    backend.flush(wait=True)
    written = server.tell("INFO", "commandstats")["cmdstat_set"]["calls"]
    assert find(backend, 11, 60) == of(*rows[1:40:2], *rows[40:], document(99, 11))
    assert written <= 2


# News


def test_documents_are_told_to_who_asked(server: Server, open_at: Opens) -> None:
    backend = open_at(server.address)
    backend.write([document(1, 11)])
    backend.flush(wait=True)
    with closing(RedisBackend(server.address, "", writes=True)) as hearing:
        hearing.hears_documents = True
        backend.write([document(2, 12)])
        backend.flush(wait=True)
        assert keys_of(hearing.news()[0]) == ["document/run/000002"]
        assert hearing.news() == ([], False)


def test_news_that_could_not_be_read_are_read_later(
    server: Server, open_at: Opens, monkeypatch: pytest.MonkeyPatch
) -> None:
    backend, other = open_at(server.address), open_at(server.address, "other")
    backend.write([Entry("run/run", Run("run", 5.0))])
    backend.flush(wait=True)
    with monkeypatch.context() as patched:
        patched.setattr(RedisBackend, "_get_named", failing)
        with pytest.raises(StoreError, match="away"):
            other.news()
    assert keys_of(other.news()[0]) == ["run/run"]


def failing(backend: RedisBackend, keys: list[str]) -> list[Any]:
    raise StoreError("it is away")


# Servers that belong together


@pytest.mark.slow
def test_store_follows_to_the_new_master(open_at: Opens) -> None:
    with Group() as group:
        sentinels = Sentinels(group)
        backend = open_at(sentinels.address)
        rows = [document(n, 10 + n) for n in range(1, 6)]
        backend.write(rows)
        backend.flush(wait=True)
        sentinels.fail_over()
        backend.write([document(6, 16)])
        reached(backend)
        assert [find(backend, 10 + n) for n in (2, 6)] == [[f"document/run/00000{n}"] for n in (2, 6)]


@pytest.mark.slow
def test_store_follows_its_keys_to_another_node(open_at: Opens) -> None:
    with Group() as group:
        cluster = Cluster(group)
        backend = open_at(cluster.address)
        rows = [document(n, 10 + n, simhash=n) for n in range(1, 6)]
        backend.write(rows)
        backend.flush(wait=True)

        def ask_halfway() -> None:
            with pytest.raises(StoreError):
                claim(backend, document(7, 12, run="run"))

        cluster.move(backend.root, ask_halfway)
        backend.write([document(6, 16)])
        reached(backend)
        assert keys_of(backend.scan("document")) == of(*rows, document(6, 16))
        assert find(backend, 12) == [rows[1].key]


# Refused


def test_full_server(server: Server, open_at: Opens) -> None:
    backend = open_at(server.address)
    one, two = document(1, 11), document(2, 12)
    backend.write([one])
    backend.flush(wait=True)
    server.tell("CONFIG", "SET", "maxmemory", "1")
    with pytest.raises(StoreError, match="it is full"):
        claim(backend, two)
    backend.write([two])
    with pytest.raises(StoreError, match="it is full"):
        backend.flush(wait=True)
    assert find(backend, 11) == [one.key]
    server.tell("CONFIG", "SET", "maxmemory", "0")
    backend.flush(wait=True)
    assert find(backend, 12) == [two.key]


def test_server_that_becomes_a_replica(server: Server, open_at: Opens) -> None:
    backend = open_at(server.address)
    server.tell("REPLICAOF", "127.0.0.1", "1")
    with pytest.raises(StoreError, match="replica"):
        claim(backend, document(1, 11))
    server.tell("REPLICAOF", "NO", "ONE")
    reached(backend)
    assert claim(backend, document(1, 11)).is_held


def test_one_damaged_key_keeps_no_other_row_from_being_written(server: Server, open_at: Opens) -> None:
    backend = open_at(server.address)
    backend.write([document(1, 11)])
    backend.flush(wait=True)
    spoil(server, backend, key_of(12))
    backend.write([document(n, 10 + n) for n in range(2, 6)])
    with pytest.raises(StoreError, match="stats --check"):
        backend.flush(wait=True)
    backend.flush(wait=True)
    assert [find(backend, 10 + n) for n in (1, 3, 4, 5)] == [[f"document/run/00000{n}"] for n in (1, 3, 4, 5)]


def test_a_damaged_key_costs_a_row_no_other_key(server: Server, open_at: Opens) -> None:
    backend = open_at(server.address)
    row = document(1, *range(11, 17), simhash=5)
    spoil(server, backend, key_of(13))
    backend.write([row])
    with pytest.raises(StoreError, match="stats --check"):
        backend.flush(wait=True)
    found = {value for value in range(11, 17) if value != 13 and find(backend, value)}
    assert (found, near(backend, 5, 0)) == ({11, 12, 14, 15, 16}, of(row))


def test_very_many_rows_of_one_key_are_deleted(server: Server, open_at: Opens) -> None:
    backend = open_at(server.address)
    rows = [document(n, 7, 100 + n, simhash=3) for n in range(1, 1001)]
    backend.write(rows)
    backend.write([], rows[1:])
    backend.flush(wait=True)
    assert (find(backend, 7), near(backend, 3, 0)) == (of(rows[0]), of(rows[0]))


def test_a_row_that_is_deleted_and_written_again_is_found(server: Server, open_at: Opens) -> None:
    backend = open_at(server.address)
    row = document(1, 11, simhash=3)
    backend.write([row])
    backend.write([], [row])
    backend.write([row])
    backend.flush(wait=True)
    assert (find(backend, 11), near(backend, 3, 0)) == (of(row), of(row))


def test_eviction_is_warned_of(server: Server, open_at: Opens, caplog: pytest.LogCaptureFixture) -> None:
    server.tell("CONFIG", "SET", "maxmemory", "100mb")
    server.tell("CONFIG", "SET", "maxmemory-policy", "allkeys-lru")
    backend = open_at(server.address)
    assert "noeviction" in caplog.text
    told: dict[str, Any] = backend.describe()
    assert told["eviction"] == "allkeys-lru"
    assert told["bytes_server"] > 0


def test_password_is_not_told() -> None:
    with pytest.raises(StoreError) as caught:
        RedisBackend("redis://:secret@127.0.0.1:1", "", writes=False)
    assert "secret" not in str(caught.value)
    assert "\n" not in str(caught.value)
