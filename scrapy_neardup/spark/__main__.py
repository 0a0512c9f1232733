"""Run `dedupe` on Apache Spark: `python -m scrapy_neardup.spark`, or `spark-submit` with this file."""

from __future__ import annotations

import argparse
import os
import re
import sys
from collections.abc import Sequence
from dataclasses import replace
from typing import NoReturn

from scrapy_neardup.commands.options import add_fields, with_fields
from scrapy_neardup.feeds import FeedError
from scrapy_neardup.settings import Config, ConfigError
from scrapy_neardup.text.extractors import ExtractorError

NAME = "scrapy_neardup.spark"
EXAMPLES = """examples:
  python -m scrapy_neardup.spark archive.parquet -o unique.parquet --duplicates duplicates
  python -m scrapy_neardup.spark 'crawl-*.jsonl.gz' -o unique --id-field id --export held.jsonl.gz
  scrapy neardup import held.jsonl.gz --store held.sqlite
"""
_OURS = re.compile(r"^scrapy_neardup\.[\w.]+(?:Config|Extractor|Feed)Error: (.+)$", re.MULTILINE)
_CAUSE = re.compile(r"^Caused by: [\w.$]+: (.+)$", re.MULTILINE)


class Parser(argparse.ArgumentParser):
    """A parser of arguments that reports a wrong argument in one line."""

    def error(self, message: str) -> NoReturn:
        self.exit(2, f"{NAME}: {message}\n")


def parser() -> argparse.ArgumentParser:
    made = Parser(
        prog=f"python -m {NAME}",
        description="remove duplicates from archives on Apache Spark",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    made.add_argument("feeds", nargs="+", metavar="IN", help="feeds of items: JSON lines, also .gz, or Parquet")
    add_fields(made)
    made.add_argument(
        "--format", choices=("jsonl", "parquet"), help="the format of the feeds, if their names don't tell it"
    )
    made.add_argument("-o", "--output", required=True, metavar="OUT", help="write the kept rows to this folder")
    made.add_argument("--duplicates", metavar="FOLDER", help="write each dropped row with the reason, as JSON lines")
    made.add_argument("--export", metavar="FILE", help="a file for `scrapy neardup import`: JSON lines, also .gz")
    made.add_argument("--detectors", metavar="A,B", help="detectors to use instead of the defaults")
    made.add_argument(
        "-s", dest="settings", action="append", default=[], metavar="NAME=VALUE", help="a setting, NEARDUP_…"
    )
    return made


def main(arguments: Sequence[str] | None = None) -> int:
    opts = parser().parse_args(arguments)
    try:
        from py4j.protocol import Py4JJavaError
        from pyspark.errors import PySparkException
    except ModuleNotFoundError as error:
        return _refuse(f"{error}; pip install 'scrapy-neardup[spark]'")
    from scrapy_neardup.spark.command import run

    if "SPARK_ENV_LOADED" not in os.environ:  # without spark-submit, which sets the Python of the workers
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    try:
        print(run(opts, _config(opts)), file=sys.stderr)
    except (ConfigError, ExtractorError, FeedError) as error:
        return _refuse(str(error))
    except KeyboardInterrupt:
        return 130
    except (PySparkException, Py4JJavaError) as error:
        return _refuse(_why(error))
    return 0


def _config(opts: argparse.Namespace) -> Config:
    settings = {}
    for setting in opts.settings:
        name, given, value = setting.partition("=")
        if not given:
            raise ConfigError(f"-s {setting}: allowed is NAME=VALUE")
        settings[name] = value
    config = with_fields(Config.from_settings(settings), opts)
    return replace(config, detectors=opts.detectors) if opts.detectors else config


def _why(error: Exception) -> str:
    """Return the reason in one line: the message of this package's error in a worker, or else Spark's last cause."""
    said = str(error)
    return (_OURS.findall(said) or _CAUSE.findall(said)[-1:] or said.strip().splitlines() or [repr(error)])[0]


def _refuse(message: str) -> int:
    print(f"{NAME}: {message}", file=sys.stderr)
    return 2


if __name__ == "__main__":
    sys.exit(main())
