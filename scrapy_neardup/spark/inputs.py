"""Read JSON lines and Parquet, in files, folders or patterns, as DataFrames of numbered rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import accumulate
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - as all of Spark's own pages call it

from ..feeds import FORMATS, FeedError, Row, parse_object

NUMBER, ROW, FILE = "number", "row", "file"
KINDS = ("jsonl", "parquet")
_AT, _FIRST, _INPUT, _START = "at", "first", "input", "start"


@dataclass(frozen=True)
class Reader:
    """Converts a row of a `Source` to a row of a feed, in any process."""

    is_lines: bool

    def __call__(self, row: Any) -> Row:
        if self.is_lines:
            place = f"{row[FILE]}, row {row[NUMBER]} of all"
            try:
                return Row(row[NUMBER], parse_object(bytes(row[ROW])), place)
            except ValueError as error:
                raise FeedError(f"{place}: {error}") from error
        data = row[ROW].asDict(recursive=True)
        # The type of binary columns depends on Spark's version.
        data = {k: bytes(v) if isinstance(v, bytearray) else v for k, v in data.items()}
        return Row(row[NUMBER], data, f"row {row[NUMBER]}")


@dataclass(frozen=True)
class Source:
    """The input rows, numbered in the order in which `dedupe` decides on them."""

    frame: DataFrame
    """The columns `NUMBER`, `FILE` and `ROW`. `ROW` has the bytes of a line, or a struct of all columns."""
    reader: Reader
    count: int | None
    """The number of rows; None if they were not counted."""

    def rows(self, numbered: DataFrame) -> DataFrame:
        """Return rows of `frame` in the form that they had in the input."""
        if self.reader.is_lines:
            return numbered.select(F.col(ROW).cast("string").alias("value"))
        return numbered.select(f"{ROW}.*")


def read(spark: SparkSession, paths: Sequence[str], kind: str | None = None) -> Source:
    """Read files, folders or patterns. `kind` is one of `KINDS`, or None if the names show the format.

    Raise FeedError if formats or columns differ.
    """
    kinds = {kind or _kind(path) for path in paths}
    if len(kinds) > 1:
        raise FeedError(f"inputs of two formats, {' and '.join(sorted(kinds))}; allowed is one format")
    is_lines = kinds == {"jsonl"}
    frames = [_lines(spark, path) if is_lines else spark.read.parquet(path) for path in paths]
    for path, frame in zip(paths, frames, strict=True):
        if dict(frame.dtypes) != dict(frames[0].dtypes):
            raise FeedError(f"{path}: its columns differ from those of {paths[0]}")
    placed = [
        frame.select(
            F.struct("*").alias(ROW) if not is_lines else F.col("value").alias(ROW),
            F.col("_metadata.file_path").alias(FILE),
            F.col("_metadata.file_block_start").alias(_START),
            F.lit(at).alias(_INPUT),
        )
        for at, frame in enumerate(frames)
    ]
    return _numbered(reduce(DataFrame.unionByName, placed), (_INPUT, FILE, _START), Reader(is_lines))


def of_frame(frame: DataFrame, order: str | None) -> Source:
    """Return the rows of a DataFrame in their order, or sorted by the column `order`.

    The column must have unique integers, none below 0.
    """
    rows = frame.select(F.struct("*").alias(ROW))
    if order is None:
        return _numbered(rows.withColumn(FILE, F.spark_partition_id()), (FILE,), Reader(is_lines=False))
    number = F.col(f"{ROW}.`{order}`").cast("long").alias(NUMBER)
    return Source(rows.select(ROW, number, F.lit("").alias(FILE)), Reader(is_lines=False), None)


def _kind(path: str) -> str:
    name = path.lower().rstrip("/")
    if name.endswith(".parquet"):
        return "parquet"
    if name.removesuffix(".gz").endswith(FORMATS):
        return "jsonl"
    raise FeedError(f"{path}: unknown format; set --format {' or '.join(KINDS)}")


def _lines(spark: SparkSession, path: str) -> DataFrame:
    lines = spark.read.text(path, lineSep="\n").where(r"value rlike '\\S'")
    return lines.select(F.expr(r"trim(TRAILING '\r' FROM value)").cast("binary").alias("value"), "_metadata")


def _numbered(rows: DataFrame, place: Sequence[str], reader: Reader) -> Source:
    """Number rows from 1, sorted by the columns `place`. Rows with equal places keep their order."""
    marked = rows.withColumn(_AT, F.monotonically_increasing_id())
    found = marked.groupBy(*place).agg(F.count("*"), F.min(_AT)).collect()
    parts = sorted(tuple(row) for row in found)
    ends = list(accumulate((part[-2] for part in parts), initial=0))
    shifts = [(*part[:-2], end + 1 - part[-1]) for part, end in zip(parts, ends, strict=False)]
    types = ", ".join(f"{name} {rows.schema[name].dataType.simpleString()}" for name in place)
    table = rows.sparkSession.createDataFrame(shifts, f"{types}, {_FIRST} long")
    numbered = marked.join(F.broadcast(table), list(place))
    return Source(numbered.select((F.col(_AT) + F.col(_FIRST)).alias(NUMBER), FILE, ROW), reader, ends[-1])
