"""`compact`, and imports into a file, if the disk is full or the process is killed: nothing is lost."""

from __future__ import annotations

import json
import os
import random
import signal
import time
from pathlib import Path
from typing import Any

import pytest
from cli import write
from faulty import Disk, read_only_disk, small_disk  # noqa: F401 - fixtures
from helpers import named, python, talking
from store_kinds import URL, Place, fill_numbered, on_disk
from tiers import slow

from scrapy_neardup.store import Selection, compact

KILLS = [1, *slow(int(os.environ.get("NEARDUP_TEST_KILLS", "4")))]


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return on_disk(tmp_path)


def size(place: Place) -> int:
    return sum(file.stat().st_size for file in [Path(place.address), *Path(f"{place.address}.index").rglob("*.idx")])


def numbers(place: Place) -> list[int]:
    return sorted(map(int, place.held(run=None)))


def test_compacting_gives_space_back_and_loses_nothing(place: Place) -> None:
    fill_numbered(place, 0, 600)
    fill_numbered(place, 0, 60, name="other")
    with place.opened() as store:
        for number in filter(lambda number: number % 3, range(600)):
            store.forget(Selection(url=f"{URL}{number}"))
    before, rows, other = size(place), place.sorted_rows(), place.exported("other")
    compact(place.address)
    assert size(place) < 0.6 * before
    assert (place.sorted_rows(), place.exported("other")) == (rows, other)
    with place.opened(run=None) as store:
        told = {each.url: (each.title, each.facts) for each in store.signatures()}
    assert told == {f"{URL}{number}": (f"Page {number}", named(str(number))) for number in range(0, 600, 3)}


ON_A_FULL_DISK = """
import json, os, sys
from contextlib import redirect_stderr, redirect_stdout
from io import StringIO
from faulty import fill_up
from helpers import text
from scrapy.cmdline import execute
from scrapy_neardup import Deduplicator, Document
from test_compacting import *

disk = Path(sys.argv[1])
store, out = disk / "store.sqlite", disk / "out.jsonl"
with Deduplicator.open(str(store)) as dedup:
    for n in range(150):
        dedup.claim(Document(f"http://{'a' if n < 100 else 'b'}.example/{n}", text(n))).commit()
out.write_text("earlier")
whole = store.read_bytes()
for room in range(0, 500_000, int(sys.argv[2])):
    for file in disk.iterdir():
        if file != out:
            file.unlink()
    store.write_bytes(whole)
    filler = fill_up(disk)
    os.truncate(filler, max(0, filler.stat().st_size - room))
    said = StringIO()
    with redirect_stdout(said), redirect_stderr(said):
        try:
            execute(["scrapy", "neardup", *sys.argv[3:], "--store", str(store)])
        except SystemExit as end:
            code = end.code
    filler.unlink()
    with on_disk(disk).opened(run=None) as held:
        hosts = sorted(each.url[7] for each in held.signatures())
    written = out.read_text() if out.exists() else ""
    files = sorted(file.name for file in disk.iterdir() if file.suffix not in (".sqlite-shm", ".sqlite-wal"))
    print(json.dumps([code, said.getvalue(), "".join(hosts), written, files]))
"""
STEP = [200_000, *slow(10_000)]  # bytes of room on the disk, from one call to the next


def on_a_full_disk(disk: Disk, step: int, *call: str) -> list[list[Any]]:
    """Return the outcome of each call: exit code, what it printed, the hosts in the store, the output and all files."""
    made = python(ON_A_FULL_DISK, str(disk.path), str(step), *call)
    assert made.returncode == 0, made.stderr
    return [json.loads(line) for line in made.stdout.splitlines()]


@pytest.mark.parametrize("step", STEP)
def test_forgetting_on_a_full_disk_takes_nothing_else_and_says_what_it_did(small_disk: Disk, step: int) -> None:  # noqa: F811
    ends = on_a_full_disk(small_disk, step, "forget", "--host", "a.example")
    assert {code for code, *_ in ends} == {0, 2}
    for code, said, hosts, *_ in ends:
        assert said.count("\n") == 1
        assert ("100 documents and 100 URLs forgotten" in said) == (hosts == "b" * 50)
        assert hosts in ("b" * 50, "a" * 100 + "b" * 50)
        assert code == 0 or ": store " in said or "but then store " in said


@pytest.mark.slow
@pytest.mark.parametrize("step", STEP)
def test_an_export_that_fills_the_disk_leaves_no_part_of_a_file(small_disk: Disk, step: int) -> None:  # noqa: F811
    ends = on_a_full_disk(small_disk, step, "export", "-o", str(small_disk.path / "out.jsonl"))
    assert {code for code, *_ in ends} == {0, 2}
    for code, said, hosts, written, files in ends:
        assert said.count("\n") == 1
        assert hosts == "a" * 100 + "b" * 50
        assert files == ["out.jsonl", "store.sqlite"]
        assert (written == "earlier") if code else (written.count("\n") > 300)
        if not code:
            break  # the next one would have less room than it


# Kills

CODE = """
import json, sys
from scrapy_neardup.store import compact
from scrapy_neardup import row_index
from scrapy_neardup.store import stored_index
from scrapy_neardup.store.transfer import import_rows

row_index.TAIL = stored_index.LEAST = 20

def rows():
    *first, last = open(sys.argv[3])
    for number, line in enumerate(first):
        if number == int(sys.argv[4]):
            print("begun", flush=True)
        yield json.loads(line)
    sys.stdin.read()  # until it is killed
    yield json.loads(last)

if sys.argv[1] == "compact":
    print("begun", flush=True)
    while True:
        compact(sys.argv[2])
else:
    import_rows(sys.argv[2], "", rows(), chunk=20)
"""


def killed(after: float, *arguments: str) -> None:
    """Run code that does not end by itself, and kill it `after` seconds after it has printed "begun"."""
    with talking(CODE, *arguments) as process:
        assert process.stdout.readline() == "begun\n"
        time.sleep(after)
        process.kill()
        assert process.wait() == -signal.SIGKILL


@pytest.mark.parametrize("kills", KILLS)
def test_compacting_that_is_killed_loses_nothing(place: Place, kills: int) -> None:
    moment = random.Random(1)
    for kill in range(kills):
        fill_numbered(place, 40 * kill, 40)
        killed(moment.uniform(0, 0.3), "compact", place.address)
        assert numbers(place) == list(range(40 * kill + 40))
    assert place.is_whole()


@pytest.mark.parametrize("kills", KILLS)
def test_an_import_that_is_killed_goes_on(place: Place, tmp_path: Path, kills: int) -> None:
    moment = random.Random(2)
    fill_numbered(place, 0, 200)
    write(tmp_path / "in.jsonl", everything := place.exported())
    for kill in range(kills):
        copy = on_disk(tmp_path, f"copy{kill}")
        row = moment.randrange(len(everything) - 1)
        killed(moment.uniform(0, 0.02), "import", copy.address, str(tmp_path / "in.jsonl"), str(row))
        assert not Path(copy.address).exists() or copy.is_whole()
        copy.load(everything)
        assert copy.sorted_rows() == place.sorted_rows()
