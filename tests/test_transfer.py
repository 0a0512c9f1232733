"""`export`, `import` and `compact`: nothing is lost, nothing comes back, and a kill at any moment does no harm."""

from __future__ import annotations

import json
import math
import os
import random
import re
import subprocess
import sys
import time
from collections.abc import Iterable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from cli import refused, rows, succeeded, write
from faulty import Disk, read_only_disk, small_disk  # noqa: F401 - fixtures
from helpers import detectors, hashes, link, names, signature, sketch, text

from scrapy_neardup import Deduplicator, Document
from scrapy_neardup.index.relations import Row
from scrapy_neardup.signature import Evidence, Link, Signature
from scrapy_neardup.stores import Selection, SqliteStore, StoreError
from scrapy_neardup.stores.absorbing import tidy
from scrapy_neardup.stores.compacting import compact
from scrapy_neardup.stores.importing import load
from scrapy_neardup.stores.transfer import export_rows

KILLS = int(os.environ.get("NEARDUP_TEST_KILLS", "4"))
URL = "http://site.example/"


@pytest.fixture
def path(tmp_path: Path) -> str:
    return str(tmp_path / "store.sqlite")


@pytest.fixture
def copy(tmp_path: Path) -> str:
    return str(tmp_path / "copy.sqlite")


def opened(path: str, run: str | None = "", **options: Any) -> closing[SqliteStore]:
    return closing(SqliteStore(path, detectors(), run=run, **options))


def exported(path: str, namespace: str = "") -> list[dict[str, Any]]:
    with export_rows(path, namespace) as found:
        return [json.loads(json.dumps(row)) for row in found]


def sorted_rows(path: str) -> list[str]:
    return sorted(json.dumps(row, sort_keys=True) for row in exported(path))


def commit(store: SqliteStore, each: Signature, *urls: str) -> Signature:
    store.add(each)
    store.commit(each)
    for url in (each.url, *urls):
        if url:
            store.record(link(url, each, mirror=url != each.url))
    return each


def fill(path: str, first: int, count: int, **options: Any) -> str:
    """Commit documents of these numbers, each under fingerprints of its own and with a mirror; return the run."""
    with opened(path, **options) as store:
        for number in range(first, first + count):
            each = signature(str(number), exact=number + 1000, simhash=number << 30)
            commit(store, each, f"http://m.example/{number}")
        return store.run


def varied(path: str) -> None:
    """Commit one of everything: in a part, in the log, forgotten, replaced, nowhere, without URL, with evidence."""
    fill(path, 0, 30)
    forgotten = fill(path, 30, 5)
    minima = sketch(77, hashes(60, seed=1), figures=[3, 9])
    with opened(path) as store:
        whole = Signature(f"{URL}\udcff", {"exact": (2**64 - 1,), "simhash": (3,)}, minima, 1234.5678, layout=2**63)
        commit(store, whole)
        commit(store, Signature(None, {"exact": (8,), "simhash": ()}, minima, 6.0))
        evidence = Evidence("simhash", 2, 0.875, 0.9, 1.25, "content")
        store.record(Link("http://m.example/a?x=1", whole, True, 99.5, 4321, evidence, firm=False))
        store.record(link("http://m.example/list", None))
        trials = [Row(("a.example", "b.example"), ("", ""), (".html", ""), n, 0, n + 7, 3, 1, 50.0 + n) for n in (1, 2)]
        store.hosts.load(trials)
        store.learn(trials)
        store.forget(Selection(url=f"{URL}3"))
        store.forget(Selection(run=forgotten))
    tidy(path, "")
    fill(path, 40, 7)
    with opened(path) as store:
        store.forget(Selection(url=f"{URL}4"))
        [(_, held)] = store.find({"exact": (1005,)})
        store.record(link("http://m.example/6", held, mirror=True, seen=3000.0))


