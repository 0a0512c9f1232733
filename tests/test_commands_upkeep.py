"""`scrapy neardup stats`, for runs and damage too, and `forget`, also while other processes write to the store."""

from __future__ import annotations

import json
import os
import random
import shutil
import sqlite3
import time
from contextlib import closing
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import cli
import pytest
from cli import deduped, neardup, refused, succeeded, write
from conftest import Crawler
from faulty import common_user  # noqa: F401 - a fixture
from helpers import text, until
from site_server import Site, put_articles
from store_kinds import Place, on_server
from test_store_faults import DETECTORS, commit, contents, expected, fill, opened, urls
from tiers import slow

from scrapy_neardup import Deduplicator, Document, StoreError, row_index
from scrapy_neardup.settings import Config
from scrapy_neardup.store import compact, stored_index
from scrapy_neardup.store.records import Key, code, kind_of, load
from scrapy_neardup.store.verification import Survey, verify

DAY = 86_400.0
HERE = Path(__file__).parent


@pytest.fixture(params=["disk", *slow("server")])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Return the address of a store in a file, and of one on a server."""
    if request.param == "disk":
        return str(request.getfixturevalue("path"))
    return on_server(tmp_path).address


def told(store: str, *arguments: str) -> Any:
    return cli.told(HERE, *arguments, "--store", store)


def forget(store: str, *arguments: str) -> str:
    return succeeded(HERE, "forget", "--store", store, *arguments).stdout.strip()


# Runs


def test_runs_come_oldest_first_with_what_they_came_to(tmp_path: Path, store: str) -> None:
    for name, seeds in (("one", [1, 2, 1]), ("two", [2, 3])):
        deduped(tmp_path, [{"url": f"http://{name}.example/{n}", "text": text(s)} for n, s in enumerate(seeds)], store)
    first, second = told(store, "stats", "--runs")
    assert first["started"] <= first["closed"] <= second["started"]
    assert (first["state"], first["forgotten"]) == ("closed", None)
    assert [run["stats"] for run in (first, second)] == [
        {"documents": 3, "duplicates": 1},
        {"documents": 2, "duplicates": 1},
    ]
    lines = succeeded(tmp_path, "stats", "--runs", "--store", store).stdout.splitlines()
    assert [line.split()[0] for line in lines] == [first["run"], second["run"], "2"]
    assert lines[0].split()[1:3] == ["neardup", "dedupe"]
    assert lines[0].endswith("3 documents, 1 duplicate")


def test_times_are_of_this_place_and_in_json_say_of_which(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    fill(path, 1)
    monkeypatch.setenv("TZ", "HERE-5:30")
    [run] = told(path, "stats", "--runs")
    started = datetime.fromisoformat(run["started"])
    assert started.utcoffset() == timedelta(hours=5, minutes=30)
    assert f"started {started:%Y-%m-%d %H:%M:%S}  closed " in succeeded(HERE, "stats", "--runs", "--store", path).stdout
    with opened(path) as dedup:
        assert started.timestamp() == int(dedup.store.runs()[0].started)


def test_runs_that_live_and_that_died_are_told_apart(path: str) -> None:
    run = Place(path).fill_and_kill("lost")
    [died] = told(path, "stats", "--runs")
    assert (died["run"], died["state"], died["closed"]) == (run, "died", None)
    with opened(path) as dedup:
        ended, alive = told(path, "stats", "--runs")
        assert (ended["run"], ended["state"], ended["forgotten"]) == (died["run"], "died", "all")
        assert (alive["run"], alive["state"], alive["forgotten"]) == (dedup.store.run, "alive", None)
        assert "alive" in succeeded(Path(path).parent, "stats", "--runs", "--store", path).stdout
    assert [run["state"] for run in told(path, "stats", "--runs")] == ["died", "closed"]


def test_run_that_was_forgotten_only_since_it_was_paused_says_so(path: str) -> None:
    with Deduplicator.open(path, run="job") as dedup:
        commit(dedup, 1)
    dedup = Deduplicator.open(path, run="job")
    commit(dedup, 2)
    dedup.close(clean=False)
    fill(path, 3)
    assert [run["forgotten"] for run in told(path, "stats", "--runs")] == ["part", None]


@pytest.mark.parametrize(("ranges", "share"), [([[2, 5], [1, 5]], "part"), ([[4, 9], [1, 5]], "all")])
def test_rows_that_were_forgotten_twice_count_once(path: str, ranges: list[list[int]], share: str) -> None:
    fill(path, 9)
    succeeded(HERE, "export", "--store", path, "-o", f"{path}.jsonl")
    exported = [json.loads(line) for line in Path(f"{path}.jsonl").read_text().splitlines()]
    (run,) = (row for row in exported if row["type"] == "run")
    run |= {"key": "other", "sealed": 9, "forgotten": ranges}
    write(Path(f"{path}.jsonl"), [exported[0], run, exported[-1]])
    succeeded(HERE, "import", f"{path}.jsonl", "--store", path)
    assert {run["run"]: run["forgotten"] for run in told(path, "stats", "--runs")}["other"] == share


@pytest.mark.slow
@pytest.mark.usefixtures("common_user")
def test_runs_of_a_store_that_may_not_be_written_are_listed(path: str) -> None:
    with opened(path) as dedup:
        commit(dedup, 1)
        dedup.flush()
        os.chmod(Path(path).parent, 0o500)
        before = sorted(os.listdir(Path(path).parent))
        assert [run["state"] for run in told(path, "stats", "--runs")] == ["alive"]
        assert sorted(os.listdir(Path(path).parent)) == before
        os.chmod(Path(path).parent, 0o700)


# Forget


def test_commands_find_the_store_of_a_script_in_its_folder(tmp_path: Path) -> None:
    (tmp_path / ".scrapy").mkdir()
    fill(str(tmp_path / ".scrapy" / "neardup.sqlite"), 1)
    shown = dict(line.split(maxsplit=1) for line in succeeded(tmp_path, "stats").stdout.splitlines())
    assert (shown["documents"], shown["bytes_index"]) == ("1", "0 B")
    assert shown["bytes"].endswith(" kB")
    assert "1 run\n" in succeeded(tmp_path, "stats", "--runs").stdout


def test_forget_says_how_much(store: str) -> None:
    fill(store, *range(6))  # 0 and 3 with a mirror on b.example
    assert forget(store, "http://b.example/3") == "0 documents and 1 URL forgotten"
    assert forget(store, "http://a.example/0") == "1 document and 2 URLs forgotten"
    assert forget(store, "http://a.example/0").startswith("0 documents and 0 URLs forgotten: nothing")
    assert urls(store) == expected(1, 2, 3, 4, 5)
    first, *others = (run["run"] for run in told(store, "stats", "--runs"))
    for what in (["--run", first], ["--host", "a.example"], ["http://a.example/1"]):
        assert forget(store, "--dry-run", *what).endswith(" would be forgotten")
    assert forget(store, "--dry-run", "--run", first) == "5 documents and 5 URLs would be forgotten"
    assert len(told(store, "stats", "--runs")) == len(others) + 1
    assert forget(store, "--run", first) == "5 documents and 5 URLs forgotten"
    assert urls(store) == set()
    assert told(store, "stats", "--runs")[0]["forgotten"] == "all"
    assert "forgot 1 document and 2 URLs" in succeeded(HERE, "stats", "--runs", "--store", store).stdout
    assert len(others) == 4
    assert findings(store) == []


def test_forget_takes_what_the_page_said_before_too(store: str) -> None:
    url, said = "http://a.example/1", [text(number) for number in (1, 2, 1)]
    for each in said[:2]:
        with Deduplicator.open(store) as dedup:
            dedup.claim(Document(url, each)).commit()
    assert forget(store, url) == "2 documents and 1 URL forgotten"
    with Deduplicator.open(store) as dedup:
        assert dedup.claim(Document(url, said[2])).verdict.status == "unique"


def test_forget_a_host(store: str) -> None:
    fill(store, *range(6))
    with opened(store) as dedup:
        dedup.claim(Document(url="http://c.example:8080/x", text=text(77))).commit()
    compact(store)
    assert forget(store, "--host", "c.example:80").startswith("0 documents")
    assert forget(store, "--host", "C.example:8080") == "1 document and 1 URL forgotten"
    assert forget(store, "--host", "b.example") == "0 documents and 2 URLs forgotten"
    assert urls(store) == expected(*range(6))
    assert forget(store, "--host", "a.example") == "6 documents and 6 URLs forgotten"
    assert urls(store) == set()


def test_forget_a_host_however_it_is_written(path: str) -> None:
    others = ["http://eighty.example:8080/", "http://[::1]:8080/", "https://sec.example:444/"]
    stored = {
        "bücher.example:81": "http://xn--bcher-kva.example:81/",
        "bücher.example": "http://bücher.example/",
        "sec.example:443": "https://sec.example/",
        "eighty.example:80": "http://eighty.example:80/",
        "Dot.example.": "http://dot.example./",
        "plain.example.:80": "http://plain.example/",
        "odd.example:443": "http://odd.example:443/",
        "[::1]:80": "http://[::1]/",
        "2001:db8::1": "http://[2001:db8::1]:8080/",
    }
    with opened(path) as dedup:
        for number, url in enumerate([*stored.values(), *others], 100):
            dedup.claim(Document(url=url, text=text(number))).commit()
    said = {name: forget(path, "--host", name) for name in stored}
    assert said == dict.fromkeys(stored, "1 document and 1 URL forgotten")
    assert urls(path) == set(others)


def test_forget_what_was_not_seen_for_long(store: str, monkeypatch: pytest.MonkeyPatch) -> None:
    now = time.time()
    for number, days in ((1, 200), (2, 100), (3, 1)):
        monkeypatch.setattr(time, "time", lambda days=days: now - days * DAY)
        with Deduplicator.open(store) as dedup:
            commit(dedup, number)
    monkeypatch.undo()
    assert forget(store, "--before", "90 days") == "2 documents and 2 URLs forgotten"
    assert urls(store) == expected(3)


def test_forget_asks_for_no_detectors(store: str) -> None:
    with Deduplicator.open(store, detectors=[{"name": "imatch", "randomized": 3}]) as dedup:
        commit(dedup, 1, 2)
    assert "NEARDUP_DETECTORS" in refused(HERE, "explain", "http://a.example/1", "--store", store)
    assert told(store, "stats")["detectors"] == "imatch"
    assert forget(store, "http://a.example/1") == "1 document and 1 URL forgotten"
    assert len(told(store, "stats", "--runs")) == 2
    with Deduplicator.open(store, detectors=[{"name": "imatch", "randomized": 3}]) as dedup:
        assert len(dedup) == 1


# How long documents are held


def test_documents_that_no_url_gave_for_so_long_are_forgotten_when_a_run_starts(
    store: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def dedup(day: float, ttl: str | None = None, run: str | None = "") -> Deduplicator:
        monkeypatch.setattr(time, "time", lambda: 1e9 + day * DAY)
        return Deduplicator.from_config(Config(store=store, ttl=ttl), run=run)

    with dedup(0) as first:
        commit(first, 1, 2, 3)
    with dedup(60) as second:
        commit(second, 4)
        second.claim(Document(url="http://c.example/2", text=text(2))).commit()  # a mirror of one from day 0
        second.claim(Document(url="http://a.example/3", text=text(3))).commit()  # a revisit
    with closing(dedup(100, "30 days", run=None)) as looking:
        assert len(looking) == 4
    with dedup(100) as living, dedup(100, "90 days") as third:
        assert {s.url for s in third.store.signatures()} == expected(2, 3, 4)
        assert third.store.resolve("http://b.example/1") is None
        third.flush()
        until(lambda: living.store.refresh() or len(living) == 3)
    with dedup(1000) as last:
        assert {s.url for s in last.store.signatures()} == expected(2, 3, 4)


def test_a_crawl_stores_again_what_is_older_than_it_holds(crawl: Crawler, a: Site) -> None:
    pages = put_articles(a, 3)
    settings = {"NEARDUP_REVISIT": "drop"}
    assert len(crawl(urls=pages, settings=settings).items) == 3
    again = crawl(urls=pages, settings={**settings, "NEARDUP_TTL": 0.001})
    assert sorted(again.urls) == pages
    assert "3 documents forgotten" in again.log
    assert crawl(urls=pages, settings={**settings, "NEARDUP_TTL": "1 day"}).items == []


# Stats


def test_stats_tell_what_there_is_and_what_room_it_takes(path: str) -> None:
    fill(path, *range(6))
    fill(path, 6, 7)
    stats = told(path, "stats")
    counted = [stats[name] for name in ("documents", "urls", "runs", "clusters", "copies")]
    assert counted == [8, 11, 2, 3, 3]
    assert (stats["bytes_rows"], stats["bytes_index"]) == (Path(path).stat().st_size, 0)
    compact_with_index(path)
    stats = told(path, "stats")
    [file] = Path(f"{path}.index").rglob("*.idx")
    assert (stats["bytes_rows"], stats["bytes_index"]) == (Path(path).stat().st_size, file.stat().st_size)
    assert stats["bytes"] == stats["bytes_rows"] + stats["bytes_index"]
    forget(path, "http://a.example/0")
    after = told(path, "stats")
    assert (after["documents"], after["urls"]) == (7, 9)


def compact_with_index(path: str, namespace: str = "") -> None:
    """Make a table of a store that is too small to need one."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(row_index, "TAIL", 1)
        patch.setattr(stored_index, "LEAST", 1)
        opened(path, namespace=namespace).close()


