"""Stores: one contract for all, then what the one on disk promises beyond it."""

from __future__ import annotations

import json
import os
import pickle
import sqlite3
import subprocess
import sys
import time
import zlib
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import helpers
import msgpack
import pytest
from helpers import detectors, hashes, link, names, python, signature
from redis_server import server

from scrapy_neardup.detectors import Exact
from scrapy_neardup.signature import Evidence, Link, Signature
from scrapy_neardup.stores import MemoryStore, SqliteStore, Store, StoreError, open_store
from scrapy_neardup.stores.absorbing import tidy
from scrapy_neardup.stores.redis.store import RedisStore


@pytest.fixture
def path(tmp_path: Path) -> str:
    return str(tmp_path / "store.sqlite")


class TidiedStore(SqliteStore):
    """One whose log is put into parts after each thing that is written."""

    def commit(self, signature: Signature) -> None:
        super().commit(signature)
        self.tidy()

    def record(self, link: Link) -> None:
        super().record(link)
        if link.signature is None or self.parts.key(link.signature):  # what leads to a pending one is not written
            self.tidy()

    def tidy(self, *, whole: bool = False) -> None:
        """Put all that is committed into parts; have them shown, and RAM let go."""
        self.flush()
        tidy(self._log.path, self._namespace, whole=whole)
        deadline = time.monotonic() + 10
        while self.batches and time.monotonic() < deadline:
            self.refresh()
        assert not self.batches


KINDS: dict[str, Callable[[str], Store]] = {
    "memory": lambda path: MemoryStore(detectors()),
    "sqlite": lambda path: SqliteStore(path, detectors()),
    "tidied": lambda path: TidiedStore(path, detectors()),
    "redis": lambda path: RedisStore(server().address, detectors(), namespace=path),
}


@pytest.fixture(params=KINDS)
def store(request: pytest.FixtureRequest, path: str) -> Iterator[Store]:
    with closing(KINDS[request.param](path)) as opened:
        yield opened


def found(store: Store, exact: int = 0, simhash: int = 2**64 - 1) -> list[tuple[str, str]]:
    pairs = list(store.find({"exact": (exact,), "simhash": (simhash,)}))
    return list(zip((name for name, _ in pairs), names(s for _, s in pairs), strict=True))


def held(store: Store) -> list[str]:
    return sorted(names(store.signatures()))


# What holds of every store


def test_new_store_is_empty(store: Store) -> None:
    assert (len(store), list(store.signatures()), found(store, 1, 0)) == (0, [], [])
    assert store.resolve("http://site.example/a") is None


def test_found_by_each_detector_in_their_order(store: Store) -> None:
    store.add(signature("a", exact=1, simhash=0b1))
    store.add(signature("b", exact=2, simhash=0b11))
    assert found(store, exact=2, simhash=0) == [("exact", "b"), ("simhash", "a"), ("simhash", "b")]
    assert found(store, exact=3) == []


def test_fingerprints_of_a_detector_that_abstains_are_none(store: Store) -> None:
    abstaining = Signature("http://site.example/a", {"exact": (), "simhash": (5,)}, signature("a").sketch, 1.0)
    store.add(abstaining)
    store.commit(abstaining)
    assert list(store.find({})) == list(store.find({"exact": (), "stranger": (5,)})) == []
    assert found(store, simhash=5) == [("simhash", "a")]


def test_found_while_pending_and_once_committed(store: Store) -> None:
    a = signature("a")
    store.add(a)
    pending = found(store, exact=1)
    store.commit(a)
    store.flush()
    assert pending == found(store, exact=1) == [("exact", "a")]
    assert (len(store), held(store)) == (1, ["a"])


def test_withdrawn_is_as_if_never_added(store: Store) -> None:
    a, b = signature("a"), signature("b")
    store.add(a)
    store.add(b)
    store.withdraw(a)
    store.withdraw(a)
    assert found(store, 1, 0) == [("exact", "b"), ("simhash", "b")]
    assert (len(store), held(store)) == (1, ["b"])


