"""Traps of sqlitedict that the store avoids."""

from __future__ import annotations

import logging
import sqlite3
import threading
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from helpers import until
from sqlitedict import SqliteDict
from store_kinds import on_disk

from scrapy_neardup.store import StoreError
from scrapy_neardup.store import database as module
from scrapy_neardup.store.database import LOCK_SECONDS, Writer, open_database

pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")

PAGE = 16_384
FAILING_COMMIT = """
CREATE TABLE parent (id INTEGER PRIMARY KEY);
CREATE TABLE child (id INTEGER REFERENCES parent (id) DEFERRABLE INITIALLY DEFERRED);
CREATE TRIGGER orphan AFTER INSERT ON neardup WHEN new.key = 'meta/bad' BEGIN INSERT INTO child VALUES (1); END;
"""
FAILING_STATEMENT = """
CREATE TRIGGER refuse BEFORE INSERT ON neardup WHEN new.key = 'meta/bad' BEGIN SELECT RAISE(ABORT, 'refused'); END;
"""


@pytest.fixture(autouse=True)
def _quick_and_quiet(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(module, "PATIENCE", 0.1)
    logger = logging.getLogger("sqlitedict")
    logger.disabled, before = True, logger.disabled
    yield
    logger.disabled = before


@pytest.fixture
def path(tmp_path: Path) -> str:
    path = str(tmp_path / "store.sqlite")
    open_database(path, writes=True).close()
    return path


@pytest.fixture
def writer(path: str) -> Iterator[Writer]:
    writer = Writer(path, "neardup")
    yield writer
    ends(writer.close)


def ends(call: Callable[[], object]) -> None:
    """Call something that is not to hang."""
    thread = threading.Thread(target=call, daemon=True)
    thread.start()
    thread.join(60)
    assert not thread.is_alive()


def script(path: str, sql: str) -> None:
    with closing(sqlite3.connect(path)) as db:
        db.executescript(sql)


def write(writer: Writer, *names: str) -> None:
    writer.write({f"meta/{name}": ({"name": name}, True) for name in names}).result(60)


def held(path: str) -> set[str]:
    with closing(sqlite3.connect(path)) as db:
        return {key.removeprefix("meta/") for (key,) in db.execute("SELECT key FROM neardup")}


def answer(writer: Writer, statement: str) -> Any:
    return writer._dict.conn.select_one(statement)[0]


@pytest.mark.parametrize(
    ("failing", "said"), [(FAILING_COMMIT, "FOREIGN KEY"), (FAILING_STATEMENT, "refused")], ids=["commit", "statement"]
)
def test_a_commit_or_one_statement_that_fails_undoes_all(
    path: str, writer: Writer, monkeypatch: pytest.MonkeyPatch, failing: str, said: str
) -> None:
    monkeypatch.setattr(module, "WRITTEN", 1)
    script(path, failing)
    writer._do("PRAGMA foreign_keys=ON")
    with pytest.raises(StoreError, match=said):
        write(writer, "good", "bad", "third")
    assert held(path) == set()
    write(writer, "other")
    assert held(path) == {"other"}


def test_what_is_written_is_written_for_a_power_loss(path: str, writer: Writer) -> None:
    assert answer(writer, "PRAGMA synchronous") == 2  # FULL
    assert answer(writer, "PRAGMA journal_mode") == "wal"
    assert answer(writer, "PRAGMA busy_timeout") == LOCK_SECONDS * 1000


def test_a_store_that_another_opened_with_the_default_journal_gets_its_own_back(tmp_path: Path) -> None:
    place = on_disk(tmp_path)
    place.fill("a")
    SqliteDict(place.address, tablename="neardup", encode=bytes, decode=bytes).close()
    with closing(sqlite3.connect(place.address)) as db:
        assert db.execute("PRAGMA journal_mode").fetchone() == ("delete",)
    assert place.held(run=None) == ["a"]
    place.fill("b")
    assert place.held() == ["a", "b"]
    with closing(sqlite3.connect(place.address)) as db:
        assert db.execute("PRAGMA journal_mode").fetchone() == ("wal",)


@pytest.fixture
def damaged(path: str, writer: Writer) -> str:
    """Return the path of a store of which half was lost while it was open."""
    for at in range(40):
        write(writer, *(f"{at:02}-{n:03}-{'x' * 200}" for n in range(50)))
    with closing(sqlite3.connect(path)) as db:
        db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
        pages = db.execute("PRAGMA page_count").fetchone()[0]
    with open(path, "r+b") as file:
        for page in range(pages // 2, pages):
            file.seek(page * PAGE)
            file.write(b"\xa5" * PAGE)
    return path


def test_damaged_page_is_met_while_writing(damaged: str) -> None:
    writer = Writer(damaged, "neardup")
    for name in (f"39-020-{'x' * 200}", "0"):
        with pytest.raises(StoreError, match="malformed"):
            write(writer, name, "zz")
        assert writer._dict.conn.is_alive()
    ends(writer.close)


def test_thread_that_died_is_told_of(writer: Writer) -> None:
    write(writer, "a")
    connection = writer._dict.conn
    connection.close()
    until(lambda: not connection.is_alive())
    for _ in range(2):
        with pytest.raises(StoreError, match="thread died"):
            write(writer, "b")