@pytest.mark.parametrize("chunk", [7, 50_000])
def test_nothing_is_lost(path: str, copy: str, chunk: int) -> None:
    varied(path)
    before = exported(path)
    taken = load(copy, "", before, chunk=chunk)
    assert (taken.documents, taken.known) == (37, 0)
    assert sorted_rows(copy) == sorted_rows(path)
    with opened(path, None) as one, opened(copy, None) as other:
        assert sorted(one.degrees()) == sorted(other.degrees())
        assert one.hosts.dump() == other.hosts.dump()
        for wanted in [{"exact": (number,)} for number in range(1050)] + [{"simhash": (3,)}]:
            assert sorted(names(s for _, s in one.find(wanted))) == sorted(names(s for _, s in other.find(wanted)))


def test_the_head_says_how_much_follows(path: str) -> None:
    varied(path)
    head, *following, end = exported(path)
    kinds = [row["type"] for row in following]
    assert (head["type"], head["documents"], head["links"]) == ("store", kinds.count("document"), kinds.count("link"))
    assert end == {"type": "end"}


def test_decisions_stay_the_same(path: str, copy: str) -> None:
    settings: dict[str, Any] = {"detectors": ["imatch", "simhash", "shingle", "feature_code"]}
    with Deduplicator.open(path, **settings) as dedup:
        for seed in range(20):
            dedup.claim(Document(f"{URL}{seed}", text(seed))).commit()
    tidy(path, "")
    load(copy, "", exported(path))
    with Deduplicator.open(copy, **settings) as dedup:
        for seed in range(20):
            claim = dedup.claim(Document(f"http://n.example/{seed}", text(seed) + " one more"))
            assert claim.verdict.duplicate_of == f"{URL}{seed}"
        assert dedup.claim(Document("http://n.example/new", text(99))).verdict.status == "unique"


def test_a_second_time_it_changes_nothing(path: str, copy: str) -> None:
    varied(path)
    load(copy, "", exported(path))
    files = sorted(Path(f"{copy}.parts").iterdir())
    assert load(copy, "", exported(path)) == (0, 0, 37)
    assert sorted(Path(f"{copy}.parts").iterdir()) == files
    assert load(path, "", exported(path)) == (0, 0, 37)


def test_what_was_cut_off_goes_on(path: str, copy: str) -> None:
    varied(path)
    everything = exported(path)
    for end in (20, 45, 60):
        with pytest.raises(ValueError, match="cut off"):
            load(copy, "", everything[:end], chunk=4)
    load(copy, "", everything, chunk=4)
    assert sorted_rows(copy) == sorted_rows(path)


def test_a_store_keeps_what_it_has(path: str, copy: str) -> None:
    fill(path, 0, 5)
    with opened(copy) as store:
        own = commit(store, signature("own", exact=5), f"{URL}0")
        store.record(link("http://m.example/1", own, mirror=True, seen=5000.0))
    load(copy, "", exported(path))
    with opened(copy, None) as store:
        assert len(store) == 6
        newer, older = store.resolve("http://m.example/1"), store.resolve("http://m.example/2")
        assert names(filter(None, (newer and newer.signature, older and older.signature))) == ["own", "2"]


def test_what_was_forgotten_stays_forgotten(path: str) -> None:
    first = fill(path, 0, 5)
    fill(path, 5, 5)
    with opened(path) as store:
        store.record(link("http://m.example/list", None))
    everything = exported(path)
    tidy(path, "")
    with opened(path) as store:
        store.forget(Selection(run=first))
        store.forget(Selection(url=f"{URL}7"))
        store.forget(Selection(url="http://m.example/list"))
    for _ in range(2):
        assert load(path, "", everything) == (0, 0, 10)
        with opened(path, None) as store:
            assert sorted(names(store.signatures())) == ["5", "6", "8", "9"]
            assert store.resolve("http://m.example/list") is None
        tidy(path, "")


