"""Find pairs of documents that may repeat each other, by a join on fingerprints and a comparison of sketches."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import partial
from typing import Any

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F  # noqa: N812 - as all of Spark's own pages call it

from ..fingerprints.record import Head
from ..index.kinds import NEWEST
from ..index.row_index import BLOCK_BITS, BLOCKS, flips, most_flips
from ..matching.evidence import Rule, compare
from .signatures import Ways

CROWD = 1024  # values of a bucket to pair; a bucket with more values means a common template
PAIRS = "a long, b long, site long"
"""The numbers of two documents, the earlier document first, and their site if both are pages of one site."""


def edges(records: DataFrame, ways: Ways, rule: Rule, total: int) -> DataFrame:
    """Return pairs that connect all documents that may repeat each other, directly or through other documents.

    The columns are those of `PAIRS`. If several documents have equal texts, only the first of these documents is
    compared with other documents.
    """
    long_enough = F.col("tokens") >= (1 if rule.short_text == "exact" else max(rule.min_tokens, 1))
    own = F.when(F.col("exact").isNull(), F.col("number"))
    first = F.min("number").over(Window.partitionBy("exact", own))
    known = records.where(long_enough).select("number", "keys", "near", first.alias("first"))
    heads = known.where(F.col("first") == F.col("number"))
    proposed = previous(heads.select("number", F.explode("keys").alias("value")), max(ways.keys.values(), default=1))
    for at, distance in enumerate(ways.near.values()):
        values = heads.select("number", F.explode(F.col("near")[at]).alias("value"))
        crowd = max(CROWD, 4 * total >> BLOCK_BITS)
        proposed = proposed.union(previous(values, NEWEST)).union(near(values, distance, crowd))
    copies = known.where(F.col("first") < F.col("number")).select(F.col("first").alias("a"), F.col("number").alias("b"))
    pairs = proposed.distinct().withColumn("equal", F.lit(False)).union(copies.withColumn("equal", F.lit(True)))
    again = stars(records, "page").withColumn("site", F.lit(None).cast("long"))
    return accepted(pairs, records, rule).union(again)


def previous(values: DataFrame, most: int) -> DataFrame:
    """Pair each document with earlier documents that have the same value: with the last `most` of them."""
    before = Window.partitionBy("value").orderBy("number").rowsBetween(-most, -1)
    found = values.select("number", F.collect_list("number").over(before).alias("found"))
    return found.select(F.explode("found").alias("a"), F.col("number").alias("b"))


def near(values: DataFrame, distance: int, crowd: int) -> DataFrame:
    """Pair documents that have different values within a Hamming distance (see `row_index`).

    Only the first `NEWEST` documents of each value are paired, and only the first `crowd` values of each bucket.
    """
    numbers = F.slice(F.array_sort(F.collect_list("number")), 1, NEWEST)
    table = values.groupBy("value").agg(numbers.alias("numbers")).withColumn("first", F.col("numbers")[0])
    blocks = [_block(F.col("value"), place) for place in range(BLOCKS)]
    entries = table.select("*", F.explode(F.array(*blocks)).alias("block"))
    rank = F.row_number().over(Window.partitionBy("block").orderBy("first"))
    entries = entries.withColumn("rank", rank).where(F.col("rank") <= crowd)
    flipped = [_flipped(block, most) for block, most in zip(blocks, most_flips(distance), strict=True) if most >= 0]
    probes = table.select("*", F.explode(F.concat(*flipped)).alias("block"))
    far = F.bit_count(F.col("p.value").bitwiseXOR(F.col("e.value")))
    found = probes.alias("p").join(entries.alias("e"), "block").where(F.col("e.first") < F.col("p.first"))
    found = found.where(far <= distance).select(F.col("p.numbers").alias("p"), F.col("e.numbers").alias("e")).distinct()
    pairs = found.select(F.explode("p").alias("p"), "e").select("p", F.explode("e").alias("e"))
    return pairs.select(F.least("p", "e").alias("a"), F.greatest("p", "e").alias("b"))


def _block(value: Column, place: int) -> Column:
    """Return a block of 16 bits of a value, with the number of the block in the bits above these 16."""
    bits = F.shiftrightunsigned(value, place * BLOCK_BITS).bitwiseAND((1 << BLOCK_BITS) - 1)
    return bits.bitwiseOR(F.lit(place << BLOCK_BITS))


def _flipped(block: Column, most: int) -> Column:
    return F.transform(F.array(*map(F.lit, flips(most))), lambda flip: block.bitwiseXOR(flip))


def stars(records: DataFrame, column: str) -> DataFrame:
    """Pair each document with the first document that has the same value in a column."""
    known = records.where(F.col(column).isNotNull())
    first = F.min("number").over(Window.partitionBy(column)).alias("a")
    return known.select(first, F.col("number").alias("b")).where("a < b")


def accepted(pairs: DataFrame, records: DataFrame, rule: Rule) -> DataFrame:
    """Return the pairs that have equal texts or that the rule may accept, with the columns of `PAIRS`."""
    for side in "ab":
        names = [F.col(name).alias(f"{name}_{side}") for name in ("record", "site", "page")]
        pairs = pairs.join(records.select(F.col("number").alias(side), *names), side)
    return pairs.rdd.mapPartitions(partial(_accepted, rule=rule)).toDF(PAIRS)


def _accepted(pairs: Iterable[Any], rule: Rule) -> Iterator[tuple[int, int, int | None]]:
    for pair in pairs:
        found = compare(Head.of(pair.record_a).sketch, Head.of(pair.record_b).sketch)
        # Without form, which is not known here, the texts may resemble each other more.
        if pair.equal or (rule.may_accept(found) and rule.accepts(found._replace(resemblance=1.0))):
            one_site = pair.site_a is not None and pair.site_a == pair.site_b and pair.page_a != pair.page_b
            yield pair.a, pair.b, pair.site_a if one_site else None
