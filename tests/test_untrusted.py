"""Files that anyone may have made: their content is read, or one line says why it is not; never a traceback.

NEARDUP_TEST_EXAMPLES is the number of cases of each kind. Other tests have files of a store (test_store_fuzz.py),
values on a server (test_redis_faults.py) and single feeds (test_feeds_formats.py).
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import closing, contextmanager
from copy import deepcopy
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

import pytest
import store_damage
from helpers import detectors
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from tiers import slow

from scrapy_neardup import Deduplicator, StoreError, item_document
from scrapy_neardup.feeds import Feeds
from scrapy_neardup.files import FileError
from scrapy_neardup.quality import MODES, LabelledSet
from scrapy_neardup.store import open_store
from scrapy_neardup.store.transfer import export_rows, import_rows

EXAMPLES = int(os.environ.get("NEARDUP_TEST_EXAMPLES", "30"))
FEW = pytest.mark.parametrize("examples", [8, *slow(EXAMPLES)])


def some(examples: int) -> settings:
    hinted = [HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
    return settings(max_examples=examples, derandomize=EXAMPLES <= 100, deadline=None, suppress_health_check=hinted)


HUGE = [10**30, -(10**400), 2**63, 1e308, float("nan"), float("inf"), "9" * 5000, "1e999999999", "\ud800", "\x00"]
URLS = ["http://[bad", "http://a:99999999/", "//x", f"http://{'a.' * 2000}", "http://a.example/\n", "http://例/"]
WORDS = ["the", "本", "7.5", "2020-01-01", "\u202e", "<p>", "&#0;"]
plain = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20) | st.sampled_from(HUGE + URLS)
words = st.lists(st.sampled_from(WORDS), max_size=80).map(" ".join)
anything = st.recursive(
    plain | words,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=6), inner, max_size=4),
    max_leaves=8,
)


@contextmanager
def telling(*errors: type[Exception]) -> Iterator[None]:
    """Insist that an error of these types is told in one line, if there is one."""
    try:
        yield
    except errors as error:
        assert 0 < len(str(error)) < 4000  # noqa: PT017 - it may go well, too
        assert "\n" not in str(error)  # noqa: PT017


# Exports


class Export:
    """The rows of an export that nothing is wrong with, without the long repr of a list."""

    def __init__(self, folder: Path) -> None:
        store_damage.make(folder / "store.sqlite", (25, 5, 5))
        with closing(export_rows(str(folder / "store.sqlite"), "")) as rows:
            self.rows: list[dict[str, Any]] = json.loads(json.dumps([*rows]))


@pytest.fixture(scope="module")
def export(tmp_path_factory: pytest.TempPathFactory) -> Export:
    return Export(tmp_path_factory.mktemp("export"))


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Yield the path to each value in a row."""
    yield path
    for name, inner in (
        value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    ):
        yield from places(inner, (*path, name))


def changed(row: Any, path: tuple[Any, ...], value: Any) -> Any:
    """Return a row with another value at a place."""
    if not path:
        return value if isinstance(value, dict) else {"type": value}
    copy = dict(row) if isinstance(row, dict) else list(row)
    copy[path[0]] = changed(row[path[0]], path[1:], value) if path[1:] else value
    return copy


numbers = st.integers(0, 10**6)


@FEW
def test_import_of_rows_with_anything_in_them(export: Export, tmp_path: Path, examples: int) -> None:
    @some(examples)
    @given(st.lists(st.tuples(numbers, numbers, anything), min_size=1, max_size=3))
    def try_one(changes: list[tuple[int, int, Any]]) -> None:
        rows = deepcopy(export.rows)
        for row, place, value in changes:
            paths = [*places(rows[row % len(rows)])]
            rows[row % len(rows)] = changed(rows[row % len(rows)], paths[place % len(paths)], value)
        store = Path(mkdtemp(dir=tmp_path), "store.sqlite")
        with telling(ValueError, StoreError):
            import_rows(str(store), "", iter(rows))
        if store.exists():  # whatever was taken in can be asked for
            with closing(export_rows(str(store), "")) as again:
                assert [*again]
            opened = None
            with telling(StoreError):  # of another scheme
                opened = open_store(str(store), store_damage.detectors(), run=None)
            if opened:
                with closing(opened):
                    store_damage.asked(opened)

    try_one()


