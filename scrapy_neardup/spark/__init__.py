"""Run `dedupe` on Apache Spark, for archives that are too large for one machine.

1. `job` numbers the rows in the order in which `dedupe` would decide on them.
2. `Worker.sign` makes the record (the fingerprints) of each row, and the values by which documents are paired.
3. `Job` pairs documents with a common value; `Worker.compare` keeps the pairs that may be copies or siblings.
4. `Job` joins the pairs to connected components. If two pages of a site are a pair, all pages of the site are joined.
5. `Worker.decide` lets a `Deduplicator` decide on the rows of each component in order. A component has all documents
   on which its verdicts depend. So the verdicts are those of one `dedupe` of all rows, however Spark shares the work.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..files import json_text
from ..settings import Config
from ..verdict import UNIQUE

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

VERDICT = "neardup"
"""The column that `dedupe` adds. It has the fields of an item's tag."""
FIELDS = (
    "status string, duplicate_of string, original string, detector string, hamming int, resemblance double,"
    " containment double, length_ratio double, kind string, copies int, changed boolean"
)


def dedupe(rows: DataFrame, *, id_field: str | None = None, order: str | None = None, **settings: Any) -> DataFrame:
    """Return the rows with a further column `neardup`: the verdict on the row, or null for a row without a document.

    `id_field`: the column with the ids of rows. Without it, the id of a row is its URL or number. `order`: a column of
    unique integers, none below 0, by which rows are sorted. Without it, rows keep their order, which must be the same
    each time that Spark computes them. Settings are keywords in lower case, without prefix. All verdicts are reached
    before the function returns. Raise ConfigError for a bad setting.
    """
    from pyspark.sql import functions as F  # noqa: N812 - as all of Spark's own pages call it

    from .job import NUMBER, ROW, Job, of_frame

    source = of_frame(rows, order)
    with Job(source, Config.from_keywords(settings).ignoring(order), id_field) as job:
        value = F.coalesce("value", F.lit(json_text(UNIQUE.tag())))
        said = job.records.select(NUMBER).join(job.duplicates(), NUMBER, "left")
        # Spark removes a checkpoint, but not a persisted frame, when nothing refers to the frame any more.
        verdicts = said.select(NUMBER, F.from_json(value, FIELDS).alias(VERDICT)).localCheckpoint()
    return source.join(verdicts, NUMBER, "left").select(f"{ROW}.*", VERDICT)