def test_recorded_url_resolves_in_every_spelling(store: Store) -> None:
    a = signature("a")
    store.add(a)
    store.record(link("http://site.example/a", a))
    known = store.resolve("HTTPS://site.example:443/a?utm_source=x#part")
    assert known is not None
    assert (known.signature, known.mirror, known.url) == (a, False, "http://site.example/a")


def test_later_record_replaces_an_earlier_one(store: Store) -> None:
    a, b = signature("a"), signature("b")
    store.add(a)
    store.add(b)
    store.record(link("http://m.example/1", a, mirror=True))
    store.record(link("https://m.example/1#x", b, mirror=True, seen=3000.0))
    known = store.resolve("http://m.example/1")
    assert known is not None
    assert (known.signature, known.seen) == (b, 3000.0)
    assert (list(store.links(a)), len(list(store.links(b)))) == ([], 1)


def test_links_of_a_document_oldest_first(store: Store) -> None:
    a, b = signature("a"), signature("b")
    for held_document in (a, b):
        store.add(held_document)
    for url, to in (("z", a), ("other", b), ("c", a), ("b", a), ("z", a)):
        store.record(link(f"http://m.example/{url}", to, mirror=True))
    assert [known.url[-1] for known in store.links(a)] == ["c", "b", "z"]
    assert list(store.links(signature("stranger"))) == []


def test_record_of_a_url_that_leads_nowhere(store: Store) -> None:
    a = signature("a")
    store.add(a)
    store.record(link("http://m.example/1", a, mirror=True))
    store.record(link("http://m.example/1", None))
    known = store.resolve("http://m.example/1")
    assert known is not None
    assert known.signature is None
    assert list(store.links(a)) == []


def test_urls_of_a_withdrawn_document_are_unknown_again(store: Store) -> None:
    a = signature("a")
    store.add(a)
    store.record(link("http://m.example/1", a, mirror=True))
    store.withdraw(a)
    assert store.resolve("http://m.example/1") is None
    assert list(store.links(a)) == []


def test_repeats_count_mirrors_once(store: Store) -> None:
    a = signature("a")
    store.add(a)
    for url in ("http://m.example/1", "http://m.example/2", "http://m.example/1"):
        store.record(link(url, a, mirror=True))
    store.record(link("http://site.example/a", a))
    store.flush()
    assert a.repeats == 2


def test_store_describes_itself(store: Store) -> None:
    assert store.describe()["store"]


# The store on disk


def sqlite_store(path: str, **options: object) -> SqliteStore:
    return SqliteStore(path, detectors(), **options)  # type: ignore[arg-type]


def commit(store: Store, *given: Signature) -> None:
    for each in given:
        store.add(each)
        store.commit(each)
        store.record(link(each.url or "", each))


def fill(path: str, *keys: str, **options: object) -> None:
    """Open, commit documents of these names, and close well."""
    with closing(sqlite_store(path, **options)) as store:
        commit(store, *map(signature, keys))


def rows(path: str) -> dict[str, bytes]:
    with closing(sqlite3.connect(path)) as connection:
        return dict(connection.execute("SELECT key, value FROM neardup"))


def change(path: str, key: str, value: bytes) -> None:
    with closing(sqlite3.connect(path)) as connection, connection:
        assert connection.execute("UPDATE neardup SET value = ? WHERE key = ?", (value, key)).rowcount == 1


def test_everything_survives_reopening(path: str) -> None:
    sketch = helpers.sketch(77, hashes(60, seed=1), figures=[3, 9])
    a = Signature("http://site.example/a", {"exact": (2**64 - 1,), "simhash": (3,)}, sketch, 1234.5)
    nameless = Signature(None, {"exact": (8,), "simhash": ()}, sketch, 6.0)
    evidence = Evidence("simhash", 2, 0.875, 0.9, 1.25, "content")
    with closing(sqlite_store(path)) as store:
        for each in (a, nameless):
            store.add(each)
            store.commit(each)
        store.record(link("http://site.example/a", a, size=0))
        mirror = link("http://m.example/a?x=1", a, mirror=True, seen=99.5, size=4321)
        mirror.evidence = evidence
        store.record(mirror)
        store.record(link("http://m.example/list", None))
        run = store.run
    with closing(sqlite_store(path)) as store:
        first, second = store.signatures()
        assert (first.url, first.fingerprints, first.sketch, first.first_seen) == (
            a.url, a.fingerprints, a.sketch, a.first_seen,
        )  # fmt: skip
        assert (first.key, first.repeats) == ((run, 0, 0), 1)
        assert (second.url, second.fingerprints["exact"]) == (None, (8,))
        own, other = list(store.links(first))
        assert (own.url, own.mirror, own.evidence) == ("http://site.example/a", False, None)
        assert (other.url, other.mirror, other.seen, other.size) == ("http://m.example/a?x=1", True, 99.5, 4321)
        assert other.evidence == evidence
        nowhere = store.resolve("http://m.example/list")
        assert nowhere is not None
        assert nowhere.signature is None
        assert found(store, exact=2**64 - 1, simhash=3) == [("exact", "a"), ("simhash", "a")]


