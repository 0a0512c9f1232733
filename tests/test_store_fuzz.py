"""A fuzz of the file format: for any content of a file, the store gives right answers, or is refused in one clear line.

NEARDUP_TEST_EXAMPLES is the number of cases of each kind.
"""

from __future__ import annotations

import os
import pickle
import random
import shutil
import sqlite3
import zlib
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import msgpack
import numpy as np
import pytest
import store_damage
from helpers import python
from hypothesis import example, given, settings
from hypothesis import strategies as st
from store_damage import COUNTS, DAMAGES, Bomb
from tiers import slow

from scrapy_neardup.signature import Signature
from scrapy_neardup.store import StoreError, database, open_store, stored_index
from scrapy_neardup.store.records import MADE, HostNews, Key, dump, kind_of, load, merged, visit_key
from scrapy_neardup.store.stored_index import read_level

EXAMPLES = int(os.environ.get("NEARDUP_TEST_EXAMPLES", "30"))
PAGE = 16_384
SOME_OR_ALL = [3, *slow(EXAMPLES)]
SURVEY = """
import sys
from pathlib import Path
from store_damage import survey
survey(Path(sys.argv[1]), sys.argv[2], int(sys.argv[3]))
"""


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of a store that nothing is wrong with."""
    folder = tmp_path_factory.mktemp("whole")
    store_damage.make(folder / "store.sqlite")
    assert len(list(folder.rglob("*.idx"))) == 2
    return folder


@pytest.mark.parametrize(
    ("kind", "examples"),
    [
        *((kind, 3) for kind in ("flip", "change_row")),
        *slow(*((kind, EXAMPLES) for kind in DAMAGES)),
    ],
)
def test_damaged_store_is_refused_or_right(whole: Path, tmp_path: Path, kind: str, examples: int) -> None:
    folder = shutil.copytree(whole, tmp_path / "store")
    made = python(SURVEY, str(folder), kind, str(examples))
    assert made.returncode == 0, made.stdout[-200:] + made.stderr
    judged = made.stdout.splitlines()
    assert len(judged) == examples
    assert [line for line in judged if not line.endswith((": fine", ": refused"))] == []


# The decoders, given anything


def mutated(data: bytes, seed: int) -> bytes:
    """Return bytes with some of them changed, left out, doubled or put elsewhere."""
    rng, some = random.Random(seed), bytearray(data)
    for _ in range(rng.choice([1, 1, 2, 5])):
        at, end = sorted(rng.randrange(len(some) + 1) for _ in range(2))
        other = rng.randrange(len(some) + 1)
        changes: list[Callable[[], object]] = [
            lambda at=at: some.__setitem__(slice(at, at + 1), rng.randbytes(1)),
            lambda at=at, end=end: some.__delitem__(slice(at, min(end, at + 9))),
            lambda at=at, other=other: some.__setitem__(slice(at, at), some[other : other + 9]),
        ]
        rng.choice(changes)()
    return bytes(some)


def rows(folder: Path, kind: str) -> list[tuple[Key, bytes]]:
    with closing(sqlite3.connect(folder / "store.sqlite")) as db:
        rows = [*db.execute("SELECT key, value FROM neardup")]
        return [row for row in rows if kind_of(row[0]) == kind]


def with_checksum(key: Key, body: bytes) -> bytes:
    """Return a row with a checksum that fits, as only someone who means to can make it."""
    return zlib.crc32(body, zlib.crc32(str(key).encode())).to_bytes(4, "big") + body


def refuses_or_reads(read: Callable[[bytes], object], data: bytes) -> None:
    """Insist that bytes are read, or that ValueError says that they can't be."""
    try:
        read(data)
    except ValueError as error:
        assert "\n" not in str(error)  # noqa: PT017 - it may be read as well


@pytest.mark.parametrize("examples", SOME_OR_ALL)
@pytest.mark.parametrize("kind", ["document", "visit", "run", "host", "meta"])
def test_rows_of_anything(whole: Path, kind: str, examples: int) -> None:
    others: dict[str, Key] = {"meta": MADE, "visit": visit_key("http://a.example/"), "document": 1}
    key = others.get(kind, f"{kind}/{1:016x}")
    valid = st.sampled_from([value[4:] for _, value in rows(whole, kind)] or [dump(key, HostNews())[4:]])
    plain = st.none() | st.booleans() | st.integers(-(2**63), 2**64 - 1) | st.floats(allow_nan=False) | st.text()
    nested = st.recursive(plain, lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner), max_leaves=20)
    anything = st.binary() | nested.map(msgpack.packb) | st.builds(mutated, valid, st.integers(0, 2**32))

    @settings(max_examples=5 * examples, derandomize=True, deadline=None)
    @given(anything)
    @example(b"\x91" * 100_000)
    @example(msgpack.packb({"format": 1e300, "schemes": {}}))
    def try_one(body: bytes) -> None:
        refuses_or_reads(lambda data: read(key, data), with_checksum(key, body))

    try_one()


