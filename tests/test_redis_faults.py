"""The store on a server that fails: gone, hung, restarted, full, cut off. Nothing is lost, nothing hangs."""

from __future__ import annotations

import socket
import time
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from pathlib import Path

import pytest
from helpers import detectors, link, signature, talking, text
from redis_faults import document, held, keep, reached, urls
from redis_server import Server
from store_kinds import ROOT
from tcp_proxy import TcpProxy

from scrapy_neardup import Deduplicator, Document
from scrapy_neardup.hosts import Trial
from scrapy_neardup.store import StoreError, open_store
from scrapy_neardup.store import redis_server as servers

pytestmark = pytest.mark.usefixtures("impatient")

# Answers that never come


@pytest.mark.parametrize("asked", [b"\xa4look", b"\xa3row"])
def test_what_was_done_though_its_answer_was_lost_is_done_once(server: Server, proxy: TcpProxy, asked: bytes) -> None:
    with Deduplicator.open(proxy.address) as dedup:
        assert keep(dedup, 1, 2) == ["unique", "unique"]
        proxy.cut_before_answer(asked)
        assert keep(dedup, 3, 3, 1) == ["unique", "revisit", "revisit"]
        assert keep(dedup, 4, site="b") == ["unique"]
        assert proxy.answers_lost == 1
        assert len(dedup) == 4
    assert held(server) == sorted(urls(1, 2, 3) + urls(4, site="b"))


def test_what_may_not_be_done_twice_is_not(server: Server, proxy: TcpProxy) -> None:
    trial = Trial(("a.example", "b.example"), ("", ""), ("", ""), 1, 0, 0, 0, 0, 1000.0)
    with closing(open_store(proxy.address, detectors())) as store:
        store.add(one := signature("one"))
        store.commit(one)
        store.flush()
        store.record(link("", one, is_copy=True))
        store.learn([trial])
        proxy.cut_before_answer(b"\xa3row")
        store.flush()
        assert proxy.answers_lost == 1
        assert [each.copy_count for each in store.signatures()] == [1]
        assert [len(store.session.load(row).trials) for row in store.backend.scan("host")] == [1]


# Hung, cut off


@pytest.mark.slow
def test_claims_go_on_when_a_network_that_dropped_all_is_back(server: Server, proxy: TcpProxy) -> None:
    with Deduplicator.open(proxy.address) as dedup:
        pending = dedup.claim(document(1))
        proxy.drop()
        with pytest.raises(StoreError):
            dedup.claim(document(2))
        with suppress(StoreError):  # of its URL
            pending.commit()
        proxy.cut()
        proxy.flow()
        reached(dedup)
        assert keep(dedup, 1, 2) == ["revisit", "unique"]
    assert held(server) == urls(1, 2)


CLOSED_WHILE_HUNG = """
import sys
from scrapy_neardup import Deduplicator, Document
from scrapy_neardup.store import StoreError
from scrapy_neardup.store import redis_server as servers
servers.SECONDS, servers.LEASE = 0.5, 0.5
dedup = Deduplicator.open(sys.argv[1])
dedup.claim(Document("http://a.example/1", "some words " * 50)).commit()
print("ready", flush=True)
sys.stdin.readline()
try:
    dedup.close()
except StoreError as error:
    print(error)
"""


@pytest.mark.slow
def test_a_process_can_end_while_the_server_is_hung(server: Server) -> None:
    with talking(CLOSED_WHILE_HUNG, server.address) as process:
        assert process.stdout.readline() == "ready\n"
        with server.hung():
            print(file=process.stdin)
            assert process.wait(60) == 0
        assert "can't be used" in process.stdout.read()


# Restarted


def restart(server: Server) -> None:
    server.kill()
    server.start()


@pytest.fixture
def durable() -> Iterator[Server]:
    with closing(Server("--appendonly", "yes", "--appendfsync", "always")) as started:
        yield started


