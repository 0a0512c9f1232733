"""Variants of URLs: by what they differ, their classes, the evidence on them, and the rules that come of it."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest
from helpers import text

from scrapy_neardup import Deduplicator, Document
from scrapy_neardup.commands.rule_files import FILES
from scrapy_neardup.hosts import rules as module
from scrapy_neardup.hosts.relations import Outcome, judge_equal
from scrapy_neardup.hosts.rules import Hosts
from scrapy_neardup.mirrors.advice import Mirrors
from scrapy_neardup.settings import Config
from scrapy_neardup.store import Selection
from scrapy_neardup.text.shapes import Shape
from scrapy_neardup.text.url_classes import difference, variation

A = "http://a.example"
ENOUGH = 41  # equal pages that bring a rule into force
SAME, NEAR, DIFFERENT = Outcome.SAME, Outcome.NEAR, Outcome.DIFFERENT


def parts(prefix: str = "", ending: str = "") -> Shape:
    return Shape((prefix, ""), (ending, ""))


@pytest.mark.parametrize(
    ("a", "b", "expected"),
    [
        ("/x?sid=a1b2c3d4", "/x?sid=b1b2c3d4", parts(ending="?sid")),
        ("/x", "/x?print=1", parts(ending="?print")),
        ("/x?id=7", "/x?id=7&print=1&sid=a1b2c3d4", parts(ending="?print&sid")),
        ("/x;jsessionid=A1B2C3D4", "/x", parts(ending="?;jsessionid")),
        ("/x/1.html", "/amp/x/1.html", parts("/amp")),
        ("/x", "/amp/x?src=home", parts("/amp", "?src")),
        ("/x", "/x/print", parts(ending="/print")),
        ("/x/", "/x/print/", parts(ending="print/")),
        ("/x", "/x/", parts(ending="/")),
        ("/x", "/x.html", parts(ending=".html")),
        ("/x", "/x", None),
        ("/x", "/y", None),
        ("/x", "/blueprint/print/x", None),
        ("/x", "/xprint", None),
        ("/", "/x", None),
        ("/x", "/x/2", None),
        ("/x", "/2024/x", None),
        ("/x", "/x?page=2", None),
        ("/x?id=1", "/x?id=12", None),
        ("/x?offset=-20", "/x", None),
        ("/x?a=b&c=d&e=f&g=h", "/x", None),
        ("/x", "mailto:x", None),
    ],
)
def test_by_what_urls_differ(a: str, b: str, expected: Shape | None) -> None:
    a, b = (f"{A}{url}" if url.startswith("/") else url for url in (a, b))
    assert difference(a, b) == difference(b, a) == expected
    if expected:
        one, other = variation(a, expected), variation(b, expected)
        assert one
        assert other
        assert one.plain == other.plain


def test_a_session_id_is_any_value_and_another_value_is_itself() -> None:
    shape = parts(ending="?sid")
    told = [variation(f"{A}/x?sid={value}", shape) for value in ("a1b2c3d4", "99999999", "de", "1", "2", "")]
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
    def branch(url: str) -> int:
        found = variation(A + url, parts(ending="?v"))
        assert found
        return found.place.branch

    assert branch("/2024/x?v=de") == branch("/2025/12/31/y?v=de")
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
    assert len(set(map(branch, different))) == len(different)


def test_equal_is_stricter_than_a_copy() -> None:
    same = {"same_text": True, "duplicate": True, "resemblance": 1.0, "tokens": 100}
    assert judge_equal(**same) is SAME
    assert judge_equal(**same | {"same_text": False}) is SAME
    assert judge_equal(**same | {"same_text": False, "resemblance": 0.97}) is NEAR
    assert judge_equal(**same | {"same_text": False, "resemblance": 0.97, "duplicate": False}) is DIFFERENT
    assert judge_equal(**same | {"tokens": 30}) is None


# Whole crawls, without HTTP


class World:
    """A crawl of one host."""

    def __init__(self, store: str | None = None, *, learn: bool = True, revisit: str = "keep") -> None:
        config = Config(store=store, learn_variants=learn, revisit=revisit)
        self.dedup = Deduplicator.from_config(config)
        self.mirrors = Mirrors.from_config(self.dedup.store, config, deliveries=self.dedup.deliveries)
        self.log: list[bool] = []
        self.asked: list[str] = []

    def fetch(self, url: str, page: str, **options: object) -> bool:
        """Return whether a URL is skipped. If not, it returns the text `page`."""
        self.asked.append(url)
        if self.mirrors.advise(A + url):
            return True
        claim = self.dedup.claim(Document(url=A + url, text=page, **options))
        claim.commit()
        self.dedup.deliveries.record((claim.match or claim).signature)
        self.log += [change.in_force for change in self.dedup.take_changes()]
        return False

    def crawl(self, made: Callable[[int], list[str]], count: int = ENOUGH, start: int = 0) -> int:
        """Fetch all URLs of so many pages. Return the number of skipped ones."""
        return sum(self.fetch(url, text(n)) for n in range(start, start + count) for url in made(n))

    @property
    def rules(self) -> list[str]:
        return [relation.name(0) for relation in self.dedup.store.hosts.relations() if relation.in_force]


def sid(*values: object) -> str:
    return "sid=" + "".join(f"{value:04}" for value in values) + "abcd"


def prints(number: int) -> list[str]:
    return [f"/{number}", f"/{number}?print=1"]


def sessions(number: int) -> list[str]:
    return [f"/{number}?{sid(number, n)}" for n in range(3)]


KINDS = {
    "a.example/…?print=…": prints,
    "a.example/…?sid=…": sessions,
    "a.example/…?;jsessionid=…": lambda n: [f"/{n};jsession{sid(n, i)}".replace("sid", "id", 1) for i in range(3)],
    "a.example/amp/…": lambda n: [f"/news/{n}.html", f"/amp/news/{n}.html"],
    "a.example/…/print": lambda n: [f"/news/{n}", f"/news/{n}/print"],
    "a.example/…?src=…": lambda n: [f"/{n}", f"/{n}?src=list"],
}


@pytest.mark.parametrize(("name", "made"), KINDS.items())
def test_each_kind_of_variant_is_learned_and_skipped(name: str, made: Callable[[int], list[str]]) -> None:
    world = World()
    assert world.crawl(made, ENOUGH - 2) == 0
    assert world.rules == []
    world.crawl(made, 5, start=1000)
    assert name in world.rules
    assert world.crawl(made, 10, start=2000) == 10 * (len(made(0)) - 1)


def test_a_plain_url_is_never_skipped() -> None:
    world = World()
    world.crawl(prints)
    assert not world.fetch("/new?print=1", text(9000))
    assert not world.fetch("/new", text(9000))
    assert world.rules == ["a.example/…?print=…"]


def test_off_nothing_is_recorded() -> None:
    on, off = World(), World(learn=False)
    for world in (on, off):
        world.crawl(sessions, 60)
    classes = [
        [visit for visit in world.dedup.store.urls.all() if visit.name.startswith("class ")] for world in (on, off)
    ]
    assert [len(visits) > 50 for visits in classes] == [True, False]
    assert [len(world.dedup.store.hosts) for world in (on, off)] == [1, 0]


def test_sites_without_variants_have_no_records_of_classes() -> None:
    world = World()
    world.crawl(lambda n: [f"/{n}"], 60)
    assert not [visit for visit in world.dedup.store.urls.all() if visit.name]


# Adversaries


def test_numbers_are_never_taken_for_nothing() -> None:
    world = World()
    assert world.crawl(lambda n: [f"/{n}", f"/{n}?page=2", f"/{n}?offset=40"], 3 * ENOUGH) == 0
    assert world.rules == []


def test_one_value_says_nothing_of_another() -> None:
    world = World()
    world.crawl(lambda n: [f"/{n}", f"/{n}?lang=en"], 50)
    assert world.rules == ["a.example/…?lang=…"]
    assert not world.fetch("/0?lang=de", text(5000))
    assert world.rules == []


def test_one_directory_says_nothing_of_another() -> None:
    world = World()
    world.crawl(lambda n: [f"/d{chr(97 + n % 6)}/{n}", f"/d{chr(97 + n % 6)}/{n}?v=all"], 60)
    assert world.rules == ["a.example/…?v=…"]
    assert not world.fetch("/shop/1", text(5000))
    assert not world.fetch("/shop/1?v=all", text(5001))
    assert world.rules == []


def test_one_different_page_ends_a_rule() -> None:
    world = World()
    world.crawl(prints, 60)
    hosts = world.dedup.store.hosts
    [relation] = hosts.relations()
    assert relation.in_force
    rows = hosts.dump()
    hosts.load([rows[-1]._replace(path=7, outcome=DIFFERENT, seen=rows[-1].seen + 1)])
    assert not relation.in_force


def test_a_page_fetched_twice_is_no_evidence_for_itself() -> None:
    world = World()
    world.crawl(lambda n: [f"/{n}?{sid(n)}"] * 2, 60)
    world.crawl(lambda n: [f"/{n}?{sid(n, 1)}", f"/{n}?{sid(n, 2)}"], 2, start=100)
    assert [relation.tally.same for relation in world.dedup.store.hosts.relations()] == [1]


def test_a_login_wall_at_many_urls_is_one_page() -> None:
    world = World()
    for number in range(100):
        for url in sessions(number):
            assert not world.fetch(url, text(1))
    assert world.rules == []
    world.crawl(prints, 60, start=1000)
    for number in range(10):
        world.fetch(f"/{2000 + number}", text(2))
    assert not world.fetch("/2005?print=1", text(2))  # at so many URLs, it may be a wall


def test_pages_that_are_nearly_alike_are_no_evidence() -> None:
    world = World()
    words = [f"w{n}" for n in range(150)]
    for number in range(60):
        for value in range(2):
            said = [*words, f"other{number}x{value}", *reversed(words)]
            world.fetch(f"/item?sku={number:04}abcd{value}", " ".join(said))
    assert world.rules == []


def test_short_texts_are_neither_evidence_nor_skipped() -> None:
    world = World()
    for number in range(60):
        for url in prints(number):
            world.fetch(url, text(number, 30))
    assert world.rules == []
    world.crawl(prints, start=100)
    assert not world.fetch("/new", text(7000, 30))
    assert not world.fetch("/new?print=1", text(7000, 30))


def test_a_page_with_several_documents_stands_for_no_class() -> None:
    world = World()
    world.crawl(sessions, 60)
    for number in range(2):
        claim = world.dedup.claim(Document(url=f"{A}/list?{sid(7)}", text=text(3000 + number)))
        claim.is_one_of_many = True
        claim.commit()
    assert not world.fetch(f"/list?{sid(8)}", text(3000))


def test_hostile_urls_are_bounded() -> None:
    world = World()
    world.crawl(prints)
    for number in range(200):
        world.fetch(f"/0?{'abcdefghij'[number % 10]}{'x' * (number // 10 + 1)}=y", text(0))
    assert len(world.dedup.store.hosts) <= module.PER_PAIR
    assert "a.example/…?print=…" in world.rules


# Files of rules


def exported(world: World, ending: str) -> str:
    return FILES[ending](world.dedup.store, {})


@pytest.mark.parametrize(
    ("made", "discarder", "robots"),
    [
        (KINDS["a.example/…?sid=…"], [("queryRemoval", ["sid"], ["a.example/"])], ["Clean-param: sid /"]),
        (
            KINDS["a.example/…?print=…"],
            [("queryRemoval", ["print"], ["a.example/?print=1"])],
            [f"Disallow: /*{mark}print=1{end}" for mark in "&?" for end in "$&"],
        ),
        (KINDS["a.example/amp/…"], [("subpathRemoval", [0], ["a.example/amp/news/"])], ["Disallow: /amp/news/"]),
        (KINDS["a.example/…/print"], [], ["Disallow: /news/*/print$"]),
        (KINDS["a.example/…?;jsessionid=…"], [], []),
    ],
)
def test_rules_are_exported(made: Callable[[int], list[str]], discarder: list[object], robots: list[str]) -> None:
    world = World()
    world.crawl(made, 50)
    rules = json.loads(exported(world, ".json"))
    assert [(rule["processor"], rule["args"], rule["urlPattern"]["include"]) for rule in rules] == discarder
    assert exported(world, ".txt").splitlines()[2:] == robots


def test_only_directories_with_evidence_are_exported() -> None:
    world = World()
    world.crawl(lambda n: [f"/news/{n}", f"/news/{n}?print=1"], 50)
    world.crawl(lambda n: [f"/shop/{n}", f"/shop/{n}?print=1"], 1, start=100)
    [rule] = json.loads(exported(world, ".json"))
    assert rule["urlPattern"]["include"] == ["a.example/news/?print=1"]


def test_where_urls_without_the_parts_are_unknown_they_are_not_forbidden() -> None:
    world = World()
    world.crawl(lambda n: [f"/{n}?v=all", f"/{n}?v=some", f"/{n}?v=most"], 60)
    assert "a.example/…?v=…" in world.rules
    assert (json.loads(exported(world, ".json")), exported(world, ".txt")) == ([], "")


# Runs


def test_evidence_and_classes_last(tmp_path) -> None:
    place = str(tmp_path / "store.sqlite")
    first = World(place)
    first.crawl(sessions, 50)
    first.dedup.close()
    again = World(place)
    assert again.rules == ["a.example/…?sid=…"]
    assert [again.fetch(f"/3?{sid(3, 70 + n)}", text(3)) for n in range(3)] == [False, True, True]
    again.dedup.close()
    skipping = World(place, revisit="skip")
    assert skipping.fetch(f"/3?{sid(3, 80)}", text(3))
    skipping.dedup.close()


def test_what_changed_between_runs_is_no_evidence(tmp_path) -> None:
    place = str(tmp_path / "store.sqlite")
    first = World(place)
    first.crawl(sessions, 50)
    first.dedup.close()
    again = World(place)
    assert not again.fetch(f"/3?{sid(3, 70)}", text(5003))
    assert again.fetch(f"/3?{sid(3, 71)}", text(5003))
    assert again.rules
    again.dedup.close()


def test_loaded_evidence_is_equal(tmp_path) -> None:
    world = World()
    world.crawl(prints, 50)
    hosts = Hosts()
    hosts.load(json.loads(json.dumps(world.dedup.store.hosts.dump())))
    assert [r.name(0) for r in hosts.relations() if r.in_force] == world.rules
    assert sorted(hosts.dump()) == sorted(world.dedup.store.hosts.dump())


def test_forgetting_a_host_forgets_its_rules_and_classes() -> None:
    world = World()
    world.crawl(sessions, 50)
    world.dedup.flush()
    world.dedup.store.forget(Selection(host="a.example"))
    assert (world.rules, list(world.dedup.store.all_visits())) == ([], [])


def test_forgetting_a_url_forgets_what_it_proved() -> None:
    world = World()
    world.crawl(prints)
    world.dedup.flush()
    for number in range(2):
        for url in prints(number):
            world.dedup.store.forget(Selection(url=A + url))
    [relation] = world.dedup.store.hosts.relations()
    assert relation.tally.same == ENOUGH - 2
