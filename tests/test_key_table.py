"""The finished tables: whatever they hold, and whatever they are merged of, they find all of it."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scrapy_neardup.index import near
from scrapy_neardup.index.key_table import HASH_BITS, MOST, PackedTable
from scrapy_neardup.index.near import NearTable

KEYS = st.one_of(st.integers(0, 2**64 - 1), st.sampled_from([0, 1, 2**63, 2**64 - 1]))
PAIRS = st.lists(st.tuples(KEYS, st.integers(0, 1000)), max_size=60)


def table(pairs: list[tuple[int, int]]) -> PackedTable:
    columns = np.array(pairs, np.uint64).reshape(-1, 2)
    return PackedTable.made(columns[:, 0].copy(), columns[:, 1].copy())


@settings(max_examples=60, deadline=None)
@given(st.lists(PAIRS, min_size=1, max_size=4), st.lists(KEYS, max_size=5))
def test_merged_finds_what_each_has(batches: list[list[tuple[int, int]]], strangers: list[int]) -> None:
    held: dict[int, list[int]] = {}
    for base, pairs in enumerate(batches):
        for key, number in pairs:
            held.setdefault(key >> 64 - HASH_BITS, []).append(number + 2000 * base)
    merged = PackedTable.merged([(table(pairs), 2000 * base) for base, pairs in enumerate(batches)])
    assert len(merged) == sum(map(len, batches))
    wanted = [*strangers, *(key for pairs in batches for key, _ in pairs)]
    found = [sorted(held.get(key >> 64 - HASH_BITS, [])) for key in wanted]
    assert [numbers for _, numbers in merged.find(wanted, newest=1000)] == list(filter(None, found))
    assert [merged.count(key) for key in wanted] == [*map(len, found)]


@pytest.mark.parametrize("size", [1, 2, 1000, 300_000])
def test_large_tables_and_numbers(size: int) -> None:
    keys = np.random.default_rng(size).integers(0, 2**64, size, dtype=np.uint64)
    numbers = np.arange(MOST - size, MOST, dtype=np.uint64)
    halves = [table(list(zip(k.tolist(), n.tolist(), strict=True))) for k, n in
              zip(np.array_split(keys, 2), np.array_split(numbers, 2), strict=True)]  # fmt: skip
    merged = PackedTable.merged([(half, 0) for half in halves])
    some = range(0, size, max(1, size // 100))
    found = merged.find([int(keys[place]) for place in some], newest=10)
    assert all(MOST - size + place in numbers for place, (_, numbers) in zip(some, found, strict=True))
    assert sum(column.nbytes for column in merged.columns.values()) <= 9.1 * size + 24


def test_of_a_crowded_bucket_the_newest_are_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(near, "FEW", 0)
    monkeypatch.setattr(near, "CROWD", 5)
    crowd = NearTable(np.full(1000, 77, np.uint64))
    assert list(crowd.find(77, 3, most=100)) == [995, 996, 997, 998, 999]


def test_of_very_many_that_are_near_the_nearest_are_found() -> None:
    values = np.array([0b1111, 0b111, 0, 0b1, 0b11], np.uint64)
    assert list(NearTable(values).find(0, 4, most=2)) == [2, 3]
