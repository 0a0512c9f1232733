"""Races of a store on disk that have to be forced, and damage that is easily reported wrongly."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from helpers import asking
from store_kinds import URL, Place, commit, fill_numbered, held, numbered, on_disk
from store_model import PAIR

from scrapy_neardup.hosts import Trial
from scrapy_neardup.row_index import Level
from scrapy_neardup.store import Store, StoreError
from scrapy_neardup.store.local import SqliteBackend
from scrapy_neardup.store.stored_index import StoredIndex


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


def test_a_look_up_finds_what_another_process_has_just_committed(place: Place) -> None:
    with place.opened() as store:
        for number in (1, 2):
            asked = {"exact": (number + 1000,)}
            assert list(store.find(asking(asked))) == []
            fill_numbered(place, number, 1)  # over connections of its own
            assert [each.url for _, each in store.find(asking(asked))] == [f"{URL}{number}"]


# Runs that begin and end at once


def test_a_run_that_dies_while_another_opens_is_forgotten(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    dying = place.open()
    commit(dying, numbered(1))
    just_before(monkeypatch, SqliteBackend, "hold_run", partial(commit, dying, numbered(2)), partial(place.die, dying))
    assert place.held() == []
    assert place.held() == []


def test_a_run_that_closes_while_it_is_resumed_goes_on(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    ending = place.open()
    commit(ending, numbered(1))
    just_before(monkeypatch, SqliteBackend, "hold_run", partial(commit, ending, numbered(2)), ending.close)
    with place.opened(run=ending.run) as store:
        assert store.run == ending.run
        assert held(store) == ["1", "2"]
        commit(store, numbered(3))
    assert place.held() == ["1", "2", "3"]


def test_a_run_that_is_resumed_while_another_ends_it_is_forgotten_when_it_dies(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    dead = place.open()
    commit(dead, numbered(1))
    place.die(dead)
    resumed: list[Store] = []
    just_before(monkeypatch, SqliteBackend, "release_run", lambda: resumed.append(place.open(run=dead.run)))
    with place.opened():
        commit(resumed[0], numbered(5))
        place.die(resumed[0])
    assert place.held() == []


def test_two_never_get_the_lock_of_a_run_that_is_let_go(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    first, second, third = (SqliteBackend(place.address) for _ in range(3))
    assert first.hold_run("run")
    got: list[bool] = []
    just_before(monkeypatch, Path, "unlink", lambda: got.append(second.hold_run("run")))
    first.release_run("run")
    assert [*got, third.hold_run("run")].count(True) == 1
    for backend in (first, second, third):
        backend.close()


# Damage


def test_news_before_a_damaged_row_are_taken_in(place: Place) -> None:
    with place.opened() as store, place.opened() as other:
        learned = Trial(PAIR, ("", ""), ("", ""), 1, 0, 2, 3, 1, 4.0)
        other.hosts.load([learned])
        other.learn([learned])
        other.flush()
        with closing(sqlite3.connect(place.address)) as db, db:
            db.execute("INSERT INTO neardup (key, value) VALUES ('run/other', ?)", (b"{bad",))
        with pytest.raises(StoreError, match="row 'run/other' is damaged"):
            store.refresh()
        assert store.hosts.dump() == [learned]


def test_write_that_fails_leaves_no_file(tmp_path: Path) -> None:
    resource = pytest.importorskip("resource")
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    simhashes = np.zeros(1000, np.uint64)
    level = Level(1, 1000, simhashes.astype(np.int64), simhashes, simhashes)
    with closing(sqlite3.connect(":memory:")) as db:
        files = StoredIndex(db, str(tmp_path / "x"), "x", lambda place: False, writes=True)
        resource.setrlimit(resource.RLIMIT_FSIZE, (1000, limits[1]))
        try:
            with pytest.raises(OSError, match="File too large"):
                files.write([level])
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert [*tmp_path.rglob("*.*")] == [tmp_path / "x.index"]
