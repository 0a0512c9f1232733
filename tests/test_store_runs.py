"""Runs of a store on disk or on a server: runs that die or are resumed, and several at once."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from forks import Talk
from helpers import link, names, signature, talking, until
from store_kinds import ROOT, URL, Place, commit, held, on_disk, wait_for

from scrapy_neardup.signature import Visit
from scrapy_neardup.store import Selection, StoreError
from scrapy_neardup.store.backend import Entry
from scrapy_neardup.store.records import code, postings, visit_key

MIRROR = "http://mirror.example/"
WITH_ONE_CODE = "run-9887", "run-93528"
LIVING = """
import sys
from store_kinds import Place, commit, signature
with Place(sys.argv[1]).opened() as store:
    commit(store, signature("a"))
    print(store.run, flush=True)
    sys.stdin.readline()
    commit(store, signature("b"))
    print("written", flush=True)
    sys.stdin.readline()
"""


@pytest.fixture
def living(place: Place) -> Iterator[Talk]:
    """Run another process on the store; it holds `a`, and `b` once it is sent a line."""
    with talking(LIVING, place.address) as process:
        yield process


def said(process: Talk) -> str:
    return process.stdout.readline().strip()


def say(process: Talk) -> None:
    print(file=process.stdin)


# Runs without a record, or with the code of another


def test_store_that_lost_the_record_of_a_run_is_refused(place: Place) -> None:
    place.fill("a")
    run = place.fill("b")
    place.fill("c")
    if place.is_on_server:
        place.tell("HDEL", f"{ROOT}:run", run)
    else:
        with closing(sqlite3.connect(place.address)) as db, db:
            db.execute("DELETE FROM neardup WHERE key = ?", [f"run/{run}"])
    for options in ({}, {"run": None}):
        with pytest.raises(StoreError, match=f"record of a run is missing.* {code(run):08x}"):
            place.open(**options)


def test_runs_whose_codes_are_equal_are_told_apart_or_refused(place: Place, tmp_path: Path) -> None:
    one, other = WITH_ONE_CODE
    assert code(one) == code(other)
    assert [place.fill("a", run=one), place.fill("b", run=other)] == [one, f"{other}-1"]
    assert place.held() == ["a", "b"]
    source = on_disk(tmp_path, "source")
    source.fill("c", run=other)
    before = place.sorted_rows()
    with pytest.raises(ValueError, match=f"the runs '{one}' and '{other}' have one code"):
        place.load(source.exported())
    assert place.sorted_rows() == before


# Runs that die


def test_documents_of_a_process_that_was_killed_are_forgotten(place: Place, caplog: pytest.LogCaptureFixture) -> None:
    place.fill("old")
    place.fill_and_kill("lost")
    assert place.held() == ["old"]
    assert caplog.text.count("died. Its documents are forgotten: 1 (NEARDUP_UNCLEAN_RUN)") == 1


def test_a_run_that_died_and_is_kept_is_told_of(place: Place, caplog: pytest.LogCaptureFixture) -> None:
    place.fill_and_kill("kept")
    assert place.held(unclean_run="keep") == ["kept"]
    assert "died. Its documents are kept (NEARDUP_UNCLEAN_RUN)" in caplog.text


def test_what_a_forgotten_document_replaced_does_not_come_back(place: Place) -> None:
    with place.opened() as store:
        commit(store, signature("older"))
        store.record(link(MIRROR, next(iter(store.signatures())), is_copy=True))
    dying = place.open()
    commit(dying, signature("newer", exact=2, simhash=2**40))
    with place.opened() as living:
        [newer] = [each for each in living.signatures() if names([each]) == ["newer"]]
        living.record(link(MIRROR, newer, is_copy=True, seen=3000.0))
        living.flush()
        place.die(dying)
        assert place.held() == ["older"]
        until(lambda: not living.refresh() and dying.run in {run.id for run in living.runs() if run.forgotten})
        wait_for(living, "older")
        assert living.resolve(MIRROR) is None
    with place.opened() as store:
        assert store.resolve(MIRROR) is None
        assert held(store) == ["older"]


# Runs that live


def test_documents_of_a_living_process_are_seen_and_stay(place: Place, living: Talk) -> None:
    run = said(living)
    for options in ({"run": None}, {}, {"unclean_run": "keep"}):
        with place.opened(**options) as store:
            assert held(store) == ["a"]
            assert store.is_alive(run)
            assert store.run != run
    with place.opened() as store:
        say(living)
        assert said(living) == "written"
        wait_for(store, "a", "b")
        assert store.resolve("http://site.example/b") is not None
    say(living)
    assert living.wait(20) == 0
    assert place.held() == ["a", "b"]


# Runs that are resumed


def test_resumed_run_shows_the_others_what_it_holds_now(place: Place) -> None:
    with place.opened() as store:
        place.fill_and_die("lost", run="job")
        wait_for(store, "lost")
        place.fill("new", run="job")  # it forgets the lost documents, and goes on where the run began
        wait_for(store, "new")


# Runs that are forgotten


@pytest.mark.parametrize("dies", [False, True])
def test_run_that_went_on_since_the_store_was_opened_is_forgotten_whole(place: Place, dies: bool) -> None:
    run = place.fill("a")
    with place.opened() as store:
        resumed = place.open(run=run)
        commit(resumed, *map(signature, "bcd"))
        resumed.add(signature("pending"))
        place.die(resumed) if dies else resumed.close()
        assert store.forget(Selection(run=run)).documents == 4
        assert (held(store), len(store)) == ([], 0)
    place.fill("e", run=run)
    assert place.held() == ["e"]
    assert place.is_whole()


def test_living_run_is_not_forgotten(place: Place) -> None:
    with place.opened() as living, place.opened() as store:
        commit(living, signature("a"))
        for run, reason in ((living.run, "is alive"), (store.run, "is alive"), ("stranger", "has no run 'stranger'")):
            with pytest.raises(StoreError, match=reason):
                store.forget(Selection(run=run))
    assert place.held() == ["a"]


@pytest.mark.parametrize(("unclean", "expected"), [("forget", "ac"), ("keep", "abc")])
def test_pages_of_a_host_are_known_to_all_processes(place: Place, unclean: str, expected: str) -> None:
    place.fill("a")
    place.fill_and_die("b")
    with place.opened(unclean_run=unclean) as store, place.opened() as other:
        assert sorted(names(other.pages("site.example"))) == [*expected[:-1]]
        commit(store, signature("c"))
        other.refresh()
        assert sorted(names(other.pages("site.example"))) == [*expected]
        store.forget(Selection(url="http://site.example/a"))
        store.flush()
        other.refresh()
        assert sorted(names(other.pages("site.example"))) == [*expected[1:]]
    assert place.is_whole()


def test_a_stat_that_is_no_number_does_no_harm(place: Place) -> None:
    with place.opened() as store:
        store.stats = {"documents": 2, "of_a_spider": True}
        run = store.run
    with place.opened(run=None) as store:
        assert [each.stats for each in store.runs() if each.id == run] == [{"documents": 2, "of_a_spider": 1}]


def test_names_of_fields_are_kept_once_when_a_run_is_resumed(place: Place) -> None:
    run = ""
    for fields in ({"price"}, {"size", "price"}):
        with place.opened(run=run) as store:
            store.fields, run = fields, store.run
    with place.opened(run=None) as store:
        assert [(each.fields, each.stats) for each in store.runs()] == [(["price", "size"], {})]


# What URLs return, after a run that died


def change(place: Place, run: str, *, dies: bool, unclean: str = "forget") -> None:
    """Have the URL of `a` return `run`'s own document, and a mirror, which led nowhere, return a copy of it."""
    store = place.open(run=run, unclean_run=unclean)
    document = signature(run, exact=len(run), url=f"{URL}a", first_seen=3000.0)
    store.add(document)
    store.commit(document, link(f"{URL}a", document, seen=3000.0))
    store.record(link(MIRROR, document, is_copy=True, seen=3000.0))
    store.record(link(f"{MIRROR}new", document, is_copy=True, seen=3000.0))
    store.flush()
    place.die(store) if dies else store.close()


