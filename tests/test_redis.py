"""The store on a server: runs, several processes, addresses, and servers that fail."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from typing import Any

import pytest
from helpers import detectors, link, names, signature, sketch
from redis_faults import Killed, killed_after
from redis_server import Server, free_port, server
from store_inputs import Keys

from scrapy_neardup.fingerprints.hashing import MULTIPLIER
from scrapy_neardup.signature import Signature
from scrapy_neardup.stores import Selection, Store, StoreError, open_store
from scrapy_neardup.stores.redis import runs
from scrapy_neardup.stores.redis.address import named
from scrapy_neardup.stores.redis.connection import Connection
from scrapy_neardup.stores.redis.exporting import read
from scrapy_neardup.stores.redis.server import Server as RedisServer
from scrapy_neardup.stores.redis.store import RedisStore, root_of
from scrapy_neardup.stores.search import salt
from scrapy_neardup.stores.verifying import verify


@pytest.fixture
def namespace(request: pytest.FixtureRequest) -> str:
    return request.node.name


@pytest.fixture
def own_server() -> Iterator[Server]:
    started = Server()
    yield started
    started.close()


def opened(namespace: str, **options: Any) -> RedisStore:
    return RedisStore(server().address, detectors(), namespace=namespace, **options)


def commit(store: Store, *given: Signature) -> None:
    for each in given:
        store.add(each)
        store.commit(each)
        store.record(link(each.url or "", each))
    store.flush()


def fill(namespace: str, *keys: str, **options: Any) -> None:
    with closing(opened(namespace, **options)) as store:
        commit(store, *map(signature, keys))


def die(namespace: str, *keys: str, **options: Any) -> None:
    """Commit documents in a run of which the lease runs out."""
    store = opened(namespace, **options)
    commit(store, *map(signature, keys))
    store.server.run([("DEL", store.server.key(f"lease.{store.documents.run}"))])
    store._abandon()


def before_asking(patch: pytest.MonkeyPatch, name: str, *acts: Callable[[], object]) -> None:
    """Have something happen each of the next times that a script is to be run, before it is."""
    ask, waiting = RedisServer.ask, list(acts)

    def acting(server: RedisServer, script: str, *arguments: Any) -> Any:
        if script == name and waiting:
            waiting.pop(0)()
        return ask(server, script, *arguments)

    patch.setattr(RedisServer, "ask", acting)


def let_lapse(namespace: str, run: str) -> None:
    """Have the lease of a run be out."""
    root = root_of(namespace)
    number = int(server().tell("HGET", f"{root}:numbers", run))
    server().tell("DEL", f"{root}:lease.{number}")


def held(store: Store) -> list[str]:
    return sorted(names(store.signatures()))


def test_namespaces_are_apart(namespace: str) -> None:
    fill(f"{namespace}/{{1", "a")
    fill(f"{namespace}/", "b")
    for each, expected in ((f"{namespace}/{{1", ["a"]), (f"{namespace}/", ["b"]), (namespace, [])):
        with closing(opened(each, run=None)) as store:
            assert held(store) == expected


@pytest.mark.parametrize(("unclean", "expected"), [("forget", ["old"]), ("keep", ["lost", "old", "too"])])
def test_documents_of_a_run_that_died(namespace: str, unclean: str, expected: list[str]) -> None:
    fill(namespace, "old")
    die(namespace, "lost", "too")
    with closing(opened(namespace, unclean_run=unclean)) as store:
        assert held(store) == expected
        assert len(store) == len(expected)
        assert bool(store.resolve("http://site.example/lost")) == ("lost" in expected)
        assert all(run.closed for run in store.runs() if run.id != store.run)


def test_resumed_run_that_died_loses_only_what_came_after_it_was_paused(namespace: str) -> None:
    fill(namespace, "a", run="job")
    die(namespace, "lost", run="job")
    with closing(opened(namespace, run="job")) as store:
        assert (store.run, held(store)) == ("job", ["a"])
        commit(store, signature("b"))
    with closing(opened(namespace)) as store:
        assert held(store) == ["a", "b"]


def test_run_that_was_killed_while_it_began(own_server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runs, "GRACE", 0.0)
    moment = 0
    for moment in range(100):
        store = RedisStore(own_server.address, detectors(), namespace=str(moment))
        commit(store, signature("lost"))
        store._abandon()
        end_leases(own_server)
        with monkeypatch.context() as patched, suppress(Killed):
            patched.setattr(Connection, "exchange", killed_after(moment))
            RedisStore(own_server.address, detectors(), namespace=str(moment)).close()
            break
        end_leases(own_server)
        RedisStore(own_server.address, detectors(), namespace=str(moment)).close()
        assert not own_server.tell("KEYS", "*holders")
    assert moment > 20
    assert verify(own_server.address).whole


def end_leases(server: Server) -> None:
    """Have all runs be taken for dead."""
    for lease in server.tell("KEYS", "*lease*"):
        server.tell("DEL", lease)


def test_run_that_is_resumed_while_another_still_undoes_it(namespace: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runs, "AT_ONCE", 2)
    die(namespace, *map(str, range(4)), run="job")
    resumed: list[RedisStore] = []

    def resume() -> None:
        let_lapse(namespace, "job")
        resumed.append(opened(namespace, run="job"))
        commit(resumed[0], *map(signature, "abcd"))

    before_asking(monkeypatch, "undo", int, resume)
    opened(namespace).close()
    assert (resumed[0].run, held(resumed[0])) == ("job", ["a", "b", "c", "d"])
    resumed[0].close()
    with closing(opened(namespace)) as store:
        assert held(store) == ["a", "b", "c", "d"]


def test_run_is_held_for_as_long_as_it_is_undone(namespace: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runs, "AT_ONCE", 2)
    die(namespace, *map(str, range(4)), run="job")
    lives: list[bool] = []
    with closing(opened(namespace, run=None)) as looking:
        before_asking(
            monkeypatch, "undo", int, lambda: let_lapse(namespace, "job"), lambda: lives.append(looking.is_alive("job"))
        )
        opened(namespace).close()
        assert lives == [True]
        assert not looking.is_alive("job")
        assert held(looking) == []


def test_run_can_not_be_resumed_while_it_is_forgotten(namespace: str, monkeypatch: pytest.MonkeyPatch) -> None:
    fill(namespace, "a", run="job")
    resumed: list[RedisStore] = []

    def resume() -> None:
        resumed.append(opened(namespace, run="job"))
        commit(resumed[0], signature("b"))

    with closing(opened(namespace)) as store:
        before_asking(monkeypatch, "scan", resume)
        assert store.forget(Selection(run="job")) == (1, 1)
        assert (resumed[0].run, held(resumed[0])) == ("job-1", ["b"])
        assert [run.closed is not None for run in store.runs() if run.forgotten] == [True]
        assert not store.is_alive("job")
    resumed[0].close()


def test_run_that_is_resumed_all_the_same_is_not_forgotten(namespace: str, monkeypatch: pytest.MonkeyPatch) -> None:
    fill(namespace, "a", run="job")
    resumed: list[RedisStore] = []

    def resume() -> None:
        let_lapse(namespace, "job")
        resumed.append(opened(namespace, run="job"))
        commit(resumed[0], signature("b"))

    with closing(opened(namespace)) as store:
        before_asking(monkeypatch, "scan", resume)
        with pytest.raises(StoreError, match="was resumed meanwhile"):
            store.forget(Selection(run="job"))
    assert (resumed[0].run, held(resumed[0])) == ("job", ["a", "b"])
    resumed[0].close()


def test_run_that_died_is_ended_before_it_is_forgotten(namespace: str) -> None:
    fill(namespace, "a", run="job")
    with closing(opened(namespace)) as store:
        dead = opened(namespace, run="job")
        commit(dead, signature("lost"))
        dead.add(signature("pending"))
        let_lapse(namespace, "job")
        dead._abandon()
        assert store.forget(Selection(run="job")) == (1, 1)
        assert (held(store), len(store)) == ([], 0)
        assert [bool(run.closed) for run in store.runs() if run.id == "job"] == [True]
    assert server().tell("HLEN", f"{root_of(namespace)}:pending") == 0


def test_live_run_is_left_alone(namespace: str) -> None:
    with closing(opened(namespace)) as store:
        commit(store, signature("a"))
        with closing(opened(namespace)) as other:
            assert held(other) == ["a"]
            assert other.is_alive(store.run)
        commit(store, signature("b"))
    with closing(opened(namespace, run=None)) as store:
        assert held(store) == ["a", "b"]


def test_run_that_was_taken_for_dead_goes_on(namespace: str, caplog: pytest.LogCaptureFixture) -> None:
    store = opened(namespace)
    commit(store, signature("a", exact=2))
    store.server.run([("DEL", store.server.key(f"lease.{store.documents.run}"))])
    fill(namespace, "b")
    store.close()
    assert "took it for dead: 1 documents are entered again" in caplog.text
    with closing(opened(namespace, run=None)) as other:
        assert held(other) == ["a", "b"]
        assert other.resolve("http://site.example/a")
        assert all(run.closed for run in other.runs())


def test_other_scheme_of_a_detector_is_refused(namespace: str, monkeypatch: pytest.MonkeyPatch) -> None:
    fill(namespace, "a")
    monkeypatch.setattr("scrapy_neardup.detectors.Exact.scheme", "exact/2")
    with pytest.raises(StoreError, match="'exact/2'"):
        opened(namespace)


def test_tables_grow_and_nothing_is_lost(namespace: str) -> None:
    with closing(opened(namespace)) as store:
        for number in range(6000):
            store.record(link(f"http://site.example/{number}", None))
        store.flush()
        assert sum(1 for _ in store.all_links()) == 6000
        assert all(store.resolve(f"http://site.example/{number}") for number in range(0, 6000, 100))


def test_entries_of_a_table_that_tells_more_of_their_hashes(namespace: str) -> None:
    """Of 2^20 buckets, the last one that is split: from there on a tag has two bytes, and a number four."""
    hashes = [number % 7 << 20 | number % 3 // 2 << 19 | (1 << 19) - 1 for number in range(40)]
    first = [signature(f"{n}", exact=key_of_hash(hashed)) for n, hashed in enumerate(hashes)]
    later = [signature(f"later{n}", exact=key_of_hash(hashed)) for n, hashed in enumerate(hashes)]
    with closing(opened(namespace)) as store:
        grow(store, 0, (1 << 20) - 1)
        commit(store, *first)
        assert in_buckets(store) == sorted(zip(hashes, range(40), strict=True))
        grow(store, (1 << 24) - 16, (1 << 20) - 1)
        commit(store, *later)
        assert store.documents.state()[:2] == [(1 << 24) + 24, (1 << 20) + 2]
        numbers = [*range(40), *range((1 << 24) - 16, (1 << 24) + 24)]
        assert in_buckets(store) == sorted(zip(hashes * 2, numbers, strict=True))
        for hashed in {*hashes}:
            expected = [each.url for each in (*first, *later) if each.fingerprints["exact"] == (key_of_hash(hashed),)]
            assert [s.url for _, s in store.find({"exact": (key_of_hash(hashed),)})] == expected
        for each in later:
            store.withdraw(each)
        assert in_buckets(store) == sorted(zip(hashes, range(40), strict=True))


def in_buckets(store: RedisStore) -> list[tuple[int, int]]:
    """Return the hashes and numbers in the bucket that is split last of 2^20, and in what it is split into."""
    found = []
    for place in ((1 << 19) - 1, (1 << 20) - 1):
        buckets, values = store.server.ask("scan", "k", place, 1)
        for value in filter(None, values):
            found += zip(*(column.tolist() for column in read(buckets, place, value)), strict=True)
    return sorted(found)


def grow(store: RedisStore, number: int, buckets: int) -> None:
    """Have a store say that the next document has that number, and that its table has grown so far."""
    state = store.documents.state() if number else [0, 4096, 0, 1024, 0, 256, 0]
    counts = b"".join(each.to_bytes(5, "big") for each in [number, buckets, *state[2:]])
    store.server.run([("HSET", f"{store.server.root}k", "state", counts)])


def key_of_hash(hashed: int) -> int:
    """Return a fingerprint of the detector `exact` with that hash of 36 bits."""
    return (hashed << 28) * pow(int(MULTIPLIER), -1, 1 << 64) % (1 << 64) ^ salt("exact")


def test_very_many_of_one_fingerprint(namespace: str) -> None:
    with closing(opened(namespace)) as store:
        commit(store, *(signature(str(number), exact=7, simhash=number << 20) for number in range(200)))
        assert names(s for _, s in store.find({"exact": (7,)})) == [str(number) for number in range(184, 200)]
        for each in list(store.signatures())[100:]:
            store.withdraw(each)
        assert names(s for _, s in store.find({"exact": (7,)})) == [str(number) for number in range(84, 100)]


def test_very_many_fingerprints_of_one_document(namespace: str) -> None:
    many = Signature("http://site.example/many", {"keys": tuple(range(9000))}, sketch(), 1000.0)
    with closing(RedisStore(server().address, [Keys()], namespace=namespace)) as store:
        commit(store, many)
        assert names(s for _, s in store.find(many.fingerprints)) == ["many"]
        assert names(s for _, s in store.find({"keys": (8999, 9000)})) == ["many"]
        store.withdraw(many)
        assert not list(store.find(many.fingerprints))


# The server


def test_document_of_very_many_urls_goes_with_all_of_them(namespace: str) -> None:
    often, other = signature("often", exact=2), signature("other", exact=3, simhash=2**40)
    with closing(opened(namespace)) as store:
        commit(store, often, other)
        for number in range(3000):
            store.record(link(f"http://mirror.example/{number}", often, mirror=True))
            if number % 1000 == 0:
                store.record(link(f"http://other.example/{number}", other, mirror=True))
        store.flush()
        before = server().tell("INFO", "commandstats")["cmdstat_set"]["calls"]
        assert store.forget(Selection(url=often.url)) == (1, 3001)
        store.flush()
        assert server().tell("INFO", "commandstats")["cmdstat_set"]["calls"] - before < 100  # its list is written once
        assert sorted(each.url for each in store.all_links()) == sorted(each.url for each in store.links(other))
        assert [each.url.rpartition("/")[2] for each in store.links(other)] == ["other", "0", "1000", "2000"]
        assert (held(store), list(store.degrees()), store.describe()["urls"]) == (["other"], [3], 4)


def test_server_that_is_not_there() -> None:
    address = f"redis://user:secret@127.0.0.1:{free_port()}"
    start = time.monotonic()
    with pytest.raises(StoreError) as caught:
        open_store(address, detectors())
    assert time.monotonic() - start < 60
    assert "user:***@127.0.0.1" in str(caught.value)
    assert "secret" not in str(caught.value)
    assert "\n" not in str(caught.value)


def test_server_that_forgot_the_scripts(own_server: Server) -> None:
    with closing(RedisStore(own_server.address, detectors())) as store:
        commit(store, signature("a"))
        store.server.run([("SCRIPT", "FLUSH")])
        store.record(link("http://m.example/1", None))
        commit(store, signature("b"))
        assert held(store) == ["a", "b"]
        assert store.documents.next_number == 2
        assert store.resolve("http://m.example/1")


def test_what_could_not_be_sent_is_sent_later(own_server: Server) -> None:
    store = RedisStore(own_server.address, detectors())
    commit(store, signature("a"))
    store.server.run([("CONFIG", "SET", "maxmemory", "1")])
    store.record(link("http://m.example/1", None))
    with pytest.raises(StoreError, match="it is full"):
        store.flush()
    lift(own_server)
    store.flush()
    assert store.resolve("http://m.example/1")
    store.close()


def lift(own_server: Server) -> None:
    import redis

    with closing(redis.Redis(port=own_server.port)) as client:
        client.config_set("maxmemory", "0")


@pytest.mark.parametrize(
    ("address", "shown"),
    [
        ("redis://h:1/0", "redis://h:1/0"),
        ("rediss://:p@h", "rediss://:***@h"),
        ("redis://h/0?password=p", "redis://h/0?password=%2A%2A%2A"),
        ("redis+sentinel://u:p@h:1,i:2/s", "redis+sentinel://u:***@h:1,i:2/s"),
    ],
)
def test_passwords_are_not_told(address: str, shown: str) -> None:
    assert named(address) == shown
