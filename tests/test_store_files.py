"""The file of a store on disk: the files beside it, and the effects of damage."""

from __future__ import annotations

import importlib.util
import os
import pickle
import re
import shutil
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest
from helpers import signature, until
from store_damage import Bomb
from store_kinds import Place, commit, fill_numbered, on_disk

from scrapy_neardup.store import StoreError, database
from scrapy_neardup.store.records import Key, kind_of
from scrapy_neardup.store.store import BATCH

PAGE = 16_384
DOCS = Path(__file__).parents[1] / "docs"


@pytest.fixture
def place(tmp_path: Path) -> Place:
    """Return the place of a store that holds a document."""
    place = on_disk(tmp_path)
    place.fill("a")
    return place


def change(place: Place, key: Key, value: bytes) -> None:
    with closing(sqlite3.connect(place.address)) as connection, connection:
        assert connection.execute("UPDATE neardup SET value = ? WHERE key = ?", (value, key)).rowcount == 1


def first_key(place: Place, kind: str) -> Key:
    return next(key for key in place.content() if kind_of(key) == kind)


def refusal(place: Place) -> str:
    """Return the message for a store that can't be opened, which leaves the file as it is."""
    before = Path(place.address).read_bytes()
    with pytest.raises(StoreError) as caught:
        place.open()
    assert place.address in str(caught.value)
    assert "\n" not in str(caught.value)
    assert Path(place.address).read_bytes() == before
    assert os.listdir(Path(place.address).parent) == ["store.sqlite"]
    return str(caught.value)


def test_nothing_is_left_of_what_a_run_that_died_wrote(place: Place) -> None:
    place.fill_and_die("lost")
    place.fill()
    assert not any(b"lost" in value for value in place.content().values())


def test_store_reached_through_a_link_has_the_same_locks(place: Place, tmp_path: Path) -> None:
    (tmp_path / "link.sqlite").symlink_to(place.address)
    with place.opened() as store:
        commit(store, signature("b"))
        assert on_disk(tmp_path, "link").held() == ["a", "b"]


def test_batch_is_written_without_being_asked_for(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("scrapy_neardup.store.store.BATCH_SECONDS", 1e6)  # or a busy machine writes less, and earlier
    with place.opened() as store:
        for number in range(BATCH + 1):
            store.add(each := signature(f"document-{number}", exact=number))
            store.commit(each)
        until(lambda: sum(kind_of(key) == "document" for key in place.content()) > BATCH / 2)


# Read with nothing of ours


@pytest.fixture
def only(tmp_path: Path) -> Path:
    """Return a folder with sqlitedict and msgpack, and nothing else that is not Python's own."""
    folder = tmp_path / "packages"
    folder.mkdir()
    for name in ("sqlitedict", "msgpack"):
        spec = importlib.util.find_spec(name)
        assert spec
        assert spec.origin
        file = Path(spec.origin)
        if spec.submodule_search_locations:
            shutil.copytree(file.parent, folder / name)
        else:
            shutil.copy(file, folder)
    return folder


def block(page: Path, begin: str) -> str:
    [found] = re.findall(rf"```python\n({begin}.*?)```", page.read_text(encoding="utf-8"), re.DOTALL)
    return str(found)


def test_documents_are_read_with_sqlitedict_and_msgpack_alone(tmp_path: Path, only: Path) -> None:
    place = on_disk(tmp_path, "neardup")
    fill_numbered(place, 0, 3)
    before = Path(place.address).read_bytes()
    code = f"import sys; sys.path.insert(0, {str(only)!r})\n" + block(DOCS / "store.md", "import msgpack")
    made = subprocess.run(
        [sys.executable, "-I", "-S", "-c", code], cwd=tmp_path, capture_output=True, text=True, check=False, timeout=60
    )
    assert made.returncode == 0, made.stderr
    lines = [line.split(" ", 1) for line in made.stdout.splitlines()]
    assert len({key for key, _ in lines}) == 3
    assert [told for _, told in lines] == [f"http://site.example/{n} Page {n} 1000.0" for n in range(3)]
    assert Path(place.address).read_bytes() == before


# Damage


def test_large_store_that_was_cut_off_is_refused(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(database, "SMALL", 0)
    place.fill(*(f"document-{n}" for n in range(300)))
    file = Path(place.address)
    whole = file.read_bytes()
    for size in range(PAGE, len(whole), PAGE):
        for length in (size - 1, size, size + 1):
            file.write_bytes(whole[:length])
            refusal(place)


@pytest.mark.parametrize("kind", ["meta", "run", "document", "visit"])
def test_pickles_in_the_file_are_never_executed(place: Place, tmp_path: Path, kind: str) -> None:
    change(place, first_key(place, kind), pickle.dumps(Bomb(tmp_path / "executed")))
    refusal(place)  # no other file is there
