"""Stores that can't be used, or only in part: one clear message for each, and nothing is lost or changed."""

from __future__ import annotations

import errno
import io
import os
import random
import sqlite3
import time
import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import msgpack
import pytest
from cli import refused, succeeded
from faulty import Disk, common_user, read_only_disk, small_disk  # noqa: F401 - fixtures
from helpers import python, text
from tiers import slow

from scrapy_neardup import Deduplicator, Document, StoreError, row_index
from scrapy_neardup.store import database, stored_index
from scrapy_neardup.store.records import FORMAT, MADE, Key, code, dump, id_of, load
from scrapy_neardup.store.stored_index import StoredIndex

DETECTORS = ["exact", "simhash"]


def opened(path: str, **settings: object) -> Deduplicator:
    return Deduplicator.open(path, detectors=DETECTORS, **settings)


def commit(dedup: Deduplicator, *numbers: int) -> None:
    """Commit a document for each number, and a mirror of it for every third."""
    for n in numbers:
        for host in ("a.example", "b.example")[: 2 if n % 3 == 0 else 1]:
            dedup.claim(Document(url=f"http://{host}/{n}", text=text(n))).commit()


def fill(path: str, *numbers: int) -> None:
    with opened(path) as dedup:
        commit(dedup, *numbers)


def urls(path: str, **settings: object) -> set[str]:
    with opened(path, **settings) as dedup:
        return {s.url or "" for s in dedup.store.signatures()}


def expected(*numbers: int) -> set[str]:
    return {f"http://a.example/{n}" for n in numbers}


def refusal(path: str) -> str:
    """Return the message for a store that can't be opened, which leaves all files as they are."""
    before = contents(path)
    with pytest.raises(StoreError) as caught:
        opened(path)
    assert contents(path) == before
    assert path in str(caught.value)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def contents(path: str) -> dict[str, bytes]:
    return {str(file): file.read_bytes() for file in Path(path).parent.rglob("*") if file.is_file()}


# No store


def another_program(path: str) -> None:
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE accounts (name TEXT)")


def zipped() -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr("a.txt", "a" * 10_000)
    return buffer.getvalue()


NO_STORES: dict[str, Callable[[str], object]] = {
    "text": lambda path: Path(path).write_bytes(b"not a database\n" * 100),
    "short text": lambda path: Path(path).write_bytes(b"x"),
    "zeros": lambda path: Path(path).write_bytes(bytes(8192)),
    "random": lambda path: Path(path).write_bytes(random.Random(1).randbytes(20_000)),
    "zip": lambda path: Path(path).write_bytes(zipped()),
    "another program's": another_program,
    "directory": os.mkdir,
    "pipe": os.mkfifo,
    "no directory": lambda path: Path(path).parent.rmdir(),
}


@pytest.mark.parametrize("kind", NO_STORES)
def test_what_is_no_store_is_refused(path: str, kind: str) -> None:
    NO_STORES[kind](path)
    message = refusal(path)
    assert any(words in message for words in ("not a store", "is a directory", "is no file", "no directory")), message
    assert path in refused(Path(path).parents[1], "stats", "--store", path)


def test_empty_file_is_a_new_store(path: str) -> None:
    Path(path).touch()
    assert '"documents": 0' in succeeded(Path(path).parent, "stats", "--json", "--store", path).stdout
    assert Path(path).read_bytes() == b""
    fill(path, 1)
    assert urls(path) == expected(1)


OTHER = id_of(code("other"), 1)


def of_other_version(key: Key) -> bytes:
    """Return a row that is whole, and that this version can't read."""
    body: bytes = msgpack.packb(["other"])
    return zlib.crc32(body, zlib.crc32(str(key).encode())).to_bytes(4, "big") + body


def test_store_of_a_newer_version_is_refused(path: str) -> None:
    fill(path, 1)
    with closing(sqlite3.connect(path)) as connection, connection:
        [[value]] = connection.execute("SELECT value FROM neardup WHERE key = ?", (MADE,)).fetchall()
        newer = dump(MADE, {**load(MADE, value), "format": FORMAT + 1})
        connection.execute("UPDATE neardup SET value = ? WHERE key = ?", (newer, MADE))
        connection.execute("INSERT INTO neardup (key, value) VALUES (?, ?)", (OTHER, of_other_version(OTHER)))
    assert f"format is {FORMAT + 1}, of another version; allowed is {FORMAT}" in refusal(path)
    for verb in (["stats"], ["stats", "--check"]):
        assert "of another version" in (said := refused(Path(path).parent, *verb, "--store", path))
        assert "damaged" not in said


