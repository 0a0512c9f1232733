"""Variants of URLs: the parameters by which they differ, their classes, the evidence, and its effect."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock

import pytest
from helpers import edited, text

from scrapy_neardup import Claim, Deduplicator, Document
from scrapy_neardup.contrib import variants
from scrapy_neardup.contrib.variants import RULES, Rule, Variants, difference, variation
from scrapy_neardup.settings import Config

A = "http://a.example"
ENOUGH = 41  # equal pages that bring a rule into force


@pytest.mark.parametrize(
    ("a", "b", "expected"),
    [
        ("/x?sid=a1b2c3d4", "/x?sid=b1b2c3d4", "sid"),
        ("/x", "/x?print=1", "print"),
        ("/x?id=7", "/x?id=7&print=1&sid=a1b2c3d4", "print&sid"),
        ("/x", "/x", ""),
        ("/x", "/y", ""),
        ("/x", "/y?print=1", ""),
        ("/x", "/x/?print=1", ""),
        ("/x", "/x?page=2", ""),
        ("/x?id=1", "/x?id=12", ""),
        ("/x?offset=-20", "/x", ""),
        ("/x?a=b&c=d&e=f&g=h", "/x", ""),
        ("/x", "mailto:x", ""),
        ("/x?sid=a1b2c3d4#!/one", "/x#!/two", ""),
    ],
)
def test_by_what_urls_differ(a: str, b: str, expected: str) -> None:
    a, b = (f"{A}{url}" if url.startswith("/") else url for url in (a, b))
    assert difference(a, b) == difference(b, a) == expected


def test_a_session_id_is_any_value_and_another_value_is_itself() -> None:
    told = [variation(f"{A}/x?sid={value}", "sid") for value in ("a1b2c3d4", "99999999", "de", "1", "2", "")]
    assert [found and set(found.parts) for found in told] == [
        {"sid=*"},
        {"sid=*"},
        {"sid=de"},
        {"sid=1"},
        None,
        {"sid="},
    ]
    assert told[0] == told[1]


def test_places_are_directories_with_their_parameters_and_parts() -> None:
    def place(url: str) -> str:
        found = variation(A + url, "v")
        assert found
        return found.place

    assert place("/2024/x?v=de") == place("/2025/12/31/y?v=de")
    different = [
        "/a/x?v=de",
        "/b/x?v=de",
        "/a/x?v=fr",
        "/a/x?v=a1b2c3d4",
        "/a/x",
        "/a/x?id=3&v=de",
        "/a/y?id=3&v=de",
        "/man2/x?v=de",
        "/man3/x?v=de",
    ]
    assert len(set(map(place, different))) == len(different)


# Whole crawls, without HTTP


class World:
    """A crawl of one host."""

    def __init__(self, folder: Path | None = None, revisit: str = "keep") -> None:
        config = Config(store=str(folder / "store.sqlite") if folder else None, revisit=revisit)
        self.dedup = Deduplicator.from_config(config)
        self.file = str(folder / "variants.json") if folder else None
        neardup: Any = SimpleNamespace(dedup=self.dedup, config=config, stats=Mock())
        self.variants = Variants(neardup, self.file)

    def close(self) -> None:
        self.variants.save(self.file or "")
        self.dedup.close()

    def fetch(self, url: str, page: str) -> bool:
        """Return whether a URL is skipped. If not, it returns the text `page`."""
        if self.variants.advice(A + url):
            return True
        claim = self.dedup.claim(Document(url=A + url, text=page))
        claim.commit()
        self.visited(claim)
        return False

    def visited(self, claim: Claim) -> None:
        self.dedup.deliveries.record((claim.match or claim).signature)
        self.variants.visited(claim)

    def crawl(self, made: Callable[[int], list[str]], count: int = ENOUGH, start: int = 0) -> int:
        """Fetch all URLs of so many pages. Return the number of skipped ones."""
        return sum(self.fetch(url, text(n)) for n in range(start, start + count) for url in made(n))

    @property
    def all(self) -> list[Rule]:
        return [rule for rules in self.variants.rules.values() for rule in rules]

    @property
    def rules(self) -> list[str]:
        return [rule.names for rule in self.all if rule.in_force]


@pytest.fixture
def world() -> World:
    """Return a crawl that keeps nothing on disk."""
    return World()


def sid(*values: object) -> str:
    return "sid=" + "".join(f"{value:04}" for value in values) + "abcd"


def prints(number: int) -> list[str]:
    return [f"/{number}", f"/{number}?print=1"]


def sessions(number: int) -> list[str]:
    return [f"/{number}?{sid(number, n)}" for n in range(3)]


KINDS = {
    "print": prints,
    "sid": sessions,
    "src": lambda n: [f"/{n}", f"/{n}?src=list"],
    "print&sid": lambda n: [f"/{n}?{sid(n)}", f"/{n}?print=1&{sid(n, 1)}"],
}


@pytest.mark.parametrize(("name", "made"), KINDS.items())
def test_each_kind_of_variant_is_learned_and_skipped(world: World, name: str, made: Callable[[int], list[str]]) -> None:
    assert world.crawl(made, ENOUGH - 2) == 0
    assert world.rules == []
    world.crawl(made, 5, start=1000)
    assert name in world.rules
    assert world.crawl(made, 10, start=2000) == 10 * (len(made(0)) - 1)


def test_a_plain_url_is_never_skipped(world: World) -> None:
    world.crawl(prints)
    assert not world.fetch("/new?print=1", text(9000))
    assert not world.fetch("/new", text(9000))
    assert world.rules == ["print"]


# Adversaries


def test_numbers_are_never_taken_for_nothing(world: World) -> None:
    assert world.crawl(lambda n: [f"/{n}", f"/{n}?page=2", f"/{n}?offset=40"], ENOUGH + 9) == 0
    assert world.rules == []


def test_one_value_says_nothing_of_another(world: World) -> None:
    world.crawl(lambda n: [f"/{n}", f"/{n}?lang=en"], 50)
    assert world.rules == ["lang"]
    assert not world.fetch("/0?lang=de", text(5000))
    assert world.rules == []


def test_one_directory_says_nothing_of_another(world: World) -> None:
    world.crawl(lambda n: [f"/d{chr(97 + n % 6)}/{n}", f"/d{chr(97 + n % 6)}/{n}?v=all"], 60)
    assert world.rules == ["v"]
    assert not world.fetch("/shop/1", text(5000))
    assert not world.fetch("/shop/1?v=all", text(5001))
    assert world.rules == []


def test_a_login_wall_at_many_urls_is_one_page(world: World) -> None:
    for number in range(ENOUGH + 9):
        for url in sessions(number):
            assert not world.fetch(url, text(1))
    assert world.rules == []
    world.crawl(prints, start=1000)
    for number in range(10):
        world.fetch(f"/{2000 + number}", text(2))
    assert not world.fetch("/2000?print=1", text(2))  # at so many URLs, it may be a wall


def test_a_short_text_is_no_evidence_whichever_came_first(world: World) -> None:
    world.crawl(prints)
    world.fetch("/9000", text(9000))
    world.fetch("/9000?print=1", "Please log in.")
    assert world.rules == ["print"]


def test_the_rules_with_most_evidence_are_kept(world: World) -> None:
    world.crawl(prints, 30)
    for number in range(20):
        for url in (f"/{number}", f"/{number}?b{number}=x"):
            world.fetch(f"/c{url}", text(3000 + number))
    world.crawl(prints, 15, start=30)
    assert world.rules == ["print"]


def test_pages_that_are_nearly_alike_are_no_evidence(world: World) -> None:
    for number in range(60):
        for value in range(2):
            world.fetch(f"/item?{sid(number, value)}", edited(text(number, 300), *[150] * value))
    [rule] = world.all
    assert not rule.same


def test_a_rule_that_was_wrong_needs_more_evidence(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(variants, "AGAIN", 60)
    world.crawl(prints)
    assert world.rules == ["print"]
    assert not world.fetch("/0?print=1", text(9000))
    assert world.rules == []
    world.crawl(prints, 50, start=100)
    assert world.rules == []
    world.crawl(prints, 15, start=200)
    assert world.rules == ["print"]


def test_short_texts_are_neither_evidence_nor_skipped(world: World) -> None:
    for number in range(60):
        for url in prints(number):
            world.fetch(url, text(number, 30))
    assert world.rules == []
    world.crawl(prints, start=100)
    assert not world.fetch("/new", text(7000, 30))
    assert not world.fetch("/new?print=1", text(7000, 30))


def test_a_page_with_several_documents_stands_for_no_class(world: World) -> None:
    world.crawl(sessions, 60)
    for number in range(2):
        claim = world.dedup.claim(Document(f"{A}/list?{sid(7)}", text(3000 + number), has_own_url=False))
        claim.commit()
        world.visited(claim)
    assert not world.fetch(f"/list?{sid(8)}", text(3000))


def test_hostile_urls_are_bounded(world: World) -> None:
    world.crawl(prints)
    for number in range(5 * RULES):
        world.fetch(f"/0?{'abcdefghij'[number % 10]}{'x' * (number // 10 + 1)}=y", text(0))
    assert len(world.all) <= RULES
    assert "print" in world.rules


# Runs


def learned(folder: Path) -> World:
    """Return the crawl of a new process, after one that learned that session ids do not matter."""
    with closing(World(folder)) as first:
        first.crawl(sessions, 50)
    return World(folder)


def test_evidence_and_classes_last(tmp_path) -> None:
    with closing(learned(tmp_path)) as again:
        assert again.rules == ["sid"]
        assert [again.fetch(f"/3?{sid(3, 70 + n)}", text(3)) for n in range(3)] == [False, True, True]
    with closing(World(tmp_path, "skip")) as skipping:
        assert skipping.fetch(f"/3?{sid(3, 80)}", text(3))


def test_the_same_url_again_is_no_evidence(tmp_path) -> None:
    for _ in range(2):
        with closing(World(tmp_path)) as world:
            world.crawl(prints, 1)
            world.crawl(lambda n: [f"/{n}?print=1"], start=100)
            assert world.rules == []


def test_what_changed_between_runs_is_no_evidence(tmp_path) -> None:
    with closing(learned(tmp_path)) as again:
        assert not again.fetch(f"/3?{sid(3, 70)}", text(5003))
        assert again.fetch(f"/3?{sid(3, 71)}", text(5003))
        assert again.rules
