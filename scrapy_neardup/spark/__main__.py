"""Run `dedupe` on Apache Spark: `python -m scrapy_neardup.spark`, or `spark-submit` with this file."""

from __future__ import annotations

import argparse
import os
import re
import sys
from collections.abc import Sequence
from contextlib import nullcontext, suppress
from typing import TYPE_CHECKING

from scrapy_neardup.commands import VerbParser
from scrapy_neardup.commands.options import add_fields, check_fields, with_fields
from scrapy_neardup.files import FileError
from scrapy_neardup.settings import Config, ConfigError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

NAME = "scrapy_neardup.spark"
EXAMPLES = """examples:
  python -m scrapy_neardup.spark archive.parquet -o unique.parquet --duplicates duplicates
  python -m scrapy_neardup.spark 'crawl-*.jsonl.gz' -o unique --id-field id --text-field body
"""
_OURS = re.compile(r"^scrapy_neardup\.[\w.]+(?:Config|File|Process)Error: (.+)$", re.MULTILINE)
_CAUSE = re.compile(r"^Caused by: [\w.$]+: (.+)$", re.MULTILINE)


def setting(given: str) -> list[str]:
    name, value = given.split("=", 1)
    return [name, value]


def parser() -> argparse.ArgumentParser:
    shown = argparse.RawDescriptionHelpFormatter
    what = "remove duplicates from archives on Apache Spark"
    made = VerbParser(NAME, description=what, epilog=EXAMPLES, formatter_class=shown, allow_abbrev=False)
    add = made.add_argument
    add("feeds", nargs="+", metavar="IN", help="feeds of items: JSON lines, also .gz, or Parquet")
    add_fields(made)
    add("--format", choices=("jsonl", "parquet"), help="the format of the feeds, if their names don't tell it")
    add("-o", "--output", required=True, metavar="OUT", help="write the kept rows to this folder")
    add("--duplicates", metavar="FOLDER", help="write each dropped row with the reason, as JSON lines")
    add("-s", type=setting, action="append", default=[], metavar="NEARDUP_…=VALUE", help="a setting")
    return made


def main(arguments: Sequence[str] | None = None) -> int:
    opts = parser().parse_args(arguments)
    try:
        from py4j.protocol import Py4JJavaError
        from pyspark.errors import PySparkException
        from pyspark.sql import SparkSession
    except ModuleNotFoundError as error:
        return _refuse(f"{error}; pip install 'scrapy-neardup[spark]'")
    if "SPARK_ENV_LOADED" not in os.environ:  # without spark-submit, which sets the Python of the workers
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    try:
        config = with_fields(Config.from_settings(dict(opts.s)), opts)
        active = SparkSession.getActiveSession()
        with nullcontext(active) if active else SparkSession.builder.appName("scrapy-neardup").getOrCreate() as spark:
            print(run(spark, opts, config), file=sys.stderr)
    except (ConfigError, FileError) as error:
        return _refuse(str(error))
    except KeyboardInterrupt:
        return 130
    except (PySparkException, Py4JJavaError) as error:
        return _refuse(_why(error))
    return 0


def run(spark: SparkSession, opts: argparse.Namespace, config: Config) -> str:
    """Run the job that the options describe, and return a summary in one line."""
    from pyspark.errors import AnalysisException

    from scrapy_neardup.spark.job import NUMBER, ROW, Job, read

    for folder in filter(None, (opts.output, opts.duplicates)):
        with suppress(AnalysisException):  # raised for a new folder; without this, Spark looks only at the end
            spark.read.option("recursiveFileLookup", True).text(folder)
            raise FileError(f"{folder}: exists already; allowed is a new folder")
    numbered, rows = read(spark, opts.feeds, opts.format)
    with Job(numbered, config, opts.id_field) as job:
        documents, located = job.records.selectExpr("count(*)", "count(page)").collect()[0]
        check_fields(opts, rows, documents, located)
        dropped = job.duplicates()
        kept = numbered.join(dropped.select(NUMBER), NUMBER, "left_anti")
        if dict(kept.dtypes)[ROW] == "binary":
            kept.selectExpr(f"cast({ROW} as string)").write.text(opts.output)
        else:
            kept.select(f"{ROW}.*").write.parquet(opts.output)
        if opts.duplicates:
            dropped.orderBy(NUMBER).select("value").write.text(opts.duplicates)
        duplicates = dropped.count()
    return f"{rows} rows, {rows - duplicates} kept, {duplicates} duplicates"


def _why(error: Exception) -> str:
    """Return the reason in one line: the message of this package's error in a worker, or else Spark's last cause."""
    said = str(error)
    return (_OURS.findall(said) or _CAUSE.findall(said)[-1:] or said.strip().splitlines() or [repr(error)])[0]


def _refuse(message: str) -> int:
    print(f"{NAME}: {message}", file=sys.stderr)
    return 2


if __name__ == "__main__":
    sys.exit(main())
