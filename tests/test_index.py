"""The tables by which a store finds documents, against trying all that they hold."""

from __future__ import annotations

import gc
import random
import weakref
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
from helpers import Entry, Finished
from tiers import slow, some

from scrapy_neardup.fingerprints.simhash import hamming
from scrapy_neardup.index import near
from scrapy_neardup.index.kinds import Index

# Far from each other, so that both indexes tell them apart.
A, B, C = 0x0123_4567_89AB_CDEF, 0xFEDC_BA98_7654_3210, 0x5A5A_A5A5_C3C3_3C3C


def found(index: Index[Any], *fingerprints: int) -> list[str]:
    return [entry.name for entry in index.find(fingerprints)]


KINDS = {
    "packed": Finished,
    **{f"near {distance}": partial(Finished, distance) for distance in (0, 3, 12)},
}


@pytest.fixture(params=[True, False], autouse=True)
def all_tried(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Make tables of SimHashes try all entries, as small ones do, or look them up by blocks."""
    monkeypatch.setattr(near, "CROWD", 10**6)
    if not request.param:
        monkeypatch.setattr(near, "FEW", 0)


@pytest.fixture(params=KINDS.values(), ids=KINDS)
def index(request: pytest.FixtureRequest) -> Index[Any]:
    make: Callable[[], Index[Any]] = request.param
    return make()


def test_found_by_an_equal_fingerprint_only(index: Index[Any]) -> None:
    assert found(index, A) == found(index) == []
    for values, name in (([A], "a"), ([B], "b"), ([], "abstains")):
        index.add(values, Entry(name))
    assert [found(index, value) for value in (A, B, C, 0)] == [["a"], ["b"], [], []]
    assert found(index) == []


def test_found_once_however_many_fingerprints_agree(index: Index[Any]) -> None:
    index.add([A, B], Entry("twice"))
    assert found(index, A, B, A) == ["twice"]
    assert found(index, C, B) == ["twice"]


def test_found_in_the_order_of_coming(index: Index[Any]) -> None:
    for name in "xabcm":
        index.add([A], Entry(name))
    assert found(index, A) == list("xabcm")


@pytest.mark.parametrize("value", [0, 1, 2**63, 2**64 - 1])
def test_every_value_is_a_fingerprint(index: Index[Any], value: int) -> None:
    index.add([value], Entry("edge"))
    assert found(index, value) == ["edge"]


def test_removed_is_not_found_and_others_stay(index: Index[Any]) -> None:
    first, second, third = Entry("first"), Entry("second"), Entry("third")
    for entry in (first, second, third):
        index.add([A, B], entry)
    index.remove([A, C], Entry("stranger"))  # which is not there
    index.remove([A, B], second)
    assert found(index, A) == found(index, B) == ["first", "third"]
    index.remove([A, B], first)
    index.remove([A, B], third)
    assert found(index, A, B) == []
    index.add([A], first)
    assert found(index, A) == ["first"]


def test_what_was_removed_is_let_go_of(index: Index[Any]) -> None:
    document = Entry("a")
    gone = weakref.ref(document)
    index.add((1, 2), document)
    index.remove((1, 2), document)
    del document
    gc.collect()
    assert gone() is None


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
    index = Finished(distance)
    for number, value in enumerate(values):
        index.add([value], Entry(str(number)))
    for query in queries:
        expected = [number for number, value in enumerate(values) if hamming(query, value) <= distance]
        assert list(map(int, found(index, query))) == expected
        assert len(expected) >= 2 * distance + 2


class Trial:
    """An index that tries all it holds, in the order of coming, for each fingerprint in turn."""

    def __init__(self, distance: int) -> None:
        self.distance = distance
        self.held: list[tuple[list[int], Entry]] = []

    def find(self, fingerprints: list[int]) -> list[str]:
        near = (
            entry.name
            for wanted in fingerprints
            for values, entry in self.held
            if any(hamming(wanted, value) <= self.distance for value in values)
        )
        return list(dict.fromkeys(near))


@pytest.mark.parametrize("distance", [None, 3, 9, *slow(0, 2, 6, 7, 13)])
def test_whatever_comes_and_goes_it_finds_what_trying_all_finds(distance: int | None) -> None:
    rng = random.Random(distance)
    index = Finished(distance)
    trial = Trial(distance or 0)
    centres = [rng.getrandbits(64) for _ in range(6)]

    def fingerprints() -> list[int]:
        """Return one to three that lie near each other or that others have too, one of them perhaps twice."""
        flips = rng.sample(range(64), rng.randrange((distance or 0) + 2))
        values = [centre ^ sum(1 << bit for bit in flips) for centre in rng.sample(centres, rng.randint(1, 3))]
        return values + values[: rng.random() < 0.2]

    for step in range(150):
        if trial.held and rng.random() < 0.4:
            values, entry = trial.held.pop(rng.randrange(len(trial.held)))
            index.remove(values, entry)
        else:
            trial.held.append((fingerprints(), Entry(str(step))))
            index.add(*trial.held[-1])
        wanted = fingerprints()
        assert found(index, *wanted) == trial.find(wanted)


def test_documents_of_a_fingerprint_that_very_many_have_come_one_by_one(index: Index[Any]) -> None:
    entries = [Entry(str(number)) for number in range(2000)]
    for entry in entries:
        index.add([A, B], entry)
    assert next(iter(index.find([A, B]))) is entries[0]
    for entry in entries[:3]:
        index.remove([A, B], entry)
    assert found(index, B)[:2] == ["3", "4"]
    assert len(found(index, A, B)) == len(entries) - 3


def test_of_a_fingerprint_that_many_share_the_newest_are_found() -> None:
    index = Finished(None, 3)
    entries = [Entry(str(number)) for number in range(6)]
    for number, entry in enumerate(entries):
        index.add((7, 100 + number), entry)
    assert found(index, 7) == ["3", "4", "5"]
    assert found(index, 7, 100) == ["3", "4", "5", "0"]
    for entry in entries[3:]:
        index.remove((7,), entry)
    assert found(index, 7) == ["0", "1", "2"]


def test_hamming_distance_beyond_the_limit_is_not_found() -> None:
    index = Finished(3)
    index.add([A ^ 0b111], Entry("three"))
    index.add([A ^ 0b1111], Entry("four"))
    assert found(index, A) == ["three"]


def test_blocks_by_hand() -> None:
    """Manku et al. 2007, section 3: three bits lie in three of the four blocks at most, so one block is equal.

    Beyond, some block of 16 bits differs in a quarter of them or fewer: of four bits in one, of eight in two.
    """
    in_three, in_four = 0x0001_0001_0001_0000, 0x0001_0001_0001_0001
    for distance, found_by in ((3, [in_three]), (4, [in_three, in_four]), (8, [in_three, in_four, in_four * 3])):
        index = Finished(distance)
        for flipped in (in_three, in_four, in_four * 3):
            index.add([A ^ flipped], Entry(f"{flipped:x}"))
        assert found(index, A) == [f"{flipped:x}" for flipped in found_by]
