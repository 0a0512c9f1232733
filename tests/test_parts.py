"""Parts: made in a process of their own, whole or not at all, read in spite of kills, and refused where damaged."""

from __future__ import annotations

import random
from contextlib import closing
from itertools import count, islice
from pathlib import Path
from typing import Any

import pytest
from helpers import detectors, hashes, link, names, python, settle, signature, sketch, until, wait_for_news
from tiers import slow

from scrapy_neardup import Deduplicator, Document
from scrapy_neardup.signature import Evidence, Link, Signature
from scrapy_neardup.stores import SqliteStore, StoreError
from scrapy_neardup.stores.absorbing import tidy
from scrapy_neardup.stores.base import Selection
from scrapy_neardup.stores.describing import count_urls
from scrapy_neardup.stores.sqlite import BATCH

TIDYING = """
import os, sys
from scrapy_neardup.stores import absorbing, tidying
left = int(sys.argv[2])
def die_in_time(*_):
    global left
    left -= 1
    if not left:
        os.kill(os.getpid(), 9)
sys.setprofile(die_in_time)
tidying.main(sys.argv[1], "")
sys.setprofile(None)
print(-left)
"""
"""Tidy a store, die after so many calls and returns of functions, or print how many there were."""


@pytest.fixture
def path(tmp_path: Path) -> str:
    return str(tmp_path / "store.sqlite")


def opened(path: str, run: str | None = "") -> closing[SqliteStore]:
    return closing(SqliteStore(path, detectors(), run=run))


def fill(path: str, first: int, count: int) -> None:
    """Commit documents of these numbers, each under a fingerprint of its own."""
    with opened(path) as store:
        for number in range(first, first + count):
            each = signature(str(number), exact=number + 1000, simhash=number << 30)
            store.add(each)
            store.commit(each)
            store.record(link(each.url or "", each))


def held(path: str) -> list[int]:
    with opened(path, None) as store:
        for number in sorted(map(int, names(store.signatures()))):
            assert names(s for _, s in store.find({"exact": (number + 1000,)})) == [str(number)]
        return sorted(map(int, names(store.signatures())))


def told(path: str) -> str:
    """Return `whole` if the store holds all that was written, or else how it fails."""
    try:
        return "whole" if held(path) == list(range(40)) else "wrong"
    except StoreError as error:
        return "damaged" if "damaged" in str(error) else str(error)


def files(path: str) -> list[Path]:
    return list(Path(f"{path}.parts").iterdir())


