"""Mirror hosts that are learned in a crawl: shapes of URLs, confidence, and the effect of evidence on a rule."""

from __future__ import annotations

from collections.abc import Iterable

import pytest

from scrapy_neardup import hosts as module
from scrapy_neardup.hosts import WINDOW, Finding, Hosts, Outcome, Tally, Trial, beta_quantile, confidence, outcome_of
from scrapy_neardup.text.urls import Shape, counterpart, shape, site

A, B = "http://a.example", "http://b.example"
SAME, NEAR, DIFFERENT = Outcome.SAME, Outcome.NEAR, Outcome.DIFFERENT
ENOUGH = 23  # equal pages that bring a rule into force


class World:
    """Host a's pages are held; b's are fetched, and give what the test says."""

    def __init__(self, a: str = A, b: str = B) -> None:
        self.hosts = Hosts()
        self.a, self.b = a, b
        self.log: list[bool] = []
        self.rows: list[Trial] = []

    def fetch(self, path: str, outcome: Outcome = SAME, *, at: str | None = None, content: int = 0, now: float = 0.0):
        held = f"{self.a}{at or path}"
        finding = Finding(outcome, content or hash_of(held))
        known = [] if outcome is DIFFERENT else [held]
        self.see(f"{self.b}{path}", known, {held: finding}, now)

    def see(self, url: str, known: Iterable[str], findings: dict[str, Finding], now: float = 0.0) -> None:
        rows, changes = self.hosts.learn(url, known, findings.get, now)
        self.log += [change.in_force for change in changes]
        self.rows += rows

    def many(self, count: int = ENOUGH, outcome: Outcome = SAME, start: int = 0, **options: float) -> World:
        for number in range(start, start + count):
            self.fetch(f"/{number}.html", outcome, **options)
        return self

    def leads(self, path: str, since: float = 0.0) -> list[str]:
        return [found.url for found in self.hosts.counterparts(f"{self.b}{path}", since)]


def hash_of(text: str) -> int:
    return int.from_bytes(text.encode(), "big") % 2**64


@pytest.mark.parametrize(
    ("a", "b", "expected"),
    [
        ("/x/1.html", "/x/1.html", Shape()),
        ("/", "/index.html", Shape()),
        ("/x/1.html", "/m/x/1.html", Shape(("", "/m"))),
        ("/de/x/1.html", "/m/n/x/1.html", Shape(("/de", "/m/n"))),
        ("/1.html", "/1.htm", Shape(endings=(".html", ".htm"))),
        ("/x/1.html", "/m/x/1", Shape(("", "/m"), (".html", ""))),
        ("/x", "/x/", Shape(endings=("", "/"))),
        ("/x/1.html?b=2&a=1", "/m/x/1.html?a=1&b=2", Shape(("", "/m"))),
        ("/x?a=1", "/x?a=2", None),
        ("/x#/1", "/m/x#/1", Shape(("", "/m"))),
        ("/x#/1", "/x#/2", None),
        ("/x/1.html", "/x/2.html", None),
        ("/v1.2", "/v1.3", None),
        ("/fox.html", "/x.html", None),
        ("/", "/m/", None),
    ],
)
def test_shape_is_what_two_corresponding_urls_do_not_share(a: str, b: str, expected: Shape | None) -> None:
    assert shape(A + a, B + b) == expected
    assert shape(B + b, A + a) == (expected and expected.flip())
    if expected:
        there, where = counterpart(A + a, expected, "b.example")
        assert there == counterpart(B + b, Shape(), "b.example")[0]
        assert where == counterpart(B + b, expected.flip(), "a.example")[1]
        assert where != counterpart(f"{A}{a}#!other", expected, "b.example")[1]


@pytest.mark.parametrize(
    "url", ["", "ftp://a.example/x", "mailto:x", "http://", "http://[x/1", f"http://a.example/{'x' * 3000}"]
)
def test_what_is_no_page_s_address_has_no_shape(url: str) -> None:
    assert shape(url, f"{A}/x") is None
    assert counterpart(url, Shape(), "b.example") is None
    assert site(url) == ""