def test_nothing_is_lost_when_a_server_restarts_with_its_data(
    durable: Server, caplog: pytest.LogCaptureFixture
) -> None:
    with Deduplicator.open(durable.address) as dedup, Deduplicator.open(durable.address) as other:
        keep(dedup, 1, 2)
        pending = dedup.claim(document(3))
        restart(durable)
        reached(dedup)
        pending.commit()
        assert keep(dedup, 4, 2) == ["unique", "revisit"]
        reached(other)
        assert keep(other, 1, 2, 3, 4, site="b") == 4 * ["duplicate"]
    assert held(durable) == urls(1, 2, 3, 4)
    assert not caplog.records


def test_what_a_restarted_server_lost_is_written_again(server: Server, caplog: pytest.LogCaptureFixture) -> None:
    with Deduplicator.open(server.address) as dedup, Deduplicator.open(server.address) as other:
        keep(dedup, 1, 2)
        keep(other, 10)
        assert keep(dedup, 1, 10, site="m") == ["duplicate", "duplicate"]
        pending, copy = dedup.claim(document(3)), dedup.claim(document(10, "n"))
        restart(server)
        reached(dedup)
        assert caplog.text.count("lost this run") == 1
        pending.commit()
        copy.commit()  # of a document that this process can't enter again
        assert keep(dedup, 4, 2) == ["unique", "revisit"]
        reached(other)
        assert keep(other, 1, 2, 3, 4, 10, site="b") == 5 * ["duplicate"]
        assert [link.is_copy for link in dedup.store.urls.all() if link.url == "http://m.example/1"] == [True]
    assert held(server) == urls(1, 2, 3, 4, 10)


def test_last_writes_that_a_restarted_server_lost_are_written_again(server: Server) -> None:
    with Deduplicator.open(server.address) as dedup, Deduplicator.open(server.address) as other:
        keep(dedup, 1)
        pending = dedup.claim(document(2))
        server.tell("SAVE")
        pending.commit()
        keep(other, 10, 11)
        keep(dedup, 3)
        restart(server)
        reached(dedup)
        assert keep(dedup, 20, 21) == ["unique", "unique"]  # they get numbers that 10 and 11 had
        assert keep(other, 21, site="b") == ["duplicate"]
        reached(other)
        assert keep(other, 11, 2, site="b") == ["duplicate", "duplicate"]
    assert held(server) == urls(1, 2, 3, 10, 11, 20, 21)


def test_one_damaged_row_hides_no_other_news(server: Server) -> None:
    other = open_store(server.address, ())
    with closing(open_store(server.address, detectors())) as store:
        server.tell("HSET", f"{ROOT}:run", "damaged", b"x")
        server.tell("XADD", f"{ROOT}:news", "*", "place", "key/run/damaged")
        other.close()
        with pytest.raises(StoreError, match="damaged"):
            store.refresh()
        assert {run.id: bool(run.closed) for run in store.runs()} == {other.run: True, store.run: False}


def test_a_claim_that_is_settled_while_the_server_is_away_is_written_afterwards(durable: Server) -> None:
    """What it shows of hosts that mirror each other is asked of the server, and is not what others wait for."""
    with Deduplicator.open(durable.address) as dedup, Deduplicator.open(durable.address) as other:
        keep(dedup, 1, 2, 3, 4)
        keep(dedup, 1, 2, 3, site="b")
        pending = dedup.claim(Document("http://b.example/4", text(5)))
        durable.kill()
        with pytest.raises(StoreError):
            pending.commit()
        durable.start()
        reached(dedup)
        dedup.flush()
        reached(other)
        twin = other.try_claim(document(5, "c"))
        assert (twin.verdict.duplicate_of, twin.is_early) == ("http://b.example/4", False)


# Refused


def fill_up(server: Server) -> None:
    server.tell("CONFIG", "SET", "maxmemory", "1")


def make_replica(server: Server) -> None:
    server.tell("REPLICAOF", "127.0.0.1", str(server.port))


def deny_scripts(server: Server) -> None:
    server.tell("ACL", "SETUSER", "default", "-evalsha", "-eval")


def fail_to_save(server: Server) -> None:
    server.tell("CONFIG", "SET", "save", "3600 1000000")
    Path(server.folder.name, "dump.rdb").mkdir()
    with suppress(Exception):
        server.tell("SAVE")
    server.tell("BGSAVE")
    while server.tell("INFO", "persistence")["rdb_last_bgsave_status"] != "err":
        time.sleep(0.01)


