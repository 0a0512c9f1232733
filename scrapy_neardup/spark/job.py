"""Number rows, find the components of documents that may repeat one another, and have each decided on.

Rows are JSON lines, Parquet or a DataFrame, numbered in the order in which `dedupe` decides on them. Numbered rows have
the columns `NUMBER`, `FILE` and `ROW`. `ROW` has the bytes of a line, or a struct of all columns.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import replace
from functools import reduce
from itertools import accumulate
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - as all of Spark's own pages call it

from ..detectors.detector import build_detectors
from ..feeds import FORMATS, FeedError
from ..index.kinds import NEWEST, Equal, Near
from ..index.row_index import BLOCK_BITS, flips, most_flips
from ..settings import Config, ConfigError
from .worker import DUPLICATES, PAIRS, RECORDS, Worker

NUMBER, ROW, FILE = "number", "row", "file"
KINDS = ("jsonl", "parquet")
_LINE = "trim(TRAILING '\r' FROM value)"
CROWD = 1024  # values of a bucket to pair; a bucket with more values means a common template
LARGEST = 100_000  # documents in a component with all pages of its sites; a larger one has only similar pages


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


class Job(ExitStack):
    """Decides on numbered rows. Use it in a `with` block, at whose end it drops its caches."""

    def __init__(self, rows: DataFrame, config: Config, id_field: str | None = None) -> None:
        super().__init__()
        config = replace(config.ignoring(id_field), store=None)
        indexes = {detector.name: detector.index() for detector in build_detectors(config)}
        if own := [name for name, index in indexes.items() if not isinstance(index, (Equal, Near))]:
            what = "its own index, which Spark can't use; allowed are detectors with the index `Equal`, and `simhash`"
            raise ConfigError(f"NEARDUP_DETECTORS: {own[0]!r} has {what}")
        self._most = max([NEWEST, *(each.newest for each in indexes.values() if isinstance(each, Equal))])
        self._distance = next((each.distance for each in indexes.values() if isinstance(each, Near)), None)
        self._rows = rows
        self._worker = Worker(config, id_field)
        self.records = self._keep(rows.rdd.mapPartitions(self._worker.sign).toDF(RECORDS))

    def duplicates(self) -> DataFrame:
        """Return the columns `DUPLICATES` of documents that repeat earlier ones. All other documents are unique."""
        rows = self._rows.join(self._components(), NUMBER)
        rows = rows.repartition("component").sortWithinPartitions("component", NUMBER)
        return self._keep(rows.rdd.mapPartitions(self._worker.decide).toDF(DUPLICATES))

    def _keep(self, frame: DataFrame) -> DataFrame:
        self.callback(frame.unpersist)
        return frame.persist()

    def _pairs(self) -> DataFrame:
        """Return pairs that connect all documents that may repeat each other. Of those with equal texts, only the first
        is compared with others."""
        copies = stars(self.records, "exact")
        heads = self.records.join(copies.select(F.col("b").alias(NUMBER)), NUMBER, "left_anti")
        pairs = previous(heads.select(NUMBER, F.explode("keys").alias("value")), self._most)
        if self._distance is not None:
            values = heads.select(NUMBER, F.col("simhash").alias("value")).where("value is not null")
            crowd = max(CROWD, 4 * self.records.count() >> BLOCK_BITS)
            pairs = pairs.union(near(values, self._distance, crowd))
        pairs = pairs.union(copies).union(stars(self.records, "page")).distinct()
        for side in "ab":
            columns = [F.col(name).alias(f"{name}_{side}") for name in ("record", "page", "site")]
            pairs = pairs.join(self.records.select(F.col(NUMBER).alias(side), *columns), side)
        return self._keep(pairs.rdd.mapPartitions(self._worker.compare).toDF(PAIRS))

    def _components(self) -> DataFrame:
        """Return the component of each document that may repeat another document, or be repeated by one.

        If two pages of a site resemble each other, all pages of the site join their component, to recognise siblings.
        """
        pairs = self._pairs()
        members = self._keep(components(pairs))
        sites = self._keep(pairs.where("site is not null").select("site").distinct())
        if sites.isEmpty():
            return members
        of_sites = stars(self.records.join(sites, "site", "left_semi"), "site")
        alike = members.select(F.col("component").alias("a"), F.col(NUMBER).alias("b"))
        joined = components(alike.union(of_sites)).withColumnRenamed("component", "joined")
        sized = joined.selectExpr("*", "count(*) over (partition by joined) size").join(members, NUMBER, "left")
        component = f"if(size <= {LARGEST}, joined, component) component"
        return sized.selectExpr(NUMBER, component).where("component is not null")


def stars(records: DataFrame, column: str) -> DataFrame:
    """Pair each document with the first document that has the same value in a column."""
    first = F.expr(f"min({NUMBER}) over (partition by {column})").alias("a")
    return records.where(F.col(column).isNotNull()).select(first, F.col(NUMBER).alias("b")).where("a < b")


def previous(values: DataFrame, most: int) -> DataFrame:
    """Pair each document with earlier documents that have the same value: with the last `most` of them."""
    before = f"(partition by value order by {NUMBER} rows between {most} preceding and 1 preceding)"
    found = values.selectExpr(f"collect_list({NUMBER}) over {before} found", f"{NUMBER} b")
    return found.selectExpr("explode(found) a", "b")


def near(values: DataFrame, distance: int, crowd: int) -> DataFrame:
    """Pair documents that have different values within a Hamming distance (see `row_index`).

    Only the first `NEWEST` documents of each value are paired, and only the first `crowd` values of each bucket.
    """
    numbers = F.slice(F.sort_array(F.collect_list(NUMBER)), 1, NEWEST).alias("numbers")
    ways = [(place, flip) for place, most in enumerate(most_flips(distance)) for flip in flips(most)]
    table = values.sparkSession.createDataFrame(ways, "place int, flip long")
    bits = f"shiftrightunsigned(value, {BLOCK_BITS} * place) & {(1 << BLOCK_BITS) - 1}"
    block = F.expr(f"(({bits}) ^ flip) | shiftleft(place, {BLOCK_BITS})")
    probes = values.groupBy("value").agg(numbers).crossJoin(F.broadcast(table)).withColumn("block", block)
    rank = "row_number() over (partition by block order by numbers[0]) rank"
    entries = probes.where("flip = 0").selectExpr("*", rank).where(f"rank <= {crowd}")
    found = probes.alias("p").join(entries.alias("e"), "block").where("e.numbers[0] < p.numbers[0]")
    found = found.where(f"bit_count(p.value ^ e.value) <= {distance}").selectExpr("p.numbers p", "e.numbers e")
    pairs = found.distinct().selectExpr("explode(p) p", "e").selectExpr("p", "explode(e) e")
    return pairs.selectExpr("least(p, e) a", "greatest(p, e) b")


def components(pairs: DataFrame) -> DataFrame:
    """Return two columns: the `number` of each document in a pair, and its `component`, as its lowest number.

    Kiveris, Lattanzi, Mirrokni, Rastogi, Vassilvitskii 2014, Connected components in MapReduce and beyond: alternating
    large-star, which links all higher neighbours of each node to its lowest one, and small-star, which links each node
    and its lower neighbours to the lowest of these.
    """
    links, state = _links(pairs, "greatest(a, b)", "least(a, b)"), None
    while state != (state := links.agg(F.count("*"), F.expr("bit_xor(xxhash64(high, low))")).first()):
        both = links.union(links.select("low", "high")).toDF("node", "other")
        large = both.selectExpr("node", "other", "least(node, min(other) over (partition by node)) lowest")
        links = _links(large.where("other > node"), "other", "lowest")
        small = links.selectExpr("array(high, low) ends", "min(low) over (partition by high) lowest")
        links = _links(small.selectExpr("explode(ends) end", "lowest"), "end", "lowest").localCheckpoint()
    tops = links.selectExpr(f"low {NUMBER}", "low component").distinct()
    return links.selectExpr(f"high {NUMBER}", "low component").union(tops)


def _links(rows: DataFrame, high: str, low: str) -> DataFrame:
    return rows.selectExpr(f"{high} high", f"{low} low").where("high > low").distinct()
