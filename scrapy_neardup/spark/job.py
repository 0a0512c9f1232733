"""Run the stages of a `dedupe` on Spark: signatures, pairs, components and decisions."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from functools import cached_property, partial
from typing import Any, TypeVar

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F  # noqa: N812 - as all of Spark's own pages call it

from ..detectors.registry import build_detectors
from ..matching.evidence import Rule
from ..settings import Config
from . import decisions as deciding
from . import signatures as signing
from .components import components
from .inputs import NUMBER, Source
from .pairs import edges, stars

T = TypeVar("T")

LARGEST = 100_000
"""The maximum number of documents in a component with all pages of its sites, which are needed to recognise siblings.

A component that would be larger includes only similar pages.
"""


SHARE = 50_000
"""The number of documents in a shuffle partition. With few documents, partitions are smaller, one for each core."""
_PARTITIONS = "spark.sql.shuffle.partitions"


class Job:
    """Decides on the rows of a source. Use a job in a `with` block, which caches intermediate results until it ends.

    Within the block, the number of shuffle partitions depends on the number of documents. Spark's default of 200 costs
    too much for few documents, and makes partitions too large for many documents.
    """

    def __init__(self, source: Source, config: Config, id_field: str | None = None) -> None:
        self._source = source
        self._config = replace(config.ignoring(id_field), store=None)
        self.detectors = build_detectors(self._config)
        self._ways = signing.Ways.of(self.detectors)
        self._id_field = id_field
        self._kept: list[DataFrame] = []
        work = partial(signing.sign_rows, config=self._config, id_field=id_field)
        self._records = self._keep(self._made(source.frame, work, signing.SCHEMA))
        self._spark = source.frame.sparkSession
        self._partitions = str(self._spark.conf.get(_PARTITIONS))  # always has a value

    @cached_property
    def documents(self) -> int:
        """The number of rows with text. Raises an error if a row can't be read or signed."""
        return int(self._records.count())

    def verdicts(self, began: float = 0.0, run: str = "") -> DataFrame:
        """Return the verdicts on all documents, with the columns of `decisions.SCHEMA`.

        `began`: the time of the first document, in seconds since the epoch. `run`: the id of a run to export. If given,
        the rows of the export are returned too.
        """
        parts = max(self._spark.sparkContext.defaultParallelism, self.documents // SHARE)
        self._spark.conf.set(_PARTITIONS, parts)
        members = self._components()
        rows = self._with_texts(self._records.join(members, "number", "left"), members)
        rows = rows.withColumn("component", F.coalesce("component", "number"))
        rows = rows.repartition("component").sortWithinPartitions("component", "number")
        work = partial(_decided, config=self._config, began=began, run=run)
        return self._keep(rows.rdd.mapPartitions(work).toDF(deciding.SCHEMA))

    def __enter__(self) -> Job:
        return self

    def __exit__(self, *_: object) -> None:
        """Unpersist the cached DataFrames, and restore the session's number of partitions."""
        self._spark.conf.set(_PARTITIONS, self._partitions)
        for frame in self._kept:
            frame.unpersist()

    def _keep(self, frame: DataFrame) -> DataFrame:
        self._kept.append(frame.persist())
        return frame

    def _made(self, frame: DataFrame, work: Callable[[Iterable[Any]], Iterator[Any]], schema: str) -> DataFrame:
        read = self._source.reader
        return frame.rdd.mapPartitions(lambda rows: work(map(read, rows))).toDF(schema)

    def _components(self) -> DataFrame:
        """Return the component of each document that may repeat another document, or be repeated by one."""
        rule = Rule.from_config(self._config)
        found = self._keep(edges(self._records, self._ways, rule, self.documents))
        members = components(found)
        sites = self._keep(found.where("site is not null").select("site").distinct())
        return self._keep(members if sites.isEmpty() else self._with_sites(members, sites))

    def _with_sites(self, members: DataFrame, sites: DataFrame) -> DataFrame:
        """Add all pages of the given sites to the components. These pages are needed to recognise siblings."""
        of_sites = stars(self._records.join(sites, "site", "left_semi"), "site")
        alike = members.select(F.col("component").alias("a"), F.col("number").alias("b"))
        joined = components(alike.union(of_sites)).withColumnRenamed("component", "joined")
        size = F.count("*").over(Window.partitionBy("joined"))
        both = joined.withColumn("size", size).join(members, "number", "left")
        component = F.when(F.col("size") <= LARGEST, F.col("joined")).otherwise(F.col("component"))
        return both.select("number", component.alias("component"))

    def _with_texts(self, rows: DataFrame, members: DataFrame) -> DataFrame:
        """Add the texts of those documents that are in a component."""
        wanted = members.select(F.col("number").alias(NUMBER))
        source = self._source.frame.join(wanted, NUMBER, "left_semi")
        texts = self._made(source, partial(signing.texts, config=self._config), "number long, text binary")
        return rows.join(texts, "number", "left")


def _decided(rows: Iterable[Any], config: Config, began: float, run: str) -> Iterator[deciding.Said]:
    return deciding.decide((row.asDict() for row in rows), config, began, run)