def test_link_to_a_document_of_an_earlier_run_survives(path: str) -> None:
    fill(path, "a")
    with closing(sqlite_store(path)) as store:
        [a] = store.signatures()
        store.record(link("http://m.example/a", a, mirror=True))
    with closing(sqlite_store(path)) as store:
        known = store.resolve("http://m.example/a")
        assert known is not None
        assert names([known.signature] if known.signature else []) == ["a"]


def test_uncommitted_is_gone(path: str) -> None:
    with closing(sqlite_store(path)) as store:
        commit(store, signature("kept"))
        store.add(signature("pending"))
    with closing(sqlite_store(path)) as store:
        assert held(store) == ["kept"]


def test_withdrawn_is_gone(path: str) -> None:
    with closing(sqlite_store(path)) as store:
        a = signature("a")
        store.add(a)
        store.withdraw(a)
        commit(store, signature("b"))
    with closing(sqlite_store(path)) as store:
        assert held(store) == ["b"]


def test_no_file_is_left_beside_the_store(path: str) -> None:
    fill(path, "a")
    assert os.listdir(Path(path).parent) == ["store.sqlite"]


def test_namespaces_are_apart(path: str) -> None:
    fill(path, "a", namespace="one/two")
    fill(path, "b", namespace="one")
    fill(path, "c")
    for namespace, expected in (("one/two", ["a"]), ("one", ["b"]), ("", ["c"]), ("two", [])):
        with closing(sqlite_store(path, namespace=namespace)) as store:
            assert held(store) == expected


# Runs

DYING = """
import os, sys
from test_stores import *
store = sqlite_store(sys.argv[1], run=sys.argv[3] if len(sys.argv) > 3 else "")
commit(store, *map(signature, sys.argv[2].split(",")))
store.flush()
os.kill(os.getpid(), 9)
"""
LIVING = """
import sys
from test_stores import *
with closing(sqlite_store(sys.argv[1])) as store:
    commit(store, signature("a"))
    store.flush()
    print(store.run, flush=True)
    sys.stdin.readline()
    commit(store, signature("b"))
    store.flush()
    print("written", flush=True)
    sys.stdin.readline()
"""


def die(path: str, *arguments: str) -> None:
    """Commit documents in a process that is killed once they are durable."""
    made = python(DYING, path, *arguments)
    assert made.returncode == -9, made.stderr


@pytest.fixture
def living(path: str) -> Iterator[subprocess.Popen[str]]:
    """Run another process on the store; it holds `a`, and `b` once it is sent a line."""
    process = subprocess.Popen(
        [sys.executable, "-c", LIVING, path], cwd=Path(__file__).parent, stdin=-1, stdout=-1, text=True
    )
    with process:
        yield process
        process.kill()


def said(process: subprocess.Popen[str]) -> str:
    assert process.stdout
    return process.stdout.readline().strip()


def say(process: subprocess.Popen[str]) -> None:
    assert process.stdin
    process.stdin.write("\n")
    process.stdin.flush()


def test_documents_of_a_run_that_died_are_forgotten(path: str) -> None:
    fill(path, "old")
    die(path, "lost,too")
    with closing(sqlite_store(path)) as store:
        assert held(store) == ["old"]
        assert store.resolve("http://site.example/lost") is None
    assert not any(b"lost" in row for row in rows(path).values())
    with closing(sqlite_store(path, unclean_run="keep")) as store:
        assert held(store) == ["old"]


