"""The store on a server that fails: gone, hung, restarted, full, cut off. Nothing is lost, nothing hangs."""

from __future__ import annotations

import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path

import pytest
from helpers import detectors, link, signature, text
from redis_faults import document, held, keep, reached, store_of, urls
from redis_server import Server
from tcp_proxy import TcpProxy

from scrapy_neardup import Deduplicator, Document
from scrapy_neardup.index.relations import Row
from scrapy_neardup.store import StoreError
from scrapy_neardup.stores.redis import address, late, operations
from scrapy_neardup.stores.redis.scripts import script
from scrapy_neardup.stores.redis.store import RedisStore

pytestmark = pytest.mark.usefixtures("impatient")

# Answers that never come


@pytest.mark.parametrize("asked", ["claim", "write", "fetch", "resolve"])
def test_what_was_done_though_its_answer_was_lost_is_done_once(server: Server, proxy: TcpProxy, asked: str) -> None:
    with Deduplicator.open(proxy.address) as dedup:
        assert keep(dedup, 1, 2) == ["unique", "unique"]
        proxy.cut_before_answer(script(asked).sha)
        assert keep(dedup, 3, 3, 1) == ["unique", "revisit", "revisit"]
        assert keep(dedup, 4, site="b") == ["unique"]
        assert proxy.answers_lost == 1
        assert store_of(dedup).reconnects == 1
        assert len(dedup) == 4
    assert held(server) == sorted(urls(1, 2, 3) + urls(4, site="b"))


def test_what_may_not_be_done_twice_is_not(server: Server, proxy: TcpProxy) -> None:
    trial = Row(("a.example", "b.example"), ("", ""), ("", ""), 1, 0, 0, 0, 0, 1000.0)
    with closing(RedisStore(proxy.address, detectors())) as store:
        store.add(one := signature("one"))
        store.commit(one)
        store.flush()
        store.repeat(one)
        store.learn([trial])
        proxy.cut_before_answer(script("write").sha)
        store.flush()
        assert proxy.answers_lost == 1
        assert list(store.degrees()) == [1]
        assert len(list(store.learned.all())) == 1


@pytest.mark.slow
def test_late_answer_to_a_claim_leaves_nothing_pending(server: Server, proxy: TcpProxy) -> None:
    with Deduplicator.open(proxy.address) as dedup:
        keep(dedup, 1)
        proxy.stall()
        with pytest.raises(StoreError, match="Timeout"):
            dedup.claim(document(2))
        assert store_of(dedup).server.connection.is_away
        proxy.flow()  # the server is told of the claim now
        reached(dedup)
        assert server.tell("HLEN", store_of(dedup).server.key("pending")) == 0
        assert keep(dedup, 2) == ["unique"]
    assert held(server) == urls(1, 2)


# Hung, cut off


def test_hung_server_holds_up_one_claim_only(server: Server) -> None:
    with Deduplicator.open(server.address) as dedup:
        keep(dedup, 1)
        asked = store_of(dedup).server.connection.made
        with server.hung():
            for number in range(2, 500):  # each of them would wait for two seconds
                with pytest.raises(StoreError):
                    dedup.claim(document(number % 5))
            assert store_of(dedup).server.connection.made == asked
        reached(dedup)
        assert keep(dedup, 2, 1) == ["unique", "revisit"]
    assert held(server) == urls(1, 2)


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


def test_connection_that_was_closed_is_made_anew_at_once(server: Server, proxy: TcpProxy) -> None:
    with Deduplicator.open(proxy.address) as dedup:
        for number in range(20):
            assert keep(dedup, number) == ["unique"]
            proxy.cut()
        assert keep(dedup, *range(20)) == 20 * ["revisit"]
    assert held(server) == urls(*range(20))


