"""Run `dedupe` on Apache Spark, for archives that are too large for one machine.

Signatures, verification and verdicts are those of `scrapy neardup dedupe`. See docs/spark.md.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..settings import Config

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

VERDICT = "neardup"
"""The column that `dedupe` adds. Its fields are those of an item's tag."""
FIELDS = (
    "id string, status string, duplicate_of string, original string, detector string, hamming int, resemblance double,"
    " containment double, length_ratio double, kind string, copies int, changed boolean"
)


def dedupe(rows: DataFrame, *, id_field: str | None = None, order: str | None = None, **settings: Any) -> DataFrame:
    """Return the rows with a column `neardup`, which has the verdict on each row; null for a row that has neither text
    nor enough facts for a record.

    `id_field`: the column with the ids of rows. Without this argument, the id of a row is its URL or number. `order`: a
    column of unique integers by which the rows are ordered. Without this argument, the rows keep their order, which
    must be the same each time that Spark computes the rows. Settings are keywords in lower case, without prefix. All
    verdicts are reached before the function returns. Raise ConfigError for a bad setting.
    """
    from pyspark.sql import functions as F  # noqa: N812 - as all of Spark's own pages call it

    from .decisions import VERDICT as SAID
    from .inputs import NUMBER, ROW, of_frame
    from .job import Job

    source = of_frame(rows, order)
    with Job(source, Config.from_keywords(settings).ignoring(order), id_field) as job:
        # Spark removes a checkpoint when nothing refers to the frame any more. It does not remove a persisted frame.
        said = job.verdicts().localCheckpoint()
    verdicts = said.where(F.col("kind") == SAID).select(NUMBER, F.from_json("value", FIELDS).alias(VERDICT))
    return source.frame.join(verdicts, NUMBER, "left").select(f"{ROW}.*", VERDICT)
