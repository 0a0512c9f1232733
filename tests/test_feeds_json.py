"""What is particular to feeds that are a JSON array; what all share is in test_feeds."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest
from feed_files import bad_rows, read
from helpers import run
from hypothesis import given, settings
from hypothesis import strategies as st

from scrapy_neardup.feeds import BadRowError, FeedError, Feeds
from scrapy_neardup.feeds import jsonarray as jsonarray_module

LEAVES = st.none() | st.booleans() | st.integers() | st.text('a\\"[]{},: \n鹤\ud800', max_size=20)
VALUES = st.recursive(LEAVES, lambda v: st.lists(v, max_size=3) | st.dictionaries(st.text('a\\"{,', max_size=3), v))


@given(st.lists(st.dictionaries(st.text(max_size=3), VALUES, max_size=3), max_size=5), st.sampled_from([None, 2]))
@settings(max_examples=100, deadline=None)
def test_json_of_whatever_content_in_whatever_pieces(
    tmp_path_factory: pytest.TempPathFactory, rows: list[dict[str, Any]], indent: int | None
) -> None:
    path = tmp_path_factory.mktemp("json") / "x.json"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(jsonarray_module, "CHUNK", 3)
        assert read(path, json.dumps(rows, indent=indent).encode()) == rows
        feeds = Feeds([str(path)])
        raws = [line.raw for line in feeds.lines()]
    assert all(isinstance(raw, bytes) and raw in path.read_bytes() and raw.strip() == raw for raw in raws)


@pytest.mark.parametrize(
    ("data", "wanted"),
    [
        (b"", []),  # a crawl that was killed leaves this
        (b"\xef\xbb\xbf", []),
        (b" \n\n", []),
        (b"[]", []),
        (b" [\n\n] \n", []),
        (b'\xef\xbb\xbf[{"a": 1}]', [{"a": 1}]),
        (b'[\n{"a": 1}\n]\n[\n{"a": 2},\n{"a": 3}\n]', [{"a": 1}, {"a": 2}, {"a": 3}]),  # two crawls with -o
        (b'[][{"a": 1}]', [{"a": 1}]),
    ],
)
def test_json_that_is_read(tmp_path: Path, data: bytes, wanted: list[dict[str, Any]]) -> None:
    assert read(tmp_path / "x.json", data) == wanted


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b'\n{"a": 1}\n{"a": 2}', "row 1, line 2: '{' where an array was to begin; JSON lines are named .jsonl"),
        (b'[{"a": 1}]\nmore', "row 2, line 2: 'more' where an array was to begin"),
        (b'text [{"a": 1}]', "row 1, line 1: 'text [' where an array was to begin"),
        (b'"text"', "row 1, line 1: '\"text\"' where"),
    ],
)
def test_what_is_no_json_array(tmp_path: Path, data: bytes, message: str) -> None:
    with pytest.raises(FeedError) as caught:
        read(tmp_path / "x.json", data)
    assert message in str(caught.value)
    assert not isinstance(caught.value, BadRowError)


@pytest.mark.parametrize(
    ("data", "raw", "message"),
    [
        (b'[\n{"a": 1},\n{"a": },\n{"a": 2}\n]', b'{"a": }', "row 2, line 3: no JSON: Expecting value"),
        (b'[\n{"a": 1},\n\n\n7,\n{"a": 2}\n]', b"7", "row 2, line 5: a JSON int; allowed is an object"),
        (b'[{"a": 1}, [{}, 2], {"a": 2}]', b"[{}, 2]", "row 2, line 1: a JSON list"),
        (b'[{"a": 1},, {"a": 2}]', b"", "row 2, line 1: no JSON"),
        (b'[{"a": 1}, {"a": "\xff"}, {"a": 2}]', b'{"a": "\xff"}', "row 2, line 1: no JSON"),
        (b'[{"a": 1}, {"a": 2} x, {"a": 2}]', b'{"a": 2} x', "row 2, line 1: no JSON: Extra data"),
        (b'[{"a": 1}, }, {"a": 2}]', b"}", "row 2, line 1: no JSON"),
        (b'[{"a": 1}, {"a": 2},]', b"", "row 3, line 1: no JSON"),
        (b'[\n{"a": 1},\n{"a": 2}\n', b"", "row 3, line 4: the file ends before the array does"),
        (b'[\n{"a": 1},\n{"a": 2},\n{"a": "lo', b'{"a": "lo', "row 3, line 4: the file ends before the array does"),
        (b'[\n{"a": 1},\n{"a": 2},\n{"a": "lo\\', b'{"a": "lo\\', "row 3, line 4: the file ends"),
    ],
)
def test_json_row_that_is_none(tmp_path: Path, data: bytes, raw: bytes, message: str) -> None:
    rows, ((found, why),) = bad_rows(tmp_path / "x.json", data)
    assert rows == [{"a": 1}, {"a": 2}]
    assert found == raw
    assert why.startswith(message)
    with pytest.raises(BadRowError):
        read(tmp_path / "x.json", data)


JSON_GOOD = b"".join(b'{"a": %d, "b": "x", "c": [{}]},\n' % n for n in range(50))


@pytest.mark.parametrize(
    "broken",
    [
        b'{"a": "open},\n',
        b'{"a: "open"},\n',
        b'{"a": [1, 2},\n',
        b'{"a": {"b": 1},\n',
        b'{"a": "open},\n{"b": "open},\n',
        b'{"a": [1},\n{"b": 1]},\n',
        b'{"a": "open\\"},\n',
    ],
)
@pytest.mark.parametrize("spread", [100, 1 << 20])
@pytest.mark.parametrize("indent", [b"", b"  "])
def test_json_rows_after_one_that_is_broken_are_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, broken: bytes, spread: int, indent: bytes
) -> None:
    monkeypatch.setattr(jsonarray_module, "SPREAD", spread)
    monkeypatch.setattr(jsonarray_module, "CHUNK", 64)
    data = (JSON_GOOD + broken + JSON_GOOD + b'{"a": 7}\n').replace(b"{", indent + b"{").replace(b"[" + indent, b"[")
    rows, bad = bad_rows(tmp_path / "x.json", b"[\n" + data + b"]\n")
    assert [row["a"] for row in rows] == [*range(50), *range(50), 7]
    wanted = [line.strip().removesuffix(b",") for line in data.splitlines()[50 : 50 + broken.count(b"\n")]]
    assert [raw for raw, _ in bad] == wanted
    assert [why.partition(":")[0] for _, why in bad] == [f"row {51 + n}, line {52 + n}" for n in range(len(bad))]


def test_json_whose_commas_are_missing(tmp_path: Path) -> None:
    assert read(tmp_path / "x.json", b'[\n{"a": 1}\n{"a": 2},\n{"a": 3}\n]') == [{"a": n} for n in (1, 2, 3)]


@pytest.mark.parametrize("spread", [10, 1 << 20])
def test_json_whose_nested_objects_begin_lines(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, spread: int) -> None:
    monkeypatch.setattr(jsonarray_module, "SPREAD", spread)
    rows = [{"a": [{"b": 1}, {"b": 2}]}, {"a": []}]
    assert read(tmp_path / "x.json", json.dumps(rows, indent=0).encode()) == rows


def test_json_says_the_line_with_the_fault(tmp_path: Path) -> None:
    _, ((_, why),) = bad_rows(tmp_path / "x.json", b'[\n{"a": 1},\n{\n  "a": 1,\n  "b" 2\n}\n]')
    assert why == "row 2, line 5: no JSON: Expecting ':' delimiter, column 7"
    _, ((_, why),) = bad_rows(tmp_path / "x.jsonl", b'{"a": 1}\n{"a": \n')
    assert why == "line 2: no JSON: Expecting value, column 6"


def test_json_of_many_escapes_is_read_in_little_memory(tmp_path: Path) -> None:
    (tmp_path / "x.json").write_bytes(b'[{"a": "' + b"\\u00e9" * 2_000_000 + b'\\""}]')
    code = f"""
import resource
from scrapy_neardup.feeds import Feeds
def peak(): return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10
before = peak()
(row,) = Feeds([{str(tmp_path / "x.json")!r}]).lines()
print(peak() - before, len(row.raw))
"""
    grown, size = map(int, run([sys.executable, "-c", code], cwd=tmp_path).stdout.split())
    assert size == 12_000_000 + 11
    assert grown < 10 * size


def test_json_that_never_closes_a_row_is_not_read_into_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jsonarray_module, "LARGEST", 1 << 12)
    monkeypatch.setattr(jsonarray_module, "CHUNK", 1 << 10)
    with pytest.raises(FeedError, match="row 2, line 2: over 4096 bytes: is a quote or a bracket missing"):
        read(tmp_path / "x.json", b'[{"a": 1},\n{"a": "' + b"x" * 100_000)