def test_a_prefix_ends_at_a_slash_and_is_not_long() -> None:
    assert counterpart(f"{A}/deep/x", Shape(("/de", "")), "b.example") is None
    assert counterpart(f"{A}/de/x?q=1", Shape(("/de", "")), "b.example")[0] == f"{B}/x?q=1"
    assert shape(f"{A}/x", f"{B}/{'d/' * 200}x") is None


def test_the_quantile_of_the_beta_distribution() -> None:
    assert beta_quantile(0.05, 1, 1) == pytest.approx(0.05)
    assert beta_quantile(0.05, 20, 1) == pytest.approx(0.05 ** (1 / 20))
    assert beta_quantile(0.05, 1, 2) == pytest.approx(1 - 0.95**0.5)
    # P(X ≤ x) = 3x² - 2x³ for Beta(2, 2): half of it at x = .5, .15625 at .25
    assert beta_quantile(0.5, 2, 2) == pytest.approx(0.5)
    assert beta_quantile(0.15625, 2, 2) == pytest.approx(0.25)
    assert 0 < beta_quantile(0.05, 1, 2001) < beta_quantile(0.05, 2, 2001) < 1e-2


def test_confidence_by_counts_of_pages() -> None:
    assert confidence(Tally(22, 0, 0)) < module.BOUND < confidence(Tally(23, 0, 0))
    assert confidence(Tally(20, 1, 0)) == pytest.approx(beta_quantile(0.05, 21, 2))
    assert confidence(Tally(20, 0, 1)) < confidence(Tally(20, 5, 0)) < confidence(Tally(20, 0, 0))
    # A full window of near copies proves as much as one of equal texts, until one page differs.
    assert confidence(Tally(0, WINDOW, 0)) == confidence(Tally(WINDOW, 0, 0)) > 0.98
    assert confidence(Tally(WINDOW - 1, 0, 1)) > module.BOUND > confidence(Tally(WINDOW - 2, 0, 2))


def test_judge_by_containment_and_length() -> None:
    same = {"duplicate": True, "containment": 1.0, "tokens": 100}
    assert outcome_of(**same) is SAME
    assert outcome_of(**same | {"containment": 0.97}) is NEAR
    assert outcome_of(**same | {"containment": 0.97, "duplicate": False}) is DIFFERENT
    assert outcome_of(**same | {"containment": 0.97, "duplicate": False, "tokens": 30}) is None
    assert outcome_of(**same | {"containment": 0.0, "tokens": 0}) is None  # records without text


def test_a_rule_comes_into_force_both_ways() -> None:
    world = World().many(ENOUGH - 1)
    assert not world.leads("/new.html")
    world.many(1, start=ENOUGH)
    assert world.leads("/new.html?q=1") == [f"{A}/new.html?q=1"]
    assert [found.url for found in world.hosts.counterparts(f"{A}/new.html")] == [f"{B}/new.html"]
    assert world.log == [True]


@pytest.mark.parametrize(
    ("a", "b", "ending"),
    [
        (A, f"{A}:8080", ".html"),
        ("http://www.a.example", "https://a.example", ".html"),
        (A, f"{B}/mirror/a", ".html"),
        (f"{A}/~me", B, ".htm"),
    ],
)
def test_prefix_port_and_extension(a: str, b: str, ending: str) -> None:
    world = World(a, b)
    for number in range(ENOUGH):
        world.fetch(f"/{number}.html", at=f"/{number}{ending}")
    assert world.leads("/new.html") == [f"{a}/new{ending}"]


def test_one_scheme_apart_is_the_same_host() -> None:
    assert not World("http://a.example", "https://a.example").many().hosts.relations()


def test_a_path_counts_once_and_so_does_a_page_copied_under_many_urls() -> None:
    world = World()
    for number in range(100):
        world.fetch("/front.html", content=number + 1)
    assert world.hosts.relations()[0].tally[:3] == (1, 0, 0)
    world = World().many(100, content=7)
    assert world.hosts.relations()[0].tally[:3] == (1, 0, 0)
    assert not world.leads("/new.html")


def test_alike_hosts_are_no_mirrors() -> None:
    world = World().many(3)
    world.many(60, DIFFERENT, start=3)
    assert not world.leads("/new.html")
    assert not world.log


