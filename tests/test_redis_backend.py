"""The back end on a server that fails: killed, restarted with or without its data, full, slow, cut off."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from typing import Any

import pytest
from helpers import until
from redis_server import Server
from tcp_proxy import TcpProxy
from test_backends import claim, document, find, id_at, key_of, keys_of, near, of, written

from scrapy_neardup.store import redis_server as servers
from scrapy_neardup.store.backend import Entry, StoreError
from scrapy_neardup.store.records import Run
from scrapy_neardup.store.redis import RedisBackend
from scrapy_neardup.store.redis_server import Server as Namespace
from scrapy_neardup.store.redis_server import code


@pytest.fixture
def open_at() -> Iterator[Callable[..., RedisBackend]]:
    """Open back ends; they are let go of at the end."""
    opened: list[RedisBackend] = []

    def opens(address: str, run: str = "run", namespace: str = "") -> RedisBackend:
        opened.append(made := RedisBackend(address, namespace, writes=bool(run)))
        if run:
            assert made.hold_run(run)
            made.write([Entry(f"run/{run}", Run(run, 5.0))])
            made.flush(wait=True)
        return made

    yield opens
    for each in opened:
        each.close()


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
    causes = set()
    with server.hung():
        for number in range(10):
            with pytest.raises(StoreError) as caught:
                find(backend, number)
            causes.add(caught.value.__cause__)
    assert len(causes) == 1  # the timeout for which the first one waited
    reached(backend)
    assert find(backend, 1) == []


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
    written(backend, [two])
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


def test_rows_that_are_dropped_together_write_a_list_once(server: Server, open_at: Opens) -> None:
    backend = open_at(server.address)
    rows = [document(n, 11) for n in range(1, 61)]
    written(backend, rows)
    server.tell("CONFIG", "RESETSTAT")
    written(backend, [document(99, 11)], rows[:40:2])
    calls = server.tell("INFO", "commandstats")["cmdstat_set"]["calls"]
    assert find(backend, 11, 60) == of(*rows[1:40:2], *rows[40:], document(99, 11))
    assert calls <= 2


def test_a_deletion_that_is_sent_again_cuts_nothing_that_is_written_after_it(server: Server, open_at: Opens) -> None:
    backend, entry = open_at(server.address), document(1, 11)
    written(backend, [entry])
    written(backend, [], [entry])
    backend.write([], [entry])  # its answer was lost
    written(backend, [entry])
    assert find(backend, 11) == of(entry)


# News


def test_documents_are_told_to_who_asked(server: Server, open_at: Opens) -> None:
    backend = open_at(server.address)
    written(backend, [document(1, 11)])
    with closing(RedisBackend(server.address, "", writes=True)) as hearing:
        written(backend, [document(2, 12)])
        assert hearing.news() == ([], False)
        assert keys_of(hearing.news(documents=True)[0]) == [id_at(2)]
        assert hearing.news(documents=True) == ([], False)


def test_news_that_could_not_be_read_are_read_later(
    server: Server, open_at: Opens, monkeypatch: pytest.MonkeyPatch
) -> None:
    backend, other = open_at(server.address), open_at(server.address, "")
    written(backend, [Entry("run/run", Run("run", 6.0))])
    with monkeypatch.context() as patched:
        patched.setattr(RedisBackend, "_rows_at", failing)
        with pytest.raises(StoreError, match="away"):
            other.news()
    assert keys_of(other.news()[0]) == ["run/run"]


def failing(backend: RedisBackend, keys: list[str]) -> list[Any]:
    raise StoreError("it is away")


# Refused


def test_one_damaged_key_keeps_no_other_row_from_being_written(server: Server, open_at: Opens) -> None:
    backend = open_at(server.address)
    written(backend, [document(1, 11)])
    spoil(server, backend, key_of(12))
    backend.write([document(n, 10 + n) for n in range(2, 6)])
    with pytest.raises(StoreError, match="stats --check"):
        backend.flush(wait=True)
    backend.flush(wait=True)
    assert [find(backend, 10 + n) for n in (1, 3, 4, 5)] == [[id_at(n)] for n in (1, 3, 4, 5)]


def test_a_damaged_key_costs_a_row_no_other_key(server: Server, open_at: Opens) -> None:
    backend = open_at(server.address)
    row = document(1, *range(11, 17), simhash=5)
    spoil(server, backend, key_of(13))
    backend.write([row])
    with pytest.raises(StoreError, match="stats --check"):
        backend.flush(wait=True)
    found = {value for value in range(11, 17) if value != 13 and find(backend, value)}
    assert (found, near(backend, 5, 0)) == ({11, 12, 14, 15, 16}, of(row))


def test_eviction_is_warned_of(server: Server, open_at: Opens, caplog: pytest.LogCaptureFixture) -> None:
    server.tell("CONFIG", "SET", "maxmemory", "100mb")
    server.tell("CONFIG", "SET", "maxmemory-policy", "allkeys-lru")
    backend = open_at(server.address)
    assert "noeviction" in caplog.text
    told: dict[str, Any] = backend.describe()
    assert told["eviction"] == "allkeys-lru"
    assert told["bytes_server"] > 0


def test_very_many_rows_of_one_key_are_deleted(server: Server, open_at: Opens) -> None:
    backend = open_at(server.address)
    rows = [document(n, 7, 100 + n, simhash=3) for n in range(1, 1001)]
    backend.write(rows)
    written(backend, [], rows[1:])
    assert (find(backend, 7), near(backend, 3, 0)) == (of(rows[0]), of(rows[0]))