@pytest.mark.parametrize(
    ("spoil", "mend", "said"),
    [
        (fill_up, ("CONFIG", "SET", "maxmemory", "0"), "it is full"),
        (make_replica, ("REPLICAOF", "NO", "ONE"), "it is a replica; name the master"),
        (fail_to_save, ("CONFIG", "SET", "stop-writes-on-bgsave-error", "no"), "unable to persist to disk"),
        (deny_scripts, ("ACL", "SETUSER", "default", "+evalsha", "+eval"), "has no permissions to run"),
    ],
)
def test_a_server_that_refuses_is_an_error_that_says_why(
    server: Server, spoil: Callable[[Server], None], mend: tuple[str, ...], said: str
) -> None:
    with Deduplicator.open(server.address) as dedup:
        keep(dedup, 1)
        pending = dedup.claim(document(2))
        spoil(server)
        with pytest.raises(StoreError, match=said) as caught:
            dedup.claim(document(3))
        assert "\n" not in str(caught.value)
        with suppress(StoreError):
            pending.commit()
        # A full server takes what begins with letting go of something.
        with suppress(StoreError) if spoil is fill_up else pytest.raises(StoreError):
            dedup.flush()
        server.tell(*mend)
        reached(dedup)
        assert keep(dedup, 3) == ["unique"]
    assert held(server) == urls(1, 2, 3)


def test_full_server_still_finds(server: Server) -> None:
    with Deduplicator.open(server.address) as dedup:
        keep(dedup, 1)
        fill_up(server)
        copy = dedup.claim(document(1, "b"))
        assert copy.verdict.status == "duplicate"
        copy.commit()
        assert dedup.claim(document(1, "c")).verdict.status == "duplicate"
        server.tell("CONFIG", "SET", "maxmemory", "0")
        dedup.flush()
        assert dedup.store.resolve("http://b.example/1")


@pytest.mark.parametrize(
    ("options", "user", "said"),
    [
        (("--requirepass", "secret"), "", "Authentication required"),
        (("--requirepass", "secret"), "me:wrong@", "invalid username-password pair"),
        (("--maxclients", "1"), "", "max number of clients reached"),
    ],
)
def test_a_server_that_takes_nobody_in_is_an_error_that_says_why(
    options: tuple[str, ...], user: str, said: str
) -> None:
    with closing(Server(*options)) as server:
        with socket.create_connection(("127.0.0.1", server.port)), pytest.raises(StoreError, match=said) as caught:
            open_store(server.address.replace("//", f"//{user}"), detectors())
        assert "\n" not in str(caught.value)
        assert "wrong@" not in str(caught.value)


@pytest.mark.slow
def test_a_server_that_still_loads_is_an_error_and_is_tried_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(servers, "SECONDS", 5.0)  # it answers slowly meanwhile
    options = ("--loading-process-events-interval-bytes", "1024", "--rdbcompression", "no")
    with closing(Server(*options)) as server, Deduplicator.open(server.address) as dedup:
        keep(dedup, *range(20))
        server.tell("MSET", *(part for n in range(200) for part in (f"other{n}", 1000 * "x")))
        server.tell("SAVE")
        server.kill()
        server.start("--key-load-delay", "20000")
        with pytest.raises(StoreError, match="is loading the dataset"):
            open_store(server.address, detectors())
        reached(dedup)
        assert keep(dedup, *range(20)) == 20 * ["revisit"]


# In between


def test_writes_are_refused_when_too_many_wait_for_the_server(durable: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    with closing(open_store(durable.address, detectors())) as store:
        store.add(one := signature("one"))
        store.commit(one)
        store.flush()
        durable.kill()
        monkeypatch.setattr(servers, "MOST", 2)
        for number, told in enumerate(["can't be used", "can't be used", "wait for the server"]):
            with pytest.raises(StoreError, match=told):
                store.record(link(f"http://m.example/{number}", one))
        durable.start()
        store.backend.reach()
        store.flush()
        assert [each.url for each in store.visits(one)] == [f"http://m.example/{number}" for number in range(2)]