def test_a_few_copies_and_many_of_its_own() -> None:
    world = World().many()
    for number in range(ENOUGH, 300):
        world.see(f"{B}/{number}.html", [], {})
    assert world.leads("/own.html")  # which helps nobody: a does not hold it
    world.many(1, DIFFERENT, start=3000)
    assert not world.leads("/own.html")


def test_mirrors_that_all_differ_a_little_are_learned_in_the_end() -> None:
    world = World().many(WINDOW - 1, NEAR)
    assert not world.log
    world.many(1, NEAR, start=WINDOW)
    assert world.log == [True]


def test_evidence_that_turns() -> None:
    world = World().many(WINDOW)
    world.many(3, DIFFERENT, start=1000)
    assert world.log == [True, False]
    assert not world.leads("/new.html")
    world.many(WINDOW, start=2000)
    assert world.log == [True, False, True]


def test_the_last_outcome_of_a_path_counts() -> None:
    world = World().many()
    world.fetch("/0.html", DIFFERENT)
    assert not world.leads("/new.html")
    world.fetch("/0.html", SAME)
    assert world.leads("/new.html")


def test_a_second_visit_takes_nothing_back() -> None:
    world = World()
    for _ in range(2):
        for number in range(90):
            held, url = f"{A}/{number}.html", f"{B}/{number}.html"
            outcome = DIFFERENT if number % 3 else SAME
            own = [held] if outcome is SAME else []
            # From the second visit on, a page's own URL is among those that are known to give its text.
            world.see(url, [*own, url], {held: Finding(outcome, hash_of(held))})
    [relation] = world.hosts.relations()
    assert (relation.tally.same, relation.tally.different, relation.in_force) == (30, 60, False)


def test_a_rule_that_is_not_confirmed_expires() -> None:
    world = World().many(now=50.0)
    assert world.leads("/new.html", since=50.0)
    assert not world.leads("/new.html", since=51.0)
    world.fetch("/0.html", now=160.0)
    assert world.leads("/new.html", since=100.0)


def test_nothing_is_said_of_directories_without_evidence() -> None:
    world = World()
    for number in range(30):
        world.fetch(f"/manual/{number}.html")
    assert world.leads("/manual/new.html")
    assert not world.leads("/blog/new.html")
    for number in range(5):
        world.fetch(f"/d{number}/1.html")
    assert world.leads("/blog/new.html")


def test_a_frame_taken_for_text_is_taken_back_and_stays_so() -> None:
    world = World().many(10)
    world.fetch("/frame.html", DIFFERENT, now=1.0)
    assert world.hosts.relations()[0].tally[:3] == (10, 0, 1)
    findings = {f"{A}/other.html": Finding(DIFFERENT, 5)}
    world.see(f"{B}/other.html", [f"{B}/frame.html"], findings, now=2.0)
    stored = Hosts()
    stored.load(world.rows)
    assert [hosts.relations()[0].tally[:3] for hosts in (world.hosts, stored)] == [(10, 0, 0)] * 2


def test_a_young_rule_is_rechecked_more() -> None:
    young, old = (World().many(count).hosts.counterparts(f"{B}/x")[0] for count in (ENOUGH, WINDOW))
    assert 0.1 > young.recheck > old.recheck > 0


def test_the_surest_comes_first() -> None:
    world = World().many()
    world.a = "http://c.example"
    world.many(50)
    assert world.leads("/new.html") == ["http://c.example/new.html", f"{A}/new.html"]


def test_evidence_survives_and_adds_up() -> None:
    whole, one, two = World().many(30), World().many(15), World().many(15, start=15)
    for rows in (whole.hosts.dump(), two.rows + one.rows):
        hosts = Hosts()
        for _ in range(2):
            hosts.load(rows)
            assert [relation.in_force for relation in hosts.relations()] == [True]
        assert [r.tally for r in hosts.relations()] == [r.tally for r in whole.hosts.relations()]
        assert sorted(hosts.dump()) == sorted(whole.hosts.dump())


def test_hostile_urls_are_bounded() -> None:
    world = World().many()
    for number in range(10 * module.PER_PAIR):
        world.see(f"{B}/p{number}/x", [f"{A}/q{number}/x", f"{A}/{'y' * 5000}", "::", ""], {})
    assert len(world.hosts.relations()) <= module.PER_PAIR
    assert world.leads("/new.html") == [f"{A}/new.html"]