def test_documents_of_a_run_that_died_are_kept_where_asked_for(path: str) -> None:
    die(path, "kept,too")
    with closing(sqlite_store(path, unclean_run="keep")) as store:
        assert held(store) == ["kept", "too"]
    with closing(sqlite_store(path)) as store:
        assert held(store) == ["kept", "too"]


def test_link_to_what_was_forgotten_is_dropped(path: str) -> None:
    with closing(sqlite_store(path)) as store:
        die(path, "lost")
        wait_for(store, ["lost"])
        [lost] = store.signatures()
        store.record(link("http://m.example/x", lost, mirror=True))
        store.record(link("http://m.example/y", None))
    with closing(sqlite_store(path)) as store:
        assert held(store) == []
        assert store.resolve("http://m.example/x") is None
        assert store.resolve("http://m.example/y") is not None


def test_live_run_of_another_process_is_not_forgotten(path: str, living: subprocess.Popen[str]) -> None:
    run = said(living)
    for _ in range(2):
        with closing(sqlite_store(path)) as store:
            assert held(store) == ["a"]
            assert store.run != run
    say(living)
    say(living)
    assert living.wait(20) == 0
    with closing(sqlite_store(path)) as store:
        assert held(store) == ["a", "b"]


def test_documents_of_another_process_are_seen_within_a_second(path: str, living: subprocess.Popen[str]) -> None:
    said(living)
    with closing(sqlite_store(path)) as store:
        store.refresh()
        say(living)
        assert said(living) == "written"
        end = time.monotonic() + 1
        while time.monotonic() < end and held(store) != ["a", "b"]:
            time.sleep(0.05)
            store.refresh()
        assert held(store) == ["a", "b"]
        assert store.resolve("http://site.example/b") is not None


def test_documents_of_a_process_that_dies_are_let_go_of_by_the_others(path: str) -> None:
    with closing(sqlite_store(path)) as store:
        commit(store, signature("mine"))
        store.flush()
        die(path, "lost")
        wait_for(store, ["lost", "mine"])
        fill(path)  # a next run notices
        wait_for(store, ["mine"])


def test_resumed_run_shows_the_others_what_it_holds_now(path: str) -> None:
    with closing(sqlite_store(path)) as store:
        die(path, "lost", "job")
        wait_for(store, ["lost"])
        fill(path, "new", run="job")  # it forgets what was lost, and writes a segment of the same number
        wait_for(store, ["new"])


def wait_for(store: Store, expected: list[str]) -> None:
    end = time.monotonic() + 5
    while held(store) != expected and time.monotonic() < end:
        store.refresh()
        time.sleep(0.02)
    assert held(store) == expected


def test_refresh_takes_nothing_in_twice(path: str) -> None:
    fill(path, "a")
    with closing(sqlite_store(path)) as store:
        commit(store, signature("b"))
        store.flush()
        for _ in range(10):
            store.refresh()
            time.sleep(0.02)
        assert held(store) == ["a", "b"]
        assert len(list(store.links(next(iter(store.signatures()))))) == 1


def test_resumed_run_keeps_its_id_and_its_documents(path: str) -> None:
    with closing(sqlite_store(path)) as store:
        run = store.run
        commit(store, signature("a"))
    with closing(sqlite_store(path, run=run)) as store:
        assert store.run == run
        assert held(store) == ["a"]
        commit(store, signature("b"))
    with closing(sqlite_store(path)) as store:
        assert held(store) == ["a", "b"]


def test_each_run_has_an_id_of_its_own(path: str) -> None:
    runs = set()
    for _ in range(3):
        with closing(sqlite_store(path)) as store:
            runs.add(store.run)
    assert len(runs) == 3


def test_resumed_run_that_died_loses_only_what_came_after_it_was_paused(path: str) -> None:
    fill(path, "a", run="job")
    die(path, "lost", "job")
    with closing(sqlite_store(path, run="job")) as store:
        assert held(store) == ["a"]
        commit(store, signature("b"))
    with closing(sqlite_store(path)) as store:
        assert held(store) == ["a", "b"]


