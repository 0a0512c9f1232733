"""Number the rows of JSON lines, Parquet and DataFrames in the order in which `dedupe` decides on them.

Numbered rows have the columns `NUMBER`, `FILE` and `ROW`. `ROW` has the bytes of a line, or a struct of all columns.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from itertools import accumulate
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - as all of Spark's own pages call it

from ..feeds import FORMATS, FeedError

NUMBER, ROW, FILE = "number", "row", "file"
KINDS = ("jsonl", "parquet")
_LINE = "trim(TRAILING '\r' FROM value)"


def read(spark: SparkSession, paths: Sequence[str], kind: str | None = None) -> tuple[DataFrame, int]:
    """Return the numbered rows of files, folders or patterns, and how many they are.

    `kind` is one of `KINDS`, or None if the names show the format. Raise FeedError if formats or columns differ.
    """
    kinds = {kind or _kind(path) for path in paths}
    if len(kinds) > 1:
        raise FeedError(f"inputs of two formats, {' and '.join(sorted(kinds))}; allowed is one format")
    frames: list[DataFrame] = []
    for at, path in enumerate(paths):
        if kinds == {"jsonl"}:
            rows, row = spark.read.text(path, lineSep="\n").where("value rlike '\\\\S'"), F.expr(_LINE).cast("binary")
        else:
            rows, row = spark.read.parquet(path), F.struct("*")
        places = F.col("_metadata.file_path").alias(FILE), F.col("_metadata.file_block_start").alias("start")
        frames.append(rows.select(F.lit(at).alias("input"), *places, row.alias(ROW)))
        if frames[at].dtypes != frames[0].dtypes:
            raise FeedError(f"{path}: its columns differ from those of {paths[0]}")
    return _numbered(reduce(DataFrame.union, frames), "input", FILE, "start")


def of_frame(frame: DataFrame, order: str | None) -> DataFrame:
    """Return the numbered rows of a DataFrame in their order, or sorted by the column `order`.

    The column must have unique integers, none below 0.
    """
    rows = frame.select(F.struct("*").alias(ROW))
    if order is None:
        return _numbered(rows.withColumn(FILE, F.spark_partition_id()), FILE)[0]
    number = F.col(f"{ROW}.`{order}`").cast("long").alias(NUMBER)
    return rows.select(number, F.lit("").alias(FILE), ROW)


def _kind(path: str) -> str:
    name = path.lower().rstrip("/")
    if name.endswith(".parquet"):
        return "parquet"
    if name.removesuffix(".gz").endswith(FORMATS):
        return "jsonl"
    raise FeedError(f"{path}: unknown format; set --format {' or '.join(KINDS)}")


def _numbered(rows: DataFrame, *place: str) -> tuple[DataFrame, int]:
    """Return the rows, numbered from 1 and sorted by the columns `place`, and how many they are. Rows with equal places
    keep their order."""
    marked = rows.withColumn("at", F.monotonically_increasing_id())
    parts: list[Any] = sorted(map(tuple, marked.groupBy(*place).agg(F.min("at"), F.count("*")).collect()))
    ends = list(accumulate((part[-1] for part in parts), initial=1))
    shifts = [(*part[:-2], end - part[-2]) for part, end in zip(parts, ends, strict=False)]
    types = ", ".join(f"{name} {dict(rows.dtypes)[name]}" for name in place)
    table = rows.sparkSession.createDataFrame(shifts, f"{types}, shift long")
    numbered = marked.join(F.broadcast(table), list(place)).selectExpr(f"at + shift {NUMBER}", FILE, ROW)
    return numbered, ends[-1] - 1