@contextmanager
def started(code: str, *arguments: str) -> Iterator[subprocess.Popen[str]]:
    """Run code in a process of its own, which is ended if it has not ended by then."""
    with subprocess.Popen(
        [sys.executable, "-c", code, *arguments], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        try:
            yield process
        finally:
            process.kill()


CLOSED_WHILE_HUNG = """
import sys
from scrapy_neardup import Deduplicator, Document
from scrapy_neardup.store import StoreError
from scrapy_neardup.stores.redis import address, runs, store
address.SECONDS, store.LEASE = 0.5, 0.5
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
def test_process_ends_while_the_server_is_hung(server: Server) -> None:
    with started(CLOSED_WHILE_HUNG, server.address) as process:
        assert process.stdout
        assert process.stdout.readline() == "ready\n"
        with server.hung():
            told, _ = process.communicate("\n", timeout=60)
    assert "can't be asked" in told
    assert process.returncode == 0


# Restarted


def restart(server: Server) -> None:
    server.kill()
    server.start()


@pytest.fixture
def durable() -> Iterator[Server]:
    started = Server("--appendonly", "yes", "--appendfsync", "always")
    yield started
    started.close()


def test_restart_of_a_server_that_keeps_all(durable: Server, caplog: pytest.LogCaptureFixture) -> None:
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


def test_restart_of_a_server_that_lost_all(server: Server, caplog: pytest.LogCaptureFixture) -> None:
    with Deduplicator.open(server.address) as dedup, Deduplicator.open(server.address) as other:
        keep(dedup, 1, 2)
        keep(other, 10)
        assert keep(dedup, 1, 10, site="m") == ["duplicate", "duplicate"]
        pending, copy = dedup.claim(document(3)), dedup.claim(document(10, "n"))
        restart(server)
        reached(dedup)
        assert caplog.text.count("has lost what this run wrote") == 1
        pending.commit()
        copy.commit()  # of a document that this process can't enter again
        assert keep(dedup, 4, 2) == ["unique", "revisit"]
        reached(other)
        assert keep(other, 1, 2, 3, 4, 10, site="b") == 5 * ["duplicate"]
        assert [link.mirror for link in dedup.store.all_links() if link.url == "http://m.example/1"] == [True]
    assert held(server) == urls(1, 2, 3, 4, 10)


def test_restart_of_a_server_that_lost_the_last_writes(server: Server) -> None:
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


def test_data_that_are_deleted_under_a_crawl(server: Server) -> None:
    with Deduplicator.open(server.address) as dedup:
        keep(dedup, 1, 2)
        server.tell("FLUSHALL")
        assert keep(dedup, 3) == ["unique"]
        reached(dedup)
        assert keep(dedup, 1) == ["revisit"]
    assert held(server) == urls(1, 2, 3)


def test_claim_that_is_settled_while_the_server_is_away(durable: Server) -> None:
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
    ("spoil", "mend", "advice"),
    [
        (fill_up, ("CONFIG", "SET", "maxmemory", "0"), "it is full"),
        (make_replica, ("REPLICAOF", "NO", "ONE"), "it is a replica; name the master"),
        (fail_to_save, ("CONFIG", "SET", "stop-writes-on-bgsave-error", "no"), "it can't write its disk"),
        (deny_scripts, ("ACL", "SETUSER", "default", "+evalsha", "+eval"), "this user may not do that"),
    ],
)
def test_server_that_refuses(
    server: Server, spoil: Callable[[Server], None], mend: tuple[str, ...], advice: str
) -> None:
    with Deduplicator.open(server.address) as dedup:
        keep(dedup, 1)
        pending = dedup.claim(document(2))
        spoil(server)
        with pytest.raises(StoreError, match=advice) as caught:
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


def test_operation_that_a_damaged_key_refuses_holds_up_no_other(server: Server) -> None:
    with Deduplicator.open(server.address) as dedup:
        claims = [dedup.claim(document(number)) for number in range(20)]
        server.tell("HSET", "{neardup::1}o\0\0\0\0", "field", "value")  # in place of which URLs lead to the first 16
        for claim in claims:
            claim.commit()
        with pytest.raises(StoreError, match="WRONGTYPE"):
            dedup.flush()
        assert server.tell("HLEN", "{neardup::1}:pending") == 0
        assert keep(dedup, 18, site="b") == ["duplicate"]
    assert held(server) == urls(*range(20))


@pytest.mark.parametrize(
    ("options", "user", "advice"),
    [
        (("--requirepass", "secret"), "", "it wants a password"),
        (("--requirepass", "secret"), "me:wrong@", "the user or the password is wrong"),
        (("--maxclients", "1"), "", "it has too many clients"),
    ],
)
def test_server_that_takes_nobody_in(options: tuple[str, ...], user: str, advice: str) -> None:
    server = Server(*options)
    try:
        with socket.create_connection(("127.0.0.1", server.port)), pytest.raises(StoreError, match=advice) as caught:
            RedisStore(server.address.replace("//", f"//{user}"), detectors())
        assert "\n" not in str(caught.value)
        assert "wrong@" not in str(caught.value)
    finally:
        server.close()


@pytest.mark.slow
def test_server_that_still_loads(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(address, "SECONDS", 5.0)  # it answers slowly meanwhile
    server = Server("--loading-process-events-interval-bytes", "1024", "--rdbcompression", "no")
    try:
        with Deduplicator.open(server.address) as dedup:
            keep(dedup, *range(20))
            server.tell("MSET", *(part for n in range(200) for part in (f"other{n}", 1000 * "x")))
            server.tell("SAVE")
            server.kill()
            server.start("--key-load-delay", "20000")
            with pytest.raises(StoreError, match="it is still loading its data; try again"):
                RedisStore(server.address, detectors())
            reached(dedup)
            assert keep(dedup, *range(20)) == 20 * ["revisit"]
    finally:
        server.close()


def test_server_that_drops_keys_is_told_of(server: Server, caplog: pytest.LogCaptureFixture) -> None:
    server.tell("CONFIG", "SET", "maxmemory", "100mb")
    with closing(RedisStore(server.address, detectors())):
        assert not caplog.records
    server.tell("CONFIG", "SET", "maxmemory-policy", "allkeys-lru")
    with closing(RedisStore(server.address, detectors())):
        assert "set its maxmemory-policy to noeviction instead of allkeys-lru" in caplog.text


# In between


@pytest.mark.slow
def test_documents_that_passed_meanwhile_are_found_later(server: Server) -> None:
    with Deduplicator.open(server.address) as dedup:
        store = store_of(dedup)
        keep(dedup, 1)
        with server.hung():
            for passed in (document(1, "b"), document(2), document(2, "b")):
                with pytest.raises(StoreError):
                    dedup.claim(passed)
                signed = dedup.sign(passed)
                store.remember(signed, [link(passed.url or "", signed)])
        reached(dedup)
        assert store.late.entered == 3
        assert keep(dedup, 2, site="c") == ["duplicate"]
        assert [each.mirror for each in map(store.resolve, urls(1, 2, site="b")) if each] == [True, True]
    assert held(server) == urls(1, 2)


def test_only_so_many_documents_are_remembered(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(late, "MOST", 3)
    with closing(RedisStore(server.address, detectors())) as store:
        for number in range(5):
            store.remember(signature(str(number), exact=number, simhash=number << 40), ())
        assert (len(store.late), store.late.dropped) == (3, 2)
    assert held(server) == [f"http://site.example/{number}" for number in (2, 3, 4)]


def test_only_so_much_is_queued(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(operations, "WAITING", 3)
    with closing(RedisStore(server.address, detectors())) as store:
        store.add(one := signature("one"))
        for number in range(3):
            store.record(link(f"http://m.example/{number}", one))
        with pytest.raises(StoreError, match="no more fit"):
            store.record(link("http://m.example/3", one))
        store.commit(one)  # so that nobody waits for it
        store.flush()
        assert len(list(store.links(one))) == 3
