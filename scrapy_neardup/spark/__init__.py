"""Run `dedupe` on Apache Spark, for archives that are too large for one machine.

1. `job` numbers the rows in the order in which `dedupe` would decide on them.
2. `Worker.sign` makes the record of each row, as everywhere, and a row of a table with what documents may share.
3. `Job` pairs documents that share something; `Worker.compare` keeps the pairs that may be copies or siblings.
4. `Job` joins the pairs to connected components, and the pages of a site that has such pairs to its component.
5. `Worker.decide` lets the `Deduplicator` claim the rows of each component in order. All that its verdicts depend on is
   in the component, so they are those of one `dedupe` of all rows, however Spark distributes the work.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..feeds import json_text
from ..settings import Config
from ..verdict import UNIQUE

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

VERDICT = "neardup"
"""The column that `dedupe` adds. Its fields are those of an item's tag."""
FIELDS = (
    "status string, duplicate_of string, original string, detector string, hamming int, resemblance double,"
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

    from .job import NUMBER, ROW, Job, of_frame

    source = of_frame(rows, order)
    with Job(source, Config.from_keywords(settings).ignoring(order), id_field) as job:
        value = F.coalesce("value", F.lit(json_text(UNIQUE.tag())))
        said = job.records.select(NUMBER).join(job.duplicates(), NUMBER, "left")
        # Spark removes a checkpoint when nothing refers to the frame any more. It does not remove a persisted frame.
        verdicts = said.select(NUMBER, F.from_json(value, FIELDS).alias(VERDICT)).localCheckpoint()
    return source.join(verdicts, NUMBER, "left").select(f"{ROW}.*", VERDICT)