def test_two_runs_of_one_second_have_ids_of_their_own(path: str) -> None:
    with closing(sqlite_store(path)) as one, closing(sqlite_store(path)) as two:
        assert one.run != two.run
        commit(one, signature("a"))
        commit(two, signature("b"))
    with closing(sqlite_store(path)) as store:
        assert held(store) == ["a", "b"]


# Looking only


def test_looking_in_writes_nothing(path: str) -> None:
    fill(path, "a")
    die(path, "provisional")
    before = rows(path)
    with closing(sqlite_store(path, run=None)) as store:
        assert "a" in held(store)
        assert store.run == ""
        store.refresh()
    assert rows(path) == before


def test_looking_in_does_not_disturb_a_live_run(path: str, living: subprocess.Popen[str]) -> None:
    said(living)
    with closing(sqlite_store(path, run=None)) as store:
        assert held(store) == ["a"]
    with closing(sqlite_store(path)) as store:
        assert held(store) == ["a"]


# Refused


def refusal(path: str, **options: object) -> str:
    with pytest.raises(StoreError) as caught:
        sqlite_store(path, **options)
    message = str(caught.value)
    assert path in message
    assert "\n" not in message
    return message


def test_file_that_is_no_sqlite_file_is_refused(path: str) -> None:
    Path(path).write_bytes(b"not a database\n" * 100)
    assert "file is not a database" in refusal(path)
    assert Path(path).read_bytes() == b"not a database\n" * 100
    assert os.listdir(Path(path).parent) == ["store.sqlite"]


def test_sqlite_file_of_someone_else_is_refused(path: str) -> None:
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE accounts (name TEXT)")
    before = Path(path).read_bytes()
    assert "no store of scrapy-neardup" in refusal(path)
    assert Path(path).read_bytes() == before


def test_missing_directory_is_refused_and_not_made(tmp_path: Path) -> None:
    assert "no directory" in refusal(str(tmp_path / "missing" / "store.sqlite"))
    assert os.listdir(tmp_path) == []


def test_directory_is_refused(tmp_path: Path) -> None:
    refusal(str(tmp_path))


@pytest.mark.parametrize("share", [0.1, 0.5, 0.9])
def test_truncated_file_is_refused(path: str, share: float) -> None:
    fill(path, *(f"document-{n}" for n in range(300)))
    data = Path(path).read_bytes()
    Path(path).write_bytes(data[: int(len(data) * share)])
    refusal(path)


@pytest.mark.parametrize("place", [0, 4, 20, -1])
def test_damaged_segment_is_refused(path: str, place: int) -> None:
    fill(path, "a", "b")
    [(key, segment)] = [(k, v) for k, v in rows(path).items() if k.startswith("segment/")]
    damaged = bytearray(segment)
    damaged[place] ^= 0x10
    change(path, key, bytes(damaged))
    before = rows(path)
    assert "damaged" in refusal(path)
    assert rows(path) == before
    assert os.listdir(Path(path).parent) == ["store.sqlite"]


@pytest.mark.parametrize("kind", ["meta", "run", "segment"])
@pytest.mark.parametrize("value", [b"", b"\xff\xfe", b"{}", b"[1]"])
def test_row_of_nonsense_is_refused(path: str, kind: str, value: bytes) -> None:
    fill(path, "a")
    key = next(key for key in rows(path) if key.startswith(kind))
    change(path, key, value)
    refusal(path)


def test_store_of_the_first_format_is_read(path: str) -> None:
    fill(path, "a")
    meta, stored = json.loads(rows(path)["meta/"]), rows(path)
    change(path, "meta/", json.dumps({**meta, "format": 1}).encode())
    for key in [key for key in stored if key.startswith("segment/")]:
        names, documents, links, *_ = msgpack.unpackb(stored[key][4:])
        body = msgpack.packb([names, [document[:4] for document in documents], links])
        change(path, key, zlib.crc32(body).to_bytes(4, "big") + body)
    with closing(sqlite_store(path)) as store:
        assert held(store) == ["a"]


