"""`export` and `import`: nothing is lost, nothing forgotten comes back, and a second import changes nothing."""

from __future__ import annotations

import json
import math
import re
from base64 import b64encode
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from cli import refused, rows, succeeded, write
from helpers import asking, built, hashes, link, named, names, signature, sketch, text
from store_kinds import KINDS, URL, Place, commit, fill_numbered, held, on_disk, put, wait_for
from tiers import slow

from scrapy_neardup import Document
from scrapy_neardup.facts import Kind, name_of, pack
from scrapy_neardup.fingerprints.record import encode, extended, keys_of
from scrapy_neardup.hosts import Trial
from scrapy_neardup.signature import Evidence, Visit
from scrapy_neardup.store import Selection, StoreError
from scrapy_neardup.store.records import FORMAT, code, id_of, number_of, visit_key
from scrapy_neardup.store.transfer import Imported


@pytest.fixture
def source(tmp_path: Path) -> Place:
    return on_disk(tmp_path)


@pytest.fixture(params=KINDS)
def copy(request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    return KINDS[request.param](tmp_path, "copy")


def views(count: int) -> bytes:
    """Return the facts of a record that changes at each visit."""
    return pack({"views": (Kind.CODE, count)})


def varied(place: Place) -> None:
    """Commit one of everything: a counter, forgotten, replaced, visited twice, nowhere, without URL, with evidence."""
    fill_numbered(place, 0, 30)
    forgotten = fill_numbered(place, 30, 5)
    minima = sketch(77, hashes(60, seed=1), figures=[3, 9])
    with place.opened() as store:
        whole = built(
            f"{URL}\udcff", {"exact": (2**64 - 1,), "simhash": (3,)}, minima, 1234.5678,
            layout=2**63, title="Boats \udcff – 船", facts=named("boat"), label="place \udcff 船",
        )  # fmt: skip
        put(store, whole)
        put(store, nameless := built(None, {"exact": (8,), "simhash": ()}, minima, 6.0))
        store.record(link("", nameless, is_copy=True))
        for name in ("seen", "again", "lost"):
            store.add(each := signature(name, exact=ord(name[0])))
            store.commit(each, link(each.url or "", each, seen=1000.0, size=5))
            if name != "seen":
                store.record(link(f"{URL}{name}", each if name == "again" else None))
        evidence = Evidence("simhash", 2, 0.875, 0.9, 1.25, "content")
        store.record(Visit("http://m.example/a?x=1", whole, True, 2099.5, 4321, evidence, loose=True))
        store.record(link("http://m.example/list", None))
        trials = [
            Trial(("a.example", "b.example"), ("", ""), (".html", ""), n, 0, n + 7, 3, 1, 50.0 + n) for n in (1, 2)
        ]
        store.hosts.load(trials)
        store.learn(trials)
        told = [built(f"{URL}event", {}, minima, 1.0, facts=views(n)) for n in range(6)]
        assert [len(store.note_visit(new, old, has_text=True)) for old, new in pairwise(told)].count(1) == 1
        store.forget(Selection(url=f"{URL}3"))
        store.forget(Selection(run=forgotten))
    fill_numbered(place, 40, 7)
    with place.opened() as store:
        store.forget(Selection(url=f"{URL}4"))
        [(_, older)] = store.find(asking({"exact": (1005,)}))
        store.record(link("http://m.example/6", older, is_copy=True, seen=3000.0))


@pytest.mark.parametrize(("place", "copy"), [("disk", "server"), *slow(("server", "disk"))], indirect=True)
def test_nothing_is_lost_on_the_way_and_back(place: Place, copy: Place, tmp_path: Path) -> None:
    varied(place)
    taken = copy.load(place.exported(), chunk=7)
    assert (taken.documents, taken.known) == (40, 0)
    assert taken.urls == copy.exported()[0]["urls"]
    back = on_disk(tmp_path, "back")
    back.load(copy.exported())
    assert back.sorted_rows() == copy.sorted_rows() == place.sorted_rows()
    with place.opened(run=None) as one, copy.opened(run=None) as other:
        for store in (one, other):
            told = {each.url: (each.title, each.facts, each.label) for each in store.signatures()}
            assert told[f"{URL}\udcff"] == ("Boats \udcff – 船", named("boat"), "place \udcff 船")
            assert told[None] == ("", b"", "")
            assert [told[f"{URL}{n}"] for n in (5, 45)] == [(f"Page {n}", named(str(n)), "") for n in (5, 45)]
        assert sorted(each.copy_count for each in one.signatures()) == sorted(
            each.copy_count for each in other.signatures()
        )
        assert names(one.pages("site.example")) == names(other.pages("site.example")) != []
        assert one.hosts.dump() == other.hosts.dump()
        assert list(one.counters.known()) == list(other.counters.known()) == [("site.example", name_of("views"))]
        for wanted in [{"exact": (number,)} for number in (3, 8, *range(1000, 1050))] + [{"simhash": (3,)}]:
            assert sorted(names(s for _, s in one.find(asking(wanted)))) == sorted(
                names(s for _, s in other.find(asking(wanted)))
            )


def test_programs_that_round_integers_change_nothing(source: Place) -> None:
    varied(source)
    rows = source.exported()
    assert any("hex" in str(row.get("target")) for row in rows)
    assert json.loads(json.dumps(rows), parse_int=lambda digits: int(float(digits))) == rows


def test_decisions_stay_the_same(source: Place, copy: Place) -> None:
    settings: dict[str, Any] = {"detectors": ["imatch", "simhash", "shingle", "feature_code"]}
    with source.dedup(**settings) as dedup:
        for seed in range(20):
            dedup.claim(Document(f"{URL}{seed}", text(seed))).commit()
    copy.load(source.exported())
    with copy.dedup(**settings) as dedup:
        for seed in range(20):
            claim = dedup.claim(Document(f"http://n.example/{seed}", text(seed) + " one more"))
            assert claim.verdict.duplicate_of == f"{URL}{seed}"
        assert dedup.claim(Document("http://n.example/new", text(99))).verdict.status == "unique"


def test_a_second_time_it_changes_nothing(source: Place, copy: Place) -> None:
    varied(source)
    everything = source.exported()
    copy.load(everything)
    for place in (source, copy):
        before = place.content()
        assert place.load(everything) == Imported(0, 0, 40)
        assert place.content() == before


def test_what_was_cut_off_goes_on(source: Place, copy: Place) -> None:
    varied(source)
    everything = source.exported()
    for end in (20, 60):
        with pytest.raises(ValueError, match="truncated"):
            copy.load(everything[:end], chunk=9)
    copy.load(everything, chunk=9)
    assert copy.sorted_rows() == source.sorted_rows()


def test_what_was_forgotten_with_its_run_stays_forgotten(place: Place) -> None:
    first = fill_numbered(place, 0, 5)
    fill_numbered(place, 5, 5)
    everything = place.exported()
    with place.opened() as store:
        assert store.forget(Selection(run=first)) == (5, 10)
    for _ in range(2):
        assert place.load(everything) == Imported(0, 0, 10)
        assert place.held() == [*"56789"]


def test_what_was_forgotten_by_url_comes_back(place: Place) -> None:
    fill_numbered(place, 0, 5)
    with place.opened() as store:
        store.record(link("http://m.example/list", None))
    everything = place.exported()
    with place.opened() as store:
        assert store.forget(Selection(url=f"{URL}3")) == (1, 2)
        assert store.forget(Selection(url="http://m.example/list")) == (0, 1)
        assert store.forget(Selection(url="http://m.example/4")) == (0, 1)
    for taken in (Imported(1, 4, 4), Imported(0, 0, 5)):
        assert place.load(everything) == taken
        with place.opened(run=None) as store:
            assert held(store) == [*"01234"]
            assert (len(store), store.describe()["urls"]) == (5, 11)


@pytest.mark.parametrize("seen", [500.0, 5000.0])
def test_of_two_links_of_one_url_the_later_one_counts(source: Place, copy: Place, seen: float) -> None:
    # Each of the two may be told by a document or by a row of its own.
    with source.opened() as store:
        for name in ("a", "b"):
            store.add(theirs := signature(name, exact=ord(name)))
            store.commit(theirs, link(theirs.url or "", theirs, seen=1000.0, size=5))
        put(store, signature("c", exact=3), f"{URL}d")
    with copy.opened() as store:
        store.add(ours := signature("ours", exact=4, url=f"{URL}a"))
        store.commit(ours, link(ours.url or "", ours, seen=seen, size=5))
        for url in ("b", "c"):
            store.record(link(f"{URL}{url}", ours, is_copy=True, seen=seen))
        store.add(ours_too := signature("ours", exact=5, url=f"{URL}d"))
        store.commit(ours_too, link(ours_too.url or "", ours_too, seen=seen, size=5))
    for _ in range(2):
        copy.load(source.exported())
        with copy.opened(run=None) as store:
            found = [store.resolve(f"{URL}{url}") for url in "abcd"]
            keys = [each.signature.keys["exact"][0] for each in found if each and each.signature]
            assert keys == keys_of("exact", [ord("a"), ord("b"), 3, 3] if seen == 500.0 else [4, 4, 4, 5])
            assert (len(store), store.describe()["urls"]) == (5, 4)
            assert len(list(store.urls.all())) == 4


def test_a_run_that_was_imported_can_be_forgotten(source: Place, copy: Place) -> None:
    fill_numbered(source, 0, 5)
    second = fill_numbered(source, 5, 5)
    copy.load(source.exported(), chunk=3)
    with copy.opened() as store:
        assert store.forget(Selection(run=second)) == (5, 10)
    assert copy.held() == [*"01234"]


def test_a_store_that_is_open_sees_what_was_imported(source: Place, copy: Place) -> None:
    fill_numbered(source, 0, 5)
    with copy.opened() as store:
        commit(store, signature("own", exact=5))
        copy.load(source.exported())
        commit(store, signature("more", exact=6))
        wait_for(store, *"01234", "more", "own")
        assert (len(store), store.describe()["urls"]) == (7, 12)
    assert len(copy.exported()) == len(source.exported()) + 2 + 2 + 1 + 1  # documents, URLs, a run, news of a host


def test_other_fingerprints_are_refused(source: Place, copy: Place) -> None:
    source.dedup(detectors=[{"name": "imatch", "randomized": 3}]).close()
    copy.dedup(detectors=[{"name": "imatch", "randomized": 4}]).close()
    before = copy.content()
    with pytest.raises(StoreError, match="imatch"):
        copy.load(source.exported())
    assert copy.content() == before


# Runs that are open


def test_two_runs_of_one_file_that_have_one_code_are_refused(source: Place, copy: Place) -> None:
    fill_numbered(source, 0, 1, run="run-9887")
    first, run, *others = source.exported()
    other = json.loads(json.dumps(run).replace("run-9887", "run-93528"))
    with pytest.raises(ValueError, match="have one code"):
        copy.load([first, run, other, *others])


def test_run_that_was_open_when_exported_is_forgotten_each_time(source: Place, copy: Place) -> None:
    with source.opened() as store:
        for name in ("1", "2"):
            commit(store, signature(name))
            copy.load(source.exported())
            assert copy.held() == []


@pytest.mark.parametrize(("unclean", "expected"), [("forget", ["1"]), ("keep", ["1", "2"])])
def test_a_run_that_was_open_ends_as_after_a_kill(
    source: Place, copy: Place, unclean: str, expected: list[str]
) -> None:
    everything = export_of_an_open_run(source)
    copy.load(everything)
    with copy.opened(unclean_run=unclean) as store:
        assert held(store) == expected
        assert bool(store.resolve("http://m.example/list")) == (unclean == "keep")
        [job] = [run for run in store.runs() if run.id == "job"]
        ids = [row.get("at") or row["key"] for row in everything if row["type"] in ("document", "visit")]
        last = max(number_of(int(id["hex"], 16)) for id in ids)
        [sealed] = (row["sealed"] for row in everything if row.get("key") == "job")
        assert job.forgotten == (((sealed + 1, last),) if unclean == "forget" else ())
        assert job.closed
        assert job.sealed == last
        assert len(store) == len(expected)
    assert copy.load(everything).documents == 0


def export_of_an_open_run(source: Place) -> list[dict[str, Any]]:
    """Return the rows of a run that goes on."""
    fill_numbered(source, 1, 1, run="job")
    with source.opened(run="job") as store:
        put(store, signature("2", exact=2))
        store.record(link("http://m.example/list", None))
        store.flush()
        return source.exported()


def test_a_run_that_went_on_elsewhere_goes_on_here_after_its_rows(source: Place, copy: Place) -> None:
    for first in (0, 2):
        fill_numbered(source, first, 2, run="job")
        copy.load(source.exported())
    fill_numbered(copy, 4, 2, run="job")
    assert copy.held() == [*"012345"]


def test_rows_that_a_living_run_may_yet_write_wait_for_its_end(source: Place, copy: Place) -> None:
    fill_numbered(source, 0, 2, run="job")
    with copy.opened(run="job") as store:
        assert copy.load(source.exported()) == Imported(0, 0, 0)
        commit(store, signature("own", exact=5))
    assert copy.held() == ["own"]


# Rows that are none

FACTS = named("boat")
RECORD = extended(encode({"exact": (1,), "shingle": (2, 3)}, sketch(7), 6, FACTS), {"own": (4, 5)})


def with_record(packed: bytes) -> dict[str, Any]:
    return {**DOCUMENT, "record": {"base64": b64encode(packed).decode()}}


def changed(place: int, value: int) -> dict[str, Any]:
    """Return a document with another byte at this place of its record."""
    return with_record(RECORD[:place] + bytes([value]) + RECORD[place + 1 :])


ID = id_of(code("r"), 1)
DOCUMENT = {
    "type": "document",
    "key": ID,
    "url": URL,
    "first_seen": 1.0,
    "title": "",
    "label": "",
    "record": {"base64": b64encode(RECORD).decode()},
    "sample": False,
}
VISIT: dict[str, Any] = {"type": "visit", "key": visit_key(URL), "url": URL, "target": None, "is_copy": False}
VISIT |= {"seen": 1.0, "size": 0, "loose": False, "evidence": None, "at": ID, "before": None, "name": ""}
EVIDENCE = ["exact", 3, 0.9, 1.0, 1.0, None]
TRIAL: list[Any] = [["a", "b"], ["", ""], ["", ""], 1, 0, 1, 1, 0, 1.0, False]
HOST: dict[str, Any] = {"type": "host", "key": f"{ID:016x}", "trials": [], "met": {}, "counters": []}


def trial(place: int, value: Any) -> dict[str, Any]:
    """Return evidence of which one field is another."""
    return {**HOST, "trials": [TRIAL, [*TRIAL[:place], value, *TRIAL[place + 1 :]]]}


RUN: dict[str, Any] = {"type": "run", "key": "r", "started": 1.0, "closed": 2.0, "sealed": 0, "paused": 0.0}
RUN |= {"forgotten": [], "lost": [], "stats": {}, "writer": "", "fields": []}


@pytest.fixture(scope="module")
def three(tmp_path_factory: pytest.TempPathFactory) -> Place:
    """Return a store of three documents, which no test changes."""
    place = on_disk(tmp_path_factory.mktemp("three"))
    fill_numbered(place, 0, 3)
    return place


@pytest.mark.parametrize(
    ("row", "said"),
    [
        ({"type": "else"}, "'else'"),
        ({}, "'None'"),
        ({"type": "run", "key": "r"}, "a run without 'started'"),
        ({**RUN, "key": "../r"}, "'../r'"),
        ({**DOCUMENT, "key": ["r", 1]}, "its key is ['r', 1]; allowed is the id of a document or run"),
        ({**DOCUMENT, "key": True}, "its key is True"),
        ({**DOCUMENT, "key": -5}, "its key is -5"),
        ({**DOCUMENT, "key": ID - 1}, "its key is"),
        ({**DOCUMENT, "key": ID + 2**32}, "of a run that has no row"),
        ({**HOST, "key": "../r"}, "its key is '../r'"),
        ({**DOCUMENT, "url": 5}, "its url is 5; allowed is str | None"),
        ({**DOCUMENT, "title": 5}, "its title is 5; allowed is str"),
        ({**DOCUMENT, "label": 5}, "its label is 5; allowed is str"),
        ({**DOCUMENT, "record": {"base64": "ä"}}, "no document"),
        (with_record(RECORD[:599]), "no document"),
        (with_record(RECORD[:-1]), f"its record has {len(RECORD) - 1} bytes; allowed are {len(RECORD)}"),
        (with_record(RECORD + b"A"), f"its record has {len(RECORD) + 1} bytes; allowed are {len(RECORD)}"),
        (changed(12, 17), "more figures than a sample has"),
        (changed(14, 255), "allowed are"),
        (changed(len(RECORD) - 8, 0x82), "no document"),  # a map of two detectors
        (changed(len(RECORD) - 7, 0xC4), "no document"),  # a name of bytes
        (changed(len(RECORD) - 3, 0xA2), "no document"),  # a text in place of fingerprints
        (changed(len(RECORD) - 1, 0xFF), "no document"),  # a fingerprint below 0
        (with_record(encode({}, sketch(1), 0, FACTS[:-1])), f"its facts have {len(FACTS) - 1} bytes; allowed is"),
        ({key: value for key, value in DOCUMENT.items() if key != "record"}, "a document without 'record'"),
        ({**DOCUMENT, "first_seen": -1.0}, "its first_seen is -1.0; allowed is float"),
        ({**VISIT, "seen": math.nan}, "its seen is nan; allowed is float"),
        ({**VISIT, "evidence": [EVIDENCE[0], "3", *EVIDENCE[2:]]}, "its evidence is"),
        ({**VISIT, "evidence": [*EVIDENCE[:4], math.inf, None]}, "its evidence is"),
        ({**VISIT, "size": 2**64}, "its size is"),
        ({**VISIT, "key": visit_key("http://other.example/")}, "its key is not the hash of its URL or name"),
        ({**VISIT, "name": "item 1: a"}, "its key is not the hash of its URL or name"),
        ({**VISIT, "at": "r"}, "'r'; allowed is the id of a document"),
        ({**VISIT, "before": 7}, "no visit"),
        ({**VISIT, "before": [ID, -5]}, "its before is"),
        ({**VISIT, "target": -5}, "-5; allowed is the id of a document"),
        ({**VISIT, "is_copy": 1}, "its is_copy is 1; allowed is bool"),
        ({**VISIT, "url": None}, "its url is None; allowed is str"),
        ({**HOST, "trials": [[["a"]]]}, "no host"),
        (trial(0, ["a"]), "its trials is"),
        (trial(4, 9), "no host: 9"),
        ({"type": "host", "key": f"{ID:016x}", "trials": []}, "a host without 'met'"),
        ({**HOST, "met": {"a": 1e18}}, "its met is {'a': 1e+18}; allowed is dict[str, float]"),
        ({**HOST, "counters": [["a.example", -5, True]]}, "its counters is"),
        ({**RUN, "started": math.inf}, "its started is inf; allowed is float"),
        ({**RUN, "closed": -math.inf}, "its closed is -inf; allowed is float | None"),
        ({**RUN, "sealed": -1}, "its sealed is -1"),
        ({**RUN, "sealed": 2**36}, "too many rows for a run"),
        ({**RUN, "forgotten": [[0, 2**60]]}, "too many rows for a run"),
        ({**RUN, "lost": [[0.0, -1.0]]}, "its lost is ((0.0, -1.0),)"),
        ({**RUN, "paused": 1e18}, "its paused is 1e+18"),
        ({**RUN, "stats": {"documents": "many"}}, "its stats is {'documents': 'many'}"),
        ({**RUN, "fields": [7]}, "its fields is [7]"),
    ],
)
def test_invalid_rows_are_refused_and_change_nothing(three: Place, row: dict[str, Any], said: str) -> None:
    before = three.exported()
    with pytest.raises(ValueError, match=re.escape(said)):
        three.load([*before[:-1], row, before[-1]])
    assert three.exported() == before


def test_document_without_url_tells_of_no_visit(three: Place, copy: Place) -> None:
    *before, end = three.exported()
    run = next(row["key"] for row in before if row["type"] == "run")
    id = id_of(code(run), 999)
    copy.load([*before, {**DOCUMENT, "key": id, "url": None}, end])
    visits = [row["target"] for row in copy.exported() if row["type"] == "visit"]
    assert visits
    assert {"hex": f"{id:x}"} not in visits


@pytest.mark.parametrize(
    "first", [[], [{"type": "run"}], [{"type": "store", "format": 99}], [{"type": "store", "format": FORMAT}]]
)
def test_files_that_are_no_export_are_refused_and_make_no_store(copy: Place, first: list[dict[str, Any]]) -> None:
    with pytest.raises(ValueError, match=r"export|format|damaged"):
        copy.load(first)
    assert copy.is_on_server or not Path(copy.address).exists()


def test_the_command_says_which_row_is_none(three: Place, tmp_path: Path) -> None:
    everything = three.exported()
    write(tmp_path / "in.jsonl", [*everything[:4], {**DOCUMENT, "url": 5}, *everything[4:]])
    (tmp_path / "beside").mkdir()
    assert "in.jsonl, row 5: no document: its url is 5; allowed is str | None" in refused(
        tmp_path / "beside", "import", "../in.jsonl", "--store", three.address
    )


def test_export_and_import_on_the_command_line(source: Place, copy: Place, tmp_path: Path) -> None:
    fill_numbered(source, 0, 5)
    said = succeeded(tmp_path, "export", "--store", source.address, "-o", "held.jsonl.gz").stderr
    assert said == "5 documents, 10 URLs and 1 run exported\n"
    assert rows(tmp_path / "held.jsonl.gz") == source.exported()
    said = succeeded(tmp_path, "import", "held.jsonl.gz", "--store", copy.address).stderr
    known = "0 documents known before, or forgotten with their run"
    assert said == f"held.jsonl.gz: 5 documents and 10 URLs imported; {known}\n"
    assert copy.sorted_rows() == source.sorted_rows()


def test_records_without_text_come_back(tmp_path: Path) -> None:
    """A copy of one has no text to measure."""
    fields = [{"title": f"Lamp {n}", "sku": f"A-100{n}"} for n in (1, 2)]
    items = [
        {"url": f"http://a.example/{path}/{n}", **each} for path in ("en", "mobile") for n, each in enumerate(fields)
    ]
    write(tmp_path / "items.jsonl", items)
    told = succeeded(tmp_path, "dedupe", "items.jsonl", "-o", "kept.jsonl", "--store", "held.sqlite").stderr
    assert told == "4 rows, 2 kept, 2 duplicates, 4 without text\n"
    succeeded(tmp_path, "stats", "--check", "--store", "held.sqlite")
    assert "duplicate: " in succeeded(tmp_path, "explain", items[2]["url"], "--store", "held.sqlite").stdout
    succeeded(tmp_path, "export", "-o", "held.jsonl", "--store", "held.sqlite")
    succeeded(tmp_path, "import", "held.jsonl", "--store", "copy.sqlite")
    succeeded(tmp_path, "export", "-o", "copy.jsonl", "--store", "copy.sqlite")
    assert rows(tmp_path / "copy.jsonl")[1:] == rows(tmp_path / "held.jsonl")[1:] != []
