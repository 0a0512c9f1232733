"""Verdicts on documents, their evidence, and what becomes of claims."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import test_siblings
from helpers import edited, named, python, text

from scrapy_neardup import Claim, ConfigError, Deduplicator, Document, item_document
from scrapy_neardup.detectors import Exact
from scrapy_neardup.facts import Kind, pack
from scrapy_neardup.fingerprints.hashes import hash_text
from scrapy_neardup.mirrors import Mirrors
from scrapy_neardup.row_index import Equal
from scrapy_neardup.settings import Config
from scrapy_neardup.signature import Visit

A, B, C = "http://a.example/1", "http://b.example/2", "http://c.example/3"


@pytest.fixture
def dedup() -> Deduplicator:
    return Deduplicator.open()


def claim(dedup: Deduplicator, url: str | None, content: str | int = 1, **fields: Any) -> Claim:
    return dedup.claim(Document(url, text(content) if isinstance(content, int) else content, **fields))


def committed(dedup: Deduplicator, url: str | None, content: str | int = 1, **fields: Any) -> Claim:
    made = claim(dedup, url, content, **fields)
    made.commit()
    return made


def outcome(made: Claim) -> tuple[str, str | None]:
    return made.verdict.status, made.verdict.duplicate_of


def known(dedup: Deduplicator, url: str) -> Visit:
    found = dedup.store.resolve(url)
    assert found is not None
    return found


# Verdicts


NEAR, FEW = edited(text(1), 100), "just a few words"


@pytest.mark.parametrize(
    ("before", "last", "expected", "held"),
    [
        ([], (A, 1), ("unique", None), 1),
        ([(A, 1)], (B, 2), ("unique", None), 2),
        ([(A, 1)], (B, 1), ("duplicate", A), 1),
        ([(A, 1)], (B, NEAR), ("duplicate", A), 1),
        ([(A, 1)], (A, NEAR), ("revisit", A), 1),
        ([(A, 1)], ("https://a.example:443/1?utm_source=feed#top", NEAR), ("revisit", A), 1),
        ([(A, 1)], (A, 2), ("unique", None), 2),
        ([(A, 1), (B, 1)], (B, 1), ("duplicate", A), 1),  # a mirror again
        ([(None, 1)], (None, 1), ("duplicate", None), 1),
        ([(None, 1)], (A, 1), ("duplicate", None), 1),
        ([(A, text(1, 18))], (B, text(1, 30)), ("unique", None), 2),  # short and long ones are never compared
        ([(A, FEW)], (A, FEW), ("revisit", A), 1),  # a short text repeats only what its own URL gave
        ([(A, FEW)], (A, "just some other words"), ("unique", None), 2),
        ([(A, FEW)], (B, FEW), ("unique", None), 2),
    ],
)
def test_verdict_and_number_of_held_documents_by_story(
    dedup: Deduplicator,
    before: list[tuple[str | None, str | int]],
    last: tuple[str | None, str | int],
    expected: tuple[str, str | None],
    held: int,
) -> None:
    for each in before:
        committed(dedup, *each)
    assert outcome(committed(dedup, *last)) == expected
    assert len(dedup) == held


def test_a_url_that_gives_what_it_gave_before_the_last_time_has_changed(dedup: Deduplicator) -> None:
    for content, status, changed in ((1, "unique", False), (2, "unique", False), (1, "revisit", True)):
        made = committed(dedup, A, content)
        assert (made.verdict.status, made.verdict.changed) == (status, changed)
    assert not committed(dedup, A, 1).verdict.changed
    assert [committed(dedup, B, content).verdict.changed for content in (1, 2)] == [False, False]  # a copy of either


@pytest.mark.parametrize(
    ("fields", "status"),
    [
        ({"facts": named("Ulm")}, "unique"),
        ({"title": "Boats for sale"}, "unique"),
        ({"title": "Boats for hire - B"}, "revisit"),
    ],
)
def test_a_fact_or_title_changes_at_a_url_that_gave_what_another_host_has(fields: dict[str, Any], status: str) -> None:
    dedup, boats = Deduplicator.open(revisit="drop"), {"title": "Boats for hire", "facts": named("Bonn")}
    for url, content in ((A, 1), (B, 2), (B, 1)):
        made = committed(dedup, url, content, **boats)
    assert made.verdict.changed
    assert claim(dedup, B, 1, **{**boats, **fields}).verdict.status == status


def test_a_copy_that_stands_in_for_a_document_is_no_mirror(dedup: Deduplicator) -> None:
    committed(dedup, A)
    made = claim(dedup, B)
    made.is_successor = True
    made.commit()
    assert not known(dedup, B).is_copy
    made = claim(dedup, B)
    assert outcome(made) == ("revisit", A)
    made.commit()
    assert known(dedup, B).is_copy  # since the original's own URL returned the document in this run


def test_a_url_that_gave_several_documents_stands_for_none(dedup: Deduplicator) -> None:
    for content in (1, 2):
        claim(dedup, A, content, has_own_url=False).commit()
    assert known(dedup, A).signature is None
    again = claim(dedup, A, 1)
    assert (again.verdict.status, again.verdict.changed) == ("revisit", False)


def test_a_number_that_tells_several_answers_of_one_url_apart_is_no_counter(tmp_path: Path) -> None:
    answers = [(f"http://a.example/{n}", n, store) for n in range(4) for store in (11, 12, 13)]  # by a cookie
    for status in ("unique", "revisit", "revisit"):
        with Deduplicator.open(tmp_path / "s") as dedup:
            for url, content, store in answers:
                made = committed(dedup, url, content, facts=pack({"store": (Kind.CODE, hash_text(str(store)))}))
                assert made.verdict.status == status


def test_a_url_that_a_spider_asks_for_again_is_skipped_in_later_runs_only(tmp_path: Path) -> None:
    for is_skipped in (False, True):
        with Deduplicator.open(tmp_path / "s", revisit="skip") as dedup:
            mirrors = Mirrors(dedup.store, Config(revisit="skip", recheck=0), deliveries=dedup.deliveries)
            assert (mirrors.advise(A) is not None) == is_skipped
            committed(dedup, A)
            assert mirrors.advise(A) is None


NUMBER = pack({"product_id": (Kind.STRONG, hash_text("101"))})
FORM = text(7, 150)


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ((A, "T-shirt 140", FORM), ("http://a.example/2", "T-shirt 152", FORM)),
        ((A, "Red boots", f"red boots of soft leather {FORM}"), (B, "Garden hose", f"a garden hose with taps {FORM}")),
    ],
)
def test_an_equal_number_makes_no_record_of_variants_nor_of_products_of_two_shops(
    first: tuple[str, str, str], second: tuple[str, str, str]
) -> None:
    with Deduplicator.open() as dedup:
        for url, title, content in (first, second):
            assert committed(dedup, url, content, title=title, facts=NUMBER).verdict.status == "unique"


def test_alias_of_a_held_document_is_a_revisit(dedup: Deduplicator) -> None:
    committed(dedup, A, aliases=("http://short.example/x",))
    assert outcome(committed(dedup, "http://short.example/x")) == ("revisit", A)


def test_documents_are_compared_with_originals_only() -> None:
    # Each is a tenth of a step from the one before: .74 resemblance, and .53 over two steps; .625 is asked for.
    first = text(1)
    middle = edited(first, *range(10, 190, 18))
    last = edited(middle, *range(19, 199, 18))
    dedup, other = Deduplicator.open(resemblance=0.6), Deduplicator.open(resemblance=0.6)
    committed(dedup, A, first)
    assert outcome(committed(dedup, B, middle)) == ("duplicate", A)
    assert claim(dedup, C, last).verdict.status == "unique"
    committed(other, B, middle)
    assert outcome(claim(other, C, last)) == ("duplicate", B)


# Evidence


EQUAL = {
    "status": "duplicate", "duplicate_of": A, "original": "", "detector": "exact", "hamming": 0, "resemblance": 1.0,
    "containment": 1.0, "length_ratio": 1.0, "kind": None, "copies": 0, "changed": False,
}  # fmt: skip


def test_tag_has_always_the_same_keys(dedup: Deduplicator) -> None:
    committed(dedup, A)
    assert claim(dedup, B).verdict.tag() == EQUAL
    for made in (claim(dedup, A, 2), claim(dedup, A), claim(dedup, B)):
        assert list(json.loads(json.dumps(made.verdict.tag()))) == list(EQUAL)


def test_evidence_of_a_near_text(dedup: Deduplicator) -> None:
    committed(dedup, A, text(1))
    verdict = claim(dedup, B, f"{edited(text(1), 100)} and ten words more at the end of it all").verdict
    assert verdict.detector in ("imatch", "simhash", "shingle")
    assert verdict.hamming is not None
    assert 0 < verdict.hamming < 20
    # 3 of 198 shingles gone, and 3 + 10 new.
    assert verdict.resemblance == pytest.approx(195 / 211, abs=0.08)
    assert verdict.containment == pytest.approx(195 / 198, abs=0.05)
    assert verdict.length_ratio == 1.05
    assert verdict.resemblance == round(verdict.resemblance or 0, 4)


def test_mirror_degree_counts_the_mirrors_before(dedup: Deduplicator) -> None:
    committed(dedup, A)
    degrees = [committed(dedup, f"http://m{n}.example/").verdict.copies for n in range(3)]
    assert degrees == [0, 1, 2]
    assert committed(dedup, A).verdict.copies == 3
    assert committed(dedup, "http://m0.example/").verdict.copies == 3


# Which document is the canonical


def test_document_of_the_same_url_comes_before_nearer_ones() -> None:
    dedup = Deduplicator.open(detectors=["exact", "shingle"], resemblance=0.9)
    committed(dedup, A, text(1))
    committed(dedup, B, edited(text(1), *range(3, 200, 20)))
    assert len(dedup) == 2
    dedup.matcher.rule = replace(dedup.matcher.rule, resemblance=0.4)
    assert outcome(claim(dedup, C, text(1))) == ("duplicate", A)
    assert outcome(claim(dedup, B, text(1))) == ("revisit", B)


def test_nearest_is_the_canonical() -> None:
    dedup = Deduplicator.open(detectors=["shingle"], resemblance=0.9)
    far = edited(text(1), *range(3, 200, 9))
    committed(dedup, A, far)
    committed(dedup, B, text(1))
    assert len(dedup) == 2
    dedup.matcher.rule = replace(dedup.matcher.rule, resemblance=0.2)
    assert outcome(claim(dedup, C, edited(text(1), 5))) == ("duplicate", B)
    assert outcome(claim(dedup, C, edited(far, 5))) == ("duplicate", A)


def test_of_equally_near_ones_the_most_repeated_is_the_canonical() -> None:
    dedup = Deduplicator.open(detectors=["shingle"], resemblance=0.97)
    committed(dedup, A, edited(text(1), 50))
    committed(dedup, B, edited(text(1), 150))
    committed(dedup, C, edited(text(1), 150))
    dedup.matcher.rule = replace(dedup.matcher.rule, resemblance=0.4)
    assert len(dedup) == 2
    assert outcome(claim(dedup, "http://d.example/", text(1))) == ("duplicate", B)


# Scope


@pytest.mark.parametrize(
    ("scope", "url", "expected"),
    [
        ("all", "http://other.example/", "duplicate"),
        ("host", "http://news.example.com/2", "duplicate"),
        ("host", "https://NEWS.example.com:8443/2", "duplicate"),
        ("host", "http://www.example.com/2", "unique"),
        ("domain", "http://www.example.com/2", "duplicate"),
        ("domain", "http://other.example/", "unique"),
        ("host", None, "unique"),
    ],
)
def test_a_copy_is_looked_for_in_the_scope_only(scope: str, url: str | None, expected: str) -> None:
    dedup = Deduplicator.open(scope=scope)
    committed(dedup, "http://news.example.com/1")
    assert claim(dedup, url).verdict.status == expected


def test_out_of_scope_copies_are_both_held() -> None:
    dedup = Deduplicator.open(scope="host")
    committed(dedup, A)
    committed(dedup, B)
    assert outcome(committed(dedup, "http://b.example/other")) == ("duplicate", B)
    assert outcome(committed(dedup, "http://a.example/other")) == ("duplicate", A)


# Short texts


@pytest.mark.parametrize(
    ("tokens", "short_text", "expected"),
    [(19, "unique", "unique"), (20, "unique", "duplicate"), (19, "exact", "duplicate"), (1, "exact", "duplicate")],
)
def test_short_text_repeats_only_where_asked_for(tokens: int, short_text: str, expected: str) -> None:
    dedup = Deduplicator.open(short_text=short_text, min_tokens=20)
    committed(dedup, A, text(1, tokens))
    assert committed(dedup, B, text(1, tokens)).verdict.status == expected


@pytest.mark.parametrize("nothing", ["", "  \n", "!!! …", "。"])
@pytest.mark.parametrize("options", [{}, {"short_text": "exact", "min_tokens": 0}])
def test_empty_text_never_repeats_anything(nothing: str, options: dict[str, Any]) -> None:
    dedup = Deduplicator.open(**options)
    for url in (A, B, A):
        assert committed(dedup, url, nothing).verdict.status == "unique"
    assert len(dedup) == 0
    assert dedup  # not false for being empty


# Claims


def test_pending_twin_is_repeated_and_a_rival_until_it_is_settled(dedup: Deduplicator) -> None:
    first = claim(dedup, A)
    second = claim(dedup, B)
    assert outcome(second) == ("duplicate", A)
    assert second.rival is first
    assert len(dedup) == 1
    first.commit()
    assert claim(dedup, B).rival is claim(dedup, C, 2).rival is None


@pytest.mark.parametrize(("end", "state"), [("commit", "committed"), ("withdraw", "withdrawn")])
def test_duplicate_waits_for_its_pending_twin(dedup: Deduplicator, end: str, state: str) -> None:
    first, second = claim(dedup, A), claim(dedup, B)
    second.commit()
    assert (second.state, dedup.store.resolve(A), dedup.store.resolve(B)) == ("pending", None, None)
    getattr(first, end)()
    assert (first.state, second.state) == (state, state)
    assert (dedup.store.resolve(B) is not None) is (end == "commit")


def test_duplicate_of_a_duplicate_waits_for_the_one_that_is_pending(dedup: Deduplicator) -> None:
    first, second, third = (claim(dedup, url) for url in (A, B, C))
    third.commit()
    second.commit()
    first.commit()
    assert [c.state for c in (first, second, third)] == ["committed"] * 3
    assert {known.url for known in dedup.store.visits(first.signature)} == {A, B, C}


@pytest.mark.parametrize("first", ["commit", "withdraw"])
def test_claim_is_settled_once(dedup: Deduplicator, first: str) -> None:
    made = claim(dedup, A)
    getattr(made, first)()
    state, size = made.state, len(dedup)
    made.commit()
    made.withdraw()
    assert (made.state, len(dedup)) == (state, size)


def test_observers_are_called_once_when_it_is_settled_and_may_claim_again(dedup: Deduplicator) -> None:
    calls: list[str] = []
    made = claim(dedup, A)
    made.when_settled(lambda: calls.extend((made.state, claim(dedup, B).verdict.status)))
    assert calls == []
    made.withdraw()
    made.commit()
    assert calls == ["withdrawn", "unique"]


def test_closing_withdraws_what_is_pending() -> None:
    with Deduplicator.open() as dedup:
        made = claim(dedup, A)
    assert made.state == "withdrawn"


# Links


@pytest.mark.parametrize(("code", "status"), [(0, "revisit"), (143, "unique")])
def test_a_program_that_a_signal_ends_leaves_a_dead_run(tmp_path: Path, code: int, status: str) -> None:
    dedup = Deduplicator.open(tmp_path / "store.sqlite")
    committed(dedup, A)
    with pytest.raises(SystemExit), dedup:
        raise SystemExit(code)
    with Deduplicator.open(tmp_path / "store.sqlite") as dedup:
        assert committed(dedup, A).verdict.status == status


def test_links_of_a_document_and_its_mirrors(dedup: Deduplicator) -> None:
    old, other = "http://a.example/old", "http://b.example/old"
    held = committed(dedup, A, aliases=(old,), size=900).signature
    committed(dedup, B, NEAR, aliases=(other,), size=1000)
    links = list(dedup.store.visits(held))
    told = {A: (False, 900), old: (False, 900), B: (True, 1000), other: (True, 1000)}
    assert {link.url: (link.is_copy, link.size) for link in links} == told
    assert links[-1].evidence is not None
    assert 0.5 < links[-1].evidence.resemblance < 1


def test_url_that_gives_something_of_its_own_is_no_mirror(dedup: Deduplicator) -> None:
    for url, content in ((A, 1), (B, 1), (B, 2)):
        committed(dedup, url, content)
    assert not known(dedup, B).is_copy
    committed(dedup, B, 1)
    assert not known(dedup, B).is_copy


@pytest.mark.parametrize(
    "end",
    [
        lambda dedup: dedup.keep_fetching(Document(B, "")),  # its content is held nowhere
        lambda dedup: claim(dedup, B).withdraw(),  # its item was not stored
    ],
    ids=["elsewhere", "withdrawn"],
)
def test_mirror_that_fails_is_fetched_from_then_on(dedup: Deduplicator, end: Callable[[Deduplicator], None]) -> None:
    committed(dedup, A)
    committed(dedup, B)
    end(dedup)
    assert (known(dedup, B).signature, known(dedup, B).is_copy) == (None, False)


def test_keep_fetching_leaves_what_is_no_mirror(dedup: Deduplicator) -> None:
    made = committed(dedup, A)
    dedup.keep_fetching(Document(A, "", aliases=(C,)))
    assert known(dedup, A).signature is made.signature
    assert dedup.store.resolve(C) is None


def test_loose_urls_are_known_but_not_firm(dedup: Deduplicator) -> None:
    committed(dedup, A, aliases=(C,), loose=frozenset({C}))
    assert (known(dedup, A).loose, known(dedup, C).loose) == (False, True)


FAMILY = 30  # documents that are alike: more than are looked at


@pytest.fixture
def few_candidates(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("scrapy_neardup.matching.matcher.MAX_CANDIDATES", 20)


@pytest.mark.usefixtures("few_candidates")
@pytest.mark.parametrize(("layout", "is_skipped"), [(7, False), (7 ^ 1 << 40, False), (~7 % 2**64, True), (0, False)])
def test_a_copy_of_an_item_of_a_list_is_skipped_only_in_another_layout(
    dedup: Deduplicator, layout: int, is_skipped: bool
) -> None:
    committed(dedup, A, label="Item 1", has_own_url=False, is_one_of_several=True, layout=7)
    committed(dedup, B, layout=layout)
    assert bool(Mirrors(dedup.store, Config()).advise(B)) == is_skipped


def test_family_of_rejected_candidates_has_bounded_cost(dedup: Deduplicator) -> None:
    form = text(1, 100)
    for number in range(FAMILY):
        before = dedup.matcher.compared
        figures = " ".join(str(number * 100 + place) for place in range(12))
        assert committed(dedup, f"http://a.example/{number}", f"{form} {figures}").verdict.status == "unique"
        assert dedup.matcher.compared - before <= 20 * len(dedup.detectors)


@pytest.mark.usefixtures("few_candidates")
def test_own_document_is_found_among_very_many_equal_ones() -> None:
    dedup = Deduplicator.open(min_tokens=50)
    urls = [f"http://a.example/{number}" for number in range(FAMILY)]
    assert {committed(dedup, url, text(1, 10)).verdict.status for url in urls} == {"unique"}
    assert {committed(dedup, url, text(1, 10)).verdict.status for url in urls} == {"revisit"}


def test_own_document_is_found_where_no_detector_proposes_it() -> None:
    dedup = Deduplicator.open(detectors=["exact"])
    committed(dedup, A, text(1))
    again = committed(dedup, A, edited(text(1), 100))
    assert (again.verdict.status, again.verdict.detector) == ("revisit", "url")


def test_what_is_out_of_scope_costs_no_more_than_a_bounded_number_of_looks() -> None:
    dedup = Deduplicator.open(scope="host", detectors=["exact"])
    for number in range(60):
        committed(dedup, f"http://{number}.example/", text(1, 30))
    start = dedup.matcher.compared
    assert committed(dedup, "http://50.example/copy", text(1, 30)).verdict.status == "duplicate"
    assert committed(dedup, "http://new.example/", text(1, 30)).verdict.status == "unique"
    assert dedup.matcher.compared == start + 1


# Detectors of one's own


class FirstWord:
    """Proposes documents that begin with the same word."""

    name = "first_word"
    scheme = "first_word/1"

    def fingerprints(self, document: Document) -> tuple[int, ...]:
        return tuple(sum(map(ord, word)) for word in document.tokens[:1])

    def index(self) -> Equal:
        return Equal()


class Needy(FirstWord):
    def __init__(self, argument: str) -> None:
        self.argument = argument


@pytest.mark.parametrize("own", ["test_dedup.FirstWord", FirstWord()], ids=["path", "object"])
def test_detector_of_ones_own(own: object) -> None:
    dedup = Deduplicator.open(detectors=[own])
    committed(dedup, A)
    verdict = claim(dedup, B, edited(text(1), 100)).verdict
    assert (verdict.status, verdict.detector, verdict.hamming) == ("duplicate", "first_word", None)
    assert claim(dedup, C, edited(text(1), 0)).verdict.status == "unique"


@pytest.mark.parametrize(
    "detectors",
    [
        [],
        ["exact", "exact"],
        *([each] for each in ("nowhere.Detector", "test_dedup.Missing", "test_dedup.Needy")),
        ["misspelt"],
        [object()],
        [7],
        [FirstWord],
    ],
    ids=range(9),
)
def test_what_is_no_detector_is_refused(detectors: list[object]) -> None:
    with pytest.raises(ConfigError, match="NEARDUP_DETECTORS"):
        Deduplicator.open(detectors=detectors)


# On disk


def decisions() -> list[dict[str, Any]]:
    """Decide of a stream of texts and their variants."""
    dedup = Deduplicator.open(detectors=["exact", "imatch", "simhash", "shingle"])
    stream = [edited(text(n % 7), *range(n % 5, 200, 20 + n)) for n in range(40)]
    return [committed(dedup, f"http://h{n % 9}.example/{n}", each).verdict.tag() for n, each in enumerate(stream)]


def test_decisions_are_the_same_in_every_process() -> None:
    expected = [decisions(), test_siblings.verdicts()]
    assert {tag["status"] for tag in expected[0]} == {*expected[1]} == {"unique", "duplicate"}
    code = "import json, test_dedup as t; print(json.dumps([t.decisions(), t.test_siblings.verdicts()]))"
    made = python(code, PYTHONHASHSEED="12345")
    assert json.loads(made.stdout) == expected, made.stderr


# Detectors of the user's own that go wrong


class Giving(Exact):
    """A detector that gives what the test says."""

    name = "giving"

    def __init__(self, *given: Any) -> None:
        self.given = given

    def fingerprints(self, document: Document) -> Any:
        return self.given


@pytest.mark.parametrize("value", [-1, 2**64, int.from_bytes(b"x" * 20, "big"), 1.5, "1", None])
def test_what_is_no_fingerprint_is_refused_and_nothing_is_held(value: Any) -> None:
    with Deduplicator.open(None, detectors=["exact", Giving(7, value)]) as made:
        with pytest.raises(ValueError, match="'giving': fingerprints must be unsigned 64-bit integers"):
            claim(made, A)
        assert len(made) == 0


def test_integers_of_numpy_are_fingerprints(tmp_path: Path) -> None:
    with Deduplicator.open(str(tmp_path / "store"), detectors=[Giving(*np.array([2**64 - 1, 3], np.uint64))]) as made:
        assert claim(made, A).signature.own == {"giving": (2**64 - 1, 3)}
        committed(made, B)
        made.flush()


class Broken(Giving):
    """Its index takes nothing."""

    def index(self) -> Any:
        class Index:
            def add(self, fingerprints: Any, document: Any) -> None:
                raise RuntimeError("no")

            def remove(self, fingerprints: Any, document: Any) -> None:
                pass

            def find(self, fingerprints: Any) -> Any:
                return ()

        return Index()


def test_an_index_that_fails_leaves_no_half_a_document() -> None:
    with Deduplicator.open(None, detectors=["exact", Broken(1)]) as made:
        for url in (A, B):
            with pytest.raises(RuntimeError):
                claim(made, url)
        assert len(made) == 0


@pytest.mark.usefixtures("few_candidates")
@pytest.mark.parametrize("order", [("common", "shingle"), ("shingle", "common")])
def test_a_detector_that_proposes_much_does_not_crowd_out_others(order: tuple[str, str]) -> None:
    common = Giving(1)
    common.name = "common"
    with Deduplicator.open(None, detectors=[common if name == "common" else name for name in order]) as made:
        for number in range(FAMILY):
            committed(made, f"http://c.example/{number}", 1000 + number)
        committed(made, A, 1)
        assert outcome(claim(made, B, 1)) == ("duplicate", A)


def test_records_that_are_made_ahead_are_those_of_the_documents() -> None:
    with Deduplicator.open() as dedup:
        documents = [Document(text=text(seed, 10 * seed)) for seed in range(5)]
        for document, record in zip(documents, dedup.signer.records(documents), strict=True):
            assert dedup.sign(document).record == record


# Preferred hosts


@pytest.fixture
def preferring() -> Deduplicator:
    return Deduplicator.open(preferred_hosts=["A.example", "c.example"])


def test_a_run_that_dies_gives_back_the_place_that_its_document_took(tmp_path: Path) -> None:
    store = tmp_path / "store.sqlite"
    with Deduplicator.open(store) as first:
        committed(first, B)
        committed(first, "http://d.example/4")
    dies = Deduplicator.open(store, preferred_hosts=["a.example"])
    assert outcome(committed(dies, A)) == ("unique", None)
    dies.flush()
    dies.store.backend.close()
    with Deduplicator.open(store) as later:
        assert outcome(committed(later, "http://d.example/4")) == ("duplicate", B)


def test_a_preferred_document_takes_the_place_of_one_with_other_fields(tmp_path: Path) -> None:
    for status in ("unique", "revisit"):
        with Deduplicator.open(tmp_path / "store.sqlite", preferred_hosts=["c.example"], revisit="drop") as dedup:
            for url, name in ((B, "b"), ("http://c.example/1", "c")):
                item = item_document({"url": url, "text": text(1), "source": f"paper {name}"})
                assert item
                made = dedup.claim(item)
                made.commit()
            assert (made.verdict.status, made.verdict.changed) == (status, False)
            assert known(dedup, B).is_copy


def test_a_copy_that_was_pending_when_a_preferred_document_came_elsewhere_has_not_changed(tmp_path: Path) -> None:
    opened = partial(Deduplicator.open, tmp_path / "store.sqlite", preferred_hosts=["c.example"], revisit="drop")
    with opened() as one, opened() as two:
        copy = claim(one, B, NEAR)
        committed(two, C)
        copy.commit()
    with opened() as later:
        assert (made := committed(later, B, NEAR)).verdict.duplicate_of == C
        assert not made.verdict.changed


def test_near_copies_repeat_a_preferred_document_that_is_pending(preferring: Deduplicator) -> None:
    first, preferred = claim(preferring, B, edited(text(1), 40)), claim(preferring, A)
    third = claim(preferring, "http://d.example/4", edited(text(1), 30))
    assert third.rival is preferred
    for each in (first, preferred, third):
        each.commit()
    assert {known(preferring, url).signature for url in (A, B, "http://d.example/4")} == {preferred.signature}
    assert len(preferring) == 1


def test_what_was_pending_then_becomes_a_mirror_too(preferring: Deduplicator) -> None:
    first = claim(preferring, B)
    assert outcome(committed(preferring, A)) == ("unique", None)
    first.commit()
    assert (known(preferring, B).is_copy, known(preferring, B).signature) == (True, known(preferring, A).signature)


def test_a_preferred_host_s_document_is_compared_with_those_of_its_host(preferring: Deduplicator) -> None:
    committed(preferring, A)
    assert outcome(committed(preferring, f"{A}?copy")) == ("duplicate", A)
    assert outcome(committed(preferring, C)) == ("unique", None)
    assert outcome(committed(preferring, B))[0] == "duplicate"


def test_a_preferred_document_that_is_withdrawn_takes_no_place(preferring: Deduplicator) -> None:
    committed(preferring, B)
    claim(preferring, A).withdraw()
    assert not known(preferring, B).is_copy
    assert outcome(committed(preferring, "http://d.example/4")) == ("duplicate", B)
