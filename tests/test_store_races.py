"""Races of a store on disk that have to be forced, and damage that is easily told of wrongly."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from contextlib import closing, suppress
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from helpers import link, until
from store_kinds import Place, commit, fill_numbered, held, numbered, on_disk

from scrapy_neardup.stores import Selection, SqliteStore, Store, StoreError, absorbing, manifest, tidying
from scrapy_neardup.stores.columns import write_columns
from scrapy_neardup.stores.compacting import compact
from scrapy_neardup.stores.log import Log
from scrapy_neardup.stores.runs import RunLock
from scrapy_neardup.stores.verifying import verify

MIRROR = "http://mirror.example/"


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return on_disk(tmp_path)


def just_before(patch: pytest.MonkeyPatch, of: type, name: str, *acts: Callable[[], object]) -> None:
    """Have something happen when a method is next called, before it does anything."""
    method = getattr(of, name)

    def acting(*arguments: Any, **options: Any) -> Any:
        patch.setattr(of, name, method)
        for act in acts:
            act()
        return method(*arguments, **options)

    patch.setattr(of, name, acting)


# Runs that begin and end at once


def test_run_that_dies_while_another_opens(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    dying = place.open()
    commit(dying, numbered(1))
    just_before(monkeypatch, SqliteStore, "_read_runs", partial(commit, dying, numbered(2)), partial(place.die, dying))
    assert place.held() == []
    assert place.held() == []


def test_run_that_closes_while_it_is_resumed(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    ending = place.open()
    commit(ending, numbered(1))
    just_before(monkeypatch, SqliteStore, "_read_runs", partial(commit, ending, numbered(2)), ending.close)
    with place.opened(run=ending.run) as store:
        assert store.run == ending.run
        assert held(store) == ["1", "2"]
        commit(store, numbered(3))
    assert place.held() == ["1", "2", "3"]


def test_run_that_is_resumed_while_another_ends_it(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    dead = place.open()
    commit(dead, numbered(1))
    place.die(dead)
    resumed: list[Store] = []
    just_before(monkeypatch, SqliteStore, "_take_in", lambda: resumed.append(place.open(run=dead.run)))
    with place.opened():
        commit(resumed[0], numbered(5))
        place.die(resumed[0])
    assert place.held() == []


def test_two_never_get_the_lock_of_a_run_that_is_let_go(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    first, second, third = (RunLock(place.address, "run") for _ in range(3))
    assert first.acquire()
    got: list[bool] = []
    just_before(monkeypatch, Path, "unlink", lambda: got.append(second.acquire()))
    first.release()
    assert [*got, third.acquire()].count(True) == 1
    for lock in (second, third):
        lock.release()


# Import, and what is forgotten


def test_import_that_begins_while_another_process_tidies_for_the_first_time(
    place: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = on_disk(tmp_path, "other")
    fill_numbered(place, 1, 1)
    fill_numbered(other, 2, 1)
    rows = other.exported()

    def tidy() -> None:
        with suppress(SystemExit):  # so it ends where another is at it
            tidying.main(place.address, "")

    just_before(monkeypatch, Log, "append_all", tidy)
    place.load(rows)
    assert place.held() == ["1", "2"]


def test_run_that_is_forgotten_leaves_no_rows_in_the_log(place: Place) -> None:
    run = fill_numbered(place, 1, 2)
    with place.opened() as store:
        assert store.forget(Selection(run=run)).documents == 2
    with closing(sqlite3.connect(place.address)) as db:
        assert [key for (key,) in db.execute("SELECT key FROM neardup") if key.startswith("segment/")] == []


# Damage


def test_damaged_record_of_a_run_is_told_and_the_rest_taken_in(place: Place) -> None:
    with place.opened() as store, place.opened() as other:
        with closing(sqlite3.connect(place.address)) as db, db:
            db.execute("INSERT INTO neardup (key, value) VALUES ('run//other', ?)", (b"{bad",))
        commit(other, numbered(1))
        until(lambda: (store.read_on(), held(store))[1] == ["1"])
        with pytest.raises(StoreError, match="the record of a run is damaged"):
            store.refresh()


def test_verify_looks_into_a_part_without_documents(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    fill_numbered(place, 0, 20)
    compact(place.address)
    with place.opened() as store:
        store.record(link(MIRROR, None))
    monkeypatch.setattr(absorbing, "RATIO", 0)  # it is to become a part of its own
    absorbing.tidy(place.address, "")
    survey = verify(place.address)
    assert survey.whole
    assert (survey.read["parts"], survey.read["documents"], survey.read["links"]) == (2, 20, 41)
    [part] = manifest.folder(place.address).glob("20-*.part")
    part.write_bytes(part.read_bytes().replace(MIRROR.encode(), MIRROR.upper().encode()))
    [finding] = verify(place.address).findings
    assert "the checksum of column 'links' does not match" in finding.what


def test_part_that_has_what_is_nowhere_else_is_kept(place: Place) -> None:
    fill_numbered(place, 0, 20)
    compact(place.address)
    [part] = manifest.folder(place.address).iterdir()
    with closing(sqlite3.connect(place.address)) as db, db:
        db.execute("DELETE FROM neardup WHERE key = 'parts/'")
    fill_numbered(place, 20, 1)
    compact(place.address)
    assert part.exists()
    [finding] = [each for each in verify(place.address).findings if not each.harmless]
    assert part.name in finding.what


def test_write_that_fails_leaves_no_file(tmp_path: Path) -> None:
    resource = pytest.importorskip("resource")
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, limits[1]))
    try:
        with pytest.raises(OSError, match="File too large"):
            write_columns(tmp_path / "0-1.part", {"numbers": np.arange(1000)}, {})
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert list(tmp_path.iterdir()) == []
