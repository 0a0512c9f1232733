"""The store on a server that fails: gone, hung, restarted, full, cut off. Nothing is lost, nothing hangs."""

from __future__ import annotations

import os
import random
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path

import pytest
from helpers import detectors, link, signature, text
from redis_server import Server
from tcp_proxy import TcpProxy

from scrapy_neardup import Deduplicator, Document
from scrapy_neardup.index.relations import Row
from scrapy_neardup.stores import StoreError
from scrapy_neardup.stores.redis import address, connection, late, operations, runs
from scrapy_neardup.stores.redis.scripts import script
from scrapy_neardup.stores.redis.store import RedisStore

KILLS = int(os.environ.get("NEARDUP_TEST_KILLS", "4"))


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(address, "SECONDS", 2.0)
    monkeypatch.setattr(connection, "PAUSES", (0.01, 0.1))


@pytest.fixture
def server() -> Iterator[Server]:
    started = Server()
    yield started
    started.close()


@pytest.fixture
def proxy(server: Server) -> Iterator[TcpProxy]:
    with TcpProxy(server.port) as made:
        yield made


def document(number: int, site: str = "a") -> Document:
    return Document(f"http://{site}.example/{number}", text(number))


def keep(dedup: Deduplicator, *numbers: int, site: str = "a") -> list[str]:
    """Claim and commit documents; return the verdicts."""
    statuses = []
    for number in numbers:
        claim = dedup.claim(document(number, site))
        claim.commit()
        statuses.append(claim.verdict.status)
    dedup.flush()
    return statuses


def store_of(dedup: Deduplicator) -> RedisStore:
    assert isinstance(dedup.store, RedisStore)
    return dedup.store


def held(server: Server) -> list[str]:
    """Return the URLs of the documents that are held, as one sees who opens the store anew."""
    with closing(RedisStore(server.address, (), run=None)) as store:
        return sorted(each.url or "" for each in store.signatures())


def urls(*numbers: int, site: str = "a") -> list[str]:
    return sorted(f"http://{site}.example/{number}" for number in numbers)


def reached(dedup: Deduplicator) -> None:
    """Wait until the server is reached again, and have late documents entered."""
    for _ in range(2000):
        try:
            if not dedup.store.refresh():
                return
        except StoreError:
            time.sleep(0.01)
    raise AssertionError("the server was not reached again")


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


CLOSED_WHILE_HUNG = """
import sys
from scrapy_neardup import Deduplicator, Document
from scrapy_neardup.stores import StoreError
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


# Workers that die, or seem to

WORKER = """
import random, sys
from helpers import edited, text
from scrapy_neardup import Deduplicator, Document
from scrapy_neardup.stores import StoreError
from scrapy_neardup.stores.redis import runs
runs.LEASE, runs.LEASE_MS = 1.0, 1000
address, seed, count, unclean, path = sys.argv[1:]
order = [(number, copy) for number in range(int(count)) for copy in range(3)]
random.Random(seed).shuffle(order)
dedup = Deduplicator.open(address, unclean_run=unclean)
with open(path, "a", buffering=1) as feed:
    pending = []
    for number, copy in order:
        claim = dedup.claim(Document(f"http://{copy}.example/{number}", edited(text(number), 9 * copy)))
        pending.append((number, claim))
        if len(pending) > 4:  # as items are on their way through later pipelines
            done, claim = pending.pop(0)
            if claim.verdict.status == "unique":
                feed.write(f"{done}\\n")
            claim.commit()
            if number % 7 == 0:
                dedup.flush()
    for done, claim in pending:
        if claim.verdict.status == "unique":
            feed.write(f"{done}\\n")
        claim.commit()