def test_a_run_that_was_imported_can_be_forgotten(path: str, copy: str) -> None:
    fill(path, 0, 5)
    second = fill(path, 5, 5)
    load(copy, "", exported(path), chunk=3)
    with opened(copy) as store:
        assert store.forget(Selection(run=second)) == (5, 10)
    with opened(copy, None) as store:
        assert sorted(names(store.signatures())) == list("01234")


def test_a_store_that_is_open_sees_what_was_imported(path: str, copy: str) -> None:
    fill(path, 0, 5)
    with opened(copy) as store:
        commit(store, signature("own", exact=5))
        store.flush()
        load(copy, "", exported(path))
        commit(store, signature("more", exact=6))
        store.flush()
        end = time.monotonic() + 10
        while len(store) < 7 and time.monotonic() < end:
            store.refresh()
        assert sorted(names(store.signatures())) == [*"01234", "more", "own"]
    assert len(exported(copy)) == len(exported(path)) + 2 + 2 + 1  # documents, URLs, a run


def test_another_namespace(path: str) -> None:
    fill(path, 0, 5)
    load(path, "a/b", exported(path))
    assert [row["url"] for row in exported(path, "a/b") if row["type"] == "document"] == [f"{URL}{n}" for n in range(5)]
    fill(path, 5, 1)
    assert len(exported(path, "a/b")) < len(exported(path))


def test_other_fingerprints_are_refused(path: str, copy: str) -> None:
    with Deduplicator.open(path, imatch_lexicons=3):
        pass
    with Deduplicator.open(copy, imatch_lexicons=4):
        pass
    with pytest.raises(StoreError, match="imatch"):
        load(copy, "", exported(path))


DOCUMENT = {"type": "document", "key": ["r", 0, 0], "url": URL, "first_seen": 1.0, "layout": 0, "keys": [1]}
DOCUMENT |= {"fingerprints": {"exact": [1]}, "sketch": [1, 1, 0, "A" * 171 + "=", ""]}
LINK = {"type": "link", "url": URL, "document": None, "mirror": False, "seen": 1.0, "size": 0, "evidence": None}
LINK |= {"firm": True, "segment": ["r", 0]}
EVIDENCE = {"detector": "exact", "hamming": 3, "resemblance": 0.9, "containment": 1.0, "length_ratio": 1.0}
TRIAL: dict[str, Any] = {"type": "trial", "run": "r", "sites": ["a", "b"], "prefixes": ["", ""], "endings": ["", ""]}
TRIAL |= {"path": 1, "outcome": 0, "content": 1, "branch": 1, "holder": 0, "seen": 1.0, "claimed": False}
RUN: dict[str, Any] = {"type": "run", "id": "r", "started": 1.0, "closed": 2.0, "sealed": 0, "forgotten": []}