def test_the_log_is_put_into_a_part_when_there_is_enough(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("scrapy_neardup.stores.tidying.FRESH", 50)
    fill(path, 0, 120)
    assert len(files(path)) == 1
    assert held(path) == list(range(120))


def test_flush_alone_lets_go_of_what_is_in_parts(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("scrapy_neardup.stores.tidying.FRESH", 50)
    with Deduplicator.open(path) as dedup:
        for number in range(120):
            text = " ".join(f"word{number}x{place}" for place in range(40))
            dedup.claim(Document(url=f"http://site.example/{number}", text=text)).commit()
            dedup.flush()
        until(lambda: dedup.flush() or described(dedup)["documents_in_memory"] < 50)
        assert len(dedup) == 120


@pytest.mark.slow
def test_tidying_begins_each_time_with_as_few_documents(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("scrapy_neardup.stores.tidying.FRESH", 50)
    with opened(path) as store:
        for number in range(120):
            each = signature(str(number), exact=number + 1000, simhash=number << 30)
            store.add(each)
            store.commit(each)
            store.flush()
            if process := store._tidying._process:
                process.wait()
            settle(store)
            assert len(store.fresh) < 50


def test_urls_in_parts_are_let_go_as_others_come(path: str) -> None:
    numbers = count()

    def record(store: SqliteStore) -> None:
        for number in islice(numbers, BATCH):
            store.record(link(f"http://site.example/{number}", None))
        wait_for_news(store)

    with opened(path) as store:
        record(store)
        store.flush()
        tidy(path, "")
        for _ in range(4):
            record(store)
        assert len(store.newest) <= 4 * BATCH
        assert count_urls(store) == 5 * BATCH


def described(dedup: Deduplicator) -> dict[str, Any]:
    return dedup.store.describe()


def test_parts_are_few_and_nothing_else_lies_there(path: str) -> None:
    for first in range(0, 60, 4):
        fill(path, first, 4)
        tidy(path, "")
        assert len(files(path)) <= 4
    assert held(path) == list(range(60))


def test_everything_survives(path: str) -> None:
    minima = sketch(77, hashes(60, seed=1), figures=[3, 9])
    a = Signature("http://site.example/a", {"exact": (2**64 - 1,), "simhash": (3,)}, minima, 1234.5, layout=2**63)
    nameless = Signature(None, {"exact": (8,), "simhash": ()}, minima, 6.0)
    evidence = Evidence("simhash", 2, 0.875, 0.9, 1.25, "content")
    with opened(path) as store:
        for each in (a, nameless):
            store.add(each)
            store.commit(each)
        store.record(link("http://site.example/a", a, size=0))
        store.record(Link("http://m.example/a?x=1", a, True, 99.5, 4321, evidence, firm=False))
        store.record(link("http://m.example/list", None))
        run = store.run
    tidy(path, "")
    with opened(path) as store:
        first, second = store.signatures()
        assert (first.url, first.sketch, first.first_seen, first.layout) == (a.url, minima, a.first_seen, 2**63)
        assert (first.fingerprints, first.repeats, store.parts.key(first)) == (a.fingerprints, 1, (run, 0, 0))
        assert (second.url, second.fingerprints) == (None, {"exact": (8,)})
        own, other = store.links(first)
        assert (own.url, own.mirror, own.evidence, own.size) == ("http://site.example/a", False, None, 0)
        assert (other.url, other.mirror, other.seen, other.size) == ("http://m.example/a?x=1", True, 99.5, 4321)
        assert (other.evidence, other.firm, other.signature) == (evidence, False, first)
        nowhere = store.resolve("http://m.example/list")
        assert nowhere is not None
        assert nowhere.signature is None


def test_a_run_is_forgotten_after_its_segments_are_gone(path: str) -> None:
    fill(path, 0, 5)
    fill(path, 5, 5)
    tidy(path, "")
    with opened(path) as store:
        second = store.runs()[1].id
        assert store.forget(Selection(run=second)) == (5, 5)
        assert len(store) == 5
    assert held(path) == list(range(5))
    tidy(path, "", whole=True)
    assert held(path) == list(range(5))


@pytest.mark.parametrize("run", ["none-such", "this"])
def test_runs_that_can_not_be_forgotten(path: str, run: str) -> None:
    fill(path, 0, 1)
    with opened(path) as store, pytest.raises(StoreError, match=r"no run|alive"):
        store.forget(Selection(run=store.run if run == "this" else run))


@pytest.mark.parametrize("kills", [3, *slow(20)])
def test_a_kill_leaves_it_whole(path: str, kills: int) -> None:
    rng = random.Random(kills)
    fill(path, 0, 40)
    steps = int(python(TIDYING, path, "0").stdout)
    for kill in range(1, kills + 1):
        fill(path, 40 * kill, 40)
        assert python(TIDYING, path, str(rng.randint(1, steps))).returncode == -9
        assert held(path) == list(range(40 * kill + 40))
    assert python(TIDYING, path, "0").returncode == 0
    assert held(path) == list(range(40 * kills + 40))
    assert len(files(path)) <= 4


@pytest.mark.parametrize("step", [29, *slow(7)])
def test_damage_is_told(path: str, step: int) -> None:
    fill(path, 0, 40)
    tidy(path, "")
    [part] = files(path)
    whole = part.read_bytes()
    for place in [*range(0, 400, step), *range(400, len(whole), 140 * step + 17)]:
        part.write_bytes(whole[:place] + bytes([whole[place] ^ 1]) + whole[place + 1 :])
        assert told(path) in ("whole", "damaged")  # between two columns nothing lies
    part.write_bytes(whole[:-100])
    with pytest.raises(StoreError, match="damaged"):
        held(path)
    part.unlink()
    with pytest.raises(StoreError, match="missing"):
        held(path)
