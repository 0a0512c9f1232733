"""The index of a store in a file: a cache that is rebuilt after any damage, and built while others write."""

from __future__ import annotations

import gc
import json
import os
import random
import shutil
import sqlite3
import weakref
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest
from helpers import asking, link, python, settle, signature, until
from store_kinds import URL, Place, commit, fill_numbered, numbered, on_disk, put
from tiers import slow

from scrapy_neardup import row_index
from scrapy_neardup.store import Selection, Store, compact, stored_index
from scrapy_neardup.store.backend import Entry
from scrapy_neardup.store.stored_index import FileLevel, StoredIndex
from scrapy_neardup.store.verification import verify

TAIL = 20
PROCESS = f"""
import os, sys
from scrapy_neardup import row_index
from scrapy_neardup.store import stored_index
from store_kinds import *
row_index.TAIL = stored_index.LEAST = {TAIL}
place, first, count = Place(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
"""
DIE = f"""{PROCESS}
left = int(sys.argv[4])
def die_in_time(*_):
    global left
    left -= 1
    if not left:
        os.kill(os.getpid(), 9)
store = place.open()
for number in range(first, first + count):
    put(store, numbered(number))
store.flush()
store.session.save(store.session.runs[store.session._code].ended(10**6))
store.flush()
import threading
threading.setprofile(die_in_time)
sys.setprofile(die_in_time)
while store.refresh():
    store.flush()
store.backend.close()
sys.setprofile(None)
threading.setprofile(None)
print(-left)
"""
"""Build an index, die after so many calls and returns of functions, or print how many there were."""


@pytest.fixture(autouse=True)
def _small(monkeypatch: pytest.MonkeyPatch) -> None:
    small(monkeypatch)


