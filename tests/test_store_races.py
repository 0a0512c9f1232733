"""What a review found in the store on disk: races that had to be forced, and damage that was told of wrongly."""

from __future__ import annotations

import json
import sqlite3
import time
from collections.abc import Callable
from contextlib import closing, suppress
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from helpers import detectors, link, names, python, signature

from scrapy_neardup.signature import Evidence, Link
from scrapy_neardup.stores import Selection, SqliteStore, StoreError, absorbing, manifest, tidying
from scrapy_neardup.stores.compacting import compact
from scrapy_neardup.stores.importing import load
from scrapy_neardup.stores.log import Log
from scrapy_neardup.stores.runs import RunLock
from scrapy_neardup.stores.transfer import export_rows
from scrapy_neardup.stores.verifying import verify

MIRROR = "http://mirror.example/"


@pytest.fixture
def path(tmp_path: Path) -> str:
    return str(tmp_path / "store.sqlite")


def opened(path: str, run: str | None = "") -> SqliteStore:
    return SqliteStore(path, detectors(), run=run)


def put(store: SqliteStore, *numbers: int) -> None:
    for number in numbers:
        each = signature(str(number), exact=number, simhash=number << 30)
        store.add(each)
        store.commit(each)
        store.record(link(each.url or "", each))
    store.flush()


def fill(path: str, *numbers: int) -> str:
    """Commit documents in a run that ends well; return its id."""
    with closing(opened(path)) as store:
        put(store, *numbers)
        return store.run


def die(store: SqliteStore) -> None:
    """Have a run end as by a kill: its lock goes, and nothing is written."""
    store._abandon()


def held(path: str) -> list[str]:
    """Return what the next run holds."""
    with closing(opened(path)) as store:
        return sorted(names(store.signatures()))


def exported(path: str) -> list[dict[str, Any]]:
    with export_rows(path, "") as rows:
        return [json.loads(json.dumps(row)) for row in rows]


def just_before(patch: pytest.MonkeyPatch, of: type, name: str, *acts: Callable[[], object]) -> None:
    """Have something happen when a method is next called, before it does anything."""
    method = getattr(of, name)

    def acting(*arguments: Any, **options: Any) -> Any:
        patch.setattr(of, name, method)
        for act in acts:
            act()
        return method(*arguments, **options)

    patch.setattr(of, name, acting)


def until(done: Callable[[], bool], act: Callable[[], object]) -> None:
    deadline = time.monotonic() + 20
    while not done() and time.monotonic() < deadline:
        act()
    assert done()


# Runs that begin and end at once