def told(place: Place, **options: Any) -> tuple[object, ...]:
    """Return what is known of the URL of `a`, of the mirror, and of the new URL."""
    with place.opened(**options) as store:
        found = [store.resolve(url) for url in (f"{URL}a", MIRROR, f"{MIRROR}new")]
        assert len([*store.urls.all()]) == store.describe()["urls"]
        for document in store.signatures():
            copies = [known.url for known in store.visits(document) if known.is_copy]
            expected = [known.url for known in found if known and known.is_copy and known.signature is document]
            assert (document.copy_count, sorted(copies)) == (len(copies), sorted(expected))
        return tuple(
            known and (known.signature and store.run_of(known.signature), known.is_copy, known.seen) for known in found
        )


@pytest.fixture
def before(place: Place) -> str:
    """Fill a store with a document at the URL of `a`, and a mirror that led nowhere; return the run."""
    with place.opened() as store:
        commit(store, signature("a"))
        store.record(link(MIRROR, None))
        return store.run


@pytest.mark.parametrize("ended_by", ["opening", "forget"])
def test_urls_return_what_they_did_before_a_run_that_is_forgotten(place: Place, before: str, ended_by: str) -> None:
    change(place, "dead", dies=ended_by == "opening")
    if ended_by == "forget":
        assert told(place) == (("dead", False, 3000.0), ("dead", True, 3000.0), ("dead", True, 3000.0))
        with place.opened() as store:
            expected = store.forget(Selection(run="dead"), only_counts=True)
            assert store.forget(Selection(run="dead")) == expected == (1, 1)
    for _ in range(2):
        assert told(place) == ((before, False, 2000.0), (None, False, 2000.0), None)
    assert place.is_whole()


