"""`export` and `import` between a store on disk and one on a server: nothing is lost on the way and back."""

from __future__ import annotations

import json
from contextlib import closing, suppress
from typing import Any

import pytest
from helpers import detectors, link, names, signature
from redis_faults import Killed, killed_after
from redis_server import Server, server
from test_redis import die
from test_transfer import URL, commit, exported, fill, path, sorted_rows, varied  # noqa: F401 - path is a fixture

from scrapy_neardup.index.relations import Row
from scrapy_neardup.stores import Selection
from scrapy_neardup.stores.redis import importing
from scrapy_neardup.stores.redis.connection import Connection
from scrapy_neardup.stores.redis.store import RedisStore
from scrapy_neardup.stores.sqlite import SqliteStore
from scrapy_neardup.stores.transfer import export_rows, import_rows
from scrapy_neardup.stores.verifying import verify


def shared(namespace: str, run: str | None = None) -> closing[RedisStore]:
    return closing(RedisStore(server().address, detectors(), namespace=namespace, run=run))


def rows_of(namespace: str) -> list[dict]:
    with export_rows(server().address, namespace) as found:
        return [json.loads(json.dumps(row)) for row in found]


@pytest.mark.parametrize("chunk", [7, 1000])
def test_nothing_is_lost_on_the_way_and_back(path: str, tmp_path, chunk: int) -> None:  # noqa: F811
    varied(path)
    taken = importing.load(server().address, path, exported(path), chunk=chunk)
    assert (taken.documents, taken.known) == (37, 0)
    there = rows_of(path)
    assert sorted(json.dumps(row, sort_keys=True) for row in there) == sorted_rows(path)
    copy = str(tmp_path / "copy.sqlite")
    import_rows(copy, "", there)
    assert sorted_rows(copy) == sorted_rows(path)
    with shared(path) as one, closing(SqliteStore(path, detectors(), run=None)) as other:
        assert sorted(one.degrees()) == sorted(other.degrees())
        assert one.hosts.dump() == other.hosts.dump()
        for wanted in [{"exact": (number,)} for number in range(1050)] + [{"simhash": (3,)}]:
            assert sorted(names(s for _, s in one.find(wanted))) == sorted(names(s for _, s in other.find(wanted)))


def test_a_second_time_it_changes_nothing(path: str) -> None:  # noqa: F811
    varied(path)
    import_rows(server().address, path, exported(path))
    before = rows_of(path)
    assert import_rows(server().address, path, exported(path)) == (0, 0, 37)
    assert rows_of(path) == before


def test_what_was_forgotten_stays_forgotten(path: str) -> None:  # noqa: F811
    first = fill(path, 0, 5)
    fill(path, 5, 5)
    everything = exported(path)
    import_rows(server().address, path, everything)
    with shared(path, run="") as store:
        assert store.forget(Selection(run=first)) == (5, 10)
        assert store.forget(Selection(url=f"{URL}7")) == (1, 2)
        assert store.forget(Selection(url="http://m.example/8")) == (0, 1)
    assert import_rows(server().address, path, everything) == (0, 0, 10)
    with shared(path) as store:
        assert sorted(names(store.signatures())) == ["5", "6", "8", "9"]
        assert store.resolve("http://m.example/8") is None


def test_a_kill_at_any_moment_does_no_harm(path: str, monkeypatch: pytest.MonkeyPatch) -> None:  # noqa: F811
    fill(path, 0, 4)
    everything, own, moment = exported(path), Server(), 0
    with closing(own):
        for moment in range(100):
            with monkeypatch.context() as patched, suppress(Killed):
                patched.setattr(Connection, "exchange", killed_after(moment))
                importing.load(own.address, str(moment), everything, chunk=3)
                break
        assert moment > 20
        assert {found.what[:36] for found in verify(own.address).findings} == {"all entries on host mirrors are miss"}
        for each in map(str, range(moment)):
            importing.load(own.address, each, everything, chunk=3)
            with closing(RedisStore(own.address, detectors(), namespace=each, run=None)) as store:
                assert (len(store), sum(1 for _ in store.all_links())) == (4, 8)
        assert verify(own.address).whole


def test_documents_that_an_import_left_pending(path: str) -> None:  # noqa: F811
    fill(path, 0, 3)
    everything = exported(path)
    importing.load(server().address, path, everything)
    with shared(path) as store:
        store.server.run([("HSET", store.server.key("pending"), 1, 0)])
    importing.load(server().address, path, everything)
    with shared(path) as store:
        assert len(store) == len(list(store.signatures())) == 3
        assert not store.server.run([("EXISTS", store.server.key("pending"))])[0]


@pytest.mark.parametrize(("unclean", "expected"), [("forget", ["1"]), ("keep", ["1", "2"])])
def test_a_run_that_was_open_ends_as_after_a_kill(path: str, tmp_path, unclean: str, expected: list[str]) -> None:  # noqa: F811
    everything, copy = export_of_an_open_run(path), str(tmp_path / "copy.sqlite")
    import_rows(copy, "", everything)
    import_rows(server().address, path, everything)
    next_one = RedisStore(server().address, detectors(), namespace=path, unclean_run=unclean)
    for store in (SqliteStore(copy, detectors(), unclean_run=unclean), next_one):
        with closing(store):
            assert sorted(names(store.signatures())) == expected
            assert bool(store.resolve("http://m.example/list")) == (unclean == "keep")
            [job] = [run for run in store.runs() if run.id == "job"]
            assert job.forgotten == (((1, 8),) if unclean == "forget" else ())
            assert job.closed
            assert job.sealed == 8
    assert import_rows(server().address, path, everything).documents == 0


def export_of_an_open_run(path: str) -> list[dict[str, Any]]:  # noqa: F811
    """Return the rows of a run that goes on, with what it wrote since in its eighth segment."""
    fill(path, 1, 1, run="job")
    with closing(SqliteStore(path, detectors(), run="job")) as store:
        commit(store, signature("2", exact=2))
        store.record(link("http://m.example/list", None))
        store.flush()
        rows = exported(path)
    for row in rows:
        for place in (row.get("key"), row.get("document"), row.get("segment")):
            if place and place[1] == 1:
                place[1] = 7
    return rows


def test_a_run_that_was_open_and_closed_since(path: str) -> None:  # noqa: F811
    import_rows(server().address, path, export_of_an_open_run(path))
    import_rows(server().address, path, exported(path))
    die(path, "lost", run="job")
    with shared(path, run="") as store:
        assert sorted({*names(store.signatures())}) == ["1", "2"]


def test_links_and_evidence_of_a_run_that_has_no_documents(path: str) -> None:  # noqa: F811
    with shared(path, run="only") as store:
        store.record(link(URL, None))
        store.learn([Row(("a.example", "b.example"), ("", ""), ("", ""), 1, 0, 7, 3, 1, 50.0)])
    found = {row["type"]: row for row in rows_of(path)}
    assert (found["link"]["segment"], found["trial"]["run"]) == (["only", 0], "only")


def test_a_run_that_begins_during_an_export(path: str) -> None:  # noqa: F811
    with shared(path, run="first") as store:
        commit(store, signature("a"))
    found = []
    with export_rows(server().address, path) as rows:
        for row in rows:
            found.append(row)
            if row["type"] == "document":
                with shared(path, run="late") as store:
                    store.record(link("http://m.example/", next(store.signatures()), mirror=True))
    assert sorted(row["segment"][0] for row in found if row["type"] == "link") == ["first", "late"]