def small(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(row_index, "TAIL", TAIL)
    patch.setattr(stored_index, "LEAST", TAIL)


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return on_disk(tmp_path)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of a store with a table and some rows that are in none, of which some were forgotten."""
    place = on_disk(tmp_path_factory.mktemp("made"))
    with pytest.MonkeyPatch.context() as patch:
        small(patch)
        fill_numbered(place, 0, 40)
        forget(place, *range(0, 40, 10))
        compact(place.address)
        fill_numbered(place, 40, 10)
    assert len(names(place)) == 1
    return Path(place.address).parent


@pytest.fixture
def filled(made: Path, place: Place) -> Place:
    """Return the place of a copy of that store."""
    shutil.copytree(made, Path(place.address).parent, dirs_exist_ok=True)
    return place


def forget(place: Place, *numbers: int) -> None:
    with place.opened() as store:
        for number in numbers:
            store.forget(Selection(url=f"{URL}{number}"))


def names(place: Place) -> list[str]:
    """Return the names of all files of an index."""
    return sorted(file.name for file in Path(f"{place.address}.index").rglob("*.idx*"))


def file_of(place: Place) -> Path:
    [file] = Path(f"{place.address}.index").rglob("*.idx")
    return file


def found(store: Store) -> list[int]:
    """Return the numbers of documents, each of which is found by either fingerprint and by its URLs."""
    numbers = sorted(int(each.url.rpartition("/")[2]) for each in store.signatures() if each.url)
    for number in numbers:
        asked = {"exact": (number + 1000,), "simhash": (number << 30,)}
        assert {(name, each.url) for name, each in store.find(asking(asked))} >= {
            ("exact", f"{URL}{number}"),
            ("simhash", f"{URL}{number}"),
        }
        for url in (f"{URL}{number}", f"http://m.example/{number}"):
            link = store.resolve(url)
            assert link
            assert link.signature
            assert link.signature.url == f"{URL}{number}"
        assert link.signature.copy_count == 1
    return numbers


def held(place: Place, run: str | None = None) -> list[int]:
    with place.opened(run=run) as store:
        return found(store)


HELD = [number for number in range(50) if number % 10 or number == 40]


def content(place: Place) -> dict[str, bytes]:
    folder = Path(place.address).parent
    return {str(file): file.read_bytes() for file in folder.rglob("*") if file.is_file()}


def test_levels_are_made_while_rows_are_always_being_written(place: Place) -> None:
    numbers = iter(range(10_000))
    with place.opened() as store:

        def grows() -> bool:
            put(store, numbered(number := next(numbers)), f"http://m.example/{number}")
            store.flush(wait=False)
            store.refresh()
            return store.backend.index.last > 120  # type: ignore[attr-defined, no-any-return]

        until(grows)
    assert held(place) == [*range(next(numbers))]
    assert verify(place.address).findings == []


def test_a_level_has_rows_that_are_about_to_be_written_again(place: Place) -> None:
    documents = [*map(numbered, range(80))]
    with place.opened() as store:
        for first in (0, 40):
            for number in range(first, first + 40):
                put(store, documents[number], f"http://m.example/{number}")
            store.flush()
            for number in range(first, first + 40):
                mirror = link(f"http://m.example/{number}", documents[number], is_copy=True)
                store.record(mirror)  # the same as before, so that its row keeps its number
            store.refresh()
    assert names(place)
    assert verify(place.address).findings == []  # else a file without these rows is made anew


def test_a_level_has_the_rows_of_visits_that_a_kill_keeps_as_they_were(place: Place) -> None:
    documents = [*map(numbered, range(80))]
    store = place.open()
    for first in (0, 40):
        for number in range(first, first + 40):
            put(store, documents[number], f"http://m.example/{number}")
        store.flush()
        for number in range(first, first + 40) if first else ():
            store.record(link(f"http://m.example/{number}", documents[number - 1], is_copy=True))
        store.refresh()
    place.die(store)
    assert names(place)
    assert verify(place.address).findings == []  # else a small file would be made anew
    with place.opened(unclean_run="keep") as store:
        copies = [store.resolve(f"http://m.example/{number}") for number in range(40, 80)]
        assert [copy.signature.copy_count for copy in copies if copy and copy.signature] == [1] * 40


def test_levels_are_few_and_nothing_else_lies_there(place: Place) -> None:
    for first in range(0, 120, 12):
        fill_numbered(place, first, 12)
        sizes = [int(name[13:25]) - int(name[:12]) + 1 for name in names(place)]
        with place.opened() as store:
            counted = store.backend.index.levels  # type: ignore[attr-defined]
            settle(store)
        assert len(sizes) <= 4
        assert len(counted) <= 5
    assert held(place) == [*range(120)]
    assert verify(place.address).findings == []
    assert row_index.RATIO == 4  # levels are as few as so many rows can be in


def test_an_index_is_made_for_many_rows_when_a_store_is_opened(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stored_index, "LEAST", 10**6)
    fill_numbered(place, 0, 40)
    assert names(place) == []
    monkeypatch.setattr(stored_index, "LEAST", TAIL)
    before = content(place)
    assert held(place) == [*range(40)]
    assert content(place) == before  # who only looks keeps it in RAM
    assert held(place, run="") == [*range(40)]
    assert len(names(place)) == 1
    assert held(place) == [*range(40)]


def test_numbers_with_a_wide_gap(place: Place) -> None:
    fill_numbered(place, 0, 40)
    with closing(sqlite3.connect(place.address)) as db, db:
        db.execute("UPDATE sqlite_sequence SET seq = ?", (1 << 60,))
    fill_numbered(place, 40, 100)
    for run in (None, "", None):
        assert held(place, run) == [*range(140)]
    assert len(names(place)) == 1
    assert verify(place.address).findings == []


# Whatever becomes of its files


def remove(file: Path) -> None:
    file.unlink()


def remove_all(file: Path) -> None:
    shutil.rmtree(file.parents[1])


def cut(file: Path) -> None:
    file.write_bytes(file.read_bytes()[:-100])


def flip(file: Path) -> None:
    data = bytearray(file.read_bytes())
    data[-3] ^= 1
    file.write_bytes(data)


@pytest.mark.parametrize(
    ("damage", "is_told"), [(flip, True), (remove, False), *slow((cut, True), (remove_all, False))]
)
def test_index_that_is_damaged_or_lost_is_made_anew(
    filled: Place, damage: Callable[[Path], None], is_told: bool, caplog: pytest.LogCaptureFixture
) -> None:
    damage(file_of(filled))
    before = content(filled)
    assert held(filled) == HELD
    assert ("its index is rebuilt" in caplog.text) is is_told
    assert content(filled) == before
    assert held(filled, run="") == HELD
    assert content(filled) != before
    assert len(names(filled)) == 1
    assert verify(filled.address).findings == []
    caplog.clear()
    assert held(filled) == HELD
    assert caplog.text == ""


def test_index_of_another_store_is_not_taken(filled: Place, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    other = on_disk(tmp_path, "other")
    fill_numbered(other, 500, 40)
    compact(other.address)
    fill_numbered(other, 600, 10)
    shutil.rmtree(f"{filled.address}.index")
    shutil.copytree(f"{other.address}.index", f"{filled.address}.index")
    assert held(filled) == HELD
    assert "belongs to other rows" in caplog.text
    assert held(filled, run="") == HELD
    assert verify(filled.address).findings == []


def test_older_copy_of_a_store_goes_with_what_it_knew(filled: Place, tmp_path: Path) -> None:
    older = Path(filled.address).read_bytes()
    fill_numbered(filled, 200, 40)
    compact(filled.address)
    Path(filled.address).write_bytes(older)
    assert held(filled) == HELD
    fill_numbered(filled, 300, 40)
    assert held(filled) == [*HELD, *range(300, 340)]
    assert verify(filled.address).findings == []


def test_files_that_belong_to_nobody_are_harmless(filled: Place) -> None:
    file = file_of(filled).with_name("half.idx.part")
    file.write_bytes(b"half")
    os.utime(file, (1, 1))
    assert verify(filled.address).findings == []
    fill_numbered(filled, 200, 40)
    compact(filled.address)
    assert not file.exists()


# While others write, and kills


def put_all(store: Store, numbers: range) -> None:
    for number in numbers:
        put(store, numbered(number), f"http://m.example/{number}")
        if number % 10 == 9:
            store.flush()
            settle(store)


def test_an_abandoned_store_leaves_whole_files_and_none_that_others_cover(place: Place) -> None:
    store = place.open()
    for first in range(0, 160, 16):
        put_all(store, range(first, first + 16))
    place.die(store)
    left = names(place)
    assert left
    assert [name for name in left if not name.endswith(".idx")] == []
    assert [int(name[:12]) for name in left] == [1, *(int(name[13:25]) + 1 for name in left[:-1])]


def test_who_only_reads_keeps_what_is_new_in_memory(place: Place) -> None:
    fill_numbered(place, 0, 40)
    compact(place.address)
    with place.opened(run=None) as reader, place.opened() as maker:
        for first in range(40, 160, 10):
            put_all(maker, range(first, first + 10))
            settle(reader)
            index = reader.backend.index  # type: ignore[attr-defined]
            index.adopt()  # waits for the merge in the background
        file, *rest = index.levels
        assert [isinstance(level, FileLevel) for level in (file, *rest)] == [True] + [False] * len(rest)
        assert 0 < len(rest) <= 3
        assert found(reader) == [*range(160)]


def test_an_opening_that_is_interrupted_leaves_the_index(filled: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    before = names(filled)

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(StoredIndex, "read", interrupt)
        with pytest.raises(KeyboardInterrupt):
            filled.open()
    assert names(filled) == before
    assert verify(filled.address).findings == []


def test_a_row_that_is_deleted_while_it_is_written_is_no_news(place: Place) -> None:
    with place.opened() as store:
        document = numbered(1)
        put(store, document)
        store.flush(wait=False)
        store.withdraw(document)
        for _ in range(3):
            assert store.backend.news()[0] == []
            store.flush()
    assert held(place) == []


def test_rows_that_are_deleted_before_they_are_written_leave_nothing(place: Place) -> None:
    with place.opened() as store:
        held = store.backend.index  # type: ignore[attr-defined]
        for number in range(10 * TAIL):
            document = numbered(number)
            put(store, document)
            store.withdraw(document)
        assert len(held._rows) < 3 * TAIL
        assert held.levels == []


def test_many_pending_documents_are_in_no_level(place: Place) -> None:
    with place.opened() as store:
        held = store.backend.index  # type: ignore[attr-defined]
        pending = [numbered(number) for number in range(3 * TAIL)]
        for document in pending:
            store.add(document)
        for _ in range(10):
            store.backend.write([Entry("meta/x", {"n": 1}, is_news=False)])
            store.flush()
            settle(store)
        assert sum(map(len, held.levels)) == 0
        for document in pending:
            store.commit(document)


@pytest.mark.parametrize("kills", [3, *slow(30)])
def test_a_kill_while_an_index_is_built_leaves_it_whole(place: Place, kills: int) -> None:
    rng = random.Random(kills)
    made = python(DIE, place.address, "0", "16", "0")
    assert made.returncode == 0, made.stderr
    steps = int(made.stdout)
    for kill in range(1, kills + 1):
        made = python(DIE, place.address, str(16 * kill), "16", str(rng.randint(1, steps)))
        assert made.returncode in (-9, 0), made.stderr  # it takes more steps, or fewer, than the last time
        with place.opened(run=None) as store:
            numbers = range(16 * kill + 16)
            assert len(store) == len(numbers)
            for number in numbers:
                assert [each.url for _, each in store.find(asking({"exact": (number + 1000,)}))] == [f"{URL}{number}"]
        assert place.is_whole()
    compact(place.address)
    # A part of a file stays for an hour, since the process that writes it may be alive.
    assert len([name for name in names(place) if name.endswith(".idx")]) == 1
    assert json.dumps(verify(place.address).read["documents"]) == str(16 * kills + 16)


def test_flush_alone_lets_go_of_documents(place: Place) -> None:
    with closing(place.open()) as store:
        made = [numbered(number) for number in range(20)]
        commit(store, *made)
        known = [weakref.ref(each) for each in made]
        del made
        store.flush()
        gc.collect()
        assert [each() for each in known] == [None] * 20
        assert len(list(store.signatures())) == 20


def test_index_made_anew_finds_the_pages_of_a_host_and_the_items_of_a_page(place: Place) -> None:
    with place.opened() as store:
        for number in range(TAIL):
            store.add(item := signature("list"))
            item.label = f"item {number}"
            store.commit(item)
        commit(store, numbered(1))
    compact(place.address)
    with place.opened(run=None) as store:
        assert len(store.of_page(f"{URL}list")) == TAIL
        assert len(store.pages("site.example")) == TAIL + 1