@pytest.mark.parametrize(
    ("row", "said"),
    [
        ({"type": "else"}, "'else'"),
        ({}, "'None'"),
        ({"type": "run", "id": "r"}, "no run"),
        ({"type": "run", "id": "../r", "started": 1, "forgotten": []}, "'../r'"),
        ({**DOCUMENT, "key": ["r", -1, 0]}, "no key"),
        ({**DOCUMENT, "key": ["r", 0, 2**16]}, "no key"),
        ({**DOCUMENT, "keys": [2**36]}, "36 bits"),
        ({**DOCUMENT, "fingerprints": {"exact": [-1]}}, "64 bits"),
        ({**DOCUMENT, "fingerprints": 5}, "no document"),
        ({**DOCUMENT, "url": 5}, "no text"),
        ({**DOCUMENT, "sketch": [1, 1, 0, "AAAA", ""]}, "3 bytes"),
        ({**DOCUMENT, "sketch": [1, 1, 0, "ä", ""]}, "no document"),
        ({key: value for key, value in DOCUMENT.items() if key != "layout"}, "without 'layout'"),
        ({**DOCUMENT, "first_seen": -1.0}, "-1.0 is no time"),
        ({**DOCUMENT, "sketch": [1, 1, 3, "A" * 171 + "=", ""]}, "0 bytes of 3 figures"),
        ({**DOCUMENT, "sketch": [1, 1, 1, "A" * 171 + "=", "AAAA"]}, "3 bytes of 1 figures"),
        ({**LINK, "seen": "x"}, "no link"),
        ({**LINK, "seen": math.nan}, "nan is no time"),
        ({**LINK, "evidence": {**EVIDENCE, "hamming": 65}}, "65 of 64 bits"),
        ({**LINK, "evidence": {**EVIDENCE, "resemblance": math.nan}}, "no evidence"),
        ({**LINK, "evidence": {**EVIDENCE, "length_ratio": 1e300}}, "no evidence"),
        ({**LINK, "evidence": {"detector": "a"}}, "no link"),
        ({**LINK, "segment": "r"}, "no link"),
        ({"type": "trial", "run": "r", "sites": ["a"]}, "no trial"),
        ({**TRIAL, "seen": True}, "True is no time"),
        ({**TRIAL, "holder": 3}, "no trial: 3"),
        ({"type": "host", "name": "a"}, "without 'met'"),
        ({"type": "host", "name": "a", "met": 1e18}, "1e+18 is no time"),
        ({**RUN, "started": math.inf}, "no run: inf is no time"),
        ({**RUN, "closed": -math.inf}, "no run: -inf is no time"),
        ({**RUN, "sealed": -1}, "32 bits"),
        ({**RUN, "forgotten": [[0, 2**60]]}, "32 bits"),
        ({**RUN, "stats": {"documents": "many"}}, "64 bits"),
    ],
)
def test_rows_that_are_none(path: str, row: dict[str, Any], said: str) -> None:
    fill(path, 0, 3)
    before = exported(path)
    with pytest.raises(ValueError, match=re.escape(said)):
        load(path, "", [*before[:-1], row, before[-1]])
    assert exported(path) == before


@pytest.mark.parametrize(
    "first", [[], [{"type": "run"}], [{"type": "store", "format": 99}], [{"type": "store", "format": 1}]]
)
def test_files_that_are_no_export(copy: str, first: list[dict[str, Any]]) -> None:
    with pytest.raises(ValueError, match=r"export|format|without"):
        load(copy, "", first)
    assert not Path(copy).exists()


def test_the_command_says_which_row_is_none(path: str, tmp_path: Path) -> None:
    fill(path, 0, 3)
    everything = exported(path)
    write(tmp_path / "in.jsonl", [*everything[:4], {**DOCUMENT, "url": 5}, *everything[4:]])
    (tmp_path / "beside").mkdir()
    assert "in.jsonl, row 5: no document: 5 is no text" in refused(
        tmp_path / "beside", "import", "../in.jsonl", "--store", path
    )


def test_the_commands(path: str, tmp_path: Path) -> None:
    fill(path, 0, 5)
    said = succeeded(tmp_path, "export", "--store", path, "-o", "held.jsonl.gz").stderr
    assert said == "5 documents, 10 URLs and 1 runs exported\n"
    assert rows(tmp_path / "held.jsonl.gz") == exported(path)
    said = succeeded(tmp_path, "import", "held.jsonl.gz", "--store", "new.sqlite").stderr
    assert said == "held.jsonl.gz: 5 documents and 10 URLs imported; 0 documents were known\n"
    assert sorted_rows(str(tmp_path / "new.sqlite")) == sorted_rows(path)


# Compacting


def size(path: str) -> int:
    beside = Path(f"{path}.parts")
    return sum(file.stat().st_size for file in [Path(path), *(beside.iterdir() if beside.exists() else [])])


