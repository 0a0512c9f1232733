"""What is particular to feeds in Parquet; what all share is in test_feeds."""

from __future__ import annotations

import datetime
from itertools import chain
from pathlib import Path

import pytest
from feed_files import copied, read, write_feed

from scrapy_neardup.feeds import FeedError, Feeds, writing_rows


def test_parquet_of_many_types_and_row_groups(tmp_path: Path) -> None:
    pa = pytest.importorskip("pyarrow")
    import pyarrow.parquet as pq

    table = pa.table(
        {
            "url": [f"http://a.example/{n}" for n in range(700)],
            "at": [datetime.datetime(2026, 11, 21, n % 24) for n in range(700)],
            "html": [b"<p>bytes</p>"] * 700,
            "tags": [["a", None], None] * 350,
            "kind": pa.array(["x", "y"] * 350).dictionary_encode(),
            "deep": [{"a": {"b": n}} for n in range(700)],
        }
    )
    pq.write_table(table, tmp_path / "x.parquet", row_group_size=300)
    assert [row.data for row in Feeds([str(tmp_path / "x.parquet")]).rows()] == table.to_pylist()
    copied(tmp_path / "x.parquet", tmp_path / "out.parquet")
    assert pq.read_table(tmp_path / "out.parquet").equals(pq.read_table(tmp_path / "x.parquet"), check_metadata=True)


def test_parquet_of_times_that_python_can_not_hold(tmp_path: Path) -> None:
    pa = pytest.importorskip("pyarrow")
    import pyarrow.parquet as pq

    far = pa.array([1 << 40], pa.int64())
    columns = {
        "text": pa.array(["one"]),
        "ns": pa.array([1], pa.timestamp("ns")),
        "zone": pa.array([1], pa.timestamp("ns", "no/zone")),
        "late": far.cast(pa.timestamp("s")),
        "day": pa.array([1 << 30], pa.int32()).cast(pa.date32()),
        "for": far.cast(pa.duration("s")),
        "deep": pa.array([[1]], pa.list_(pa.timestamp("ns"))),
    }
    pq.write_table(pa.table(columns), tmp_path / "x.parquet")
    (row,) = Feeds([str(tmp_path / "x.parquet")]).rows()
    assert row.data["text"] == "one"
    assert row.data.keys() == columns.keys()
    assert {type(row.data[name]) for name in ("zone", "late", "day")} <= {str, type(None)}
    copied(tmp_path / "x.parquet", tmp_path / "out.parquet")
    assert pq.read_table(tmp_path / "out.parquet").equals(pq.read_table(tmp_path / "x.parquet"))


def test_parquet_whose_metadata_differ_goes_together(tmp_path: Path) -> None:
    pa = pytest.importorskip("pyarrow")
    import pyarrow.parquet as pq

    names = [str(tmp_path / f"{n}.parquet") for n in range(3)]
    for number, name in enumerate(names):
        metadata = {"made": str(number)} if number else None
        inner = pa.list_(pa.field("element", pa.string(), metadata=metadata))
        fields = [pa.field("text", pa.string(), metadata=metadata), pa.field("tags", inner)]
        pq.write_table(pa.table([[f"t{number}"], [["a"]]], schema=pa.schema(fields, metadata=metadata)), name)
    feeds = Feeds(names)
    with writing_rows(str(tmp_path / "out.parquet"), feeds.kind) as write:
        for line in feeds.lines():
            write(line)
    assert pq.read_table(tmp_path / "out.parquet")["text"].to_pylist() == ["t0", "t1", "t2"]


def test_parquet_is_written_by_row_groups(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pq = pytest.importorskip("pyarrow.parquet")
    monkeypatch.setattr("scrapy_neardup.feeds.parquet.MOST", 3)
    copied(write_feed(tmp_path / "x.parquet"), tmp_path / "out.parquet")
    file = pq.ParquetFile(tmp_path / "out.parquet")
    assert [file.metadata.row_group(n).num_rows for n in range(file.num_row_groups)] == [3, 1]
    file.close()


def test_dictionaries_do_not_make_row_groups_small(tmp_path: Path) -> None:
    pa = pytest.importorskip("pyarrow")
    import pyarrow.parquet as pq

    kind = pa.dictionary(pa.int32(), pa.string())
    names = [f"http://site{n}.example/with/a/long/name" for n in range(2000)]
    columns = {
        "site": pa.array(names, kind),
        "deep": pa.array([{"tags": [name, None]} for name in names], pa.struct([("tags", pa.list_(kind))])),
        "size": pa.DictionaryArray.from_arrays([2, 0] * 1000, ["small", "medium", "large"], ordered=True),
    }
    pq.write_table(pa.table(columns), tmp_path / "x.parquet")
    copied(tmp_path / "x.parquet", tmp_path / "out.parquet")
    before, after = (pq.ParquetFile(tmp_path / name) for name in ("x.parquet", "out.parquet"))
    assert (after.schema_arrow, after.num_row_groups) == (before.schema_arrow, 1)
    assert after.read().equals(before.read())
    assert after.read()["size"].chunk(0).dictionary.to_pylist() == ["small", "medium", "large"]
    assert (tmp_path / "out.parquet").stat().st_size < 1.1 * (tmp_path / "x.parquet").stat().st_size
    for file in (before, after):
        file.close()


def test_dictionaries_of_feeds_together_may_be_larger_than_their_numbers_go_up_to(tmp_path: Path) -> None:
    pa = pytest.importorskip("pyarrow")
    import pyarrow.parquet as pq

    paths = [tmp_path / f"{n}.parquet" for n in range(3)]
    wanted = [[f"{path.name}, {n}" for n in range(100)] for path in paths]
    for path, names in zip(paths, wanted, strict=True):
        pq.write_table(pa.table({"site": pa.array(names, pa.dictionary(pa.int8(), pa.string()))}), path)
    feeds = Feeds(list(map(str, paths)))
    with writing_rows(str(tmp_path / "out.parquet"), feeds.kind) as write:
        for line in feeds.lines():
            write(line)
    with pq.ParquetFile(tmp_path / "out.parquet") as file:
        found = [file.read_row_group(n)["site"].to_pylist() for n in range(file.num_row_groups)]
    assert list(chain(*found)) == list(chain(*wanted))


def test_parquet_of_other_columns_and_what_is_none(tmp_path: Path) -> None:
    pytest.importorskip("pyarrow")
    path = write_feed(tmp_path / "x.parquet")
    other = write_feed(tmp_path / "other.parquet", [{"url": "a", "text": "b"}])
    with pytest.raises(FeedError, match=r"other\.parquet: its columns are not those of"):
        Feeds([str(path), str(other)])
    with pytest.raises(FeedError, match=r"x\.parquet: can't be read: .*Parquet"):
        read(path, b"no such thing")
    with pytest.raises(FeedError, match=r"x\.parquet: can't be read"):
        read(path, b"PAR1" + bytes(100) + b"PAR1")