# No permission

OPEN = """
import sys
from test_store_faults import *
for path in sys.argv[1:]:
    try:
        fill(path, 7)
    except StoreError as error:
        print(error, file=sys.stderr)
"""
LOOK = """
from scrapy.cmdline import execute
for verb in (["stats"], ["explain", "http://b.example/3"], ["stats", "--check"]):
    try:
        execute(["scrapy", "neardup", *verb, "--store", sys.argv[1]])
    except SystemExit as end:
        if end.code:
            raise
"""


@pytest.mark.slow
@pytest.mark.usefixtures("common_user")
def test_file_that_may_not_be_read_is_refused(path: str) -> None:
    fill(path, 3)
    os.chmod(path, 0)
    made = python(OPEN, path)
    assert "no permission" in made.stderr
    assert made.stderr.count("\n") == 1
    assert "no permission" in refused(Path(path).parent, "stats", "--store", path)
    os.chmod(path, 0o600)
    assert urls(path) == expected(3)


def test_read_only_file_system_can_be_read(read_only_disk: Path) -> None:  # noqa: F811
    path = str(read_only_disk / "store.sqlite")
    fill(path, 3)
    before = contents(path)
    made = python(OPEN + LOOK, path, f"{path}.new")
    assert made.returncode == 0, made.stderr
    said = made.stderr.splitlines()
    assert [path in each and "can't be written" in each for each in said] == [True, True]
    assert f"{path}.new" in said[1]
    assert contents(path) == before


@pytest.mark.slow
def test_what_a_run_that_died_left_on_a_read_only_file_system_is_named(read_only_disk: Path) -> None:  # noqa: F811
    path = str(read_only_disk / "store.sqlite")
    with opened(path) as dedup:
        commit(dedup, 3)
        dedup.flush()
        for file in contents(path):  # as a kill leaves them, with the log not yet moved into the file
            Path(f"{file}.copy").write_bytes(Path(file).read_bytes())
    for copy in read_only_disk.glob("*.copy"):
        copy.rename(str(copy).removesuffix(".copy"))
    Path(f"{path}-shm").unlink()
    assert "create files in its directory" in refused(read_only_disk.parent, "stats", "--store", path)


# Damaged