# Feeds

PIECES = [
    b'{"text": "x"}', b"[", b"]", b",", b'"', b"\n", b"\r", b"\x00", b"\xff", b"\xef\xbb\xbf", b"\x1f\x8b\x08\x00",
    b"PAR1", b"{" * 999, b"[" * 100_000, b"1" * 5000, b"WARC/1.0\r\n", b"WARC-Type: response\r\n",
    b"Content-Length: 9\r\n", b"Content-Length: -1\r\n", b"Content-Length: 99999999999999999999\r\n", b"\r\n\r\n",
    b"HTTP/1.1 200 OK\r\n", b"NaN", b"Content-Encoding: br\r\n", b"Transfer-Encoding: chunked\r\n",
    b"ffffffffffffffff\r\n", b"a,b\n", b"a,a\n",
]  # fmt: skip


@some(EXAMPLES)
@given(
    st.lists(st.dictionaries(st.sampled_from(["url", "title", "text", "html", "id", "x", "sku"]), anything), max_size=4)
)
@example([{"url": "http://a.example/", "text": "word " * 60, "x": value} for value in HUGE])
@example([{"url": "http://a.example/", "text": "word " * 60, "isbn": "a" * 300_000}])  # a minute for each, once
def test_rows_with_anything_in_them(rows: list[dict[str, Any]]) -> None:
    with Deduplicator.open() as dedup:
        for row in [*rows, *rows]:
            if document := item_document(row):
                claim = dedup.claim(document)
                claim.commit()
                assert claim.verdict.sentence(document.url)


# Labelled sets

ids = st.sampled_from([1, "1", "a", True, None, 2.0, [1]])
docs = st.lists(st.fixed_dictionaries({}, optional={"id": ids, "text": anything, "x": anything}), max_size=4)
pairs = st.lists(st.fixed_dictionaries({}, optional={"a": ids, "b": ids, "label": anything}), max_size=4)


@some(EXAMPLES)
@given(docs, pairs, st.binary(max_size=20))
def test_labelled_sets_of_anything(tmp_path: Path, docs: list[Any], pairs: list[Any], tail: bytes) -> None:
    for name, rows in (("docs", docs), ("pairs", pairs)):
        text = "".join(f"{json.dumps(row)}\n" for row in rows)
        (tmp_path / f"{name}.jsonl").write_bytes(text.encode() + tail)
    with telling(FileError):
        labelled = LabelledSet.load(str(tmp_path))
        for mode in MODES.values():
            assert labelled.score([[*labelled.rows]], mode).precision <= 1


@pytest.mark.parametrize("ending", ["jsonl", "json", "csv", "tsv", "warc", "parquet", "jsonl.gz", "csv.gz", "warc.gz"])
@FEW
def test_feeds_of_any_bytes(tmp_path: Path, ending: str, examples: int) -> None:
    file = tmp_path / f"x.{ending}"

    @some(examples)
    @given(st.binary() | st.lists(st.sampled_from(PIECES)).map(b"".join))
    def try_one(data: bytes) -> None:
        file.write_bytes(data)
        told: list[Any] = []
        with telling(FileError):
            for row in Feeds([str(file)]).rows(lambda *bad: told.append(bad)):
                assert isinstance(row.data, dict)

    try_one()


@some(EXAMPLES)
@given(st.binary(max_size=300) | st.binary(max_size=300).map(b"SQLite format 3\x00".__add__))
def test_stores_of_any_bytes(tmp_path: Path, data: bytes) -> None:
    file = tmp_path / "x.sqlite"
    file.write_bytes(data)
    with telling(StoreError):
        open_store(str(file), detectors(), run=None).close()
    assert file.read_bytes() == data