def test_compacting_gives_space_back_and_loses_nothing(path: str, tmp_path: Path) -> None:
    fill(path, 0, 3000)
    fill(path, 0, 300, namespace="other")
    with opened(path) as store:
        for number in filter(lambda number: number % 3, range(3000)):
            store.forget(Selection(url=f"{URL}{number}"))
    before, held, other = size(path), sorted_rows(path), exported(path, "other")
    said = succeeded(tmp_path, "compact", "--store", path).stdout
    assert size(path) < 0.6 * before
    assert (sorted_rows(path), exported(path, "other")) == (held, other)
    assert said.endswith(f" {size(path)} now\n")


def test_compacting_beside_a_living_run(path: str) -> None:
    fill(path, 0, 50)
    with opened(path) as store:
        for number in range(50, 80):
            commit(store, signature(str(number), exact=number + 1000))
            if number % 10 == 0:
                store.flush()
                compact(path)
            store.refresh()
            [(_, found)] = store.find({"exact": (number + 971,)})
            assert names([found]) == [str(number - 29)]
    assert sorted(map(int, names(found for found in all_documents(path)))) == list(range(80))


def all_documents(path: str) -> Iterable[Signature]:
    with opened(path, None) as store:
        return list(store.signatures())


def test_where_nothing_can_be_written_nothing_is_compacted(read_only_disk: Path, tmp_path: Path) -> None:  # noqa: F811
    path = str(read_only_disk / "store.sqlite")
    fill(path, 0, 5)
    assert "can't be written" in refused(tmp_path, "compact", "--store", path)
    assert len(list(all_documents(path))) == 5


def test_an_import_that_fills_the_disk_loses_nothing(path: str, small_disk: Disk, tmp_path: Path) -> None:  # noqa: F811
    fill(path, 0, 6000)
    write(tmp_path / "in.jsonl", exported(path))
    store = str(small_disk.path / "store.sqlite")
    assert "can't be written: No space left" in refused(tmp_path, "import", "in.jsonl", "--store", store)
    copy = str(small_disk.kept / "store.sqlite")
    assert list(all_documents(copy)) == []
    load(copy, "", exported(path))
    assert sorted_rows(copy) == sorted_rows(path)


# Kills

CODE = """
import json, sys
from scrapy_neardup.stores.compacting import compact
from scrapy_neardup.stores.importing import load
print("begun", flush=True)
if sys.argv[1] == "compact":
    while True:
        compact(sys.argv[2])
else:
    load(sys.argv[2], "", map(json.loads, open(sys.argv[3])), chunk=20)
"""


def killed(after: float, *arguments: str) -> None:
    process = subprocess.Popen([sys.executable, "-c", CODE, *arguments], stdout=subprocess.PIPE)
    assert process.stdout
    process.stdout.readline()
    time.sleep(after)
    process.kill()
    process.communicate()


def test_compacting_that_is_killed_loses_nothing(path: str, tmp_path: Path) -> None:
    moment = random.Random(1)
    for kill in range(KILLS):
        fill(path, 40 * kill, 40)
        killed(moment.uniform(0, 0.3), "compact", path)
        assert sorted(map(int, names(all_documents(path)))) == list(range(40 * kill + 40))
    assert "whole" in succeeded(tmp_path, "verify", "--store", path).stdout


def test_an_import_that_is_killed_goes_on(path: str, copy: str, tmp_path: Path) -> None:
    moment = random.Random(2)
    fill(path, 0, 400)
    everything = sorted_rows(path)
    write(tmp_path / "in.jsonl", exported(path))
    for _ in range(KILLS):
        for file in tmp_path.glob("copy*"):
            subprocess.run(["rm", "-r", str(file)], check=True)
        killed(moment.uniform(0, 0.5), "import", copy, str(tmp_path / "in.jsonl"))
        assert "whole" in succeeded(tmp_path, "verify", "--store", copy).stdout
        load(copy, "", exported(path))
        assert sorted_rows(copy) == everything