dedup.close()
print("closed", flush=True)
"""


def work(server: Server, seed: int, feed: Path, *, count: int = 60, unclean: str = "forget") -> subprocess.Popen[str]:
    arguments = (server.address, str(seed), str(count), unclean, str(feed))
    environment = {**os.environ, "PYTHONPATH": f"{Path(__file__).parent}:{os.environ.get('PYTHONPATH', '')}"}
    return subprocess.Popen(
        [sys.executable, "-c", WORKER, *arguments], env=environment, stdout=subprocess.PIPE, text=True
    )


def kept(feed: Path) -> list[int]:
    return [int(line) for line in feed.read_text().split("\n")[:-1]] if feed.exists() else []


def test_workers_that_are_killed_lose_nothing(server: Server, tmp_path: Path) -> None:
    """Of what a worker that died kept, its feed is lost, so others must keep it again; nobody waits for it for ever."""
    lives = tmp_path / "lives"
    survivor = work(server, 0, lives, count=40)
    ended: list[int] = []  # what was kept by those that were quicker
    for kill in range(KILLS):
        victim = work(server, kill + 1, tmp_path / f"dies{kill}", count=40)
        while len(kept(tmp_path / f"dies{kill}")) < random.Random(kill).randrange(1, 5) and victim.poll() is None:
            time.sleep(0.01)
        victim.kill()
        if victim.communicate()[0]:
            ended += kept(tmp_path / f"dies{kill}")
    assert survivor.communicate(timeout=60) == ("closed\n", None)
    time.sleep(1.5)  # until no lease is left
    last = work(server, 99, tmp_path / "last", count=40)
    assert last.communicate(timeout=60) == ("closed\n", None)
    assert sorted(kept(lives) + kept(tmp_path / "last") + ended) == list(range(40))
    assert server.tell("HLEN", "{neardup::1}:pending") == 0


def test_run_that_died_is_ended_by_those_that_live(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runs, "GRACE", 0.0)
    one = Deduplicator.open(server.address)
    with Deduplicator.open(server.address) as other:
        keep(one, 1)
        other.store.refresh()
        assert keep(other, 1, site="b") == ["duplicate"]
        store = store_of(one)
        store._abandon()
        server.tell("DEL", store.server.key(f"lease.{store.documents.run}"))
        store_of(other).runs_known.reached()
        other.store.refresh()
        assert keep(other, 1, site="c") == ["unique"]
        assert all(run.closed for run in other.store.runs() if run.id == one.store.run)


def test_worker_that_was_stopped_for_longer_than_its_lease_goes_on(server: Server, tmp_path: Path) -> None:
    stopped, feed = tmp_path / "stopped", tmp_path / "other"
    one = work(server, 1, stopped)
    while len(kept(stopped)) < 10:
        time.sleep(0.01)
    one.send_signal(signal.SIGSTOP)
    time.sleep(1.5)  # its lease runs out
    other = work(server, 2, feed)
    try:
        assert other.communicate(timeout=60) == ("closed\n", None)
    finally:
        one.send_signal(signal.SIGCONT)
    assert one.communicate(timeout=60) == ("closed\n", None)
    assert set(kept(stopped) + kept(feed)) == set(range(60))
    assert len(held(server)) >= 60
    assert server.tell("HLEN", "{neardup::1}:pending") == 0


# All at once


@pytest.mark.parametrize("seed", range(int(os.environ.get("NEARDUP_TEST_CHAOS", "2"))))
def test_of_each_document_a_copy_is_kept_whatever_the_network_does(server: Server, proxy: TcpProxy, seed: int) -> None:
    chosen, over, kept, lost = random.Random(seed), threading.Event(), set[int](), list[int]()
    unjudged, reconnects = list[int](), list[int]()

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
                    proxy.cut_before_answer(script(chosen.choice(["claim", "write", "fetch", "retake"])).sha)
                case 13 | 14 | 15 | 16:
                    proxy.cut()

    def work(address: str, order: list[int]) -> None:
        with Deduplicator.open(address) as dedup:
            begun.wait(30)
            for number in order:
                passed = document(number, str(number % 7))
                try:
                    claim = dedup.claim(passed)
                except StoreError:
                    kept.add(number)  # it passes
                    unjudged.append(number)
                    time.sleep(0.01)
                    signed = dedup.sign(passed)
                    store_of(dedup).remember(signed, [link(passed.url or "", signed)])
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
            reconnects.append(store_of(dedup).reconnects)

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
    print(f"{len(unjudged)} of 300 passed unjudged, {max(reconnects)} new connections")
    assert not lost
    assert {int(url.rpartition("/")[2]) for url in held(server)} == kept == {*orders[0], *orders[1]}
    assert server.tell("HLEN", "{neardup::1}:pending") == 0
