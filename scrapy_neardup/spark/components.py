"""Find the connected components of pairs of documents, however many pairs there are.

Kiveris, Lattanzi, Mirrokni, Rastogi, Vassilvitskii 2014, Connected components in MapReduce and beyond: alternating
large-star and small-star.
"""

from __future__ import annotations

from collections.abc import Iterable

from pyspark.sql import Column, DataFrame, SparkSession, Window
from pyspark.sql import functions as F  # noqa: N812 - as all of Spark's own pages call it

from ..index.unions import Unions

FEW = 200_000
"""Up to this number of pairs, one process is faster than a round of Spark."""


def components(pairs: DataFrame, few: int = FEW) -> DataFrame:
    """Return two columns: the `number` of each document in a pair, and its `component`, as its lowest number."""
    some = pairs.select("a", "b").limit(few + 1).collect()
    return _starred(pairs) if len(some) > few else _joined(pairs.sparkSession, some)


def _joined(spark: SparkSession, pairs: Iterable[tuple[int, int]]) -> DataFrame:
    unions: Unions[int] = Unions()
    for pair in pairs:
        unions.join(*pair)
    found = [(member, lowest) for cluster in unions.clusters() for lowest in [min(cluster)] for member in cluster]
    return spark.createDataFrame(found, "number long, component long")


def _starred(pairs: DataFrame) -> DataFrame:
    links = _links(pairs, F.greatest("a", "b"), F.least("a", "b"))
    state = None
    while state != (state := _state(links)):
        links = _small_star(_large_star(links)).localCheckpoint()
    top = F.col("low").alias("component")
    tops = links.select(F.col("low").alias("number"), top).distinct()
    return links.select(F.col("high").alias("number"), top).union(tops)


def _large_star(links: DataFrame) -> DataFrame:
    """Link all higher neighbours of each node to the lowest neighbour of the node."""
    both = links.select(F.col("high").alias("node"), F.col("low").alias("other")).union(links.select("low", "high"))
    lowest = F.least("node", F.min("other").over(Window.partitionBy("node")))
    return _links(both.select("node", "other", lowest.alias("lowest")).where("other > node"), "other", "lowest")


def _small_star(links: DataFrame) -> DataFrame:
    """Link each node and its lower neighbours to the lowest of these neighbours."""
    found = links.withColumn("lowest", F.min("low").over(Window.partitionBy("high")))
    ends = F.explode(F.array("high", "low")).alias("end")
    return _links(found.select(ends, "lowest"), "end", "lowest")


def _links(rows: DataFrame, high: Column | str, low: Column | str) -> DataFrame:
    ends = [(F.col(end) if isinstance(end, str) else end) for end in (high, low)]
    return rows.select(ends[0].alias("high"), ends[1].alias("low")).where("high > low").distinct()


def _state(links: DataFrame) -> tuple[object, ...]:
    """Return a checksum of links, which is equal for equal links."""
    found = links.agg(F.count("*"), F.expr("bit_xor(xxhash64(high, low))")).first()
    return tuple(found or ())