def test_many_hosts_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "TOTAL", 100)
    world = World().many()
    for number in range(300):
        world.see(f"http://h{number}.example/x", [f"{A}/x"], {})
    assert len(world.hosts.relations()) <= 100
    assert world.leads("/new.html")


def test_a_host_of_many_mirrors_costs_few_look_ups() -> None:
    world = World()
    for number in range(200):
        world.see(f"http://h{number}.example/x", [f"{A}/x"], {})
    asked: list[str] = []
    world.hosts.learn(f"{A}/y", [], lambda url: asked.append(url), 0.0)
    assert len(asked) == module.PER_PAGE


def test_who_was_held_first_is_original() -> None:
    world = World().many()
    assert [found.is_original for found in world.hosts.counterparts(f"{B}/new.html")] == [True]
    assert [found.is_original for found in world.hosts.counterparts(f"{A}/new.html")] == [False]
    (relation,) = world.hosts.relations()
    assert (relation.sites, relation.original()) == (("a.example", "b.example"), 0)


def test_where_both_were_held_as_often_neither_is_original() -> None:
    world = World().many(ENOUGH - 1)
    for number in range(ENOUGH - 1):
        held = f"{B}/other-{number}.html"
        world.see(f"{A}/other-{number}.html", [held], {held: Finding(SAME, hash_of(held))})
    (relation,) = world.hosts.relations()
    assert relation.original() is None
    assert not any(found.is_original for url in (A, B) for found in world.hosts.counterparts(f"{url}/new.html"))


def claiming(outcome: Outcome, claim: str, count: int) -> Hosts:
    hosts = Hosts()
    for number in range(count):
        held = f"{A}/{number}.html"
        finding = Finding(outcome, hash_of(held))
        known = [] if outcome is DIFFERENT else [held]
        hosts.learn(f"{B}/{number}.html", known, {held: finding}.get, 0.0, claimed=[f"{claim}/{number}.html"])
    return hosts


def test_what_the_page_claims_itself_counts_twice_and_is_stored() -> None:
    hosts, other = claiming(SAME, "https://a.example", 12), Hosts()
    other.load(hosts.dump())
    assert hosts.counterparts(f"{B}/new.html")
    assert other.counterparts(f"{B}/new.html")
    assert not claiming(SAME, "https://c.example", 12).counterparts(f"{B}/new.html")


@pytest.mark.parametrize("outcome", [NEAR, DIFFERENT])
def test_a_claim_alone_proves_nothing(outcome: Outcome) -> None:
    assert not claiming(outcome, A, 100).counterparts(f"{B}/new.html")


def test_a_revisit_of_the_canonical_page_does_not_make_the_mirror_canonical() -> None:
    world = World().many()
    for number in range(ENOUGH):
        copy = f"{B}/{number}.html"
        world.see(f"{A}/{number}.html", [copy], {copy: Finding(SAME, number, first="a.example")})
    (relation,) = world.hosts.relations()
    assert relation.original() == 0


def test_a_copy_of_what_a_third_host_had_first_says_nothing_of_who_was_first() -> None:
    world = World()
    for number in range(ENOUGH):
        held = f"{A}/{number}.html"
        world.see(f"{B}/{number}.html", [held], {held: Finding(SAME, hash_of(held), first="www.example")})
    (relation,) = world.hosts.relations()
    assert relation.original() is None
    assert not world.hosts.counterparts(f"{A}/new.html")[0].is_original


def test_a_host_that_was_known_before_is_no_copy_of_a_later_one() -> None:
    world = World().many()
    for url, now, expected in (
        (f"{B}/old.html", 1.0, False),
        (f"{A}/0.html", 2.0, False),
        (f"{A}/old.html", 0.5, True),
    ):
        world.hosts.meet(site(url), now)
        assert [found.is_original for found in world.hosts.counterparts(f"{B}/new.html")] == [expected]


def test_rules_in_force_outlast_many_that_are_not(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "PER_PAGE", 4)
    world = World().many()
    for number in range(10):
        for page in range(ENOUGH + 20):
            held = f"http://copier{number}.example/{page}.html"
            world.see(f"{B}/{page}.html", [held], {held: Finding(NEAR if page % 2 else SAME, page)})
    assert world.leads("/new.html") == [f"{A}/new.html"]
