"""`dedupe` on Apache Spark, for archives that outgrow one machine.

The same signatures, verification and decisions as `scrapy neardup dedupe`; docs/spark.md says how.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..settings import Config

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

VERDICT = "neardup"
"""The column that `dedupe` adds, and its fields: as the tag of an item."""
FIELDS = (
    "id string, status string, duplicate_of string, detector string, hamming int, resemblance double,"
    " containment double, length_ratio double, kind string, copies int, changed boolean"
)


def dedupe(rows: DataFrame, *, id_field: str | None = None, order: str | None = None, **settings: Any) -> DataFrame:
    """Return rows with a column `neardup`: the verdict on each, null where it has no text.

    `id_field`: the column that names a row, else its URL or number does; `order`: a column of unique whole numbers by
    which the rows come, else they come as they lie, which must be the same whenever they are computed; settings as
    keywords, lower case and without prefix. All is decided before this returns. Raise ConfigError for a bad setting.
    """
    from pyspark.sql import functions as F  # noqa: N812 - as all of Spark's own pages call it

    from .decisions import VERDICT as SAID
    from .inputs import NUMBER, ROW, of_frame
    from .job import Job

    source = of_frame(rows, order)
    with Job(source, Config.from_keywords(settings), id_field) as job:
        # A checkpoint goes when nobody has the frame any more; what is persisted stays until somebody says so.
        said = job.verdicts().localCheckpoint()
    verdicts = said.where(F.col("kind") == SAID).select(NUMBER, F.from_json("value", FIELDS).alias(VERDICT))
    return source.frame.join(verdicts, NUMBER, "left").select(f"{ROW}.*", VERDICT)