def read(key: Key, value: bytes) -> None:
    record = load(key, value)
    if key == MADE:
        merged(record, {"exact": "exact/1"})
    elif isinstance(record, Signature):
        _ = record.keys, record.index_keys


def test_row_of_random_bytes() -> None:
    rng = random.Random(1)
    for size in [*range(12), *(rng.randrange(5000) for _ in range(EXAMPLES))]:
        with pytest.raises(ValueError, match="damaged"):
            load(1, rng.randbytes(size))


@pytest.fixture
def table(whole: Path) -> bytes:
    """Return the smaller file of an index."""
    return min((file.read_bytes() for file in whole.rglob("*.idx")), key=len)


def read_both(file: Path, data: bytes) -> None:
    file.write_bytes(data)
    for size in (0, stored_index.CHECKED):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(stored_index, "CHECKED", size)
            refuses_or_reads(lambda _: read_level(file, 1, 9), data)


@pytest.mark.parametrize("examples", SOME_OR_ALL)
def test_index_files_of_anything(table: bytes, tmp_path: Path, examples: int) -> None:
    for seed in range(examples):
        rng = random.Random(seed)
        for data in (mutated(table, seed), rng.randbytes(rng.randrange(200)), b"", with_head(table, rng)):
            read_both(tmp_path / "x.idx", data)


def with_head(table: bytes, rng: random.Random) -> bytes:
    """Return a file with another number in its head."""
    words = np.frombuffer(table[:32], "<u8").copy()
    words[rng.randrange(1, 4)] = rng.choice([0, 1, rng.getrandbits(64), 2**63, 2**64 - 1])
    return words.tobytes() + table[32:]


# Data, not code


def test_pickles_in_an_index_are_never_executed(whole: Path, tmp_path: Path, table: bytes) -> None:
    bomb = pickle.dumps(Bomb(tmp_path / "executed"))
    folder = shutil.copytree(whole, tmp_path / "store")
    for data in (bomb, table[:32] + bomb, table[:-99] + bomb):
        read_both(tmp_path / "x.idx", data)
        for file in folder.rglob("*.idx"):
            file.write_bytes(data)
        open_store(str(folder / "store.sqlite"), store_damage.detectors(), run=None).close()
    assert not (tmp_path / "executed").exists()


# Large files, of which only the head is read when they are opened


def damaged_columns(table: bytes, seed: int) -> bytes:
    rng, data = random.Random(seed), bytearray(table)
    at = rng.randrange(128, len(table))
    data[at : at + 512] = rng.randbytes(len(data[at : at + 512]))
    return bytes(data)


def damaged_page(rows: bytes, seed: int) -> bytes:
    at = PAGE * (1 + seed % (len(rows) // PAGE - 1))
    return rows[:at] + b"\xa5" * PAGE + rows[at + PAGE :]


@pytest.mark.parametrize(
    ("files", "damage", "examples"),
    [("*.idx", damaged_columns, 3), *slow(("*.idx", damaged_columns, EXAMPLES), ("*.sqlite", damaged_page, EXAMPLES))],
)
def test_damage_that_is_met_in_mid_run_is_told(
    whole: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    files: str,
    damage: Callable[[bytes, int], bytes],
    examples: int,
) -> None:
    monkeypatch.setattr(stored_index, "CHECKED", 0)
    monkeypatch.setattr(database, "SMALL", 0)
    folder = shutil.copytree(whole, tmp_path / "store")
    file = max(folder.rglob(files), key=lambda each: each.stat().st_size)
    intact = file.read_bytes()
    outcomes = list[str]()
    for seed in range(examples):
        file.write_bytes(damage(intact, seed))
        before = store_damage.contents(folder)
        outcomes.append(what_went_wrong(folder))
        assert store_damage.contents(folder) == before
    assert {*outcomes} <= {"", "refused", "met"}
    assert files == "*.idx" or "met" in outcomes


def what_went_wrong(folder: Path) -> str:
    """Ask a store for all that it holds; return when it said that it is damaged, "" for answers."""
    told = "refused"
    try:
        with closing(open_store(str(folder / "store.sqlite"), store_damage.detectors(), run=None)) as store:
            told = "met"
            store_damage.asked(store)
            assert len({each.url for each in store.signatures()}) == sum(COUNTS) - len(COUNTS)
    except StoreError as error:
        return told if "store.sqlite" in str(error) and "\n" not in str(error) else str(error)
    return ""
