"""The index of rows against a plain list: compiled and in Python, in memory and in files."""

from __future__ import annotations

import random
import sqlite3
from array import array
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tiers import some

from scrapy_neardup import native, row_index
from scrapy_neardup.fingerprints.hashes import hamming
from scrapy_neardup.row_index import Level, Places, Question, RowIndex
from scrapy_neardup.store.stored_index import FileLevel, StoredIndex, read_level

# Each has other first bits, which are all that an index keeps of a key.
KEYS = [1, 2**64 - 1, 1 << 29, 1 << 63, (1 << 63) - 1, *(random.Random(n).getrandbits(64) for n in range(3))]
CENTRES = [0, 2**64 - 1, 0x0123_4567_89AB_CDEF]


is_built = pytest.mark.skipif(not native.compiled, reason="there is no compiler")


class Model:
    """All rows in a list, the oldest first, which is tried from end to end."""

    def __init__(self) -> None:
        self.rows: list[tuple[int, list[int], int | None]] = []

    def find(self, question: Question) -> Places:
        keys, most, simhash, distance = question
        by_key = {key: [*dict.fromkeys(place for place, has, _ in self.rows if key in has)][-most:] for key in keys}
        far = {place: hamming(simhash, own) for place, _, own in self.rows if simhash is not None and own is not None}
        near = {place: distance_of for place, distance_of in far.items() if distance_of <= distance}
        kept = sorted(near, key=near.__getitem__)[:3]
        return Places(
            {key: places for key, places in by_key.items() if places}, {p: near[p] for p in near if p in kept}
        )

    def count(self, key: int) -> int:
        return sum(key in keys for _, keys, _ in self.rows)


BITS = st.sets(st.integers(0, 63), max_size=8)
NEAR = st.builds(lambda centre, bits: centre ^ sum(1 << bit for bit in bits), st.sampled_from(CENTRES), BITS)
ROWS = st.tuples(st.lists(st.sampled_from(KEYS), max_size=4, unique=True), st.none() | NEAR)
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("add"), ROWS),
        st.tuples(st.sampled_from(["more", "grow", "skip"]), st.integers(0, 9)),
    ),
    max_size=60,
)
ASKED = st.lists(st.sampled_from([*KEYS, 1 << 40]), max_size=4, unique=True).map(lambda keys: array("Q", keys))
QUESTIONS = st.tuples(ASKED, st.integers(1, 4), st.none() | NEAR, st.integers(0, 8))


class Trial:
    """An index and its model, to which the same happens."""

    def __init__(self) -> None:
        self.index, self.model = RowIndex(), Model()
        self.last = 0

    def step(self, name: str, at: Any) -> None:
        if name == "add":
            self.add(len(self.model.rows) << 33 | 1, *at)
        elif name == "more" and self.model.rows:
            self.add(self.model.rows[at % len(self.model.rows)][0], [1 << 41], None)
        elif name == "grow":
            self.index.grow(self.last)
        elif name == "skip":
            self.last += at  # rows without postings

    def add(self, place: int, keys: list[int], simhash: int | None) -> None:
        self.last += 1
        self.index.add(place, array("Q", keys), simhash)
        self.model.rows.append((place, keys, simhash))

    def asked(self, questions: list[Question]) -> None:
        expected = [self.model.find(question) for question in questions]
        assert self.index.find(questions, nearest=3) == expected
        assert [list(places.near) for places in self.index.find(questions, nearest=3)] == [[*e.near] for e in expected]
        assert [self.index.count(key) for key in KEYS] == [self.model.count(key) for key in KEYS]


