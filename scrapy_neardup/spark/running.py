"""What the command does: reads, decides, and writes what `dedupe` writes."""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator
from dataclasses import replace

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812

from ..config import Config
from ..feeds import FeedError, writing
from ..stores.runs import Run, new_id
from .deciding import DOCUMENT, LINK, PLACES, VERDICT, export
from .job import Job
from .reading import NUMBER, Source, read


def run(opts: argparse.Namespace, config: Config) -> str:
    """Do what the options say, and return what it came to in a line. Raise ConfigError, FeedError, Spark's errors."""
    spark = SparkSession.builder.appName("scrapy-neardup").getOrCreate()
    try:
        _check_free(spark, [folder for folder in (opts.output, opts.duplicates) if folder])
        return _run(opts, config, read(spark, opts.feeds, opts.format))
    finally:
        spark.stop()


def _run(opts: argparse.Namespace, config: Config, source: Source) -> str:
    record = Run(new_id() if opts.export else "", time.time())
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
        if opts.export:
            stats = {"documents": job.documents, "duplicates": duplicates}
            _export(opts.export, job, said, replace(record, stats=stats).ended(rows // PLACES + 1))
    return f"{rows} rows, {rows - duplicates} kept, {duplicates} duplicates"


def _export(path: str, job: Job, said: DataFrame, record: Run) -> None:
    counts = dict(map(tuple, said.groupBy("kind").count().collect()))
    with writing(path) as file:
        for line in export(record, job.detectors, _lines(said), counts.get(DOCUMENT, 0), counts.get(LINK, 0)):
            file.write(line.encode() + b"\n")


def _lines(said: DataFrame) -> Iterator[str]:
    """Yield what is to be exported, documents first; no more than a part of it is in memory at a time."""
    wanted = said.where(F.col("kind").isin(DOCUMENT, LINK)).orderBy("kind", NUMBER)
    return (row.value for row in wanted.select("value").toLocalIterator())


def _check_free(spark: SparkSession, folders: list[str]) -> None:
    """Raise FeedError for a folder that exists: Spark would say so only when all is done."""
    hadoop = spark.sparkContext._jvm.org.apache.hadoop.fs.Path
    for folder in folders:
        path = hadoop(folder)
        if path.getFileSystem(spark.sparkContext._jsc.hadoopConfiguration()).exists(path):
            raise FeedError(f"{folder}: exists already; allowed is a new folder")
