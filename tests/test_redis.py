"""The store on a server: runs that die, are resumed, or are forgotten meanwhile; many rows of a kind; names."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from helpers import asking, built, link, names, signature, sketch
from redis_faults import Killed, killed_after
from store_inputs import Keys
from store_kinds import ROOT, Place, commit, fill_numbered, held, on_disk, on_server
from tiers import slow

from scrapy_neardup.store import Selection, Store, StoreError, runs, shown_address
from scrapy_neardup.store.redis_server import Server


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return on_server(tmp_path)


def end_leases(place: Place) -> None:
    """Have nobody be taken for alive."""
    for lease in place.tell("KEYS", "*:lease.*"):
        place.tell("DEL", lease)


# Kills after each exchange with the server; in the quick tier after some of them

STEPS = [7, *slow(1)]


@pytest.mark.parametrize("step", STEPS)
def test_a_run_that_was_killed_while_it_began_loses_only_its_own_documents(
    place: Place, monkeypatch: pytest.MonkeyPatch, step: int
) -> None:
    for moment in range(0, 200, step):
        store = place.open(str(moment))
        commit(store, signature("lost"))
        store.add(signature("pending", exact=2))
        store.backend.close()
        end_leases(place)
        with monkeypatch.context() as patched, suppress(Killed):
            patched.setattr(Server, "_exchanged", killed_after(moment))
            place.open(str(moment)).close()
            break
        end_leases(place)
        with place.opened(str(moment)) as store:
            assert (held(store), len(store)) == ([], 0)
            assert store.resolve("http://site.example/lost") is None
            assert [run.id for run in store.runs() if run.closed is None] == [store.run]
            assert [place.tell("HLEN", lease) for lease in place.tell("KEYS", f"{ROOT}:lease.*")] in ([], [1])
    assert 20 < moment < 190
    assert place.is_whole()


@pytest.mark.parametrize("step", STEPS)
def test_import_that_was_killed_goes_on(
    place: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: int
) -> None:
    source = on_disk(tmp_path)
    fill_numbered(source, 0, 4)
    everything = source.exported()
    for moment in range(0, 200, step):
        with monkeypatch.context() as patched, suppress(Killed):
            patched.setattr(Server, "_exchanged", killed_after(moment))
            place.load(everything, str(moment), chunk=3)
            break
        end_leases(place)
    assert 20 < moment < 190
    for each in map(str, range(0, moment, step)):
        place.load(everything, each, chunk=3)
        with place.opened(each, run=None) as store:
            assert (len(store), sum(1 for _ in store.urls.all())) == (4, 8)
            assert [each.copy_count for each in store.signatures()] == [1, 1, 1, 1]
    assert place.is_whole()


# Runs that others end, resume or forget at the same time


@pytest.fixture
def resumed(request: pytest.FixtureRequest, place: Place, monkeypatch: pytest.MonkeyPatch) -> Iterator[list[Store]]:
    """Once the rows of the run `job` are about to be erased, another process resumes it, and commits `b`."""
    erase, stores = runs.erase, list[Store]()
    lapses = hasattr(request, "param")

    def resuming(store: Store, run: str, *, after: int = 0) -> None:
        monkeypatch.setattr(runs, "erase", erase)
        if lapses:
            place.let_lapse("job")
        with place.opened(run=None) as looking:
            assert looking.is_alive("job") != lapses
        stores.append(place.open(run="job"))
        commit(stores[0], signature("b"))
        erase(store, run, after=after)

    monkeypatch.setattr(runs, "erase", resuming)
    yield stores
    stores[0].close()


def test_run_can_not_be_resumed_while_another_forgets_what_it_left(place: Place, resumed: list[Store]) -> None:
    place.fill_and_die("a", run="job")
    with place.opened() as store:
        assert held(store) == ["b"]
        assert not store.is_alive("job")
    assert resumed[0].run == "job-1"


def test_run_can_not_be_resumed_while_it_is_forgotten(place: Place, resumed: list[Store]) -> None:
    place.fill("a", run="job")
    with place.opened() as store:
        assert store.forget(Selection(run="job")) == (1, 1)
        assert (resumed[0].run, held(resumed[0])) == ("job-1", ["b"])
        assert [run.closed is not None for run in store.runs() if run.forgotten] == [True]
        assert not store.is_alive("job")


@pytest.mark.parametrize("resumed", ["after its lease"], indirect=True)
def test_run_that_is_resumed_all_the_same_is_not_forgotten(place: Place, resumed: list[Store]) -> None:
    place.fill("a", run="job")
    with place.opened() as store, pytest.raises(StoreError, match="its lease of 10 seconds expired"):
        store.forget(Selection(run="job"))
    assert resumed[0].run == "job"
    assert "b" in place.held()
    assert place.is_whole()


def test_run_that_was_taken_for_dead_goes_on(place: Place, caplog: pytest.LogCaptureFixture) -> None:
    with place.opened() as store:
        commit(store, signature("a", exact=2))
        place.let_lapse(store.run)
        place.fill("b")
    assert "lost this run or its lease" in caplog.text
    with place.opened(run=None) as other:
        assert held(other) == ["a", "b"]
        assert other.resolve("http://site.example/a")
        assert all(run.closed for run in other.runs())
    assert place.is_whole()


# Very many of a kind


def test_a_document_with_very_many_fingerprints_is_found_and_withdrawn(place: Place) -> None:
    many = built("http://site.example/many", {"keys": tuple(range(9000))}, sketch(), 1000.0)
    with place.opened(made_with=[Keys()]) as store:
        commit(store, many)
        assert names(s for _, s in store.find(many)) == ["many"]
        assert names(s for _, s in store.find(asking({"keys": (8999, 9000)}))) == ["many"]
        store.withdraw(many)
        assert not list(store.find(many))


def test_document_of_very_many_urls_goes_with_all_of_them(place: Place) -> None:
    often, other = signature("often", exact=2), signature("other", exact=3, simhash=2**40)
    with place.opened() as store:
        commit(store, often, other)
        for number in range(1200):
            store.record(link(f"http://mirror.example/{number}", often, is_copy=True))
            if number % 400 == 0:
                store.record(link(f"http://other.example/{number}", other, is_copy=True))
        store.flush()
        assert store.forget(Selection(url=often.url)) == (1, 1201)
        store.flush()
        assert sorted(each.url for each in store.urls.all()) == sorted(each.url for each in store.visits(other))
        assert [each.url.rpartition("/")[2] for each in store.visits(other)] == ["other", "0", "400", "800"]
        assert (held(store), [each.copy_count for each in store.signatures()], store.describe()["urls"]) == (
            ["other"],
            [3],
            4,
        )


# The server


@pytest.mark.parametrize(
    ("address", "shown"),
    [
        ("redis://h:1/0", "redis://h:1/0"),
        ("rediss://:p@h", "rediss://:***@h"),
        ("redis://h/0?password=p", "redis://h/0?password=***"),
        ("redis+sentinel://u:p@h:1,i:2/s", "redis+sentinel://u:***@h:1,i:2/s"),
    ],
)
def test_passwords_are_not_told(address: str, shown: str) -> None:
    assert shown_address(address) == shown