@settings(max_examples=80, deadline=None)
@given(steps=STEPS, questions=st.lists(QUESTIONS, max_size=4), tail=st.integers(1, 8), is_compiled=st.booleans())
def test_index_finds_what_trying_all_rows_finds(
    steps: list[tuple[str, Any]], questions: list[Question], tail: int, is_compiled: bool
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(row_index, "TAIL", tail)
        patch.setattr(row_index, "STEP", 3)
        if not is_compiled:
            patch.setattr(native, "compiled", None)
        trial = Trial()
        for number, (name, at) in enumerate(steps):
            trial.step(name, at)
            if number % 10 == 0:
                trial.asked(questions)
        trial.asked(questions)


@is_built
@settings(max_examples=40, deadline=None)
@given(
    rows=st.lists(ROWS, max_size=40), questions=st.lists(QUESTIONS, min_size=1, max_size=4), damage=st.integers(0, 99)
)
def test_compiled_and_not_give_the_same_bytes(rows: list[Any], questions: list[Question], damage: int) -> None:
    level = level_of(rows)
    level.simhashes = level.simhashes[: damage or None]  # slots beyond are passed over
    asked = level.entries, level.simhashes, questions, 2
    assert native.compiled
    assert native.compiled.find(*asked) == row_index._find(*asked)


def level_of(rows: list[tuple[list[int], int | None]], first: int = 1) -> Level:
    posted = [(number, array("Q", keys), simhash) for number, (keys, simhash) in enumerate(rows, first)]
    return Level.of(first, first + len(rows) - 1, posted)


def merged(levels: list[Level]) -> Level:
    [level] = RowIndex()._merge(levels)
    return level


def columns(level: Level) -> list[list[int]]:
    return [column.tolist() for column in (level.places, level.simhashes, level.entries)]


@settings(max_examples=30, deadline=None)
@given(parts=st.lists(st.lists(ROWS, max_size=20), min_size=1, max_size=4), step=st.integers(1, 50))
def test_merged_levels_are_the_level_of_all_rows(parts: list[list[Any]], step: int) -> None:
    levels, first = [], 1
    for rows in parts:
        levels.append(level_of(rows, first))
        first += len(rows)
    whole = level_of([row for rows in parts for row in rows])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(row_index, "STEP", step)
        made = merged(levels)
        assert (made.first, made.last) == (1, first - 1)
        assert columns(made) == columns(whole)


@pytest.mark.parametrize("distance", some(range(16), 0, 3, 10, 15))
def test_near_finds_what_trying_all_finds(distance: int) -> None:
    rng = random.Random(distance)
    values = [rng.getrandbits(64) for _ in range(150)]
    queries = values[:12]
    for query in queries:
        for flips in range(distance + 3):
            for spread in (64, 16):  # over all bits, or within one block
                place = rng.randrange(64 // spread) * spread
                flipped = rng.sample(range(spread), min(flips, spread))
                values.append(query ^ sum(1 << place + bit for bit in flipped))
    index = index_of(values)
    for query in queries:
        expected = [number for number, value in enumerate(values, 1) if hamming(query, value) <= distance]
        assert [*near(index, query, distance)] == expected
        assert len(expected) >= 2 * distance + 2


def index_of(values: list[int]) -> RowIndex:
    index = RowIndex()
    index.levels.append(level_of([([], value) for value in values]))
    return index


def near(index: RowIndex, value: int, distance: int, most: int = 10**6) -> dict[int, int]:
    [places] = index.find([(array("Q"), 0, value, distance)], nearest=most)
    return places.near


def test_blocks_by_hand() -> None:
    """Manku et al. 2007, section 3: three bits lie in three of the four blocks at most, so one block is equal.

    Beyond, some block of 16 bits differs in a quarter of them or fewer: of four bits in one, of eight in two.
    """
    value, in_three, in_four = 0x0123_4567_89AB_CDEF, 0x0001_0001_0001_0000, 0x0001_0001_0001_0001
    index = index_of([value ^ flipped for flipped in (in_three, in_four, in_four * 3)])
    for distance, found in ((2, {}), (3, {1: 3}), (4, {1: 3, 2: 4}), (8, {1: 3, 2: 4, 3: 8})):
        assert near(index, value, distance) == found


def test_of_a_crowd_the_nearest_and_newest_are_looked_at() -> None:
    """More of one block than are looked at: those whose next bits are equal come first."""
    crowd = 2 * row_index.CROWD
    index = index_of([0xFFFF << 31] * crowd + [0] * crowd + [1] * 3)
    assert near(index, 0, 3, 3) == dict.fromkeys(range(crowd + row_index.CROWD + 1, crowd + row_index.CROWD + 4), 0)
    assert near(index, 1, 0, 9) == dict.fromkeys(range(2 * crowd + 1, 2 * crowd + 4), 0)


# Files


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[StoredIndex]:
    monkeypatch.setattr(StoredIndex, "_fits", lambda *_: True)
    with closing(sqlite3.connect(":memory:")) as db:
        yield StoredIndex(db, str(tmp_path / "x"), "x", lambda place: False, writes=True)


def read(files: StoredIndex) -> list[tuple[int, int]]:
    """Return the ranges of the levels that fit, and remove all other files."""
    return [(level.first, level.last) for level in files.read()]


def write(files: StoredIndex, *levels: Level) -> FileLevel:
    return files.write(levels)


def parts(*sizes: int) -> Iterator[Level]:
    first = 1
    for size in sizes:
        yield level_of([([number << 40], number) for number in range(first, first + size)], first)
        first += size


def test_a_bit_that_changed_anywhere_is_found(files: StoredIndex, monkeypatch: pytest.MonkeyPatch) -> None:
    [level] = parts(1)
    path = write(files, level).path
    data = path.read_bytes()
    for bit in [*range(256), *range(256, 8 * len(data), 7)]:  # of the columns one or two in each byte
        changed = bytearray(data)
        changed[bit // 8] ^= 1 << bit % 8
        path.write_bytes(bytes(changed))
        with pytest.raises(ValueError, match="damaged"):
            read_level(path, 1, 1)
    monkeypatch.setattr("scrapy_neardup.store.stored_index.CHECKED", 0)
    for size in range(len(data)):
        path.write_bytes(data[:size])
        with pytest.raises(ValueError, match="damaged"):
            read_level(path, 1, 1)
