"""Run the command: read the inputs of `dedupe`, decide on the rows, and write the outputs."""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator
from contextlib import nullcontext
from dataclasses import replace
from typing import IO

from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - as all of Spark's own pages call it

from ..feeds import FORMATS, FeedError, writing
from ..settings import Config
from ..store.records import DOCUMENT, HOST, VISIT, Run, new_id
from .decisions import URLS, VERDICT, export
from .inputs import NUMBER, Source, read
from .job import Job


def run(opts: argparse.Namespace, config: Config) -> str:
    """Run the job that the options describe, and return a summary in one line.

    Raise ConfigError, FeedError, and Spark's errors.
    """
    active = SparkSession.getActiveSession()
    spark = active or SparkSession.builder.appName("scrapy-neardup").getOrCreate()
    try:
        for folder in filter(None, (opts.output, opts.duplicates)):
            if _exists(spark, folder):  # Spark itself would refuse the folder only at the end
                raise FeedError(f"{folder}: exists already; allowed is a new folder")
        with writing(opts.export, FORMATS) if opts.export else nullcontext() as file:
            return _run(opts, config, read(spark, opts.feeds, opts.format), file)
    finally:
        if not active:
            spark.stop()


def _run(opts: argparse.Namespace, config: Config, source: Source, file: IO[bytes] | None) -> str:
    record = Run(new_id() if file else "", time.time(), writer="scrapy_neardup.spark")
    with Job(source, config, opts.id_field) as job:
        if opts.text_field and source.count and not job.documents:
            raise FeedError(f"--text-field {opts.text_field}: no row has text in it")
        said = job.verdicts(record.started, record.id)
        dropped = said.where((F.col("kind") == VERDICT) & (F.get_json_object("value", "$.status") != "unique"))
        kept = source.rows(source.frame.join(dropped.select(NUMBER), NUMBER, "left_anti"))
        (kept.write.text if source.reader.is_lines else kept.write.parquet)(opts.output)
        if opts.duplicates:
            dropped.orderBy(NUMBER).select("value").write.text(opts.duplicates)
        duplicates, rows = dropped.count(), source.count or 0
        if file:
            stats = {"documents": job.documents, "duplicates": duplicates}
            _export(file, job, said, replace(record, stats=stats), rows)
    return f"{rows} rows, {rows - duplicates} kept, {duplicates} duplicates"


def _export(file: IO[bytes], job: Job, said: DataFrame, record: Run, rows: int) -> None:
    counts = dict(map(tuple, said.groupBy("kind").count().collect()))
    [[urls]] = said.where(F.col("kind") == URLS).agg(F.sum(F.col("value").cast("long"))).collect()
    record = replace(record, documents=counts.get(DOCUMENT, 0), urls=urls or 0).ended(rows)
    for line in export(record, job.detectors, *map(_values, _to_export(said))):
        file.write(line.encode() + b"\n")


def _to_export(said: DataFrame) -> tuple[DataFrame, DataFrame, DataFrame]:
    """Return the rows to export: documents in order, visits in order, and one row for each host."""
    documents, visits = (said.where(F.col("kind") == kind).orderBy(NUMBER) for kind in (DOCUMENT, VISIT))
    name, met = (F.get_json_object("value", f"$.{field}") for field in ("name", "met"))
    hosts = said.where(F.col("kind") == HOST).groupBy(name).agg(F.min_by("value", met.cast("double")).alias("value"))
    return documents, visits, hosts


def _values(said: DataFrame) -> Iterator[str]:
    """Yield the values of the rows, with only one partition at a time in memory."""
    return (row.value for row in said.select("value").toLocalIterator())


def _exists(spark: SparkSession, folder: str) -> bool:
    try:
        spark.read.option("recursiveFileLookup", True).text(folder)  # reads nothing yet, but checks that it exists
    except AnalysisException as error:
        if error.getCondition() != "PATH_NOT_FOUND":
            raise
        return False
    return True
