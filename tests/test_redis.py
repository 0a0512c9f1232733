"""The store on a server: runs, several processes, addresses, and servers that fail."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import pytest
from helpers import detectors, link, names, signature, sketch
from redis_faults import Killed, killed_after
from redis_server import Server, free_port
from store_inputs import Keys
from store_kinds import Place, commit, fill_numbered, held, on_disk, on_server
from tiers import slow

from scrapy_neardup.fingerprints.hashing import MULTIPLIER
from scrapy_neardup.signature import Signature
from scrapy_neardup.store import Selection, Store, StoreError, open_store
from scrapy_neardup.stores.redis import runs
from scrapy_neardup.stores.redis.address import named
from scrapy_neardup.stores.redis.connection import Connection
from scrapy_neardup.stores.redis.server import Server as RedisServer
from scrapy_neardup.stores.redis.store import RedisStore, root_of
from scrapy_neardup.stores.search import salt
from scrapy_neardup.stores.transfer import export_rows
from scrapy_neardup.stores.verifying import verify


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return on_server(tmp_path)


def before_asking(patch: pytest.MonkeyPatch, name: str, *acts: Callable[[], object]) -> None:
    """Do these acts, one before each of the next calls of a script."""
    ask, waiting = RedisServer.ask, list(acts)

    def acting(server: RedisServer, script: str, *arguments: Any) -> Any:
        if script == name and waiting:
            waiting.pop(0)()
        return ask(server, script, *arguments)

    patch.setattr(RedisServer, "ask", acting)


# Kills after each exchange with the server; in the quick tier after some of them

STEPS = [7, *slow(1)]


@pytest.mark.parametrize("step", STEPS)
def test_run_that_was_killed_while_it_began(place: Place, monkeypatch: pytest.MonkeyPatch, step: int) -> None:
    def end_leases() -> None:
        for lease in place.tell("KEYS", "*lease*"):
            place.tell("DEL", lease)

    monkeypatch.setattr(runs, "GRACE", 0.0)
    for moment in range(0, 100, step):
        store = place.open(str(moment))
        commit(store, signature("lost"))
        store._abandon()
        end_leases()
        with monkeypatch.context() as patched, suppress(Killed):
            patched.setattr(Connection, "exchange", killed_after(moment))
            place.open(str(moment)).close()
            break
        end_leases()
        place.open(str(moment)).close()
        assert not place.tell("KEYS", "*holders")
    assert moment > 20
    assert place.is_whole()


@pytest.mark.parametrize("step", STEPS)
def test_import_that_was_killed_goes_on(
    place: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: int
) -> None:
    source = on_disk(tmp_path)
    fill_numbered(source, 0, 4)
    everything = source.exported()
    for moment in range(0, 100, step):
        with monkeypatch.context() as patched, suppress(Killed):
            patched.setattr(Connection, "exchange", killed_after(moment))
            place.load(everything, str(moment), chunk=3)
            break
    assert moment > 20
    assert {found.what[:36] for found in verify(place.address).findings} == {"all entries on host mirrors are miss"}
    for each in map(str, range(0, moment, step)):
        place.load(everything, each, chunk=3)
        with place.opened(each, run=None) as store:
            assert (len(store), sum(1 for _ in store.all_links())) == (4, 8)
    assert place.is_whole()


def test_documents_that_an_import_left_pending(place: Place, tmp_path: Path) -> None:
    source = on_disk(tmp_path)
    fill_numbered(source, 0, 3)
    place.load(source.exported())
    place.tell("HSET", f"{root_of('')}:pending", "1", "0")
    place.load(source.exported())
    assert place.held() == ["0", "1", "2"]
    assert not place.tell("EXISTS", f"{root_of('')}:pending")


def test_run_that_begins_during_an_export(place: Place) -> None:
    place.fill("a", run="first")
    found = []
    with export_rows(place.address, "") as rows:
        for row in rows:
            found.append(row)
            if row["type"] == "document":
                with place.opened(run="late") as store:
                    store.record(link("http://m.example/", next(store.signatures()), mirror=True))
    assert sorted(row["segment"][0] for row in found if row["type"] == "link") == ["first", "late"]


# Runs that others end, resume or forget at the same time


def test_run_that_is_resumed_while_another_still_undoes_it(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runs, "AT_ONCE", 2)
    place.fill_and_die(*map(str, range(4)), run="job")
    resumed: list[Store] = []

    def resume() -> None:
        place.let_lapse("job")
        resumed.append(place.open(run="job"))
        commit(resumed[0], *map(signature, "abcd"))

    before_asking(monkeypatch, "undo", int, resume)
    place.open().close()
    assert (resumed[0].run, held(resumed[0])) == ("job", ["a", "b", "c", "d"])
    resumed[0].close()
    with place.opened() as store:
        assert held(store) == ["a", "b", "c", "d"]


def test_run_is_held_for_as_long_as_it_is_undone(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runs, "AT_ONCE", 2)
    place.fill_and_die(*map(str, range(4)), run="job")
    lives: list[bool] = []
    with place.opened(run=None) as looking:
        before_asking(
            monkeypatch, "undo", int, lambda: place.let_lapse("job"), lambda: lives.append(looking.is_alive("job"))
        )
        place.open().close()
        assert lives == [True]
        assert not looking.is_alive("job")
        assert held(looking) == []


def test_run_can_not_be_resumed_while_it_is_forgotten(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    place.fill("a", run="job")
    resumed: list[Store] = []

    def resume() -> None:
        resumed.append(place.open(run="job"))
        commit(resumed[0], signature("b"))

    with place.opened() as store:
        before_asking(monkeypatch, "scan", resume)
        assert store.forget(Selection(run="job")) == (1, 1)
        assert (resumed[0].run, held(resumed[0])) == ("job-1", ["b"])
        assert [run.closed is not None for run in store.runs() if run.forgotten] == [True]
        assert not store.is_alive("job")
    resumed[0].close()


def test_run_that_is_resumed_all_the_same_is_not_forgotten(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    place.fill("a", run="job")
    resumed: list[Store] = []

    def resume() -> None:
        place.let_lapse("job")
        resumed.append(place.open(run="job"))
        commit(resumed[0], signature("b"))

    with place.opened() as store:
        before_asking(monkeypatch, "scan", resume)
        with pytest.raises(StoreError, match="was resumed meanwhile"):
            store.forget(Selection(run="job"))
    assert (resumed[0].run, held(resumed[0])) == ("job", ["a", "b"])
    resumed[0].close()


def test_run_that_was_taken_for_dead_goes_on(place: Place, caplog: pytest.LogCaptureFixture) -> None:
    with place.opened() as store:
        commit(store, signature("a", exact=2))
        place.let_lapse(store.run)
        place.fill("b")
    assert "took it for dead: 1 documents are entered again" in caplog.text
    with place.opened(run=None) as other:
        assert held(other) == ["a", "b"]
        assert other.resolve("http://site.example/a")
        assert all(run.closed for run in other.runs())


# Very many of a kind


def test_tables_grow_and_nothing_is_lost(place: Place) -> None:
    with place.opened() as store:
        for number in range(6000):
            store.record(link(f"http://site.example/{number}", None))
        store.flush()
        assert sum(1 for _ in store.all_links()) == 6000
        assert all(store.resolve(f"http://site.example/{number}") for number in range(0, 6000, 100))


def test_entries_of_a_table_that_tells_more_of_their_hashes(place: Place) -> None:
    """Of 2^20 buckets, the last one that is split: from there on a tag has two bytes, and a number four."""
    hashes = [number % 7 << 20 | number % 3 // 2 << 19 | (1 << 19) - 1 for number in range(40)]
    first = [signature(f"{n}", exact=key_of_hash(hashed)) for n, hashed in enumerate(hashes)]
    later = [signature(f"later{n}", exact=key_of_hash(hashed)) for n, hashed in enumerate(hashes)]
    values = {key_of_hash(hashed) for hashed in hashes}
    with place.opened() as store:
        grow(store, 0, (1 << 20) - 1)
        commit(store, *first)
        assert found(store, values) == expected(values, *first)
        grow(store, (1 << 24) - 16, (1 << 20) - 1)
        commit(store, *later)
        assert store.documents.state()[:2] == [(1 << 24) + 24, (1 << 20) + 2]
        assert found(store, values) == expected(values, *first, *later)
        for each in later:
            store.withdraw(each)
        assert found(store, values) == expected(values, *first)


def found(store: Store, values: Iterable[int]) -> dict[int, list[str]]:
    return {value: names(s for _, s in store.find({"exact": (value,)})) for value in values}


def expected(values: Iterable[int], *given: Signature) -> dict[int, list[str]]:
    return {value: names(each for each in given if each.fingerprints["exact"] == (value,)) for value in values}


def grow(store: Store, number: int, buckets: int) -> None:
    """Set the number of a store's next document, and the size of its table."""
    state = store.documents.state() if number else [0, 4096, 0, 1024, 0, 256, 0]
    counts = b"".join(each.to_bytes(5, "big") for each in [number, buckets, *state[2:]])
    store.server.run([("HSET", f"{store.server.root}k", "state", counts)])