def test_run_that_dies_while_another_opens(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    dying = opened(path)
    put(dying, 1)
    just_before(monkeypatch, SqliteStore, "_read_runs", partial(put, dying, 2), partial(die, dying))
    assert held(path) == []
    assert held(path) == []


def test_run_that_closes_while_it_is_resumed(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    ending = opened(path)
    put(ending, 1)
    just_before(monkeypatch, SqliteStore, "_read_runs", partial(put, ending, 2), ending.close)
    with closing(opened(path, run=ending.run)) as store:
        assert store.run == ending.run
        assert sorted(names(store.signatures())) == ["1", "2"]
        put(store, 3)
    assert held(path) == ["1", "2", "3"]


def test_run_that_is_resumed_while_another_ends_it(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    dead = opened(path)
    put(dead, 1)
    die(dead)
    resumed: list[SqliteStore] = []
    just_before(monkeypatch, SqliteStore, "_take_in", lambda: resumed.append(opened(path, run=dead.run)))
    with closing(opened(path)):
        put(resumed[0], 5)
        die(resumed[0])
    assert held(path) == []


def test_two_never_get_the_lock_of_a_run_that_is_let_go(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    first, second, third = (RunLock(path, "run") for _ in range(3))
    assert first.acquire()
    got: list[bool] = []
    just_before(monkeypatch, Path, "unlink", lambda: got.append(second.acquire()))
    first.release()
    assert [*got, third.acquire()].count(True) == 1
    for lock in (second, third):
        lock.release()


# Import, and what is forgotten


def test_import_leaves_a_living_run_alone(path: str) -> None:
    run = fill(path, 1)
    rows = exported(path)
    resumed = opened(path, run=run)
    put(resumed, 2)
    load(path, "", rows)
    put(resumed, 3)
    die(resumed)
    assert held(path) == ["1"]


def test_import_that_begins_while_another_process_tidies_for_the_first_time(
    path: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = str(tmp_path / "other.sqlite")
    fill(path, 1)
    fill(other, 2)
    rows = exported(other)

    def tidy() -> None:
        with suppress(SystemExit):  # so it ends where another is at it
            tidying.main(path, "")

    just_before(monkeypatch, Log, "append_all", tidy)
    load(path, "", rows)
    assert held(path) == ["1", "2"]


def test_run_that_was_open_when_exported_is_forgotten_each_time(path: str, tmp_path: Path) -> None:
    copy = str(tmp_path / "copy.sqlite")
    with closing(opened(path)) as store:
        for number in (1, 2):
            put(store, number)
            load(copy, "", exported(path))
            assert held(copy) == []


def test_run_that_is_forgotten_leaves_no_rows_in_the_log(path: str) -> None:
    run = fill(path, 1, 2)
    with closing(opened(path)) as store:
        assert store.forget(Selection(run=run)).documents == 2
    with closing(sqlite3.connect(path)) as db:
        assert [key for (key,) in db.execute("SELECT key FROM neardup") if key.startswith("segment/")] == []


@pytest.mark.parametrize("ends", [SqliteStore.close, die])
def test_run_that_went_on_since_the_store_was_opened_is_forgotten_whole(
    path: str, ends: Callable[[SqliteStore], None]
) -> None:
    run = fill(path, 1)
    with closing(opened(path)) as store:
        resumed = opened(path, run=run)
        for number in (2, 3, 4):
            put(resumed, number)
        ends(resumed)
        assert store.forget(Selection(run=run)).documents == 4
    with closing(opened(path, run=run)) as resumed:
        put(resumed, 5)
    assert held(path) == ["5"]
    assert verify(path).whole


def test_what_a_forgotten_document_replaced_does_not_come_back(path: str) -> None:
    with closing(opened(path)) as store:
        put(store, 3)
        [older] = store.signatures()
        store.record(link(MIRROR, older, mirror=True))
    dying = opened(path)
    put(dying, 5)
    with closing(opened(path)) as living:
        [newer] = [each for each in living.signatures() if names([each]) == ["5"]]
        living.record(link(MIRROR, newer, mirror=True, seen=3000.0))
        living.flush()
        die(dying)
        assert held(path) == ["3"]
        until(lambda: dying.run in {run.id for run in living.runs() if run.forgotten}, living.refresh)
        living.finish()
        assert living.resolve(MIRROR) is None
    with closing(opened(path)) as store:
        assert store.resolve(MIRROR) is None
        assert sorted(names(store.signatures())) == ["3"]


# Damage


def test_damaged_record_of_a_run_is_told_and_the_rest_taken_in(path: str) -> None:
    with closing(opened(path)) as store, closing(opened(path)) as other:
        with closing(sqlite3.connect(path)) as db, db:
            db.execute("INSERT INTO neardup (key, value) VALUES ('run//other', ?)", (b"{bad",))
        put(other, 1)
        until(lambda: names(store.signatures()) == ["1"], store.read_on)
        with pytest.raises(StoreError, match="the record of a run is damaged"):
            store.refresh()


def test_verify_looks_into_a_part_without_documents(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    fill(path, *range(20))
    compact(path)
    with closing(opened(path)) as store:
        store.record(link(MIRROR, None))
    monkeypatch.setattr(absorbing, "RATIO", 0)  # it is to become a part of its own
    absorbing.tidy(path, "")
    survey = verify(path)
    assert survey.whole
    assert (survey.read["parts"], survey.read["documents"], survey.read["links"]) == (2, 20, 21)
    [part] = manifest.folder(path).glob("20-*.part")
    part.write_bytes(part.read_bytes().replace(MIRROR.encode(), MIRROR.upper().encode()))
    [finding] = verify(path).findings
    assert "the checksum of column 'links' does not match" in finding.what


def test_part_that_has_what_is_nowhere_else_is_kept(path: str) -> None:
    fill(path, *range(20))
    compact(path)
    [part] = manifest.folder(path).iterdir()
    with closing(sqlite3.connect(path)) as db, db:
        db.execute("DELETE FROM neardup WHERE key = 'parts/'")
    fill(path, 20)
    compact(path)
    assert part.exists()
    [finding] = [each for each in verify(path).findings if not each.harmless]
    assert part.name in finding.what


WRITE = """
import resource, signal, sys
from pathlib import Path
import numpy as np
from scrapy_neardup.stores.columns import write_columns
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (1000, resource.RLIM_INFINITY))
write_columns(Path(sys.argv[1]), {"numbers": np.arange(1000)}, {})
"""


def test_write_that_fails_leaves_no_file(tmp_path: Path) -> None:
    pytest.importorskip("resource")
    made = python(WRITE, str(tmp_path / "0-1.part"))
    assert "OSError: [Errno 27]" in made.stderr
    assert list(tmp_path.iterdir()) == []


EVIDENCE = Evidence("simhash", 2, 0.9, 0.9, 1.2, "content")


@pytest.mark.parametrize(
    ("kind", "change"),
    [
        ("link", {"evidence": {**EVIDENCE._asdict(), "resemblance": "x"}}),
        ("link", {"evidence": {**EVIDENCE._asdict(), "resemblance": 99.0}}),
        ("link", {"evidence": {**EVIDENCE._asdict(), "containment": -0.1}}),
        ("link", {"evidence": {**EVIDENCE._asdict(), "length_ratio": float("inf")}}),
        ("link", {"evidence": {**EVIDENCE._asdict(), "hamming": 300}}),
        ("run", {"started": "x"}),
        ("run", {"closed": "x"}),
        ("run", {"sealed": None}),
        ("run", {"stats": 7}),
    ],
)
def test_import_names_what_can_not_be_kept(path: str, tmp_path: Path, kind: str, change: dict[str, Any]) -> None:
    with closing(opened(path)) as store:
        put(store, 1)
        [each] = store.signatures()
        store.record(Link(MIRROR, each, True, 5.0, evidence=EVIDENCE))
    rows = exported(path)
    next(row for row in rows if row["type"] == kind).update(change)
    with pytest.raises(ValueError, match=f"^no {kind}: "):
        load(str(tmp_path / "copy.sqlite"), "", rows)