def test_newer_format_is_refused(path: str) -> None:
    fill(path, "a")
    meta = json.loads(rows(path)["meta/"])
    change(path, "meta/", json.dumps({**meta, "format": 99}).encode())
    before = rows(path)
    assert "format is 99" in refusal(path)
    assert rows(path) == before


def test_other_scheme_of_a_detector_is_refused(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    fill(path, "a")
    before = rows(path)
    monkeypatch.setattr(Exact, "scheme", "exact/2")
    message = refusal(path)
    assert "'exact/1'" in message
    assert "'exact/2'" in message
    assert "NEARDUP_STORE" in message
    assert rows(path) == before


def test_refused_store_can_be_opened_again_by_who_fits(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    fill(path, "a")
    with monkeypatch.context() as patch:
        patch.setattr(Exact, "scheme", "exact/2")
        refusal(path)
    with closing(sqlite_store(path)) as store:
        assert held(store) == ["a"]


def test_other_detectors_may_be_added_and_left_out(path: str) -> None:
    with closing(SqliteStore(path, detectors()[:1])) as store:
        a = Signature("http://site.example/a", {"exact": (1,)}, signature("a").sketch, 1.0)
        commit(store, a)
    with closing(sqlite_store(path)) as store:
        assert found(store, exact=1, simhash=0) == [("exact", "a")]
    with closing(SqliteStore(path, detectors()[1:])) as store:
        assert held(store) == ["a"]


class Bomb:
    """Unpickled, it leaves a file behind."""

    def __init__(self, trace: Path) -> None:
        self.trace = trace

    def __reduce__(self) -> tuple[Callable[..., object], tuple[object, ...]]:
        return os.mkdir, (str(self.trace),)


@pytest.mark.parametrize("kind", ["meta", "run", "segment"])
def test_pickles_in_the_file_are_never_executed(path: str, tmp_path: Path, kind: str) -> None:
    fill(path, "a")
    trace = tmp_path / "executed"
    change(path, next(key for key in rows(path) if key.startswith(kind)), pickle.dumps(Bomb(trace)))
    with pytest.raises(StoreError):
        sqlite_store(path)
    assert not trace.exists()


def test_address_chooses_the_store(path: str) -> None:
    assert isinstance(open_store(None, detectors()), MemoryStore)
    with closing(open_store(path, detectors())) as store:
        assert isinstance(store, SqliteStore)
    with pytest.raises(StoreError, match="gopher://x"):
        open_store("gopher://x", detectors())


def test_url_with_what_is_no_character_is_kept(path: str) -> None:
    url = "http://site.example/\udc80"
    with closing(sqlite_store(path)) as store:
        commit(store, signature("a", url=url))
    with closing(sqlite_store(path)) as store:
        assert [s.url for s in store.signatures()] == [url]


def test_batch_is_written_without_being_asked_for(path: str) -> None:
    from scrapy_neardup.stores import sqlite

    with closing(sqlite_store(path)) as store:
        commit(store, *(signature(f"document-{n}", exact=n) for n in range(sqlite.BATCH + 1)))
        end = time.monotonic() + 5
        while not any(key.startswith("segment/") for key in rows(path)) and time.monotonic() < end:
            time.sleep(0.02)
        assert any(key.startswith("segment/") for key in rows(path))


def test_store_reached_through_a_link_has_the_same_locks(path: str, tmp_path: Path) -> None:
    other = tmp_path / "elsewhere" / "link.sqlite"
    other.parent.mkdir()
    with closing(sqlite_store(path)) as store:
        commit(store, signature("a"))
        store.flush()
        other.symlink_to(path)
        with closing(sqlite_store(str(other))) as second:
            assert held(second) == ["a"]


@pytest.mark.parametrize("page", range(2, 9))
def test_damaged_page_is_refused_or_harmless_but_never_hangs(path: str, page: int) -> None:
    fill(path, *(f"document-{n}" for n in range(300)))
    data = bytearray(Path(path).read_bytes())
    data[page * 4096 : (page + 1) * 4096] = b"\xa5" * len(data[page * 4096 : (page + 1) * 4096])
    Path(path).write_bytes(data)
    try:
        with closing(sqlite_store(path, run=None)) as store:
            assert len(store) <= 300
    except StoreError:
        pass
    assert Path(path).read_bytes() == data