def key_of_hash(hashed: int) -> int:
    """Return a fingerprint of the detector `exact` with that hash of 36 bits."""
    return (hashed << 28) * pow(int(MULTIPLIER), -1, 1 << 64) % (1 << 64) ^ salt("exact")


def test_very_many_of_one_fingerprint(place: Place) -> None:
    with place.opened() as store:
        commit(store, *(signature(str(number), exact=7, simhash=number << 20) for number in range(200)))
        assert names(s for _, s in store.find({"exact": (7,)})) == [str(number) for number in range(184, 200)]
        for each in list(store.signatures())[100:]:
            store.withdraw(each)
        assert names(s for _, s in store.find({"exact": (7,)})) == [str(number) for number in range(84, 100)]


def test_very_many_fingerprints_of_one_document(place: Place) -> None:
    many = Signature("http://site.example/many", {"keys": tuple(range(9000))}, sketch(), 1000.0)
    with place.opened(made_with=[Keys()]) as store:
        commit(store, many)
        assert names(s for _, s in store.find(many.fingerprints)) == ["many"]
        assert names(s for _, s in store.find({"keys": (8999, 9000)})) == ["many"]
        store.withdraw(many)
        assert not list(store.find(many.fingerprints))


def test_document_of_very_many_urls_goes_with_all_of_them(place: Place) -> None:
    often, other = signature("often", exact=2), signature("other", exact=3, simhash=2**40)
    with place.opened() as store:
        commit(store, often, other)
        for number in range(3000):
            store.record(link(f"http://mirror.example/{number}", often, mirror=True))
            if number % 1000 == 0:
                store.record(link(f"http://other.example/{number}", other, mirror=True))
        store.flush()
        before = place.tell("INFO", "commandstats")["cmdstat_set"]["calls"]
        assert store.forget(Selection(url=often.url)) == (1, 3001)
        store.flush()
        assert place.tell("INFO", "commandstats")["cmdstat_set"]["calls"] - before < 100  # its list is written once
        assert sorted(each.url for each in store.all_links()) == sorted(each.url for each in store.links(other))
        assert [each.url.rpartition("/")[2] for each in store.links(other)] == ["other", "0", "1000", "2000"]
        assert (held(store), list(store.degrees()), store.describe()["urls"]) == (["other"], [3], 4)


# The server


def test_server_that_is_not_there() -> None:
    address = f"redis://user:secret@127.0.0.1:{free_port()}"
    with pytest.raises(StoreError) as caught:
        open_store(address, detectors())
    assert "user:***@127.0.0.1" in str(caught.value)
    assert "secret" not in str(caught.value)
    assert "\n" not in str(caught.value)


def test_server_that_forgot_the_scripts(server: Server) -> None:
    with closing(RedisStore(server.address, detectors())) as store:
        commit(store, signature("a"))
        server.tell("SCRIPT", "FLUSH")
        store.record(link("http://m.example/1", None))
        commit(store, signature("b"))
        assert held(store) == ["a", "b"]
        assert store.documents.next_number == 2
        assert store.resolve("http://m.example/1")


def test_what_could_not_be_sent_is_sent_later(server: Server) -> None:
    store = RedisStore(server.address, detectors())
    commit(store, signature("a"))
    server.tell("CONFIG", "SET", "maxmemory", "1")
    store.record(link("http://m.example/1", None))
    with pytest.raises(StoreError, match="it is full"):
        store.flush()
    server.tell("CONFIG", "SET", "maxmemory", "0")
    store.flush()
    assert store.resolve("http://m.example/1")
    store.close()


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