def test_urls_keep_what_a_run_saw_before_it_was_resumed_and_died(place: Place, before: str) -> None:
    change(place, "job", dies=False)
    store = place.open(run="job")
    [older] = [each for each in store.signatures() if store.run_of(each) == before]
    for url in (f"{URL}a", MIRROR, f"{MIRROR}new"):
        store.record(link(url, older, seen=4000.0))
    store.record(link(f"{MIRROR}new", None, seen=5000.0))
    store.flush()
    place.die(store)
    assert told(place) == (("job", False, 3000.0), ("job", True, 3000.0), ("job", True, 3000.0))
    with place.opened() as store:
        assert store.forget(Selection(run="job")).documents == 1
    assert told(place) == ((before, False, 2000.0), (None, False, 2000.0), None)
    assert place.is_whole()


@pytest.mark.parametrize(("first", "left"), [("later", ("one", False, 3000.0)), ("one", ("later", False, 3000.0))])
def test_of_two_runs_that_are_forgotten_a_url_keeps_the_state_before_one(place: Place, first: str, left: Any) -> None:
    for run in ("one", "later"):
        change(place, run, dies=False)
    for run, expected in ((first, left), ("later" if first == "one" else "one", None)):
        with place.opened() as store:
            store.forget(Selection(run=run))
        assert told(place)[0] == expected
    assert place.is_whole()


def test_a_visit_of_another_url_with_the_same_hash_is_unknown(place: Place) -> None:
    with place.opened() as store:
        commit(store, signature("a"))
        known = store.resolve(f"{URL}a")
        assert known
        other = Visit("http://b.example/", None, False, 1.0, at=known.at)
        store.backend.write([Entry(visit_key(MIRROR), other, *postings(other))])
        store.refresh()
        assert store.resolve(MIRROR) is None
        store.record(link(MIRROR, known.signature, is_copy=True))
        assert (store.resolve(MIRROR) or known).is_copy
