"""Stores that have one file open at the same time.

Processes write while others tidy up, compact, export and read: nothing is lost. Two stores in one process find each
other's pending documents. NEARDUP_TEST_DOCUMENTS is the number of documents that each process writes.
"""

from __future__ import annotations

import os
import sqlite3
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any

import pytest
from helpers import asking, detectors, link, names, signature, talk
from tiers import slow

from scrapy_neardup.store import Store, StoreError, compact, open_store
from scrapy_neardup.store.local import SqliteBackend
from scrapy_neardup.store.transfer import export_rows
from scrapy_neardup.store.verification import verify

DOCUMENTS = int(os.environ.get("NEARDUP_TEST_DOCUMENTS", "1000"))
WRITE = """
import sys
from contextlib import closing
from helpers import asking, detectors, link, signature
from scrapy_neardup.store import open_store
from scrapy_neardup import row_index
from scrapy_neardup.store import stored_index
row_index.TAIL = stored_index.LEAST = 300
path, first, count = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
with closing(open_store(path, detectors())) as store:
    for number in range(first, first + count):
        each = signature(str(number), exact=number + 1, simhash=number << 20)
        store.add(each)
        store.commit(each)
        store.record(link(each.url, each))
        if number % 50 == 49:
            store.flush()
            store.refresh()
            [found] = [s.url for _, s in store.find(asking({"exact": (number - 40,)}))]
            assert found.endswith(f"/{number - 41}"), (number, found)
            print(number, flush=True)
"""


@pytest.mark.parametrize(("writing", "count"), [(2, 200), *slow((2, DOCUMENTS), (4, 200))])
def test_writers_lose_nothing_while_others_tidy_up(tmp_path: Path, writing: int, count: int) -> None:
    path = str(tmp_path / "store.sqlite")
    starts = [10_000_000 * writer for writer in range(writing)]
    open_store(path, detectors()).close()
    writers = [talk(WRITE, path, str(first), str(count)) for first in starts]
    for _ in writers[0].stdout:  # each line: more was written
        survey = verify(path)
        assert survey.findings == []
        compact(path)
        with closing(export_rows(path, "")) as rows:
            assert [row["type"] for row in rows][-1] == "end"
    ends = [writer.communicate(timeout=120) for writer in writers]
    assert [writer.returncode for writer in writers] == [0] * writing, ends
    with closing(open_store(path, detectors(), run=None)) as store:
        expected = [number for first in starts for number in range(first, first + count)]
        assert sorted(map(int, names(store.signatures()))) == expected
        assert len(store) == len(expected)
        assert [run.closed is not None for run in store.runs()] == [True] * (writing + 1)
    survey = verify(path)
    assert survey.findings == []


def found(store: Store, number: int) -> list[tuple[str | None, bool]]:
    """Return the URLs of the documents that a lookup finds, and whether each is pending elsewhere."""
    documents = [each for _, each in store.find(asking({"exact": (number,)}))]
    return [(each.url, store.is_pending(each)) for each in documents]


@pytest.fixture
def stores(tmp_path: Path) -> Iterator[list[Store]]:
    """Open stores that meet, two of them in one namespace, and one that does not meet."""
    with ExitStack() as stack:
        path, spaces = str(tmp_path / "store.sqlite"), ("", "", "other", "")
        opened = [stack.enter_context(closing(open_store(path, detectors(), namespace=space))) for space in spaces]
        for each in opened[:3]:
            each.backend.meet()
        yield opened


def test_stores_that_meet_find_what_is_pending(stores: list[Store]) -> None:
    one, two, *others = stores
    document = signature("a", exact=7, simhash=5)
    one.add(document)
    assert [found(each, 7) for each in stores] == [[(document.url, False)], [(document.url, True)], [], []]
    assert [url.url for _, url in two.find(asking({"simhash": (4,)}))] == [document.url]
    one.commit(document, link(document.url or "", document, seen=9.0, size=100))
    assert found(two, 7) == [(document.url, True)]  # until it is written, which that lookup began
    end = time.monotonic() + 10
    while found(two, 7) == [(document.url, True)] and time.monotonic() < end:
        time.sleep(0.001)
    assert [found(each, 7) for each in (two, *others)] == [[(document.url, False)], [], [(document.url, False)]]
    assert (resolved := two.resolve(document.url or ""))
    assert (resolved.signature, resolved.seen) == (next(s for _, s in two.find(asking({"exact": (7,)}))), 9.0)
    one.withdraw(document)
    one.flush()
    assert [found(each, 7) for each in stores] == [[]] * 4


def test_what_was_pending_when_it_was_seen_stays_once_it_is_committed(stores: list[Store]) -> None:
    one, two, *_ = stores
    document = signature("a", exact=7)
    one.add(document)
    assert names(each for _, each in two.find(asking({"exact": (7,)}))) == ["a"]
    one.commit(document)
    one.close()  # its run is no longer held
    assert [found(two, 7) for _ in range(2)] == [[(document.url, False)]] * 2


def test_a_visit_that_two_stores_write_hides_no_document(tmp_path: Path, stores: list[Store]) -> None:
    one, two, *_ = stores
    one.record(link("http://site.example/list", None))
    one.flush()
    document = signature("a", exact=7)
    one.add(document)
    one.commit(document)
    one.flush()
    with closing(sqlite3.connect(tmp_path / "store.sqlite", isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")  # the write of the second store waits for this lock
        two.record(link("http://site.example/list", None))
        two.flush(wait=False)
        assert found(two, 7) == [(document.url, False)]


def test_a_store_that_can_not_write_keeps_no_other_waiting(
    stores: list[Store], monkeypatch: pytest.MonkeyPatch
) -> None:
    one, two, *_ = stores
    document = signature("a", exact=7)
    one.add(document)
    one.commit(document, link(document.url or "", document, seen=9.0, size=100))

    def fail(*, wait: bool) -> None:
        raise StoreError("the disk is full")

    monkeypatch.setattr(one.backend, "flush", fail)
    assert found(two, 7) == [(document.url, False)]
    monkeypatch.undo()


def test_a_run_that_begins_while_a_store_opens_is_no_damage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = str(tmp_path / "store.sqlite")

    def fill() -> None:
        with closing(open_store(path, detectors())) as store:
            store.add(each := signature(store.run, exact=7))
            store.commit(each)

    def then_another_begins(backend: SqliteBackend, read: Any = SqliteBackend.writers) -> Any:
        found = read(backend)
        monkeypatch.undo()
        fill()
        return found

    fill()
    monkeypatch.setattr(SqliteBackend, "writers", then_another_begins)
    open_store(path, detectors(), run=None).close()
    assert verify(path).read["runs"] == 2


def test_what_was_pending_in_a_store_that_was_closed_is_free(tmp_path: Path, stores: list[Store]) -> None:
    with closing(open_store(str(tmp_path / "store.sqlite"), detectors())) as store:
        store.backend.meet()
        store.add(signature("a", exact=7))
        assert len(found(stores[0], 7)) == 1
    assert found(stores[0], 7) == []


def test_stores_in_two_threads_do_not_meet(tmp_path: Path, stores: list[Store]) -> None:
    stores[0].add(signature("a", exact=7))

    def look() -> list[tuple[str | None, bool]]:
        with closing(open_store(str(tmp_path / "store.sqlite"), detectors())) as store:
            store.backend.meet()
            return found(store, 7)

    with ThreadPoolExecutor(1) as pool:
        assert pool.submit(look).result() == []