def test_a_store_that_is_open_twice_in_a_process_keeps_its_write_ahead_log(path: str) -> None:
    with opened(path) as dedup:
        commit(dedup, 1)
        dedup.flush()
        Deduplicator.from_config(Config(store=path), run=None).close()
        assert told(path, "stats")["documents"] == 1  # another process, which closes the file
        commit(dedup, 2)
        dedup.flush()
        assert told(path, "stats")["documents"] == 2
    assert urls(path) == expected(1, 2)


# Verify


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of a store in two namespaces, each with an index and with rows that are not in it."""
    store = str(tmp_path_factory.mktemp("made") / "store.sqlite")
    for namespace in ("", "news"):
        with opened(store, namespace=namespace) as dedup:
            commit(dedup, *range(20))
        compact_with_index(store, namespace)
        with opened(store, namespace=namespace) as dedup:
            commit(dedup, *range(20, 40))
            dedup.claim(Document(url="http://c.example/20", text=text(20))).commit()
            dedup.claim(Document(url="http://c.example/1", text=text(1))).commit()
    return Path(store).parent


@pytest.fixture
def stored(made: Path, path: str) -> str:
    """Return the path of a copy of that store."""
    shutil.copytree(made, Path(path).parent, dirs_exist_ok=True)
    return path


def findings(path: str) -> list[str]:
    return [finding.what for finding in verify(path).findings]


def change(path: str, sql: str, *values: object) -> None:
    with closing(sqlite3.connect(path)) as connection, connection:
        assert connection.execute(sql, values).rowcount > 0


def row_keys(path: str, kind: str, table: str = "neardup") -> list[Any]:
    return [key for key in rows_of(path, table) if kind_of(key) == kind]


def flip(path: str, key: Key, table: str = "neardup") -> None:
    with closing(sqlite3.connect(path)) as connection:
        [[value]] = connection.execute(f'SELECT value FROM "{table}" WHERE key = ?', (key,))
    change(path, f'UPDATE "{table}" SET value = ? WHERE key = ?', value[:-1] + bytes([value[-1] ^ 1]), key)


def test_verify_reads_all_of_a_whole_store(stored: str) -> None:
    before = contents(stored)
    told_of = told(stored, "stats", "--check")
    assert contents(stored) == before
    # In each namespace 40 documents with their own URLs, and 16 mirrors.
    assert (told_of["documents"], told_of["visits"]) == (80, 112)
    hosts = len(row_keys(stored, "host")) + len(row_keys(stored, "host", "neardup/news"))
    assert (told_of["runs"], told_of["rows"]) == (6, 80 + 112 + 6 + hosts + 2)  # the records of what it was made with
    assert (told_of["whole"], told_of["findings"]) == (True, [])
    assert "whole" in succeeded(Path(stored).parent, "stats", "--check", "--store", stored).stdout


def test_verify_lists_all_that_is_damaged(stored: str) -> None:
    documents = row_keys(stored, "document", "neardup/news")
    run, *_ = row_keys(stored, "run")
    for key in documents[2:4]:
        flip(stored, key, "neardup/news")
    flip(stored, run)
    before = contents(stored)
    made = neardup(Path(stored).parent, "stats", "--check", "--store", stored)
    assert made.returncode == 2
    assert made.stderr.count("\n") == 1
    assert f"store {stored!r} is damaged" in made.stderr
    assert f"2 rows of kind 'document' can't be read (namespace 'news'); the first: {documents[2]!r}: " in made.stdout
    assert f"1 rows of kind 'run' can't be read: {run!r}: " in made.stdout
    assert "its page is stored again" in made.stdout
    assert made.stdout.count("  to do: restore a backup of the store") == 3
    assert contents(stored) == before
    listed = neardup(Path(stored).parent, "stats", "--check", "--json", "--store", stored)
    assert listed.returncode == 2
    assert len(json.loads(listed.stdout)["findings"]) == 3
    assert "costs: crawls and commands refuse the store" in made.stdout


def test_verify_names_rows_that_no_store_has(stored: str) -> None:
    change(stored, "INSERT INTO neardup (key, value) VALUES ('other/x', x'00')")
    change(stored, "INSERT INTO neardup (key, value) VALUES ('document/r/1', x'00')")
    change(stored, "INSERT INTO neardup (key, value) VALUES (-9223372036854775807, 'text')")
    change(stored, "UPDATE neardup SET key = 'run/nobody' WHERE key = ?", row_keys(stored, "run")[1])
    found = findings(stored)
    assert "1 rows can't be read: 'other/x': a store has no such row" in found
    assert "1 rows of kind 'document' can't be read: 'document/r/1': a store has no such row" in found
    assert "1 rows of kind 'visit' can't be read: -9223372036854775807: a store has no such row" in found
    assert any(what.startswith("1 rows of kind 'run' can't be read: 'run/nobody': row 'run/nobody'") for what in found)
    assert "the checksum of row" in found[-1]  # why it can't be opened
    assert len(found) == 5


def test_verify_names_rows_that_contradict_each_other(stored: str) -> None:
    first, *_ = row_keys(stored, "document")
    assert first in targets(stored)
    for key in (first, "meta/made"):  # as another process may have forgotten a document while its visit was recorded
        change(stored, "DELETE FROM neardup WHERE key = ?", key)
    assert findings(stored) == ["the record of the schemes of the store is missing"]


def test_verify_names_a_missing_run(stored: str) -> None:
    *_, run = row_keys(stored, "run")
    change(stored, "DELETE FROM neardup WHERE key = ?", run)
    [found] = verify(stored).findings
    assert found.what == f"1 records of runs are missing: code {code(run[4:]):08x}"


def targets(path: str) -> list[int]:
    """Return the documents that visits lead to."""
    rows = rows_of(path)
    return [load(key, value).target for key, value in rows.items() if kind_of(key) == "visit"]


def rows_of(path: str, table: str = "neardup") -> dict[Key, bytes]:
    with closing(sqlite3.connect(path)) as connection:
        return dict(connection.execute(f'SELECT key, value FROM "{table}" ORDER BY number'))


def test_a_url_that_two_crawls_fetched_at_once_is_no_damage(path: str) -> None:
    with opened(path) as first, opened(path) as second:
        pages = [Document(url="http://a.example/", text=text(seed)) for seed in (1, 2)]
        for claim in [dedup.claim(page) for dedup, page in zip((first, second), pages, strict=True)]:
            claim.commit()
    assert findings(path) == []
    with opened(path) as dedup:
        assert dedup.store.resolve("http://a.example/")


def test_a_store_without_its_damaged_rows_is_whole(stored: str) -> None:
    key = row_keys(stored, "document")[0]
    flip(stored, key)
    assert len(findings(stored)) == 2
    change(stored, "DELETE FROM neardup WHERE key = ?", key)  # as docs/store.md says
    with Deduplicator.open(stored) as dedup:
        assert len(list(dedup.store.signatures()))
    assert findings(stored) == []


def test_verify_goes_on_after_a_page_that_is_lost(stored: str) -> None:
    whole, rows = Path(stored).read_bytes(), verify(stored).read["rows"]
    size = int.from_bytes(whole[16:18], "big")
    surveys = []
    for page in range(size, len(whole), size):
        Path(stored).write_bytes(whole[:page] + bytes(size) + whole[page + size :])
        surveys.append(verify(stored))
    broken = [survey for survey in surveys if survey.findings]
    assert len(broken) > len(surveys) / 2  # nothing is in the others
    assert all(any("the file: SQLite says " in each.what for each in survey.findings) for survey in broken)
    assert max(survey.read["rows"] for survey in broken) == rows  # only the index of keys was lost
    assert min(survey.read["rows"] for survey in broken) >= rows / 2 - 20  # of one namespace


def test_rows_beyond_lost_pages_are_read(path: str) -> None:
    lost = [2, 3, 5]  # side by side, and apart
    fill(path, *range(300))
    with closing(sqlite3.connect(path)) as db:
        size = db.execute("PRAGMA page_size").fetchone()[0]
        query = "SELECT pageno FROM dbstat WHERE name = 'neardup' AND pagetype = 'leaf' ORDER BY pageno"
        try:
            leaves = [page for (page,) in db.execute(query)]
        except sqlite3.OperationalError:
            pytest.skip("this SQLite has no dbstat")
        rows = db.execute("SELECT count(*) FROM neardup").fetchone()[0]
    data = bytearray(Path(path).read_bytes())
    for leaf in lost:
        at = (leaves[leaf] - 1) * size
        data[at : at + size] = bytes(size)
    Path(path).write_bytes(data)
    survey = verify(path)
    unread = [int(each.what.split()[0]) for each in survey.findings if "can't be read" in each.what]
    assert survey.read["rows"] + sum(unread) >= rows  # a number that was never used counts as lost, too
    assert sum(unread) < 1.5 * len(lost) / len(leaves) * rows


@pytest.mark.parametrize(("head", "anywhere"), [(range(0, 800, 400), 2), *slow((range(0, 800, 19), 30))])
def test_what_verify_calls_whole_is_whole(stored: str, head: range, anywhere: int) -> None:
    """Change bits at the head of each file, and as many anywhere."""
    source = random.Random(4)
    spaces = ("", "news")
    whole = [_looked_at(stored, namespace) for namespace in spaces]
    files, damaged = contents(stored), 0
    for name, content in files.items():
        for bit in [*head, *source.sample(range(8 * len(content)), anywhere)] if content else ():
            data = bytearray(content)
            data[bit // 8] ^= 1 << bit % 8
            Path(name).write_bytes(data)
            try:
                survey: Survey | None = verify(stored)
            except StoreError:
                survey = None
            if survey and not survey.findings:
                assert [_looked_at(stored, namespace) for namespace in spaces] == whole, f"{name}, bit {bit}"
            else:
                damaged += 1
            Path(name).write_bytes(content)
    assert damaged > len(head) / 2


def _looked_at(path: str, namespace: str) -> list[str]:
    config = Config(store=path, namespace=namespace, detectors=DETECTORS)
    with Deduplicator.from_config(config, run=None) as dedup:
        told = []
        for each in dedup.store.signatures():
            links = [(link.url, link.is_copy, link.seen) for link in dedup.store.visits(each)]
            told.append(repr((each.url, each.record, each.first_seen, links)))
        return sorted(told)