def damaged(content: bytes, bit: int) -> bytes:
    data = bytearray(content)
    data[bit // 8] ^= 1 << bit % 8
    return bytes(data)


DIE = """
import sys
from test_store_faults import *
dedup = opened(sys.argv[1])
commit(dedup, *range(20, 30))
dedup.flush()
os.kill(os.getpid(), 9)
"""


@pytest.mark.parametrize("times", [5, *slow(50)])
def test_damaged_write_ahead_log_adds_nothing_wrong(path: str, times: int) -> None:
    fill(path, *range(5))
    assert python(DIE, path).returncode == -9
    files, source = contents(path), random.Random(3)
    wal, most = f"{path}-wal", urls(path, unclean_run="keep")
    for _ in range(times):
        for file in Path(path).parent.iterdir():
            file.unlink()
        for name, content in files.items():
            Path(name).write_bytes(content)
        Path(wal).write_bytes(damaged(files[wal], source.randrange(8 * len(files[wal]))))
        assert expected(*range(5)) <= urls(path, unclean_run="keep") <= most


# The clock


@pytest.mark.parametrize("is_replaced", [False, True])
def test_store_that_is_deleted_while_it_is_open_is_told(path: str, is_replaced: bool) -> None:
    dedup = opened(path)
    commit(dedup, 1)
    dedup.flush()
    for end in ("", "-wal", "-shm"):
        Path(path + end).unlink(missing_ok=True)
    if is_replaced:
        fill(path, 2)
    for end in (dedup.flush, dedup.close):
        commit(dedup, 3) if end == dedup.flush else None
        with pytest.raises(StoreError, match=f"{path!r} can't be written: its file was deleted or replaced"):
            end()
    with opened(path) as dedup:
        assert len(dedup) == is_replaced  # what the other process wrote was left as it is


def test_store_can_be_read_by_its_owner_only(path: str) -> None:
    with opened(path) as dedup:
        commit(dedup, 1)
        dedup.flush()
        files = [Path(path), *Path(path).parent.glob("store.sqlite-*")]
        assert {file.stat().st_mode & 0o777 for file in files} == {0o600}


def test_a_clock_that_goes_backwards_between_runs_loses_nothing(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    now = time.time()
    for number, moment in enumerate((now, now - 86_400, now - 7200)):
        monkeypatch.setattr(time, "time", lambda moment=moment: moment)
        fill(path, number)
    assert urls(path) == expected(0, 1, 2)
    with opened(path) as dedup:
        runs = [run for run in dedup.store.runs() if run.id != dedup.store.run]
        assert all(run.closed for run in runs)
        assert [run.started for run in runs] == sorted(run.started for run in runs)


def test_a_clock_that_goes_backwards_in_a_run_loses_nothing(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    now = time.time()
    with opened(path) as dedup:
        commit(dedup, 0, 1)
        monkeypatch.setattr(time, "time", lambda: now - 86_400)
        commit(dedup, 2, 3)
        dedup.flush()
        assert dedup.claim(Document(url="http://c.example/0", text=text(0))).verdict.status == "duplicate"
    assert urls(path) == expected(0, 1, 2, 3)


# A full disk

FULL = """
import sys
from faulty import fill_up
from test_store_faults import *
path = sys.argv[1] + "/store.sqlite"
dedup = opened(path)
commit(dedup, *range(10))
dedup.flush()
filler = fill_up(Path(sys.argv[1]))
commit(dedup, *range(10, 400))
for _ in range(3):
    try:
        dedup.flush()
    except StoreError as error:
        print(error)
"""
ROOM = "filler.unlink(); dedup.flush(); os.kill(os.getpid(), 9)"


def assert_says_full(said: str, path: str, times: int) -> None:
    lines = said.splitlines()
    assert len(lines) == times
    assert all(path in line and "full" in line for line in lines), said


@pytest.mark.slow
def test_what_a_full_disk_held_up_is_written_once_there_is_room(small_disk: Disk) -> None:  # noqa: F811
    made = python(FULL + ROOM, str(small_disk.path))
    assert made.returncode == 128 + 9, made.stderr
    assert_says_full(made.stdout, str(small_disk.path), 3)
    assert urls(str(small_disk.kept / "store.sqlite"), unclean_run="keep") == expected(*range(400))


@pytest.mark.parametrize("rows", [20, *slow(60)])
def test_index_that_can_not_be_written_stays_in_memory(
    path: str, rows: int, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(row_index, "TAIL", 20)
    monkeypatch.setattr(stored_index, "LEAST", rows)
    monkeypatch.setattr(StoredIndex, "write", full)
    fill(path, *range(50))  # of these the next one makes a table at once
    with opened(path) as dedup:
        for number in range(50, 100):
            commit(dedup, number)
            dedup.flush()
            dedup.store.refresh()
        for number in range(100):
            found = dedup.claim(Document(url=f"http://c.example/{number}", text=text(number)))
            assert found.verdict.status == "duplicate"
            found.commit()
    assert "its index stays in memory: [Errno 28]" in caplog.text
    monkeypatch.undo()
    assert urls(path) == expected(*range(100))


def full(self: StoredIndex, levels: object) -> None:
    raise OSError(errno.ENOSPC, "No space left on device")


# Several processes


@contextmanager
def locked(path: str) -> Iterator[None]:
    """Lock a store meanwhile, over a connection of its own."""
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        yield


def test_lock_that_lasts_too_long_is_an_error_and_what_it_held_up_is_written(
    path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(database, "LOCK_SECONDS", 0.2)
    with opened(path) as dedup:
        commit(dedup, 0)
        dedup.flush()
        with locked(path):
            commit(dedup, 1)
            with pytest.raises(StoreError, match="another process") as caught:
                dedup.flush()
        assert path in str(caught.value)
        commit(dedup, 2)
    assert urls(path) == expected(0, 1, 2)


def test_close_does_not_wait_for_a_lock_for_ever(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(database, "LOCK_SECONDS", 0.2)
    dedup = opened(path)
    commit(dedup, 0)
    with locked(path):
        for use in (dedup.close, lambda: opened(path)):
            with pytest.raises(StoreError, match="another process"):
                use()
    fill(path, 1)
    assert urls(path) == expected(1)
